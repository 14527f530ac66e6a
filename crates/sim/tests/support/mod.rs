//! A hub in memory with one simulated cluster, and ways to wait for what happens in it.
#![allow(clippy::unwrap_used, dead_code, missing_docs)]

use std::sync::Arc;
use std::time::Duration;

use atoll_apiserver::{ApiService, Hub, Identity};
use atoll_meta::Gvr;
use atoll_runtime::{Endpoint, Patch, WatchEvent};
use atoll_sim::{Sim, Spec};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

pub struct Cluster {
    pub hub: Arc<Hub>,
    pub api: Endpoint,
    pub sim: Sim,
    pub stop: CancellationToken,
}

/// The one place that knows how a hub is opened.
pub async fn open_hub() -> Arc<Hub> {
    let engine = Arc::new(atoll_store::MemoryEngine::new());
    let clock = Arc::new(jiff::Timestamp::now);
    Hub::open(engine, atoll_apiserver::auth::Keys::default(), clock, atoll_apiserver::Options::default()).await.unwrap()
}

pub fn endpoint(hub: &Arc<Hub>, instance: &str) -> Endpoint {
    Endpoint::in_process(ApiService::new(hub.clone()), instance, "kubectl", |extensions| {
        extensions.insert(Identity::master("system:test"));
    })
}

impl Cluster {
    pub async fn start(spec: Spec) -> Self {
        let hub = open_hub().await;
        hub.create_instance("sim").await.unwrap();
        hub.add_admission(Arc::new(atoll_sim::ServiceAddresses::new(|instance| &*instance.name == "sim")));
        let api = endpoint(&hub, "sim");
        let stop = CancellationToken::new();
        let sim = Sim::start(hub.clone(), api.clone(), "sim", spec, stop.clone()).await.unwrap();
        Self { hub, api, sim, stop }
    }

    pub async fn with_nodes(nodes: usize) -> Self {
        Self::start(Spec { nodes, ..Spec::default() }).await
    }

    pub async fn create(&self, object: Value) -> Value {
        let gvr = gvr_of(&object);
        let namespace = if cluster_scoped(&gvr) { None } else { Some("default") };
        self.api.create(&gvr, namespace, &object).await.unwrap()
    }

    pub async fn merge(&self, gvr: &Gvr, name: &str, patch: Value) -> Value {
        let namespace = if cluster_scoped(gvr) { None } else { Some("default") };
        self.api.patch(gvr, namespace, name, "", Patch::Merge, &patch).await.unwrap()
    }

    pub async fn get(&self, gvr: &Gvr, name: &str) -> Value {
        let namespace = if cluster_scoped(gvr) { None } else { Some("default") };
        self.api.get(gvr, namespace, name).await.unwrap()
    }

    pub async fn list(&self, gvr: &Gvr) -> Vec<Value> {
        self.api.list(gvr, None, "").await.unwrap().items
    }

    pub async fn delete(&self, gvr: &Gvr, name: &str) {
        let namespace = if cluster_scoped(gvr) { None } else { Some("default") };
        self.api.delete(gvr, namespace, name, &Value::Null).await.unwrap();
    }

    /// Waits until all objects of a resource fit, looking again at every event.
    pub async fn until_all(&self, gvr: &Gvr, what: &str, fits: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let wait = async {
            let mut list = self.api.list(gvr, None, "").await.unwrap();
            loop {
                if fits(&list.items) {
                    return list.items;
                }
                let mut watch = self.api.watch(gvr, None, "", &list.revision).await.unwrap();
                while let Some(Ok(WatchEvent::Bookmark(..))) = watch.next().await {}
                list = self.api.list(gvr, None, "").await.unwrap();
            }
        };
        match tokio::time::timeout(Duration::from_secs(30), wait).await {
            Ok(items) => items,
            Err(_) => {
                let items = self.api.list(gvr, None, "").await.unwrap().items;
                for pod in self.api.list(&pods(), None, "").await.unwrap().items {
                    eprintln!("pod {} on {}: {}", pod["metadata"]["name"], pod["spec"]["nodeName"], pod["status"]);
                }
                panic!("never happened: {what}; there is {}", serde_json::to_string(&items).unwrap());
            }
        }
    }

    pub async fn until(&self, gvr: &Gvr, name: &str, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let items = self
            .until_all(gvr, what, |items| items.iter().any(|one| one["metadata"]["name"] == name && fits(one)))
            .await;
        items.into_iter().find(|one| one["metadata"]["name"] == name).unwrap()
    }
}

pub fn gvr_of(object: &Value) -> Gvr {
    let (group, version) = atoll_meta::split_api_version(object["apiVersion"].as_str().unwrap());
    let kind = object["kind"].as_str().unwrap().to_lowercase();
    let plural = if kind.ends_with("ss") {
        format!("{kind}es")
    } else if kind == "endpoints" {
        kind
    } else {
        format!("{kind}s")
    };
    Gvr::new(group, version, &plural)
}

fn cluster_scoped(gvr: &Gvr) -> bool {
    matches!(&*gvr.resource, "nodes" | "namespaces" | "persistentvolumes" | "storageclasses" | "priorityclasses")
}

pub fn pods() -> Gvr {
    Gvr::new("", "v1", "pods")
}

pub fn nodes() -> Gvr {
    Gvr::new("", "v1", "nodes")
}

pub fn apps(plural: &str) -> Gvr {
    Gvr::new("apps", "v1", plural)
}

pub fn template(image: &str) -> Value {
    json!({"metadata": {"labels": {"app": "web"}},
           "spec": {"containers": [{"name": "web", "image": image, "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}]}})
}

pub fn deployment(name: &str, replicas: u32, image: &str) -> Value {
    json!({"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": name},
           "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template(image)}})
}

pub fn is_ready(pod: &Value) -> bool {
    pod["status"]["conditions"].as_array().into_iter().flatten().any(|c| c["type"] == "Ready" && c["status"] == "True")
}

pub fn condition(object: &Value, kind: &str) -> String {
    let list = object["status"]["conditions"].as_array().into_iter().flatten();
    list.into_iter()
        .find(|c| c["type"] == kind)
        .map(|c| format!("{} {}", c["status"].as_str().unwrap(), c["reason"].as_str().unwrap_or_default()))
        .unwrap_or_default()
}

/// Whether a Deployment is rolled out, as `kubectl rollout status` sees it.
pub fn rolled_out(deployment: &Value) -> bool {
    let spec = deployment["spec"]["replicas"].as_i64().unwrap_or(1);
    let status = &deployment["status"];
    let count = |field: &str| status[field].as_i64().unwrap_or_default();
    count("observedGeneration") >= deployment["metadata"]["generation"].as_i64().unwrap_or_default()
        && count("updatedReplicas") == spec
        && count("replicas") == spec
        && count("availableReplicas") == spec
}
