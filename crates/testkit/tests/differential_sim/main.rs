//! The same stories in a real cluster (kube-controller-manager, kube-scheduler, kwok's nodes) and in a
//! simulated one: what an observer sees, in the order in which it is seen, must be the same.
//!
//! A story acts, waits and writes down what can be observed; names that are drawn and moments are
//! replaced by what they are. Counters in between are not compared, as they depend on who is faster, and a state that
//! lasts only until somebody looks may be missing on one side. On a busy machine the real controllers do not do the
//! same twice; so stories that still differ are told again, and fail only when they never agree.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod batch;
mod deployment;
mod disruption;
mod side;
mod statefulset;

use std::collections::BTreeMap;

use atoll_testkit::{Cluster, Options, Parts, TestServer, remote};
use side::Side;

/// How often stories are told, at most.
const ROUNDS: usize = 3;

/// Everything one side showed, by story.
async fn tell(side: &Side, round: usize) -> Vec<(&'static str, Vec<String>)> {
    let (deployment, set, job, cron, budget) = tokio::join!(
        deployment::story(side.at(&format!("deployment-{round}")).await),
        statefulset::story(side.at(&format!("statefulset-{round}")).await),
        batch::job(side.at(&format!("job-{round}")).await),
        batch::cron(side.at(&format!("cronjob-{round}")).await),
        disruption::story(side.at(&format!("pdb-{round}")).await),
    );
    vec![("deployment", deployment), ("statefulset", set), ("job", job), ("cronjob", cron), ("pdb", budget)]
}

#[test]
fn a_simulated_cluster_shows_what_a_real_one_shows() {
    let parts = Parts { controllers: "*", scheduler: true, nodes: 2, old: false };
    let Some(cluster) = Cluster::start(parts).unwrap() else { return };
    let sim = Some(atoll_sim::Spec::with_nodes(2));
    let server = TestServer::start(Options { sim, ..Options::default() }).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (real, ours) = runtime.block_on(async {
        let real = Side::new("real", remote("real", cluster.kubeconfig()).await.unwrap());
        (real, Side::new("simulated", remote("simulated", &server.kubeconfig()).await.unwrap()))
    });
    let mut open: BTreeMap<&str, String> = BTreeMap::new();
    for round in 1..=ROUNDS {
        let (theirs, mine) = runtime.block_on(async { tokio::join!(tell(&real, round), tell(&ours, round)) });
        let known = std::mem::take(&mut open);
        for ((story, theirs), (_, mine)) in theirs.iter().zip(&mine) {
            println!("{story}: {} observations", theirs.len());
            if !same(theirs, mine) && (round == 1 || known.contains_key(story)) {
                open.insert(story, difference(story, theirs, mine));
            }
        }
        if open.is_empty() {
            return;
        }
    }
    panic!("{}", open.into_values().collect::<Vec<_>>().join("\n"));
}

fn same(theirs: &[String], mine: &[String]) -> bool {
    theirs.len() == mine.len() && theirs.iter().zip(mine).all(|(one, other)| side::agree(one, other))
}

fn difference(story: &str, theirs: &[String], mine: &[String]) -> String {
    let marked = |lines: &[String], other: &[String]| -> String {
        let known = |line: &String| other.iter().any(|one| side::agree(one, line));
        let mark = |line: &String| if known(line) { format!("    {line}\n") } else { format!("  ! {line}\n") };
        lines.iter().map(mark).collect()
    };
    format!("{story}\n  real:\n{}  simulated:\n{}", marked(theirs, mine), marked(mine, theirs))
}
