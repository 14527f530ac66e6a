//! The same requests to a real kube-apiserver and to Atoll, answers compared.
//!
//! Cases are data: `cases/*.yaml`, one entry per request; a file is a story told in order in a
//! namespace of its own. Accepted differences are listed with their reason in `known.yaml`, which
//! also becomes a part of `docs/compatibility.md`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod case;
mod compare;
mod definitions;
mod known;
mod levels;
mod normal;
mod side;

use std::path::{Path, PathBuf};

use atoll_testkit::{Cluster, Parts, SAME_CONTROLLERS, TestServer, remote};
use case::Story;
use futures::StreamExt as _;
use known::Known;
use side::Side;

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differential")
}

/// So many differences of one answer say enough.
const MOST: usize = 12;

/// How a story went.
#[derive(Default)]
struct Tally {
    cases: usize,
    equal: usize,
    accepted: usize,
    different: Vec<String>,
    used: Vec<usize>,
}

async fn tell(story: &Story, known: &Known, real: &Side, ours: &Side) -> Tally {
    let mut tally = Tally::default();
    let (mut real, mut ours) = (real.at(&story.namespace()), ours.at(&story.namespace()));
    real.prepare().await;
    ours.prepare().await;
    for case in &story.cases {
        let (theirs, mine) = tokio::join!(real.send(case), ours.send(case));
        tally.cases += 1;
        let mut differences = compare::answers(case, &theirs, &mine);
        let before = differences.len();
        differences.retain(|difference| match known.find(&story.name, &case.name, &difference.place) {
            Some(at) => {
                tally.used.push(at);
                false
            }
            None => true,
        });
        match (before, differences.len()) {
            (0, _) => tally.equal += 1,
            (_, 0) => tally.accepted += 1,
            _ => {
                let mut list: Vec<String> = differences.iter().take(MOST).map(|one| format!("    {one}")).collect();
                if differences.len() > MOST {
                    list.push(format!("    … and {} more", differences.len() - MOST));
                }
                tally.different.push(format!("{}: {}\n  {}\n{}", story.name, case.name, case.send, list.join("\n")));
            }
        }
    }
    tally
}

#[test]
fn atoll_answers_as_the_original_does() {
    let known = Known::read(&here().join("known.yaml"));
    let only = std::env::var("STORY").ok();
    let stories: Vec<Story> = Story::all(&here().join("cases"))
        .into_iter()
        .chain(definitions::stories())
        .filter(|story| only.as_ref().is_none_or(|wanted| story.name == *wanted))
        .collect();
    // A control plane that runs already saves time while cases are written.
    let given = std::env::var_os("ATOLL_REAL_KUBECONFIG").map(PathBuf::from);
    let cluster = match &given {
        Some(_) => None,
        None => match Cluster::start(Parts { controllers: SAME_CONTROLLERS, ..Parts::default() }).unwrap() {
            Some(cluster) => Some(cluster),
            None => return,
        },
    };
    let kubeconfig = given.unwrap_or_else(|| cluster.as_ref().unwrap().kubeconfig().to_owned());
    let server = TestServer::memory().unwrap();
    // The beginning is forgotten on both sides: what refers to it has expired.
    atoll_testkit::compact_etcd(kubeconfig.parent().unwrap(), 10).unwrap();
    server.compact("root").unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let tallies: Vec<Tally> = runtime.block_on(async {
        let real = Side::new(remote("real", &kubeconfig).await.unwrap(), side::strangers(&kubeconfig).await);
        let ours = Side::new(
            remote("atoll", &server.kubeconfig()).await.unwrap(),
            side::strangers(&server.kubeconfig()).await,
        );
        // Whoever defines kinds changes what discovery shows to all: those come last.
        let (later, first): (Vec<&Story>, Vec<&Story>) = stories.iter().partition(|story| story.defines());
        let mut tallies = Vec::new();
        for part in [first, later] {
            let told = part.into_iter().map(|story| tell(story, &known, &real, &ours));
            tallies.extend(futures::stream::iter(told).buffered(8).collect::<Vec<_>>().await);
        }
        tallies
    });
    let sum = |of: fn(&Tally) -> usize| tallies.iter().map(of).sum::<usize>();
    let different: Vec<&str> = tallies.iter().flat_map(|tally| &tally.different).map(String::as_str).collect();
    println!(
        "differential: {} cases, {} equal, {} with accepted differences, {} different",
        sum(|tally| tally.cases),
        sum(|tally| tally.equal),
        sum(|tally| tally.accepted),
        different.len(),
    );
    assert!(different.is_empty(), "{}", different.join("\n"));
    if only.is_none() {
        let used: Vec<usize> = tallies.iter().flat_map(|tally| tally.used.iter().copied()).collect();
        known.all_used(&used);
    }
}

#[test]
fn the_level_of_every_kind_is_in_the_docs() {
    atoll_testkit::peers::keep_section("docs/compatibility.md", "levels", &levels::table());
}

#[test]
fn the_list_of_accepted_differences_is_in_the_docs() {
    let known = Known::read(&here().join("known.yaml"));
    atoll_testkit::peers::keep_section("docs/compatibility.md", "accepted differences", &known.to_markdown());
}
