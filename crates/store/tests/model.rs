//! Random histories against the simplest model: a list of maps, one per revision.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeMap;
use std::sync::Arc;

use atoll_meta::{InstanceId, Key, Object, Revision};
use atoll_store::{Engine as _, Expect, MemoryEngine, Op, Scope, StoreError, Write};
use futures::FutureExt as _;
use proptest::prelude::*;
use serde_json::json;

const ROOT: InstanceId = InstanceId::ROOT;

#[derive(Clone, Debug)]
enum Step {
    Commit(Vec<(u8, Action)>),
    /// Compacts at this fraction of the known revisions.
    Compact(u8),
}

#[derive(Clone, Debug)]
enum Action {
    Put(u8),
    Create(u8),
    Delete,
    Check,
}

type State = BTreeMap<u8, (u8, Revision, Revision)>;

fn step() -> impl Strategy<Value = Step> {
    let action = prop_oneof![
        4 => any::<u8>().prop_map(Action::Put),
        2 => any::<u8>().prop_map(Action::Create),
        2 => Just(Action::Delete),
        1 => Just(Action::Check),
    ];
    prop_oneof![
        20 => prop::collection::vec((0..6u8, action), 1..4).prop_map(Step::Commit),
        1 => any::<u8>().prop_map(Step::Compact),
    ]
}

fn key(name: u8) -> Key {
    // Two resources, so that scopes differ.
    Key::new("", if name.is_multiple_of(2) { "configmaps" } else { "pods" }, "d", &name.to_string())
}

fn write(name: u8, action: &Action) -> Write {
    let put = |value: u8| {
        let object = Object::encode(&json!({"metadata": {"name": "x"}, "value": value})).unwrap();
        Op::Put(Arc::new(object))
    };
    let (expect, op) = match action {
        Action::Put(value) => (Expect::Any, put(*value)),
        Action::Create(value) => (Expect::Absent, put(*value)),
        Action::Delete => (Expect::Any, Op::Delete(None)),
        Action::Check => (Expect::Any, Op::Check),
    };
    Write { key: key(name), expect, op }
}

/// What the transaction makes of a state; `None` when it is refused.
fn predict(state: &State, actions: &[(u8, Action)], revision: Revision) -> Option<State> {
    let mut next = state.clone();
    if actions.iter().any(|(name, action)| matches!(action, Action::Create(_)) && state.contains_key(name)) {
        return None;
    }
    // Of each key the last action counts.
    let last: BTreeMap<u8, &Action> = actions
        .iter()
        .filter(|(_, action)| !matches!(action, Action::Check))
        .map(|(name, action)| (*name, action))
        .collect();
    for (name, action) in &last {
        let before = state.get(name);
        match action {
            Action::Put(value) | Action::Create(value) => {
                let created = before.map_or(revision, |before| before.2);
                next.insert(*name, (*value, revision, created));
            }
            Action::Delete if before.is_some() => drop(next.remove(name)),
            Action::Delete | Action::Check => {}
        }
    }
    Some(next)
}

fn now<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().expect("the memory engine never waits")
}

fn read(engine: &MemoryEngine, at: Revision) -> Result<State, StoreError> {
    let snapshot = now(engine.snapshot(ROOT, Some(at)))?;
    let entries = snapshot.entries.iter().map(|(key, entry)| {
        let tree: serde_json::Value = serde_json::from_slice(&entry.object.body).unwrap();
        let name = key.as_str().rsplit('/').next().unwrap().parse().unwrap();
        (name, (tree["value"].as_u64().unwrap() as u8, entry.modified, entry.created))
    });
    Ok(entries.collect())
}

/// Applies what a watch gives to the state it began with.
fn replay(engine: &MemoryEngine, scope: Scope, after: Revision, state: &mut State) {
    let mut watch = engine.watch(ROOT, scope, after).unwrap();
    while let Some(events) = watch.next().now_or_never() {
        for event in events.unwrap() {
            let name: u8 = event.key.as_str().rsplit('/').next().unwrap().parse().unwrap();
            let before = event.previous.as_ref().map(|entry| (entry.modified, entry.created));
            assert_eq!(state.get(&name).map(|entry| (entry.1, entry.2)), before);
            match &event.current {
                Some(entry) => {
                    let tree: serde_json::Value = serde_json::from_slice(&entry.object.body).unwrap();
                    state.insert(name, (tree["value"].as_u64().unwrap() as u8, entry.modified, entry.created));
                }
                None => drop(state.remove(&name)),
            }
        }
    }
    assert_eq!(watch.progress(), engine.revision(ROOT).unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_retained_revision_reads_as_it_was_and_every_watch_leads_to_now(steps in prop::collection::vec(step(), 1..150)) {
        let engine = MemoryEngine::new();
        let mut revision = engine.revision(ROOT).unwrap();
        let mut states: BTreeMap<Revision, State> = [(revision, State::new())].into();
        for step in steps {
            match step {
                Step::Commit(actions) => {
                    let writes = actions.iter().map(|(name, action)| write(*name, action)).collect();
                    let before = states.last_key_value().unwrap().1.clone();
                    let result = now(engine.commit(ROOT, writes));
                    match predict(&before, &actions, revision.next()) {
                        None => {
                            let refused = matches!(result, Err(StoreError::Conflict { .. }));
                            prop_assert!(refused);
                        }
                        Some(after) if after == before => prop_assert!(result.is_ok()),
                        Some(after) => {
                            revision = revision.next();
                            prop_assert_eq!(result.unwrap().revision, revision);
                            states.insert(revision, after);
                        }
                    }
                }
                Step::Compact(fraction) => {
                    let place = states.len() * usize::from(fraction) / 256;
                    let upto = *states.keys().nth(place).unwrap();
                    now(engine.compact(ROOT, upto)).unwrap();
                    states = states.split_off(&upto);
                }
            }
        }
        let newest = states.last_key_value().unwrap().1;
        for (at, state) in &states {
            prop_assert_eq!(&read(&engine, *at).unwrap(), state);
            let mut replayed = state.clone();
            replay(&engine, Scope::All, *at, &mut replayed);
            prop_assert_eq!(&replayed, newest);
            for (resource, parity) in [("configmaps.", 0), ("pods.", 1)] {
                let part = |state: &State| -> State { state.clone().into_iter().filter(|(name, _)| name % 2 == parity).collect() };
                let mut replayed = part(state);
                replay(&engine, Scope::Resource(resource.into()), *at, &mut replayed);
                prop_assert_eq!(replayed, part(newest));
            }
        }
        let first = *states.first_key_value().unwrap().0;
        if first > Revision(1) {
            let refused = matches!(read(&engine, Revision(first.0 - 1)), Err(StoreError::Compacted { .. }));
            prop_assert!(refused);
        }
    }
}
