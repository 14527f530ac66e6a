//! What would move, before anything moves.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use atoll_interpreter::Interpreter;
use atoll_meta::{Gvk, Head, Status};
use atoll_runtime::{Endpoint, Item};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::binding::{self, Binding, Meaning};
use crate::decision::Record;
use crate::discovery::discover;
use crate::keys::{PolicyKey, TemplateKey};
use crate::options::{Options, RemoteMembers};
use crate::outlook::Outlook;
use crate::policy::{Policies, Policy};
use crate::{admission, claim, gvr};

pub use crate::loss::{Loss, plan_without};

/// What would become of one template.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
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
    /// Clusters whose room is what they last told, while the hub counts their nodes: they could not be asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub approximate: Vec<String>,
    /// Of the loss of a cluster: `Unjoined`, or `ContactLost` when that alone is enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<&'static str>,
    /// How long the loss is tolerated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_seconds: Option<i64>,
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
        if let Some(error) = &self.error {
            write!(out, " no place: {error}")?;
        }
        if let Some(seconds) = self.after_seconds {
            write!(out, " (after {seconds} s)")?;
        }
        if self.approximate.is_empty() {
            return Ok(());
        }
        let names = self.approximate.join(", ");
        write!(out, " (approximate: the nodes of {names} could not be counted, as the hub does)")
    }
}

fn shares(binding: Option<&Binding>) -> BTreeMap<String, i32> {
    binding
        .into_iter()
        .flat_map(|binding| &binding.spec.clusters)
        .map(|cluster| (cluster.name.clone(), cluster.replicas))
        .collect()
}

/// Decides anew and compares.
pub(crate) async fn compare(
    outlook: &Outlook<'_>,
    subject: String,
    before: Option<&Binding>,
    mut after: Binding,
    taken_from: Option<String>,
) -> Move {
    let decided = outlook.settle(&mut after).await;
    let error =
        decided.then(|| Record::of(&after)).flatten().and_then(|record| record.error).map(|(_, message)| message);
    let approximate = outlook.uncounted(&after);
    let (before, after) = (shares(before), shares(Some(&after)));
    Move { subject, before, after, error, taken_from, approximate, ..Move::default() }
}

fn subject(kind: &str, head: &Head) -> String {
    let place = if head.namespace.is_empty() { String::new() } else { format!("{}/", head.namespace) };
    format!("{kind} {place}{}", head.name)
}

/// The settings of an instance, as its description in the root of the hub has them.
pub async fn settings(root: &Endpoint, instance: &str) -> Result<Value, Status> {
    let described = root.get(&gvr::instances(), None, instance).await?;
    Ok(described["metadata"]["annotations"].clone())
}

/// The options of an instance with these settings, for those who only look.
pub(crate) fn options(instance: &Endpoint, settings: &Value) -> Options {
    let mut options = Options::new(instance.clone(), Arc::new(RemoteMembers::default()));
    // What is not understood leaves all at the usual, also in the hub, which tells so.
    let _ = options.configure(settings);
    options
}

/// What a new or changed policy would move; `policy` as it would be applied, with the `settings` of the instance.
pub async fn plan(instance: &Endpoint, settings: &Value, policy: &Value, now: Timestamp) -> Result<Vec<Move>, Status> {
    let options = options(instance, settings);
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
    let outlook = Outlook::of(instance, now).await?.with_components(options.components);
    let served = discover(instance).await?;
    let customizations = instance.list(&gvr::customizations(), None, "").await?.items;
    let (interpreter, _) = Interpreter::default().with_customizations(&customizations);
    let plan = Plan { options, policies: &policies, planned: &planned, outlook: &outlook, interpreter };
    let mut moves = Vec::new();
    // Also what it has now and would let go.
    let kinds = planned.kinds().chain(known.iter().flat_map(|known| known.kinds()));
    let mut kinds: Vec<&Gvk> = kinds.filter(|gvk| !plan.options.skip.kind(gvk)).collect();
    kinds.sort();
    kinds.dedup();
    for gvk in kinds {
        let Some(info) = served.get(gvk) else { continue };
        let namespace = planned.key.in_namespace().filter(|_| info.namespaced);
        for tree in instance.list(&info.gvr, namespace, "").await?.items {
            moves.extend(plan.one(gvk, &tree).await);
        }
    }
    Ok(moves)
}

/// What a planned policy is judged by.
struct Plan<'a> {
    options: Options,
    policies: &'a Policies,
    planned: &'a Policy,
    outlook: &'a Outlook<'a>,
    interpreter: Interpreter,
}

impl Plan<'_> {
    /// What would become of one template; `None` when the policy neither has it nor would have it, or when nobody takes
    /// it, so that it stays.
    async fn one(&self, gvk: &Gvk, tree: &Value) -> Option<Move> {
        let head = tree["metadata"].as_object().map(Head::of).unwrap_or_default();
        if self.options.skip.object(gvk, &head) || head.deleting {
            return None;
        }
        let (held, planned) = (claim::read(tree), self.planned);
        let held_by = |key: &PolicyKey| {
            held.as_ref().is_some_and(|held| (&held.name, &held.namespace) == (&key.name, &key.namespace))
        };
        let chosen = self.policies.choose(gvk, &head, held.as_ref(), self.options.preemption);
        let chosen = chosen.filter(|chosen| chosen.key == planned.key || held_by(&planned.key))?;
        let key =
            TemplateKey { gvk: Arc::new(gvk.clone()), namespace: (*head.namespace).into(), name: (*head.name).into() }
                .binding();
        let existing = self.outlook.binding(&key);
        let taken = held.filter(|held| held.name != chosen.key.name || held.namespace != chosen.key.namespace);
        let taken_from = taken.map(|held| {
            if held.namespace.is_empty() { held.name.to_string() } else { format!("{}/{}", held.namespace, held.name) }
        });
        let subject = subject(&gvk.kind, &head);
        let meaning = match Meaning::of(tree, &self.interpreter) {
            Ok(meaning) => meaning,
            // It would stay where it is, and say so.
            Err(error) => {
                let (before, error) = (shares(existing), Some(error.to_string()));
                return Some(Move { subject, after: before.clone(), before, error, taken_from, ..Move::default() });
            }
        };
        let after = binding::build(tree, &chosen, &meaning, None, existing, String::new);
        Some(compare(self.outlook, subject, existing, after, taken_from).await)
    }
}
