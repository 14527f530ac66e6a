//! Random worlds, placements and bindings for properties.

use std::collections::BTreeMap;

use atoll_api::policy::{Placement, SpreadField};
use atoll_api::work::ResourceBindingSpec;
use atoll_placement::{Cluster, Taint};
use proptest::prelude::*;

use super::*;

const REGIONS: [&str; 4] = ["", "a", "b", "c"];
const ZONES: [&str; 3] = ["x", "y", "z"];

fn any_cluster() -> impl Strategy<Value = (i64, usize, usize, usize, u8)> {
    (0_i64..30, 0..REGIONS.len(), 0..ZONES.len(), 0_usize..3, 0_u8..12)
}

/// Up to eight clusters, some of which cannot be chosen.
pub fn clusters() -> impl Strategy<Value = Vec<Cluster>> {
    prop::collection::vec(any_cluster(), 1..9).prop_map(|list| {
        let build = |(at, (pods, region, zone, provider, fate)): (usize, (i64, usize, usize, usize, u8))| {
            let mut one = cluster_in(&format!("m{at}"), REGIONS[region], pods);
            one.zones = vec![ZONES[zone].to_owned()];
            one.provider = format!("p{provider}");
            one.labels = BTreeMap::from([("rack".to_owned(), format!("r{}", (zone + provider) % 3))]);
            match fate {
                0 => one.deleting = true,
                1 => one.apis.clear(),
                2 => {
                    let taint = Taint { key: "k".to_owned(), value: String::new(), effect: "NoSchedule".to_owned() };
                    one.taints.push(taint.into());
                }
                _ => {}
            }
            one
        };
        list.into_iter().enumerate().map(build).collect()
    })
}

/// Any strategy with any spread.
pub fn placement() -> impl Strategy<Value = Placement> {
    let strategy = prop_oneof![
        Just(duplicated()),
        Just(dynamic()),
        Just(aggregated()),
        prop::collection::vec(1_i64..6, 3)
            .prop_map(|weights| { fixed(&[("m0", weights[0]), ("m1", weights[1]), ("m2", weights[2])]) }),
    ];
    let bounds = (1_i64..4, 0_i64..4).prop_map(|(least, more)| (least, if more == 3 { 0 } else { least + more }));
    let group = (0_usize..4, bounds.clone()).prop_map(|(field, (least, most))| match field {
        0 => by(SpreadField::Region, least, most),
        1 => by(SpreadField::Zone, least, most),
        2 => by(SpreadField::Provider, least, most),
        _ => by_label("rack", least, most),
    });
    let groups = prop::collection::vec(group, 0..3);
    (strategy, groups, prop::option::of(bounds)).prop_map(|(placement, mut constraints, cluster)| {
        constraints.extend(cluster.map(|(least, most)| by(SpreadField::Cluster, least, most)));
        Placement { spread_constraints: constraints, ..placement }
    })
}

/// What a decision before may have been.
pub fn previous() -> impl Strategy<Value = Vec<(String, i32)>> {
    prop::collection::btree_map(0_usize..10, 0_i32..12, 0..5)
        .prop_map(|map| map.into_iter().map(|(at, replicas)| (format!("m{at}"), replicas)).collect())
}

/// A binding with any placement.
pub fn spec() -> impl Strategy<Value = ResourceBindingSpec> {
    (placement(), 0_i32..40, previous(), "[a-f]{0,4}").prop_map(|(placement, replicas, previous, uid)| {
        let previous: Vec<(&str, i32)> = previous.iter().map(|(name, replicas)| (name.as_str(), *replicas)).collect();
        let mut spec = binding(&placement, replicas, &previous);
        spec.resource.uid = uid;
        spec
    })
}
