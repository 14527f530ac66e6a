//! What would move, before anything moves.

use std::collections::BTreeMap;
use std::fmt;

use atoll_api::cluster::Cluster;
use atoll_interpreter::Interpreter;
use atoll_meta::{Gvk, Head, Status};
use atoll_placement::Snapshot;
use atoll_runtime::{Endpoint, Item};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::binding::{self, Binding, Meaning};
use crate::decision::{self, Record, Surroundings};
use crate::discovery::discover;
use crate::gvr;
use crate::keys::{PolicyKey, TemplateKey};
use crate::policy::{Policies, Policy};
use crate::skip::Skip;
use crate::{admission, claim};

/// What would become of one template.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Move {
    /// `Kind namespace/name`.
    pub subject: String,
    /// Replicas by cluster now.
    pub before: BTreeMap<String, i32>,
    /// Replicas by cluster then.
    pub after: BTreeMap<String, i32>,
    /// Why no place would be found.
    pub error: Option<String>,
    /// A policy that would lose the template.
    pub taken_from: Option<String>,
}

impl Move {
    /// Whether nothing would change.
    pub fn is_nothing(&self) -> bool {
        self.before == self.after && self.error.is_none() && self.taken_from.is_none()
    }
}

impl fmt::Display for Move {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:", self.subject)?;
        let names: std::collections::BTreeSet<&String> = self.before.keys().chain(self.after.keys()).collect();
        for name in names {
            match (self.before.get(name), self.after.get(name)) {
                (Some(before), Some(after)) if before == after => write!(out, " {name} {before}")?,
                (Some(before), Some(after)) => write!(out, " {name} {before}→{after}")?,
                (Some(before), None) => write!(out, " {name} {before}→gone")?,
                (None, Some(after)) => write!(out, " {name} new→{after}")?,
                (None, None) => {}
            }
        }
        if let Some(policy) = &self.taken_from {
            write!(out, " (taken from {policy})")?;
        }
        match &self.error {
            Some(error) => write!(out, " no place: {error}"),
            None => Ok(()),
        }
    }
}

async fn snapshot(instance: &Endpoint) -> Result<Snapshot, Status> {
    let clusters = instance.list(&gvr::clusters(), None, "").await?.items;
    let known = clusters.into_iter().filter_map(|tree| serde_json::from_value::<Cluster>(tree).ok());
    Ok(Snapshot::new(known.map(|cluster| atoll_placement::Cluster::from(&cluster))))
}

fn shares(binding: Option<&Binding>) -> BTreeMap<String, i32> {
    binding
        .into_iter()
        .flat_map(|binding| &binding.spec.clusters)
        .map(|cluster| (cluster.name.clone(), cluster.replicas))
        .collect()
}

/// Decides anew and compares.
fn compare(
    subject: String,
    before: Option<&Binding>,
    mut after: Binding,
    snapshot: &Snapshot,
    now: Timestamp,
    taken_from: Option<String>,
) -> Move {
    let around = Surroundings { snapshot, estimates: None, affinity_hosts: None, anti_affinity_hosts: None, now };
    let decided = decision::settle(&mut after, &around);
    let error =
        decided.then(|| Record::of(&after)).flatten().and_then(|record| record.error).map(|(_, message)| message);
    Move { subject, before: shares(before), after: shares(Some(&after)), error, taken_from }
}

fn subject(kind: &str, head: &Head) -> String {
    let place = if head.namespace.is_empty() { String::new() } else { format!("{}/", head.namespace) };
    format!("{kind} {place}{}", head.name)
}

/// What a new or changed policy would move; `policy` as it would be applied.
pub async fn plan(instance: &Endpoint, policy: &Value, now: Timestamp) -> Result<Vec<Move>, Status> {
    let stored = admission::complete_policy(policy)?;
    let mut planned = Item::of(&stored)
        .and_then(|item| Policy::of(&item))
        .ok_or_else(|| Status::bad_request("the policy cannot be read"))?;
    let policies = Policies::default();
    for resource in [gvr::policies(), gvr::cluster_policies()] {
        for tree in instance.list(&resource, None, "").await?.items {
            if let Some(known) = Item::of(&tree).and_then(|item| Policy::of(&item)) {
                policies.put(known);
            }
        }
    }
    let known = policies.get(&planned.key);
    if let Some(known) = &known {
        planned.id = known.id.clone();
    }
    let planned = policies.put(planned);
    let (snapshot, served) = (snapshot(instance).await?, discover(instance).await?);
    let customizations = instance.list(&gvr::customizations(), None, "").await?.items;
    let (interpreter, _) = Interpreter::default().with_customizations(&customizations);
    let plan = Plan { instance, policies: &policies, planned: &planned, snapshot: &snapshot, interpreter, now };
    let mut moves = Vec::new();
    // Also what it has now and would let go.
    let kinds = planned.kinds().chain(known.iter().flat_map(|known| known.kinds()));
    let mut kinds: Vec<&Gvk> = kinds.filter(|gvk| !Skip::default().kind(gvk)).collect();
    kinds.sort();
    kinds.dedup();
    for gvk in kinds {
        let Some(info) = served.get(gvk) else { continue };
        let namespace = planned.key.in_namespace().filter(|_| info.namespaced);
        for tree in instance.list(&info.gvr, namespace, "").await?.items {
            if let Some(found) = plan.one(gvk, &tree).await? {
                moves.push(found);
            }
        }
    }
    Ok(moves)
}

/// What a planned policy is judged by.
struct Plan<'a> {
    instance: &'a Endpoint,
    policies: &'a Policies,
    planned: &'a Policy,
    snapshot: &'a Snapshot,
    interpreter: Interpreter,
    now: Timestamp,
}

impl Plan<'_> {
    /// What would become of one template; `None` when the policy neither has it nor would have it, or when nobody takes
    /// it, so that it stays.
    async fn one(&self, gvk: &Gvk, tree: &Value) -> Result<Option<Move>, Status> {
        let head = tree["metadata"].as_object().map(Head::of).unwrap_or_default();
        if Skip::default().object(gvk, &head) || head.deleting {
            return Ok(None);
        }
        let (held, planned) = (claim::read(tree), self.planned);
        let held_by = |key: &PolicyKey| {
            held.as_ref().is_some_and(|held| (&held.name, &held.namespace) == (&key.name, &key.namespace))
        };
        let chosen = self.policies.choose(gvk, &head, held.as_ref(), true);
        let Some(chosen) = chosen.filter(|chosen| chosen.key == planned.key || held_by(&planned.key)) else {
            return Ok(None);
        };
        let key = TemplateKey {
            gvk: std::sync::Arc::new(gvk.clone()),
            namespace: (*head.namespace).into(),
            name: (*head.name).into(),
        }
        .binding();
        let existing = self.instance.get_opt(&key.gvr(), key.in_namespace(), &key.name).await?;
        let existing = existing.and_then(|tree| Binding::of(&Item::of(&tree)?));
        let taken = held.filter(|held| held.name != chosen.key.name || held.namespace != chosen.key.namespace);
        let taken_from = taken.map(|held| {
            if held.namespace.is_empty() { held.name.to_string() } else { format!("{}/{}", held.namespace, held.name) }
        });
        let subject = subject(&gvk.kind, &head);
        let meaning = match Meaning::of(tree, &self.interpreter) {
            Ok(meaning) => meaning,
            // It would stay where it is, and say so.
            Err(error) => {
                let before = shares(existing.as_ref());
                let after = before.clone();
                return Ok(Some(Move { subject, before, after, error: Some(error.to_string()), taken_from }));
            }
        };
        let after = binding::build(tree, &chosen, &meaning, None, existing.as_ref(), String::new);
        Ok(Some(compare(subject, existing.as_ref(), after, self.snapshot, self.now, taken_from)))
    }
}

/// What the loss of a cluster would move: every binding that is there, decided without it.
pub async fn plan_without(instance: &Endpoint, cluster: &str, now: Timestamp) -> Result<Vec<Move>, Status> {
    let snapshot = snapshot(instance).await?;
    if snapshot.get(cluster).is_none() {
        return Err(Status::not_found("cluster.karmada.io", "clusters", cluster));
    }
    let without = snapshot.without(cluster);
    let mut moves = Vec::new();
    for namespaced in [true, false] {
        for tree in instance.list(&gvr::bindings(namespaced), None, "").await?.items {
            let Some(before) = Item::of(&tree).and_then(|item| Binding::of(&item)) else { continue };
            if !before.spec.clusters.iter().any(|target| target.name == cluster) {
                continue;
            }
            let mut after = before.clone();
            after.spec.clusters.retain(|target| target.name != cluster);
            let resource = &before.spec.resource;
            let place = if resource.namespace.is_empty() { String::new() } else { format!("{}/", resource.namespace) };
            moves.push(compare(
                format!("{} {place}{}", resource.kind, resource.name),
                Some(&before),
                after,
                &without,
                now,
                None,
            ));
        }
    }
    Ok(moves)
}
