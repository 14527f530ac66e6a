//! What a Deployment needs: new sets, more or fewer replicas, and what to say about it.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::rollout_scale as scale;
use super::rollout_status as status;
use crate::child;
use crate::kind::Kind;
use crate::share::{self, Round};

/// Number of a rollout, counted up.
pub const REVISION: &str = "deployment.kubernetes.io/revision";
/// Numbers a set had before.
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// Replicas the Deployment wanted when the set was last scaled.
pub const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
/// Replicas it could have at most then.
pub const MAXIMUM: &str = "deployment.kubernetes.io/max-replicas";
/// Label that keeps the pods of sets apart.
pub const HASH: &str = "pod-template-hash";

/// Something to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// Make a set.
    Create(Value),
    /// Change a set: name and merge patch.
    Patch(String, Value),
    /// Delete a set: name and uid.
    Delete(String, String),
    /// Tell that a set was scaled: reason and message.
    Tell(&'static str, String),
}

/// What is to be done.
#[derive(Debug, Default)]
pub struct Plan {
    /// In this order.
    pub acts: Vec<Act>,
    /// The Deployment's new revision, if it changes.
    pub revision: Option<String>,
    /// Its new status.
    pub status: Value,
    /// When to look again without an event.
    pub again: Option<Duration>,
}

/// A Deployment and its sets, sorted out.
pub struct Rollout<'a> {
    pub(super) deployment: &'a Value,
    /// The set of the present template.
    pub(super) new: Option<Value>,
    /// Sets of other templates, oldest first.
    pub(super) old: Vec<Value>,
    pub(super) now: Timestamp,
    pub(super) conditions: Value,
    pub(super) acts: Vec<Act>,
    revision: Option<String>,
    /// Whether this look made or changed the new set.
    pub(super) created: bool,
}

/// Decides what a Deployment needs, given its sets.
pub fn decide(deployment: &Value, sets: &[Value], now: Timestamp) -> Plan {
    let mut rollout = Rollout::new(deployment, sets, now);
    if !deployment["metadata"]["deletionTimestamp"].is_null() {
        return rollout.finish(false);
    }
    if status::judge_pause(&mut rollout) {
        let mut status = deployment["status"].clone();
        status["conditions"] = rollout.conditions;
        return Plan { status, ..Plan::default() };
    }
    let paused = deployment["spec"]["paused"] == true;
    if paused || rollout.is_scaling() {
        rollout.sync_new(false);
        scale::proportionally(&mut rollout);
        if paused {
            rollout.clean_up();
        }
        return rollout.finish(false);
    }
    if deployment["spec"]["strategy"]["type"] == "Recreate" {
        rollout.recreate();
    } else {
        rollout.roll();
    }
    rollout.finish(true)
}

/// A number in an object's spec or status.
pub fn number(object: &Value, part: &str, field: &str) -> i64 {
    object[part][field].as_i64().unwrap_or_default()
}

/// Replicas a set shall have.
pub fn replicas(set: &Value) -> i64 {
    set["spec"]["replicas"].as_i64().unwrap_or(1)
}

/// A number in an annotation.
pub fn annotated(object: &Value, key: &str) -> Option<i64> {
    object["metadata"]["annotations"][key].as_str()?.parse().ok()
}

/// The name of an object.
pub fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

fn created(object: &Value) -> (String, String) {
    (object["metadata"]["creationTimestamp"].as_str().unwrap_or_default().to_owned(), name(object).to_owned())
}

/// Whether a set was made from a template, the label that tells sets apart aside.
fn same_template(set: &Value, template: &Value) -> bool {
    let mut own = set["spec"]["template"].clone();
    if let Some(labels) = own["metadata"]["labels"].as_object_mut() {
        labels.remove(HASH);
    }
    let strip = |tree: &Value| -> Value {
        let mut tree = tree.clone();
        if let Some(meta) = tree["metadata"].as_object_mut() {
            meta.retain(|key, value| {
                key != "creationTimestamp" && !value.is_null() && value.as_object().is_none_or(|map| !map.is_empty())
            });
        }
        tree
    };
    strip(&own) == strip(template)
}

impl<'a> Rollout<'a> {
    fn new(deployment: &'a Value, sets: &[Value], now: Timestamp) -> Self {
        let template = &deployment["spec"]["template"];
        let mut sorted: Vec<Value> = sets.to_vec();
        sorted.sort_by_cached_key(created);
        let place = sorted.iter().position(|set| same_template(set, template));
        let new = place.map(|at| sorted.remove(at));
        Self {
            deployment,
            new,
            old: sorted,
            now,
            conditions: deployment["status"]["conditions"].clone(),
            acts: Vec::new(),
            revision: None,
            created: false,
        }
    }

    /// All sets.
    pub fn all(&self) -> impl Iterator<Item = &Value> {
        self.old.iter().chain(&self.new)
    }

    /// Replicas the Deployment shall have.
    pub fn wanted(&self) -> i64 {
        replicas(self.deployment)
    }

    fn is_rolling(&self) -> bool {
        self.deployment["spec"]["strategy"]["type"] != "Recreate"
    }

    fn bounds(&self) -> (i64, i64) {
        let rolling = &self.deployment["spec"]["strategy"]["rollingUpdate"];
        let surge = share::of(&rolling["maxSurge"], self.wanted(), Round::Up).unwrap_or(0);
        let missing = share::of(&rolling["maxUnavailable"], self.wanted(), Round::Down).unwrap_or(0);
        // Both zero would make no progress possible.
        if surge == 0 && missing == 0 { (0, 1) } else { (surge, missing) }
    }

    /// Pods above the wanted number.
    pub fn max_surge(&self) -> i64 {
        if self.is_rolling() { self.bounds().0 } else { 0 }
    }

    /// Pods that may be missing.
    pub fn max_unavailable(&self) -> i64 {
        if self.is_rolling() && self.wanted() > 0 { self.bounds().1.min(self.wanted()) } else { 0 }
    }

    fn is_scaling(&self) -> bool {
        let active = self.all().filter(|set| replicas(set) > 0);
        let known = active.filter_map(|set| annotated(set, DESIRED));
        known.into_iter().any(|desired| desired != self.wanted())
    }

    /// Makes sure there is a set for the present template, and that it carries what it must.
    fn sync_new(&mut self, create: bool) {
        let highest = self.old.iter().filter_map(|set| annotated(set, REVISION)).max().unwrap_or(0);
        let next = highest + 1;
        match &self.new {
            Some(set) => {
                let wanted = self.annotations(set["metadata"]["annotations"].as_object(), next);
                let min_ready = self.deployment["spec"].get("minReadySeconds").cloned().unwrap_or(Value::Null);
                let ready_differs =
                    number(set, "spec", "minReadySeconds") != number(self.deployment, "spec", "minReadySeconds");
                let mut patch = json!({});
                if let Some(change) =
                    crate::diff::merge(&set["metadata"]["annotations"], &Value::Object(wanted.clone()))
                {
                    patch["metadata"] = json!({"annotations": change});
                }
                if ready_differs {
                    patch["spec"] = json!({"minReadySeconds": min_ready});
                }
                let revision = wanted.get(REVISION).and_then(Value::as_str).unwrap_or_default().to_owned();
                if patch.as_object().is_some_and(|map| !map.is_empty()) {
                    self.acts.push(Act::Patch(name(set).to_owned(), patch));
                }
                let name = name(set).to_owned();
                if let Some(set) = &mut self.new {
                    set["metadata"]["annotations"] = Value::Object(wanted);
                }
                self.note_revision(&revision);
                status::found(self, &name);
            }
            None if create => self.create_new(next),
            None => {}
        }
    }

    fn note_revision(&mut self, revision: &str) {
        if self.deployment["metadata"]["annotations"][REVISION] != revision && !revision.is_empty() {
            self.revision = Some(revision.to_owned());
        }
    }

    /// Annotations of a set: those of the Deployment, and its numbers.
    fn annotations(&self, own: Option<&Map<String, Value>>, next: i64) -> Map<String, Value> {
        const SKIPPED: [&str; 5] =
            ["kubectl.kubernetes.io/last-applied-configuration", REVISION, HISTORY, DESIRED, MAXIMUM];
        let mut all = own.cloned().unwrap_or_default();
        let from = self.deployment["metadata"]["annotations"].as_object().into_iter().flatten();
        for (key, value) in from.filter(|(key, _)| !SKIPPED.contains(&key.as_str())) {
            all.insert(key.clone(), value.clone());
        }
        let before = all.get(REVISION).and_then(Value::as_str).unwrap_or_default().to_owned();
        if before.parse::<i64>().unwrap_or(0) < next {
            if !before.is_empty() {
                let history = all.get(HISTORY).and_then(Value::as_str).unwrap_or_default();
                let joined = if history.is_empty() { before } else { format!("{history},{before}") };
                all.insert(HISTORY.into(), joined.into());
            }
            all.insert(REVISION.into(), next.to_string().into());
        }
        all
    }

    fn create_new(&mut self, revision: i64) {
        let deployment = self.deployment;
        let hash = child::hash(&deployment["spec"]["template"], number(deployment, "status", "collisionCount"));
        let mut template = deployment["spec"]["template"].clone();
        template["metadata"]["labels"][HASH] = hash.clone().into();
        let mut selector = deployment["spec"]["selector"].clone();
        selector["matchLabels"][HASH] = hash.clone().into();
        let mut annotations = self.annotations(None, revision);
        annotations.insert(DESIRED.into(), self.wanted().to_string().into());
        annotations.insert(MAXIMUM.into(), (self.wanted() + self.max_surge()).to_string().into());
        let set_name = format!("{}-{hash}", name(deployment));
        let mut set = json!({
            "kind": "ReplicaSet", "apiVersion": "apps/v1",
            "metadata": {"name": set_name, "labels": template["metadata"]["labels"], "annotations": annotations,
                         "ownerReferences": [child::controller_ref(Kind::Deployment, deployment)]},
            "spec": {"replicas": 0, "selector": selector, "template": template},
        });
        if let Some(seconds) = deployment["spec"].get("minReadySeconds") {
            set["spec"]["minReadySeconds"] = seconds.clone();
        }
        let count = self.new_replicas(0);
        set["spec"]["replicas"] = count.into();
        self.acts.push(Act::Create(set.clone()));
        if count > 0 {
            self.tell_scaled(true, &set_name, 0, count);
        }
        status::created(self, &set_name);
        self.note_revision(&revision.to_string());
        self.new = Some(set);
        self.created = true;
    }

    /// Replicas the new set may have now.
    fn new_replicas(&self, has: i64) -> i64 {
        if !self.is_rolling() {
            return self.wanted();
        }
        let total: i64 = self.all().map(replicas).sum();
        let most = self.wanted() + self.max_surge();
        if total >= most {
            return has;
        }
        has + (most - total).min(self.wanted() - has)
    }

    fn tell_scaled(&mut self, up: bool, set: &str, from: i64, to: i64) {
        let way = if up { "up" } else { "down" };
        self.acts.push(Act::Tell("ScalingReplicaSet", format!("Scaled {way} replica set {set} from {from} to {to}")));
    }

    /// Gives a set another number of replicas; returns whether that is a change.
    pub(super) fn scale_set(&mut self, set_name: &str, count: i64) -> bool {
        let (desired, most) = (self.wanted(), self.wanted() + self.max_surge());
        let Some(set) = self.old.iter_mut().chain(&mut self.new).find(|set| name(set) == set_name) else {
            return false;
        };
        let from = replicas(set);
        let mut patch = json!({});
        if from != count {
            patch["spec"] = json!({"replicas": count});
        }
        for (key, value) in [(DESIRED, desired), (MAXIMUM, most)] {
            if annotated(set, key) != Some(value) {
                patch["metadata"]["annotations"][key] = value.to_string().into();
                set["metadata"]["annotations"][key] = value.to_string().into();
            }
        }
        set["spec"]["replicas"] = count.into();
        if patch.as_object().is_some_and(Map::is_empty) {
            return false;
        }
        self.acts.push(Act::Patch(set_name.to_owned(), patch));
        if from != count {
            self.tell_scaled(count > from, set_name, from, count);
        }
        from != count
    }

    /// Old pods go before new ones come.
    fn recreate(&mut self) {
        self.sync_new_unless_old_run();
        let mut scaled = false;
        for set_name in
            self.old.iter().filter(|set| replicas(set) > 0).map(|set| name(set).to_owned()).collect::<Vec<_>>()
        {
            scaled |= self.scale_set(&set_name, 0);
        }
        if scaled || self.old.iter().any(|set| number(set, "status", "replicas") > 0) {
            return;
        }
        if self.new.is_none() {
            self.sync_new(true);
        } else if let Some(set_name) = self.new.as_ref().map(|set| name(set).to_owned()) {
            self.scale_set(&set_name, self.wanted());
        }
        self.clean_up_if_complete();
    }

    fn sync_new_unless_old_run(&mut self) {
        if self.new.is_some() {
            self.sync_new(false);
        }
    }

    /// New pods come while old ones go, within the bounds.
    fn roll(&mut self) {
        self.sync_new(true);
        if self.created {
            return;
        }
        let Some((set_name, has)) = self.new.as_ref().map(|set| (name(set).to_owned(), replicas(set))) else { return };
        let target = if has > self.wanted() { self.wanted() } else { self.new_replicas(has) };
        if self.scale_set(&set_name, target) {
            return;
        }
        if scale::old_down(self) {
            return;
        }
        self.clean_up_if_complete();
    }

    fn clean_up_if_complete(&mut self) {
        if status::is_complete(self, &status::counts(self)) {
            self.clean_up();
        }
    }

    /// Deletes sets that are empty and older than the history asked for.
    fn clean_up(&mut self) {
        let Some(limit) = self.deployment["spec"]["revisionHistoryLimit"].as_i64() else { return };
        let mut empty: Vec<&Value> =
            self.old.iter().filter(|set| set["metadata"]["deletionTimestamp"].is_null()).collect();
        let surplus = empty.len().saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX));
        empty.sort_by_key(|set| annotated(set, REVISION).unwrap_or(0));
        let gone: Vec<Act> = empty
            .into_iter()
            .take(surplus)
            .filter(|set| {
                replicas(set) == 0
                    && number(set, "status", "replicas") == 0
                    && number(set, "metadata", "generation") <= number(set, "status", "observedGeneration")
            })
            .map(|set| {
                Act::Delete(name(set).to_owned(), set["metadata"]["uid"].as_str().unwrap_or_default().to_owned())
            })
            .collect();
        self.acts.extend(gone);
    }

    fn finish(mut self, progress: bool) -> Plan {
        let mut counts = status::counts(&self);
        let again = if progress { status::judge_progress(&mut self, &counts) } else { None };
        status::judge_available(&mut self, &counts);
        status::judge_failure(&mut self);
        if self.conditions.as_array().is_some_and(|list| !list.is_empty()) {
            counts["conditions"] = self.conditions.take();
        }
        Plan { acts: self.acts, revision: self.revision, status: counts, again }
    }
}

#[cfg(test)]
#[path = "rollout_tests.rs"]
mod tests;
