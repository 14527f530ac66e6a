//! Backups go from any engine to any other, and damaged ones change nothing.
#![allow(clippy::unwrap_used, missing_docs)]

mod suite;

use atoll_meta::InstanceId;
use atoll_store::{BackupError, Engine, Expect, MemoryEngine, Options, RedbEngine, backup, restore};
use suite::{delete, key, put, value};

const ROOT: InstanceId = InstanceId::ROOT;

async fn sample() -> MemoryEngine {
    let engine = MemoryEngine::new();
    let member = engine.create_instance("member").await.unwrap();
    let empty = engine.create_instance("empty").await.unwrap();
    engine.drop_instance(empty).await.unwrap();
    engine.create_instance("idle").await.unwrap();
    for round in 0..250 {
        let write = put(key(&format!("k{}", round % 200)), Expect::Any, &round.to_string());
        engine.commit(ROOT, vec![write.clone()]).await.unwrap();
        engine.commit(member, vec![write]).await.unwrap();
    }
    engine.commit(member, vec![delete(key("k3"), Expect::Any)]).await.unwrap();
    engine
}

/// Everything but revisions: name of the instance, key, value.
async fn content(engine: &dyn Engine) -> Vec<(String, String, String)> {
    let mut content = Vec::new();
    for (id, name) in engine.instances() {
        let snapshot = engine.snapshot(id, None).await.unwrap();
        content.extend(snapshot.entries.iter().map(|(key, entry)| (name.to_string(), key.to_string(), value(entry))));
        content.push((name.to_string(), String::new(), String::new()));
    }
    content.sort();
    content
}

#[tokio::test]
async fn a_restored_store_holds_the_same_and_continues_above_the_old_revisions() {
    let source = sample().await;
    let mut bytes = Vec::new();
    let summary = backup(&source, &mut bytes).await.unwrap();
    assert_eq!((summary.instances, summary.objects), (3, 399));
    let dir = tempfile::tempdir().unwrap();
    let target = RedbEngine::open(dir.path(), Options::default()).unwrap();
    assert_eq!(restore(&target, &mut &bytes[..]).await.unwrap(), summary);
    assert_eq!(content(&target).await, content(&source).await);
    drop(target);
    let target = RedbEngine::open(dir.path(), Options::default()).unwrap();
    assert_eq!(content(&target).await, content(&source).await);
    for (id, name) in source.instances() {
        let (theirs, _) = target.instances().into_iter().find(|(_, other)| *other == name).unwrap();
        assert!(target.revision(theirs).unwrap() >= source.revision(id).unwrap());
    }
    let mut second = Vec::new();
    backup(&target, &mut second).await.unwrap();
    assert!(matches!(restore(&target, &mut &second[..]).await, Err(BackupError::NotEmpty)));
}

#[tokio::test]
async fn a_damaged_backup_is_refused_and_changes_nothing() {
    let mut bytes = Vec::new();
    backup(&sample().await, &mut bytes).await.unwrap();
    let mut broken: Vec<(String, Vec<u8>)> = Vec::new();
    for at in (0..bytes.len()).step_by(97).chain(0..40) {
        let mut copy = bytes.clone();
        copy[at] ^= 1;
        broken.push((format!("byte {at} flipped"), copy));
    }
    for length in (0..bytes.len()).step_by(211) {
        broken.push((format!("cut to {length}"), bytes[..length].to_vec()));
    }
    broken.push(("longer".into(), [&bytes[..], b"x"].concat()));
    broken.push(("twice".into(), bytes.repeat(2)));
    let target = MemoryEngine::new();
    for (what, copy) in broken {
        let result = restore(&target, &mut &copy[..]).await;
        assert!(matches!(result, Err(BackupError::Format(_))), "{what}: {result:?}");
    }
    assert_eq!(target.instances().len(), 1);
    assert_eq!(target.usage(ROOT).unwrap(), (0, 0));
}
