//! From stored definitions to served kinds.

use std::sync::Arc;

use atoll_meta::Revision;
use atoll_store::Snapshot;
use serde_json::Value;

use super::{Custom, GROUP, PLURAL};
use crate::call::Call;
use crate::discovery::priority;
use crate::hub::Hub;
use crate::instance::{Instance, Loaded};
use crate::kind::{Kind, Kinds, Source, Sub, prefix};

/// Reads all definitions of an instance and serves what they define.
pub fn reload(hub: &Hub, instance: &Instance, snapshot: &Snapshot) {
    let mut loaded = instance.definitions.lock();
    if snapshot.revision < loaded.revision {
        return; // somebody who saw more was faster
    }
    let all = format!("{PLURAL}.{GROUP}/");
    let mut kinds: Vec<Arc<Kind>> = Vec::new();
    for (_, entry) in snapshot.range(&all, None) {
        kinds.extend(kinds_of(hub, &entry.object.tree(Revision(0)), entry.modified));
    }
    *loaded = Loaded { revision: snapshot.revision, fingerprint: fingerprint(snapshot) };
    if kinds.is_empty() {
        return instance.custom.store(hub.shared_native_kinds(instance));
    }
    let stored: Vec<String> = kinds.iter().filter_map(|kind| Some(kind.custom()?.definition.clone())).collect();
    // A stored definition of the same name takes the place of a native one.
    let native = hub.native_kinds(instance);
    kinds.extend(
        native.into_iter().filter(|kind| kind.custom().is_none_or(|custom| !stored.contains(&custom.definition))),
    );
    instance.custom.store(Arc::new(Kinds::new(kinds)));
}

/// A number that changes whenever a definition is made, changed or removed.
pub fn fingerprint(snapshot: &Snapshot) -> u64 {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let all = format!("{PLURAL}.{GROUP}/");
    let mut hasher = DefaultHasher::new();
    for (key, entry) in snapshot.range(&all, None) {
        (key.as_str(), entry.modified.0).hash(&mut hasher);
    }
    hasher.finish()
}

/// The kinds of a definition that is not stored: it is accepted as it is.
pub fn native_kinds_of(hub: &Hub, mut definition: Value) -> Vec<Arc<Kind>> {
    super::accept::default_names(&mut definition);
    let names = definition["spec"]["names"].clone();
    definition["status"] = serde_json::json!({
        "acceptedNames": names,
        "conditions": [{"type": "Established", "status": "True"}, {"type": "NamesAccepted", "status": "True"}],
    });
    kinds_of(hub, &definition, Revision(0))
}

/// Reacts to a write of the server's own configuration objects, before the writer gets its answer.
pub async fn committed(call: &Call) {
    match &*call.kind.group {
        GROUP => {
            if let Ok(snapshot) = call.hub.snapshot(&call.instance).await {
                reload(&call.hub, &call.instance, &snapshot);
            }
        }
        "rbac.authorization.k8s.io" => call.instance.roles.invalidate(),
        _ => {}
    }
}

/// The kinds one definition serves: one per served version, best version first.
pub fn kinds_of(hub: &Hub, definition: &Value, since: Revision) -> Vec<Arc<Kind>> {
    if !is_established(definition) {
        return Vec::new();
    }
    let spec = &definition["spec"];
    let Some(versions) = spec["versions"].as_array() else { return Vec::new() };
    let storage =
        versions.iter().find(|version| version["storage"] == true).and_then(|version| version["name"].as_str());
    let mut served: Vec<&Value> = versions.iter().filter(|version| version["served"] == true).collect();
    served.sort_by_key(|version| std::cmp::Reverse(priority(version["name"].as_str().unwrap_or_default())));
    served.iter().filter_map(|version| kind_of(hub, definition, version, storage?, since)).map(Arc::new).collect()
}

fn is_established(definition: &Value) -> bool {
    let conditions = definition["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    conditions.iter().any(|condition| condition["type"] == "Established" && condition["status"] == "True")
}

fn kind_of(hub: &Hub, definition: &Value, version: &Value, storage: &str, since: Revision) -> Option<Kind> {
    let spec = &definition["spec"];
    let names = &definition["status"]["acceptedNames"];
    let group = spec["group"].as_str()?;
    let kind = names["kind"].as_str()?;
    let plural = names["plural"].as_str()?;
    let name = version["name"].as_str()?;
    let schema = version["schema"].get("openAPIV3Schema");
    let compiled = match schema {
        // A definition is checked when written; one that no longer compiles is not served rather than served unchecked.
        Some(schema) => Some(hub.interner.compile(schema, &atoll_meta::FieldPath::root()).ok()?),
        None => None,
    };
    // Objects get the defaults of the version they are stored in, too.
    let of_storage = spec["versions"].as_array().into_iter().flatten().find(|own| own["name"] == storage);
    let stored = of_storage
        .filter(|_| storage != name)
        .and_then(|own| own["schema"].get("openAPIV3Schema"))
        .and_then(|schema| hub.interner.compile(schema, &atoll_meta::FieldPath::root()).ok());
    let boxed = |value: &Value| -> Vec<Box<str>> {
        value.as_array().into_iter().flatten().filter_map(Value::as_str).map(Into::into).collect()
    };
    let verbs = |list: &[&str]| list.iter().map(|verb| (*verb).into()).collect::<Vec<Box<str>>>();
    let mut subresources = Vec::new();
    if version["subresources"]["status"].is_object() {
        subresources.push(Sub {
            name: "status".into(),
            verbs: verbs(&["get", "patch", "update"]),
            group: group.into(),
            version: name.into(),
            kind: kind.into(),
        });
    }
    if version["subresources"]["scale"].is_object() {
        subresources.push(Sub {
            name: "scale".into(),
            verbs: verbs(&["get", "patch", "update"]),
            group: "autoscaling".into(),
            version: "v1".into(),
            kind: "Scale".into(),
        });
    }
    Some(Kind {
        group: group.into(),
        version: name.into(),
        kind: kind.into(),
        list_kind: names["listKind"].as_str().map_or_else(|| format!("{kind}List").into(), Into::into),
        plural: plural.into(),
        singular: names["singular"].as_str().map_or_else(|| kind.to_lowercase().into(), Into::into),
        short_names: boxed(&names["shortNames"]),
        categories: boxed(&names["categories"]),
        namespaced: spec["scope"] == "Namespaced",
        verbs: verbs(&["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]),
        subresources,
        storage_group: group.into(),
        storage_version: storage.into(),
        prefix: prefix(group, name, kind),
        source: Source::Custom(Arc::new(
            Custom::new(definition, version, compiled, since)
                .stored_as(stored)
                .converted_by(hub.conversion(group, kind, name, storage)),
        )),
    })
}
