//! Virtual clusters: every instance and every member is followed into the index, and leaves it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use atoll_apiserver::Identity;
use atoll_fleet::MemberResolver;
use atoll_index::{Resources, Source};
use atoll_meta::{Gvr, InstanceId, Status};
use atoll_runtime::{Change, Endpoint, Informer, Queue, Selection, work};
use atoll_store::{Feed, FeedItem};
use serde_json::Value;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use super::whole::GATHER;
use crate::context::Core;
use crate::kinds::{CLUSTER, INSTANCE};

/// Marks instances that play a member; they are followed as that member.
const SIMULATED: &str = "sim.atoll.io/nodes";
/// How soon an instance that could not be reached is tried again.
const SOON: Duration = Duration::from_secs(2);

/// What runs for one instance.
struct Followed {
    /// What the way there was made of.
    print: String,
    stop: CancellationToken,
}

type All = HashMap<String, Followed>;

/// Follows all instances until `stop`.
pub async fn run(core: Arc<Core>, members: Arc<dyn MemberResolver>, stop: CancellationToken) {
    // From before anything is compared, so that no change is missed.
    let (mut roster, mut feed) = (core.hub.roster(), core.hub.engine().feed());
    let mut followed = All::new();
    loop {
        let complete = match compare(&core, &members, &mut followed, &stop).await {
            Ok(complete) => complete,
            Err(status) => {
                tracing::debug!(%status, "instances could not be read");
                false
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            _ = roster.changed() => {}
            () = changed(&mut feed) => {}
            () = tokio::time::sleep(SOON), if !complete => {}
        }
        tokio::time::sleep(GATHER).await;
    }
}

/// Waits until an instance, or a Secret that may lead to one, has changed.
async fn changed(feed: &mut Feed) {
    loop {
        match feed.recv().await {
            Ok(FeedItem::Changed(InstanceId::ROOT, event))
                if matches!(event.key.resource(), "instances.atoll.io" | "secrets.") =>
            {
                return;
            }
            Err(RecvError::Lagged(_)) => return,
            Err(RecvError::Closed) => std::future::pending().await,
            Ok(_) => {}
        }
    }
}

/// Begins and ends to follow; `false` when an instance cannot be reached yet.
async fn compare(
    core: &Arc<Core>,
    members: &Arc<dyn MemberResolver>,
    followed: &mut All,
    stop: &CancellationToken,
) -> Result<bool, Status> {
    let names = wanted(core).await?;
    for name in followed.keys().filter(|name| !names.contains(name)).cloned().collect::<Vec<_>>() {
        if let Some(old) = followed.remove(&name) {
            old.stop.cancel();
        }
        forget(core, &name).await;
    }
    let mut complete = true;
    for name in names {
        let Ok((endpoint, print)) = way(core, &name).await else {
            complete = false;
            continue;
        };
        if followed.get(&name).is_some_and(|known| known.print == print) {
            continue;
        }
        let token = stop.child_token();
        let source = Source { name: name.clone(), endpoint: endpoint.clone(), hidden: true };
        core.index.follow(source, Resources::All);
        tokio::spawn(follow_members(core.clone(), name.clone(), endpoint, members.clone(), token.clone()));
        // Other credentials: whoever used those before ends.
        if let Some(old) = followed.insert(name, Followed { print, stop: token }) {
            old.stop.cancel();
        }
    }
    Ok(complete)
}

/// Instances that are to be found: those of this hub, and external ones.
async fn wanted(core: &Core) -> Result<Vec<String>, Status> {
    let objects = core.own_endpoint("root").list(&INSTANCE.gvr(), None, "").await?.items;
    let marked = |object: &Value| {
        ["labels", "annotations"].iter().any(|part| object["metadata"][*part].get(SIMULATED).is_some())
    };
    let simulated: Vec<&str> = objects
        .iter()
        .filter(|object| marked(object))
        .filter_map(|object| object["metadata"]["name"].as_str())
        .collect();
    let hosted = core
        .hub
        .instances()
        .into_iter()
        .map(|instance| instance.name.to_string())
        .filter(|name| name != "root" && !simulated.contains(&name.as_str()));
    let external = objects
        .iter()
        .filter(|object| object["spec"]["type"] == "External")
        .filter_map(|object| object["metadata"]["name"].as_str().map(ToOwned::to_owned));
    Ok(hosted.chain(external).collect())
}

/// The way to an instance, and what it is made of.
async fn way(core: &Core, name: &str) -> Result<(Endpoint, String), Status> {
    if let Some(instance) = core.hub.instance(name) {
        return Ok((core.own_endpoint(name), format!("{:?}", instance.id)));
    }
    let print = core.externals.print(core, name).await?;
    let own = Identity::master("system:atoll:manage");
    let endpoint = core.externals.endpoint(core, name, &own).await?;
    endpoint.map(|endpoint| (endpoint, print)).ok_or_else(|| Status::not_found("atoll.io", "instances", name))
}

/// Takes an instance and its members out of the index.
async fn forget(core: &Core, instance: &str) {
    let prefix = format!("{instance}/");
    for source in core.index.known_sources() {
        if source == instance || source.starts_with(&prefix) {
            core.index.unfollow(&source).await;
        }
    }
}

/// Follows the members of an instance until `stop`.
async fn follow_members(
    core: Arc<Core>,
    instance: String,
    endpoint: Endpoint,
    members: Arc<dyn MemberResolver>,
    stop: CancellationToken,
) {
    let queue: Queue<String> = Queue::default();
    let keys = queue.clone();
    let informer = Informer::start(endpoint.clone(), CLUSTER.gvr(), Selection::default(), move |change: Change| {
        keys.add(change.item().object.head.name.to_string());
    });
    let known: Arc<parking_lot::Mutex<HashMap<String, Value>>> = Arc::default();
    let cache = informer.cache.clone();
    work(queue, 4, stop, move |name: String| {
        let (core, instance, endpoint, members) = (core.clone(), instance.clone(), endpoint.clone(), members.clone());
        let (cache, known) = (cache.clone(), known.clone());
        async move {
            let source = format!("{instance}/{name}");
            let Some(item) = cache.get("", &name) else {
                known.lock().remove(&name);
                core.index.unfollow(&source).await;
                return Ok::<_, Status>(None);
            };
            let cluster = item.tree();
            // Only what leads to the member: its status changes all the time.
            let spec = &cluster["spec"];
            let secret = match (spec["secretRef"]["namespace"].as_str(), spec["secretRef"]["name"].as_str()) {
                (Some(namespace), Some(secret)) => {
                    endpoint.get_opt(&Gvr::new("", "v1", "secrets"), Some(namespace), secret).await?
                }
                _ => None,
            };
            let revision = secret.as_ref().map(|secret| secret["metadata"]["resourceVersion"].clone());
            let flags = [&spec["proxyURL"], &spec["insecureSkipTLSVerification"], &cluster["metadata"]["uid"]];
            let print = serde_json::json!([spec["apiEndpoint"], spec["secretRef"], flags, revision]);
            if known.lock().get(&name) == Some(&print) {
                return Ok(None);
            }
            let member = members.resolve(&cluster, secret.as_ref()).await?;
            core.index.follow(Source { name: source, endpoint: member, hidden: false }, Resources::All);
            known.lock().insert(name, print);
            Ok(None)
        }
    })
    .await;
    drop(informer);
}
