//! DaemonSets: one pod on every node that fits.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::revision::{self, LABEL};
use super::{Again, create_pods, delete_pods, parent, retry, write_status};
use crate::child::{claim_pods, pod_of, selector};
use crate::kind::Kind;
use crate::node::{Node, Taint};
use crate::pod::Pod;
use crate::scheduler::{Toleration, Want, matches_node_affinity, tolerates};
use crate::share::{self, Round};
use crate::time;
use crate::world::{Work, World};

/// Taints every pod of a DaemonSet puts up with: key and effect.
const TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

/// What is to be done for a DaemonSet.
#[derive(Debug, Default, PartialEq)]
pub struct Plan {
    /// Nodes that need a pod.
    pub create: Vec<String>,
    /// Names and uids of pods to delete.
    pub delete: Vec<(String, String)>,
    /// Its new status.
    pub status: Value,
    /// When to look again without an event.
    pub again: Option<Duration>,
}

/// Whether a node shall have a pod, and whether one that is there may stay.
fn wants(want: &Want, node: &Node) -> (bool, bool) {
    if !matches_node_affinity(want, node) {
        return (false, false);
    }
    let bad = |effects: &[&str]| {
        node.taints.iter().any(|taint| effects.contains(&taint.effect.as_str()) && !tolerates(&want.tolerations, taint))
    };
    let stays = !bad(&["NoExecute"]);
    (stays && !bad(&["NoSchedule"]), stays)
}

/// The node a pod of a DaemonSet is for, before and after it is bound.
fn node_of(pod: &Pod) -> String {
    if !pod.node.is_empty() {
        return pod.node.to_string();
    }
    let Some(want) = Want::of(&pod.item) else { return String::new() };
    let terms = want.affinity.node_affinity.required.into_iter().flat_map(|selector| selector.node_selector_terms);
    let fields = terms.flat_map(|term| term.match_fields);
    fields
        .into_iter()
        .find(|field| field.key == "metadata.name")
        .and_then(|field| field.values.into_iter().next())
        .unwrap_or_default()
}

/// Decides what a DaemonSet needs.
pub fn decide(set: &Value, nodes: &[Arc<Node>], pods: &[Arc<Pod>], hash: &str, now: Timestamp) -> Plan {
    let mut want = Want::of_template(&set["spec"]["template"]);
    want.tolerations.extend(TOLERATED.iter().map(|(key, effect)| Toleration {
        key: (*key).to_owned(),
        operator: "Exists".into(),
        effect: (*effect).to_owned(),
        ..Toleration::default()
    }));
    let mut on: BTreeMap<String, Vec<Arc<Pod>>> = BTreeMap::new();
    for pod in pods {
        on.entry(node_of(pod)).or_default().push(pod.clone());
    }
    for list in on.values_mut() {
        // The oldest one that lives stays.
        list.sort_by_key(|pod| (pod.head().deleting, pod.is_finished(), pod.created));
    }
    let mut plan = Plan::default();
    let mut wanted: Vec<&str> = Vec::new();
    for node in nodes {
        let (runs, stays) = wants(&want, node);
        let here = on.get(node.name()).map(Vec::as_slice).unwrap_or_default();
        if runs {
            wanted.push(node.name());
        }
        manage(node.name(), runs, stays, here, hash, set, now, &mut plan);
    }
    for (node, list) in &on {
        if !nodes.iter().any(|known| known.name() == node) {
            plan.delete.extend(list.iter().filter(|pod| !pod.head().deleting).map(doomed));
        }
    }
    roll(set, &wanted, &on, hash, now, &mut plan);
    plan.status = status(set, &wanted, &on, hash, now);
    plan.again = next_available(set, pods, now);
    if !set["metadata"]["deletionTimestamp"].is_null() {
        plan.create.clear();
        plan.delete.clear();
    }
    plan
}

fn doomed(pod: &Arc<Pod>) -> (String, String) {
    (pod.name().to_owned(), pod.head().uid.to_string())
}

/// One pod where there shall be one, none elsewhere.
#[allow(clippy::too_many_arguments, reason = "one node, taken apart")]
fn manage(
    node: &str,
    runs: bool,
    stays: bool,
    here: &[Arc<Pod>],
    hash: &str,
    set: &Value,
    now: Timestamp,
    plan: &mut Plan,
) {
    let live: Vec<&Arc<Pod>> = here.iter().filter(|pod| !pod.head().deleting).collect();
    if !stays {
        plan.delete.extend(live.into_iter().map(doomed));
        return;
    }
    let failed = live.iter().filter(|pod| pod.is_finished());
    plan.delete.extend(failed.map(|pod| doomed(pod)));
    let mut running: Vec<&&Arc<Pod>> = live.iter().filter(|pod| !pod.is_finished()).collect();
    if runs && running.is_empty() && here.iter().all(|pod| !pod.head().deleting) {
        plan.create.push(node.to_owned());
    }
    if running.len() > 1 && surge(set, 1) > 0 {
        // During a surge the new pod stands beside the old one until it is available.
        running.sort_by_key(|pod| !is_new(pod, hash));
        let new_stands = is_new(running[0], hash) && is_available(running[0], set, now);
        let keep = if new_stands { 1 } else { 2 };
        plan.delete.extend(running.iter().skip(keep).map(|pod| doomed(pod)));
    } else {
        plan.delete.extend(running.iter().skip(1).map(|pod| doomed(pod)));
    }
}

fn is_new(pod: &Pod, hash: &str) -> bool {
    pod.head().label(LABEL) == Some(hash)
}

fn is_available(pod: &Pod, set: &Value, now: Timestamp) -> bool {
    !pod.head().deleting && pod.is_available(set["spec"]["minReadySeconds"].as_i64().unwrap_or_default(), now)
}

fn surge(set: &Value, total: i64) -> i64 {
    share::of(&set["spec"]["updateStrategy"]["rollingUpdate"]["maxSurge"], total, Round::Up).unwrap_or(0)
}

/// Replaces pods of old templates within the bounds.
fn roll(
    set: &Value,
    wanted: &[&str],
    on: &BTreeMap<String, Vec<Arc<Pod>>>,
    hash: &str,
    now: Timestamp,
    plan: &mut Plan,
) {
    if set["spec"]["updateStrategy"]["type"] == "OnDelete" {
        return;
    }
    let total = i64::try_from(wanted.len()).unwrap_or(i64::MAX);
    let rolling = &set["spec"]["updateStrategy"]["rollingUpdate"];
    let most = share::of(&rolling["maxUnavailable"], total, Round::Up).unwrap_or(1);
    let mut extra = surge(set, total);
    let most = if most == 0 && extra == 0 { 1 } else { most };
    let mut missing = 0;
    let mut old: Vec<(&str, &Arc<Pod>)> = Vec::new();
    for node in wanted {
        let live: Vec<&Arc<Pod>> = on.get(*node).into_iter().flatten().filter(|pod| pod.is_active()).collect();
        if !live.iter().any(|pod| is_available(pod, set, now)) {
            missing += 1;
        }
        let has_new = live.iter().any(|pod| is_new(pod, hash));
        if has_new && live.len() > 1 {
            extra -= 1;
        }
        if let Some(pod) = live.iter().find(|pod| !is_new(pod, hash))
            && !has_new
        {
            old.push((node, pod));
        }
    }
    old.sort_by_key(|(_, pod)| is_available(pod, set, now));
    let mut budget = most - missing;
    for (node, pod) in old {
        let available = is_available(pod, set, now);
        if !available {
            plan.delete.push(doomed(pod));
        } else if surge(set, total) > 0 {
            if extra > 0 {
                extra -= 1;
                plan.create.push(node.to_owned());
            }
        } else if budget > 0 {
            budget -= 1;
            plan.delete.push(doomed(pod));
        }
    }
}

fn status(set: &Value, wanted: &[&str], on: &BTreeMap<String, Vec<Arc<Pod>>>, hash: &str, now: Timestamp) -> Value {
    let (mut current, mut ready, mut available, mut updated) = (0, 0, 0, 0);
    for node in wanted {
        let live: Vec<&Arc<Pod>> = on.get(*node).into_iter().flatten().filter(|pod| !pod.is_finished()).collect();
        current += usize::from(!live.is_empty());
        ready += usize::from(live.iter().any(|pod| pod.ready.is_some() && !pod.head().deleting));
        available += usize::from(live.iter().any(|pod| is_available(pod, set, now)));
        updated += usize::from(live.iter().any(|pod| is_new(pod, hash) && !pod.head().deleting));
    }
    let astray = on
        .iter()
        .filter(|(node, list)| !wanted.contains(&node.as_str()) && list.iter().any(|pod| pod.is_active()))
        .count();
    let mut status = json!({
        "currentNumberScheduled": current, "numberMisscheduled": astray, "desiredNumberScheduled": wanted.len(),
        "numberReady": ready, "observedGeneration": set["metadata"]["generation"],
    });
    let rest = [
        ("updatedNumberScheduled", updated),
        ("numberAvailable", available),
        ("numberUnavailable", wanted.len() - available),
    ];
    for (field, count) in rest.into_iter().filter(|(_, count)| *count > 0) {
        status[field] = count.into();
    }
    if let Some(count) = set["status"].get("collisionCount") {
        status["collisionCount"] = count.clone();
    }
    status
}

fn next_available(set: &Value, pods: &[Arc<Pod>], now: Timestamp) -> Option<Duration> {
    let seconds = set["spec"]["minReadySeconds"].as_i64().filter(|seconds| *seconds > 0)?;
    let due = pods.iter().filter_map(|pod| pod.ready).map(|since| time::plus(since, seconds));
    due.filter(|due| *due > now).min().map(|due| time::until(now, due))
}

/// Looks after one DaemonSet.
pub async fn reconcile(world: &World, work: &Work) -> Again {
    let Some(set) = parent(world, Kind::DaemonSet, work) else { return Ok(None) };
    let pods = claim_pods(world, work, Kind::DaemonSet, &set, &selector(&set)).await?;
    if !set["metadata"]["deletionTimestamp"].is_null() {
        return Ok(None);
    }
    let history = revision::sync(world, work, Kind::DaemonSet, &set).await?;
    let newest = history.newest();
    let hash = revision::hash_of(&newest).to_owned();
    let nodes = world.book.read().nodes();
    let plan = decide(&set, &nodes, &pods, &hash, world.now());
    let made = plan.create.iter().map(|node| pod(&set, node, &hash)).collect();
    let (_, failure) = create_pods(world, work, &set, made).await;
    delete_pods(world, work, &set, &plan.delete).await?;
    write_status(world, work, Kind::DaemonSet, &set, &plan.status).await?;
    let mut in_use: HashMap<&str, ()> = HashMap::new();
    for pod in &pods {
        in_use.extend(pod.head().label(LABEL).map(|hash| (hash, ())));
    }
    history.trim(world, work, &set, |one| in_use.contains_key(revision::hash_of(one))).await?;
    retry(failure, plan.again)
}

/// A pod for a node: an affinity to the node's name leaves the scheduler no choice.
fn pod(set: &Value, node: &str, hash: &str) -> Value {
    let mut pod = pod_of(Kind::DaemonSet, set, &set["spec"]["template"]);
    pod["metadata"]["labels"][LABEL] = hash.into();
    let name = json!({"key": "metadata.name", "operator": "In", "values": [node]});
    let required = &mut pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    match required["nodeSelectorTerms"].as_array_mut().filter(|terms| !terms.is_empty()) {
        Some(terms) => terms.iter_mut().for_each(|term| term["matchFields"] = json!([name])),
        None => *required = json!({"nodeSelectorTerms": [{"matchFields": [name]}]}),
    }
    let mut tolerations: Vec<Value> = pod["spec"]["tolerations"].as_array().cloned().unwrap_or_default();
    let host = pod["spec"]["hostNetwork"] == true;
    let network = host.then_some(("node.kubernetes.io/network-unavailable", "NoSchedule"));
    for (key, effect) in TOLERATED.into_iter().chain(network) {
        let own: Vec<Toleration> = serde_json::from_value(tolerations.clone().into()).unwrap_or_default();
        let taint = Taint { key: key.to_owned(), value: String::new(), effect: effect.to_owned() };
        if !tolerates(&own, &taint) {
            tolerations.push(json!({"key": key, "operator": "Exists", "effect": effect}));
        }
    }
    pod["spec"]["tolerations"] = tolerations.into();
    pod
}

#[cfg(test)]
#[path = "daemonset_tests.rs"]
mod tests;
