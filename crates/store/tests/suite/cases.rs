//! The behaviour every engine must show.

use std::sync::Arc;
use std::time::{Duration, Instant};

use atoll_meta::{InstanceId, Revision};
use atoll_store::{Expect, FeedItem, Op, Options, Retention, Scope, StoreError, Write};
use futures::future::join_all;
use parking_lot::Mutex;

use super::*;

pub async fn root_always_exists_and_instances_have_names_and_numbers(f: Fixture) {
    let engine = &f.engine;
    assert_eq!(engine.instances(), [(InstanceId::ROOT, Arc::from("root"))]);
    let a = engine.create_instance("a").await.unwrap();
    let b = engine.create_instance("b").await.unwrap();
    assert!(a != b && a != InstanceId::ROOT);
    assert!(matches!(engine.create_instance("a").await, Err(StoreError::InstanceExists)));
    assert!(matches!(engine.create_instance("root").await, Err(StoreError::InstanceExists)));
    assert_eq!(engine.instances(), [(InstanceId::ROOT, "root".into()), (a, "a".into()), (b, "b".into())]);
    engine.drop_instance(a).await.unwrap();
    assert!(matches!(engine.drop_instance(a).await, Err(StoreError::NoInstance)));
    assert!(engine.drop_instance(InstanceId::ROOT).await.is_err());
    let again = engine.create_instance("a").await.unwrap();
    assert!(again != a && again != b, "numbers are not used again");
    assert!(engine.revision(InstanceId::ROOT).unwrap() > Revision(0), "clients take 0 for any revision");
}

pub async fn a_transaction_happens_only_if_all_expectations_hold(f: Fixture) {
    let (engine, id) = (&f.engine, f.instance().await);
    let first = engine.commit(id, vec![put(key("a"), Expect::Absent, "1")]).await.unwrap().revision;
    let taken = engine.commit(id, vec![put(key("a"), Expect::Absent, "2")]).await;
    let Err(StoreError::Conflict { index: 0, current: Some(current) }) = taken else { panic!("{taken:?}") };
    assert_eq!((value(&current), current.modified, current.created), ("1".into(), first, first));

    let second = engine.commit(id, vec![put(key("a"), Expect::At(first), "2")]).await.unwrap().revision;
    assert!(second > first);
    let stale = vec![put(key("b"), Expect::Absent, "b"), put(key("a"), Expect::At(first), "3")];
    let Err(StoreError::Conflict { index: 1, current: Some(current) }) = engine.commit(id, stale).await else {
        panic!()
    };
    assert_eq!(current.modified, second);
    assert!(engine.get(id, key("b").as_str()).await.unwrap().is_none(), "nothing of a refused transaction is left");

    let missing = engine.commit(id, vec![delete(key("c"), Expect::At(first))]).await;
    assert!(matches!(missing, Err(StoreError::Conflict { index: 0, current: None })));
    let guarded = vec![check(key("a"), Expect::At(second)), put(key("b"), Expect::Absent, "b")];
    engine.commit(id, guarded).await.unwrap();
    let entry = engine.get(id, key("a").as_str()).await.unwrap().unwrap();
    assert_eq!((value(&entry), entry.modified, entry.created), ("2".into(), second, first));
}

pub async fn a_transaction_has_one_revision_and_its_last_write_per_key_counts(f: Fixture) {
    let (engine, id) = (&f.engine, f.instance().await);
    let mut watch = engine.watch(id, Scope::All, engine.revision(id).unwrap()).unwrap();
    let writes = vec![
        put(key("a"), Expect::Absent, "1"),
        put(pod("b"), Expect::Absent, "2"),
        put(key("a"), Expect::Absent, "3"),
    ];
    let revision = engine.commit(id, writes).await.unwrap().revision;
    let events = take(&mut watch, 2).await;
    assert!(events.iter().all(|event| event.revision == revision));
    let a = engine.get(id, key("a").as_str()).await.unwrap().unwrap();
    assert_eq!((value(&a), a.created, a.modified), ("3".into(), revision, revision));
}

pub async fn a_transaction_without_effect_makes_no_event(f: Fixture) {
    let (engine, id) = (&f.engine, f.instance().await);
    let first = set(&**engine, id, key("a"), "1").await;
    engine.commit(id, vec![check(key("a"), Expect::At(first))]).await.unwrap();
    engine.commit(id, vec![delete(key("nothing"), Expect::Any)]).await.unwrap();
    engine.commit(id, vec![]).await.unwrap();
    let last = set(&**engine, id, key("a"), "2").await;
    let mut watch = engine.watch(id, Scope::All, first).unwrap();
    assert_eq!(take(&mut watch, 1).await[0].revision, last);
}

pub async fn a_recreated_key_has_a_new_creation_revision(f: Fixture) {
    let (engine, id) = (&f.engine, f.instance().await);
    let first = set(&**engine, id, key("a"), "1").await;
    engine.commit(id, vec![delete(key("a"), Expect::At(first))]).await.unwrap();
    assert!(engine.get(id, key("a").as_str()).await.unwrap().is_none());
    let again = set(&**engine, id, key("a"), "2").await;
    let entry = engine.get(id, key("a").as_str()).await.unwrap().unwrap();
    assert_eq!((entry.created, entry.modified), (again, again));
}

pub async fn snapshots_show_the_past_until_it_is_compacted(f: Fixture) {
    let (engine, id) = (&f.engine, f.instance().await);
    let mut revisions = Vec::new();
    for round in 0..100 {
        revisions.push(set(&**engine, id, key(&format!("k{}", round % 7)), &round.to_string()).await);
        if round % 10 == 9 {
            engine.commit(id, vec![delete(key(&format!("k{}", round % 7)), Expect::Any)]).await.unwrap();
        }
    }
    let held = engine.snapshot(id, Some(revisions[3])).await.unwrap();
    for (round, revision) in revisions.iter().enumerate() {
        // Twice, because a rebuilt snapshot is remembered.
        for _ in 0..2 {
            let snapshot = engine.snapshot(id, Some(*revision)).await.unwrap();
            assert_eq!(snapshot.revision, *revision);
            let entry = snapshot.get(key(&format!("k{}", round % 7)).as_str()).unwrap();
            assert_eq!((value(entry), entry.modified), (round.to_string(), *revision));
        }
    }
    engine.compact(id, revisions[50]).await.unwrap();
    assert!(engine.snapshot(id, Some(revisions[50])).await.is_ok(), "the compacted revision itself is readable");
    for old in [revisions[3], revisions[49]] {
        let refused = engine.snapshot(id, Some(old)).await;
        assert!(matches!(refused, Err(StoreError::Compacted { oldest }) if oldest == revisions[50]));
    }
    assert_eq!(held.entries.len(), 4, "a snapshot once taken stays");
    let newest = engine.snapshot(id, None).await.unwrap();
    assert_eq!(newest.revision, engine.snapshot(id, Some(newest.revision)).await.unwrap().revision);
    let future = Revision(newest.revision.0 + 1_000_000);
    assert!(matches!(engine.snapshot(id, Some(future)).await, Err(StoreError::Future { .. })));
    assert!(matches!(engine.compact(id, future).await, Err(StoreError::Future { .. })));
}

pub async fn ranges_go_by_prefix_and_continue_after_a_key(f: Fixture) {
    let (engine, id) = (&f.engine, f.instance().await);
    for name in ["c", "a", "b"] {
        set(&**engine, id, key(name), name).await;
        set(&**engine, id, pod(name), name).await;
    }
    let snapshot = engine.snapshot(id, None).await.unwrap();
    let names = |after: Option<&str>| -> Vec<String> {
        snapshot.range("configmaps./", after).map(|(_, entry)| value(entry)).collect()
    };
    assert_eq!(names(None), ["a", "b", "c"]);
    assert_eq!(names(Some(key("a").as_str())), ["b", "c"]);
    assert!(names(Some(key("c").as_str())).is_empty());
}

pub async fn a_watch_gives_every_change_once_and_in_order(f: Fixture) {
    let (engine, id) = (&f.engine, f.instance().await);
    let start = engine.revision(id).unwrap();
    let mut live = engine.watch(id, Scope::Resource(CONFIGMAPS.into()), start).unwrap();
    let mut expected = Vec::new();
    for round in 0..600u32 {
        let (name, previous) = (format!("k{}", round % 5), round.checked_sub(5).map(|round| round.to_string()));
        let revision = set(&**engine, id, key(&name), &round.to_string()).await;
        expected.push((key(&name).to_string(), revision, Some(round.to_string()), previous));
        if round % 50 == 0 {
            set(&**engine, id, pod("noise"), "x").await;
        }
    }
    let seen: Vec<_> = take(&mut live, 600).await.iter().map(|event| shape(event)).collect();
    assert_eq!(seen, expected);
    for from in [0, 1, 299, 598] {
        let mut late = engine.watch(id, Scope::Resource(CONFIGMAPS.into()), expected[from].1).unwrap();
        let seen: Vec<_> = take(&mut late, 599 - from).await.iter().map(|event| shape(event)).collect();
        assert_eq!(seen, expected[from + 1..]);
    }
    let mut all = engine.watch(id, Scope::All, start).unwrap();
    let events = take(&mut all, 612).await;
    assert!(events.is_sorted_by_key(|event| event.revision));
}

pub async fn an_idle_watch_wakes_for_its_scope_only_and_progresses_with_all(f: Fixture) {
    let (engine, id) = (&f.engine, f.instance().await);
    let start = engine.revision(id).unwrap();
    let mut watch = engine.watch(id, Scope::Resource(CONFIGMAPS.into()), start).unwrap();
    let other = set(&**engine, id, pod("a"), "1").await;
    assert!(watch.progress() >= other, "an idle watch has seen everything");
    let mine = set(&**engine, id, key("a"), "1").await;
    let later = set(&**engine, id, pod("a"), "2").await;
    assert!(watch.progress() < mine, "a watch with pending events has not");
    assert_eq!(take(&mut watch, 1).await[0].revision, mine);
    assert!(watch.progress() >= later);
    let waiting = tokio::spawn(async move { take(&mut watch, 1).await[0].revision });
    let mine = set(&**engine, id, key("a"), "2").await;
    assert_eq!(within(waiting).await.unwrap(), mine);
}

pub async fn watches_of_the_future_and_of_compacted_history_are_refused(f: Fixture) {
    let (engine, id) = (&f.engine, f.instance().await);
    let scope = || Scope::Resource(CONFIGMAPS.into());
    let first = set(&**engine, id, key("a"), "1").await;
    let mut caught_up = engine.watch(id, scope(), first).unwrap();
    let second = set(&**engine, id, key("a"), "2").await;
    let mut lagging = engine.watch(id, scope(), first).unwrap();
    take(&mut caught_up, 1).await;
    let newest = set(&**engine, id, pod("a"), "1").await;
    engine.compact(id, newest).await.unwrap();
    assert!(is_compacted(&engine.watch(id, scope(), first)));
    assert!(is_compacted(&engine.watch(id, scope(), second)));
    assert!(is_compacted(&within(lagging.next()).await), "a watch that missed something says so");
    let mut fresh = engine.watch(id, scope(), newest).unwrap();
    let third = set(&**engine, id, key("a"), "3").await;
    assert_eq!(take(&mut caught_up, 1).await[0].revision, third, "a watch that missed nothing goes on");
    assert_eq!(take(&mut fresh, 1).await[0].revision, third);
    // An engine shared with others may have to look first, and then says so with the first read.
    let refusal = match engine.watch(id, scope(), Revision(third.0 + 1_000_000)) {
        Ok(mut watch) => within(watch.next()).await.unwrap_err(),
        Err(error) => error,
    };
    assert!(matches!(refusal, StoreError::Future { newest } if newest >= third), "{refusal}");
}

pub async fn a_new_instance_can_be_watched_from_its_beginning(f: Fixture) {
    let (engine, id) = (&f.engine, f.instance().await);
    let mut watch = engine.watch(id, Scope::All, Revision(0)).unwrap();
    assert!(engine.snapshot(id, Some(Revision(0))).await.unwrap().entries.is_empty());
    let first = set(&**engine, id, key("a"), "1").await;
    assert_eq!(take(&mut watch, 1).await[0].revision, first);
}

pub async fn a_removal_shows_the_last_state_the_deleter_gave(f: Fixture) {
    let (engine, id) = (&f.engine, f.instance().await);
    let first = set(&**engine, id, key("a"), "stored").await;
    set(&**engine, id, key("b"), "stored").await;
    let last = Write { key: key("a"), expect: Expect::At(first), op: Op::Delete(Some(object("x", "last"))) };
    let deleted = engine.commit(id, vec![last, delete(key("b"), Expect::Any)]).await.unwrap().revision;
    let before = engine.snapshot(id, Some(first)).await.unwrap();
    assert_eq!(value(before.get(key("a").as_str()).unwrap()), "stored", "the past is not rewritten");
    let mut watch = engine.watch(id, Scope::All, Revision(deleted.0 - 1)).unwrap();
    let mut events: Vec<_> = take(&mut watch, 2).await.iter().map(|event| shape(event)).collect();
    events.sort();
    let expected = [("a", "last"), ("b", "stored")];
    assert_eq!(events, expected.map(|(name, value)| (key(name).to_string(), deleted, None, Some(value.to_string()))));
}

pub async fn instances_are_isolated_and_end_with_their_watches(f: Fixture) {
    let engine = &f.engine;
    let a = engine.create_instance("a").await.unwrap();
    let b = engine.create_instance("b").await.unwrap();
    set(&**engine, a, key("x"), "in a").await;
    set(&**engine, b, key("x"), "in b").await;
    let mut on_a = engine.watch(a, Scope::All, engine.revision(a).unwrap()).unwrap();
    let mut on_b = engine.watch(b, Scope::All, engine.revision(b).unwrap()).unwrap();
    let waiting = tokio::spawn(async move { on_a.next().await });
    tokio::task::yield_now().await;
    engine.drop_instance(a).await.unwrap();
    assert!(matches!(within(waiting).await.unwrap(), Err(StoreError::NoInstance)));
    assert!(matches!(engine.get(a, key("x").as_str()).await, Err(StoreError::NoInstance)));
    assert!(matches!(engine.snapshot(a, None).await, Err(StoreError::NoInstance)));
    assert!(matches!(engine.commit(a, vec![put(key("x"), Expect::Any, "1")]).await, Err(StoreError::NoInstance)));
    assert!(matches!(engine.watch(a, Scope::All, Revision(1)), Err(StoreError::NoInstance)));
    assert!(matches!(engine.revision(a), Err(StoreError::NoInstance)));
    let again = engine.create_instance("a").await.unwrap();
    assert!(engine.snapshot(again, None).await.unwrap().entries.is_empty(), "a name brings nothing back");
    let revision = set(&**engine, b, key("x"), "still").await;
    assert_eq!(take(&mut on_b, 1).await[0].revision, revision);
    assert_eq!(engine.usage(again).unwrap(), (0, 0));
}

pub async fn the_feed_tells_of_all_instances(f: Fixture) {
    let engine = &f.engine;
    let mut feed = engine.feed();
    let id = engine.create_instance("a").await.unwrap();
    let revision = set(&**engine, id, key("x"), "1").await;
    engine.drop_instance(id).await.unwrap();
    let FeedItem::Created(created, name) = within(feed.recv()).await.unwrap() else { panic!() };
    assert_eq!((created, &*name), (id, "a"));
    let FeedItem::Changed(changed, event) = within(feed.recv()).await.unwrap() else { panic!() };
    assert_eq!((changed, event.revision), (id, revision));
    let FeedItem::Dropped(dropped, _) = within(feed.recv()).await.unwrap() else { panic!() };
    assert_eq!(dropped, id);
}

pub async fn usage_counts_objects_and_bytes(f: Fixture) {
    let (engine, id) = (&f.engine, f.instance().await);
    assert_eq!(engine.usage(id).unwrap(), (0, 0));
    set(&**engine, id, key("a"), "1").await;
    let one = engine.usage(id).unwrap();
    set(&**engine, id, key("b"), "1").await;
    assert_eq!(engine.usage(id).unwrap(), (2, 2 * one.1));
    set(&**engine, id, key("a"), "12").await;
    assert_eq!(engine.usage(id).unwrap(), (2, 2 * one.1 + 1));
    engine.commit(id, vec![delete(key("a"), Expect::Any)]).await.unwrap();
    assert_eq!(engine.usage(id).unwrap(), one);
    assert_eq!(engine.health(), Ok(()));
}

pub async fn concurrent_increments_are_all_counted(f: Fixture) {
    let (engine, id) = (&f.engine, f.instance().await);
    set(&**engine, id, key("counter"), "0").await;
    let increment = async || {
        for _ in 0..20 {
            loop {
                let entry = engine.get(id, key("counter").as_str()).await.unwrap().unwrap();
                let next = value(&entry).parse::<u32>().unwrap() + 1;
                let write = put(key("counter"), Expect::At(entry.modified), &next.to_string());
                match engine.commit(id, vec![write]).await {
                    Ok(_) => break,
                    Err(StoreError::Conflict { .. }) => {}
                    Err(other) => panic!("{other}"),
                }
            }
        }
    };
    join_all((0..8).map(|_| increment())).await;
    let entry = engine.get(id, key("counter").as_str()).await.unwrap().unwrap();
    assert_eq!(value(&entry), "160");
}

pub async fn readers_never_see_half_a_transaction(f: Fixture) {
    let (engine, id) = (f.engine.clone(), f.instance().await);
    let all = |value: String| (0..40).map(move |name| put(key(&format!("k{name}")), Expect::Any, &value)).collect();
    engine.commit(id, all("0".into())).await.unwrap();
    let writer = {
        let engine = engine.clone();
        tokio::spawn(async move {
            for round in 1..40 {
                engine.commit(id, all(round.to_string())).await.unwrap();
            }
        })
    };
    let mut last = Revision(0);
    while !writer.is_finished() {
        let snapshot = engine.snapshot(id, None).await.unwrap();
        let mut values = snapshot.entries.values().map(value);
        let first = values.next().unwrap();
        assert!(values.all(|value| value == first));
        assert!(snapshot.revision >= last);
        last = snapshot.revision;
        tokio::task::yield_now().await;
    }
    writer.await.unwrap();
}

/// Options whose clock only moves when told.
pub fn stopped_clock() -> (Options, Arc<Mutex<Instant>>) {
    let now = Arc::new(Mutex::new(Instant::now()));
    let clock = now.clone();
    let retention = Retention { age: Duration::from_secs(300), events: 10, ..Retention::default() };
    (Options { retention, clock: Arc::new(move || *clock.lock()), ..Options::default() }, now)
}

pub async fn history_goes_when_it_is_old_and_long_enough(f: Fixture, now: Arc<Mutex<Instant>>) {
    let (engine, id) = (&f.engine, f.instance().await);
    let mut revisions = Vec::new();
    for round in 0..40 {
        revisions.push(set(&**engine, id, key("a"), &round.to_string()).await);
        *now.lock() += Duration::from_secs(1);
    }
    *now.lock() += Duration::from_secs(200);
    set(&**engine, id, pod("tick"), "1").await;
    assert!(engine.snapshot(id, Some(revisions[0])).await.is_ok(), "nothing is five minutes old");
    // Forgetting happens along with writes, a little later.
    within(async {
        *now.lock() += Duration::from_secs(290);
        while engine.snapshot(id, Some(revisions[20])).await.is_ok() {
            *now.lock() += Duration::from_secs(31);
            set(&**engine, id, pod("tick"), "2").await;
        }
    })
    .await;
    let newest = engine.snapshot(id, None).await.unwrap().revision;
    let kept = engine.watch(id, Scope::All, Revision(newest.0 - 1)).is_ok();
    assert!(kept, "some events stay however old they are");
}

pub async fn history_is_bounded_in_bytes(f: Fixture) {
    let (engine, id) = (&f.engine, f.instance().await);
    let first = set(&**engine, id, key("a"), "first").await;
    let big = "x".repeat(50_000);
    for _ in 0..10 {
        set(&**engine, id, key("a"), &big).await;
    }
    assert!(is_compacted(&engine.snapshot(id, Some(first)).await));
    let newest = set(&**engine, id, key("a"), "last").await;
    assert!(engine.snapshot(id, Some(newest)).await.is_ok());
}
