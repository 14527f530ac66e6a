//! The Work of a binding for one cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use atoll_api::names;
use atoll_api::policy::{ConflictResolution, ReplicaSchedulingType};
use atoll_api::words::{ABORT, OVERWRITE, TRUE, annotation, finalizer, label};
use atoll_api::work::{ResourceBindingSpec, Work, WorkSpec, WorkloadTemplate};
use atoll_interpreter::Interpreter;
use atoll_placement::{Cluster, Party, divide};
use serde_json::{Map, Value, json};

use crate::binding::Binding;
use crate::overrides::{self, Applied, OverrideError, OverridePolicy};

/// Why a Work cannot be made.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum BuildError {
    /// An override policy does not fit the template.
    #[error(transparent)]
    Override(#[from] OverrideError),
    /// The number of replicas cannot be set.
    #[error("replicas cannot be revised: {0}")]
    Revise(String),
}

/// A template made ready for all clusters of its binding.
pub struct Source<'a> {
    /// The template as it is in the instance.
    pub template: &'a Value,
    /// The same without what only the instance may say.
    pub pruned: Value,
    /// Its binding.
    pub binding: &'a Binding,
    /// The override policies for it, in order.
    pub overrides: Vec<Arc<OverridePolicy>>,
    /// Completions of a Job by cluster, when they are divided.
    pub completions: BTreeMap<String, i64>,
}

impl<'a> Source<'a> {
    /// Prepares a template.
    pub fn new(template: &'a Value, binding: &'a Binding, overrides: Vec<Arc<OverridePolicy>>) -> Self {
        let mut pruned = template.clone();
        crate::prune::prune(&mut pruned);
        Self { template, pruned, binding, overrides, completions: completions(template, &binding.spec) }
    }
}

/// Whether clusters get numbers of replicas. They get those that were decided on, copies as well: a template that is scaled
/// while nobody decides must not get by that.
fn has_replicas(spec: &ResourceBindingSpec) -> bool {
    spec.replicas > 0 || spec.replica_requirements.is_some()
}

/// Whether each cluster gets a part of the replicas rather than all.
fn is_divided(spec: &ResourceBindingSpec) -> bool {
    let strategy = spec.placement.as_ref().and_then(|placement| placement.replica_scheduling.as_ref());
    spec.replicas > 0
        && strategy.is_some_and(|strategy| strategy.replica_scheduling_type == ReplicaSchedulingType::Divided)
}

/// How the completions of a divided Job are shared: as its pods are.
fn completions(template: &Value, spec: &ResourceBindingSpec) -> BTreeMap<String, i64> {
    let Some(total) =
        template["spec"]["completions"].as_i64().filter(|_| template["kind"] == "Job" && is_divided(spec))
    else {
        return BTreeMap::new();
    };
    let parties: Vec<Party<'_>> = spec
        .clusters
        .iter()
        .map(|cluster| Party { name: &cluster.name, votes: cluster.replicas.into(), most: i64::MAX })
        .collect();
    let shares = divide(total, &parties, &spec.resource.uid);
    parties.iter().zip(shares).map(|(party, share)| (party.name.to_owned(), share)).collect()
}

/// The Work for a cluster. The identity of an existing one is kept.
pub fn build(
    source: &Source<'_>,
    cluster: &Cluster,
    replicas: i32,
    interpreter: &Interpreter,
    existing: Option<&Work>,
    id: impl FnOnce() -> String,
) -> Result<Work, BuildError> {
    let (binding, spec) = (source.binding, &source.binding.spec);
    let mut manifest = source.pruned.clone();
    let own = spec.clusters.iter().any(|target| *target.name == *cluster.name);
    if own && has_replicas(spec) {
        let revised = interpreter.revise(&mut manifest, i64::from(replicas));
        revised.map_err(|error| BuildError::Revise(error.to_string()))?;
    }
    if let Some(share) = source.completions.get(&*cluster.name) {
        manifest["spec"]["completions"] = (*share).into();
    }
    preserve_state(&mut manifest, binding, &cluster.name);
    let applied = overrides::apply(&mut manifest, cluster, &source.overrides)?;
    let name = names::work(&spec.resource.kind, &spec.resource.name, &spec.resource.namespace);
    let conflict = conflict_resolution(source.template, spec.conflict_resolution);
    let mut annotations = note(&applied);
    annotations.insert(annotation::CONFLICT_RESOLUTION.to_owned(), conflict.to_owned());
    annotations.extend(binding_annotations(binding));
    let mut labels = BTreeMap::new();
    if let Some(id) = binding.id() {
        let key = if binding.key().is_namespaced() { label::BINDING_ID } else { label::CLUSTER_BINDING_ID };
        labels.insert(key.to_owned(), id.to_owned());
    }
    let draft = Draft {
        namespace: names::execution_namespace(&cluster.name),
        name,
        labels,
        annotations,
        suspended: is_suspended(spec, &cluster.name),
        preserve: spec.preserve_resources_on_deletion,
    };
    Ok(finish(draft, manifest, source.template, existing, id))
}

/// What a Work is made of besides its manifest.
pub struct Draft {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Labels it shares with its manifest.
    pub labels: BTreeMap<String, String>,
    /// Annotations it shares with its manifest.
    pub annotations: BTreeMap<String, String>,
    /// Whether nothing is to be sent.
    pub suspended: bool,
    /// Whether the object stays in the member when the work goes.
    pub preserve: Option<bool>,
}

/// Puts manifest and draft together.
pub fn finish(
    draft: Draft,
    mut manifest: Value,
    template: &Value,
    existing: Option<&Work>,
    id: impl FnOnce() -> String,
) -> Work {
    let mut work = Work { metadata: existing.map(|work| work.metadata.clone()).unwrap_or_default(), ..Work::default() };
    let old_id = work.metadata.labels.as_ref().and_then(|labels| labels.get(label::WORK_ID).cloned());
    let mut labels = draft.labels.clone();
    labels.insert(label::WORK_ID.to_owned(), old_id.unwrap_or_else(id));
    let mut annotations = draft.annotations.clone();
    mark(&mut manifest, &draft, &labels, template);
    annotations.retain(|_, value| !value.is_empty());
    work.metadata.namespace = Some(draft.namespace);
    work.metadata.name = Some(draft.name);
    work.metadata.labels = Some(labels);
    work.metadata.annotations = Some(annotations);
    let finalizers = work.metadata.finalizers.get_or_insert_default();
    if !finalizers.iter().any(|own| own == finalizer::EXECUTION) {
        finalizers.push(finalizer::EXECUTION.to_owned());
    }
    work.spec = WorkSpec {
        workload: WorkloadTemplate { manifests: vec![manifest] },
        suspend_dispatching: draft.suspended.then_some(true),
        preserve_resources_on_deletion: draft.preserve,
    };
    work
}

/// Writes into the manifest what tells ours from others' in the member.
fn mark(manifest: &mut Value, draft: &Draft, work_labels: &BTreeMap<String, String>, template: &Value) {
    let labels = map(manifest, "labels");
    labels.insert(label::MANAGED.to_owned(), TRUE.into());
    for (key, value) in work_labels {
        labels.insert(key.clone(), value.as_str().into());
    }
    let label_keys: Vec<&str> = labels.keys().map(String::as_str).collect();
    let label_keys = label_keys.join(",");
    let annotations = map(manifest, "annotations");
    for (key, value) in &draft.annotations {
        if key != annotation::APPLIED_OVERRIDES && key != annotation::APPLIED_CLUSTER_OVERRIDES {
            annotations.insert(key.clone(), value.as_str().into());
        }
    }
    annotations.insert(annotation::WORK_NAMESPACE.to_owned(), draft.namespace.as_str().into());
    annotations.insert(annotation::WORK_NAME.to_owned(), draft.name.as_str().into());
    annotations
        .insert(annotation::TEMPLATE_UID.to_owned(), template["metadata"]["uid"].as_str().unwrap_or_default().into());
    if let Some(generation) = template["metadata"]["generation"].as_i64() {
        annotations.insert(annotation::TEMPLATE_GENERATION.to_owned(), generation.to_string().into());
    }
    annotations.insert(annotation::MANAGED_LABELS.to_owned(), label_keys.into());
    annotations.insert(annotation::MANAGED_ANNOTATIONS.to_owned(), "".into());
    let keys: Vec<&str> = annotations.keys().map(String::as_str).collect();
    let keys = keys.join(",");
    annotations.insert(annotation::MANAGED_ANNOTATIONS.to_owned(), keys.into());
}

fn map<'a>(manifest: &'a mut Value, field: &str) -> &'a mut Map<String, Value> {
    if !manifest["metadata"][field].is_object() {
        manifest["metadata"][field] = json!({});
    }
    manifest["metadata"][field].as_object_mut().expect("just made an object")
}

/// The template's own word wins over the binding's.
fn conflict_resolution(template: &Value, binding: ConflictResolution) -> &'static str {
    match template["metadata"]["annotations"][annotation::CONFLICT_RESOLUTION].as_str() {
        Some(OVERWRITE) => OVERWRITE,
        Some(ABORT) => ABORT,
        _ if binding == ConflictResolution::Overwrite => OVERWRITE,
        _ => ABORT,
    }
}

fn is_suspended(spec: &ResourceBindingSpec, cluster: &str) -> bool {
    spec.suspension.as_ref().is_some_and(|suspension| {
        suspension.dispatching == Some(true)
            || suspension
                .dispatching_on_clusters
                .as_ref()
                .is_some_and(|on| on.cluster_names.iter().any(|name| name == cluster))
    })
}

fn binding_annotations(binding: &Binding) -> Vec<(String, String)> {
    let key = binding.key();
    if key.is_namespaced() {
        vec![
            (annotation::BINDING_NAMESPACE.to_owned(), key.namespace.to_string()),
            (annotation::BINDING_NAME.to_owned(), key.name.to_string()),
        ]
    } else {
        vec![(annotation::CLUSTER_BINDING_NAME.to_owned(), key.name.to_string())]
    }
}

fn note(applied: &Applied) -> BTreeMap<String, String> {
    let lists = [
        (annotation::APPLIED_OVERRIDES, &applied.namespaced),
        (annotation::APPLIED_CLUSTER_OVERRIDES, &applied.cluster),
    ];
    let some = lists.into_iter().filter(|(_, list)| !list.is_empty());
    some.map(|(key, list)| (key.to_owned(), serde_json::to_string(list).unwrap_or_default())).collect()
}

/// A copy in a cluster that takes over from a failed one gets the labels that tell it where to go on.
fn preserve_state(manifest: &mut Value, binding: &Binding, cluster: &str) {
    let tasks = binding.spec.graceful_eviction_tasks.iter();
    let Some(task) = tasks.rev().find(|task| !task.preserved_label_state.is_empty()) else { return };
    if task.clusters_before_failover.iter().any(|before| before == cluster) {
        return;
    }
    let labels = map(manifest, "labels");
    for (key, value) in &task.preserved_label_state {
        labels.insert(key.clone(), value.as_str().into());
    }
}

/// Whether a Work was left by a former binding of the same name as that of `new`.
pub fn is_of_former_binding(found: &Work, new: &Work) -> bool {
    let text = |own: &Work, key: &str| own.metadata.annotations.as_ref().and_then(|all| all.get(key).cloned());
    let id = |own: &Work, key: &str| own.metadata.labels.as_ref().and_then(|all| all.get(key).cloned());
    let names = [annotation::BINDING_NAMESPACE, annotation::BINDING_NAME, annotation::CLUSTER_BINDING_NAME];
    names.iter().all(|key| text(found, key) == text(new, key))
        && [label::BINDING_ID, label::CLUSTER_BINDING_ID].iter().any(|key| id(found, key) != id(new, key))
}

/// Whether a Work needs to be written.
pub fn differs(new: &Work, old: &Work) -> bool {
    new.spec != old.spec
        || new.metadata.labels != old.metadata.labels
        || new.metadata.annotations != old.metadata.annotations
        || new.metadata.finalizers != old.metadata.finalizers
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn template(kind: &str, spec: Value) -> Value {
        let api = if kind == "Job" { "batch/v1" } else { "apps/v1" };
        json!({"apiVersion": api, "kind": kind,
               "metadata": {"name": "web", "namespace": "default", "uid": "tu", "generation": 4, "labels": {"app": "web"}},
               "spec": spec})
    }

    fn binding(kind: &str, extra: Value) -> Binding {
        let mut tree = json!({
            "metadata": {"name": "web-deployment", "namespace": "default", "labels": {label::BINDING_ID: "bid"}},
            "spec": {"resource": {"apiVersion": "apps/v1", "kind": kind, "name": "web", "namespace": "default", "uid": ""},
                     "replicas": 5, "clusters": [{"name": "m1", "replicas": 2}, {"name": "m2", "replicas": 3}],
                     "placement": {"replicaScheduling": {"replicaSchedulingType": "Divided"}}},
        });
        atoll_patch::merge_patch(&mut tree, &extra);
        serde_json::from_value(tree).unwrap()
    }

    fn built(template: &Value, binding: &Binding, cluster: &str) -> Work {
        let source = Source::new(template, binding, Vec::new());
        let replicas = binding.targets()[cluster];
        let cluster = Cluster { name: cluster.into(), ..Cluster::default() };
        build(&source, &cluster, replicas, &Interpreter::default(), None, || "wid".to_owned()).unwrap()
    }

    #[test]
    fn a_work_carries_the_share_of_its_cluster_and_the_marks_of_its_origin() {
        let work = built(&template("Deployment", json!({"replicas": 5})), &binding("Deployment", json!({})), "m2");
        assert_eq!(work.metadata.namespace.as_deref(), Some("karmada-es-m2"));
        assert_eq!(work.metadata.name, Some(names::work("Deployment", "web", "default")));
        assert_eq!(work.metadata.finalizers, Some(vec![finalizer::EXECUTION.to_owned()]));
        let manifest = &work.spec.workload.manifests[0];
        assert_eq!(manifest["spec"]["replicas"], 3);
        let labels = &manifest["metadata"]["labels"];
        assert_eq!(
            *labels,
            json!({"app": "web", label::MANAGED: "true", label::WORK_ID: "wid", label::BINDING_ID: "bid"})
        );
        let annotations = &manifest["metadata"]["annotations"];
        assert_eq!(annotations[annotation::TEMPLATE_UID], "tu");
        assert_eq!(annotations[annotation::TEMPLATE_GENERATION], "4");
        assert_eq!(annotations[annotation::CONFLICT_RESOLUTION], "abort");
        assert_eq!(annotations[annotation::BINDING_NAME], "web-deployment");
        let managed = annotations[annotation::MANAGED_LABELS].as_str().unwrap();
        assert_eq!(managed.split(',').count(), 4);
        assert!(manifest["metadata"].get("uid").is_none());
    }

    #[test]
    fn copies_get_the_number_of_the_binding_and_divided_jobs_share_their_completions() {
        let copied = json!({"spec": {"placement": {"replicaScheduling": {"replicaSchedulingType": "Duplicated"}}}});
        let spec = |kind: &str, spec: Value, extra: &Value, cluster: &str| {
            let work = built(&template(kind, spec), &binding(kind, extra.clone()), cluster);
            work.spec.workload.manifests[0]["spec"].clone()
        };
        // Decided before the template was scaled.
        assert_eq!(spec("Deployment", json!({"replicas": 9}), &copied, "m1"), json!({"replicas": 2}));
        let jobs = spec("Job", json!({"parallelism": 9, "completions": 10}), &copied, "m1");
        assert_eq!(jobs, json!({"parallelism": 2, "completions": 10}));
        // Nobody decides on what has no replicas, nor for clusters that others need it in.
        let needed = json!({"spec": {"requiredBy": [{"namespace": "default", "name": "x", "clusters": [{"name": "m3", "replicas": 1}]}]}});
        assert_eq!(spec("Deployment", json!({"replicas": 9}), &needed, "m3"), json!({"replicas": 9}));
        let none = json!({"spec": {"replicas": null}});
        assert_eq!(spec("Deployment", json!({"replicas": 0}), &none, "m1"), json!({"replicas": 0}));
        let job = template("Job", json!({"parallelism": 5, "completions": 10}));
        let shares: Vec<Value> = ["m1", "m2"]
            .iter()
            .map(|name| built(&job, &binding("Job", json!({})), name).spec.workload.manifests[0]["spec"].clone())
            .collect();
        assert_eq!(shares, [json!({"parallelism": 2, "completions": 4}), json!({"parallelism": 3, "completions": 6})]);
    }

    #[test]
    fn suspension_preservation_and_conflicts_follow_the_binding() {
        let held = binding(
            "Deployment",
            json!({"spec": {
            "suspension": {"dispatchingOnClusters": {"clusterNames": ["m1"]}}, "preserveResourcesOnDeletion": true, "conflictResolution": "Overwrite"}}),
        );
        let deployment = template("Deployment", json!({}));
        let (one, two) = (built(&deployment, &held, "m1"), built(&deployment, &held, "m2"));
        assert_eq!((one.spec.suspend_dispatching, two.spec.suspend_dispatching), (Some(true), None));
        assert_eq!(one.spec.preserve_resources_on_deletion, Some(true));
        assert_eq!(one.metadata.annotations.as_ref().unwrap()[annotation::CONFLICT_RESOLUTION], "overwrite");
        let mut own = deployment;
        own["metadata"]["annotations"] = json!({annotation::CONFLICT_RESOLUTION: "abort"});
        assert_eq!(built(&own, &held, "m1").metadata.annotations.unwrap()[annotation::CONFLICT_RESOLUTION], "abort");
    }

    #[test]
    fn building_again_changes_nothing() {
        let (template, binding) = (template("Deployment", json!({"replicas": 5})), binding("Deployment", json!({})));
        let first = built(&template, &binding, "m1");
        let source = Source::new(&template, &binding, Vec::new());
        let cluster = Cluster { name: "m1".into(), ..Cluster::default() };
        let again = build(&source, &cluster, 2, &Interpreter::default(), Some(&first), || "other".to_owned()).unwrap();
        assert!(!differs(&again, &first));
    }

    #[test]
    fn a_copy_that_takes_over_gets_the_state_of_the_failed_one() {
        let moved = binding(
            "Deployment",
            json!({"spec": {"gracefulEvictionTasks": [
            {"fromCluster": "m3", "reason": "ApplicationFailure", "producer": "x", "clustersBeforeFailover": ["m2", "m3"], "preservedLabelState": {"job": "17"}}]}}),
        );
        let deployment = template("Deployment", json!({}));
        let label = |cluster: &str| {
            built(&deployment, &moved, cluster).spec.workload.manifests[0]["metadata"]["labels"]["job"].clone()
        };
        assert_eq!((label("m1"), label("m2")), (json!("17"), Value::Null));
    }
}
