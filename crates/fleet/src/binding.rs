//! The binding of a template under a policy.

use std::collections::BTreeMap;

use atoll_api::policy::{Placement, Suspension};
use atoll_api::words::{annotation, finalizer, label};
use atoll_api::work::{
    BindingPriority, BindingSuspension, Component, ObjectReference, ReplicaRequirements, ResourceBindingSpec,
    ResourceBindingStatus, WorkloadAffinityGroups,
};
use atoll_interpreter::{Interpreter, Requirements};
use atoll_runtime::Item;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::keys::BindingKey;
use crate::policy::Policy;
use crate::templates;

/// The annotation of a binding that tells which state of its template a lazy policy was last activated by.
pub const ACTIVATED_BY: &str = "atoll.io/activated-by";

/// A ResourceBinding or ClusterResourceBinding.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Binding {
    /// Name, labels and the like.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// The template and where it goes.
    pub spec: ResourceBindingSpec,
    /// What became of the decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<ResourceBindingStatus>,
}

impl Binding {
    /// Reads one as an informer has it.
    pub fn of(item: &Item) -> Option<Self> {
        let mut binding: Self = item.decode().ok()?;
        binding.metadata.resource_version = Some(item.revision.to_string());
        Some(binding)
    }

    /// Its key.
    pub fn key(&self) -> BindingKey {
        let text = |value: &Option<String>| value.as_deref().unwrap_or_default().into();
        BindingKey { namespace: text(&self.metadata.namespace), name: text(&self.metadata.name) }
    }

    /// As an object for the server.
    pub fn to_value(&self) -> Value {
        let kind = if self.key().is_namespaced() { "ResourceBinding" } else { "ClusterResourceBinding" };
        let mut value = serde_json::to_value(self).unwrap_or_default();
        value["apiVersion"] = "work.karmada.io/v1alpha2".into();
        value["kind"] = kind.into();
        value
    }

    /// A label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.metadata.labels.as_ref()?.get(key).map(String::as_str)
    }

    /// An annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata.annotations.as_ref()?.get(key).map(String::as_str)
    }

    /// Sets an annotation.
    pub fn annotate(&mut self, key: &str, value: String) {
        self.metadata.annotations.get_or_insert_default().insert(key.to_owned(), value);
    }

    /// Its permanent id.
    pub fn id(&self) -> Option<&str> {
        self.label(label::BINDING_ID).or_else(|| self.label(label::CLUSTER_BINDING_ID))
    }

    /// Whether it is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Whether a policy or another controller stands behind it; others are left as they are.
    pub fn is_managed(&self) -> bool {
        [label::POLICY_ID, label::CLUSTER_POLICY_ID, label::BINDING_MANAGED_BY]
            .iter()
            .any(|key| self.label(key).is_some())
    }

    /// Whether it is for this template, not for a former one of its name.
    pub fn is_of(&self, template: &Value) -> bool {
        self.spec.resource.uid == template["metadata"]["uid"]
    }

    /// Whether a lazy policy was activated by an older state of the template than this one.
    pub fn is_behind(&self, template: &Value) -> bool {
        self.annotation(ACTIVATED_BY).is_some_and(|mark| mark != templates::mark(template))
    }

    /// Notes the state of the template that a lazy policy was activated by.
    pub fn note_activation(&mut self, template: &Value) {
        self.annotate(ACTIVATED_BY, templates::mark(template));
    }

    /// Whether a policy holds it.
    pub fn is_claimed(&self) -> bool {
        [label::POLICY_ID, label::CLUSTER_POLICY_ID].iter().any(|key| self.label(key).is_some())
    }

    /// Its generation.
    pub fn generation(&self) -> i64 {
        self.metadata.generation.unwrap_or_default()
    }

    /// The placement of the last decision.
    pub fn applied_placement(&self) -> Option<Placement> {
        serde_json::from_str(self.annotation(annotation::APPLIED_PLACEMENT)?).ok()
    }

    /// The finalizer that keeps it until its works are gone.
    pub fn finalizer(&self) -> &'static str {
        if self.key().is_namespaced() { finalizer::BINDING } else { finalizer::CLUSTER_BINDING }
    }

    /// The clusters that take the template: its own and those of the bindings it goes along with.
    pub fn targets(&self) -> BTreeMap<&str, i32> {
        let mut all: BTreeMap<&str, i32> = BTreeMap::new();
        for snapshot in &self.spec.required_by {
            for cluster in &snapshot.clusters {
                all.entry(&cluster.name).or_insert(0);
            }
        }
        for cluster in &self.spec.clusters {
            all.insert(&cluster.name, cluster.replicas);
        }
        all
    }
}

/// What decides who has to look at a binding; read without the rest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Traits {
    /// The template.
    pub resource: ObjectReference,
    /// Whether it takes dependencies along.
    pub propagates: bool,
    /// Whether it leaves clusters.
    pub leaves: bool,
    /// Its place in the scheduler's queue.
    pub priority: i32,
    /// The groups it heeds.
    pub groups: WorkloadAffinityGroups,
    /// What it takes along, as it is written down.
    pub takes_along: Option<String>,
}

impl Traits {
    /// Reads them as an informer has the binding.
    pub fn of(item: &Item) -> Self {
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Spec {
            resource: ObjectReference,
            #[serde(default)]
            propagate_deps: bool,
            #[serde(default)]
            graceful_eviction_tasks: Vec<serde::de::IgnoredAny>,
            schedule_priority: Option<BindingPriority>,
            workload_affinity_groups: Option<WorkloadAffinityGroups>,
        }
        #[derive(Default, Deserialize)]
        struct Notes {
            #[serde(rename = "resourcebinding.karmada.io/dependencies")]
            dependencies: Option<String>,
        }
        #[derive(Default, Deserialize)]
        struct Metadata {
            #[serde(default)]
            annotations: Notes,
        }
        #[derive(Default, Deserialize)]
        struct Only {
            metadata: Metadata,
            spec: Spec,
        }
        let Only { metadata, spec } = item.decode().unwrap_or_default();
        Self {
            resource: spec.resource,
            propagates: spec.propagate_deps,
            leaves: !spec.graceful_eviction_tasks.is_empty(),
            priority: spec.schedule_priority.map(|priority| priority.priority).unwrap_or_default(),
            groups: spec.workload_affinity_groups.unwrap_or_default(),
            takes_along: metadata.annotations.dependencies,
        }
    }
}

/// What the interpreter says of a template.
#[derive(Clone, Debug, Default)]
pub struct Meaning {
    /// Wanted replicas and what each needs, for workloads.
    pub replicas: Option<(i64, Option<Requirements>)>,
    /// The pod templates of a workload with several.
    pub components: Vec<Component>,
}

impl Meaning {
    /// Asks the interpreter.
    pub fn of(template: &Value, interpreter: &Interpreter) -> Result<Self, atoll_interpreter::Error> {
        Ok(Self {
            replicas: interpreter.replicas(template)?,
            components: interpreter.components(template)?.unwrap_or_default(),
        })
    }
}

/// The place in the scheduler's queue, resolved from its class.
#[derive(Copy, Clone, Debug)]
pub struct Priority(pub i32);

/// A binding without policy for a template; the identity of an existing one is kept.
pub fn bare(template: &Value, existing: Option<&Binding>, id: impl FnOnce() -> String) -> Binding {
    let meta = &template["metadata"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (kind, name, namespace) = (text(&template["kind"]), text(&meta["name"]), text(&meta["namespace"]));
    let mut binding = existing.cloned().unwrap_or_default();
    binding.metadata.name = Some(atoll_api::names::binding(&kind, &name));
    binding.metadata.namespace = (!namespace.is_empty()).then_some(namespace.clone());
    let id_label = if namespace.is_empty() { label::CLUSTER_BINDING_ID } else { label::BINDING_ID };
    binding.metadata.labels.get_or_insert_default().entry(id_label.to_owned()).or_insert_with(id);
    let own = binding.finalizer().to_owned();
    let finalizers = binding.metadata.finalizers.get_or_insert_default();
    if !finalizers.contains(&own) {
        finalizers.push(own);
    }
    let api_version = text(&template["apiVersion"]);
    let uid = text(&meta["uid"]);
    binding.metadata.owner_references = Some(vec![OwnerReference {
        api_version: api_version.clone(),
        kind: kind.clone(),
        name: name.clone(),
        uid: uid.clone(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }]);
    // The seen version alone is no reason to write: works follow the template itself.
    let seen = existing.map(|binding| binding.spec.resource.resource_version.clone()).filter(|seen| !seen.is_empty());
    binding.spec.resource = ObjectReference {
        api_version,
        kind,
        namespace,
        name,
        uid,
        resource_version: seen.unwrap_or_else(|| text(&meta["resourceVersion"])),
    };
    binding
}

/// Writes what the interpreter says of the template.
pub fn describe(binding: &mut Binding, meaning: &Meaning) {
    let spec = &mut binding.spec;
    spec.components.clone_from(&meaning.components);
    let Some((replicas, requirements)) = &meaning.replicas else {
        spec.replicas = 0;
        spec.replica_requirements = None;
        return;
    };
    spec.replicas = i32::try_from(*replicas).unwrap_or(i32::MAX);
    spec.replica_requirements = requirements.as_ref().map(|requirements| ReplicaRequirements {
        node_claim: requirements.node_claim.clone(),
        resource_request: requirements.requests.clone(),
        namespace: spec.resource.namespace.clone(),
        priority_class_name: requirements.priority_class.clone(),
    });
}

/// The binding of a template under a policy. Decisions of an existing one stay.
pub fn build(
    template: &Value,
    policy: &Policy,
    meaning: &Meaning,
    priority: Option<Priority>,
    existing: Option<&Binding>,
    id: impl FnOnce() -> String,
) -> Binding {
    let mut binding = bare(template, existing, id);
    describe(&mut binding, meaning);
    claim(&mut binding, policy);
    if policy.is_lazy() {
        binding.note_activation(template);
    } else if let Some(annotations) = &mut binding.metadata.annotations {
        annotations.remove(ACTIVATED_BY);
    }
    let (spec, from) = (&mut binding.spec, &policy.spec);
    spec.propagate_deps = from.propagate_deps;
    spec.placement = Some(from.placement.clone());
    spec.scheduler_name.clone_from(&from.scheduler_name);
    spec.failover.clone_from(&from.failover);
    spec.conflict_resolution = from.conflict_resolution;
    spec.preserve_resources_on_deletion = from.preserve_resources_on_deletion;
    spec.schedule_priority = priority.map(|Priority(priority)| BindingPriority { priority });
    spec.suspension = suspension(from.suspension.as_ref(), spec.suspension.as_ref());
    spec.workload_affinity_groups = groups(template, &from.placement);
    binding
}

fn claim(binding: &mut Binding, policy: &Policy) {
    let claim = policy.claim();
    unclaim(binding);
    binding.metadata.labels.get_or_insert_default().insert(claim.label().to_owned(), claim.id.to_string());
    for (key, value) in claim.annotations() {
        binding.annotate(key, value.to_owned());
    }
}

/// Removes the claim of any policy.
pub fn unclaim(binding: &mut Binding) {
    if let Some(labels) = &mut binding.metadata.labels {
        labels.remove(label::POLICY_ID);
        labels.remove(label::CLUSTER_POLICY_ID);
    }
    if let Some(annotations) = &mut binding.metadata.annotations {
        for key in [annotation::POLICY_NAMESPACE, annotation::POLICY_NAME, annotation::CLUSTER_POLICY_NAME] {
            annotations.remove(key);
        }
    }
}

/// Dispatching is the policy's business, scheduling is set by others and stays.
fn suspension(policy: Option<&Suspension>, present: Option<&BindingSuspension>) -> Option<BindingSuspension> {
    let merged = BindingSuspension {
        dispatching: policy.and_then(|suspension| suspension.dispatching),
        dispatching_on_clusters: policy.and_then(|suspension| suspension.dispatching_on_clusters.clone()),
        scheduling: present.and_then(|suspension| suspension.scheduling),
    };
    (merged != BindingSuspension::default()).then_some(merged)
}

fn groups(template: &Value, placement: &Placement) -> Option<WorkloadAffinityGroups> {
    let affinity = placement.workload_affinity.as_ref()?;
    let group = |key: Option<&str>| {
        let key = key?;
        let value = template["metadata"]["labels"][key].as_str()?;
        Some(format!("{key}={value}"))
    };
    let groups = WorkloadAffinityGroups {
        affinity_group: group(affinity.affinity.as_ref().map(|term| term.group_by_label_key.as_str()))
            .unwrap_or_default(),
        anti_affinity_group: group(affinity.anti_affinity.as_ref().map(|term| term.group_by_label_key.as_str()))
            .unwrap_or_default(),
    };
    (groups != WorkloadAffinityGroups::default()).then_some(groups)
}

/// The object about which events of a binding are told.
pub fn about(binding: &Binding) -> Value {
    let value = binding.to_value();
    json!({"apiVersion": value["apiVersion"], "kind": value["kind"], "metadata": value["metadata"]})
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use atoll_api::work::TargetCluster;

    use super::*;

    fn policy(spec: Value) -> Policy {
        let mut all = json!({"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}]});
        atoll_patch::merge_patch(&mut all, &spec);
        let tree = json!({"metadata": {"name": "p", "namespace": "default", "uid": "pid"}, "spec": all});
        Policy::of(&Item::of(&tree).unwrap()).unwrap()
    }

    fn template() -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment",
               "metadata": {"name": "Web:1", "namespace": "default", "uid": "u", "resourceVersion": "7", "labels": {"team": "a"}},
               "spec": {"replicas": 3}})
    }

    fn meaning() -> Meaning {
        Meaning { replicas: Some((3, Some(Requirements::default()))), components: Vec::new() }
    }

    #[test]
    fn a_binding_says_what_the_policy_and_the_template_say() {
        let policy = policy(json!({
            "propagateDeps": true, "conflictResolution": "Overwrite", "preserveResourcesOnDeletion": true,
            "suspension": {"dispatching": true},
            "placement": {"workloadAffinity": {"affinity": {"groupByLabelKey": "team"}}},
        }));
        let binding = build(&template(), &policy, &meaning(), Some(Priority(4)), None, || "bid".to_owned());
        let value = binding.to_value();
        assert_eq!(value["metadata"]["name"], "web.1-deployment");
        assert_eq!(value["metadata"]["finalizers"], json!(["karmada.io/binding-controller"]));
        assert_eq!(value["metadata"]["labels"], json!({label::BINDING_ID: "bid", label::POLICY_ID: "pid"}));
        assert_eq!(value["metadata"]["ownerReferences"][0]["uid"], "u");
        let spec = &value["spec"];
        assert_eq!(spec["resource"]["resourceVersion"], "7");
        assert_eq!((&spec["replicas"], &spec["propagateDeps"]), (&json!(3), &json!(true)));
        assert_eq!(spec["replicaRequirements"]["namespace"], "default");
        assert_eq!(spec["suspension"]["dispatching"], true);
        assert_eq!(spec["schedulePriority"]["priority"], 4);
        assert_eq!(spec["workloadAffinityGroups"]["affinityGroup"], "team=a");
        assert_eq!(spec["schedulerName"], "default-scheduler");
    }

    #[test]
    fn decisions_and_scheduling_suspension_outlive_a_change_of_the_policy() {
        let mut first = build(&template(), &policy(json!({})), &meaning(), None, None, || "bid".to_owned());
        first.spec.clusters = vec![TargetCluster { name: "m1".into(), replicas: 3, ..TargetCluster::default() }];
        first.spec.suspension = Some(BindingSuspension { scheduling: Some(true), ..BindingSuspension::default() });
        let mut newer = template();
        newer["metadata"]["resourceVersion"] = "9".into();
        let second = build(&newer, &policy(json!({})), &meaning(), None, Some(&first), || "other".to_owned());
        assert_eq!(second, first);
    }
}
