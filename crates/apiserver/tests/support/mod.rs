//! A hub in memory and requests to it, without sockets.
#![allow(dead_code, reason = "each test uses its part")]
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use atoll_apiserver::auth::Keys;
use atoll_apiserver::{ApiService, Hub, Identity, Instance, Options};
use atoll_store::MemoryEngine;
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tower::ServiceExt as _;

/// A hub whose clock stands still until it is moved.
pub struct TestHub {
    pub hub: Arc<Hub>,
    pub clock: Arc<Mutex<jiff::Timestamp>>,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub code: u16,
    pub headers: http::HeaderMap,
    pub body: Value,
    pub text: String,
}

impl Answer {
    /// Fails with the whole answer unless it has this code.
    #[track_caller]
    pub fn expect(self, code: u16) -> Value {
        assert_eq!(self.code, code, "{}", self.text);
        self.body
    }

    pub fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }
}

/// Who makes a request in a test.
#[derive(Clone)]
pub enum Who {
    Master,
    User(&'static str),
    Inside(Identity),
    Token(String),
    Headers(Vec<(String, String)>),
    Nobody,
}

impl TestHub {
    pub async fn new() -> Self {
        Self::over(Arc::new(MemoryEngine::new())).await
    }

    pub async fn over(engine: Arc<dyn atoll_store::Engine>) -> Self {
        let clock = Arc::new(Mutex::new(jiff::Timestamp::now()));
        let hands = clock.clone();
        let hub =
            Hub::open(engine, Keys::default(), Arc::new(move || *hands.lock()), Options::default()).await.unwrap();
        Self { hub, clock }
    }

    pub fn pass(&self, seconds: i64) {
        let mut now = self.clock.lock();
        *now = now.checked_add(jiff::SignedDuration::from_secs(seconds)).unwrap();
    }

    pub async fn instance(&self, name: &str) -> Arc<Instance> {
        self.hub.create_instance(name).await.unwrap()
    }

    pub async fn call(&self, who: &Who, method: &str, path: &str, body: Value) -> Answer {
        let content = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        self.call_as(who, method, path, body, &[("content-type", content)]).await
    }

    pub async fn call_as(&self, who: &Who, method: &str, path: &str, body: Value, headers: &[(&str, &str)]) -> Answer {
        let bytes = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        let mut request = Request::builder().method(Method::from_bytes(method.as_bytes()).unwrap()).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Who::Headers(list) = who {
            for (name, value) in list {
                request = request.header(name, value);
            }
        }
        if let Who::Token(token) = who {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let mut request = request.body(Full::new(bytes)).unwrap();
        match who {
            Who::Master => drop(request.extensions_mut().insert(Identity::master("tester"))),
            Who::User(name) => drop(request.extensions_mut().insert(user(name))),
            Who::Inside(identity) => drop(request.extensions_mut().insert(identity.clone())),
            Who::Token(_) | Who::Headers(_) | Who::Nobody => {}
        }
        self.send(request).await
    }

    pub async fn send(&self, request: Request<Full<Bytes>>) -> Answer {
        let service = ApiService::new(self.hub.clone());
        let answer = service.oneshot(request).await.unwrap();
        let (parts, body) = answer.into_parts();
        let bytes = body.collect().await.map_err(|_| "body").unwrap().to_bytes();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Answer {
            code: parts.status.as_u16(),
            headers: parts.headers,
            body: serde_json::from_str(&text).unwrap_or_default(),
            text,
        }
    }

    pub async fn get(&self, who: &Who, path: &str) -> Answer {
        self.call(who, "GET", path, Value::Null).await
    }

    /// Begins a watch; its events are the body.
    pub async fn watch(&self, path: &str) -> http::Response<atoll_apiserver::Body> {
        let mut request = Request::get(path).body(Full::new(Bytes::new())).unwrap();
        request.extensions_mut().insert(Identity::master("tester"));
        ApiService::new(self.hub.clone()).oneshot(request).await.unwrap()
    }

    pub async fn post(&self, who: &Who, path: &str, body: Value) -> Answer {
        self.call(who, "POST", path, body).await
    }

    /// A ClusterRole and its binding to a user, made by the master.
    pub async fn grant(&self, base: &str, name: &str, user: &str, rules: Value) {
        let rbac = format!("{base}/apis/rbac.authorization.k8s.io/v1");
        self.post(&Who::Master, &format!("{rbac}/clusterroles"), json!({"metadata": {"name": name}, "rules": rules}))
            .await
            .expect(201);
        self.bind(base, name, user).await;
    }

    /// Binds a ClusterRole to a user.
    pub async fn bind(&self, base: &str, role: &str, user: &str) {
        let rbac = format!("{base}/apis/rbac.authorization.k8s.io/v1");
        let group = "rbac.authorization.k8s.io";
        let binding = json!({"metadata": {"name": format!("{role}-{user}")},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": group, "kind": "User", "name": user}]});
        self.post(&Who::Master, &format!("{rbac}/clusterrolebindings"), binding).await.expect(201);
    }
}

pub fn user(name: &str) -> Identity {
    Identity { user: name.into(), groups: vec!["system:authenticated".into()], ..Identity::default() }
}
