//! A: bindings and their manager.

use serde_json::{Value, json};

use crate::stage::*;

async fn phase(stage: &Stage, name: &str, phase: &str, reason: &str) -> Value {
    until(&stage.compute, &bindings(), None, name, |binding| {
        binding.is_some_and(|binding| {
            binding["status"]["phase"] == phase && condition(binding, "Ready")["reason"] == reason
        })
    })
    .await
    .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_valid_binding_becomes_ready_with_all_conditions_and_both_finalizers() {
    let (stage, _manager) = Stage::play().await;
    stage.bind("w1", json!({})).await;
    let binding = phase(&stage, "w1", "Ready", "ValidationPassed").await;
    assert_eq!(
        binding["metadata"]["finalizers"],
        json!(["kubeocean.io/clusterbinding-manager", "kubeocean.io/clusterbinding-syncer"])
    );
    for kind in ["Ready", "Connected", "SyncerReady", "ProxierReady"] {
        assert_eq!(condition(&binding, kind)["status"], "True", "{kind}");
    }
    assert!(binding["status"]["lastSyncTime"].is_string());
}

#[tokio::test(start_paused = true)]
async fn a_kubeconfig_that_is_missing_or_nonsense_is_said_to_be_so() {
    let (stage, _manager) = Stage::play().await;
    for (name, data) in
        [("none", json!({})), ("empty", json!({"kubeconfig": ""})), ("nonsense", json!({"kubeconfig": "bm9uc2Vuc2U="}))]
    {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "kubeocean-system"}, "data": data});
        stage.compute.create(&secrets(), Some("kubeocean-system"), &secret).await.unwrap();
    }
    for name in ["absent", "none", "empty", "nonsense"] {
        let spec = json!({"clusterID": name, "mountNamespace": MOUNT, "secretRef": {"name": name, "namespace": "kubeocean-system"}});
        let binding = json!({"apiVersion": "cloud.tencent.com/v1beta1", "kind": "ClusterBinding", "metadata": {"name": name}, "spec": spec});
        stage.compute.create(&bindings(), None, &binding).await.unwrap();
        let binding = phase(&stage, name, "Failed", "ConnectivityFailed").await;
        assert_eq!(condition(&binding, "Connected")["status"], "False");
    }
}

#[tokio::test(start_paused = true)]
async fn a_kubeconfig_that_comes_or_changes_is_noticed_at_once() {
    let (stage, manager) = Stage::play().await;
    stage.bind("w1", json!({})).await;
    phase(&stage, "w1", "Ready", "ValidationPassed").await;
    let secret = stage.compute.get(&secrets(), Some("kubeocean-system"), "w1").await.unwrap();
    stage.pass(600).await;
    let since = stage.now();
    stage.compute.delete(&secrets(), Some("kubeocean-system"), "w1", &json!({})).await.unwrap();
    phase(&stage, "w1", "Failed", "ConnectivityFailed").await;
    assert!(stage.now().duration_since(since).as_secs() < 5, "that it is gone");
    stage.pass(600).await;
    let since = stage.now();
    let again = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "w1", "namespace": "kubeocean-system"}, "data": secret["data"]});
    stage.compute.create(&secrets(), Some("kubeocean-system"), &again).await.unwrap();
    phase(&stage, "w1", "Ready", "ValidationPassed").await;
    assert!(stage.now().duration_since(since).as_secs() < 5, "that it is there");
    drop(manager);
}

#[tokio::test(start_paused = true)]
async fn what_is_missing_in_a_binding_is_named() {
    let (stage, _manager) = Stage::play().await;
    for (id, more, field) in [
        ("a", json!({"mountNamespace": ""}), "spec.mountNamespace"),
        ("b", json!({"secretRef": {"name": ""}}), "spec.secretRef.name"),
        ("c", json!({"secretRef": {"namespace": ""}}), "spec.secretRef.namespace"),
        ("d", json!({"serviceNamespaces": ["x", ""]}), "spec.serviceNamespaces[1]"),
    ] {
        stage.bind(id, more).await;
        let binding = phase(&stage, id, "Failed", "ValidationFailed").await;
        let message = condition(&binding, "Ready")["message"].as_str().unwrap().to_owned();
        assert!(message.starts_with(field), "{message}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_id_belongs_to_the_first_binding_and_never_changes() {
    let (stage, manager) = Stage::play().await;
    make_node(&stage.w1, "n1", "2", "4Gi").await;
    make_policy(&stage.w1, "p1", "w1", json!({})).await;
    stage.bind("w1", json!({})).await;
    phase(&stage, "w1", "Ready", "ValidationPassed").await;
    until_there(&stage.compute, &nodes(), None, "vnode-w1-n1").await;
    stage.pass(2).await;

    stage.bind("w2", json!({"clusterID": "w1"})).await;
    let second = phase(&stage, "w2", "Failed", "ValidationFailed").await;
    assert!(condition(&second, "Ready")["message"].as_str().unwrap().contains("already used by ClusterBinding \"w1\""));
    // Deleting the second must not touch the first; in the original it deletes its Deployments.
    stage.compute.delete(&bindings(), None, "w2", &json!({})).await.unwrap();
    until_gone(&stage.compute, &bindings(), None, "w2").await;
    assert!(stage.compute.get(&nodes(), None, "vnode-w1-n1").await.unwrap()["metadata"]["deletionTimestamp"].is_null());

    patch(&stage.compute, &bindings(), None, "w1", "", json!({"spec": {"clusterID": "other"}})).await;
    let first = phase(&stage, "w1", "Failed", "ValidationFailed").await;
    assert!(condition(&first, "Ready")["message"].as_str().unwrap().contains("immutable"));
    // A restarted manager knows it too; in the original the memory of it is lost.
    stage.stop.cancel();
    let again = Stage { stop: Default::default(), ..stage };
    let _second = again.start().await;
    again.pass(30).await;
    phase(&again, "w1", "Failed", "ValidationFailed").await;
    drop(manager);
}

#[tokio::test(start_paused = true)]
async fn admission_refuses_what_can_never_work() {
    let stage = Stage::open().await;
    stage.hub.add_admission(atoll_vnode::admission());
    stage.bind("w1", json!({})).await;
    let binding = |name: &str, id: &str, mount: &str| {
        json!({"apiVersion": "cloud.tencent.com/v1beta1", "kind": "ClusterBinding", "metadata": {"name": name},
               "spec": {"clusterID": id, "mountNamespace": mount, "secretRef": {"name": "s", "namespace": "n"}}})
    };
    for (object, field) in [(binding("x", "w1", "m"), "spec.clusterID"), (binding("x", "y", ""), "spec.mountNamespace")]
    {
        let status = stage.compute.create(&bindings(), None, &object).await.unwrap_err();
        assert_eq!(status.code, 422);
        assert!(status.message.contains(field), "{status}");
    }
    stage.compute.create(&bindings(), None, &binding("x", "y", "m")).await.unwrap();
    let change = json!({"spec": {"clusterID": "z"}});
    let status =
        stage.compute.patch(&bindings(), None, "x", "", atoll_runtime::Patch::Merge, &change).await.unwrap_err();
    assert!(status.message.contains("immutable"), "{status}");
    for (spec, field) in [
        (json!({"cluster": "w1", "timeWindows": [{"start": "25:00", "end": "02:00"}]}), "spec.timeWindows[0].start"),
        (
            json!({"cluster": "w1", "resourceLimits": [{"resource": "cpu", "percent": 101}]}),
            "spec.resourceLimits[0].percent",
        ),
    ] {
        let policy = json!({"apiVersion": "cloud.tencent.com/v1beta1", "kind": "ResourceLeasingPolicy", "metadata": {"name": "p"}, "spec": spec});
        let status = stage.w1.create(&policies(), None, &policy).await.unwrap_err();
        assert!(status.code == 422 && status.message.contains(field), "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn of_several_managers_one_works_and_the_next_takes_over() {
    let stage = Stage::open().await;
    let start = |name: &str| {
        let mut options = stage.options();
        options.identity = Some(name.to_owned());
        let stop = stage.stop.child_token();
        async { (atoll_vnode::Manager::start(options, stop.clone()).await, stop) }
    };
    let (first, stop_first) = start("first").await;
    stage.pass(5).await;
    let (second, _stop_second) = start("second").await;
    make_node(&stage.w1, "n1", "4", "8Gi").await;
    make_policy(&stage.w1, "p1", "w1", json!({})).await;
    stage.bind("w1", json!({})).await;
    until_there(&stage.compute, &nodes(), None, "vnode-w1-n1").await;
    assert_eq!((first.bindings().len(), second.bindings().len()), (1, 0), "one works");
    assert!(second.is_ready(), "the other waits, which is well");
    stop_first.cancel();
    first.ended().await;
    make_pod(&stage.compute, &pod("web", "vnode-w1-n1", "1")).await;
    until_there(&stage.w1, &pods(), Some(MOUNT), &below("default", "web")).await;
    assert_eq!(second.bindings(), ["w1"]);
}

/// Crashes over requests about pods of this name.
struct Fragile(atoll_runtime::Endpoint, std::sync::Arc<std::sync::atomic::AtomicBool>);

#[async_trait::async_trait]
impl atoll_runtime::Transport for Fragile {
    async fn send(
        &self,
        request: http::Request<bytes::Bytes>,
    ) -> Result<http::Response<atoll_runtime::BodyStream>, atoll_meta::Status> {
        let about = String::from_utf8_lossy(request.body()).contains("\"unlucky-");
        let fragile = self.1.load(std::sync::atomic::Ordering::SeqCst);
        assert!(!(about && fragile && *request.method() == http::Method::POST), "this crash is part of the test");
        self.0.transport().send(request).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_over_one_pod_touches_no_other_and_is_tried_again() {
    let stage = Stage::open().await;
    let fragile = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let (hub, own) = (stage.hub.clone(), fragile.clone());
    let mut options = stage.options();
    options.workers = atoll_vnode::ShortCut::new(move |_: &atoll_api::kubeocean::ClusterBinding, _: &str| {
        let mut worker = atoll_vnode::Worker::in_process(&hub, "w1", atoll_apiserver::Identity::master("vnode"));
        let transport = Fragile(worker.endpoint.clone(), own.clone());
        worker.endpoint = atoll_runtime::Endpoint::new("w1", std::sync::Arc::new(transport), "atoll-vnode");
        Some(worker)
    });
    let _manager = atoll_vnode::Manager::start(options, stage.stop.child_token()).await;
    make_node(&stage.w1, "n1", "64", "64Gi").await;
    make_policy(&stage.w1, "p1", "w1", json!({})).await;
    stage.bind("w1", json!({})).await;
    until_there(&stage.compute, &nodes(), None, "vnode-w1-n1").await;
    make_pod(&stage.compute, &pod("unlucky", "vnode-w1-n1", "1")).await;
    stage.pass(120).await;
    for name in ["a", "b", "c"] {
        make_pod(&stage.compute, &pod(name, "vnode-w1-n1", "1")).await;
        until_there(&stage.w1, &pods(), Some(MOUNT), &below("default", name)).await;
    }
    assert!(stage.w1.get_opt(&pods(), Some(MOUNT), &below("default", "unlucky")).await.unwrap().is_none());
    fragile.store(false, std::sync::atomic::Ordering::SeqCst);
    until_there(&stage.w1, &pods(), Some(MOUNT), &below("default", "unlucky")).await;
}
