//! A disk without room, made by a limit on the length of files.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::hub::{Hub, MAPS, map};

async fn writable(hub: &Hub) -> bool {
    let (_, metrics) = hub.ask("GET", "/metrics", None).await;
    metrics.lines().any(|line| line == "atoll_store_writable 1")
}

#[tokio::test]
async fn a_full_disk_refuses_writes_serves_reads_and_takes_writes_again_when_there_is_room() {
    if std::process::Command::new("prlimit").arg("--version").output().is_err() {
        return atoll_testkit::peers::skip("prlimit is missing (Debian: util-linux)");
    }
    let directory = tempfile::tempdir().unwrap();
    let hub = Hub::start_limited(directory.path(), 4096);
    let mut kept = Vec::new();
    let refused = loop {
        let name = format!("m{:03}", kept.len());
        let (code, text) = hub.ask("POST", MAPS, Some(&map(&name, 200_000))).await;
        if code != 201 {
            assert_eq!(code, 503, "{text}");
            break serde_json::from_str::<Value>(&text).unwrap();
        }
        kept.push(name);
        assert!(kept.len() < 100, "the limit is never reached");
    };
    assert!(!kept.is_empty());
    assert_eq!((&refused["kind"], &refused["reason"]), (&json!("Status"), &json!("ServiceUnavailable")));
    assert!(refused["message"].as_str().unwrap().contains("the disk is full"), "{refused}");
    // A small write may still fit and be taken for the end of it, so large ones are tried until both have told.
    let since = Instant::now();
    loop {
        let (code, text) = hub.ask("POST", MAPS, Some(&map("lost", 200_000))).await;
        assert_eq!(code, 503, "{text}");
        let (metric, (code, checks)) = (writable(&hub).await, hub.ask("GET", "/readyz", None).await);
        if !metric && code == 500 && checks.contains("[-]etcd failed") {
            break;
        }
        assert!(since.elapsed() < Duration::from_secs(60), "neither metric nor health tell of it: {checks}");
    }
    assert_eq!(hub.maps().await.iter().filter(|name| name.starts_with('m')).count(), kept.len());
    assert_eq!(hub.ask("GET", &format!("{MAPS}/{}", kept[0]), None).await.0, 200);

    hub.lift_limit();
    let since = Instant::now();
    while !writable(&hub).await {
        assert!(since.elapsed() < Duration::from_secs(60), "it does not resume");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
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
