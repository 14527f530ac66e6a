//! Keeps what the hub remembers about instances true when another replica changes them.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use atoll_meta::InstanceId;
use atoll_store::{Feed, FeedItem};
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tracing::warn;

use crate::hub::Hub;
use crate::instance::Instance;

/// How many changes are looked at together.
const BATCH: usize = 1024;

/// What a number of changes asks for.
#[derive(Default)]
struct Due {
    roles: BTreeSet<InstanceId>,
    definitions: BTreeSet<InstanceId>,
    secrets: BTreeSet<String>,
    all_secrets: bool,
    created: Vec<(InstanceId, Arc<str>)>,
    dropped: Vec<(InstanceId, Arc<str>)>,
}

impl Due {
    fn add(&mut self, item: FeedItem) {
        match item {
            FeedItem::Created(id, name) => self.created.push((id, name)),
            FeedItem::Dropped(id, name) => self.dropped.push((id, name)),
            FeedItem::Changed(id, event) => match event.key.resource() {
                "secrets." if id == InstanceId::ROOT => {
                    let own = format!("secrets./{}/", crate::auth::NAMESPACE);
                    self.secrets.extend(event.key.as_str().strip_prefix(&own).map(ToOwned::to_owned));
                }
                "customresourcedefinitions.apiextensions.k8s.io" => drop(self.definitions.insert(id)),
                other if other.ends_with(".rbac.authorization.k8s.io") => drop(self.roles.insert(id)),
                _ => {}
            },
        }
    }
}

/// Follows the changes of all instances until the hub is gone or shut down.
pub fn follow(hub: &Arc<Hub>, mut feed: Feed) {
    let shutdown = hub.shutdown.clone();
    let hub = Arc::downgrade(hub);
    tokio::spawn(async move {
        loop {
            let first = tokio::select! {
                () = shutdown.cancelled() => return,
                first = feed.recv() => first,
            };
            if !apply(&hub, &mut feed, first).await {
                return;
            }
        }
    });
}

/// `false` when there is nobody left to follow for.
async fn apply(hub: &Weak<Hub>, feed: &mut Feed, first: Result<FeedItem, RecvError>) -> bool {
    let mut due = Due::default();
    let mut lost = match first {
        Ok(item) => {
            due.add(item);
            false
        }
        Err(RecvError::Lagged(_)) => true,
        Err(RecvError::Closed) => return false,
    };
    for _ in 0..BATCH {
        match feed.try_recv() {
            Ok(item) => due.add(item),
            Err(TryRecvError::Lagged(_)) => lost = true,
            Err(TryRecvError::Empty | TryRecvError::Closed) => break,
        }
    }
    let Some(hub) = hub.upgrade() else { return false };
    if lost {
        due = everything(&hub);
    }
    for (id, name) in due.dropped {
        hub.forget_instance(id, &name);
    }
    for (id, name) in due.created {
        hub.adopt(id, name).await;
    }
    if due.all_secrets {
        hub.keys.forget_all();
    }
    if let Err(status) = hub.secrets_changed(&due.secrets, due.all_secrets).await {
        warn!(error = %status, "the hub's tokens could not be read");
    }
    for id in due.roles {
        if let Some(instance) = hub.instance_by_id(id) {
            instance.roles.invalidate();
        }
    }
    for id in due.definitions {
        if let Some(instance) = hub.instance_by_id(id) {
            reload(&hub, &instance).await;
        }
    }
    true
}

/// What must be looked at again when changes were missed.
fn everything(hub: &Hub) -> Due {
    let known: BTreeSet<InstanceId> = hub.instances().iter().map(|instance| instance.id).collect();
    let there = hub.engine.instances();
    let ids: BTreeSet<InstanceId> = there.iter().map(|(id, _)| *id).collect();
    let dropped = hub
        .instances()
        .iter()
        .filter(|instance| !ids.contains(&instance.id))
        .map(|gone| (gone.id, gone.name.clone()))
        .collect();
    let created = there.into_iter().filter(|(id, _)| !known.contains(id)).collect();
    Due { roles: ids.clone(), definitions: ids, secrets: BTreeSet::new(), all_secrets: true, created, dropped }
}

async fn reload(hub: &Hub, instance: &Instance) {
    match hub.snapshot(instance).await {
        Ok(snapshot) => {
            // Changes made here were taken in before their writer got an answer.
            if instance.definitions.lock().fingerprint != crate::crd::fingerprint(&snapshot) {
                crate::crd::reload(hub, instance, &snapshot);
            }
        }
        // Dropped meanwhile, or the store is away; then requests fail too.
        Err(status) => warn!(instance = %instance.name, error = %status, "definitions could not be read"),
    }
}
