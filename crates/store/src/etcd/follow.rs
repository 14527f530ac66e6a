//! The one watch that keeps the copy up to date.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use atoll_meta::{InstanceId, Key, Object, Revision};
use futures::StreamExt as _;
use futures::channel::mpsc;
use prost::Message as _;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};

use super::commit::{decode, entry};
use super::keys::Place;
use super::listing::Listing;
use super::registry::purge;
use super::shared::{Shared, newest};
use super::wire::proto::event::EventType;
use super::wire::proto::watch_request::RequestUnion;
use super::wire::proto::{Event, LastStates, WatchCreateRequest, WatchProgressRequest, WatchRequest, WatchResponse};
use super::wire::unavailable;
use crate::StoreError;
use crate::mvcc::{Change, Instance};

/// Pause before the first and the later attempts to connect again.
const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(500)];

/// Why the watch ended.
enum End {
    /// The next revision was compacted away; everything must be read again.
    Compacted,
    /// The connection, or etcd, is gone.
    Lost(String),
}

impl From<StoreError> for End {
    fn from(error: StoreError) -> Self {
        Self::Lost(error.to_string())
    }
}

/// Reads everything for the first time; returns the identity of the etcd cluster.
pub(super) async fn load(shared: &Arc<Shared>) -> Result<u64, StoreError> {
    let listing = Listing::read(shared).await?;
    for grave in listing.graves() {
        let shared = shared.clone();
        tokio::spawn(async move { purge(&shared, grave).await });
    }
    let cluster = listing.cluster;
    listing.apply(shared);
    Ok(cluster)
}

/// Keeps the copy up to date until the engine ends.
pub(super) async fn follow(shared: Arc<Shared>, cluster: u64) {
    let mut failures = 0;
    loop {
        let end = match follow_once(&shared, cluster, &mut failures).await {
            Err(End::Compacted) => {
                tracing::warn!("etcd has compacted what this replica had not seen yet; reading everything again");
                match Listing::read(&shared).await {
                    Ok(listing) => {
                        listing.apply(&shared);
                        continue;
                    }
                    Err(error) => error.to_string(),
                }
            }
            Err(End::Lost(why)) => why,
            Ok(()) => "the watch ended".into(),
        };
        if failures == 0 {
            tracing::warn!(why = %end, "lost etcd; trying again until it is back");
        }
        *shared.health.lock() = Some(end);
        sleep(PAUSES[usize::from(failures > 0)]).await;
        failures += 1;
    }
}

async fn follow_once(shared: &Arc<Shared>, cluster: u64, failures: &mut u32) -> Result<(), End> {
    let seen = shared.core.horizon();
    let now = newest(shared).await?;
    if now.cluster_id != cluster || now.revision.cast_unsigned() < seen.0 {
        let why = "this is not the etcd whose data is served here, or it was set back; restart this program";
        return Err(End::Lost(why.into()));
    }
    let (requests, stream) = mpsc::unbounded();
    let ask = |union| requests.unbounded_send(WatchRequest { request_union: Some(union) });
    let (key, range_end) = shared.keys.all();
    let start_revision = seen.next().0.cast_signed();
    let create = WatchCreateRequest { key, range_end, start_revision };
    // The receiving end is still here.
    let _ = ask(RequestUnion::CreateRequest(create));
    let response = shared.wire.watch().watch(stream).await.map_err(|status| unavailable(&status))?;
    let mut responses = response.into_inner();

    let age = shared.core.options().retention.age.max(Duration::from_secs(1));
    let mut compaction = interval_at(Instant::now() + age, age);
    compaction.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut old = seen;
    loop {
        tokio::select! {
            response = responses.next() => {
                let Some(response) = response else { return Ok(()) };
                take(shared, response.map_err(|status| unavailable(&status))?)?;
                if std::mem::take(failures) > 0 {
                    tracing::info!("etcd is back");
                }
                if shared.health.lock().take().is_some() {
                    shared.ask_progress.notify_one();
                }
            }
            () = shared.ask_progress.notified() => {
                let _ = ask(RequestUnion::ProgressRequest(WatchProgressRequest {}));
            }
            _ = compaction.tick() => {
                // Replicas need no history beyond a reconnection; another may have done it already.
                if let Err(error) = shared.wire.compact(old.0.cast_signed()).await {
                    tracing::debug!(%error, "etcd was not compacted");
                }
                old = shared.core.horizon();
            }
        }
    }
}

fn take(shared: &Shared, response: WatchResponse) -> Result<(), End> {
    if response.canceled {
        return Err(if response.compact_revision > 0 { End::Compacted } else { End::Lost(response.cancel_reason) });
    }
    if response.created {
        return Ok(());
    }
    // With events the header may be ahead of what has been sent; without, it tells the progress.
    let upto = match response.events.last().and_then(|event| event.kv.as_ref()) {
        Some(kv) => kv.mod_revision,
        None => response.header.map_or(0, |header| header.revision),
    };
    let revision = |event: &Event| event.kv.as_ref().map_or(0, |kv| kv.mod_revision);
    for events in response.events.chunk_by(|a, b| revision(a) == revision(b)) {
        apply(shared, Revision(revision(&events[0]).cast_unsigned()), events);
    }
    shared.applied(Revision(upto.cast_unsigned()));
    shared.core.tick_sometimes();
    Ok(())
}

/// Applies one etcd transaction.
fn apply(shared: &Shared, revision: Revision, events: &[Event]) {
    let mut changes: BTreeMap<InstanceId, Vec<Change>> = BTreeMap::new();
    let mut lasts: HashMap<(InstanceId, Key), Arc<Object>> = HashMap::new();
    let mut gone = Vec::new();
    for event in events {
        let Some(kv) = &event.kv else { continue };
        let deleted = event.r#type() == EventType::Delete;
        match shared.keys.place(&kv.key) {
            Place::Instance(id) if deleted => gone.push(id),
            Place::Instance(id) => {
                let name = String::from_utf8_lossy(&kv.value).into();
                // Fails when it is known already, which is as good.
                drop(shared.core.add(Instance::empty(id, name, revision, shared.core.horizon_cell())));
            }
            Place::Object(id, key) if deleted => {
                changes.entry(id).or_default().push(Change { key, current: None, last: None });
            }
            Place::Object(id, key) => match entry(kv.clone()) {
                Ok(entry) => changes.entry(id).or_default().push(Change { key, current: Some(entry), last: None }),
                Err(why) => tracing::error!("{why}; it was not written by this program and is left out"),
            },
            Place::Last(id) if !deleted => lasts.extend(last_states(id, kv.value.clone())),
            Place::Last(_) | Place::Other => {}
        }
    }
    for (id, mut changes) in changes {
        let Ok(instance) = shared.core.instance(id) else { continue };
        for change in changes.iter_mut().filter(|change| change.current.is_none()) {
            change.last = lasts.remove(&(id, change.key.clone()));
        }
        // Removing what the copy never had is no event.
        changes.retain(|change| change.current.is_some() || matches!(instance.get(change.key.as_str()), Ok(Some(_))));
        if !changes.is_empty() {
            instance.publish(revision, changes, &shared.core.sinks());
        }
    }
    for id in gone {
        drop(shared.core.remove(id));
    }
}

fn last_states(id: InstanceId, value: bytes::Bytes) -> Vec<((InstanceId, Key), Arc<Object>)> {
    let states = LastStates::decode(value).unwrap_or_default().states.into_iter();
    let decoded = states.filter_map(|state| {
        let object = decode(state.key.as_bytes(), state.body).ok()?;
        Some(((id, Key::from_text(&state.key)), object))
    });
    decoded.collect()
}
