//! How fast the index takes objects in and finds them: `cargo bench -p atoll-index -- [pods]`.
//! With `ATOLL_TEST_POSTGRES` set to a URL, PostgreSQL is measured instead of SQLite.
#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use atoll_index::{Choice, Column, Everything, Index, OwnerOf, Query, ResourceName, Row, Sort};
use atoll_meta::selector::LabelSelector;
use serde_json::{Value, json};

const MEMBERS: usize = 10;
/// Pods that are told at a time, as a page of a list has them.
const BATCH: usize = 2_000;

fn pod(member: usize, number: usize) -> Value {
    json!({
        "kind": "Pod", "apiVersion": "v1",
        "metadata": {
            "name": format!("web-{}-{number}", number / 10), "namespace": format!("team-{}", number % 50), "uid": format!("{member}-{number}"),
            "resourceVersion": number.to_string(), "creationTimestamp": format!("2024-01-01T{:02}:{:02}:00Z", number % 24, number % 60),
            "labels": {"app": format!("app-{}", number % 500), "tier": if number.is_multiple_of(2) { "web" } else { "db" }, "pod-template-hash": format!("{number:x}")},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": format!("{member}-rs-{}", number / 10), "controller": true}],
        },
        "spec": {"nodeName": format!("node-{}", number % 100), "containers": [{"name": "main", "image": "registry.example/web:1.2.3",
            "env": (0..10).map(|n| json!({"name": format!("VARIABLE_{n}"), "value": "some text of usual length"})).collect::<Vec<_>>(),
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}}}]},
        "status": {"phase": "Running", "podIP": "10.0.0.1", "conditions": (0..4).map(|n| json!({"type": format!("C{n}"), "status": "True", "lastTransitionTime": "2024-01-01T00:00:00Z"})).collect::<Vec<_>>()},
    })
}

/// Resident memory of this process in KiB; 0 where the system does not tell.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or_default()
}

/// CPU time of this process; zero where the system does not tell. It counts in hundredths of a second.
fn cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let numbers = text.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = numbers.skip(11).take(2).filter_map(|number| number.parse::<u64>().ok()).sum();
    Duration::from_millis(10 * ticks)
}

/// What it costs to make rows of objects as a watch sends them, with a tree of each and without.
fn measure_rows() {
    const ROWS: usize = 50_000;
    let texts: Vec<String> = (0..100).map(|number| pod(0, number).to_string()).collect();
    let run = |what: &str, read: &dyn Fn(&str) -> Option<Row>| {
        let start = cpu();
        let made = texts.iter().cycle().take(ROWS).filter_map(|text| read(text)).count();
        println!("{what:<44} {:.1?} of CPU each", (cpu() - start) / u32::try_from(made).unwrap());
    };
    run("a row by way of its tree", &|text| Row::of(serde_json::from_str(text).ok()?));
    run("a row from its text", &|text| Row::read(text, "Pod", "v1"));
}

fn report(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!("{what:<44} p50 {:>10.2?}  p99 {:>10.2?}", at(0.5), at(0.99));
}

async fn measure(index: &Index, what: &str, rounds: usize, query: impl Fn(usize) -> Query) {
    let mut times = Vec::new();
    let mut found = 0;
    for round in 0..rounds {
        let query = query(round);
        let start = Instant::now();
        found += index.query(&query, &Everything).await.unwrap().items.len();
        times.push(start.elapsed());
    }
    report(&format!("{what} ({} rows)", found / rounds), times);
}

#[tokio::main]
async fn main() {
    let pods: usize = std::env::args().filter_map(|word| word.parse().ok()).next().unwrap_or(100_000);
    let directory = tempfile::tempdir().unwrap();
    let choice = std::env::var("ATOLL_TEST_POSTGRES")
        .map_or_else(|_| Choice::Sqlite(directory.path().join("index.db")), Choice::Postgres);
    let index = Index::open(&choice).await.unwrap();
    measure_rows();
    let (before, busy) = (resident(), cpu());
    let mut took = Duration::ZERO;
    for member in 0..MEMBERS {
        for from in (0..pods / MEMBERS).step_by(BATCH) {
            let batch: Vec<Value> =
                (from..(from + BATCH).min(pods / MEMBERS)).map(|number| pod(member, number)).collect();
            let start = Instant::now();
            index.put(&format!("fleet/m{member}"), "", "v1", "pods", true, batch).await.unwrap();
            took += start.elapsed();
        }
    }
    let busy = cpu() - busy;
    println!("{pods} pods taken in {took:.2?}: {:.0} objects/s, {busy:.2?} of CPU", pods as f64 / took.as_secs_f64());
    let grown = resident().saturating_sub(before);
    println!("memory grew by {} KiB: {:.2} KiB for each pod", grown, grown as f64 / pods as f64);
    let all = || Query { resources: vec![ResourceName::new("", "pods")], ..Query::default() };
    measure(&index, "one member, whole list", 10, |_| Query::of("fleet/m3", "", "pods")).await;
    measure(&index, "first page of 500", 200, |_| Query { limit: Some(500), ..all() }).await;
    measure(&index, "newest 50 of all", 20, |_| Query {
        limit: Some(50),
        sort: vec![Sort { column: Column::Created, descending: true }],
        ..all()
    })
    .await;
    measure(&index, "by label, page of 100", 200, |n| Query {
        labels: LabelSelector::parse(&format!("app=app-{}", n % 500)).unwrap(),
        limit: Some(100),
        ..all()
    })
    .await;
    measure(&index, "by owner", 200, |n| Query {
        owner: Some(OwnerOf { uid: Some(format!("3-rs-{n}")), ..OwnerOf::default() }),
        ..all()
    })
    .await;
    measure(&index, "by name", 200, |n| Query { names: vec![format!("web-{n}-{}", n * 10)], ..all() }).await;
    measure(&index, "by part of a name, page of 100", 50, |n| Query {
        fuzzy: vec![format!("-{n}3")],
        limit: Some(100),
        ..all()
    })
    .await;
    let shelf = index.shelf("fleet/m0", "", "pods").unwrap();
    let mut times = Vec::new();
    for round in 0..200 {
        let start = Instant::now();
        let mut changed = pod(0, round);
        changed["metadata"]["resourceVersion"] = format!("{}", pods + round).into();
        index.put("fleet/m0", "", "v1", "pods", true, vec![changed]).await.unwrap();
        times.push(start.elapsed());
    }
    report("write until visible", times);
    drop(shelf);
}
