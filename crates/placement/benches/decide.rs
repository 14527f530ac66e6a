//! How fast decisions are over a hundred clusters: `cargo bench -p atoll-placement --bench decide`.
#![allow(clippy::unwrap_used)]

#[path = "../tests/world/mod.rs"]
mod world;

use std::time::Instant;

use atoll_api::policy::{Placement, SpreadField};
use atoll_placement::{Cluster, Request, Snapshot, decide};
use world::*;

fn hundred() -> Snapshot {
    let build = |at: usize| Cluster {
        provider: format!("p{}", at % 3),
        zones: vec![format!("z{}", at % 20)],
        labels: [("tier".to_owned(), format!("t{}", at % 4))].into(),
        ..cluster_in(&format!("member{at:03}"), &format!("r{}", at % 10), 20 + (at as i64 * 7) % 50)
    };
    Snapshot::new((0..100).map(build))
}

fn main() {
    let snapshot = hundred();
    let with = |placement: Placement, constraints| Placement { spread_constraints: constraints, ..placement };
    let regions = vec![by(SpreadField::Region, 2, 4), by(SpreadField::Cluster, 5, 12)];
    let several = vec![by(SpreadField::Provider, 2, 3), by(SpreadField::Zone, 4, 8), by(SpreadField::Cluster, 4, 10)];
    let few = Placement { cluster_affinity: Some(names(&["member001", "member002", "member050"])), ..dynamic() };
    for (name, placement) in [
        ("duplicated", duplicated()),
        ("static weights", fixed(&[("member001", 1), ("member002", 2)])),
        ("dynamic weights", dynamic()),
        ("aggregated", aggregated()),
        ("three named clusters", few),
        ("spread by cluster", with(dynamic(), vec![by(SpreadField::Cluster, 1, 10)])),
        ("spread by region", with(dynamic(), regions)),
        ("spread by provider and zone", with(dynamic(), several)),
    ] {
        let spec = binding(&placement, 80, &[]);
        let start = Instant::now();
        let (mut count, mut placed) = (0_u32, 0);
        while start.elapsed().as_millis() < 500 {
            for _ in 0..100 {
                placed += decide(&snapshot, &Request::of(&spec, None)).clusters.len();
            }
            count += 100;
        }
        assert!(placed > 0, "{name} places nothing");
        println!("{name}: {:.0} decisions/s", f64::from(count) / start.elapsed().as_secs_f64());
    }
}
