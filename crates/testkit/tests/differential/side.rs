//! One of the two servers, as a story sees it.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use atoll_runtime::Endpoint;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use http::{HeaderMap, Request};
use serde_json::{Value, json};

use crate::case::Case;

/// How long something that happens in the background may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long a first answer may take; documents are made when they are first asked for.
const ANSWER: Duration = Duration::from_secs(60);

/// A stream that lasts longer than this has no end.
const ENDLESS: Duration = Duration::from_secs(8);

/// Continue tokens made from true ones: of a state that both servers have forgotten, of one they do not have yet,
/// and with a way out of the collection.
const TOKENS: [(&str, fn(&mut Value)); 3] = [
    ("old", |token| token["rv"] = 1.into()),
    ("far", |token| token["rv"] = 999_999_999.into()),
    ("out", |token| token["start"] = "../../secrets/".into()),
];

fn forged(token: &str, change: fn(&mut Value)) -> String {
    let mut tree: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(token).unwrap()).unwrap();
    change(&mut tree);
    URL_SAFE_NO_PAD.encode(tree.to_string())
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub code: u16,
    pub headers: HeaderMap,
    pub bytes: Bytes,
}

/// A server with what a story remembers of its answers.
#[derive(Clone)]
pub struct Side {
    known: Endpoint,
    /// Without credentials, and with wrong ones.
    strangers: (Endpoint, Endpoint),
    namespace: String,
    saved: HashMap<String, String>,
}

/// Ways to a server without credentials and with wrong ones.
pub async fn strangers(kubeconfig: &Path) -> (Endpoint, Endpoint) {
    let config = kube::config::Kubeconfig::read_from(kubeconfig).unwrap();
    let mut config = kube::Config::from_custom_kubeconfig(config, &Default::default()).await.unwrap();
    config.auth_info = Default::default();
    let nobody = Endpoint::remote("nobody", config.clone(), "differential").unwrap();
    config.auth_info.token = Some("not-a-token".to_owned().into());
    (nobody, Endpoint::remote("wrong", config, "differential").unwrap())
}

impl Side {
    pub fn new(known: Endpoint, strangers: (Endpoint, Endpoint)) -> Self {
        Self { known, strangers, namespace: String::new(), saved: HashMap::new() }
    }

    /// The same server for a story of this namespace.
    pub fn at(&self, namespace: &str) -> Self {
        Self { namespace: namespace.to_owned(), ..self.clone() }
    }

    /// Makes the namespace and waits for what every namespace has.
    pub async fn prepare(&mut self) {
        let namespaces = atoll_meta::Gvr::new("", "v1", "namespaces");
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}});
        self.known.ensure(&namespaces, None, &object).await.unwrap();
        for (plural, name) in [("serviceaccounts", "default"), ("configmaps", "kube-root-ca.crt")] {
            let gvr = atoll_meta::Gvr::new("", "v1", plural);
            let since = Instant::now();
            while self.known.get_opt(&gvr, Some(&self.namespace), name).await.unwrap().is_none() {
                assert!(since.elapsed() < PATIENCE, "{}: no {plural} {name}", self.known.name());
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }

    fn fill(&self, text: &str) -> String {
        let mut text = text.replace("$ns", &self.namespace);
        for (name, size) in [("$big", 200_000), ("$huge", 4 << 20)] {
            if text.contains(name) {
                text = text.replace(name, &"x".repeat(size));
            }
        }
        if text.contains("$deep") {
            text = text.replace("$deep", &format!("{}1{}", "[".repeat(20_000), "]".repeat(20_000)));
        }
        let mut saved: Vec<_> = self.saved.iter().collect();
        // Long names first: `$rv2` is not `$rv` and a 2.
        saved.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        for (name, value) in saved {
            for (kind, change) in TOKENS {
                let place = format!("${kind}.{name}");
                if text.contains(&place) {
                    text = text.replace(&place, &forged(value, change));
                }
            }
            text = text.replace(&format!("${name}"), value);
        }
        text
    }

    /// Sends a request, again and again if the case says so, and keeps what later ones need.
    pub async fn send(&mut self, case: &Case) -> Answer {
        let since = Instant::now();
        loop {
            let answer = self.once(case).await;
            let tree: Value = serde_json::from_slice(&answer.bytes).unwrap_or_default();
            let code = case.until.is_none_or(|code| code == answer.code);
            let has =
                case.until_has.as_ref().is_none_or(|place| tree.pointer(place).is_some_and(|value| !value.is_null()));
            let is = case.until_is.iter().all(|(place, text)| tree.pointer(place).is_some_and(|own| own == text));
            if (code && has && is) || since.elapsed() > PATIENCE {
                for (name, place) in &case.save {
                    let value = match tree.pointer(place) {
                        Some(Value::String(text)) => text.clone(),
                        Some(other) => other.to_string(),
                        None => String::new(),
                    };
                    self.saved.insert(name.clone(), value);
                }
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    async fn once(&self, case: &Case) -> Answer {
        let (method, path) = case.request();
        let (content_type, body) = case.content(&|text| self.fill(text));
        let mut request = Request::builder()
            .method(method)
            .uri(self.fill(path).replace(' ', "%20"))
            .header("user-agent", "differential/1.0")
            .header("accept", case.accept());
        if let Some(content_type) = content_type.filter(|_| !case.headers.contains_key("content-type")) {
            request = request.header("content-type", content_type);
        }
        for (name, value) in &case.headers {
            request = request.header(name, self.fill(value));
        }
        let endpoint = match case.user.as_deref() {
            Some("-") => &self.strangers.0,
            Some("!") => &self.strangers.1,
            Some(user) => {
                request = request.header("impersonate-user", self.fill(user));
                &self.known
            }
            None => &self.known,
        };
        let answer = tokio::time::timeout(ANSWER, endpoint.transport().send(request.body(body).unwrap())).await;
        let answer = answer.unwrap_or_else(|_| Err(atoll_meta::Status::unavailable("no answer")));
        let answer = match answer {
            Ok(answer) => answer,
            // Code 0 stands for a connection that was cut.
            Err(status) => return Answer { code: 0, headers: HeaderMap::new(), bytes: status.message.into() },
        };
        let (parts, mut stream) = answer.into_parts();
        let mut bytes = BytesMut::new();
        let read = async {
            while let Some(piece) = stream.next().await {
                match piece {
                    Ok(piece) => bytes.extend_from_slice(&piece),
                    Err(error) => bytes.extend_from_slice(format!("<broken: {error}>").as_bytes()),
                }
            }
        };
        if tokio::time::timeout(ENDLESS, read).await.is_err() {
            bytes.extend_from_slice(b"<endless>");
        }
        Answer { code: parts.status.as_u16(), headers: parts.headers, bytes: bytes.freeze() }
    }
}
