//! A hub in memory with a fleet and its members, for stories.
#![allow(dead_code, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use atoll_apiserver::{ApiService, Hub, Identity, Options as HubOptions};
use atoll_fleet::{Fleet, NamedMembers, Options, admission, cluster_proxy, install, native_definitions};
use atoll_meta::{Gvr, Status};
use atoll_runtime::{BodyStream, Denied, Endpoint, Patch, Transport};
use atoll_store::MemoryEngine;
use bytes::Bytes;
use http::{Request, Response};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// The namespace of all stories.
pub const NS: Option<&str> = Some("default");

pub struct World {
    pub hub: Arc<Hub>,
    pub instance: Endpoint,
    pub members: Vec<Endpoint>,
    cuts: BTreeMap<String, Arc<AtomicBool>>,
    pub fleet: Option<Fleet>,
    pub stop: CancellationToken,
    apart: Vec<Apart>,
}

/// A way to a member that can be cut.
struct Wire {
    inner: Arc<dyn Transport>,
    cut: Arc<AtomicBool>,
}

#[async_trait::async_trait]
impl Transport for Wire {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<BodyStream>, Status> {
        if self.cut.load(Ordering::Relaxed) {
            return Err(Status::unavailable("the wire is cut"));
        }
        self.inner.send(request).await
    }
}

/// A runtime of its own for controllers, so that they can be killed: nothing of them goes on then, at no point.
pub struct Apart(Option<tokio::runtime::Runtime>);

impl Drop for Apart {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Carries requests in the runtime of the test: what is sent arrives, also when the sender is killed meanwhile.
pub struct Sent {
    inner: Arc<dyn Transport>,
    home: tokio::runtime::Handle,
}

impl Sent {
    pub fn new(inner: Arc<dyn Transport>) -> Self {
        Self { inner, home: tokio::runtime::Handle::current() }
    }
}

#[async_trait::async_trait]
impl Transport for Sent {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<BodyStream>, Status> {
        let inner = self.inner.clone();
        let sent = self.home.spawn(async move { inner.send(request).await });
        sent.await.unwrap_or_else(|_| Err(Status::unavailable("the test is over")))
    }
}

/// The one place that knows how a hub is opened.
async fn open_hub() -> Arc<Hub> {
    let engine = Arc::new(MemoryEngine::new());
    let keys = atoll_apiserver::auth::Keys::default();
    Hub::open(engine, keys, Arc::new(jiff::Timestamp::now), HubOptions::default()).await.unwrap()
}

pub fn endpoint(hub: &Arc<Hub>, name: &str) -> Endpoint {
    Endpoint::in_process(ApiService::new(hub.clone()), name, "test", |extensions| {
        extensions.insert(Identity::master("test"));
    })
}

pub fn clusters() -> Gvr {
    Gvr::new("cluster.karmada.io", "v1alpha1", "clusters")
}

pub fn policies() -> Gvr {
    Gvr::new("policy.karmada.io", "v1alpha1", "propagationpolicies")
}

pub fn overrides() -> Gvr {
    Gvr::new("policy.karmada.io", "v1alpha1", "overridepolicies")
}

pub fn bindings() -> Gvr {
    Gvr::new("work.karmada.io", "v1alpha2", "resourcebindings")
}

pub fn works() -> Gvr {
    Gvr::new("work.karmada.io", "v1alpha1", "works")
}

pub fn deployments() -> Gvr {
    Gvr::new("apps", "v1", "deployments")
}

pub fn core(plural: &str) -> Gvr {
    Gvr::new("", "v1", plural)
}

impl World {
    /// A hub with a fleet instance and members `m1`, `m2`, ...; nothing runs yet.
    pub async fn new(members: usize) -> Self {
        let hub = open_hub().await;
        let mut all = Vec::new();
        for number in 1..=members {
            let name = format!("m{number}");
            hub.create_instance(&name).await.unwrap();
            all.push(endpoint(&hub, &name));
        }
        Self::over(hub, all).await
    }

    /// A hub with a fleet instance for members that run elsewhere; nothing runs yet.
    pub async fn with_members(members: Vec<Endpoint>) -> Self {
        Self::over(open_hub().await, members).await
    }

    async fn over(hub: Arc<Hub>, members: Vec<Endpoint>) -> Self {
        hub.create_instance("fleet").await.unwrap();
        hub.add_native(|instance| &*instance.name == "fleet", native_definitions()).await.unwrap();
        hub.add_admission(admission());
        let near: Vec<String> = members.iter().map(|member| member.name().to_owned()).collect();
        let neighbours = move |cluster: &atoll_api::cluster::Cluster| {
            cluster.metadata.name.clone().filter(|name| near.contains(name))
        };
        hub.add_connector(
            "cluster.karmada.io",
            "clusters",
            "proxy",
            cluster_proxy(Arc::new(neighbours), Denied::default()),
        );
        let instance = endpoint(&hub, "fleet");
        install(&instance).await.unwrap();
        let cuts = members.iter().map(|member| (member.name().to_owned(), Arc::new(AtomicBool::new(false)))).collect();
        Self { hub, instance, members, cuts, fleet: None, stop: CancellationToken::new(), apart: Vec::new() }
    }

    /// Cuts a member off from the hub, or lets it back.
    pub fn cut(&self, member: &str, off: bool) {
        self.cuts[member].store(off, Ordering::Relaxed);
    }

    /// Starts the fleet with all members joined.
    pub async fn start(members: usize) -> Self {
        let mut world = Self::new(members).await;
        world.run(|_| {}).await;
        for number in 1..=members {
            world.join(&format!("m{number}"), json!({})).await;
        }
        world
    }

    /// Like `start`, with all that callers need to reach the members through the instance.
    pub async fn start_with_proxy(members: usize) -> Self {
        let mut world = Self::new(members).await;
        world.run(|_| {}).await;
        world.allow_proxy().await;
        for number in 1..=members {
            let name = format!("m{number}");
            let secret = world.impersonator(&name).await;
            world.join(&name, json!({"spec": {"impersonatorSecretRef": secret}})).await;
        }
        for number in 1..=members {
            let path = format!("/apis/cluster.karmada.io/v1alpha1/clusters/m{number}/proxy/version");
            let reached = async || world.instance.get_path(&path).await.is_ok();
            world.eventually("the caller may be named in the member", reached).await;
        }
        world
    }

    /// The caller of all stories may use the proxy.
    async fn allow_proxy(&self) {
        let rbac = |plural: &str| Gvr::new("rbac.authorization.k8s.io", "v1", plural);
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "callers"},
            "rules": [{"apiGroups": ["cluster.karmada.io"], "resources": ["clusters/proxy"], "verbs": ["*"]}]});
        self.instance.create(&rbac("clusterroles"), None, &role).await.unwrap();
        let subjects = json!([{"kind": "User", "name": "test", "apiGroup": "rbac.authorization.k8s.io"},
            {"kind": "Group", "name": "system:masters", "apiGroup": "rbac.authorization.k8s.io"}]);
        let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "callers"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "callers"}, "subjects": subjects});
        self.instance.create(&rbac("clusterrolebindings"), None, &binding).await.unwrap();
    }

    /// Makes the account that may only impersonate, and keeps its token in the instance; where that is.
    async fn impersonator(&self, member: &str) -> Value {
        let (endpoint, namespace, account) = (self.member(member), Some("karmada-cluster"), "karmada-impersonator");
        let home = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "karmada-cluster"}});
        endpoint.ensure(&core("namespaces"), None, &home).await.unwrap();
        let object = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account, "namespace": "karmada-cluster"}});
        endpoint.create(&core("serviceaccounts"), namespace, &object).await.unwrap();
        let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
        let answer =
            endpoint.create_sub(&core("serviceaccounts"), namespace, account, "token", &request).await.unwrap();
        let name = format!("{member}-impersonator");
        self.instance.ensure(&core("namespaces"), None, &home).await.unwrap();
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "karmada-cluster"},
            "stringData": {"token": answer["status"]["token"]}});
        self.instance.create(&core("secrets"), namespace, &secret).await.unwrap();
        json!({"namespace": "karmada-cluster", "name": name})
    }

    /// Starts the controllers.
    pub async fn run(&mut self, adjust: impl FnOnce(&mut Options)) {
        let options = self.options(adjust);
        self.stop = CancellationToken::new();
        self.fleet = Some(Fleet::start(options, self.stop.clone()).await);
    }

    /// Starts the controllers so that they can be killed.
    pub async fn run_apart(&mut self, adjust: impl FnOnce(&mut Options)) {
        let mut options = self.options(adjust);
        let sent = Sent::new(self.instance.transport().clone());
        options.instance = Endpoint::new(self.instance.name(), Arc::new(sent), "atoll-fleet");
        self.stop = CancellationToken::new();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        self.fleet = Some(runtime.spawn(Fleet::start(options, self.stop.clone())).await.unwrap());
        self.apart.push(Apart(Some(runtime)));
    }

    fn options(&self, adjust: impl FnOnce(&mut Options)) -> Options {
        let named = self.members.iter().map(|member| {
            let wire = Wire { inner: member.transport().clone(), cut: self.cuts[member.name()].clone() };
            (member.name().to_owned(), Endpoint::new(member.name(), Arc::new(wire), "atoll-fleet"))
        });
        let mut options = Options::new(self.instance.clone(), Arc::new(NamedMembers::new(named)));
        options.probe_interval = Duration::from_secs(1);
        adjust(&mut options);
        options
    }

    /// Stops the controllers; what one of them is in the midst of it still ends, as one that was held up would.
    pub fn crash(&mut self) {
        self.stop.cancel();
        self.fleet = None;
    }

    /// Kills controllers that run apart. Requests they have sent may still arrive.
    pub fn kill(&mut self) {
        self.apart.clear();
        self.fleet = None;
    }

    /// Makes a Cluster and waits until it is ready.
    pub async fn join(&self, name: &str, spec: Value) {
        let mut cluster = json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": name},
                                 "spec": {"syncMode": "Push", "apiEndpoint": format!("https://{name}")}});
        atoll_patch::merge_patch(&mut cluster, &spec);
        self.instance.create(&clusters(), None, &cluster).await.unwrap();
        self.eventually(&format!("{name} is ready"), async || {
            let cluster = self.instance.get(&clusters(), None, name).await.unwrap();
            let ready = cluster["status"]["conditions"]
                .as_array()
                .into_iter()
                .flatten()
                .any(|c| c["type"] == "Ready" && c["status"] == "True");
            ready && cluster["status"]["apiEnablements"].is_array()
        })
        .await;
    }

    /// The clusters a binding names.
    pub async fn targets(&self, binding: &str) -> Vec<String> {
        let binding = self.instance.get_opt(&bindings(), NS, binding).await.unwrap().unwrap_or_default();
        let names = binding["spec"]["clusters"].as_array().into_iter().flatten();
        names.map(|cluster| cluster["name"].as_str().unwrap().to_owned()).collect()
    }

    /// A condition of a binding.
    pub async fn condition(&self, binding: &str, kind: &str) -> Value {
        let binding = self.instance.get_opt(&bindings(), NS, binding).await.unwrap().unwrap_or_default();
        let conditions = binding["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.into_iter().find(|condition| condition["type"] == kind).unwrap_or_default()
    }

    /// What a controller of the member would report once all replicas run.
    pub async fn report(&self, member: &str, name: &str, ready: i64) {
        let copy = self.in_member(member, &deployments(), name, |_| true).await;
        let status = json!({"status": {"observedGeneration": copy["metadata"]["generation"], "replicas": ready,
            "updatedReplicas": ready, "readyReplicas": ready, "availableReplicas": ready}});
        self.member(member).patch(&deployments(), NS, name, "status", Patch::Merge, &status).await.unwrap();
    }

    /// Waits until a Cluster is Ready, or is not.
    pub async fn readiness(&self, name: &str, status: &str) {
        self.eventually(&format!("{name} has Ready={status}"), async || {
            let cluster = self.instance.get(&clusters(), None, name).await.unwrap();
            let conditions = cluster["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions.iter().any(|c| c["type"] == "Ready" && c["status"] == status)
        })
        .await;
    }

    /// Whether an event with this reason was told.
    pub async fn told(&self, reason: &str) -> bool {
        let events = self.instance.list(&core("events"), None, "").await.unwrap().items;
        events.iter().any(|event| event["reason"] == reason)
    }

    /// Whether an event with this reason was told of an object of this name.
    pub async fn told_about(&self, reason: &str, name: &str) -> bool {
        let events = self.instance.list(&core("events"), None, "").await.unwrap().items;
        events.iter().any(|event| event["reason"] == reason && event["involvedObject"]["name"] == name)
    }

    pub fn member(&self, name: &str) -> &Endpoint {
        self.members.iter().find(|member| member.name() == name).unwrap()
    }

    /// Waits until something holds; fails with its name after a while.
    pub async fn eventually(&self, what: &str, check: impl AsyncFnMut() -> bool) {
        if self.comes_true(check).await {
            return;
        }
        for resource in [bindings(), works()] {
            for mut object in self.instance.list(&resource, None, "").await.unwrap().items {
                object["metadata"]["managedFields"].take();
                println!("{object:#}");
            }
        }
        panic!("never so: {what}");
    }

    /// Looks again whenever something is written in the hub, for a while; whether it came true.
    pub async fn comes_true(&self, mut check: impl AsyncFnMut() -> bool) -> bool {
        let mut feed = self.hub.engine().feed();
        let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
        while !check().await {
            // What happens elsewhere, in real members or in counters of a test, is not told by the hub.
            let silence = tokio::time::Instant::now() + Duration::from_millis(200);
            let news = tokio::time::timeout_at(silence.min(deadline), feed.recv()).await;
            if tokio::time::Instant::now() >= deadline {
                return false;
            }
            if matches!(news, Ok(Err(tokio::sync::broadcast::error::RecvError::Closed))) {
                tokio::time::sleep_until(silence).await;
            }
            while feed.try_recv().is_ok() {}
        }
        true
    }

    /// Waits for an object in a member to satisfy a condition, and gives it.
    pub async fn in_member(&self, member: &str, gvr: &Gvr, name: &str, check: impl Fn(&Value) -> bool) -> Value {
        let endpoint = self.member(member);
        let mut last = Value::Null;
        self.eventually(&format!("{} {name} in {member}", gvr.resource), async || {
            last = endpoint.get_opt(gvr, Some("default"), name).await.unwrap().unwrap_or_default();
            !last.is_null() && check(&last)
        })
        .await;
        last
    }

    /// Waits until a member does not hold an object.
    pub async fn not_in_member(&self, member: &str, gvr: &Gvr, name: &str) {
        let endpoint = self.member(member);
        self.eventually(&format!("no {} {name} in {member}", gvr.resource), async || {
            endpoint.get_opt(gvr, Some("default"), name).await.unwrap().is_none()
        })
        .await;
    }
}

pub fn deployment(name: &str, replicas: i64) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default", "labels": {"app": name}},
           "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
                    "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "nginx:1"}]}}}})
}

pub fn config_map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data})
}

/// A policy for Deployments, with more to its spec.
pub fn policy(name: &str, more: Value) -> Value {
    let mut spec = json!({"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}]});
    atoll_patch::merge_patch(&mut spec, &more);
    json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
           "metadata": {"name": name, "namespace": "default"}, "spec": spec})
}

/// The part of a policy that names clusters.
pub fn only(names: &[&str]) -> Value {
    json!({"placement": {"clusterAffinity": {"clusterNames": names}}})
}

/// A policy for ConfigMaps with a label.
pub fn map_policy(name: &str, label: &str, more: Value) -> Value {
    let mut spec = json!({"resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": {"matchLabels": {"story": label}}}]});
    atoll_patch::merge_patch(&mut spec, &more);
    policy(name, spec)
}

/// A ConfigMap with a label.
pub fn marked_map(name: &str, label: &str, value: &str) -> Value {
    let mut map = config_map(name, json!({"value": value}));
    map["metadata"]["labels"] = json!({"story": label});
    map
}

/// The definition of a small kind with a status.
pub fn gear_definition() -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "gears.example.io"},
        "spec": {"group": "example.io", "names": {"kind": "Gear", "plural": "gears", "singular": "gear", "listKind": "GearList"}, "scope": "Namespaced",
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}})
}

pub fn definitions() -> Gvr {
    Gvr::new("apiextensions.k8s.io", "v1", "customresourcedefinitions")
}

pub fn gears() -> Gvr {
    Gvr::new("example.io", "v1", "gears")
}

pub fn gear(name: &str, teeth: i64) -> Value {
    json!({"apiVersion": "example.io/v1", "kind": "Gear", "metadata": {"name": name, "namespace": "default"}, "spec": {"teeth": teeth}})
}

pub fn customizations() -> Gvr {
    Gvr::new("config.karmada.io", "v1alpha1", "resourceinterpretercustomizations")
}

pub fn customization(name: &str, target: (&str, &str), scripts: Value) -> Value {
    json!({"apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterCustomization", "metadata": {"name": name},
        "spec": {"target": {"apiVersion": target.0, "kind": target.1}, "customizations": scripts}})
}

pub fn rebalancer(name: &str, workload: &str) -> Value {
    json!({"apiVersion": "apps.karmada.io/v1alpha1", "kind": "WorkloadRebalancer", "metadata": {"name": name},
        "spec": {"workloads": [{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": workload}]}})
}

pub fn rebalancers() -> Gvr {
    Gvr::new("apps.karmada.io", "v1alpha1", "workloadrebalancers")
}
