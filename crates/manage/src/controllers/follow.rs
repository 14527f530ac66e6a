//! Virtual clusters: every instance and every member is followed into the index, and leaves it.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use atoll_apiserver::Identity;
use atoll_fleet::MemberResolver;
use atoll_index::{Resources, Source};
use atoll_meta::{Gvr, InstanceId, Status};
use atoll_runtime::{Cache, Change, Endpoint, Informer, Queue, Selection, work};
use atoll_store::{Feed, FeedItem};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinHandle;
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
    /// What is at the other end; another one has other objects and other revisions.
    place: String,
    /// What the way there was made of.
    print: String,
    stop: CancellationToken,
    members: JoinHandle<()>,
}

impl Followed {
    /// Ends it, and waits until nobody follows members with its credentials any more.
    async fn end(self) {
        self.stop.cancel();
        let _ = self.members.await;
    }
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
            old.end().await;
        }
        forget(core, &name).await;
    }
    let mut complete = true;
    for name in names {
        let Ok((endpoint, place, print)) = way(core, &name).await else {
            complete = false;
            continue;
        };
        if followed.get(&name).is_some_and(|known| (&known.place, &known.print) == (&place, &print)) {
            continue;
        }
        if let Some(old) = followed.remove(&name) {
            let same = old.place == place;
            old.end().await;
            // With other credentials the same objects are followed on from where it was.
            if !same {
                forget(core, &name).await;
            }
        }
        let token = stop.child_token();
        let source = Source { name: name.clone(), endpoint: endpoint.clone(), hidden: true };
        core.index.follow(source, Resources::All);
        let members = Members { core: core.clone(), instance: name.clone(), endpoint, resolver: members.clone() };
        let members = tokio::spawn(members.follow(token.clone()));
        followed.insert(name, Followed { place, print, stop: token, members });
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

/// The way to an instance, what is there, and what the way is made of.
async fn way(core: &Core, name: &str) -> Result<(Endpoint, String, String), Status> {
    if let Some(instance) = core.hub.instance(name) {
        return Ok((core.own_endpoint(name), format!("{:?}", instance.id), String::new()));
    }
    let (server, print) = core.externals.print(core, name).await?;
    let own = Identity::master("system:atoll:manage");
    let endpoint = core.externals.endpoint(core, name, &own).await?;
    endpoint.map(|endpoint| (endpoint, server, print)).ok_or_else(|| Status::not_found("atoll.io", "instances", name))
}

/// Takes an instance and its members out of the index.
async fn forget(core: &Core, instance: &str) {
    core.index.unfollow(instance).await;
    for member in members_of(core, instance) {
        core.index.unfollow(&format!("{instance}/{member}")).await;
    }
}

/// Members of an instance that are followed, whether or not something is known of them, and those that are known.
fn members_of(core: &Core, instance: &str) -> BTreeSet<String> {
    let prefix = format!("{instance}/");
    let sources = core.index.known_sources().into_iter().chain(core.index.sources());
    sources.filter_map(|source| source.strip_prefix(&prefix).map(ToOwned::to_owned)).collect()
}

/// The members of an instance.
#[derive(Clone)]
struct Members {
    core: Arc<Core>,
    instance: String,
    endpoint: Endpoint,
    resolver: Arc<dyn MemberResolver>,
}

/// What the ways to members were made of.
type Ways = Arc<Mutex<HashMap<String, Value>>>;

impl Members {
    /// Follows them until `stop`.
    async fn follow(self, stop: CancellationToken) {
        let queue: Queue<String> = Queue::default();
        let keys = queue.clone();
        let informer =
            Informer::start(self.endpoint.clone(), CLUSTER.gvr(), Selection::default(), move |change: Change| {
                keys.add(change.item().object.head.name.to_string());
            });
        let (ways, cache, token) = (Ways::default(), informer.cache.clone(), stop.clone());
        let (core, instance, keys) = (self.core.clone(), self.instance.clone(), queue.clone());
        let work = work(queue, 4, stop.clone(), move |name: String| {
            let (own, ways, cache, token) = (self.clone(), ways.clone(), cache.clone(), token.clone());
            // Who ends this waits for it: a silent server must not hold that up.
            async move { token.run_until_cancelled(own.look(name, &cache, &ways)).await.unwrap_or(Ok(None)) }
        });
        let left = async {
            informer.synced().await;
            // Those that left while nobody followed.
            members_of(&core, &instance).into_iter().for_each(|name| keys.add(name));
        };
        tokio::join!(work, stop.run_until_cancelled(left));
    }

    /// Follows a member that is there, and forgets one that is not.
    async fn look(&self, name: String, cache: &Cache, ways: &Ways) -> Result<Option<Duration>, Status> {
        let source = format!("{}/{name}", self.instance);
        let Some(item) = cache.get("", &name) else {
            ways.lock().remove(&name);
            self.core.index.unfollow(&source).await;
            return Ok(None);
        };
        let cluster = item.tree();
        // Only what leads to the member: its status changes all the time.
        let spec = &cluster["spec"];
        let secret = match (spec["secretRef"]["namespace"].as_str(), spec["secretRef"]["name"].as_str()) {
            (Some(namespace), Some(secret)) => {
                self.endpoint.get_opt(&Gvr::new("", "v1", "secrets"), Some(namespace), secret).await?
            }
            _ => None,
        };
        let revision = secret.as_ref().map(|secret| secret["metadata"]["resourceVersion"].clone());
        let flags = [&spec["proxyURL"], &spec["insecureSkipTLSVerification"]];
        let place = [&spec["apiEndpoint"], &cluster["metadata"]["uid"]];
        let print = serde_json::json!({"place": place, "way": [spec["secretRef"], flags, revision]});
        let old = ways.lock().get(&name).cloned();
        if old.as_ref() == Some(&print) {
            return Ok(None);
        }
        let member = self.resolver.resolve(&cluster, secret.as_ref()).await?;
        // Another member under the same name has other objects and other revisions.
        if old.is_some_and(|old| old["place"] != print["place"]) {
            self.core.index.unfollow(&source).await;
        }
        self.core.index.follow(Source { name: source, endpoint: member, hidden: false }, Resources::All);
        ways.lock().insert(name, print);
        Ok(None)
    }
}
