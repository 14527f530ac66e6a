//! A disk that fills up, for tests.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redb::StorageBackend;
use redb::backends::FileBackend;

use super::file::{self, Opener};

#[derive(Debug)]
struct Faulty {
    disk: FileBackend,
    full: Arc<AtomicBool>,
}

impl Faulty {
    fn check(&self) -> io::Result<()> {
        if self.full.load(Ordering::SeqCst) { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}

impl StorageBackend for Faulty {
    fn len(&self) -> io::Result<u64> {
        self.disk.len()
    }
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.disk.read(offset, out)
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.check()?;
        self.disk.set_len(len)
    }
    fn sync_data(&self) -> io::Result<()> {
        self.check()?;
        self.disk.sync_data()
    }
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.check()?;
        self.disk.write(offset, data)
    }
    fn close(&self) -> io::Result<()> {
        self.disk.close()
    }
}

/// An opener whose disk is full while the flag is set.
fn opener(path: PathBuf, full: Arc<AtomicBool>) -> Opener {
    Box::new(move || {
        let file = std::fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)?;
        let disk = Faulty { disk: FileBackend::new(file)?, full: full.clone() };
        file::open(|builder| builder.create_with_backend(disk))
    })
}

mod tests {
    #![allow(clippy::unwrap_used)]

    use atoll_meta::{InstanceId, Key, Object};
    use serde_json::json;

    use super::*;
    use crate::{Engine, Expect, Op, Options, RedbEngine, StoreError, Write};

    fn put(name: &str) -> Vec<Write> {
        let object = Object::encode(&json!({"kind": "ConfigMap", "metadata": {"name": name}})).unwrap();
        vec![Write {
            key: Key::new("", "configmaps", "d", name),
            expect: Expect::Absent,
            op: Op::Put(Arc::new(object)),
        }]
    }

    #[tokio::test]
    async fn a_full_disk_fails_writes_serves_reads_and_heals_by_itself() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store.redb");
        let full = Arc::new(AtomicBool::new(false));
        let engine =
            RedbEngine::open_with(path.clone(), Options::default(), opener(path.clone(), full.clone())).unwrap();
        let before = engine.commit(InstanceId::ROOT, put("a")).await.unwrap().revision;
        for round in 0..3 {
            full.store(true, Ordering::SeqCst);
            let error = engine.commit(InstanceId::ROOT, put(&format!("lost{round}"))).await.unwrap_err();
            assert!(matches!(&error, StoreError::Unavailable(why) if why.contains("the disk is full")), "{error}");
            assert!(engine.health().is_err());
            assert!(engine.get(InstanceId::ROOT, "configmaps./d/a").await.unwrap().is_some());
            full.store(false, Ordering::SeqCst);
            tokio::time::timeout(std::time::Duration::from_secs(20), async {
                while engine.health().is_err() {
                    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                }
            })
            .await
            .unwrap();
            engine.commit(InstanceId::ROOT, put(&format!("kept{round}"))).await.unwrap();
        }
        assert!(engine.revision(InstanceId::ROOT).unwrap() > before);
        let entries = engine.snapshot(InstanceId::ROOT, None).await.unwrap().entries;
        drop(engine);
        let again = RedbEngine::open(&path, Options::default()).unwrap();
        let reread = again.snapshot(InstanceId::ROOT, None).await.unwrap().entries;
        assert!(entries.keys().eq(reread.keys()), "memory and disk agree on what was written");
        for round in 0..3 {
            assert!(reread.contains_key(format!("configmaps./d/kept{round}").as_str()));
        }
    }
    /// Writes under new names, again and again, until told to end; returns what was acknowledged.
    async fn insist(engine: Arc<RedbEngine>, writer: usize, end: Arc<AtomicBool>) -> Vec<String> {
        let mut kept = Vec::new();
        for number in 0.. {
            let name = format!("w{writer}-{number}");
            if engine.commit(InstanceId::ROOT, put(&name)).await.is_ok() {
                kept.push(name);
            }
            if end.load(Ordering::SeqCst) {
                break;
            }
        }
        kept
    }

    async fn until(what: impl Fn() -> bool) {
        let seen = async {
            while !what() {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(60), seen).await.unwrap();
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_full_disk_heals_although_writers_try_without_pause_and_keeps_what_they_were_promised() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store.redb");
        let (full, end) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let engine = Arc::new(
            RedbEngine::open_with(path.clone(), Options::default(), opener(path.clone(), full.clone())).unwrap(),
        );
        let writers: Vec<_> = (0..4).map(|writer| tokio::spawn(insist(engine.clone(), writer, end.clone()))).collect();
        for _ in 0..3 {
            let before = engine.revision(InstanceId::ROOT).unwrap();
            until(|| engine.revision(InstanceId::ROOT).unwrap() > before).await;
            full.store(true, Ordering::SeqCst);
            until(|| engine.health().is_err()).await;
            assert!(!engine.snapshot(InstanceId::ROOT, None).await.unwrap().entries.is_empty());
            full.store(false, Ordering::SeqCst);
            until(|| engine.health().is_ok()).await;
        }
        end.store(true, Ordering::SeqCst);
        let mut kept = Vec::new();
        for writer in writers {
            kept.extend(writer.await.unwrap());
        }
        drop(engine);
        let again = RedbEngine::open(&path, Options::default()).unwrap();
        let reread = again.snapshot(InstanceId::ROOT, None).await.unwrap().entries;
        let lost: Vec<_> =
            kept.iter().filter(|name| !reread.contains_key(format!("configmaps./d/{name}").as_str())).collect();
        assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
    }
}
