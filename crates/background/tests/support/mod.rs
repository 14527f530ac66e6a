//! A hub in memory with its background work, whose clock is that of the test runtime: with paused time
//! an hour passes in an instant.
#![allow(dead_code, reason = "each test uses its part")]
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use atoll_apiserver::auth::Keys;
use atoll_apiserver::{ApiService, Hub, Identity, Options};
use atoll_background::Background;
use atoll_meta::{Gvr, Status};
use atoll_runtime::{Endpoint, Patch};
use atoll_store::MemoryEngine;
use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};

pub struct Bench {
    pub hub: Arc<Hub>,
    pub background: Arc<Background>,
    pub endpoint: Endpoint,
    _stop: DropGuard,
}

impl Bench {
    pub async fn new() -> Self {
        let (start, began) = (jiff::Timestamp::now(), tokio::time::Instant::now());
        let clock = move || start.checked_add(jiff::SignedDuration::try_from(began.elapsed()).unwrap()).unwrap();
        let hub = Hub::open(Arc::new(MemoryEngine::new()), Keys::default(), Arc::new(clock), Options::default())
            .await
            .unwrap();
        let stop = CancellationToken::new();
        let background = Background::start(hub.clone(), "authority", stop.clone());
        let endpoint = reach(&hub, "root", Identity::master("tester"));
        let own = Self { hub, background, endpoint, _stop: stop.drop_guard() };
        own.until("the namespaces are furnished", async || own.has("/v1/configmaps@default", "kube-root-ca.crt").await)
            .await;
        own.settled().await;
        own
    }

    pub fn now(&self) -> String {
        atoll_meta::time::format(self.hub.now())
    }

    pub fn in_seconds(&self, seconds: i64) -> String {
        atoll_meta::time::format(self.hub.now().checked_add(jiff::SignedDuration::from_secs(seconds)).unwrap())
    }

    /// Lets time pass: the clock is paused, and moves only when nobody has anything to do.
    pub async fn pass(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        self.idle().await;
    }

    /// Waits until nothing is to be done now; what is to be done later stays.
    pub async fn idle(&self) {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }

    /// Waits until nothing is to be done, now or later.
    pub async fn settled(&self) {
        self.background.rest().await;
    }

    /// Waits, for at most a minute of the test's time.
    pub async fn until(&self, what: &str, holds: impl AsyncFn() -> bool) {
        for _ in 0..600 {
            if holds().await {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("never: {what}");
    }

    pub async fn create(&self, path: &str, mut object: Value) -> Value {
        let (gvr, namespace) = place(path);
        object["apiVersion"] = gvr.api_version().into();
        self.endpoint.create(&gvr, namespace.as_deref(), &object).await.unwrap()
    }

    pub async fn find(&self, path: &str, name: &str) -> Option<Value> {
        let (gvr, namespace) = place(path);
        self.endpoint.get_opt(&gvr, namespace.as_deref(), name).await.unwrap()
    }

    pub async fn has(&self, path: &str, name: &str) -> bool {
        self.find(path, name).await.is_some()
    }

    pub async fn merge(&self, path: &str, name: &str, sub: &str, patch: Value) -> Result<Value, Status> {
        let (gvr, namespace) = place(path);
        self.endpoint.patch(&gvr, namespace.as_deref(), name, sub, Patch::Merge, &patch).await
    }

    pub async fn delete(&self, path: &str, name: &str, policy: &str) {
        let (gvr, namespace) = place(path);
        let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": policy});
        self.endpoint.delete(&gvr, namespace.as_deref(), name, &options).await.unwrap();
    }
}

/// A way to an instance as somebody.
pub fn reach(hub: &Arc<Hub>, instance: &str, identity: Identity) -> Endpoint {
    Endpoint::in_process(ApiService::new(hub.clone()), instance, "test", move |extensions| {
        extensions.insert(identity.clone());
    })
}

/// `group/version/resource` or `group/version/resource@namespace`; the core group is empty.
fn place(path: &str) -> (Gvr, Option<String>) {
    let (path, namespace) =
        path.split_once('@').map_or((path, None), |(path, namespace)| (path, Some(namespace.into())));
    let parts: Vec<&str> = path.split('/').collect();
    (Gvr::new(parts[0], parts[1], parts[2]), namespace)
}

/// A reference to an owner.
pub fn owner(object: &Value, blocks: bool) -> Value {
    json!({"apiVersion": object["apiVersion"], "kind": object["kind"], "name": object["metadata"]["name"],
           "uid": object["metadata"]["uid"], "blockOwnerDeletion": blocks})
}
