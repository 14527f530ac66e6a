//! Another process leads when the leader is killed.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::json;

use crate::hub::{Hub, until};

/// An etcd of its own, on free ports; it ends when dropped.
struct Etcd {
    process: Child,
    url: String,
    _directory: tempfile::TempDir,
}

impl Etcd {
    fn start() -> Option<Self> {
        let program = atoll_testkit::peers::find("etcd")?;
        let directory = tempfile::tempdir().unwrap();
        let free = || std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let (url, peers) = (format!("http://127.0.0.1:{}", free()), format!("http://127.0.0.1:{}", free()));
        let mut process = Command::new(program)
            .args(["--unsafe-no-fsync", "--log-level=info", "--data-dir"])
            .arg(directory.path())
            .args(["--listen-client-urls", &url, "--advertise-client-urls", &url, "--listen-peer-urls", &peers])
            .args(["--initial-advertise-peer-urls", &peers, "--initial-cluster", &format!("default={peers}")])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines().map_while(Result::ok);
        assert!(lines.any(|line| line.contains("ready to serve client requests")), "etcd ended");
        // Somebody has to read on, or the process would wait for it.
        std::thread::spawn(move || lines.for_each(drop));
        Some(Self { process, url, _directory: directory })
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_process_takes_over_when_the_leader_is_killed() {
    let Some(etcd) = Etcd::start() else { return };
    let store = format!("etcd:{}", etcd.url);
    let mut hubs: Vec<Hub> = (0..3).map(|_| Hub::run(&["serve", "--store", &store])).collect();
    let instance = json!({"kind": "Instance", "apiVersion": "atoll.io/v1alpha1", "metadata": {"name": "fleet"}, "spec": {"type": "Hosted"}});
    let (first, token) = (&hubs[0], hubs[0].token.clone());
    assert_eq!(first.rest(Some(&token), "POST", "/apis/atoll.io/v1alpha1/instances", Some(instance)).await.0, 201);
    let lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/atoll-manage";
    let mut leaders = std::collections::BTreeSet::new();
    while let Some(hub) = hubs.last() {
        // Whoever leads makes a binding of a new grant, in what was left by those before.
        let name = format!("g{}", hubs.len());
        let admin = Some(hub.token.as_str());
        until(hub, "the instance is there", async || {
            hub.rest(admin, "GET", "/instances/fleet/api/v1/namespaces", None).await.0 == 200
        })
        .await;
        hub.grant(&name, "viewer", "ann", "fleet", "default").await;
        let binding = format!(
            "/instances/fleet/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings/atoll:grant:{name}"
        );
        let made = async || hub.rest(admin, "GET", &binding, None).await.0 == 200;
        until(hub, "the grant holds", made).await;
        leaders
            .insert(hub.rest(admin, "GET", lease, None).await.1["spec"]["holderIdentity"].as_str().unwrap().to_owned());
        // SIGKILL: no goodbye.
        hubs.remove(0);
    }
    assert!(leaders.len() >= 2, "somebody took over: {leaders:?}");
}
