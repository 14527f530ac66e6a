//! The scheduler: which node takes a pod. Filters and scores are pure; the loop writes bindings.

mod affinity;
mod filter;
mod message;
mod preemption;
mod score;
mod spread;
mod want;

use std::sync::Arc;

use atoll_meta::Status;
use futures::{FutureExt as _, StreamExt as _};
use http::Method;
use serde_json::json;

pub use affinity::matches_node_affinity;
pub use filter::{Verdict, tolerates};
use message::Attempt;
use preemption::{Budget, Room, Seeker};
pub use want::{Toleration, Want};

use crate::book::Book;
use crate::condition::{self, Says, Stamps};
use crate::controllers::Again;
use crate::kind::Kind;
use crate::node::Node;
use crate::pod::Pod;
use crate::teller::{self, Teller};
use crate::world::{Task, World};
use crate::{time, write};

/// Most decisions made before others get a turn.
const BATCH: usize = 256;
/// How many bindings are written at once.
const WIDTH: usize = 32;

/// What came of looking for a node.
#[derive(Debug, PartialEq)]
pub enum Decision {
    /// This one.
    Node(String),
    /// None, and what each node said.
    None(Vec<Verdict>),
}

/// Looks for the best node for a pod.
pub fn decide(
    want: &Want,
    pod: &Pod,
    nodes: &[Arc<Node>],
    book: &Book,
    namespaces: &dyn Fn(&atoll_meta::selector::LabelSelector) -> Vec<String>,
) -> Decision {
    let view = filter::View::new(want, pod, nodes, book, namespaces);
    let mut fitting: Vec<&Arc<Node>> = Vec::new();
    let mut refusals: Vec<Verdict> = Vec::new();
    for node in nodes {
        match view.judge(node) {
            Verdict::Fits => fitting.push(node),
            refusal => refusals.push(refusal),
        }
    }
    if fitting.is_empty() {
        return Decision::None(refusals);
    }
    let best = score::best(&view, &fitting);
    Decision::Node(best.map(|node| node.name().to_owned()).unwrap_or_default())
}

/// A pod that found no node: why, and whom it may push out.
struct Refusal {
    pod: Arc<Pod>,
    why: String,
    room: Option<Room>,
    /// Whether others are leaving for it already.
    waits: bool,
}

/// Finds nodes for the pods that wait.
pub async fn reconcile(world: &World) -> Again {
    let waiting = world.book.read().waiting();
    let more = waiting.len() > BATCH;
    let mut bindings = Vec::new();
    let mut refused = Vec::new();
    let nodes = world.book.read().nodes();
    for pod in waiting.into_iter().take(BATCH) {
        let key: Arc<str> = pod.item.key().into();
        let Some(want) = Want::of(&pod.item) else { continue };
        if let Some(why) = volumes_missing(world, &pod, &want) {
            world.book.write().park(&key);
            let why = message::before_nodes(nodes.len(), &why);
            refused.push(Refusal { pod, why, room: None, waits: false });
            continue;
        }
        let decision = decide(&want, &pod, &nodes, &world.book.read(), &|selector| namespaces(world, selector));
        match decision {
            Decision::Node(node) => {
                world.book.write().assume(&key, &node);
                bindings.push((key, pod, node));
            }
            Decision::None(refusals) => refused.push(give_up(world, &key, pod, &want, &nodes, &refusals)),
        }
    }
    let binding: Vec<_> = bindings.into_iter().map(|(key, pod, node)| bind(world, key, pod, node).boxed()).collect();
    futures::stream::iter(binding).buffer_unordered(WIDTH).for_each(|()| std::future::ready(())).await;
    let telling: Vec<_> = refused.iter().map(|refusal| refuse(world, refusal).boxed()).collect();
    futures::stream::iter(telling).buffer_unordered(WIDTH).for_each(|()| std::future::ready(())).await;
    if more {
        world.add(Task::Schedule, "");
    }
    Ok(None)
}

/// Puts a pod aside that no node takes, and looks for pods that could leave for it.
fn give_up(
    world: &World,
    key: &Arc<str>,
    pod: Arc<Pod>,
    want: &Want,
    nodes: &[Arc<Node>],
    refusals: &[Verdict],
) -> Refusal {
    let budgets: Vec<Budget> = world.cache(Kind::PodDisruptionBudget).list().iter().filter_map(Budget::of).collect();
    let find = |selector: &atoll_meta::selector::LabelSelector| namespaces(world, selector);
    let seeker = Seeker { want, pod: &pod, nodes, namespaces: &find, budgets: &budgets };
    let mut book = world.book.write();
    let (room, attempt) = match seeker.search(&mut book, refusals) {
        Ok(room) => (Some(room), Attempt::Succeeded),
        Err(attempt) => (None, attempt),
    };
    let waits = attempt == Attempt::UnderWay;
    if !waits {
        book.nominate(key, room.as_ref().map_or("", |room| &room.node));
    }
    book.park(key);
    drop(book);
    let why = message::unschedulable(nodes.len(), refusals, &attempt);
    Refusal { pod, why, room, waits }
}

fn namespaces(world: &World, selector: &atoll_meta::selector::LabelSelector) -> Vec<String> {
    let all = world.cache(Kind::Namespace).list();
    all.iter()
        .filter(|item| selector.matches_head(&item.object.head))
        .map(|item| item.object.head.name.to_string())
        .collect()
}

/// Why the pod's volumes keep it from being scheduled, if they do.
fn volumes_missing(world: &World, pod: &Pod, want: &Want) -> Option<String> {
    let claims = world.cache(Kind::PersistentVolumeClaim);
    for claim in want.claims(pod.name()) {
        let Some(item) = claims.get(&pod.head().namespace, &claim) else {
            return Some(format!("persistentvolumeclaim {claim:?} not found"));
        };
        if item.object.head.deleting {
            return Some(format!("persistentvolumeclaim {claim:?} is being deleted"));
        }
        if item.tree()["status"]["phase"] != "Bound" {
            return Some("pod has unbound immediate PersistentVolumeClaims".into());
        }
    }
    None
}

async fn bind(world: &World, key: Arc<str>, pod: Arc<Pod>, node: String) {
    let head = pod.head();
    let body = json!({
        "kind": "Binding", "apiVersion": "v1", "metadata": {"name": head.name, "namespace": head.namespace, "uid": head.uid},
        "target": {"kind": "Node", "apiVersion": "v1", "name": node},
    });
    let path = format!("{}/binding", Kind::Pod.gvr().path(Some(&head.namespace), Some(&head.name)));
    let bytes = serde_json::to_vec(&body).unwrap_or_default().into();
    match world.scheduler.send(Method::POST, &path, "application/json", bytes).await {
        Ok(_) => {
            if world.spec.verbose_events {
                let text = format!("Successfully assigned {}/{} to {node}", head.namespace, head.name);
                let about = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {
                    "name": head.name, "namespace": head.namespace, "uid": head.uid, "resourceVersion": &*pod.item.revision}});
                teller::tell(world, Teller::Scheduler, &about, "Normal", "Scheduled", &text).await;
            }
        }
        Err(status) => {
            tracing::debug!(instance = %world.name, pod = %key, %status, "binding failed");
            world.book.write().withdraw(&key);
            world.queue.add_after(crate::world::Work::new(Task::Schedule, ""), std::time::Duration::from_millis(200));
        }
    }
}

/// Says in the pod's status and in an event why no node takes it, and has others leave for it.
async fn refuse(world: &World, refusal: &Refusal) {
    let pod = &refusal.pod;
    let tree = pod.item.tree();
    let mut status = tree["status"].clone();
    let mut conditions = status["conditions"].take();
    let says = Says { kind: "PodScheduled", status: "False", reason: "Unschedulable", message: &refusal.why };
    let mut changed = condition::set(&mut conditions, says, Stamps::Probe, &time::text(world.now()));
    status["conditions"] = conditions;
    let node = match &refusal.room {
        Some(room) => room.node.as_str(),
        None if refusal.waits => &pod.nominated,
        None => "",
    };
    changed |= node != status["nominatedNodeName"].as_str().unwrap_or_default();
    if let Some(map) = status.as_object_mut() {
        map.remove("nominatedNodeName");
        if !node.is_empty() {
            map.insert("nominatedNodeName".into(), node.into());
        }
    }
    if changed {
        let result: Result<_, Status> = write::status(&world.scheduler, Kind::Pod, &tree, &status).await;
        if let Err(status) = result {
            tracing::debug!(instance = %world.name, pod = pod.name(), %status, "reason not recorded");
        }
        teller::tell(world, Teller::Scheduler, &tree, "Warning", "FailedScheduling", &refusal.why).await;
    }
    // Only now: whoever gets the news of the first one leaving knows for whom.
    if let Some(room) = &refusal.room {
        let leaving: Vec<_> = room.victims.iter().map(|victim| push_out(world, victim, pod, node).boxed()).collect();
        futures::stream::iter(leaving).buffer_unordered(WIDTH).for_each(|()| std::future::ready(())).await;
    }
}

/// Has a pod leave its node for a more important one.
async fn push_out(world: &World, victim: &Pod, winner: &Pod, node: &str) {
    let head = victim.head();
    if head.deleting {
        return;
    }
    let tree = victim.item.tree();
    let mut status = tree["status"].clone();
    let mut conditions = status["conditions"].take();
    let message = "default-scheduler: preempting to accommodate a higher priority pod";
    let says = Says { kind: "DisruptionTarget", status: "True", reason: "PreemptionByScheduler", message };
    condition::set(&mut conditions, says, Stamps::Transition, &time::text(world.now()));
    status["conditions"] = conditions;
    let key = (&*head.namespace, &*head.name);
    let result = match write::status(&world.scheduler, Kind::Pod, &tree, &status).await {
        Ok(_) => write::delete(&world.scheduler, Kind::Pod, key, &head.uid, None).await.map(drop),
        Err(status) => Err(status),
    };
    match result {
        Ok(()) => {
            let text = format!("Preempted by pod {} on node {node}", winner.head().uid);
            teller::tell(world, Teller::Scheduler, &tree, "Normal", "Preempted", &text).await;
        }
        Err(status) => {
            tracing::debug!(instance = %world.name, pod = victim.name(), %status, "not pushed out");
            world.queue.add_after(crate::world::Work::new(Task::Schedule, ""), std::time::Duration::from_millis(200));
        }
    }
}
