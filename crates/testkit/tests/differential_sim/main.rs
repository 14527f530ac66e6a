//! The same stories in a real cluster (kube-controller-manager, kube-scheduler, kwok's nodes) and in a
//! simulated one: what an observer sees, in the order in which it is seen, must be the same.
//!
//! A story acts, waits and writes down what can be observed; names that are drawn and moments are
//! replaced by what they are. Counters in between are not compared, as they depend on who is faster.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod batch;
mod deployment;
mod disruption;
mod side;
mod statefulset;

use atoll_testkit::{Cluster, Options, Parts, TestServer, remote};
use side::Side;

/// Everything one side showed, by story.
async fn tell(side: Side) -> Vec<(&'static str, Vec<String>)> {
    let (deployment, set, job, cron, budget) = tokio::join!(
        deployment::story(side.at("deployment").await),
        statefulset::story(side.at("statefulset").await),
        batch::job(side.at("job").await),
        batch::cron(side.at("cronjob").await),
        disruption::story(side.at("pdb").await),
    );
    vec![("deployment", deployment), ("statefulset", set), ("job", job), ("cronjob", cron), ("pdb", budget)]
}

#[test]
fn a_simulated_cluster_shows_what_a_real_one_shows() {
    let parts = Parts { controllers: "*", scheduler: true, nodes: 2 };
    let Some(cluster) = Cluster::start(parts).unwrap() else { return };
    let sim = Some(atoll_sim::Spec::with_nodes(2));
    let server = TestServer::start(Options { sim, ..Options::default() }).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (real, ours) = runtime.block_on(async {
        let real = Side::new("real", remote("real", cluster.kubeconfig()).await.unwrap());
        let ours = Side::new("simulated", remote("simulated", &server.kubeconfig()).await.unwrap());
        tokio::join!(tell(real), tell(ours))
    });
    let mut different = Vec::new();
    for ((story, theirs), (_, mine)) in real.iter().zip(&ours) {
        println!("{story}: {} observations", theirs.len());
        if theirs != mine {
            let marked = |lines: &[String], other: &[String]| -> String {
                let mark = |line: &String| {
                    if other.contains(line) { format!("    {line}\n") } else { format!("  ! {line}\n") }
                };
                lines.iter().map(mark).collect()
            };
            different.push(format!("{story}\n  real:\n{}  simulated:\n{}", marked(theirs, mine), marked(mine, theirs)));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}
