//! What the hub must remember and nobody may read: Secrets in the `root` instance.
//!
//! Every replica reads the same Secret; whoever finds none makes it, and the store decides who was first.

use std::collections::BTreeMap;
use std::sync::Arc;

use atoll_meta::{InstanceId, Key, Object, Revision, Status};
use atoll_store::{Engine, Expect, Op, StoreError, Write};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::instance::store_status;

/// The namespace of `root` in which the hub keeps its own Secrets.
pub const NAMESPACE: &str = "atoll-system";

/// The decoded texts of a Secret.
pub type Fields = BTreeMap<String, String>;

/// The storage key of one of the hub's Secrets.
pub fn key(name: &str) -> Key {
    Key::new("", "secrets", NAMESPACE, name)
}

/// Reads a Secret of the hub.
pub async fn read(engine: &dyn Engine, name: &str) -> Result<Option<(Fields, Revision)>, Status> {
    let entry = engine.get(InstanceId::ROOT, key(name).as_str()).await.map_err(|error| store_status(&error))?;
    Ok(entry.map(|entry| (fields(&entry.object.tree(entry.modified)), entry.modified)))
}

/// Reads a Secret of the hub, or makes it when it is missing or no longer fits.
pub async fn keep(
    engine: &dyn Engine,
    name: &str,
    now: &str,
    fits: impl Fn(&Fields) -> bool,
    make: impl Fn() -> Result<Fields, Status>,
) -> Result<Fields, Status> {
    loop {
        let expect = match read(engine, name).await? {
            Some((fields, _)) if fits(&fields) => return Ok(fields),
            Some((_, revision)) => Expect::At(revision),
            None => Expect::Absent,
        };
        let fields = make()?;
        if put(engine, name, now, &fields, expect).await? {
            return Ok(fields);
        }
        // Another replica was faster: what it made counts. Ends because each round sees a newer state.
    }
}

/// Writes a Secret of the hub; `false` when the expectation failed.
pub async fn put(engine: &dyn Engine, name: &str, now: &str, fields: &Fields, expect: Expect) -> Result<bool, Status> {
    let object = Object::encode(&secret(name, now, fields)).map_err(Status::internal)?;
    let write = Write { key: key(name), expect, op: Op::Put(Arc::new(object)) };
    match engine.commit(InstanceId::ROOT, vec![write]).await {
        Ok(_) => Ok(true),
        Err(StoreError::Conflict { .. }) => Ok(false),
        Err(error) => Err(store_status(&error)),
    }
}

/// Removes a Secret of the hub.
pub async fn remove(engine: &dyn Engine, name: &str) -> Result<(), Status> {
    let write = Write { key: key(name), expect: Expect::Any, op: Op::Delete(None) };
    engine.commit(InstanceId::ROOT, vec![write]).await.map(drop).map_err(|error| store_status(&error))
}

/// The decoded texts in a Secret's data; what is not text is left out.
pub fn fields(secret: &Value) -> Fields {
    let data = secret["data"].as_object().into_iter().flatten();
    data.filter_map(|(name, value)| Some((name.clone(), text(value)?))).collect()
}

/// One value of a Secret's data as text.
pub fn text(value: &Value) -> Option<String> {
    String::from_utf8(STANDARD.decode(value.as_str()?).ok()?).ok()
}

fn secret(name: &str, now: &str, fields: &Fields) -> Value {
    let data: BTreeMap<&String, String> = fields.iter().map(|(name, text)| (name, STANDARD.encode(text))).collect();
    json!({
        "kind": "Secret", "apiVersion": "v1", "type": "atoll.io/hub",
        "metadata": {"name": name, "namespace": NAMESPACE, "creationTimestamp": now,
                     "uid": uuid::Uuid::new_v4().to_string()},
        "data": data,
    })
}
