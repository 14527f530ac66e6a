//! What is granted in `root` becomes authorisation in every instance.

use std::sync::Arc;
use std::time::Duration;

use atoll_meta::Status;
use tokio_util::sync::CancellationToken;

use super::whole;
use crate::access::grants::{self, Known};
use crate::access::objects::{ACCESS_ROLE, GRANT, WORKSPACE};
use crate::context::Core;
use crate::kinds::INSTANCE;

/// How often everything is compared when nothing says that it changed.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// Keeps roles and bindings of all instances until `stop`.
pub async fn run(core: Arc<Core>, stop: CancellationToken) {
    whole::run(&core, &[&GRANT, &ACCESS_ROLE, &WORKSPACE, &INSTANCE], |_| true, stop, reconcile).await;
}

async fn reconcile(core: Arc<Core>) -> Result<Option<Duration>, Status> {
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
    let mut failed = None;
    for (instance, wanted) in grants::plan(&known) {
        if let Err(status) = grants::apply(&core.own_endpoint(&instance), wanted).await {
            tracing::debug!(instance, %status, "grants not complete");
            failed = Some(status);
        }
    }
    // A namespace that a grant names may not be there yet: look again soon, without alarm.
    Ok(Some(if failed.is_some() { Duration::from_secs(2) } else { LOOK_AGAIN }))
}
