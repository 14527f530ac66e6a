//! Every field of every policy makes a difference: for each one that the schemas have, a case sets it and shows that
//! something else comes of the policy than without it, or with another value. A new field fails until it has a case.
#![allow(clippy::unwrap_used)]

mod case;
mod customization;
mod live;
mod overrides;
mod propagation;
#[path = "../support/mod.rs"]
mod support;
mod taints;
mod world;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use atoll_api::{CrdSet, crds};
use atoll_testkit::peers;
use case::Case;
use serde_json::Value;

/// Fields that make no difference, with the reason.
type Idle = &'static [(&'static str, &'static str)];

const PROPAGATION_IDLE: Idle = &[
    ("association", "deprecated there in favour of propagateDeps; accepted and without effect, as there"),
    (
        "placement.clusterAffinities.overflowAffinities.affinityName",
        "a name for people; nothing refers to it, as there",
    ),
];

/// A kind: its definition, whether it lives in namespaces, its pure cases, those that need a running instance, the rest.
struct Kind {
    definition: &'static str,
    namespaced: bool,
    cases: fn() -> Vec<Case>,
    live: &'static [&'static str],
    idle: Idle,
}

const KINDS: [Kind; 7] = [
    Kind {
        definition: "propagationpolicies.policy.karmada.io",
        namespaced: true,
        cases: propagation::cases,
        live: &live::PROPAGATION,
        idle: PROPAGATION_IDLE,
    },
    Kind {
        definition: "clusterpropagationpolicies.policy.karmada.io",
        namespaced: false,
        cases: propagation::cases,
        live: &live::PROPAGATION,
        idle: PROPAGATION_IDLE,
    },
    Kind {
        definition: "overridepolicies.policy.karmada.io",
        namespaced: true,
        cases: overrides::cases,
        live: &[],
        idle: &[],
    },
    Kind {
        definition: "clusteroverridepolicies.policy.karmada.io",
        namespaced: false,
        cases: overrides::cases,
        live: &[],
        idle: &[],
    },
    Kind {
        definition: "clustertaintpolicies.policy.karmada.io",
        namespaced: false,
        cases: taints::cases,
        live: &[],
        idle: &[],
    },
    Kind {
        definition: "workloadrebalancers.apps.karmada.io",
        namespaced: false,
        cases: Vec::new,
        live: &live::REBALANCER,
        idle: &[],
    },
    Kind {
        definition: "resourceinterpretercustomizations.config.karmada.io",
        namespaced: false,
        cases: customization::cases,
        live: &[],
        idle: &[],
    },
];

/// The fields of a schema that hold something themselves.
fn leaves(schema: &Value, path: &str, found: &mut BTreeSet<String>) {
    let inner = if schema["type"] == "array" { &schema["items"] } else { schema };
    match inner["properties"].as_object().filter(|properties| !properties.is_empty()) {
        Some(properties) => {
            for (name, property) in properties {
                let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                leaves(property, &below, found);
            }
        }
        None => drop(found.insert(path.to_owned())),
    }
}

fn fields(definition: &str) -> BTreeSet<String> {
    let all = crds(CrdSet::Karmada);
    let definition = all.iter().find(|one| one["metadata"]["name"] == definition).unwrap();
    let versions = definition["spec"]["versions"].as_array().unwrap();
    let version = versions.iter().find(|version| version["storage"] == true).unwrap();
    let mut found = BTreeSet::new();
    leaves(&version["schema"]["openAPIV3Schema"]["properties"]["spec"], "", &mut found);
    found
}

#[test]
fn every_field_of_every_policy_has_a_case_and_every_case_has_a_field() {
    for kind in &KINDS {
        let cases: BTreeSet<String> = (kind.cases)().into_iter().map(|case| case.field).collect();
        let others = kind.live.iter().copied().chain(kind.idle.iter().map(|(field, _)| *field));
        let known: BTreeSet<String> = cases.iter().cloned().chain(others.map(ToOwned::to_owned)).collect();
        let all = fields(kind.definition);
        let missing: Vec<_> = all.difference(&known).collect();
        let unknown: Vec<_> = known.difference(&all).collect();
        assert!(missing.is_empty(), "{}: nothing shows {missing:#?}", kind.definition);
        assert!(unknown.is_empty(), "{}: there is no {unknown:#?}", kind.definition);
    }
}

#[test]
fn every_field_makes_a_difference() {
    let troubles =
        KINDS.iter().flat_map(|kind| (kind.cases)().into_iter().filter_map(|case| case.trouble(kind.namespaced)));
    let troubles: Vec<String> = troubles.collect();
    assert!(troubles.is_empty(), "no difference:\n{}", troubles.join("\n"));
}

#[test]
fn the_count_of_fields_in_the_documentation_is_current() {
    let mut table = String::from(
        "| kind | fields | shown by decisions alone | shown in a running instance | without effect |\n| --- | --- | --- | --- | --- |\n",
    );
    for kind in &KINDS {
        let name = kind.definition.split('.').next().unwrap();
        let idle: Vec<String> = kind.idle.iter().map(|(field, why)| format!("`{field}`: {why}")).collect();
        let (all, cases) = (fields(kind.definition).len(), (kind.cases)().len());
        writeln!(table, "| {name} | {all} | {cases} | {} | {} |", kind.live.len(), idle.join("; ")).unwrap();
    }
    peers::keep_section("docs/karmada.md", "fields", &table);
}
