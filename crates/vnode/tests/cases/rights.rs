//! The lessor's safety: a syncer works with the least rights, and says which are missing.

use std::collections::BTreeSet;
use std::sync::Arc;

use atoll_api::kubeocean::ClusterBinding;
use atoll_apiserver::{Identity, Place, RequestInfo};
use atoll_meta::{Gvr, Status};
use atoll_runtime::{BodyStream, Endpoint, Transport};
use atoll_vnode::{Feature, Features, Manager, ShortCut, Worker};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::pods::start_pod;
use crate::stage::*;

fn access(plural: &str) -> Gvr {
    Gvr::new("rbac.authorization.k8s.io", "v1", plural)
}

fn lessee() -> Identity {
    Identity { user: "lessee".into(), groups: vec!["system:authenticated".into()], ..Identity::default() }
}

/// Notes what is asked for: verb, resource, and whether outside the mount namespace.
pub struct Recorder {
    pub through: Endpoint,
    pub seen: Seen,
}

#[async_trait::async_trait]
impl Transport for Recorder {
    async fn send(&self, request: http::Request<bytes::Bytes>) -> Result<http::Response<BodyStream>, Status> {
        let watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let info = RequestInfo::parse(request.method(), request.uri().path(), watch, None);
        if let Place::Resource(target) = info.place {
            let sub = if target.subresource.is_empty() { String::new() } else { format!("/{}", target.subresource) };
            let resource = format!("{}{sub}.{}", target.resource, target.group);
            self.seen.lock().insert((info.verb.as_str().to_owned(), resource, target.namespace != MOUNT));
        }
        self.through.transport().send(request).await
    }
}

async fn grant(stage: &Stage, without: &Features) -> [Value; 2] {
    let roles = atoll_vnode::worker_roles("lessee", MOUNT, without);
    stage.w1.create(&access("clusterroles"), None, &roles[0]).await.unwrap();
    stage.w1.create(&access("roles"), Some(MOUNT), &roles[1]).await.unwrap();
    let subjects = json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "lessee"}]);
    let reference = |kind: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "lessee"});
    let all = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "lessee"}, "roleRef": reference("ClusterRole"), "subjects": subjects});
    let mount = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "lessee", "namespace": MOUNT}, "roleRef": reference("Role"), "subjects": subjects});
    stage.w1.create(&access("clusterrolebindings"), None, &all).await.unwrap();
    stage.w1.create(&access("rolebindings"), Some(MOUNT), &mount).await.unwrap();
    roles
}

/// A verb, a resource, and whether outside the mount namespace.
type Right = (String, String, bool);
pub type Seen = Arc<Mutex<BTreeSet<Right>>>;

async fn start(stage: &Stage) -> (Manager, Seen) {
    let seen = Seen::default();
    let (hub, own) = (stage.hub.clone(), seen.clone());
    let mut options = stage.options();
    options.workers = ShortCut::new(move |_: &ClusterBinding, _: &str| {
        let mut worker = Worker::in_process(&hub, "w1", lessee());
        let recorder = Recorder { through: worker.endpoint.clone(), seen: own.clone() };
        worker.endpoint = Endpoint::new("w1", Arc::new(recorder), "atoll-vnode");
        Some(worker)
    });
    (Manager::start(options, stage.stop.child_token()).await, seen)
}

#[tokio::test(start_paused = true)]
async fn what_a_syncer_uses_is_what_the_role_allows_and_no_more() {
    let stage = Stage::open().await;
    let roles = grant(&stage, &Features::new()).await;
    let (_manager, seen) = start(&stage).await;
    make_namespace(&stage.compute, "shop").await;
    make_node(&stage.w1, "n1", "4", "8Gi").await;
    make_policy(&stage.w1, "p1", "w1", json!({})).await;
    stage.bind("w1", json!({"serviceNamespaces": ["shop"]})).await;
    until_there(&stage.compute, &nodes(), None, "vnode-w1-n1").await;
    everything(&stage).await;
    stage.compute.delete(&bindings(), None, "w1", &json!({})).await.unwrap();
    until_gone(&stage.compute, &bindings(), None, "w1").await;

    let (allowed, used) = compared(&roles, &seen);
    // Streams and metrics do not pass this way.
    let streams = [
        "pods/log.",
        "pods/exec.",
        "pods/attach.",
        "pods/portforward.",
        "pods/ephemeralcontainers.",
        "pods.metrics.k8s.io",
    ];
    let idle: Vec<_> =
        allowed.difference(&used).filter(|(_, resource, _)| !streams.contains(&resource.as_str())).collect();
    assert!(idle.is_empty(), "allowed but never used: {idle:?}");
    assert!(
        !allowed.iter().any(|(_, resource, outside)| resource == "secrets." && *outside),
        "Secrets only in the mount namespace"
    );
}

/// What roles allow in a worker cluster and what was used there; nothing that is not allowed.
fn compared(roles: &[Value; 2], seen: &Seen) -> (BTreeSet<Right>, BTreeSet<Right>) {
    let allowed = |role: &Value, outside: bool| -> BTreeSet<Right> {
        let rules = role["rules"].as_array().unwrap().iter();
        rules
            .flat_map(|rule| {
                let resource =
                    format!("{}.{}", rule["resources"][0].as_str().unwrap(), rule["apiGroups"][0].as_str().unwrap());
                rule["verbs"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(move |verb| (verb.as_str().unwrap().to_owned(), resource.clone(), outside))
                    .collect::<Vec<_>>()
            })
            .collect()
    };
    let allowed: BTreeSet<_> = allowed(&roles[0], true).into_iter().chain(allowed(&roles[1], false)).collect();
    let used: BTreeSet<_> =
        seen.lock().iter().filter(|(_, resource, _)| !resource.starts_with("selfsubject")).cloned().collect();
    let refused: Vec<_> = used.difference(&allowed).collect();
    assert!(refused.is_empty(), "used but not allowed: {refused:?}");
    (allowed, used)
}

/// A manager in the computing cluster with no more than its roles.
async fn limited(stage: &Stage) -> (Endpoint, Seen, [Value; 3]) {
    let roles = atoll_vnode::computing_roles("manager");
    let subjects = json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "manager"}]);
    for role in &roles {
        let (kind, namespace) = (role["kind"].as_str().unwrap(), role["metadata"]["namespace"].as_str());
        let plural = format!("{}s", kind.to_lowercase());
        stage.compute.create(&access(&plural), namespace, role).await.unwrap();
        let mut binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": format!("{kind}Binding"), "metadata": {"name": "manager"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "manager"}, "subjects": subjects});
        if let Some(namespace) = namespace {
            binding["metadata"]["namespace"] = namespace.into();
        }
        stage.compute.create(&access(&plural.replace("roles", "rolebindings")), namespace, &binding).await.unwrap();
    }
    let identity =
        Identity { user: "manager".into(), groups: vec!["system:authenticated".into()], ..Identity::default() };
    let through = Worker::in_process(&stage.hub, "compute", identity).endpoint;
    let seen = Seen::default();
    let recorder = Recorder { through, seen: seen.clone() };
    (Endpoint::new("compute", Arc::new(recorder), "atoll-vnode"), seen, roles)
}

#[tokio::test(start_paused = true)]
async fn what_a_manager_uses_in_its_own_cluster_is_what_its_roles_allow_and_no_more() {
    let stage = Stage::open().await;
    let (computing, seen, roles) = limited(&stage).await;
    let mut options = stage.options();
    options.computing = computing;
    options.identity = Some("one".to_owned());
    let _manager = Manager::start(options, stage.stop.child_token()).await;
    make_namespace(&stage.compute, "shop").await;
    make_node(&stage.w1, "n1", "4", "8Gi").await;
    let csi = json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": "n1"}, "spec": {"drivers": []}});
    stage.w1.create(&csi_nodes(), None, &csi).await.unwrap();
    let mut own = pod("own", "n1", "100m");
    own["spec"]["containers"][0]["ports"] = json!([{"containerPort": 1, "hostPort": 9999}]);
    make_pod(&stage.w1, &own).await;
    make_policy(&stage.w1, "p1", "w1", json!({})).await;
    stage.bind("w1", json!({"serviceNamespaces": ["shop"]})).await;
    until_there(&stage.compute, &nodes(), None, "vnode-w1-n1").await;
    patch(&stage.w1, &nodes(), None, "n1", "", json!({"metadata": {"labels": {"zone": "a"}}})).await;
    patch(&stage.w1, &nodes(), None, "n1", "status", json!({"status": {"allocatable": {"cpu": "3"}}})).await;
    until(&stage.compute, &nodes(), None, "vnode-w1-n1", |node| {
        node.is_some_and(|node| {
            node["metadata"]["labels"]["zone"] == "a" && node["status"]["allocatable"]["cpu"] != "3900m"
        })
    })
    .await;
    everything(&stage).await;
    stage.compute.delete(&bindings(), None, "w1", &json!({})).await.unwrap();
    until_gone(&stage.compute, &bindings(), None, "w1").await;

    let rules = roles.iter().flat_map(|role| role["rules"].as_array().unwrap());
    let allowed: BTreeSet<(String, String)> = rules
        .flat_map(|rule| {
            let resource =
                format!("{}.{}", rule["resources"][0].as_str().unwrap(), rule["apiGroups"][0].as_str().unwrap());
            let verbs = rule["verbs"].as_array().unwrap().iter();
            verbs.map(move |verb| (verb.as_str().unwrap().to_owned(), resource.clone())).collect::<Vec<_>>()
        })
        .collect();
    let used: BTreeSet<(String, String)> =
        seen.lock().iter().map(|(verb, resource, _)| (verb.clone(), resource.clone())).collect();
    let refused: Vec<_> = used.difference(&allowed).collect();
    assert!(refused.is_empty(), "used but not allowed: {refused:?}");
    // Not every life has all of these: the kubelet API, other owners, silence, a first start, a race.
    let rare = [
        ("create", "tokenreviews.authentication.k8s.io"),
        ("create", "subjectaccessreviews.authorization.k8s.io"),
        ("create", "secrets."),
        ("create", "namespaces."),
        ("get", "pods."),
        ("get", "replicasets.apps"),
        ("patch", "nodes/status."),
        ("update", "csinodes.storage.k8s.io"),
        ("get", "clusterbindings.cloud.tencent.com"),
        ("patch", "events."),
    ];
    let idle: Vec<_> = allowed.difference(&used).filter(|(verb, resource)| !rare.contains(&(verb, resource))).collect();
    assert!(idle.is_empty(), "allowed but never used: {idle:?}");
}

/// Makes what pods refer to.
async fn things(stage: &Stage) {
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"}, "data": {"k": "v"}});
    stage.compute.create(&configs(), Some("default"), &config).await.unwrap();
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}, "data": {"k": "dg=="}});
    stage.compute.create(&secrets(), Some("default"), &secret).await.unwrap();
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv-1"}, "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "csi": {"driver": "d", "volumeHandle": "h"}}});
    stage.compute.create(&volumes(), None, &volume).await.unwrap();
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "default"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "volumeName": "pv-1"}});
    stage.compute.create(&claims(), Some("default"), &claim).await.unwrap();
    patch(&stage.compute, &claims(), Some("default"), "data", "status", json!({"status": {"phase": "Bound"}})).await;
}

/// Does a bit of everything a syncer can be asked for.
async fn everything(stage: &Stage) {
    things(stage).await;
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "sa", "namespace": "default"}});
    stage.compute.ensure(&Gvr::new("", "v1", "serviceaccounts"), Some("default"), &account).await.unwrap();
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"}, "spec": {"clusterIP": "None", "clusterIPs": ["None"], "ports": [{"port": 80}]}});
    stage.compute.create(&services(), Some("shop"), &service).await.unwrap();
    let slice = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {"name": "web-1", "namespace": "shop", "labels": {"kubernetes.io/service-name": "web"}}, "addressType": "IPv4", "ports": [{"port": 80}], "endpoints": [{"addresses": ["10.2.0.7"]}]});
    stage.compute.create(&slices(), Some("shop"), &slice).await.unwrap();
    let mut pod = pod("web", "vnode-w1-n1", "100m");
    pod["spec"]["serviceAccountName"] = "sa".into();
    pod["spec"]["volumes"] = json!([
        {"name": "c", "configMap": {"name": "c"}}, {"name": "s", "secret": {"secretName": "s"}}, {"name": "d", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "token", "expirationSeconds": 600}}]}},
    ]);
    start_pod(stage, &pod).await;
    let name = below("default", "web");
    run(&stage.w1, MOUNT, &name, "n1").await;
    patch(&stage.compute, &configs(), Some("default"), "c", "", json!({"data": {"k": "new"}})).await;
    patch(&stage.compute, &secrets(), Some("default"), "s", "", json!({"data": {"k": "eA=="}})).await;
    patch(&stage.compute, &pods(), Some("default"), "web", "", json!({"metadata": {"labels": {"a": "1"}}})).await;
    until_there(&stage.w1, &services(), Some(MOUNT), &below("shop", "web")).await;
    until_there(&stage.w1, &slices(), Some(MOUNT), &below("shop", "web-1")).await;
    patch(&stage.compute, &slices(), Some("shop"), "web-1", "", json!({"endpoints": [{"addresses": ["10.2.0.8"]}]}))
        .await;
    patch(&stage.compute, &services(), Some("shop"), "web", "", json!({"spec": {"ports": [{"port": 81}]}})).await;
    until(&stage.w1, &pods(), Some(MOUNT), &name, |pod| pod.is_some_and(|pod| pod["metadata"]["labels"]["a"] == "1"))
        .await;
    stage.pass(700).await;
    stage.compute.delete(&pods(), Some("default"), "web", &json!({})).await.unwrap();
    until(&stage.w1, &pods(), Some(MOUNT), &name, |pod| {
        pod.is_none_or(|pod| pod["metadata"]["deletionTimestamp"].is_string())
    })
    .await;
    kill(&stage.w1, MOUNT, &name).await;
    until_gone(&stage.w1, &volumes(), None, &below("", "pv-1")).await;
}

/// Waits until an event about a pod ends with these words.
async fn until_told(stage: &Stage, pod: &str, words: &str) {
    let mut told = Vec::new();
    for _ in 0..300 {
        told = stage.compute.list(&events(), Some("default"), "").await.unwrap().items;
        let of_pod = told.iter().filter(|own| own["involvedObject"]["name"] == pod);
        if of_pod.filter_map(|own| own["message"].as_str()).any(|message| message.ends_with(words)) {
            return;
        }
        stage.pass(1).await;
    }
    panic!("{words:?} is never told: {told:#?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_left_out_of_the_role_is_not_asked_for_and_said_to_be_missing() {
    let stage = Stage::open().await;
    let roles = grant(&stage, &Feature::ALL.into()).await;
    let (_manager, seen) = start(&stage).await;
    make_node(&stage.w1, "n1", "4", "8Gi").await;
    make_policy(&stage.w1, "p1", "w1", json!({})).await;
    stage.bind("w1", json!({})).await;
    let said = |words: &'static str| {
        move |own: Option<&Value>| {
            own.is_some_and(|own| own["status"]["phase"] == "Ready" && condition(own, "Ready")["message"] == words)
        }
    };
    let all = "the binding works; the worker cluster does not grant: \
               volumes, services, events, logs, exec, port-forward, debug, metrics";
    until(&stage.compute, &bindings(), None, "w1", said(all)).await;
    until_there(&stage.compute, &nodes(), None, "vnode-w1-n1").await;
    things(&stage).await;
    let mut pod = pod("plain", "vnode-w1-n1", "100m");
    pod["spec"]["volumes"] =
        json!([{"name": "c", "configMap": {"name": "c"}}, {"name": "s", "secret": {"secretName": "s"}}]);
    start_pod(&stage, &pod).await;
    run(&stage.w1, MOUNT, &below("default", "plain"), "n1").await;
    until(&stage.compute, &pods(), Some("default"), "plain", |pod| {
        pod.is_some_and(|pod| pod["status"]["phase"] == "Running")
    })
    .await;
    pod["metadata"]["name"] = "stored".into();
    pod["spec"]["volumes"] = json!([{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]);
    make_pod(&stage.compute, &pod).await;
    until_told(&stage, "stored", "the worker cluster does not grant volumes").await;
    let (allowed, used) = compared(&roles, &seen);
    let rare = [
        ("update", "configmaps."),
        ("update", "secrets."),
        ("patch", "secrets."),
        ("delete", "configmaps."),
        ("delete", "secrets."),
        ("get", "configmaps."),
        ("get", "secrets."),
        ("delete", "pods."),
        ("get", "pods."),
        ("patch", "pods."),
    ];
    let idle: Vec<_> =
        allowed.difference(&used).filter(|(verb, resource, _)| !rare.contains(&(verb, resource))).collect();
    assert!(idle.is_empty(), "allowed but never used: {idle:?}");

    // What is granted later is noticed, and what waited for it goes on.
    let more = atoll_vnode::worker_roles("lessee", MOUNT, &Feature::ALL.into_iter().skip(1).collect());
    patch(&stage.w1, &access("clusterroles"), None, "lessee", "", json!({"rules": more[0]["rules"]})).await;
    patch(&stage.w1, &access("roles"), Some(MOUNT), "lessee", "", json!({"rules": more[1]["rules"]})).await;
    until_there(&stage.w1, &pods(), Some(MOUNT), &below("default", "stored")).await;
    let rest = "the binding works; the worker cluster does not grant: \
                services, events, logs, exec, port-forward, debug, metrics";
    until(&stage.compute, &bindings(), None, "w1", said(rest)).await;
}

#[tokio::test(start_paused = true)]
async fn a_binding_that_asks_for_services_cannot_do_without_them() {
    let stage = Stage::open().await;
    grant(&stage, &Feature::ALL.into()).await;
    let (_manager, _) = start(&stage).await;
    stage.bind("w1", json!({"serviceNamespaces": ["default"]})).await;
    let binding = until(&stage.compute, &bindings(), None, "w1", |binding| {
        binding.is_some_and(|binding| condition(binding, "Ready")["reason"] == "PermissionsMissing")
    })
    .await
    .unwrap();
    let message = condition(&binding, "Ready")["message"].as_str().unwrap();
    assert!(message.contains("create endpointslices.discovery.k8s.io in kubeocean-worker"), "{message}");
    assert!(!message.contains("pods/log"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn missing_rights_are_named_one_by_one() {
    let stage = Stage::open().await;
    grant(&stage, &Features::new()).await;
    let role = stage.w1.get(&access("roles"), Some(MOUNT), "lessee").await.unwrap();
    let rules: Vec<Value> =
        role["rules"].as_array().unwrap().iter().filter(|rule| rule["resources"][0] != "secrets").cloned().collect();
    patch(&stage.w1, &access("roles"), Some(MOUNT), "lessee", "", json!({"rules": rules})).await;
    let (_manager, _) = start(&stage).await;
    stage.bind("w1", json!({})).await;
    let binding = until(&stage.compute, &bindings(), None, "w1", |binding| {
        binding.is_some_and(|binding| condition(binding, "Ready")["reason"] == "PermissionsMissing")
    })
    .await
    .unwrap();
    let message = condition(&binding, "Ready")["message"].as_str().unwrap();
    assert!(message.contains("create secrets in kubeocean-worker") && !message.contains("pods"), "{message}");
    patch(&stage.w1, &access("roles"), Some(MOUNT), "lessee", "", json!({"rules": role["rules"]})).await;
    until(&stage.compute, &bindings(), None, "w1", |binding| {
        binding.is_some_and(|binding| binding["status"]["phase"] == "Ready")
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_right_that_is_taken_away_later_is_noticed_when_it_is_missed() {
    let stage = Stage::open().await;
    grant(&stage, &Features::new()).await;
    make_node(&stage.w1, "n1", "4", "8Gi").await;
    make_policy(&stage.w1, "p1", "w1", json!({})).await;
    let (_manager, _) = start(&stage).await;
    stage.bind("w1", json!({})).await;
    let says = async |reason: &str| {
        let is = |own: Option<&Value>| own.is_some_and(|own| condition(own, "Ready")["reason"] == reason);
        until(&stage.compute, &bindings(), None, "w1", is).await.unwrap()
    };
    says("ValidationPassed").await;
    until_there(&stage.compute, &nodes(), None, "vnode-w1-n1").await;
    let role = stage.w1.get(&access("roles"), Some(MOUNT), "lessee").await.unwrap();
    let mut less = role["rules"].clone();
    let own = less.as_array_mut().unwrap().iter_mut().find(|rule| rule["resources"][0] == "pods").unwrap();
    own["verbs"] = json!(["get", "patch", "delete"]);
    patch(&stage.w1, &access("roles"), Some(MOUNT), "lessee", "", json!({"rules": less})).await;
    make_pod(&stage.compute, &pod("web", "vnode-w1-n1", "1")).await;
    let binding = says("PermissionsMissing").await;
    let message = condition(&binding, "Ready")["message"].as_str().unwrap();
    assert!(message.ends_with("does not allow: create pods in kubeocean-worker"), "{message}");
    patch(&stage.w1, &access("roles"), Some(MOUNT), "lessee", "", json!({"rules": role["rules"]})).await;
    says("ValidationPassed").await;
    until_there(&stage.w1, &pods(), Some(MOUNT), &below("default", "web")).await;
}

#[tokio::test(start_paused = true)]
async fn a_kubeconfig_to_an_instance_of_this_hub_gives_its_own_rights_and_no_more() {
    let stage = Stage::open().await;
    let year = jiff::SignedDuration::from_hours(24 * 365);
    let credentials = |name: &'static str| stage.hub.instance(name).unwrap();
    let own = stage.hub.credentials(&credentials("w1")).await.unwrap();
    let other = stage.hub.credentials(&credentials("w2")).await.unwrap();
    let masters = ["system:masters".to_owned()];
    let token = |value: &str| {
        let access = atoll_pki::Access {
            server: own.url().to_owned(),
            ca_pem: None,
            insecure: false,
            tls_server_name: None,
            auth: atoll_pki::Auth::Token(value.to_owned()),
            namespace: None,
        };
        let mut config = atoll_pki::Kubeconfig::new();
        config.add("x", &access);
        config
    };
    for (config, expected) in [
        (own.kubeconfig("owner", &masters, year).unwrap(), 200),
        (own.kubeconfig("somebody", &[], year).unwrap(), 403),
        (other.kubeconfig("owner-elsewhere", &masters, year).unwrap(), 401),
        (token("made-up"), 401),
    ] {
        let worker = Worker::in_process_by(&stage.hub, "w1", &config.to_yaml().unwrap()).unwrap();
        let code = match worker.endpoint.list(&nodes(), None, "").await {
            Ok(_) => 200,
            Err(status) => status.code,
        };
        assert_eq!(code, expected, "{config:?}");
    }
}
