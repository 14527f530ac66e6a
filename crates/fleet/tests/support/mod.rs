//! A hub in memory with a fleet and its members, for stories.
#![allow(dead_code, clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use atoll_apiserver::{ApiService, Hub, Identity, Options as HubOptions};
use atoll_fleet::{Fleet, NamedMembers, Options, admission, cluster_proxy, install, native_definitions};
use atoll_meta::Gvr;
use atoll_runtime::Endpoint;
use atoll_store::MemoryEngine;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

pub struct World {
    pub hub: Arc<Hub>,
    pub instance: Endpoint,
    pub members: Vec<Endpoint>,
    pub fleet: Option<Fleet>,
    pub stop: CancellationToken,
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
        hub.create_instance("fleet").await.unwrap();
        hub.add_native(|instance| &*instance.name == "fleet", native_definitions()).await.unwrap();
        hub.add_admission(admission());
        let neighbours = |cluster: &atoll_api::cluster::Cluster| cluster.metadata.name.clone();
        hub.add_connector("cluster.karmada.io", "clusters", "proxy", cluster_proxy(Arc::new(neighbours)));
        let instance = endpoint(&hub, "fleet");
        install(&instance).await.unwrap();
        let mut all = Vec::new();
        for number in 1..=members {
            let name = format!("m{number}");
            hub.create_instance(&name).await.unwrap();
            all.push(endpoint(&hub, &name));
        }
        Self { hub, instance, members: all, fleet: None, stop: CancellationToken::new() }
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

    /// Starts the controllers.
    pub async fn run(&mut self, adjust: impl FnOnce(&mut Options)) {
        let named = self.members.iter().map(|member| (member.name().to_owned(), member.clone()));
        let mut options = Options::new(self.instance.clone(), Arc::new(NamedMembers::new(named)));
        options.probe_interval = Duration::from_secs(1);
        adjust(&mut options);
        self.stop = CancellationToken::new();
        self.fleet = Some(Fleet::start(options, self.stop.clone()).await);
    }

    /// Stops the controllers, as a crash would.
    pub fn crash(&mut self) {
        self.stop.cancel();
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

    pub fn member(&self, name: &str) -> &Endpoint {
        self.members.iter().find(|member| member.name() == name).unwrap()
    }

    /// Waits until something holds; fails with its name after a while.
    pub async fn eventually(&self, what: &str, mut check: impl AsyncFnMut() -> bool) {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
        while !check().await {
            if tokio::time::Instant::now() > deadline {
                for binding in self.instance.list(&bindings(), None, "").await.unwrap().items {
                    println!("{binding:#}");
                }
                panic!("never so: {what}");
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
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
