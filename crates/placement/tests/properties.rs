//! What holds for every decision, whatever the world.
#![allow(clippy::unwrap_used)]

mod world;

use std::collections::{BTreeMap, BTreeSet};

use atoll_api::policy::{Placement, SpreadField};
use atoll_api::work::ResourceBindingSpec;
use atoll_placement::{Cluster, Decision, DecisionError, Mode, Request, Snapshot, decide};
use proptest::prelude::*;
use world::any::{clusters, spec};
use world::*;

fn is(spec: &ResourceBindingSpec, other: &Placement) -> bool {
    spec.placement.as_ref().unwrap().replica_scheduling == other.replica_scheduling
}

fn is_static(spec: &ResourceBindingSpec) -> bool {
    !is(spec, &duplicated()) && !is(spec, &dynamic()) && !is(spec, &aggregated())
}

fn chosen<'a>(world: &'a [Cluster], decision: &'a Decision) -> Vec<&'a Cluster> {
    let find = |name: &str| world.iter().find(|cluster| *cluster.name == *name).unwrap();
    decision.clusters.iter().map(|target| find(&target.name)).collect()
}

fn within(count: usize, least: i64, most: i64) -> bool {
    count as i64 >= least && (most == 0 || count as i64 <= most)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_cluster_is_either_chosen_or_refused_by_a_rule(world in clusters(), spec in spec(), fresh: bool) {
        let mode = if fresh { Mode::Fresh } else { Mode::Steady };
        let snapshot = Snapshot::new(world.clone());
        let decision = decide(&snapshot, &Request { mode, ..Request::of(&spec, None) });
        prop_assert_eq!(decision.reasons.len(), world.len());
        for reason in &decision.reasons {
            let target = decision.replicas_in(&reason.cluster);
            prop_assert_eq!(target, reason.chosen);
            if decision.error.is_none() {
                prop_assert!(reason.chosen.is_some() != reason.refused_by.is_some(), "{:?}", reason);
            }
        }
        prop_assert!(decision.error.is_none() || decision.clusters.is_empty());
        prop_assert!(decision.clusters.is_sorted_by(|a, b| a.name < b.name));
    }

    #[test]
    fn all_replicas_are_placed_or_none(world in clusters(), spec in spec(), fresh: bool) {
        let mode = if fresh { Mode::Fresh } else { Mode::Steady };
        let decision = decide(&Snapshot::new(world), &Request { mode, ..Request::of(&spec, None) });
        if decision.error.is_some() {
            return Ok(());
        }
        let replicas = i64::from(spec.replicas);
        let wanted = if is(&spec, &duplicated()) { replicas * decision.clusters.len() as i64 } else { replicas };
        prop_assert_eq!(decision.replicas(), wanted);
        prop_assert!(!decision.clusters.is_empty());
    }

    #[test]
    fn only_clusters_that_pass_the_filters_are_chosen(world in clusters(), spec in spec()) {
        let decision = decide_for(&world, &spec);
        for cluster in chosen(&world, &decision) {
            let was_target = spec.clusters.iter().any(|target| *target.name == *cluster.name);
            prop_assert!(!cluster.deleting);
            prop_assert!(was_target || (cluster.taints.is_empty() && !cluster.apis.is_empty()));
        }
    }

    #[test]
    fn no_cluster_gets_more_than_it_has_room_for(world in clusters(), spec in spec(), fresh: bool) {
        if spec.replicas == 0 || is(&spec, &duplicated()) || is_static(&spec) {
            return Ok(());
        }
        let mode = if fresh { Mode::Fresh } else { Mode::Steady };
        let decision = decide(&Snapshot::new(world), &Request { mode, ..Request::of(&spec, None) });
        for reason in &decision.reasons {
            if let (Some(replicas), Some(available)) = (reason.chosen, reason.available) {
                prop_assert!(i64::from(replicas) <= available, "{:?}", reason);
            }
        }
    }

    #[test]
    fn spread_bounds_hold(world in clusters(), mut spec in spec()) {
        // With copies every selected cluster is a target, so the selection can be seen.
        spec.placement.as_mut().unwrap().replica_scheduling = duplicated().replica_scheduling;
        let decision = decide_for(&world, &spec);
        if decision.error.is_some() {
            return Ok(());
        }
        let chosen = chosen(&world, &decision);
        let mut last = BTreeMap::new();
        for constraint in &spec.placement.as_ref().unwrap().spread_constraints {
            last.insert((constraint.spread_by_field, &constraint.spread_by_label), constraint);
        }
        for ((field, label), constraint) in last {
            let group = |cluster: &&Cluster| -> String {
                match field {
                    Some(SpreadField::Cluster) => cluster.name.to_string(),
                    Some(SpreadField::Region) => cluster.region.clone(),
                    Some(SpreadField::Zone) => cluster.zones[0].clone(),
                    Some(SpreadField::Provider) => cluster.provider.clone(),
                    None => cluster.labels[label].clone(),
                }
            };
            let groups: BTreeSet<String> = chosen.iter().map(group).collect();
            prop_assert!(
                within(groups.len(), constraint.min_groups, constraint.max_groups),
                "{:?}: {:?}", constraint, groups
            );
        }
    }

    #[test]
    fn the_order_of_clusters_and_targets_does_not_matter(world in clusters(), spec in spec()) {
        let mut turned = world.clone();
        turned.reverse();
        let mut other = spec.clone();
        other.clusters.reverse();
        prop_assert_eq!(decide_for(&world, &spec), decide_for(&turned, &other));
    }

    #[test]
    fn a_steady_decision_is_final(world in clusters(), spec in spec()) {
        let first = decide_for(&world, &spec);
        if first.error.is_some() || spec.replicas == 0 || !spec.placement.as_ref().unwrap().spread_constraints.is_empty() {
            return Ok(());
        }
        let mut next = spec.clone();
        next.clusters = Request::of(&spec, None).targets(&first);
        prop_assert_eq!(decide_for(&world, &next).clusters, first.clusters);
    }

    #[test]
    fn a_lost_cluster_moves_its_own_replicas_only(world in clusters(), mut spec in spec(), lost in 0_usize..8) {
        let placement = if is(&spec, &aggregated()) { aggregated() } else { dynamic() };
        spec.placement = Some(placement);
        let before = decide_for(&world, &spec);
        if before.error.is_some() || spec.replicas == 0 {
            return Ok(());
        }
        let mut next = spec.clone();
        next.clusters = Request::of(&spec, None).targets(&before);
        let lost = format!("m{lost}");
        let after = decide(&Snapshot::new(world).without(&lost), &Request::of(&next, None));
        if after.error.is_some() {
            return Ok(());
        }
        for target in before.clusters.iter().filter(|target| *target.name != *lost) {
            prop_assert!(after.replicas_in(&target.name) >= Some(target.replicas), "{} lost some", target.name);
        }
    }

    #[test]
    fn scaling_moves_all_clusters_the_same_way(world in clusters(), spec in spec(), replicas in 1_i32..60) {
        if is(&spec, &duplicated()) || is_static(&spec) {
            return Ok(());
        }
        let mut spec = spec;
        spec.placement.as_mut().unwrap().spread_constraints.clear();
        spec.replicas = spec.replicas.max(1);
        let before = decide_for(&world, &spec);
        let mut next = spec.clone();
        next.clusters = Request::of(&spec, None).targets(&before);
        next.replicas = replicas;
        let after = decide_for(&world, &next);
        if before.error.is_some() || after.error.is_some() {
            return Ok(());
        }
        for cluster in &world {
            let had = before.replicas_in(&cluster.name).unwrap_or(0);
            let has = after.replicas_in(&cluster.name).unwrap_or(0);
            let same_way = if replicas >= spec.replicas { has >= had } else { has <= had };
            prop_assert!(same_way, "{} from {had} to {has}", cluster.name);
        }
    }

    #[test]
    fn more_room_never_turns_success_into_failure(world in clusters(), spec in spec(), at in 0_usize..8) {
        let before = decide_for(&world, &spec);
        let mut roomier = world.clone();
        let at = at % roomier.len();
        roomier[at].capacity = cluster("any", 1000).capacity;
        let after = decide_for(&roomier, &spec);
        let too_little = matches!(after.error, Some(DecisionError::TooLittleRoom { .. }));
        // Groups are chosen by worth, not by room in total, so there more room may lead elsewhere.
        let by_cluster = spec.placement.as_ref().unwrap().spread_constraints.iter().all(|it| it.spread_by_field == Some(SpreadField::Cluster));
        prop_assert!(before.error.is_some() || !by_cluster || !too_little, "{:?}", after.error);
    }
}
