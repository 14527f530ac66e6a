//! Shared informers of client-go, and kube-rs' reflector, across restarts, compaction and broken connections.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use atoll_meta::Gvr;
use atoll_runtime::{Change, Informer, Selection};
use atoll_testkit::{EngineChoice, Options, TestServer, peers, remote};
use serde_json::{Value, json};

use crate::process::Process;
use crate::proxy::Proxy;

/// What an informer has told so far.
#[derive(Default)]
struct Told {
    /// Every version of every object it was shown.
    versions: BTreeMap<String, BTreeSet<String>>,
    /// Its present state: name and version.
    state: BTreeMap<String, String>,
    deleted: BTreeSet<String>,
    errors: usize,
}

impl Told {
    fn take(&mut self, line: &str) {
        let line: Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
        let (name, version) = (text("name"), text("resourceVersion"));
        match text("event").as_str() {
            "added" | "updated" => {
                self.versions.entry(name.clone()).or_default().insert(version.clone());
                self.state.insert(name, version);
            }
            "deleted" => {
                self.state.remove(&name);
                self.deleted.insert(name);
            }
            "watch-error" => self.errors += 1,
            _ => {}
        }
    }

    /// Reads on until the informer's state is that of the server.
    fn settle(&mut self, program: &mut Process, wanted: &BTreeMap<String, String>) {
        let since = Instant::now();
        while &self.state != wanted {
            assert!(
                since.elapsed() < Duration::from_secs(60),
                "the informer sees {:?} instead of {wanted:?}",
                self.state
            );
            if let Some(line) = program.line(Duration::from_secs(1)) {
                self.take(&line);
            }
        }
    }
}

/// Writes ConfigMaps and remembers every version of each.
struct Writer {
    written: BTreeMap<String, BTreeSet<String>>,
    state: BTreeMap<String, String>,
    deleted: BTreeSet<String>,
}

fn configmaps() -> Gvr {
    Gvr::new("", "v1", "configmaps")
}

impl Writer {
    fn write(&mut self, server: &TestServer, name: &str, value: usize) {
        let (endpoint, name_owned) = (server.endpoint("root"), name.to_owned());
        let stored = server.wait(async move {
            let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name_owned}, "data": {"n": value.to_string()}});
            match endpoint.create(&configmaps(), Some("informed"), &body).await {
                Err(status) if status.code == 409 => endpoint.update(&configmaps(), Some("informed"), &name_owned, &body).await,
                other => other,
            }
        });
        let version = stored.unwrap().unwrap()["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
        self.written.entry(name.to_owned()).or_default().insert(version.clone());
        self.state.insert(name.to_owned(), version);
    }

    fn delete(&mut self, server: &TestServer, name: &str) {
        let (endpoint, name_owned) = (server.endpoint("root"), name.to_owned());
        server
            .wait(async move { endpoint.delete(&configmaps(), Some("informed"), &name_owned, &Value::Null).await })
            .unwrap()
            .unwrap();
        self.state.remove(name);
        self.deleted.insert(name.to_owned());
    }
}

/// A kubeconfig that goes through a proxy.
fn detour(server: &TestServer, proxy: &Proxy) -> PathBuf {
    let text = std::fs::read_to_string(server.kubeconfig()).unwrap();
    let path = server.scratch().join(format!("detour-{}", proxy.address().port()));
    std::fs::write(&path, text.replace(&server.url(), &format!("https://{}", proxy.address()))).unwrap();
    path
}

fn address(server: &TestServer) -> std::net::SocketAddr {
    server.url().trim_start_matches("https://").parse().unwrap()
}

fn server_with_namespace(directory: &tempfile::TempDir) -> (TestServer, Writer) {
    let options = Options { engine: EngineChoice::Redb(directory.path().to_owned()), ..Options::default() };
    let server = TestServer::start(options).unwrap();
    let endpoint = server.endpoint("root");
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "informed"}});
    server
        .wait(async move { endpoint.create(&Gvr::new("", "v1", "namespaces"), None, &namespace).await })
        .unwrap()
        .unwrap();
    let mut writer = Writer { written: BTreeMap::new(), state: BTreeMap::new(), deleted: BTreeSet::new() };
    // Made by the server itself; the writer only learns its version.
    let endpoint = server.endpoint("root");
    let root = server.wait(async move {
        for _ in 0..200 {
            if let Ok(Some(found)) = endpoint.get_opt(&configmaps(), Some("informed"), "kube-root-ca.crt").await {
                return found["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        String::new()
    });
    writer.state.insert("kube-root-ca.crt".into(), root.unwrap());
    (server, writer)
}

/// What a program sees of a server that restarts, forgets and cannot be reached for a while.
fn misses_nothing(program: Option<PathBuf>, what: &[&str]) {
    let Some(program) = program else { return };
    let directory = tempfile::tempdir().unwrap();
    let (mut server, mut writer) = server_with_namespace(&directory);
    let proxy = Proxy::to(address(&server));
    let config = detour(&server, &proxy);
    let start = || {
        let mut command = Command::new(&program);
        Process::start(command.arg("--kubeconfig").arg(&config).args(["--namespace", "informed"]).args(what))
    };
    (0..5).for_each(|n| writer.write(&server, &format!("early-{n}"), n));
    let (mut informer, mut told) = (start(), Told::default());
    told.settle(&mut informer, &writer.state);

    // Connections break while things change: the watch resumes where it was.
    for round in 0..5 {
        // A wire that is cut while it is being made leads to a new list, which skips what is past: what is
        // told after something else was told comes over a wire that stands.
        for n in 0..2 {
            writer.write(&server, "busy", round * 10 + n);
            told.settle(&mut informer, &writer.state);
        }
        proxy.cut();
        (2..9).for_each(|n| writer.write(&server, "busy", round * 10 + n));
        told.settle(&mut informer, &writer.state);
    }
    writer.delete(&server, "early-0");
    told.settle(&mut informer, &writer.state);
    assert_eq!(told.versions.get("busy"), writer.written.get("busy"), "every version was told");

    // The server restarts over the same data.
    for round in 0..2 {
        writer.write(&server, "before-restart", round);
        server.restart().unwrap();
        writer.write(&server, "after-restart", round);
        writer.delete(&server, &format!("early-{}", round + 1));
        told.settle(&mut informer, &writer.state);
    }
    assert_eq!(told.versions.get("after-restart"), writer.written.get("after-restart"));

    // While it was away, the history it would resume from was forgotten: 410, and a new list.
    proxy.close();
    (0..20).for_each(|n| writer.write(&server, &format!("unseen-{}", n % 4), n));
    writer.delete(&server, "early-3");
    writer.delete(&server, "unseen-3");
    server.compact("root").unwrap();
    proxy.open();
    told.settle(&mut informer, &writer.state);
    writer.write(&server, "at-last", 1);
    told.settle(&mut informer, &writer.state);
    assert!(told.deleted.contains("early-3"), "a deletion during the absence is told");
    println!(
        "informer: {} versions told, {} watch errors overcome",
        told.versions.values().map(BTreeSet::len).sum::<usize>(),
        told.errors
    );
}

#[test]
fn client_go_misses_nothing_across_restarts_compaction_and_broken_connections() {
    misses_nothing(peers::find("informer"), &["configmaps"]);
}

#[test]
fn client_go_misses_nothing_in_protobuf_either() {
    misses_nothing(peers::find("informer"), &["--format", "protobuf", "configmaps"]);
}

#[test]
fn kube_rs_misses_nothing_across_restarts_compaction_and_broken_connections() {
    // Built along with all tests, but not when only this program was asked for.
    let reflector = std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("examples/reflector");
    if !reflector.is_file() {
        let mut cargo = Command::new(env!("CARGO"));
        peers::run(cargo.args(["build", "--package", "atoll-testkit", "--example", "reflector"])).ok();
    }
    misses_nothing(Some(reflector), &[]);
}

#[test]
fn our_own_informer_follows_the_same_server_over_https() {
    let directory = tempfile::tempdir().unwrap();
    let (mut server, mut writer) = server_with_namespace(&directory);
    let proxy = Proxy::to(address(&server));
    let config = detour(&server, &proxy);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    let informer = runtime.block_on(async {
        let endpoint = remote("atoll", &config).await.unwrap();
        let selection = Selection { namespace: Some("informed".into()), ..Selection::default() };
        Informer::start(endpoint, configmaps(), selection, move |change: Change| {
            let gone = matches!(change, Change::Deleted(..));
            let _ = sender.send((change.item().object.head.name.to_string(), gone));
        })
    });
    let mut state = BTreeSet::new();
    let mut settle = |wanted: &BTreeMap<String, String>| {
        let since = Instant::now();
        while !wanted.keys().eq(state.iter()) {
            assert!(since.elapsed() < Duration::from_secs(60), "{state:?} instead of {wanted:?}");
            if let Ok((name, gone)) = receiver.recv_timeout(Duration::from_secs(1)) {
                if gone {
                    state.remove(&name)
                } else {
                    state.insert(name)
                };
            }
        }
    };
    (0..3).for_each(|n| writer.write(&server, &format!("a-{n}"), n));
    settle(&writer.state);
    proxy.cut();
    writer.write(&server, "b", 1);
    writer.delete(&server, "a-0");
    settle(&writer.state);
    server.restart().unwrap();
    writer.write(&server, "c", 1);
    settle(&writer.state);
    proxy.close();
    writer.delete(&server, "a-1");
    writer.write(&server, "d", 1);
    server.compact("root").unwrap();
    proxy.open();
    settle(&writer.state);
    drop(informer);
}
