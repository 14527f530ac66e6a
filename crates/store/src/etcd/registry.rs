//! Instances come and go.

use std::time::Duration;

use atoll_meta::{InstanceId, Revision};
use bytes::Bytes;

use super::shared::Shared;
use super::wire::proto::{KeyValue, RangeRequest, TxnRequest, TxnResponse};
use super::wire::{delete, found, is_absent, is_at, is_present, malformed, put, read};
use crate::StoreError;
use crate::mvcc::ROOT;

/// Version of the layout in etcd.
const FORMAT: &str = "1";

/// How many entries of a dropped instance are deleted at once.
const PURGE: i64 = 500;

/// Sets up an empty etcd, or makes sure that what is there is ours.
pub(super) async fn prepare(shared: &Shared) -> Result<(), StoreError> {
    let keys = &shared.keys;
    let root = InstanceId::ROOT;
    let request = TxnRequest {
        compare: vec![is_absent(keys.format())],
        success: vec![
            put(keys.format(), FORMAT),
            put(keys.next(), "1"),
            put(keys.name(ROOT), root.to_string()),
            put(keys.instance(root), ROOT),
        ],
        failure: vec![read(keys.format())],
    };
    let response = shared.wire.txn(request).await?;
    if response.succeeded {
        return Ok(());
    }
    let format = found(response).into_iter().next().flatten().ok_or_else(malformed)?.value;
    if format != FORMAT {
        let found = String::from_utf8_lossy(&format).into_owned();
        return Err(StoreError::Damaged(format!("etcd holds format {found:?}, this program reads format {FORMAT}")));
    }
    Ok(())
}

fn number(kv: &KeyValue) -> Result<u32, StoreError> {
    let number = std::str::from_utf8(&kv.value).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| StoreError::Damaged("the number of the next instance in etcd is unreadable".into()))
}

async fn done(shared: &Shared, response: &TxnResponse) -> Result<(), StoreError> {
    let revision = response.header.as_ref().ok_or_else(malformed)?.revision;
    shared.shows(Revision(revision.cast_unsigned())).await
}

/// Makes an instance.
pub(super) async fn create(shared: &Shared, name: &str) -> Result<InstanceId, StoreError> {
    let keys = &shared.keys;
    loop {
        let look = TxnRequest { success: vec![read(keys.next()), read(keys.name(name))], ..Default::default() };
        let mut seen = found(shared.wire.txn(look).await?).into_iter();
        let next = seen.next().flatten().ok_or_else(malformed)?;
        if seen.next().flatten().is_some() {
            return Err(StoreError::InstanceExists);
        }
        let id = InstanceId(number(&next)?);
        let request = TxnRequest {
            compare: vec![is_at(keys.next(), next.mod_revision), is_absent(keys.name(name))],
            success: vec![
                put(keys.next(), (id.0 + 1).to_string()),
                put(keys.name(name), id.to_string()),
                put(keys.instance(id), Bytes::copy_from_slice(name.as_bytes())),
            ],
            failure: vec![],
        };
        let response = shared.wire.txn(request).await?;
        if response.succeeded {
            done(shared, &response).await?;
            return Ok(id);
        }
        // Somebody else took the number or the name; look again.
    }
}

/// Ends an instance; its entries stay for [`purge`].
pub(super) async fn remove(shared: &Shared, id: InstanceId) -> Result<(), StoreError> {
    shared.sync().await?;
    let name = shared.core.instance(id)?.name.clone();
    let keys = &shared.keys;
    let request = TxnRequest {
        compare: vec![is_present(keys.instance(id))],
        success: vec![delete(keys.instance(id)), delete(keys.name(&name))],
        failure: vec![],
    };
    let response = shared.wire.txn(request).await?;
    if !response.succeeded {
        return Err(StoreError::NoInstance);
    }
    done(shared, &response).await
}

/// Deletes what a dropped instance left, some at a time. Whoever starts next does what is left undone.
pub(super) async fn purge(shared: &Shared, id: InstanceId) {
    loop {
        match purge_some(shared, id).await {
            Ok(true) => return,
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(%error, instance = %id, "cannot delete what a dropped instance left, trying again");
                tokio::time::sleep(Duration::from_secs(5)).await;
            }
        }
    }
}

async fn purge_some(shared: &Shared, id: InstanceId) -> Result<bool, StoreError> {
    let (key, range_end) = shared.keys.objects(id);
    let request = RangeRequest {
        key: key.clone(),
        range_end: range_end.clone(),
        limit: PURGE,
        keys_only: true,
        ..Default::default()
    };
    let response = shared.wire.range(request).await?;
    let Some(last) = response.kvs.last() else {
        shared.wire.delete(shared.keys.last(id), Bytes::new()).await?;
        return Ok(true);
    };
    let mut behind = last.key.to_vec();
    behind.push(0);
    shared.wire.delete(key, behind.into()).await?;
    Ok(false)
}
