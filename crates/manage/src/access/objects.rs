//! The kinds that say who may do what, and their definitions.

use serde_json::{Value, json};

use crate::kinds::{Kind, kind};

/// A set of instances and namespaces that are used together.
pub static WORKSPACE: Kind = kind("atoll.io", "v1alpha1", "workspaces", "Workspace", false);
/// A role for someone, somewhere.
pub static GRANT: Kind = kind("atoll.io", "v1alpha1", "grants", "Grant", false);
/// A role beyond admin, editor and viewer.
pub static ACCESS_ROLE: Kind = kind("atoll.io", "v1alpha1", "accessroles", "AccessRole", false);
/// A local user.
pub static ACCOUNT: Kind = kind("atoll.io", "v1alpha1", "accounts", "Account", false);

/// Who vouches for users elsewhere: an issuer of OpenID Connect.
pub static PROVIDER: Kind = kind("atoll.io", "v1alpha1", "identityproviders", "IdentityProvider", false);
/// A system that decides about grants instead of the hub.
pub static AUTHORITY: Kind = kind("atoll.io", "v1alpha1", "authorities", "Authority", false);

/// Something access can be given to, as global management knows it.
pub static REGISTERED: Kind = kind("atoll.io", "v1alpha1", "registeredresources", "RegisteredResource", false);

/// The definitions, to be served in `root`.
pub fn definitions() -> Vec<Value> {
    let text = || json!({"type": "string"});
    let name = || json!({"type": "string", "minLength": 1});
    let texts = || json!({"type": "array", "items": {"type": "string"}});
    let place = json!({"type": "object", "required": ["instance", "namespace"], "properties": {"instance": name(), "namespace": name()}});
    let workspace = json!({
        "id": {"type": "integer", "format": "int64"}, "alias": text(), "instances": texts(), "namespaces": {"type": "array", "items": place},
    });
    let subject = json!({"type": "object", "required": ["kind", "name"], "properties": {"kind": {"type": "string", "enum": ["User", "Group"]}, "name": name()}});
    let scope = json!({"type": "object", "properties": {
        "platform": {"type": "boolean"}, "instance": text(), "namespace": text(), "workspace": text(),
    }});
    let grant = json!({"subjects": {"type": "array", "items": subject}, "role": name(), "scope": scope});
    let rule = json!({"type": "object", "required": ["verbs"], "properties": {
        "verbs": texts(), "apiGroups": texts(), "resources": texts(), "resourceNames": texts(), "nonResourceURLs": texts(),
    }});
    let role = json!({"rules": {"type": "array", "items": rule}});
    let account = json!({"displayName": text(), "groups": texts(), "disabled": {"type": "boolean"}});
    let issuer = json!({"type": "string", "pattern": "^https://"});
    let secret = json!({"type": "object", "required": ["namespace", "name"], "properties": {"namespace": name(), "name": name()}});
    let provider = json!({
        "issuer": issuer, "audiences": texts(), "caData": text(), "usernameClaim": text(), "usernamePrefix": text(),
        "groupsClaim": text(), "groupsPrefix": text(), "title": text(), "clientId": text(), "clientSecretRef": secret, "scopes": texts(),
    });
    let authority = json!({"url": issuer, "caData": text(), "secretRef": secret});
    let registered = json!({
        "product": name(), "resourceType": {"type": "string", "enum": ["Instance", "Namespace"]}, "resourceScope": text(), "resourceName": name(),
        "workspaces": texts(),
    });
    vec![
        definition(&REGISTERED, &registered, &["product", "resourceType", "resourceName"]),
        definition(&PROVIDER, &provider, &["issuer", "audiences"]),
        definition(&AUTHORITY, &authority, &["secretRef"]),
        definition(&WORKSPACE, &workspace, &[]),
        definition(&GRANT, &grant, &["subjects", "role", "scope"]),
        definition(&ACCESS_ROLE, &role, &["rules"]),
        definition(&ACCOUNT, &account, &[]),
    ]
}

fn definition(kind: &Kind, properties: &Value, required: &[&str]) -> Value {
    let spec = if required.is_empty() {
        json!({"type": "object", "properties": properties})
    } else {
        json!({"type": "object", "properties": properties, "required": required})
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{}.{}", kind.resource, kind.group)},
        "spec": {
            "group": kind.group, "scope": "Cluster",
            "names": {"kind": kind.kind, "listKind": format!("{}List", kind.kind), "plural": kind.resource, "singular": kind.kind.to_lowercase()},
            "versions": [{"name": kind.version, "served": true, "storage": true,
                          "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}],
        },
    })
}
