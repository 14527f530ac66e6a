//! What only an engine on etcd can meet: replicas, restarts, lost connections, compaction by others.
#![allow(clippy::unwrap_used, missing_docs)]

mod suite;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use atoll_meta::{InstanceId, Revision};
use atoll_store::{
    Commit, Engine, Entry, EtcdEngine, Expect, Feed, Options, Scope, Snapshot, StoreError, Watch, Write, backup,
    restore,
};
use parking_lot::Mutex;
use suite::etcd::{Server, connect};
use suite::history::{Load, check_history};
use suite::{delete, is_compacted, key, pod, put, set, shape, take, value, within};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

const ROOT: InstanceId = InstanceId::ROOT;

/// Several replicas behind one face: every call goes to the next.
struct Replicas(Vec<EtcdEngine>, AtomicUsize);

impl Replicas {
    fn any(&self) -> &EtcdEngine {
        &self.0[self.1.fetch_add(1, Ordering::Relaxed) % self.0.len()]
    }
}

#[async_trait::async_trait]
impl Engine for Replicas {
    async fn create_instance(&self, name: &str) -> Result<InstanceId, StoreError> {
        self.any().create_instance(name).await
    }
    async fn drop_instance(&self, instance: InstanceId) -> Result<(), StoreError> {
        self.any().drop_instance(instance).await
    }
    fn instances(&self) -> Vec<(InstanceId, Arc<str>)> {
        self.any().instances()
    }
    fn revision(&self, instance: InstanceId) -> Result<Revision, StoreError> {
        self.any().revision(instance)
    }
    async fn get(&self, instance: InstanceId, key: &str) -> Result<Option<Entry>, StoreError> {
        self.any().get(instance, key).await
    }
    async fn snapshot(&self, instance: InstanceId, at: Option<Revision>) -> Result<Snapshot, StoreError> {
        self.any().snapshot(instance, at).await
    }
    async fn commit(&self, instance: InstanceId, writes: Vec<Write>) -> Result<Commit, StoreError> {
        self.any().commit(instance, writes).await
    }
    fn watch(&self, instance: InstanceId, scope: Scope, after: Revision) -> Result<Box<dyn Watch>, StoreError> {
        self.any().watch(instance, scope, after)
    }
    async fn compact(&self, instance: InstanceId, upto: Revision) -> Result<(), StoreError> {
        self.any().compact(instance, upto).await
    }
    fn feed(&self) -> Feed {
        self.any().feed()
    }
    fn usage(&self, instance: InstanceId) -> Result<(u64, u64), StoreError> {
        self.any().usage(instance)
    }
    fn health(&self) -> Result<(), String> {
        self.any().health()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn histories_over_replicas_are_linearizable() {
    let Some(server) = Server::start() else { return };
    let mut engines = Vec::new();
    for _ in 0..3 {
        engines.push(server.connect("hub", Options::default()).await);
    }
    let replicas: Arc<dyn Engine> = Arc::new(Replicas(engines, AtomicUsize::new(0)));
    let load = Load { users: 6, steps: 150, keys: 3, seed: 1 };
    check_history(replicas, ROOT, load, async {}).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn histories_are_linearizable_while_etcd_is_killed_and_restarted() {
    let Some(server) = Server::start() else { return };
    let mut engines = Vec::new();
    for _ in 0..2 {
        engines.push(server.connect("hub", Options::default()).await);
    }
    let replicas: Arc<dyn Engine> = Arc::new(Replicas(engines, AtomicUsize::new(0)));
    let load = Load { users: 6, steps: 1500, keys: 3, seed: 2 };
    let disturb = async {
        for _ in 0..4 {
            tokio::time::sleep(Duration::from_millis(400)).await;
            server.kill();
            tokio::time::sleep(Duration::from_millis(100)).await;
            server.resume();
        }
    };
    check_history(replicas, ROOT, load, disturb).await;
}

async fn healthy(engine: &EtcdEngine) {
    within(async {
        while engine.health().is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_vanished_etcd_fails_writes_serves_the_past_and_is_found_again() {
    let Some(server) = Server::start() else { return };
    let engine = server.connect("hub", Options::default()).await;
    let first = set(&engine, ROOT, key("a"), "1").await;
    let mut watch = engine.watch(ROOT, Scope::All, first).unwrap();
    server.kill();
    let refused = engine.commit(ROOT, vec![put(key("a"), Expect::Any, "2")]).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    let refused = engine.get(ROOT, key("a").as_str()).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "a read that may be stale is refused");
    within(async {
        while engine.health().is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    let past = engine.snapshot(ROOT, Some(first)).await.unwrap();
    assert_eq!(value(past.get(key("a").as_str()).unwrap()), "1");
    server.resume();
    healthy(&engine).await;
    let second = set(&engine, ROOT, key("a"), "3").await;
    assert_eq!(take(&mut watch, 1).await[0].revision, second, "the watch outlived the outage");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_see_each_other_at_once() {
    let Some(server) = Server::start() else { return };
    let a = server.connect("hub", Options::default()).await;
    let b = server.connect("hub", Options::default()).await;
    let other = server.connect("other", Options::default()).await;
    let id = a.create_instance("shared").await.unwrap();
    for round in 0..20 {
        let revision = set(&a, id, key("x"), &round.to_string()).await;
        // Noise outside the prefix raises the revision of the cluster.
        set(&other, ROOT, key("x"), "noise").await;
        let entry = b.get(id, key("x").as_str()).await.unwrap().unwrap();
        assert_eq!((value(&entry), entry.modified), (round.to_string(), revision));
        let newer = set(&b, id, pod("x"), &round.to_string()).await;
        let mut watch = a.watch(id, Scope::Resource("configmaps.".into()), newer).unwrap();
        let stale = vec![put(key("x"), Expect::At(Revision(revision.0 - 1)), "stale")];
        assert!(matches!(b.commit(id, stale).await, Err(StoreError::Conflict { index: 0, current: Some(_) })));
        let next = set(&b, id, key("x"), "next").await;
        assert_eq!(take(&mut watch, 1).await[0].revision, next);
    }
    assert!(matches!(b.create_instance("shared").await, Err(StoreError::InstanceExists)));
    b.drop_instance(id).await.unwrap();
    assert!(matches!(a.get(id, key("x").as_str()).await, Err(StoreError::NoInstance)));
    assert!(other.instances().len() == 1 && other.usage(ROOT).unwrap().0 == 1, "prefixes are apart");
    // What the instance held is deleted behind its back.
    within(async {
        loop {
            let range = server.gateway(
                "/v3/kv/range",
                r#"{"key":"L2F0b2xsL2h1Yi8xLw==","range_end":"L2F0b2xsL2h1Yi8xMA==","count_only":true}"#,
            );
            if range.await.get("count").is_none() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    let late = server.connect("hub", Options::default()).await;
    assert!(late.create_instance("shared").await.unwrap() > id);
}

/// A connection to etcd that can be cut.
struct Proxy {
    port: u16,
    target: u16,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Proxy {
    async fn to(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Self { port: listener.local_addr().unwrap().port(), target, task: Mutex::default() };
        proxy.serve(listener);
        proxy
    }

    fn serve(&self, listener: TcpListener) {
        let target = self.target;
        let task = tokio::spawn(async move {
            let mut pipes = tokio::task::JoinSet::new();
            while let Ok((mut near, _)) = listener.accept().await {
                pipes.spawn(async move {
                    let mut far = TcpStream::connect(("127.0.0.1", target)).await.unwrap();
                    let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                });
            }
        });
        *self.task.lock() = Some(task);
    }

    async fn cut(&self) {
        let task = self.task.lock().take().unwrap();
        task.abort();
        let _ = task.await;
    }

    async fn mend(&self) {
        let listener = within(async {
            loop {
                match TcpListener::bind(("127.0.0.1", self.port)).await {
                    Ok(listener) => return listener,
                    Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
                }
            }
        });
        self.serve(listener.await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_missed_a_compaction_gets_the_sum_of_what_happened() {
    let Some(server) = Server::start() else { return };
    let steady = server.connect("hub", Options::default()).await;
    let proxy = Proxy::to(server.port()).await;
    let cut_off = connect(&format!("http://127.0.0.1:{}", proxy.port), "hub", Options::default()).await;
    let dropped = steady.create_instance("dropped").await.unwrap();
    for name in ["stays", "changes", "goes", "returns"] {
        set(&steady, ROOT, key(name), "old").await;
    }
    let before = cut_off.snapshot(ROOT, None).await.unwrap().revision;
    let mut watch = cut_off.watch(ROOT, Scope::All, before).unwrap();
    proxy.cut().await;
    for round in 0..5 {
        set(&steady, ROOT, key("changes"), &round.to_string()).await;
    }
    steady.commit(ROOT, vec![delete(key("goes"), Expect::Any)]).await.unwrap();
    steady.commit(ROOT, vec![delete(key("returns"), Expect::Any)]).await.unwrap();
    set(&steady, ROOT, key("returns"), "new").await;
    set(&steady, ROOT, key("comes"), "new").await;
    steady.drop_instance(dropped).await.unwrap();
    let made = steady.create_instance("made").await.unwrap();
    let last = set(&steady, made, key("x"), "1").await;
    server.gateway("/v3/kv/compaction", &format!(r#"{{"revision":"{last}"}}"#)).await;
    proxy.mend().await;
    healthy(&cut_off).await;

    let seen: Vec<_> = take(&mut watch, 5).await.iter().map(|event| shape(event)).collect();
    assert!(seen.is_sorted_by_key(|event| event.1) && seen[0].1 > before);
    let mut sum: Vec<_> = seen.into_iter().map(|event| (event.0, event.2, event.3)).collect();
    sum.sort();
    let text = |text: &str| Some(text.to_owned());
    let mut expected = vec![
        (key("changes").to_string(), text("4"), text("old")),
        (key("comes").to_string(), text("new"), None),
        (key("goes").to_string(), None, text("old")),
        (key("returns").to_string(), None, text("old")),
        (key("returns").to_string(), text("new"), None),
    ];
    expected.sort();
    assert_eq!(sum, expected);
    assert!(is_compacted(&cut_off.snapshot(ROOT, Some(before)).await), "the time of the outage cannot be read");
    assert!(is_compacted(&cut_off.watch(ROOT, Scope::All, before)));
    assert!(matches!(cut_off.get(dropped, "x").await, Err(StoreError::NoInstance)));
    assert!(cut_off.get(made, key("x").as_str()).await.unwrap().is_some());
    let next = set(&steady, ROOT, key("after"), "1").await;
    assert_eq!(take(&mut watch, 1).await[0].revision, next, "and the watch goes on");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_of_one_etcd_restores_into_another_prefix() {
    let Some(server) = Server::start() else { return };
    let from = server.connect("from", Options::default()).await;
    let to = server.connect("to", Options::default()).await;
    let id = from.create_instance("member").await.unwrap();
    for round in 0..250 {
        set(&from, id, key(&format!("k{round}")), &round.to_string()).await;
    }
    let mut bytes = Vec::new();
    let saved = backup(&from, &mut bytes).await.unwrap();
    assert_eq!(restore(&to, &mut &bytes[..]).await.unwrap(), saved);
    let (id, _) = to.instances().into_iter().find(|(_, name)| &**name == "member").unwrap();
    assert_eq!(to.usage(id).unwrap().0, 250);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_format_in_etcd_is_refused() {
    let Some(server) = Server::start() else { return };
    drop(server.connect("hub", Options::default()).await);
    // `/atoll/hub/format` becomes 2.
    server.gateway("/v3/kv/put", r#"{"key":"L2F0b2xsL2h1Yi9mb3JtYXQ=","value":"Mg=="}"#).await;
    let refused = EtcdEngine::connect(&[server.endpoint()], None, "hub", Options::default()).await;
    assert!(matches!(refused, Err(StoreError::Damaged(why)) if why.contains("format")));
}
