//! Pods run as a service account: it must exist, and its token is mounted.

use atoll_meta::{Key, Status};
use serde_json::{Value, json};

use super::{Review, pod};

const MIRROR: &str = "kubernetes.io/config.mirror";
const MOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// An hour and a few seconds, the life that marks tokens nobody asked a special life for.
const TOKEN_SECONDS: i64 = 3607;

/// Names the account, checks that it exists and mounts its token.
pub async fn mutate(review: &Review<'_>, object: &mut Value) -> Result<(), Status> {
    if !pod::is_created(review) || !object["metadata"]["annotations"][MIRROR].is_null() {
        return Ok(());
    }
    let given = object["spec"]["serviceAccountName"].as_str().unwrap_or_default();
    let name = if given.is_empty() { "default".to_owned() } else { given.to_owned() };
    let call = review.call;
    let namespace = &call.target.namespace;
    let key = Key::new("", "serviceaccounts", namespace, &name);
    let entry = call.hub.read(&call.instance, key.as_str()).await?.ok_or_else(|| {
        let why = format!("error looking up service account {namespace}/{name}: serviceaccount {name:?} not found");
        Status::forbidden("", "pods", &review.name, why)
    })?;
    let account = entry.object.tree(entry.modified);
    object["spec"]["serviceAccountName"] = name.clone().into();
    object["spec"]["serviceAccount"] = name.into();
    if wants_token(object, &account) {
        mount(object);
    }
    let own = object["spec"]["imagePullSecrets"].as_array().is_some_and(|list| !list.is_empty());
    if let (false, Some(list)) = (own, account["imagePullSecrets"].as_array().filter(|list| !list.is_empty())) {
        object["spec"]["imagePullSecrets"] = list.clone().into();
    }
    Ok(())
}

fn wants_token(object: &Value, account: &Value) -> bool {
    let own = object["spec"]["automountServiceAccountToken"].as_bool();
    own.or(account["automountServiceAccountToken"].as_bool()).unwrap_or(true)
}

fn mount(object: &mut Value) {
    let mut needed = false;
    let name = volume_name(object);
    for field in ["initContainers", "containers"] {
        // Indexing a missing field would leave a null behind.
        for container in
            object.pointer_mut(&format!("/spec/{field}")).and_then(Value::as_array_mut).into_iter().flatten()
        {
            let mounts = container["volumeMounts"].as_array().map(Vec::as_slice).unwrap_or_default();
            if mounts.iter().any(|mount| mount["mountPath"] == MOUNT) {
                continue;
            }
            needed = true;
            let added = json!({"name": name, "readOnly": true, "mountPath": MOUNT});
            match container["volumeMounts"].as_array_mut() {
                Some(list) => list.push(added),
                None => container["volumeMounts"] = json!([added]),
            }
        }
    }
    if !needed {
        return;
    }
    let volume = json!({"name": name, "projected": {"defaultMode": 420, "sources": [
        {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
    ]}});
    match object["spec"]["volumes"].as_array_mut() {
        Some(list) => list.push(volume),
        None => object["spec"]["volumes"] = json!([volume]),
    }
}

fn volume_name(object: &Value) -> String {
    loop {
        let name = atoll_meta::name::generate("kube-api-access-", &mut rand::random::<u32>);
        let taken = object["spec"]["volumes"].as_array().into_iter().flatten().any(|volume| volume["name"] == *name);
        if !taken {
            return name;
        }
    }
}
