//! A disk without room, made by a limit on the length of files.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::hub::{Hub, MAPS, map};

/// Longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(60);

async fn writable(hub: &Hub) -> bool {
    let (_, metrics) = hub.ask("GET", "/metrics", None).await;
    metrics.lines().any(|line| line == "atoll_store_writable 1")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_writes_serves_reads_and_takes_writes_again_when_there_is_room() {
    if std::process::Command::new("prlimit").arg("--version").output().is_err() {
        return atoll_testkit::peers::skip("prlimit is missing (Debian: util-linux)");
    }
    let directory = tempfile::tempdir().unwrap();
    let hub = Hub::start_limited(directory.path(), 4096);
    let mut kept = Vec::new();
    let since = Instant::now();
    // A small write may still fit and be taken for the end of it, so large ones go on until all have told.
    for number in 0.. {
        assert!(since.elapsed() < PATIENCE, "metric and health never told of it");
        let name = format!("m{number:03}");
        let (code, text) = hub.ask("POST", MAPS, Some(&map(&name, 200_000))).await;
        if code == 201 {
            kept.push(name);
            continue;
        }
        let refused: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((code, &refused["kind"]), (503, &json!("Status")), "{text}");
        assert_eq!(refused["reason"], "ServiceUnavailable");
        assert!(refused["message"].as_str().unwrap().contains("the disk is full"), "{refused}");
        let (ready, checks) = hub.ask("GET", "/readyz", None).await;
        if !writable(&hub).await && ready == 500 && checks.contains("[-]etcd failed") {
            break;
        }
    }
    let found = hub.maps().await;
    assert!(!kept.is_empty() && kept.iter().all(|name| found.contains(name)), "{kept:?} are in {found:?}");
    assert_eq!(hub.ask("GET", &format!("{MAPS}/{}", kept[0]), None).await.0, 200);

    hub.lift_limit();
    while !tokio::task::block_in_place(|| hub.said.recv_timeout(PATIENCE)).unwrap().contains("writing works again") {}
    assert!(writable(&hub).await);
    let (code, text) = hub.ask("POST", MAPS, Some(&map("more", 200_000))).await;
    assert_eq!(code, 201, "{text}");
    kept.push("more".into());
    assert_eq!(hub.ask("GET", "/readyz", None).await.0, 200);

    // Killed at once, so that only what is on the disk is left.
    drop(hub);
    let again = Hub::start(directory.path(), "--metrics-listen off --health-listen off");
    let found = again.maps().await;
    let lost: Vec<&String> = kept.iter().filter(|name| !found.contains(name)).collect();
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
}
