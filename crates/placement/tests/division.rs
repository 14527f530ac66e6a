//! How replicas are shared out: cases worked out by hand from the rules.
#![allow(clippy::unwrap_used)]

mod world;

use std::collections::HashMap;

use atoll_api::policy::{ClusterAffinityTerm, OverflowAffinityTerm, Placement, SpreadField};
use atoll_placement::{Cluster, Component, Options, Request, Requirements, Snapshot, decide};
use world::*;

fn three(rooms: [i64; 3]) -> Vec<Cluster> {
    ["m1", "m2", "m3"].into_iter().zip(rooms).map(|(name, room)| cluster(name, room)).collect()
}

#[test]
fn duplicated_gives_every_cluster_all_replicas() {
    let decision = decide_for(&three([1, 0, 9]), &binding(&duplicated(), 5, &[]));
    assert_eq!(short(&decision), "m1=5 m2=5 m3=5");
    let decision = decide_for(&three([1, 0, 9]), &binding(&Placement::default(), 5, &[]));
    assert_eq!(short(&decision), "m1=5 m2=5 m3=5", "no strategy is the same");
}

#[test]
fn what_is_no_workload_goes_to_all_clusters_without_replicas() {
    for placement in [duplicated(), dynamic(), aggregated(), fixed(&[("m1", 1)])] {
        assert_eq!(short(&decide_for(&three([0, 0, 0]), &binding(&placement, 0, &[]))), "m1=0 m2=0 m3=0");
    }
}

#[test]
fn static_weights_divide_in_proportion() {
    for (weights, replicas, expected) in [
        (&[("m1", 1), ("m2", 2)][..], 9, "m1=3 m2=6"),
        (&[("m1", 1), ("m2", 3)], 9, "m1=2 m2=7"),
        (&[("m1", 1), ("m2", 1), ("m3", 1)], 5, "m1=2 m2=2 m3=1"),
        (&[("m1", 1), ("m2", 1), ("m3", 1)], 2, "m1=1 m2=1"),
        (&[("m1", 3), ("m2", 2), ("m3", 1)], 12, "m1=6 m2=4 m3=2"),
        (&[("m1", 1), ("m1", 5), ("m2", 1)], 6, "m1=5 m2=1"),
        (&[("other", 1)], 3, "m1=1 m2=1 m3=1"),
        (&[], 3, "m1=1 m2=1 m3=1"),
    ] {
        let decision = decide_for(&three([0, 0, 0]), &binding(&fixed(weights), replicas, &[]));
        assert_eq!(short(&decision), expected, "{weights:?} {replicas}");
    }
    let decision = decide_for(&three([0, 0, 0]), &binding(&fixed(&[("m1", 1)]), 2, &[]));
    assert_eq!(why(&decision, "m2"), "ReplicaAssignment: no entry of staticWeightList names it");
}

#[test]
fn static_weights_ignore_the_last_decision() {
    let spec = binding(&fixed(&[("m1", 1), ("m2", 1)]), 4, &[("m1", 4)]);
    assert_eq!(short(&decide_for(&three([0, 0, 0]), &spec)), "m1=2 m2=2");
}

#[test]
fn dynamic_weights_divide_by_room() {
    for (rooms, replicas, expected) in [
        ([6, 3, 1], 10, "m1=6 m2=3 m3=1"),
        ([12, 6, 0], 9, "m1=6 m2=3"),
        ([10, 10, 10], 4, "m1=2 m2=1 m3=1"),
        ([5, 4, 0], 7, "m1=4 m2=3"),
        ([1, 1, 1], 4, "3 clusters have room for 3 replicas, 4 needed"),
    ] {
        assert_eq!(short(&decide_for(&three(rooms), &binding(&dynamic(), replicas, &[]))), expected, "{rooms:?}");
    }
}

#[test]
fn ties_are_broken_by_the_uid_of_the_template() {
    let mut spec = binding(&dynamic(), 5, &[]);
    let clusters = &three([10, 10, 0])[..2];
    assert_eq!(short(&decide_for(clusters, &spec)), "m1=3 m2=2");
    let results = ["a", "b", "c", "d"].map(|uid| {
        spec.resource.uid = uid.to_owned();
        let odd = atoll_api::names::fnv1a_32(uid.as_bytes()) % 2 == 1;
        assert_eq!(short(&decide_for(clusters, &spec)), if odd { "m1=2 m2=3" } else { "m1=3 m2=2" }, "{uid}");
        odd
    });
    assert!(results.contains(&true) && results.contains(&false));
}

#[test]
fn aggregated_takes_as_few_clusters_as_have_room() {
    for (rooms, replicas, expected) in [
        ([3, 5, 4], 5, "m2=5"),
        ([3, 5, 4], 7, "m2=4 m3=3"),
        ([3, 5, 4], 12, "m1=3 m2=5 m3=4"),
        ([4, 4, 4], 3, "m1=3"),
        ([3, 5, 4], 13, "3 clusters have room for 12 replicas, 13 needed"),
    ] {
        assert_eq!(short(&decide_for(&three(rooms), &binding(&aggregated(), replicas, &[]))), expected, "{rooms:?}");
    }
}

#[test]
fn more_replicas_are_added_to_what_there_is() {
    // Room is what is left beside the running replicas.
    let spec = binding(&dynamic(), 9, &[("m1", 3), ("m2", 1)]);
    assert_eq!(short(&decide_for(&three([1, 4, 0]), &spec)), "m1=4 m2=5");
    let spec = binding(&aggregated(), 6, &[("m1", 3)]);
    assert_eq!(short(&decide_for(&three([3, 9, 9]), &spec)), "m1=6", "the one that has some goes first");
    let spec = binding(&aggregated(), 8, &[("m1", 3)]);
    assert_eq!(short(&decide_for(&three([3, 9, 9]), &spec)), "m1=4 m2=4", "then the roomiest: 5 by 3 to 9");
}

#[test]
fn fewer_replicas_are_taken_from_all_in_proportion() {
    let spec = binding(&dynamic(), 6, &[("m1", 8), ("m2", 4)]);
    assert_eq!(short(&decide_for(&three([0, 0, 99]), &spec)), "m1=4 m2=2");
    let spec = binding(&aggregated(), 6, &[("m1", 8), ("m2", 4)]);
    assert_eq!(short(&decide_for(&three([0, 0, 99]), &spec)), "m1=6");
}

#[test]
fn the_same_number_of_replicas_stays_where_it_is() {
    for placement in [dynamic(), aggregated()] {
        let spec = binding(&placement, 5, &[("m1", 1), ("m3", 4)]);
        assert_eq!(short(&decide_for(&three([0, 99, 0]), &spec)), "m1=1 m3=4");
    }
}

#[test]
fn a_fresh_decision_counts_running_replicas_as_room() {
    let spec = binding(&dynamic(), 6, &[("m1", 6)]);
    assert_eq!(short(&decide_for(&three([0, 6, 6]), &spec)), "m1=6");
    assert_eq!(short(&decide_fresh(&three([0, 6, 6]), &spec)), "m1=2 m2=2 m3=2");
}

#[test]
fn replicas_of_a_lost_cluster_go_to_the_others() {
    let spec = binding(&dynamic(), 9, &[("m1", 3), ("m2", 3), ("m3", 3)]);
    let lost = Snapshot::new(three([9, 0, 3])).without("m1");
    assert_eq!(short(&decide(&lost, &Request::of(&spec, None))), "m2=3 m3=6");
    let clusters = Snapshot::new(three([9, 3, 3]));
    let mut evicted = spec.clone();
    evicted
        .graceful_eviction_tasks
        .push(atoll_api::work::GracefulEvictionTask { from_cluster: "m1".to_owned(), ..Default::default() });
    let decision = decide(&clusters, &Request::of(&evicted, None));
    assert_eq!(short(&decision), "m2=5 m3=4");
    assert_eq!(why(&decision, "m1"), "ClusterEviction: is being evicted from");
}

#[test]
fn counted_room_limits_reported_room() {
    let snapshot = Snapshot::new(three([9, 9, 9]));
    let spec = binding(&dynamic(), 9, &[]);
    let estimates = HashMap::from([("m1".into(), 3), ("m2".into(), -1), ("m3".into(), 99)]);
    let request = Request { estimates: Some(&estimates), ..Request::of(&spec, None) };
    assert_eq!(short(&decide(&snapshot, &request)), "m1=1 m2=4 m3=4");
}

fn with_overflow() -> Placement {
    let overflow = |name: &str, clusters: &[&str]| OverflowAffinityTerm {
        affinity_name: name.to_owned(),
        affinity: names(clusters),
    };
    Placement {
        cluster_affinities: vec![ClusterAffinityTerm {
            affinity_name: "own".to_owned(),
            affinity: names(&["m1"]),
            overflow_affinities: vec![overflow("near", &["m1", "m2"]), overflow("far", &["m3"])],
        }],
        ..dynamic()
    }
}

#[test]
fn overflow_is_used_only_when_what_comes_before_is_full() {
    for (replicas, expected) in
        [(4, "m1=4"), (7, "m1=5 m2=2"), (10, "m1=5 m2=3 m3=2"), (19, "3 clusters have room for 18 replicas, 19 needed")]
    {
        assert_eq!(short(&decide_for(&three([5, 3, 10]), &binding(&with_overflow(), replicas, &[]))), expected);
    }
}

#[test]
fn overflow_is_given_up_first() {
    let running = [("m1", 5), ("m2", 3), ("m3", 2)];
    for (replicas, expected) in [(9, "m1=5 m2=3 m3=1"), (6, "m1=5 m2=1"), (3, "m1=3")] {
        assert_eq!(short(&decide_for(&three([0, 0, 8]), &binding(&with_overflow(), replicas, &running))), expected);
    }
}

#[test]
fn what_has_room_again_ahead_of_the_overflow_moves_there() {
    let running = [("m1", 3), ("m2", 2)];
    for (room, expected) in [([5, 9, 9], "m1=5"), ([1, 9, 9], "m1=4 m2=1"), ([0, 9, 9], "m1=3 m2=2")] {
        assert_eq!(short(&decide_for(&three(room), &binding(&with_overflow(), 5, &running))), expected, "{room:?}");
    }
}

#[test]
fn among_equals_replicas_go_by_name_not_by_room() {
    let running = [("m1", 4), ("m2", 4)];
    assert_eq!(short(&decide_for(&three([0, 9, 0]), &binding(&aggregated(), 3, &running))), "m1=3");
}

#[test]
fn weights_that_name_no_cluster_leave_the_spread_its_say() {
    let few = vec![by(SpreadField::Cluster, 1, 2)];
    for (preference, expected) in [(Some(Default::default()), "m1=2 m2=2"), (None, "m1=2 m2=1 m3=1")] {
        let placement = Placement { spread_constraints: few.clone(), ..weighted(preference) };
        assert_eq!(short(&decide_for(&three([9, 9, 9]), &binding(&placement, 4, &[]))), expected);
    }
}

#[test]
fn what_is_no_workload_does_not_overflow() {
    let decision = decide_for(&three([5, 3, 10]), &binding(&with_overflow(), 0, &[]));
    assert_eq!(short(&decision), "m1=0");
    assert_eq!(why(&decision, "m2"), "ClusterAffinity: not named in clusterNames");
}

#[test]
fn empty_workloads_are_kept_when_asked_for() {
    let spec = binding(&dynamic(), 1, &[]);
    let options = Options { empty_workloads: true, ..Options::default() };
    let request = Request { options, ..Request::of(&spec, None) };
    assert_eq!(short(&decide(&Snapshot::new(three([9, 1, 0])), &request)), "m1=1 m2=0 m3=0");
}

#[test]
fn whole_sets_of_components_need_one_cluster_with_room_for_all() {
    let sized = |name: &str, pods, cpu| Cluster {
        capacity: atoll_placement::Capacity::new(pods, [("cpu", cpu)]),
        ..cluster(name, pods)
    };
    let clusters = [sized("m1", 10, "3"), sized("m2", 10, "5"), sized("m3", 2, "99")];
    let one = Placement { spread_constraints: vec![by(SpreadField::Cluster, 1, 1)], ..aggregated() };
    let mut spec = binding(&one, 0, &[]);
    spec.components = vec![Default::default()];
    let component = |name: &str, replicas, cpu| Component {
        name: name.to_owned(),
        replicas,
        requirements: Some(Requirements::new([("cpu", cpu)])),
    };
    let components = vec![component("head", 1, "1"), component("worker", 2, "1500m")];
    let options = Options { components: true, ..Options::default() };
    let request = Request { components: components.clone(), options, ..Request::of(&spec, None) };
    let decision = decide(&Snapshot::new(clusters), &request);
    assert_eq!(short(&decision), "m2=0");
    let targets = request.targets(&decision);
    assert_eq!(targets[0].components.len(), 2);
    let none = Snapshot::new([sized("m1", 10, "3")]);
    assert_eq!(short(&decide(&none, &request)), "1 clusters have room for 0 replicas, 1 needed");
    // The same in one region.
    let mut regional = Placement { spread_constraints: vec![by(SpreadField::Region, 1, 1)], ..one.clone() };
    regional.spread_constraints.extend(one.spread_constraints.clone());
    let [small, large] =
        [sized("m1", 10, "3"), sized("m2", 10, "9")].map(|it| Cluster { region: "a".to_owned(), ..it });
    let request = Request { placement: &regional, ..request };
    assert_eq!(short(&decide(&Snapshot::new([small, large]), &request)), "m2=0");
    // A copy does not ask for room, nor does one in parts.
    let copied = Placement { replica_scheduling: None, ..one.clone() };
    assert_eq!(short(&decide(&none, &Request { placement: &copied, ..request })), "m1=0");
}
