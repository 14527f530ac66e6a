//! What every instance has from its first moment.

use std::sync::Arc;

use atoll_meta::{Key, Object, Status};
use atoll_store::{Expect, Op, StoreError, Write};
use serde_json::{Value, json};

use crate::hub::Hub;
use crate::instance::{Instance, store_status};

const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// Makes what is missing; running it again changes nothing.
pub async fn ensure(hub: &Hub, instance: &Instance) -> Result<(), Status> {
    let snapshot = hub.snapshot(instance).await?;
    let now = atoll_meta::time::format(hub.now());
    let mut writes = Vec::new();
    let own = (instance.id == atoll_meta::InstanceId::ROOT).then_some(crate::auth::NAMESPACE);
    for name in NAMESPACES.into_iter().chain(own) {
        let key = Key::new("", "namespaces", "", name);
        if snapshot.get(key.as_str()).is_none() {
            writes.push(put(key, &namespace(name, &now))?);
        }
    }
    for (key, tree) in crate::bootstrap_service::objects(&now, hub.options.advertise) {
        if snapshot.get(key.as_str()).is_none() {
            writes.push(put(key, &tree)?);
        }
    }
    for (key, object) in crate::auth::default_objects(&now) {
        if snapshot.get(key.as_str()).is_none() {
            writes.push(Write { key: key.clone(), expect: Expect::Absent, op: Op::Put(object.clone()) });
        }
    }
    if writes.is_empty() {
        return Ok(());
    }
    match hub.engine.commit(instance.id, writes).await {
        // Another replica was faster; what it made is the same.
        Ok(_) | Err(StoreError::Conflict { .. }) => Ok(()),
        Err(error) => Err(store_status(&error)),
    }
}

fn put(key: Key, tree: &Value) -> Result<Write, Status> {
    let object = Object::encode(tree).map_err(Status::internal)?;
    Ok(Write { key, expect: Expect::Absent, op: Op::Put(Arc::new(object)) })
}

fn namespace(name: &str, now: &str) -> Value {
    json!({
        "kind": "Namespace", "apiVersion": "v1",
        "metadata": {"name": name, "uid": uuid::Uuid::new_v4().to_string(), "creationTimestamp": now,
                     "labels": {"kubernetes.io/metadata.name": name}},
        "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
    })
}
