//! Data files that are not what they should be are refused, never half read.
#![allow(clippy::unwrap_used, missing_docs)]

mod suite;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use atoll_meta::{InstanceId, Revision};
use atoll_store::{Engine as _, Expect, Options, RedbEngine, StoreError};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use redb::{Database, TableDefinition};
use suite::{delete, key, put};

const ROOT: InstanceId = InstanceId::ROOT;

type Content = BTreeMap<String, (Revision, Vec<u8>)>;

async fn content(engine: &RedbEngine) -> Content {
    let snapshot = engine.snapshot(ROOT, None).await.unwrap();
    let entries = snapshot.entries.iter();
    entries.map(|(key, entry)| (key.to_string(), (entry.modified, entry.object.body.to_vec()))).collect()
}

fn open(dir: &Path) -> Result<RedbEngine, StoreError> {
    RedbEngine::open(dir, Options::default())
}

fn file(dir: &Path) -> PathBuf {
    dir.join("store.redb")
}

async fn fill(engine: &RedbEngine) {
    for round in 0..60 {
        let writes = (0..5).map(|n| put(key(&format!("k{}", round * 3 + n)), Expect::Any, &"v".repeat(round * 20)));
        engine.commit(ROOT, writes.collect()).await.unwrap();
    }
    engine.commit(ROOT, vec![delete(key("k7"), Expect::Any)]).await.unwrap();
}

/// Opens a damaged copy: it must be refused with a sentence, or hold exactly what it should.
async fn judge(dir: &Path, expected: &Content, what: &str) -> bool {
    match open(dir) {
        Err(StoreError::Damaged(why)) => {
            assert!(why.contains("store.redb"), "{what}: {why}");
            false
        }
        Err(other) => panic!("{what}: {other}"),
        Ok(engine) => {
            assert_eq!(&content(&engine).await, expected, "{what}: opened with other content");
            true
        }
    }
}

fn damaged(dir: &Path) -> String {
    match open(dir) {
        Err(StoreError::Damaged(why)) => why,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("opened"),
    }
}

#[tokio::test]
async fn a_reopened_file_holds_everything() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path()).unwrap();
    fill(&engine).await;
    let member = engine.create_instance("member").await.unwrap();
    let gone = engine.create_instance("gone").await.unwrap();
    for round in 0..30 {
        let writes = (0..40).map(|n| put(key(&format!("k{}", round * 40 + n)), Expect::Absent, "x")).collect();
        engine.commit(gone, writes).await.unwrap();
    }
    engine.drop_instance(gone).await.unwrap();
    let (before, revision) = (content(&engine).await, engine.revision(ROOT).unwrap());
    assert!(matches!(open(dir.path()), Err(StoreError::Unavailable(why)) if why.contains("in use")));
    drop(engine);
    for _ in 0..2 {
        let engine = open(dir.path()).unwrap();
        assert_eq!(content(&engine).await, before);
        assert_eq!(engine.revision(ROOT).unwrap(), revision);
        assert_eq!(engine.instances(), [(ROOT, "root".into()), (member, "member".into())]);
        assert!(engine.watch(ROOT, atoll_store::Scope::All, revision).is_ok());
        assert!(suite::is_compacted(&engine.watch(ROOT, atoll_store::Scope::All, Revision(2))));
    }
    let engine = open(dir.path()).unwrap();
    let next = engine.create_instance("gone").await.unwrap();
    assert!(next > gone, "numbers are not used again after a restart");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(file(dir.path())).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600, "secrets are for the owner only");
}

/// Copies a store as it would be left by a crash now, or after a clean end.
async fn sample(clean: bool) -> (Vec<u8>, Vec<u8>, Content) {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path()).unwrap();
    fill(&engine).await;
    let expected = content(&engine).await;
    let engine = if clean {
        drop(engine);
        None
    } else {
        Some(engine)
    };
    let bytes = std::fs::read(file(dir.path())).unwrap();
    let mark = std::fs::read(dir.path().join("store.redb.mark")).unwrap();
    drop(engine);
    (bytes, mark, expected)
}

fn place(bytes: &[u8], mark: &[u8]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(file(dir.path()), bytes).unwrap();
    std::fs::write(dir.path().join("store.redb.mark"), mark).unwrap();
    dir
}

#[tokio::test]
async fn flipped_bytes_never_lose_anything_silently() {
    let mut random = StdRng::seed_from_u64(7);
    for clean in [true, false] {
        let (bytes, mark, expected) = sample(clean).await;
        assert!(judge(place(&bytes, &mark).path(), &expected, "undamaged").await);
        let mut refused = 0;
        for round in 0..60 {
            let mut copy = bytes.clone();
            // Early bytes are the header, where it hurts most.
            let end = if round % 3 == 0 { 512 } else { copy.len() };
            let at = random.random_range(0..end);
            copy[at] ^= random.random_range(1..=255u8);
            let what = format!("byte {at} flipped, closed cleanly: {clean}");
            refused += usize::from(!judge(place(&copy, &mark).path(), &expected, &what).await);
        }
        assert!(refused > 0, "some of the flips hit something");
    }
}

#[tokio::test]
async fn truncated_files_are_refused() {
    for clean in [true, false] {
        let (bytes, mark, expected) = sample(clean).await;
        for length in [0, 1, 100, 320, 4096, bytes.len() / 4, bytes.len() / 2, bytes.len() - 4096] {
            let dir = place(&bytes[..length], &mark);
            let opened = judge(dir.path(), &expected, &format!("cut to {length}, closed cleanly: {clean}")).await;
            assert!(!opened || length > bytes.len() / 2, "a file cut to {length} bytes was accepted");
        }
    }
}

#[tokio::test]
async fn a_lost_or_older_data_file_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path()).unwrap();
    engine.commit(ROOT, vec![put(key("a"), Expect::Any, "1")]).await.unwrap();
    drop(engine);
    let old = std::fs::read(file(dir.path())).unwrap();
    let engine = open(dir.path()).unwrap();
    engine.commit(ROOT, vec![put(key("a"), Expect::Any, "2")]).await.unwrap();
    drop(engine);
    std::fs::write(file(dir.path()), old).unwrap();
    let why = damaged(dir.path());
    assert!(why.contains("was acknowledged"), "{why}");
    std::fs::remove_file(file(dir.path())).unwrap();
    let why = damaged(dir.path());
    assert!(why.contains("missing or empty"), "{why}");
}

#[tokio::test]
async fn foreign_and_newer_files_are_refused() {
    for (name, bytes) in [
        ("text", b"hello, this is no database".to_vec()),
        ("zeros", vec![0; 65536]),
        ("sqlite", b"SQLite format 3\0".repeat(500)),
    ] {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(file(dir.path()), bytes.clone()).unwrap();
        damaged(dir.path());
        assert_eq!(std::fs::read(file(dir.path())).unwrap(), bytes, "{name} was changed");
    }
    let dir = tempfile::tempdir().unwrap();
    let database = Database::create(file(dir.path())).unwrap();
    let write = database.begin_write().unwrap();
    write.open_table(TableDefinition::<&str, &str>::new("theirs")).unwrap().insert("a", "b").unwrap();
    write.commit().unwrap();
    drop(database);
    assert!(damaged(dir.path()).contains("another program"));

    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()).unwrap());
    let database = Database::create(file(dir.path())).unwrap();
    let write = database.begin_write().unwrap();
    write.open_table(TableDefinition::<&str, u64>::new("meta")).unwrap().insert("format", 2).unwrap();
    write.commit().unwrap();
    drop(database);
    let why = damaged(dir.path());
    assert!(why.contains("format 1") && why.contains("has 2"), "{why}");
}
