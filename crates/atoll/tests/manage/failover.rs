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

/// Joins another hub's root as a member, as its administrator.
async fn join(hub: &Hub, name: &str, member: &Hub) {
    let admin = Some(hub.token.as_str());
    let secret = json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": name},
        "stringData": {"token": member.token, "caBundle": member.ca}});
    let secrets = "/instances/fleet/api/v1/namespaces/karmada-cluster/secrets";
    let home = json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "karmada-cluster"}});
    hub.rest(admin, "POST", "/instances/fleet/api/v1/namespaces", Some(home)).await;
    assert_eq!(hub.rest(admin, "POST", secrets, Some(secret)).await.0, 201);
    let cluster = json!({"kind": "Cluster", "apiVersion": "cluster.karmada.io/v1alpha1", "metadata": {"name": name},
        "spec": {"syncMode": "Push", "apiEndpoint": format!("https://{}", member.address),
                 "secretRef": {"namespace": "karmada-cluster", "name": name}}});
    let (code, made) = hub.rest(admin, "POST", CLUSTERS, Some(cluster)).await;
    assert_eq!(code, 201, "{made}");
}

const CLUSTERS: &str = "/instances/fleet/apis/cluster.karmada.io/v1alpha1/clusters";

/// Waits until a member holds an object as it should be.
async fn arrives(member: &Hub, path: &str, is: impl Fn(&serde_json::Value) -> bool) {
    let there = async || {
        let (code, object) = member.rest(Some(&member.token), "GET", path, None).await;
        code == 200 && is(&object)
    };
    until(member, path, there).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_several_hubs_spreads_and_the_next_goes_on_and_moves_what_a_dead_member_had() {
    let Some(etcd) = Etcd::start() else { return };
    let store = format!("etcd:{}", etcd.url);
    let mut members: Vec<Hub> = (0..2).map(|_| Hub::run(&["serve", "--store", "memory"])).collect();
    let mut hubs: Vec<Hub> = (0..2).map(|_| Hub::run(&["serve", "--store", &store])).collect();
    let (first, token) = (&hubs[0], hubs[0].token.clone());
    let quick = json!({"fleet.atoll.io/cluster-status-update-seconds": "1"});
    let instance = json!({"kind": "Instance", "apiVersion": "atoll.io/v1alpha1", "metadata": {"name": "fleet", "annotations": quick}, "spec": {"type": "Hosted"}});
    assert_eq!(first.rest(Some(&token), "POST", "/apis/atoll.io/v1alpha1/instances", Some(instance)).await.0, 201);
    let there = async || first.rest(Some(&token), "GET", CLUSTERS, None).await.0 == 200;
    until(first, "the instance is there", there).await;
    for (name, member) in ["m1", "m2"].into_iter().zip(&members) {
        join(first, name, member).await;
    }
    let policy = |name: &str, kind: (&str, &str), placement: serde_json::Value| {
        json!({"kind": "PropagationPolicy", "apiVersion": "policy.karmada.io/v1alpha1", "metadata": {"name": name}, "spec": {
            "resourceSelectors": [{"apiVersion": kind.0, "kind": kind.1, "name": name}], "placement": placement}})
    };
    let policies = "/instances/fleet/apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies";
    let everywhere = policy("settings", ("v1", "ConfigMap"), json!({}));
    assert_eq!(first.rest(Some(&token), "POST", policies, Some(everywhere)).await.0, 201);
    let map = |text: &str| json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "settings"}, "data": {"k": text}});
    let maps = "/instances/fleet/api/v1/namespaces/default/configmaps";
    assert_eq!(first.rest(Some(&token), "POST", maps, Some(map("1"))).await.0, 201);
    let copy = "/api/v1/namespaces/default/configmaps/settings";
    for member in &members {
        arrives(member, copy, |object| object["data"]["k"] == "1").await;
    }
    let lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/atoll-instances";
    let leader = first.rest(Some(&token), "GET", lease, None).await.1["spec"]["holderIdentity"].clone();
    // SIGKILL of the one that leads, as it was the first; the other has heard of nothing but the store.
    hubs.remove(0);
    let (second, token) = (&hubs[0], hubs[0].token.clone());
    assert_eq!(second.rest(Some(&token), "PUT", &format!("{maps}/settings"), Some(map("2"))).await.0, 200);
    for member in &members {
        arrives(member, copy, |object| object["data"]["k"] == "2").await;
    }
    let after = second.rest(Some(&token), "GET", lease, None).await.1["spec"]["holderIdentity"].clone();
    assert_ne!(leader, after, "somebody took over");

    // A switch takes effect while the hub runs.
    let failover = format!("{}/instances/fleet/failover", crate::hub::API);
    let on = json!({"enabled": true, "timeout": {"clusterFailureThreshold": "1"}});
    let (code, said) = second.rest(Some(&token), "PUT", &failover, Some(on)).await;
    assert_eq!(code, 200, "{said}");
    assert_eq!(second.rest(Some(&token), "GET", &failover, None).await.1["enabled"], true);
    let one = json!({"spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}],
        "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"}});
    let alone = policy("web", ("apps/v1", "Deployment"), one);
    assert_eq!(second.rest(Some(&token), "POST", policies, Some(alone)).await.0, 201);
    let labels = json!({"app": "web"});
    let web = json!({"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "web"}, "spec": {"replicas": 2,
        "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "web"}]}}}});
    let workloads = "/instances/fleet/apis/apps/v1/namespaces/default/deployments";
    assert_eq!(second.rest(Some(&token), "POST", workloads, Some(web)).await.0, 201);
    let binding = "/instances/fleet/apis/work.karmada.io/v1alpha2/namespaces/default/resourcebindings/web-deployment";
    let place = async || {
        let binding = second.rest(Some(&token), "GET", binding, None).await.1;
        binding["spec"]["clusters"][0]["name"].as_str().map(ToOwned::to_owned)
    };
    until(second, "it has a place", async || place().await.is_some()).await;
    let copy = "/apis/apps/v1/namespaces/default/deployments/web";
    let at = usize::from(place().await.as_deref() == Some("m2"));
    arrives(&members[at], copy, |_| true).await;
    members.remove(at);
    arrives(&members[0], copy, |object| object["spec"]["replicas"] == 2).await;
}
