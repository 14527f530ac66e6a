//! Syncers and proxiers as Deployments of their own, and what virtual nodes use.

use atoll_apiserver::Identity;
use atoll_meta::Gvr;
use atoll_runtime::Endpoint;
use atoll_vnode::{Deployed, Manager, Share, Worker};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::corners::until_going;
use crate::pods::start_pod;
use crate::stage::*;

pub const SYSTEM: &str = "kubeocean-system";
pub const SYNCER: &str = "kubeocean-syncer-w1";
pub const PROXIER: &str = "kubeocean-proxier-w1";

fn deployments() -> Gvr {
    Gvr::new("apps", "v1", "deployments")
}

fn access(plural: &str) -> Gvr {
    Gvr::new("rbac.authorization.k8s.io", "v1", plural)
}

type Part = (Gvr, Option<&'static str>, &'static str);

/// Everything that belongs to the binding.
fn parts() -> Vec<Part> {
    let mut out = vec![(services(), Some(SYSTEM), "kubeocean-proxier-w1-svc")];
    for name in [SYNCER, PROXIER] {
        out.extend([deployments(), Gvr::new("", "v1", "serviceaccounts")].map(|gvr| (gvr, Some(SYSTEM), name)));
        out.extend(["clusterroles", "clusterrolebindings"].map(|plural| (access(plural), None, name)));
        out.extend(["roles", "rolebindings"].map(|plural| (access(plural), Some(SYSTEM), name)));
    }
    out.extend(["roles", "rolebindings"].map(|plural| (access(plural), Some("kube-node-lease"), SYNCER)));
    out
}

fn image(deployment: &Value) -> &Value {
    &deployment["spec"]["template"]["spec"]["containers"][0]["image"]
}

pub async fn manage(stage: &Stage) -> Manager {
    manage_as(stage, stage.compute.clone(), "atoll:1", &stage.stop).await
}

async fn manage_as(stage: &Stage, computing: Endpoint, image: &str, stop: &CancellationToken) -> Manager {
    let mut options = stage.options();
    options.computing = computing;
    let arguments = vec!["--without-intranet".to_owned()];
    options.share = Share::Manager(Deployed { image: image.to_owned(), replicas: 1, arguments });
    Manager::start(options, stop.child_token()).await
}

/// A binding of a worker that lends one node, whose syncer is asked for and not there yet.
async fn bound() -> (Stage, Manager) {
    let stage = Stage::open().await;
    let manager = manage(&stage).await;
    make_node(&stage.w1, "n1", "4", "8Gi").await;
    make_policy(&stage.w1, "p1", "w1", json!({})).await;
    stage.bind("w1", json!({})).await;
    until_there(&stage.compute, &deployments(), Some(SYSTEM), SYNCER).await;
    (stage, manager)
}

/// The way of a ServiceAccount into the computing cluster.
pub fn way_of(stage: &Stage, account: &str) -> Endpoint {
    let groups = ["system:serviceaccounts", "system:serviceaccounts:kubeocean-system", "system:authenticated"];
    let account = Identity {
        user: format!("system:serviceaccount:{SYSTEM}:{account}"),
        groups: groups.map(ToOwned::to_owned).to_vec(),
        ..Identity::default()
    };
    Worker::in_process(&stage.hub, "compute", account).endpoint
}

/// What a pod of the syncer's Deployment does, with the rights of its account.
pub async fn syncer(stage: &Stage, stop: &CancellationToken) -> (Manager, Endpoint) {
    let way = way_of(stage, SYNCER);
    let mut options = stage.options();
    options.computing = way.clone();
    options.share = Share::Syncer("w1".to_owned());
    options.identity = Some("pod-1".to_owned());
    (Manager::start(options, stop.clone()).await, way)
}

/// Plays a pod of the proxier's Deployment that is ready, or is not.
pub async fn proxier_pod(stage: &Stage, name: &str, ip: &str, ready: bool) {
    let deployment = until_there(&stage.compute, &deployments(), Some(SYSTEM), PROXIER).await;
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": SYSTEM, "labels": labels},
        "spec": {"containers": [{"name": "proxier", "image": "atoll:1"}]}});
    stage.compute.ensure(&pods(), Some(SYSTEM), &pod).await.unwrap();
    let ready = if ready { "True" } else { "False" };
    let status = json!({"status": {"podIP": ip, "conditions": [{"type": "Ready", "status": ready}]}});
    patch(&stage.compute, &pods(), Some(SYSTEM), name, "status", status).await;
}

/// Waits until the binding says this of its proxier.
async fn until_answered(stage: &Stage, status: &str, reason: &str) {
    until(&stage.compute, &bindings(), None, "w1", |binding| {
        let own = binding.map(|binding| condition(binding, "ProxierReady"));
        own.is_some_and(|own| own["status"] == status && own["reason"] == reason)
    })
    .await;
}

/// Waits until the virtual node announces these addresses.
async fn until_at(stage: &Stage, addresses: &[&str]) {
    until(&stage.compute, &nodes(), None, "vnode-w1-n1", |node| {
        let known = node.and_then(|node| node["status"]["addresses"].as_array().cloned()).unwrap_or_default();
        let ips: Vec<&Value> = known.iter().filter(|own| own["type"] == "InternalIP").collect();
        node.is_some() && ips.iter().map(|own| own["address"].as_str().unwrap()).eq(addresses.iter().copied())
    })
    .await;
}

/// Plays the controllers of the computing cluster.
async fn available(stage: &Stage, name: &str, count: u32) {
    let status = json!({"status": {"replicas": 1, "readyReplicas": count, "availableReplicas": count}});
    patch(&stage.compute, &deployments(), Some(SYSTEM), name, "status", status).await;
}

async fn until_phase(stage: &Stage, phase: &str, reason: &str) {
    until(&stage.compute, &bindings(), None, "w1", |binding| {
        binding.is_some_and(|own| own["status"]["phase"] == phase && condition(own, "Ready")["reason"] == reason)
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_binding_may_have_deployments_of_its_own_with_no_more_rights_than_they_need() {
    let (stage, _manager) = bound().await;
    until_phase(&stage, "Pending", "SyncerNotReady").await;
    let stop = stage.stop.child_token();
    let (first, way) = syncer(&stage, &stop).await;
    available(&stage, SYNCER, 1).await;
    until_phase(&stage, "Ready", "ValidationPassed").await;
    until_there(&stage.compute, &nodes(), None, "vnode-w1-n1").await;
    start_pod(&stage, &pod("web", "vnode-w1-n1", "500m")).await;
    run(&stage.w1, MOUNT, &below("default", "web"), "n1").await;
    until(&stage.compute, &pods(), Some("default"), "web", |pod| {
        pod.is_some_and(|pod| pod["status"]["phase"] == "Running")
    })
    .await;

    // Bindings of others are none of its business, nor are their leases and Deployments.
    stage.bind("w2", json!({})).await;
    let mark = json!({"metadata": {"labels": {"mine": "yes"}}});
    let merge = atoll_runtime::Patch::Merge;
    assert_eq!(way.patch(&bindings(), None, "w2", "", merge, &mark).await.unwrap_err().code, 403);
    let manager_lease = way.get_opt(&leases(), Some(SYSTEM), "kubeocean-manager-leader").await;
    assert_eq!(manager_lease.unwrap_err().code, 403);
    assert_eq!(way.list(&deployments(), Some(SYSTEM), "").await.unwrap_err().code, 403);

    // A Deployment that does not know its pod works is not believed; one without a pod that works is.
    available(&stage, SYNCER, 0).await;
    stage.pass(2).await;
    until_phase(&stage, "Ready", "ValidationPassed").await;
    stop.cancel();
    first.ended().await;
    until_phase(&stage, "Failed", "SyncerNotReady").await;
    let _second = syncer(&stage, &stage.stop.child_token()).await;
    available(&stage, SYNCER, 1).await;
    until_phase(&stage, "Ready", "ValidationPassed").await;

    stage.compute.delete(&bindings(), None, "w1", &json!({})).await.unwrap();
    until_going(&stage.w1, MOUNT, &below("default", "web")).await;
    let there = stage.compute.get_opt(&deployments(), Some(SYSTEM), SYNCER).await.unwrap();
    assert!(there.is_some(), "whoever gives back must be there for it");
    kill(&stage.w1, MOUNT, &below("default", "web")).await;
    until_gone(&stage.compute, &bindings(), None, "w1").await;
    for (gvr, namespace, name) in parts() {
        until_gone(&stage.compute, &gvr, namespace, name).await;
    }
    let other = stage.compute.get_opt(&deployments(), Some(SYSTEM), "kubeocean-syncer-w2").await.unwrap();
    assert!(other.is_some(), "the other binding keeps its own");
}

#[tokio::test(start_paused = true)]
async fn virtual_nodes_announce_a_proxier_that_is_ready_and_follow_when_it_goes() {
    let (stage, _manager) = bound().await;
    let _syncer = syncer(&stage, &stage.stop.child_token()).await;
    until_phase(&stage, "Ready", "ValidationPassed").await;
    // Nobody answers yet: pods run, and calls are not sent to the leased node itself.
    until_answered(&stage, "False", "ProxierNotReady").await;
    until_at(&stage, &[]).await;
    proxier_pod(&stage, "p1", "10.0.0.1", false).await;
    proxier_pod(&stage, "p2", "10.0.0.2", true).await;
    available(&stage, PROXIER, 1).await;
    until_answered(&stage, "True", "ProxierCreated").await;
    until_phase(&stage, "Ready", "ValidationPassed").await;
    until_at(&stage, &["10.0.0.2"]).await;
    proxier_pod(&stage, "p1", "10.0.0.1", true).await;
    stage.pass(5).await;
    until_at(&stage, &["10.0.0.2"]).await;
    kill(&stage.compute, SYSTEM, "p2").await;
    until_at(&stage, &["10.0.0.1"]).await;
    kill(&stage.compute, SYSTEM, "p1").await;
    available(&stage, PROXIER, 0).await;
    until_answered(&stage, "False", "ProxierNotReady").await;
    until_at(&stage, &["10.0.0.1"]).await;
}

#[tokio::test(start_paused = true)]
async fn the_roles_of_a_manager_that_deploys_are_enough_for_it() {
    let stage = Stage::open().await;
    let subjects = json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "manager"}]);
    for role in atoll_vnode::computing_roles("manager").iter().chain(&atoll_vnode::deploying_roles("manager")) {
        let (kind, namespace) = (role["kind"].as_str().unwrap(), role["metadata"]["namespace"].as_str());
        let plural = format!("{}s", kind.to_lowercase());
        stage.compute.create(&access(&plural), namespace, role).await.unwrap();
        let grant = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": format!("{kind}Binding"), "metadata": role["metadata"],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role["metadata"]["name"]}, "subjects": subjects});
        stage.compute.create(&access(&plural.replace("roles", "rolebindings")), namespace, &grant).await.unwrap();
    }
    let groups = vec!["system:authenticated".to_owned()];
    let identity = Identity { user: "manager".into(), groups, ..Identity::default() };
    let way = Worker::in_process(&stage.hub, "compute", identity).endpoint;
    let _manager = manage_as(&stage, way, "atoll:1", &stage.stop).await;
    stage.bind("w1", json!({})).await;
    until_phase(&stage, "Pending", "SyncerNotReady").await;
    for (gvr, namespace, name) in parts() {
        until_there(&stage.compute, &gvr, namespace, name).await;
    }
    stage.compute.delete(&bindings(), None, "w1", &json!({})).await.unwrap();
    until_gone(&stage.compute, &bindings(), None, "w1").await;
    for (gvr, namespace, name) in parts() {
        until_gone(&stage.compute, &gvr, namespace, name).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_manager_with_another_image_brings_the_deployments_up_to_date() {
    let stage = Stage::open().await;
    stage.bind("w1", json!({})).await;
    for wanted in ["atoll:1", "atoll:2"] {
        let stop = stage.stop.child_token();
        let manager = manage_as(&stage, stage.compute.clone(), wanted, &stop).await;
        for name in [SYNCER, PROXIER] {
            let same = |own: Option<&Value>| own.is_some_and(|own| *image(own) == wanted);
            until(&stage.compute, &deployments(), Some(SYSTEM), name, same).await;
        }
        stop.cancel();
        manager.ended().await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_belongs_to_a_binding_is_made_again_and_as_it_should_be() {
    let stage = Stage::open().await;
    let manager = manage(&stage).await;
    stage.bind("w1", json!({})).await;
    for (gvr, namespace, name) in parts() {
        let object = until_there(&stage.compute, &gvr, namespace, name).await;
        assert_eq!(object["metadata"]["ownerReferences"][0]["name"], "w1", "{object}");
    }
    for (name, container) in [(SYNCER, "syncer"), (PROXIER, "proxier")] {
        let changed = json!({"spec": {"template": {"spec": {"containers": [{"name": container, "image": "other"}]}}}});
        patch(&stage.compute, &deployments(), Some(SYSTEM), name, "", changed).await;
        until(&stage.compute, &deployments(), Some(SYSTEM), name, |own| {
            own.is_some_and(|own| *image(own) == "atoll:1")
        })
        .await;
    }
    let more = json!({"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]});
    patch(&stage.compute, &access("clusterroles"), None, PROXIER, "", more).await;
    until(&stage.compute, &access("clusterroles"), None, PROXIER, |own| {
        own.is_some_and(|own| !own["rules"].to_string().contains('*'))
    })
    .await;
    for (gvr, namespace, name) in parts() {
        stage.compute.delete(&gvr, namespace, name, &json!({})).await.unwrap();
        let since = stage.now();
        until_there(&stage.compute, &gvr, namespace, name).await;
        let waited = stage.now().duration_since(since);
        assert!(waited.as_secs() < 5, "{} {name} is made again when it is missed, not after {waited:?}", gvr.resource);
    }

    stage.pass(2).await;
    // A duplicate gets nothing, and its end takes nothing from the first.
    let mut twin = stage.compute.get(&bindings(), None, "w1").await.unwrap();
    twin["metadata"] = json!({"name": "twin"});
    twin["status"] = Value::Null;
    stage.compute.create(&bindings(), None, &twin).await.unwrap();
    until(&stage.compute, &bindings(), None, "twin", |own| {
        own.is_some_and(|own| condition(own, "Ready")["reason"] == "ValidationFailed")
    })
    .await;
    stage.compute.delete(&bindings(), None, "twin", &json!({})).await.unwrap();
    until_gone(&stage.compute, &bindings(), None, "twin").await;
    let kept = stage.compute.get(&deployments(), Some(SYSTEM), SYNCER).await.unwrap();
    assert_eq!(kept["metadata"]["labels"]["kubeocean.io/cluster-binding"], "w1");

    // A syncer that began and will never come back does not hold a binding that is left by force.
    let began = stage.compute.get(&bindings(), None, "w1").await.unwrap();
    let mut finalizers = began["metadata"]["finalizers"].as_array().unwrap().clone();
    finalizers.push("kubeocean.io/clusterbinding-syncer".into());
    let leave = json!({"metadata": {"finalizers": finalizers, "annotations": {atoll_vnode::FORCE_UNBIND: "true"}}});
    patch(&stage.compute, &bindings(), None, "w1", "", leave).await;
    stage.compute.delete(&bindings(), None, "w1", &json!({})).await.unwrap();
    until_gone(&stage.compute, &bindings(), None, "w1").await;
    for (gvr, namespace, name) in parts() {
        until_gone(&stage.compute, &gvr, namespace, name).await;
    }
    drop(manager);
}
