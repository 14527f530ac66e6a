//! How much room a cluster has by what it reports, and when a decision is due.
#![allow(clippy::unwrap_used)]

mod world;

use atoll_api::policy::Placement;
use atoll_api::work::{ResourceBindingSpec, ResourceBindingStatus};
use atoll_placement::{Capacity, Cluster, Requirements, Snapshot, Trigger, trigger};
use serde_json::{Value, json};
use world::*;

fn reported(spec: Value, summary: Value) -> atoll_api::cluster::Cluster {
    let mut cluster = json!({"metadata": {"name": "m1"}, "spec": {"syncMode": "Push"}, "status": {}});
    for (key, value) in spec.as_object().into_iter().flatten() {
        cluster["spec"][key] = value.clone();
    }
    if !summary.is_null() {
        cluster["status"]["resourceSummary"] = summary;
    }
    serde_json::from_value(cluster).unwrap()
}

#[test]
fn room_is_what_is_left_of_the_scarcest_resource() {
    let summary = json!({
        "allocatable": {"cpu": "10", "memory": "20Gi", "pods": 110, "nvidia.com/gpu": "2"},
        "allocated": {"cpu": "4", "memory": "2Gi", "pods": "10"},
        "allocating": {"cpu": "1500m", "pods": "1"},
    });
    let capacity = Capacity::of(&reported(json!({}), summary));
    for (requests, expected) in [
        (&[][..], 99),
        (&[("cpu", "1")], 4),
        (&[("cpu", "500m")], 9),
        (&[("cpu", "100m"), ("memory", "1Gi")], 18),
        (&[("nvidia.com/gpu", "1")], 2),
        (&[("example.com/none", "1")], 0),
        (&[("cpu", "0")], 99),
        (&[("cpu", "1m")], 99),
        (&[("cpu", "nonsense")], 0),
    ] {
        let requirements = Requirements::new(requests.iter().copied());
        assert_eq!(capacity.replicas(Some(&requirements)), expected, "{requests:?}");
    }
    assert_eq!(capacity.replicas(None), 99);
}

#[test]
fn without_a_report_there_is_no_room() {
    assert_eq!(Capacity::of(&reported(json!({}), Value::Null)).replicas(None), 0);
    let full = json!({"allocatable": {"pods": "10"}, "allocated": {"pods": "12"}});
    assert_eq!(Capacity::of(&reported(json!({}), full)).replicas(None), 0);
}

#[test]
fn grades_of_nodes_say_more_than_the_sum() {
    let range = |name: &str, min: &str| json!({"name": name, "min": min, "max": "1000"});
    let grade = |grade: i64, cpu: &str, memory: &str| json!({"grade": grade, "ranges": [range("cpu", cpu), range("memory", memory)]});
    let models = json!({"resourceModels": [grade(0, "0", "0"), grade(1, "1", "4Gi"), grade(2, "2", "16Gi")]});
    let summary = json!({
        "allocatable": {"cpu": "100", "memory": "100Gi", "pods": "300", "nvidia.com/gpu": "2"},
        "allocatableModelings": [{"grade": 0, "count": 5}, {"grade": 1, "count": 3}, {"grade": 2, "count": 2}],
    });
    let capacity = Capacity::of(&reported(models, summary));
    for (requests, expected) in [
        (&[("cpu", "1")][..], 3 + 2 * 2),
        (&[("cpu", "500m"), ("memory", "4Gi")], 3 + 2 * 4),
        (&[("cpu", "1500m")], 2),
        (&[("cpu", "3")], 0),
        (&[("cpu", "1m")], 300),
        (&[("example.com/none", "1")], 0),
        // The sum has them, but no grade does.
        (&[("nvidia.com/gpu", "1")], 0),
        (&[], 300),
    ] {
        assert_eq!(capacity.replicas(Some(&Requirements::new(requests.iter().copied()))), expected, "{requests:?}");
    }
}

#[test]
fn a_node_of_a_grade_takes_a_limited_number_of_pods() {
    let models = json!({"resourceModels": [{"grade": 0, "ranges": [{"name": "cpu", "min": "4", "max": "8"}]}]});
    let summary = json!({"allocatable": {"pods": "1000"}, "allocatableModelings": [{"grade": 0, "count": 2}]});
    let capacity = Capacity::of(&reported(models, summary.clone()));
    assert_eq!(capacity.replicas(Some(&Requirements::default())), 220);
    assert_eq!(capacity.replicas(None), 1000, "what needs nothing known is judged by the sum");
    let uncounted = Capacity::of(&reported(json!({}), summary));
    assert_eq!(uncounted.replicas(Some(&Requirements::default())), 1000);
}

#[test]
fn sets_of_components_go_to_nodes_one_by_one() {
    let grade = |grade: i64, cpu: &str| json!({"grade": grade, "ranges": [{"name": "cpu", "min": cpu, "max": "99"}]});
    let models = json!({"resourceModels": [grade(2, "4"), grade(1, "2")]});
    let summary = json!({
        "allocatable": {"cpu": "100", "pods": "300"},
        "allocatableModelings": [{"grade": 1, "count": 2}, {"grade": 2, "count": 1}],
    });
    let capacity = Capacity::of(&reported(models, summary));
    let of = |cpu: &'static str| Requirements::new([("cpu", cpu)]);
    for (components, expected) in [
        // Two nodes of 2 cores and one of 4: by the sum of 8 cores there would be one more each time.
        (vec![(1, of("3"))], 1),
        (vec![(1, of("1")), (1, of("2"))], 2),
        (vec![(2, of("2"))], 2),
        (vec![(3, of("1")), (1, of("500m"))], 2),
        (vec![(1, of("5"))], 0),
        (vec![(0, of("5"))], 300),
    ] {
        let sets = capacity.sets(components.iter().map(|(replicas, requirements)| (*replicas, Some(requirements))));
        assert_eq!(sets, expected, "{components:?}");
    }
}

#[test]
fn sets_are_counted_in_bounds_whatever_a_cluster_reports() {
    let models = json!({"resourceModels": [{"grade": 0, "ranges": [{"name": "cpu", "min": "4", "max": "8"}]}]});
    let count = json!({"grade": 0, "count": i64::MAX});
    let summary = json!({
        "allocatable": {"cpu": "1000000000000", "pods": "1000000000000000"}, "allocatableModelings": [count, count],
    });
    let capacity = Capacity::of(&reported(models, summary));
    let one = Requirements::new([("cpu", "4")]);
    assert_eq!(capacity.sets([(1, Some(&one))]), 100_000);
    assert_eq!(capacity.sets([(i64::from(i32::MAX), Some(&one))]), 0, "more than any cluster has nodes");
    assert_eq!(capacity.replicas(Some(&one)), 1_000_000_000_000_000, "no node is looked at");
}

#[test]
fn a_cluster_is_read_with_all_that_matters() {
    let cluster: atoll_api::cluster::Cluster = serde_json::from_value(json!({
        "metadata": {"name": "m1", "labels": {"a": "b"}, "deletionTimestamp": "2025-01-01T00:00:00Z"},
        "spec": {
            "syncMode": "Pull", "provider": "p", "region": "r", "zone": "z",
            "taints": [{"key": "k", "effect": "NoSchedule"}],
        },
        "status": {"apiEnablements": [{"groupVersion": "apps/v1", "resources": [{"name": "deployments", "kind": "Deployment"}]}]},
    }))
    .unwrap();
    let cluster = Cluster::from(&cluster);
    assert_eq!((cluster.provider.as_str(), cluster.region.as_str()), ("p", "r"));
    assert_eq!(cluster.zones, ["z"]);
    assert!(cluster.deleting && cluster.taints[0].is_hard());
    assert!(cluster.serves("apps/v1/Deployment") && !cluster.serves("apps/v1/StatefulSet"));
}

fn due(spec: &ResourceBindingSpec, status: &Value, applied: Option<&Placement>) -> Option<Trigger> {
    let status: ResourceBindingStatus = serde_json::from_value(status.clone()).unwrap();
    let deleting = Cluster { deleting: true, ..cluster("m9", 1) };
    trigger(&Snapshot::new([cluster("m1", 9), cluster("m2", 9), deleting]), spec, Some(&status), applied)
}

#[test]
fn a_divided_workload_is_decided_only_when_something_changed() {
    let (placement, none) = (dynamic(), json!({}));
    let spec = binding(&placement, 5, &[("m1", 2), ("m2", 3)]);
    assert_eq!(due(&spec, &none, Some(&placement)), None);
    assert_eq!(due(&spec, &none, None), Some(Trigger::PlacementChanged));
    assert_eq!(due(&spec, &none, Some(&aggregated())), Some(Trigger::PlacementChanged));
    let grown = binding(&placement, 6, &[("m1", 2), ("m2", 3)]);
    assert_eq!(due(&grown, &none, Some(&placement)), Some(Trigger::ReplicasChanged));
    let leaving = binding(&placement, 5, &[("m1", 2), ("m9", 3)]);
    assert_eq!(due(&leaving, &none, Some(&placement)), Some(Trigger::ClusterDeleting));
    let mut asked = spec.clone();
    asked.reschedule_triggered_at = serde_json::from_value(json!("2025-01-02T00:00:00Z")).unwrap();
    for (last, expected) in [("2025-01-01T00:00:00Z", Some(Trigger::Requested)), ("2025-01-03T00:00:00Z", None)] {
        assert_eq!(due(&asked, &json!({"lastScheduledTime": last}), Some(&placement)), expected);
    }
}

#[test]
fn copies_are_always_decided_anew() {
    let (divided, copied) = (dynamic(), duplicated());
    let none = json!({});
    assert_eq!(due(&binding(&copied, 5, &[("m1", 5)]), &none, Some(&copied)), Some(Trigger::Copied));
    assert_eq!(due(&binding(&copied, 5, &[("m1", 4)]), &none, Some(&copied)), Some(Trigger::ReplicasChanged));
    assert_eq!(due(&binding(&divided, 0, &[("m1", 0)]), &none, Some(&divided)), Some(Trigger::Copied));
}

#[test]
fn of_the_affinity_terms_only_the_one_in_use_matters() {
    let terms = |backup: &str| -> Placement {
        let mut placement = dynamic();
        placement.cluster_affinities = serde_json::from_value(json!([
            {"affinityName": "local", "clusterNames": ["m1"]},
            {"affinityName": "backup", "clusterNames": [backup]},
        ]))
        .unwrap();
        placement
    };
    let spec = binding(&terms("m2"), 5, &[("m1", 5)]);
    let observing = |name: &str| json!({"schedulerObservingAffinityName": name});
    assert_eq!(due(&spec, &observing("local"), Some(&terms("m3"))), None);
    assert_eq!(due(&spec, &observing("backup"), Some(&terms("m3"))), Some(Trigger::PlacementChanged));
    assert_eq!(due(&spec, &observing("gone"), Some(&terms("m2"))), Some(Trigger::PlacementChanged));
}
