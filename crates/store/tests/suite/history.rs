//! Records what concurrent users of an engine did and saw, and checks that one order explains it.
//!
//! Each key is a register. Its writes are ordered by revision, so a history is linearizable if
//! every operation sees a version that is not older than any version known to someone before the
//! operation began, and that was not written after it ended.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use atoll_meta::{InstanceId, Revision};
use atoll_store::{Engine, Entry, Event, Expect, Scope, StoreError};
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use super::*;

#[derive(Clone, Debug)]
enum Outcome {
    /// A write that happened, with what it expected.
    Wrote { revision: Revision, expect: Expect, id: Option<String> },
    /// A read, or a refused write, which shows what is there.
    Saw(Option<(Revision, String)>),
    /// Nobody knows whether the write happened.
    Unknown { id: Option<String> },
}

#[derive(Clone, Debug)]
struct Step {
    key: String,
    began: Instant,
    ended: Instant,
    outcome: Outcome,
}

/// How much happens.
#[derive(Copy, Clone)]
pub struct Load {
    pub users: usize,
    pub steps: usize,
    pub keys: usize,
    pub seed: u64,
}

/// Lets users loose on an instance and checks what they saw. Meanwhile `disturb` runs.
pub async fn check_history(engine: Arc<dyn Engine>, id: InstanceId, load: Load, disturb: impl Future<Output = ()>) {
    let start = engine.revision(id).unwrap();
    let stop = set_watchers(&engine, id, start);
    let steps = Arc::new(Mutex::new(Vec::new()));
    let users: Vec<_> = (0..load.users)
        .map(|user| tokio::spawn(use_registers(engine.clone(), id, user, load, steps.clone())))
        .collect();
    disturb.await;
    for user in users {
        user.await.unwrap();
    }
    // The last write is known to have happened, so watchers know when they are complete.
    let end = loop {
        match engine.commit(id, vec![put(pod("end"), Expect::Any, "end")]).await {
            Ok(commit) => break commit.revision,
            Err(StoreError::Unavailable(_)) => tokio::time::sleep(Duration::from_millis(20)).await,
            Err(other) => panic!("{other}"),
        }
    };
    let mut logs = Vec::new();
    for watcher in stop {
        logs.push(within(watcher).await.unwrap());
    }
    let log = &logs[0];
    for other in &logs[1..] {
        assert_eq!(log, other, "all watchers see the same");
    }
    assert_eq!(log.last().unwrap().1, end);
    let steps = std::mem::take(&mut *steps.lock());
    check_log(log);
    check_registers(&steps, log, end);
}

type Seen = (String, Revision, Option<String>, Option<String>);

/// One watcher that stays, and three that come back where they left.
fn set_watchers(engine: &Arc<dyn Engine>, id: InstanceId, start: Revision) -> Vec<tokio::task::JoinHandle<Vec<Seen>>> {
    let watcher = |patience: usize| {
        let engine = engine.clone();
        tokio::spawn(async move {
            let (mut log, mut after): (Vec<Seen>, _) = (Vec::new(), start);
            loop {
                let mut watch = engine.watch(id, Scope::All, after).unwrap();
                for _ in 0..patience {
                    let events = watch.next().await.unwrap();
                    after = events.last().unwrap().revision;
                    log.extend(events.iter().map(|event: &Arc<Event>| shape(event)));
                    if log.last().unwrap().2.as_deref() == Some("end") {
                        return log;
                    }
                }
            }
        })
    };
    [usize::MAX, 1, 3, 7].map(watcher).into()
}

async fn use_registers(engine: Arc<dyn Engine>, id: InstanceId, user: usize, load: Load, steps: Arc<Mutex<Vec<Step>>>) {
    let mut random = StdRng::seed_from_u64(load.seed + user as u64);
    let mut known: HashMap<String, Option<Revision>> = HashMap::new();
    for number in 0..load.steps {
        let register = key(&format!("r{}", random.random_range(0..load.keys)));
        let name = register.to_string();
        let unique = format!("{user}-{number}");
        let expect = match known.get(&name).copied().flatten() {
            Some(revision) if random.random_bool(0.8) => Expect::At(revision),
            None if random.random_bool(0.8) => Expect::Absent,
            _ => Expect::Any,
        };
        let action = random.random_range(0..10);
        let began = Instant::now();
        let outcome = match action {
            0..4 => match engine.get(id, &name).await {
                Ok(entry) => Some(Outcome::Saw(entry.as_ref().map(seen))),
                Err(StoreError::Unavailable(_)) => None,
                Err(other) => panic!("{other}"),
            },
            // With an expectation only: without, removing nothing looks like a write.
            4 if matches!(expect, Expect::At(_)) => {
                let write = delete(register, expect);
                outcome(engine.commit(id, vec![write]).await.map(|commit| commit.revision), expect, None)
            }
            _ => {
                let write = put(register, expect, &unique);
                outcome(engine.commit(id, vec![write]).await.map(|commit| commit.revision), expect, Some(unique))
            }
        };
        let ended = Instant::now();
        match &outcome {
            Some(Outcome::Wrote { revision, id, .. }) => known.insert(name.clone(), id.as_ref().map(|_| *revision)),
            Some(Outcome::Saw(saw)) => known.insert(name.clone(), saw.as_ref().map(|(revision, _)| *revision)),
            _ => None,
        };
        if let Some(outcome) = outcome {
            steps.lock().push(Step { key: name, began, ended, outcome });
        }
    }
}

fn seen(entry: &Entry) -> (Revision, String) {
    (entry.modified, value(entry))
}

fn outcome(result: Result<Revision, StoreError>, expect: Expect, id: Option<String>) -> Option<Outcome> {
    match result {
        Ok(revision) => Some(Outcome::Wrote { revision, expect, id }),
        Err(StoreError::Conflict { current, .. }) => Some(Outcome::Saw(current.as_ref().map(seen))),
        Err(StoreError::Unavailable(_)) => Some(Outcome::Unknown { id }),
        Err(other) => panic!("{other}"),
    }
}

/// Revisions rise, and each event begins where the one before ended.
fn check_log(log: &[Seen]) {
    assert!(log.is_sorted_by(|a, b| a.1 < b.1), "one write per transaction, so no revision twice");
    let mut state: HashMap<&str, Option<String>> = HashMap::new();
    for (key, revision, current, previous) in log {
        let before = state.insert(key, current.clone()).flatten();
        assert_eq!(&before, previous, "{key} at {revision}");
    }
}

fn check_registers(steps: &[Step], log: &[Seen], end: Revision) {
    let mut by_key: BTreeMap<&str, Vec<&Step>> = BTreeMap::new();
    for step in steps {
        by_key.entry(&step.key).or_default().push(step);
    }
    let mut written = 0;
    for (key, steps) in by_key {
        // Versions of the register: revision and value, absent at first.
        let mut versions: Vec<(Revision, Option<String>)> = vec![(Revision(0), None)];
        versions.extend(log.iter().filter(|event| event.0 == key).map(|event| (event.1, event.2.clone())));
        assert!(versions.last().unwrap().0 < end);
        written += check_register(key, &steps, &versions);
    }
    assert!(written > 0, "a history without writes shows nothing");
    println!("history: {} steps, {written} acknowledged writes, {} events", steps.len(), log.len());
}

fn check_register(key: &str, steps: &[&Step], versions: &[(Revision, Option<String>)]) -> usize {
    let place = |revision: Revision| versions.binary_search_by_key(&revision, |version| version.0).ok();
    // When each version may first have existed: when its write began.
    let mut began: HashMap<usize, Instant> = HashMap::new();
    let mut written = 0;
    for step in steps {
        let (version, id) = match &step.outcome {
            Outcome::Wrote { revision, id, .. } => (place(*revision), id),
            Outcome::Unknown { id: Some(id) } => {
                (versions.iter().position(|version| version.1.as_ref() == Some(id)), &Some(id.clone()))
            }
            _ => continue,
        };
        if let Outcome::Wrote { revision, expect, .. } = &step.outcome {
            let version = version.unwrap_or_else(|| panic!("{key}: acknowledged write at {revision} is in no watch"));
            written += 1;
            assert_eq!(&versions[version].1, id, "{key}: another write has revision {revision}");
            let before = &versions[version - 1];
            match expect {
                Expect::At(at) => assert_eq!(before.0, *at, "{key}: compare failed unnoticed at {revision}"),
                Expect::Absent => assert_eq!(before.1, None, "{key}: created twice at {revision}"),
                Expect::Any => {}
            }
        }
        if let Some(version) = version {
            assert!(began.insert(version, step.began).is_none(), "{key}: two writes are one version");
        }
    }
    check_order(key, steps, versions, &began);
    written
}

/// Each step sees a version no older than what was known before it began and no newer than itself.
fn check_order(key: &str, steps: &[&Step], versions: &[(Revision, Option<String>)], began: &HashMap<usize, Instant>) {
    let mut steps: Vec<&&Step> = steps.iter().collect();
    steps.sort_by_key(|step| step.began);
    let mut finished: Vec<(Instant, usize)> = Vec::new();
    for step in steps {
        let known = finished.iter().filter(|(ended, _)| *ended < step.began).map(|(_, version)| *version).max();
        let known = known.unwrap_or(0);
        let version = match &step.outcome {
            Outcome::Unknown { .. } => continue,
            Outcome::Wrote { revision, .. } => {
                let version = versions.iter().position(|version| version.0 == *revision).expect("checked before");
                assert!(version > known, "{key}: write {revision} is older than what was known before it");
                version
            }
            Outcome::Saw(Some((revision, id))) => {
                let version = versions.iter().position(|version| version.0 == *revision);
                let version = version.unwrap_or_else(|| panic!("{key}: read {revision}, which was never written"));
                assert_eq!(versions[version].1.as_ref(), Some(id), "{key}: wrong value at {revision}");
                assert!(version >= known, "{key}: stale read of {revision}, {} was known", versions[known].0);
                version
            }
            // The oldest absence that is not stale asks the least of later steps.
            Outcome::Saw(None) => {
                let absent = (known..versions.len()).find(|version| versions[*version].1.is_none());
                absent.unwrap_or_else(|| panic!("{key}: read nothing although something was there"))
            }
        };
        // A removal by an unknown outcome has no known beginning.
        if let Some(born) = began.get(&version) {
            assert!(*born <= step.ended, "{key}: saw {} before it was written", versions[version].0);
        }
        finished.push((step.ended, version));
    }
}
