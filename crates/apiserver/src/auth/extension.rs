//! What extension servers must know to tell who calls them through us.

use std::sync::Arc;

use atoll_meta::{Key, Object, Status};
use atoll_store::{Expect, Op, StoreError, Write};
use serde_json::{Value, json};

use super::Authority;
use crate::hub::Hub;
use crate::instance::{Instance, store_status};

const NAME: &str = "extension-apiserver-authentication";
/// The name in the certificate the hub shows to extension servers.
pub const FRONT_PROXY: &str = "front-proxy-client";

/// Writes the ConfigMap extension servers read, if it is not right already.
pub async fn publish(hub: &Hub, instance: &Instance, authority: &Authority) -> Result<(), Status> {
    let key = Key::new("", "configmaps", "kube-system", NAME);
    let data = json!({
        "client-ca-file": authority.client_ca(),
        "requestheader-client-ca-file": hub.keys().own().front_proxy.cert_pem(),
        "requestheader-allowed-names": json!([FRONT_PROXY]).to_string(),
        "requestheader-username-headers": json!(["X-Remote-User"]).to_string(),
        "requestheader-uid-headers": json!(["X-Remote-Uid"]).to_string(),
        "requestheader-group-headers": json!(["X-Remote-Group"]).to_string(),
        "requestheader-extra-headers-prefix": json!(["X-Remote-Extra-"]).to_string(),
    });
    let (mut map, expect) = match hub.read(instance, key.as_str()).await? {
        Some(entry) => (entry.object.tree(entry.modified), Expect::At(entry.modified)),
        None => (fresh(hub), Expect::Absent),
    };
    if map["data"] == data {
        return Ok(());
    }
    map["data"] = data;
    let object = Arc::new(Object::encode(&map).map_err(Status::internal)?);
    match hub.engine.commit(instance.id, vec![Write { key, expect, op: Op::Put(object) }]).await {
        // Another replica was faster; it writes the same.
        Ok(_) | Err(StoreError::Conflict { .. }) => Ok(()),
        Err(error) => Err(store_status(&error)),
    }
}

fn fresh(hub: &Hub) -> Value {
    json!({
        "kind": "ConfigMap", "apiVersion": "v1",
        "metadata": {"name": NAME, "namespace": "kube-system", "uid": uuid::Uuid::new_v4().to_string(),
                     "creationTimestamp": atoll_meta::time::format(hub.now())},
    })
}
