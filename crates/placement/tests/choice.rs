//! Which clusters are chosen: filters, spread, affinity terms, and the reasons given.
#![allow(clippy::unwrap_used)]

mod world;

use std::collections::{BTreeMap, BTreeSet};

use atoll_api::policy::{
    ClusterAffinity, ClusterAffinityTerm, FieldSelector, FieldSelectorRequirement, Placement, SpreadField,
};
use atoll_api::work::{ResourceBindingStatus, TargetCluster};
use atoll_placement::{Cluster, Decision, Mode, Request, Snapshot, Taint, apart, decide, together};
use k8s_openapi::api::core::v1::Toleration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use world::*;

fn taint(effect: &str) -> Taint {
    Taint { key: "k".to_owned(), value: "v".to_owned(), effect: effect.to_owned() }
}

fn tainted(name: &str, effect: &str) -> Cluster {
    Cluster { taints: vec![taint(effect).into()], ..cluster(name, 9) }
}

#[test]
fn each_filter_refuses_with_its_own_words() {
    let spread = Placement { spread_constraints: vec![by(SpreadField::Region, 1, 0)], ..duplicated() };
    let affine = |affinity| Placement { cluster_affinity: Some(affinity), ..duplicated() };
    let excluding = affine(ClusterAffinity { exclude: vec!["m1".to_owned()], ..Default::default() });
    let cases: [(Cluster, Placement, &str); 8] = [
        (Cluster { deleting: true, ..cluster("m1", 9) }, duplicated(), "ClusterDeletion: is being deleted"),
        (cluster("m1", 9), affine(names(&["m2"])), "ClusterAffinity: not named in clusterNames"),
        (cluster("m1", 9), excluding, "ClusterAffinity: named in exclude"),
        (
            Cluster { apis: Default::default(), ..cluster("m1", 9) },
            duplicated(),
            "APIEnablement: does not serve apps/v1/Deployment",
        ),
        (tainted("m1", "NoSchedule"), duplicated(), "TaintToleration: untolerated taint k=v:NoSchedule"),
        (tainted("m1", "NoExecute"), duplicated(), "TaintToleration: untolerated taint k=v:NoExecute"),
        (tainted("m1", "PreferNoSchedule"), duplicated(), ""),
        (cluster("m1", 9), spread, "SpreadConstraint: has no region to spread by"),
    ];
    for (cluster, placement, expected) in cases {
        let decision = decide_for(std::slice::from_ref(&cluster), &binding(&placement, 1, &[]));
        assert_eq!(why(&decision, "m1"), expected);
        assert_eq!(decision.error.is_some(), !expected.is_empty());
    }
}

#[test]
fn a_target_keeps_its_workload_despite_taints_and_missing_apis() {
    let cluster = Cluster { apis: Default::default(), ..tainted("m1", "NoExecute") };
    assert_eq!(short(&decide_for(&[cluster], &binding(&duplicated(), 1, &[("m1", 1)]))), "m1=1");
}

#[test]
fn tolerations_are_those_of_pods() {
    let toleration = |key: &str, operator: &str, value: &str, effect: &str| Toleration {
        key: Some(key.to_owned()),
        operator: Some(operator.to_owned()),
        value: Some(value.to_owned()),
        effect: Some(effect.to_owned()),
        ..Default::default()
    };
    for (given, tolerated) in [
        (toleration("k", "Equal", "v", "NoSchedule"), true),
        (toleration("k", "", "v", ""), true),
        (toleration("k", "Exists", "", ""), true),
        (toleration("", "Exists", "", ""), true),
        (toleration("k", "Equal", "w", ""), false),
        (toleration("other", "Exists", "", ""), false),
        (toleration("k", "Exists", "", "NoExecute"), false),
        (toleration("k", "Gt", "v", ""), false),
    ] {
        let placement = Placement { cluster_tolerations: vec![given.clone()], ..duplicated() };
        let decision = decide_for(&[tainted("m1", "NoSchedule")], &binding(&placement, 1, &[]));
        assert_eq!(decision.error.is_none(), tolerated, "{given:?}");
    }
}

#[test]
fn affinity_looks_at_labels_and_fields() {
    let mut one = cluster_in("m1", "eu", 9);
    one.labels = BTreeMap::from([("tier".to_owned(), "gold".to_owned())]);
    one.zones = vec!["eu-a".to_owned(), "eu-b".to_owned()];
    let labels = |operator: &str, values: &[&str]| ClusterAffinity {
        label_selector: Some(LabelSelector {
            match_expressions: Some(vec![LabelSelectorRequirement {
                key: "tier".to_owned(),
                operator: operator.to_owned(),
                values: Some(values.iter().map(|value| (*value).to_owned()).collect()),
            }]),
            match_labels: None,
        }),
        ..Default::default()
    };
    let fields = |key: &str, operator: &str, values: &[&str]| ClusterAffinity {
        field_selector: Some(FieldSelector {
            match_expressions: vec![FieldSelectorRequirement {
                key: key.to_owned(),
                operator: operator.to_owned(),
                values: values.iter().map(|value| (*value).to_owned()).collect(),
            }],
        }),
        ..Default::default()
    };
    for (affinity, expected) in [
        (labels("In", &["gold", "iron"]), ""),
        (labels("NotIn", &["gold"]), "ClusterAffinity: label tier does not match labelSelector"),
        (labels("NotIn", &[]), "ClusterAffinity: label tier does not match labelSelector"),
        (labels("Exists", &["gold"]), "ClusterAffinity: label tier does not match labelSelector"),
        (fields("region", "NotIn", &[]), "ClusterAffinity: region does not match fieldSelector"),
        (labels("Exists", &[]), ""),
        (labels("DoesNotExist", &[]), "ClusterAffinity: label tier does not match labelSelector"),
        (fields("region", "In", &["eu"]), ""),
        (fields("region", "NotIn", &["eu"]), "ClusterAffinity: region does not match fieldSelector"),
        (fields("zone", "In", &["eu-a", "eu-b", "eu-c"]), ""),
        (fields("zone", "In", &["eu-a"]), ""),
        (fields("zone", "In", &["eu-c"]), "ClusterAffinity: zone does not match fieldSelector"),
        (fields("provider", "In", &["x"]), "ClusterAffinity: provider does not match fieldSelector"),
        (fields("provider", "NotIn", &["x"]), ""),
    ] {
        let placement = Placement { cluster_affinity: Some(affinity.clone()), ..duplicated() };
        let decision = decide_for(std::slice::from_ref(&one), &binding(&placement, 1, &[]));
        assert_eq!(why(&decision, "m1"), expected, "{affinity:?}");
    }
}

#[test]
fn workload_groups_stay_together_or_apart() {
    let snapshot = Snapshot::new([cluster("m1", 9), cluster("m2", 9)]);
    let spec = binding(&duplicated(), 1, &[]);
    let (hosts, nobody) = (BTreeSet::from(["m2".to_owned()]), BTreeSet::new());
    let running = binding(&duplicated(), 1, &[("m1", 1)]);
    let with = |affinity, anti| {
        let request = Request { affinity_hosts: affinity, anti_affinity_hosts: anti, ..Request::of(&spec, None) };
        short(&decide(&snapshot, &request))
    };
    assert_eq!(with(Some(&hosts), None), "m2=1");
    assert_eq!(with(None, None), "m1=1 m2=1");
    assert_eq!(with(None, Some(&hosts)), "m1=1");
    assert!(with(Some(&nobody), None).contains("2 cluster(s) did not host the whole workload affinity group"));
    // Where it runs it stays, whoever else is there.
    let request = Request { affinity_hosts: Some(&hosts), ..Request::of(&running, None) };
    assert_eq!(short(&decide(&snapshot, &request)), "m1=1 m2=1");
    let both = BTreeSet::from(["m1".to_owned(), "m2".to_owned()]);
    let request = Request { anti_affinity_hosts: Some(&both), ..Request::of(&running, None) };
    assert_eq!(short(&decide(&snapshot, &request)), "m1=1");
}

#[test]
fn a_group_is_where_all_of_it_is_and_anyone_of_it() {
    let in_clusters = |names: &[&str]| -> Vec<TargetCluster> {
        names.iter().map(|name| TargetCluster { name: (*name).to_owned(), ..Default::default() }).collect()
    };
    let group = [in_clusters(&["m1", "m2"]), in_clusters(&[]), in_clusters(&["m2", "m3"])];
    assert_eq!(together(&group), Some(BTreeSet::from(["m2".to_owned()])));
    assert_eq!(together(&group[1..2]), None, "nobody is placed yet");
    assert_eq!((apart(&group[..2]).len(), apart(&group).len()), (2, 3));
}

fn spread(constraints: Vec<atoll_api::policy::SpreadConstraint>, placement: Placement) -> Placement {
    Placement { spread_constraints: constraints, ..placement }
}

#[test]
fn spread_by_cluster_takes_the_best_and_changes_for_room() {
    let clusters = [cluster("m1", 40), cluster("m2", 30), cluster("m3", 60)];
    let two = |placement| spread(vec![by(SpreadField::Cluster, 1, 2)], placement);
    let decision = decide_for(&clusters, &binding(&two(duplicated()), 5, &[]));
    assert_eq!(short(&decision), "m1=5 m3=5", "by room, as scores are equal");
    assert_eq!(why(&decision, "m2"), "SpreadConstraint: ranked 3 of 3, at most 2 taken");
    let running = [("m1", 0), ("m2", 0)];
    let decision = decide_for(&clusters, &binding(&two(duplicated()), 5, &running));
    assert_eq!(short(&decision), "m1=5 m2=5", "those that have it score higher");
    let decision = decide_for(&clusters, &binding(&two(dynamic()), 80, &running));
    assert_eq!(short(&decision), "m1=32 m3=48", "80 need the room of m3");
    let decision = decide_for(&clusters, &binding(&two(dynamic()), 101, &running));
    assert_eq!(short(&decision), "2 clusters have room for 100 replicas, 101 needed");
    let decision = decide_for(&clusters, &binding(&spread(vec![by(SpreadField::Cluster, 4, 4)], duplicated()), 1, &[]));
    assert_eq!(short(&decision), "spread by cluster: 3 found, at least 4 needed");
}

fn regions() -> Vec<Cluster> {
    vec![
        cluster_in("a1", "a", 10),
        cluster_in("a2", "a", 5),
        cluster_in("b1", "b", 20),
        cluster_in("b2", "b", 1),
        cluster_in("c1", "c", 2),
    ]
}

#[test]
fn spread_by_region_takes_the_worthiest_regions_and_the_best_clusters() {
    let placement = |regions: (i64, i64), clusters: (i64, i64), placement| {
        spread(
            vec![by(SpreadField::Region, regions.0, regions.1), by(SpreadField::Cluster, clusters.0, clusters.1)],
            placement,
        )
    };
    for (regions_wanted, clusters_wanted, expected) in [
        // Each region needs 12 / 2 + 1 = 7; a and b have them, c has 2.
        ((2, 2), (2, 2), "a1=4 b1=8"),
        ((2, 2), (1, 3), "a1=3 a2=2 b1=7"),
        ((2, 3), (2, 4), "a1=3 a2=2 b1=7"),
        ((3, 3), (3, 3), "a1=4 b1=7 c1=1"),
        ((4, 4), (4, 4), "spread by region: 3 found, at least 4 needed"),
        ((1, 2), (5, 5), "no choice of clusters meets the spread constraints by region"),
    ] {
        let spec = binding(&placement(regions_wanted, clusters_wanted, dynamic()), 12, &[]);
        let decision = decide_for(&regions(), &spec);
        assert_eq!(short(&decision), expected, "{regions_wanted:?} {clusters_wanted:?}");
    }
    let decision = decide_for(&regions(), &binding(&placement((2, 2), (2, 2), dynamic()), 12, &[]));
    assert_eq!(why(&decision, "c1"), "SpreadConstraint: region c not among the at most 2 taken");
    assert_eq!(why(&decision, "b2"), "SpreadConstraint: ranked 5 of 5, at most 2 taken");
    let duplicated = decide_for(&regions(), &binding(&placement((1, 1), (1, 9), duplicated()), 3, &[]));
    assert_eq!(short(&duplicated), "a1=3 a2=3", "two clusters of a can host all three, one of b");
}

#[test]
fn a_region_is_worth_its_part_of_the_demand_and_no_more() {
    let worlds = [cluster_in("m1", "a", 2), cluster_in("m2", "b", 3), cluster_in("m3", "c", 3)];
    let bounds = vec![by(SpreadField::Region, 2, 2), by(SpreadField::Cluster, 1, 9)];
    let placement = Placement { spread_constraints: bounds, ..dynamic() };
    // Half of four is two: m1 has that, and is known.
    assert_eq!(short(&decide_for(&worlds, &binding(&placement, 4, &[("m1", 0)]))), "m1=2 m2=2");
    assert_eq!(short(&decide_for(&worlds, &binding(&placement, 5, &[("m1", 0)]))), "m2=3 m3=2");
}

#[test]
fn zones_providers_and_labels_spread_like_regions() {
    let fields = |name: &str, at: &str| Cluster {
        provider: at.to_owned(),
        zones: vec![at.to_owned(), "shared".to_owned()],
        labels: BTreeMap::from([("rack".to_owned(), at.to_owned())]),
        ..cluster(name, 10)
    };
    let clusters = [fields("m1", "x"), fields("m2", "x"), fields("m3", "y"), cluster("m4", 99)];
    for constraint in [by(SpreadField::Zone, 2, 2), by(SpreadField::Provider, 2, 2), by_label("rack", 2, 2)] {
        let placement = spread(vec![constraint, by(SpreadField::Cluster, 2, 2)], dynamic());
        let decision = decide_for(&clusters, &binding(&placement, 4, &[]));
        assert_eq!(short(&decision), "m1=2 m3=2");
        assert!(why(&decision, "m4").starts_with("SpreadConstraint: has no "), "{}", why(&decision, "m4"));
    }
}

#[test]
fn several_kinds_of_groups_are_met_together() {
    let at = |name: &str, provider: &str, region: &str| Cluster {
        provider: provider.to_owned(),
        ..cluster_in(name, region, 10)
    };
    let clusters = [at("m1", "p", "a"), at("m2", "p", "b"), at("m3", "q", "a"), at("m4", "q", "b"), at("m5", "p", "c")];
    let placement = |providers, regions, clusters: (i64, i64)| {
        spread(
            vec![
                by(SpreadField::Provider, providers, providers),
                by(SpreadField::Region, regions, regions),
                by(SpreadField::Cluster, clusters.0, clusters.1),
            ],
            duplicated(),
        )
    };
    for (providers, regions, wanted, expected) in [
        (2, 2, (2, 2), "m1=1 m4=1"),
        (1, 2, (2, 2), "m1=1 m2=1"),
        (1, 3, (3, 3), "m1=1 m2=1 m5=1"),
        (2, 2, (2, 9), "m1=1 m2=1 m3=1 m4=1"),
        (3, 1, (1, 9), "spread by provider: 2 found, at least 3 needed"),
        (2, 3, (2, 2), "no choice of clusters meets the spread constraints by provider, region"),
    ] {
        let decision = decide_for(&clusters, &binding(&placement(providers, regions, wanted), 1, &[]));
        assert_eq!(short(&decision), expected, "{providers} {regions} {wanted:?}");
    }
}

fn terms(list: &[(&str, &[&str])]) -> Placement {
    let term = |(name, clusters): &(&str, &[&str])| ClusterAffinityTerm {
        affinity_name: (*name).to_owned(),
        affinity: names(clusters),
        ..Default::default()
    };
    Placement { cluster_affinities: list.iter().map(term).collect(), ..dynamic() }
}

fn with_observed(clusters: &[Cluster], placement: &Placement, observed: &str, mode: Mode) -> Decision {
    let spec = binding(placement, 4, &[]);
    let status = ResourceBindingStatus { scheduler_observing_affinity_name: observed.to_owned(), ..Default::default() };
    decide(&Snapshot::new(clusters.iter().cloned()), &Request { mode, ..Request::of(&spec, Some(&status)) })
}

#[test]
fn affinity_terms_are_tried_in_order_and_not_gone_back_to() {
    let placement = terms(&[("local", &["m1"]), ("backup", &["m2"])]);
    let (full, roomy) = ([cluster("m1", 1), cluster("m2", 9)], [cluster("m1", 9), cluster("m2", 9)]);
    let decision = with_observed(&full, &placement, "", Mode::Steady);
    assert_eq!((short(&decision), decision.affinity.as_str()), ("m2=4".to_owned(), "backup"));
    assert_eq!(decision.skipped[0].affinity, "local");
    assert_eq!(decision.skipped[0].error.reason(), "Unschedulable");
    let decision = with_observed(&roomy, &placement, "backup", Mode::Steady);
    assert_eq!(decision.affinity, "backup", "it does not go back by itself");
    let decision = with_observed(&roomy, &placement, "backup", Mode::Fresh);
    assert_eq!(decision.affinity, "local", "it does when asked for");
    let decision = with_observed(&roomy, &placement, "renamed", Mode::Steady);
    assert_eq!(decision.affinity, "local", "an unknown one counts as none");
}

#[test]
fn when_no_term_does_the_first_error_stands() {
    let placement = terms(&[("local", &["m1"]), ("backup", &["none"])]);
    let decision = with_observed(&[cluster("m1", 1)], &placement, "", Mode::Steady);
    assert_eq!(short(&decision), "1 clusters have room for 1 replicas, 4 needed");
    assert_eq!(decision.affinity, "local");
    assert_eq!(decision.skipped.len(), 2);
}

#[test]
fn the_error_counts_the_refusals() {
    let clusters =
        [tainted("m1", "NoSchedule"), tainted("m2", "NoSchedule"), Cluster { deleting: true, ..cluster("m3", 9) }];
    let decision = decide_for(&clusters, &binding(&duplicated(), 1, &[]));
    let error = decision.error.unwrap();
    assert_eq!(
        error.to_string(),
        "0/3 clusters are available: 1 cluster(s) being deleted, 2 cluster(s) had untolerated taint {k}"
    );
    assert_eq!((error.reason(), error.clears_clusters()), ("NoClusterFit", true));
    assert_eq!(short(&decide_for(&[], &binding(&duplicated(), 1, &[]))), "0/0 clusters are available");
}

#[test]
fn a_decision_is_recorded_with_all_reasons() {
    let placement = Placement { cluster_affinity: Some(names(&["m1"])), ..dynamic() };
    let decision = decide_for(&[cluster("m1", 5), cluster("m2", 5)], &binding(&placement, 2, &[]));
    let record = serde_json::to_value(&decision).unwrap();
    assert_eq!(
        record,
        serde_json::json!({
            "clusters": [{"name": "m1", "replicas": 2}],
            "reasons": [
                {"cluster": "m1", "chosen": 2, "score": 0, "available": 5},
                {"cluster": "m2", "score": 0, "refusedBy": {"plugin": "ClusterAffinity", "message": "not named in clusterNames"}},
            ],
        })
    );
}
