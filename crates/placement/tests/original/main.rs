//! Decisions against those of Karmada's own scheduler, for thousands of seeded random worlds; and names against its own.
//!
//! The scheduler is asked as a whole (filter, score, select, assign; `tests/peers/oracle`). What it would answer
//! differently by intent is said in [`meant`]; anything else that differs is a fault of ours.
#![allow(clippy::unwrap_used)]

mod case;
mod meant;
mod names;

use std::collections::BTreeMap;

use atoll_api::cluster::Cluster as Reported;
use atoll_api::work::{ResourceBindingSpec, ResourceBindingStatus, TargetCluster};
use atoll_placement::{Cluster, Options, Request, Snapshot, apart, decide, together};
use atoll_testkit::ask_original;
use case::Case;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use serde::Deserialize as _;
use serde_json::Value;

/// How many worlds are made by default; each is decided for once. `ATOLL_CASES` and `ATOLL_SEED` make others.
const CASES: u64 = 4000;
/// Of fewer worlds chance decides in how many something is placed.
const FEW: usize = 200;

fn random_cases(seed: u64, share: u64, most_clusters: usize) -> Vec<Case> {
    let setting = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let mut random = StdRng::seed_from_u64(seed + setting("ATOLL_SEED").unwrap_or_default());
    let count = setting("ATOLL_CASES").unwrap_or(CASES) / share;
    (0..count).map(|_| Case::random(&mut random, most_clusters)).collect()
}

/// A decision in short: `m1=3 m2=2 by term`, or the reason of the condition `Scheduled`.
fn short(targets: impl Iterator<Item = (String, i64)>, affinity: &str) -> String {
    let targets: BTreeMap<String, i64> = targets.collect();
    let mut texts: Vec<String> = targets.iter().map(|(name, replicas)| format!("{name}={replicas}")).collect();
    if !affinity.is_empty() {
        texts.push(format!("by {affinity}"));
    }
    texts.join(" ")
}

/// Where each other binding of the same namespace and group is, if there is a group.
fn company(case: &Case, kind: &str) -> Option<Vec<Vec<TargetCluster>>> {
    let group = case.spec["workloadAffinityGroups"][kind].as_str()?;
    let others = case.bindings.iter().filter(|other| {
        let meta = &other["metadata"];
        other["spec"]["workloadAffinityGroups"][kind] == group
            && meta["namespace"] == "default"
            && meta["name"] != "web-deployment"
    });
    Some(others.map(|other| Vec::deserialize(&other["spec"]["clusters"]).unwrap()).collect())
}

fn ours(case: &Case) -> String {
    let clusters: Vec<Reported> = case.clusters.iter().map(|cluster| Reported::deserialize(cluster).unwrap()).collect();
    let spec = ResourceBindingSpec::deserialize(&case.spec).unwrap();
    let status = ResourceBindingStatus::deserialize(&case.status).unwrap();
    let options = Options { empty_workloads: case.empty_workloads, components: case.components };
    let (with, without) = (company(case, "affinityGroup"), company(case, "antiAffinityGroup"));
    let (together, apart) = (with.and_then(together), without.map(apart));
    let request = Request {
        options,
        affinity_hosts: together.as_ref(),
        anti_affinity_hosts: apart.as_ref(),
        ..Request::of(&spec, Some(&status))
    };
    let decision = decide(&Snapshot::new(clusters.iter().map(Cluster::from)), &request);
    match &decision.error {
        Some(error) => format!("{}: {error}", error.reason()),
        None => {
            let targets = decision.clusters.iter();
            let targets = targets.map(|target| (target.name.to_string(), i64::from(target.replicas)));
            short(targets, &decision.affinity)
        }
    }
}

fn theirs(answer: &Result<Value, String>) -> String {
    let answer = answer.as_ref().unwrap_or_else(|why| panic!("the original: {why}"));
    let text = |field: &str| answer[field].as_str().unwrap_or_default().to_owned();
    if !text("reason").is_empty() {
        return format!("{}: {}", text("reason"), text("message"));
    }
    let targets = answer["clusters"].as_array().into_iter().flatten();
    let targets = targets
        .map(|target| (target["name"].as_str().unwrap().to_owned(), target["replicas"].as_i64().unwrap_or_default()));
    short(targets, &text("affinity"))
}

/// Compares all cases and shows the smallest that differ.
fn compare(cases: &[Case]) {
    let questions: Vec<Value> = cases.iter().map(|case| meant::question(case).into_question()).collect();
    let Some(answers) = ask_original(&questions) else {
        return;
    };
    let mut differ = Vec::new();
    let (mut placed, mut equal) = (0, 0);
    for ((case, question), answer) in cases.iter().zip(&questions).zip(&answers) {
        let (ours, theirs) = (ours(case), theirs(answer));
        placed += usize::from(!theirs.contains(": "));
        equal += usize::from(ours == theirs);
        if !meant::is_same(case, &ours, &theirs) {
            differ.push(format!("ours:   {ours}\ntheirs: {theirs}\n{question}\n"));
        }
    }
    eprintln!("{} cases, {placed} placed by the original, {equal} to the letter, {} differ", cases.len(), differ.len());
    // Worlds in which nothing can be placed, or of which little is compared, would show nothing.
    let shows = placed * 2 >= cases.len() && equal * 10 >= placed * 9;
    assert!(shows || cases.len() < FEW, "only {placed} of {} are placed, {equal} of them alike", cases.len());
    differ.sort_by_key(String::len);
    let smallest = differ.iter().take(3).cloned().collect::<Vec<_>>().join("\n");
    assert!(differ.is_empty(), "{} of {} differ, the smallest:\n{smallest}", differ.len(), cases.len());
}

#[test]
fn decisions_are_those_of_the_original() {
    compare(&random_cases(1, 1, 12));
}

#[test]
fn decisions_over_many_clusters_are_those_of_the_original() {
    compare(&random_cases(2, 10, 40));
}
