//! What every definition must have, and how objects are read and written.
#![allow(clippy::unwrap_used)]

use atoll_api::cluster::{Cluster, ClusterSyncMode};
use atoll_api::instance::{Instance, InstanceType};
use atoll_api::policy::{ConflictResolution, PreemptionBehavior, PropagationPolicy, ReplicaSchedulingType};
use atoll_api::work::{ResourceBinding, Work};
use atoll_api::{CrdSet, crds};
use serde_json::{Value, json};

const SETS: [CrdSet; 4] = [CrdSet::Karmada, CrdSet::Kubeocean, CrdSet::Clusterpedia, CrdSet::Atoll];

fn each_node(schema: &Value, visit: &mut impl FnMut(&Value)) {
    visit(schema);
    for inner in schema["properties"].as_object().into_iter().flat_map(|properties| properties.values()) {
        each_node(inner, visit);
    }
    for key in ["items", "additionalProperties"] {
        if schema[key].is_object() {
            each_node(&schema[key], visit);
        }
    }
}

#[test]
fn every_schema_is_structural() {
    for crd in SETS.into_iter().flat_map(crds) {
        let name = crd["metadata"]["name"].as_str().unwrap().to_owned();
        for version in crd["spec"]["versions"].as_array().unwrap() {
            each_node(&version["schema"]["openAPIV3Schema"], &mut |node| {
                let typed = node["type"].is_string()
                    || node["x-kubernetes-int-or-string"] == json!(true)
                    || node["x-kubernetes-preserve-unknown-fields"] == json!(true);
                assert!(typed, "{name}: a node without type: {node}");
                for key in ["$ref", "$defs", "nullable", "oneOf", "const", "description", "title"] {
                    assert!(node.get(key).is_none(), "{name}: {key} in {node}");
                }
            });
        }
    }
}

#[test]
fn exactly_one_version_of_a_kind_is_stored() {
    for crd in SETS.into_iter().flat_map(crds) {
        let stored = crd["spec"]["versions"].as_array().unwrap().iter().filter(|v| v["storage"] == json!(true));
        assert_eq!(stored.count(), 1, "{}", crd["metadata"]["name"]);
    }
}

#[test]
fn the_karmada_family_has_clusters_and_both_versions_of_bindings() {
    let crds = crds(CrdSet::Karmada);
    let named = |name: &str| crds.iter().find(|crd| crd["metadata"]["name"] == name).unwrap();
    assert_eq!(crds.len(), 20);
    let cluster = named("clusters.cluster.karmada.io");
    assert_eq!(cluster.pointer("/spec/scope"), Some(&json!("Cluster")));
    let properties = cluster.pointer("/spec/versions/0/schema/openAPIV3Schema/properties").unwrap();
    assert_eq!(properties.pointer("/spec/required"), Some(&json!(["syncMode"])));
    assert_eq!(properties.pointer("/spec/properties/syncMode/enum"), Some(&json!(["Push", "Pull"])));
    assert_eq!(properties.pointer("/spec/properties/id/maxLength"), Some(&json!(128000)));
    let versions = named("resourcebindings.work.karmada.io").pointer("/spec/versions").unwrap();
    assert_eq!((&versions[0]["name"], &versions[1]["name"]), (&json!("v1alpha1"), &json!("v1alpha2")));
}

#[test]
fn a_policy_read_from_a_bare_manifest_has_the_defaults() {
    let policy: PropagationPolicy = serde_json::from_value(json!({
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
            "placement": {
                "clusterAffinities": [{"affinityName": "a", "clusterNames": ["m1"], "overflowAffinities": [{"affinityName": "b", "exclude": ["m2"]}]}],
                "replicaScheduling": {},
            },
        },
    }))
    .unwrap();
    let spec = &policy.spec;
    assert_eq!(spec.priority, 0);
    assert_eq!(spec.preemption, PreemptionBehavior::Never);
    assert_eq!(spec.conflict_resolution, ConflictResolution::Abort);
    assert_eq!(spec.scheduler_name, "default-scheduler");
    let placement = &spec.placement;
    let strategy = placement.replica_scheduling.as_ref().unwrap();
    assert_eq!(strategy.replica_scheduling_type, ReplicaSchedulingType::Divided);
    let term = &placement.cluster_affinities[0];
    assert_eq!(term.affinity.cluster_names, ["m1"]);
    assert_eq!(term.overflow_affinities[0].affinity.exclude, ["m2"]);
}

#[test]
fn objects_are_written_as_they_were_read() {
    let binding = json!({
        "apiVersion": "work.karmada.io/v1alpha2",
        "kind": "ResourceBinding",
        "metadata": {"name": "web-deployment", "namespace": "default"},
        "spec": {
            "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web", "uid": "u"},
            "replicas": 3,
            "replicaRequirements": {"resourceRequest": {"cpu": "100m"}},
            "clusters": [{"name": "m1", "replicas": 3}],
            "conflictResolution": "Abort",
            "rescheduleTriggeredAt": "2025-01-01T00:00:00Z",
        },
        "status": {
            "schedulerObservingAffinityName": "a",
            "aggregatedStatus": [{"clusterName": "m1", "applied": true, "health": "Healthy", "status": {"replicas": 3}}],
        },
    });
    let typed: ResourceBinding = serde_json::from_value(binding.clone()).unwrap();
    assert_eq!(serde_json::to_value(&typed).unwrap(), binding);
    let work = json!({
        "apiVersion": "work.karmada.io/v1alpha1",
        "kind": "Work",
        "metadata": {"name": "web-1", "namespace": "karmada-es-m1"},
        "spec": {"workload": {"manifests": [{"kind": "Deployment", "spec": {"replicas": 3}}]}},
    });
    let typed: Work = serde_json::from_value(work.clone()).unwrap();
    assert_eq!(serde_json::to_value(&typed).unwrap(), work);
}

#[test]
fn quantities_may_be_numbers() {
    let cluster: Cluster = serde_json::from_value(json!({
        "metadata": {"name": "m1"},
        "spec": {
            "syncMode": "Pull",
            "insecureSkipTLSVerification": true,
            "proxyURL": "http://p",
            "resourceModels": [{"grade": 0, "ranges": [{"name": "cpu", "min": 0, "max": "1"}]}],
        },
    }))
    .unwrap();
    assert_eq!(cluster.spec.sync_mode, ClusterSyncMode::Pull);
    assert!(cluster.spec.insecure_skip_tls_verification);
    assert_eq!(cluster.spec.proxy_url, "http://p");
    assert_eq!(cluster.spec.resource_models[0].ranges[0].min.0, "0");
}

#[test]
fn an_instance_is_hosted_unless_it_says_otherwise() {
    let instance: Instance = serde_json::from_value(json!({"metadata": {"name": "team-a"}, "spec": {}})).unwrap();
    assert_eq!(instance.spec.r#type, InstanceType::Hosted);
    assert!(!instance.spec.paused && !instance.spec.deletion_protection);
    let refused = serde_json::from_value::<Instance>(json!({"metadata": {}, "spec": {"type": "Rented"}}));
    assert!(refused.is_err());
}

#[test]
fn purge_modes_have_older_names() {
    use atoll_api::policy::PurgeMode;
    let pairs = [("Immediately", PurgeMode::Directly), ("Graciously", PurgeMode::Gracefully)];
    for (older, mode) in pairs.into_iter().chain([("Never", PurgeMode::Never)]) {
        assert_eq!(serde_json::from_value::<PurgeMode>(json!(older)).unwrap(), mode);
    }
    for (kind, path) in [
        ("PropagationPolicy", "failover/properties/application/properties/purgeMode"),
        ("ResourceBinding", "gracefulEvictionTasks/items/properties/purgeMode"),
    ] {
        let crds = crds(CrdSet::Karmada);
        let crd = crds.iter().find(|crd| crd["spec"]["names"]["kind"] == kind).unwrap();
        let version = crd["spec"]["versions"].as_array().unwrap().last().unwrap();
        let values = format!("/schema/openAPIV3Schema/properties/spec/properties/{path}/enum");
        let values = version.pointer(&values).unwrap_or_else(|| panic!("{kind}: {path}"));
        assert_eq!(values, &json!(["Directly", "Gracefully", "Never", "Immediately", "Graciously"]), "{kind}");
    }
}

#[test]
fn what_the_older_binding_knows_survives_both_ways() {
    use atoll_api::work::{ResourceBindingV1Alpha1, conversions};
    let older = json!({
        "apiVersion": "work.karmada.io/v1alpha1",
        "kind": "ResourceBinding",
        "metadata": {"name": "web-deployment", "namespace": "default"},
        "spec": {
            "resource": {
                "apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web",
                "resourceVersion": "7", "replicas": 3, "resourcePerReplicas": {"cpu": "1"},
            },
            "clusters": [{"name": "m1", "replicas": 3}],
        },
        "status": {"aggregatedStatus": [{"clusterName": "m1", "applied": true, "status": {"replicas": 3}}]},
    });
    let conversion = conversions().into_iter().find(|own| own.kind == "ResourceBinding").unwrap();
    assert_eq!((conversion.version, conversion.storage), ("v1alpha1", "v1alpha2"));
    let mut tree = older.clone();
    (conversion.store)(&mut tree);
    let newer: ResourceBinding = serde_json::from_value(tree.clone()).unwrap();
    assert_eq!(newer.spec.replicas, 3);
    let requests = newer.spec.replica_requirements.as_ref().unwrap();
    assert_eq!(requests.resource_request["cpu"].0, "1");
    (conversion.show)(&mut tree);
    assert_eq!(tree, older);
    let typed: ResourceBindingV1Alpha1 = serde_json::from_value(tree).unwrap();
    assert_eq!(serde_json::to_value(&typed).unwrap(), older);
}
