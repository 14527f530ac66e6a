//! Virtual clusters: every instance and every member is followed into the index, and leaves it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use atoll_apiserver::Identity;
use atoll_fleet::MemberResolver;
use atoll_index::{Resources, Source};
use atoll_meta::{Gvr, Status};
use atoll_runtime::{Change, Endpoint, Informer, Queue, Selection, work};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::context::Core;
use crate::kinds::{CLUSTER, INSTANCE};

/// Marks instances that play a member; they are followed as that member.
const SIMULATED: &str = "sim.atoll.io/nodes";
/// How often instances are compared when nothing says that they changed.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// What runs for one instance.
struct Followed {
    stop: CancellationToken,
}

/// Follows all instances until `stop`.
pub async fn run(core: Arc<Core>, members: Arc<dyn MemberResolver>, stop: CancellationToken) {
    let mut followed: HashMap<String, Followed> = HashMap::new();
    loop {
        match wanted(&core).await {
            Ok(names) => {
                for name in followed.keys().filter(|name| !names.contains(name)).cloned().collect::<Vec<_>>() {
                    if let Some(old) = followed.remove(&name) {
                        old.stop.cancel();
                    }
                    forget(&core, &name).await;
                }
                for name in names {
                    if !followed.contains_key(&name)
                        && let Ok(endpoint) = way(&core, &name).await
                    {
                        let token = stop.child_token();
                        core.index.follow(
                            Source { name: name.clone(), endpoint: endpoint.clone(), hidden: true },
                            Resources::All,
                        );
                        tokio::spawn(follow_members(
                            core.clone(),
                            name.clone(),
                            endpoint,
                            members.clone(),
                            token.clone(),
                        ));
                        followed.insert(name, Followed { stop: token });
                    }
                }
            }
            Err(status) => tracing::debug!(%status, "instances could not be read"),
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(LOOK_AGAIN) => {}
        }
    }
}

/// Instances that are to be found: those of this hub, and external ones.
async fn wanted(core: &Core) -> Result<Vec<String>, Status> {
    let objects =
        core.own_endpoint("root").list(&INSTANCE.gvr(), None, "").await.map(|list| list.items).unwrap_or_default();
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

async fn way(core: &Core, name: &str) -> Result<Endpoint, Status> {
    if core.hub.instance(name).is_some() {
        return Ok(core.own_endpoint(name));
    }
    let own = Identity::master("system:atoll:manage");
    core.externals.endpoint(core, name, &own).await?.ok_or_else(|| Status::not_found("atoll.io", "instances", name))
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
