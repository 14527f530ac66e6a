//! The process is killed in the middle of its work: nothing that was told to be written is lost, and what is
//! there is whole.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use atoll_index::{Choice, Everything, Index, Query};
use atoll_meta::selector::LabelSelector;
use serde_json::{Value, json};

const FILE: &str = "ATOLL_TEST_CRASH_FILE";
const BATCH: usize = 200;

fn object(round: usize, number: usize) -> Value {
    json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {
        "name": format!("c{number}"), "namespace": "n", "uid": format!("u{number}"), "resourceVersion": format!("{}", round * BATCH + number + 1),
        "labels": {"round": round.to_string()}, "ownerReferences": [{"apiVersion": "v1", "kind": "X", "name": "x", "uid": format!("o{round}")}],
    }})
}

/// Runs in a process of its own, which is killed: writes for ever and says what is written.
#[tokio::test]
async fn writes_until_killed() {
    let Some(file) = std::env::var_os(FILE) else { return };
    let index = Index::open(&Choice::Sqlite(file.into())).await.unwrap();
    for round in 0.. {
        let all = (0..BATCH).map(|number| object(round, number)).collect();
        index.put("m", "", "v1", "configmaps", true, all).await.unwrap();
        println!("written {round}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_and_nothing_is_half_there_after_a_kill() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("index.db");
    let mut last = 0;
    for kill in 0..4 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["writes_until_killed", "--exact", "--nocapture"])
            .env(FILE, &file)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let rounds =
            lines.map_while(Result::ok).filter_map(|line| line.rsplit_once("written ")?.1.trim().parse::<usize>().ok());
        // Each time after another number of rounds, and in the middle of the next one.
        for round in rounds {
            last = round;
            if round >= 2 + kill * 3 {
                break;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();

        let index = Index::open(&Choice::Sqlite(file.clone())).await.unwrap();
        let found = index.query(&Query::of("m", "", "configmaps"), &Everything).await.unwrap().items;
        assert_eq!(found.len(), BATCH);
        let rounds: Vec<usize> = found
            .iter()
            .map(|item| item.tree()["metadata"]["labels"]["round"].as_str().unwrap().parse().unwrap())
            .collect();
        assert!(rounds.iter().all(|round| *round >= last), "round {last} was written");
        // Labels and objects tell the same, whichever of them is asked.
        for round in last..=last + 2 {
            let labels = LabelSelector::parse(&format!("round={round}")).unwrap();
            let by_label =
                index.query(&Query { labels, ..Query::of("m", "", "configmaps") }, &Everything).await.unwrap();
            assert_eq!(by_label.items.len(), rounds.iter().filter(|own| **own == round).count(), "round {round}");
        }
        index.close().await;
    }
}
