//! What more replicas and wider bounds never take away; and, by example, what they may.
#![allow(clippy::unwrap_used)]

mod world;

use std::collections::BTreeSet;

use atoll_api::policy::{ClusterAffinity, ClusterAffinityTerm, OverflowAffinityTerm, Placement, SpreadField};
use atoll_api::work::ResourceBindingSpec;
use atoll_placement::{Cluster, Decision, DecisionError};
use proptest::prelude::*;
use world::any::{clusters, placement, previous};
use world::*;

fn names(decision: &Decision) -> BTreeSet<String> {
    decision.clusters.iter().map(|target| target.name.to_string()).collect()
}

/// A binding with other replicas than another.
fn with_replicas(spec: &ResourceBindingSpec, replicas: i32) -> ResourceBindingSpec {
    ResourceBindingSpec { replicas, ..spec.clone() }
}

fn by_cluster_only(placement: &Placement) -> bool {
    placement.spread_constraints.iter().all(|it| it.spread_by_field == Some(SpreadField::Cluster))
}

fn weights() -> impl Strategy<Value = Placement> {
    prop::collection::vec(0_i64..9, 8).prop_map(|weights| {
        let named: Vec<String> = (0..weights.len()).map(|at| format!("m{at}")).collect();
        let entries: Vec<(&str, i64)> = named.iter().map(String::as_str).zip(weights).collect();
        fixed(&entries)
    })
}

fn targets(list: &[(String, i32)]) -> Vec<(&str, i32)> {
    list.iter().map(|(name, replicas)| (name.as_str(), *replicas)).collect()
}

/// Every cluster has at least what it had.
fn none_loses(world: &[Cluster], fewer: &Decision, more: &Decision) -> Result<(), TestCaseError> {
    for cluster in world {
        let (had, has) = (fewer.replicas_in(&cluster.name), more.replicas_in(&cluster.name));
        prop_assert!(had <= has, "{} from {had:?} to {has:?}", cluster.name);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn copies_are_whole_and_where_they_are_does_not_depend_on_how_many(
        world in clusters(), wanted in placement(), before in previous(), replicas in 1_i32..30, more in 1_i32..30,
    ) {
        let wanted = Placement { spread_constraints: wanted.spread_constraints, ..duplicated() };
        let spec = binding(&wanted, replicas, &targets(&before));
        let (fewer, more) = (decide_for(&world, &spec), decide_for(&world, &with_replicas(&spec, replicas + more)));
        prop_assert!(fewer.clusters.iter().all(|target| target.replicas == replicas));
        // Regions and other groups are taken by how many of their clusters have room, so there it may.
        if by_cluster_only(&wanted) {
            prop_assert_eq!(names(&fewer), names(&more));
            none_loses(&world, &fewer, &more)?;
        }
    }

    #[test]
    fn static_weights_take_nothing_away_when_replicas_grow(
        world in clusters(), wanted in weights(), spread in placement(), before in previous(),
        replicas in 1_i32..60, more in 1_i32..30, uid in "[a-f]{0,4}",
    ) {
        let wanted = Placement { spread_constraints: spread.spread_constraints, ..wanted };
        let mut spec = binding(&wanted, replicas, &targets(&before));
        spec.resource.uid = uid;
        none_loses(&world, &decide_for(&world, &spec), &decide_for(&world, &with_replicas(&spec, replicas + more)))?;
    }

    #[test]
    fn a_first_division_by_room_takes_nothing_away_when_replicas_grow(
        world in clusters(), replicas in 1_i32..60, more in 1_i32..30, uid in "[a-f]{0,4}",
    ) {
        let mut spec = binding(&dynamic(), replicas, &[]);
        spec.resource.uid = uid;
        let (fewer, more) = (decide_for(&world, &spec), decide_for(&world, &with_replicas(&spec, replicas + more)));
        if more.error.is_none() {
            none_loses(&world, &fewer, &more)?;
        }
    }

    #[test]
    fn few_clusters_are_the_fewest_and_only_become_more(
        world in clusters(), replicas in 1_i32..60, more in 1_i32..30,
    ) {
        let spec = binding(&aggregated(), replicas, &[]);
        let (fewer, more) = (decide_for(&world, &spec), decide_for(&world, &with_replicas(&spec, replicas + more)));
        if fewer.error.is_some() {
            return Ok(());
        }
        let mut room: Vec<i64> = fewer.reasons.iter().filter_map(|reason| reason.available).collect();
        room.sort_unstable_by(|a, b| b.cmp(a));
        let one_less: i64 = room.iter().take(fewer.clusters.len() - 1).sum();
        prop_assert!(one_less < i64::from(replicas), "{} would do", fewer.clusters.len() - 1);
        prop_assert!(more.error.is_some() || names(&fewer).is_subset(&names(&more)));
    }

    #[test]
    fn where_more_replicas_find_room_fewer_do(
        world in clusters(), wanted in placement(), before in previous(), replicas in 1_i32..60, more in 1_i32..30,
    ) {
        // Groups are taken by worth, which depends on how much is asked for.
        if !by_cluster_only(&wanted) {
            return Ok(());
        }
        let spec = binding(&wanted, replicas, &targets(&before));
        let (fewer, more) = (decide_for(&world, &spec), decide_for(&world, &with_replicas(&spec, replicas + more)));
        prop_assert!(more.error.is_some() || fewer.error.is_none(), "{:?}", fewer.error);
    }

    #[test]
    fn nothing_overflows_while_there_is_room_ahead(
        world in clusters(), wanted in prop_oneof![Just(dynamic()), Just(aggregated())], before in previous(),
        replicas in 1_i32..60, first in 0_usize..8, second in 0_usize..8,
    ) {
        let named = |from: usize, to: usize| -> ClusterAffinity {
            let names = (from..to.max(from)).map(|at| format!("m{at}")).collect();
            ClusterAffinity { cluster_names: names, ..Default::default() }
        };
        let (first, second) = (first.min(second).max(1), first.max(second).max(1));
        let overflow = |name: &str, affinity| OverflowAffinityTerm { affinity_name: name.to_owned(), affinity };
        let term = ClusterAffinityTerm {
            affinity_name: "own".to_owned(),
            affinity: named(0, first),
            overflow_affinities: vec![overflow("near", named(0, second.max(first + 1))), overflow("far", Default::default())],
        };
        let tier = |name: &str| -> usize {
            let at: usize = name[1..].parse().unwrap();
            if at < first { 0 } else if at < second.max(first + 1) { 1 } else { 2 }
        };
        let wanted = Placement { cluster_affinities: vec![term], ..wanted };
        let decision = decide_for(&world, &binding(&wanted, replicas, &targets(&before)));
        let last = decision.clusters.iter().map(|target| tier(&target.name)).max().unwrap_or(0);
        for reason in decision.reasons.iter().filter(|reason| tier(&reason.cluster) < last) {
            let free = reason.available.unwrap_or(0) - i64::from(reason.chosen.unwrap_or(0));
            prop_assert_eq!(free, 0, "{} has room for {} more", reason.cluster, free);
        }
    }

    #[test]
    fn one_more_cluster_may_be_taken_and_the_others_stay(
        world in clusters(), wanted in placement(), before in previous(), replicas in 0_i32..30, most in 1_i64..6,
    ) {
        let regions = wanted.spread_constraints.into_iter().filter(|it| it.spread_by_field == Some(SpreadField::Region));
        let mut constraints: Vec<_> = regions.take(1).collect();
        constraints.push(by(SpreadField::Cluster, 1, most));
        let narrow = Placement { spread_constraints: constraints, ..duplicated() };
        let mut wide = narrow.clone();
        wide.spread_constraints.last_mut().unwrap().max_groups += 1;
        let narrow = decide_for(&world, &binding(&narrow, replicas, &targets(&before)));
        let wide = decide_for(&world, &binding(&wide, replicas, &targets(&before)));
        prop_assert!(narrow.error.is_some() || wide.error.is_none(), "{:?}", wide.error);
        prop_assert!(names(&narrow).is_subset(&names(&wide)));
        prop_assert!(wide.clusters.len() <= narrow.clusters.len() + 1 || narrow.error.is_some());
    }
}

#[test]
fn few_clusters_share_anew_when_one_joins_them() {
    let world = [cluster("m1", 5), cluster("m2", 5)];
    assert_eq!(short(&decide_for(&world, &binding(&aggregated(), 5, &[]))), "m1=5");
    assert_eq!(short(&decide_for(&world, &binding(&aggregated(), 6, &[]))), "m1=3 m2=3");
}

#[test]
fn a_bounded_number_of_clusters_is_changed_for_roomier_ones() {
    let world = [cluster("m1", 5), cluster("m2", 9)];
    let one = Placement { spread_constraints: vec![by(SpreadField::Cluster, 1, 1)], ..dynamic() };
    assert_eq!(short(&decide_for(&world, &binding(&one, 5, &[("m1", 0)]))), "m1=5");
    assert_eq!(short(&decide_for(&world, &binding(&one, 6, &[("m1", 0)]))), "m2=6");
}

#[test]
fn copies_in_regions_go_where_more_clusters_have_room() {
    let world = [cluster_in("m1", "a", 9), cluster_in("m2", "b", 5), cluster_in("m3", "b", 5)];
    let bounds = vec![by(SpreadField::Region, 1, 1), by(SpreadField::Cluster, 1, 9)];
    let one = Placement { spread_constraints: bounds, ..duplicated() };
    assert_eq!(short(&decide_for(&world, &binding(&one, 5, &[]))), "m2=5 m3=5");
    assert_eq!(short(&decide_for(&world, &binding(&one, 6, &[]))), "m1=6");
}

#[test]
fn too_little_room_is_said_in_numbers() {
    let decision = decide_for(&[cluster("m1", 3)], &binding(&dynamic(), 4, &[("m1", 2)]));
    assert_eq!(short(&decision), "m1=4", "what runs there counts as room");
    let decision = decide_for(&[cluster("m1", 1)], &binding(&dynamic(), 4, &[("m1", 2)]));
    assert_eq!(decision.error, Some(DecisionError::TooLittleRoom { clusters: 1, available: 3, needed: 4 }));
}
