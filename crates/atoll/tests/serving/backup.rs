//! `atoll store backup` and `atoll store restore`.

use atoll_testkit::peers;

use crate::hub::{Hub, MAPS, atoll, file, map};

const QUIET: &str = "--metrics-listen off --health-listen off";

#[tokio::test]
async fn a_backup_brings_everything_into_an_empty_store_and_into_no_other() {
    let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let backup = file(&new, "hub.backup");
    let store = |words: &str, directory: &tempfile::TempDir| {
        let choice = format!("redb:{}", directory.path().join("data").display());
        let mut command = atoll(&format!("store {words} --store {choice}"));
        peers::run(command.arg(&backup))
    };
    let hub = Hub::start(&old.path().join("data"), QUIET);
    assert_eq!(hub.ask("POST", MAPS, Some(&map("kept", 10))).await.0, 201);
    peers::run(atoll("instance create tenant").env("KUBECONFIG", old.path().join("data/kubeconfig"))).ok();
    let path = format!("/instances/tenant{MAPS}");
    assert_eq!(hub.ask("POST", &path, Some(&map("theirs", 10))).await.0, 201);
    assert!(store("backup", &old).fails().contains("in use"), "a store that is in use cannot be opened twice");
    drop(hub);

    store("backup", &old).ok();
    store("restore", &new).ok();
    let refused = store("restore", &new).fails();
    assert!(refused.starts_with("error: ") && refused.contains("empty"), "{refused}");
    let hub = Hub::start(&new.path().join("data"), QUIET);
    assert!(hub.maps().await.contains(&"kept".to_owned()));
    assert_eq!(hub.ask("GET", &format!("{path}/theirs"), None).await.0, 200);
}
