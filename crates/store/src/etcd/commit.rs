//! A transaction as etcd understands it.

use std::sync::Arc;

use atoll_meta::{InstanceId, Object, Revision};
use bytes::Bytes;
use prost::Message as _;

use super::shared::Shared;
use super::wire::proto::last_states::LastState;
use super::wire::proto::{KeyValue, LastStates, RequestOp, TxnRequest};
use super::wire::{delete, found, is_absent, is_at, is_present, malformed, put, read};
use crate::mvcc::effective;
use crate::{Entry, Expect, Op, StoreError, Write};

/// What an etcd server accepts in one transaction unless told otherwise, less what we add.
const MAX_WRITES: usize = 126;

/// Commits, and returns when the copy shows it.
pub(super) async fn commit(shared: &Shared, id: InstanceId, writes: &[Write]) -> Result<Revision, StoreError> {
    if writes.len() > MAX_WRITES {
        let why = format!("{} writes are more than the {MAX_WRITES} that etcd takes at once", writes.len());
        return Err(StoreError::Unavailable(why));
    }
    let response = shared.wire.txn(request(shared, id, writes)).await?;
    let header = response.header.ok_or_else(malformed)?;
    if response.succeeded {
        let revision = Revision(header.revision.cast_unsigned());
        shared.shows(revision).await?;
        return Ok(revision);
    }
    Err(refusal(writes, found(response)))
}

fn request(shared: &Shared, id: InstanceId, writes: &[Write]) -> TxnRequest {
    let keys = &shared.keys;
    let alive = keys.instance(id);
    let mut compare = vec![is_present(alive.clone())];
    let mut failure = vec![read(alive)];
    for write in writes {
        let key = keys.object(id, &write.key);
        match write.expect {
            Expect::Absent => compare.push(is_absent(key.clone())),
            Expect::At(revision) => compare.push(is_at(key.clone(), revision.0.cast_signed())),
            Expect::Any => {}
        }
        failure.push(read(key));
    }
    let effective = effective(writes);
    let mut success: Vec<RequestOp> = Vec::new();
    let mut last = LastStates::default();
    for (_, write) in writes.iter().enumerate().filter(|(index, _)| effective(*index)) {
        let key = keys.object(id, &write.key);
        match &write.op {
            Op::Check => {}
            Op::Put(object) => success.push(put(key, object.body.clone())),
            Op::Delete(state) => {
                success.push(delete(key));
                let state =
                    state.iter().map(|object| LastState { key: write.key.to_string(), body: object.body.clone() });
                last.states.extend(state);
            }
        }
    }
    if !last.states.is_empty() {
        success.push(put(keys.last(id), last.encode_to_vec()));
    }
    TxnRequest { compare, success, failure }
}

/// Finds out which expectation failed. All were read at the same moment they were compared.
fn refusal(writes: &[Write], found: Vec<Option<KeyValue>>) -> StoreError {
    let mut found = found.into_iter();
    if found.next().flatten().is_none() {
        return StoreError::NoInstance;
    }
    for (index, (write, found)) in writes.iter().zip(found).enumerate() {
        let met = match write.expect {
            Expect::Any => true,
            Expect::Absent => found.is_none(),
            Expect::At(revision) => found.as_ref().is_some_and(|kv| kv.mod_revision.cast_unsigned() == revision.0),
        };
        if !met {
            return match found.map(entry).transpose() {
                Ok(current) => StoreError::Conflict { index, current },
                Err(why) => StoreError::Unavailable(why),
            };
        }
    }
    malformed()
}

/// An entry from what etcd holds.
pub(super) fn entry(kv: KeyValue) -> Result<Entry, String> {
    Ok(Entry {
        object: decode(&kv.key, kv.value)?,
        modified: Revision(kv.mod_revision.cast_unsigned()),
        created: Revision(kv.create_revision.cast_unsigned()),
    })
}

/// An object from its bytes in etcd.
pub(super) fn decode(key: &[u8], body: Bytes) -> Result<Arc<Object>, String> {
    let object = Object::decode(body);
    object.map(Arc::new).map_err(|error| format!("{} in etcd is unreadable: {error}", String::from_utf8_lossy(key)))
}
