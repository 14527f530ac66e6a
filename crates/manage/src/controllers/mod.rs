//! What runs without being asked: following instances and members, statistics, grants, states.

mod authority;
mod external;
mod follow;
mod grant;
mod import;
mod pedia;
mod registry;
mod statistics;
mod whole;

use std::sync::Arc;
use std::time::Duration;

use atoll_fleet::MemberResolver;
use atoll_meta::Status;
use atoll_runtime::{Leadership, lead};
use tokio_util::sync::CancellationToken;

use crate::access::objects::definitions;
use crate::context::Core;
use crate::manage::Manage;
use crate::rules::Rules;

/// How long a silent leader is respected.
const LEASE: Duration = Duration::from_secs(15);

/// Serves the kinds of access control in `root` and starts all controllers; they end with `stop`.
/// Every process follows instances into its own index; the rest is done by one of them.
pub async fn start(manage: &Manage, members: Arc<dyn MemberResolver>, stop: CancellationToken) -> Result<(), Status> {
    let core = manage.core().clone();
    core.hub.add_native(|instance| &*instance.name == "root", definitions()).await?;
    core.hub.add_native(|instance| &*instance.name == "root", atoll_api::crds(atoll_api::CrdSet::Clusterpedia)).await?;
    core.hub.keys().add_authenticator(Arc::new(manage.clone()));
    let rules = Rules::start(&core);
    let ended = stop.clone();
    tokio::spawn(async move {
        ended.cancelled().await;
        drop(rules);
    });
    let _ = core.members.set(members.clone());
    tokio::spawn(core.epoch.clone().run(core.clone(), stop.clone()));
    tokio::spawn(pedia::run(core.clone(), stop.clone()));
    tokio::spawn(follow::run(core.clone(), members, stop.clone()));
    let leadership = Leadership {
        namespace: "kube-system".into(),
        name: "atoll-manage".into(),
        identity: uuid::Uuid::new_v4().to_string(),
        duration: LEASE,
    };
    let endpoint = core.own_endpoint("root");
    tokio::spawn(async move {
        lead(endpoint, leadership, stop, |lost| lead_work(core.clone(), lost)).await;
    });
    Ok(())
}

async fn lead_work(core: Arc<Core>, stop: CancellationToken) {
    tokio::join!(
        statistics::run(core.clone(), stop.clone()),
        grant::run(core.clone(), stop.clone()),
        authority::run(core.clone(), stop.clone()),
        import::run(core.clone(), stop.clone()),
        registry::run(core.clone(), stop.clone()),
        external::run(core, stop)
    );
}
