//! What is granted in `root` becomes authorisation in every instance.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use atoll_meta::Status;
use atoll_runtime::Queue;
use atoll_store::{Event, Feed, FeedItem};
use parking_lot::Mutex;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::whole::{self, GATHER};
use crate::access::grants::{self, Known};
use crate::access::objects::{ACCESS_ROLE, GRANT, WORKSPACE};
use crate::context::Core;

/// How often everything is compared when nothing says that it changed.
const LOOK_AGAIN: Duration = Duration::from_secs(600);
/// How soon after a failure.
const SOON: Duration = Duration::from_secs(2);

/// Namespaces that grants name; they may come later than the grants.
type Named = Arc<Mutex<HashSet<String>>>;

/// Keeps roles and bindings of all instances until `stop`.
pub async fn run(core: Arc<Core>, stop: CancellationToken) {
    let (queue, named) = (Queue::default(), Named::default());
    // From before anything is compared, so that no change is missed.
    let signals = (core.hub.roster(), core.hub.engine().feed());
    tokio::spawn(listen(signals, queue.clone(), named.clone(), stop.clone()));
    let compare = move |core| reconcile(core, named.clone());
    whole::run(&core, queue, &[&GRANT, &ACCESS_ROLE, &WORKSPACE], |_| true, stop, compare).await;
}

/// Asks for a comparison when an instance begins or ends to be served here, whoever made it, when a namespace
/// that a grant names comes to be, and when something that grants made is changed or taken away. What a comparison
/// writes leads to one more, which writes nothing.
async fn listen(
    (mut roster, mut feed): (watch::Receiver<u64>, Feed),
    queue: Queue<()>,
    named: Named,
    stop: CancellationToken,
) {
    loop {
        let due = tokio::select! {
            () = stop.cancelled() => return,
            known = roster.changed() => match known {
                Ok(()) => true,
                Err(_) => return,
            },
            item = feed.recv() => match item {
                Ok(FeedItem::Changed(_, event)) => matters(&event, &named),
                Ok(_) => false,
                Err(RecvError::Lagged(_)) => true,
                Err(RecvError::Closed) => return,
            },
        };
        if due {
            queue.add_after((), GATHER);
        }
    }
}

fn matters(event: &Event, named: &Named) -> bool {
    let name = event.key.as_str().rsplit('/').next().unwrap_or_default();
    if event.key.resource().ends_with(".rbac.authorization.k8s.io") {
        return name.starts_with("atoll:");
    }
    event.previous.is_none() && event.key.resource() == "namespaces." && named.lock().contains(name)
}

async fn reconcile(core: Arc<Core>, named: Named) -> Result<Option<Duration>, Status> {
    let root = core.own_endpoint("root");
    let known = Known {
        grants: root.list(&GRANT.gvr(), None, "").await?.items,
        roles: root.list(&ACCESS_ROLE.gvr(), None, "").await?.items,
        workspaces: root.list(&WORKSPACE.gvr(), None, "").await?.items,
        instances: core
            .hub
            .instances()
            .iter()
            .map(|instance| instance.name.to_string())
            .filter(|name| name != "root")
            .collect(),
    };
    let plan = grants::plan(&known);
    *named.lock() = plan.values().flat_map(|wanted| wanted.keys()).map(|(_, namespace, _)| namespace.clone()).collect();
    let mut failed = false;
    for (instance, wanted) in plan {
        if let Err(status) = grants::apply(&core.own_endpoint(&instance), wanted).await {
            tracing::debug!(instance, %status, "grants not complete");
            failed = true;
        }
    }
    Ok(Some(if failed { SOON } else { LOOK_AGAIN }))
}
