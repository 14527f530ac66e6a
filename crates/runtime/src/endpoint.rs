//! One Kubernetes API: an instance of this hub, or a member somewhere else.

use std::sync::Arc;

use atoll_meta::{Gvr, Status};
use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use http::{Method, Request, Response};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::transport::{BodyStream, RemoteTransport, ServiceTransport, Transport};

/// The languages of patches.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Patch<'a> {
    /// RFC 7386.
    Merge,
    /// Kubernetes' own.
    Strategic,
    /// RFC 6902.
    Json,
    /// Server-side apply by this manager, taking over fields of others when forced.
    Apply {
        /// Who applies.
        manager: &'a str,
        /// Whether to take fields over.
        force: bool,
    },
}

/// A list of objects at a revision.
#[derive(Debug, Default)]
pub struct List {
    /// `metadata.resourceVersion`.
    pub revision: String,
    /// The objects, each with `apiVersion` and `kind`.
    pub items: Vec<Value>,
}

/// One event of a watch.
#[derive(Debug)]
pub enum WatchEvent {
    /// An object came to be, or came into view.
    Added(Value),
    /// An object changed.
    Modified(Value),
    /// An object is gone, or out of view.
    Deleted(Value),
    /// Nothing happened up to this revision; the flag marks the end of the initial state.
    Bookmark(String, bool),
    /// The server ended the watch.
    Error(Status),
}

/// A way to one Kubernetes API. Cheap to clone.
#[derive(Clone)]
pub struct Endpoint {
    name: Arc<str>,
    transport: Arc<dyn Transport>,
    agent: Arc<str>,
}

impl Endpoint {
    /// Over any transport; `name` appears in logs and messages, `agent` becomes the field manager.
    pub fn new(name: &str, transport: Arc<dyn Transport>, agent: &str) -> Self {
        Self { name: name.into(), transport, agent: agent.into() }
    }

    /// Over HTTPS. A request is sent once: whoever asked decides what a refusal means, and when to try again.
    pub fn remote(name: &str, mut config: kube::Config, agent: &str) -> Result<Self, Status> {
        config.default_retry = false;
        let client = crate::client::client(config).map_err(|error| Status::unavailable(error.to_string()))?;
        Ok(Self::new(name, Arc::new(RemoteTransport::new(client)), agent))
    }

    /// To an instance inside the process. `prepare` puts the caller's identity into each request.
    pub fn in_process<S, B>(
        service: S,
        instance: &str,
        agent: &str,
        prepare: impl Fn(&mut http::Extensions) + Send + Sync + 'static,
    ) -> Self
    where
        S: tower::Service<
                Request<http_body_util::Full<Bytes>>,
                Response = Response<B>,
                Error = std::convert::Infallible,
            > + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: std::fmt::Display,
    {
        let prefix = if instance == "root" { String::new() } else { format!("/instances/{instance}") };
        Self::new(instance, Arc::new(ServiceTransport::new(service, &prefix, prepare)), agent)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The same endpoint under another agent name (field manager).
    #[must_use]
    pub fn with_agent(&self, agent: &str) -> Self {
        Self { agent: agent.into(), ..self.clone() }
    }

    /// What carries requests.
    pub fn transport(&self) -> &Arc<dyn Transport> {
        &self.transport
    }

    /// Sends any request and reads the whole answer; HTTP failures become a [`Status`].
    pub async fn send(&self, method: Method, path: &str, content_type: &str, body: Bytes) -> Result<Bytes, Status> {
        let answer = self.open(method, path, content_type, body).await?;
        let code = answer.status().as_u16();
        let bytes = collect(answer.into_body()).await?;
        if code >= 400 { Err(Status::from_json(code, &bytes)) } else { Ok(bytes) }
    }

    /// Sends any request and hands out the answer while it streams.
    pub async fn open(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: Bytes,
    ) -> Result<Response<BodyStream>, Status> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("user-agent", &*self.agent)
            .header("accept", "application/json")
            .header("content-type", content_type)
            .body(body)
            .map_err(|error| Status::bad_request(error.to_string()))?;
        self.transport.send(request).await
    }

    async fn json(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, Status> {
        let bytes = body.map(encode).unwrap_or_default();
        parse(&self.send(method, path, "application/json", bytes).await?)
    }

    /// Reads one object.
    pub async fn get(&self, gvr: &Gvr, namespace: Option<&str>, name: &str) -> Result<Value, Status> {
        self.json(Method::GET, &gvr.path(namespace, Some(name)), None).await
    }

    /// Reads one object that may not exist.
    pub async fn get_opt(&self, gvr: &Gvr, namespace: Option<&str>, name: &str) -> Result<Option<Value>, Status> {
        match self.get(gvr, namespace, name).await {
            Ok(object) => Ok(Some(object)),
            Err(status) if status.code == 404 => Ok(None),
            Err(status) => Err(status),
        }
    }

    /// Reads any path as JSON.
    pub async fn get_path(&self, path: &str) -> Result<Value, Status> {
        self.json(Method::GET, path, None).await
    }

    /// Creates an object.
    pub async fn create(&self, gvr: &Gvr, namespace: Option<&str>, object: &Value) -> Result<Value, Status> {
        self.json(Method::POST, &gvr.path(namespace, None), Some(object)).await
    }

    /// Whether the one who made a certificate signing request may have it granted at once, as a request of that
    /// `part` (`nodeclient` and the like).
    pub async fn may_be_certified(&self, spec: &Value, part: &str) -> Result<bool, Status> {
        let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
            "user": spec["username"], "uid": spec["uid"], "groups": spec["groups"], "extra": spec["extra"],
            "resourceAttributes": {"group": "certificates.k8s.io", "version": "*",
                                   "resource": "certificatesigningrequests", "subresource": part, "verb": "create"}}});
        let reviews = Gvr::new("authorization.k8s.io", "v1", "subjectaccessreviews");
        Ok(self.create(&reviews, None, &review).await?["status"]["allowed"] == true)
    }

    /// Replaces an object; its resourceVersion, if set, is a precondition.
    pub async fn update(
        &self,
        gvr: &Gvr,
        namespace: Option<&str>,
        name: &str,
        object: &Value,
    ) -> Result<Value, Status> {
        self.json(Method::PUT, &gvr.path(namespace, Some(name)), Some(object)).await
    }

    /// Replaces a subresource.
    pub async fn update_sub(
        &self,
        gvr: &Gvr,
        namespace: Option<&str>,
        name: &str,
        sub: &str,
        object: &Value,
    ) -> Result<Value, Status> {
        self.json(Method::PUT, &format!("{}/{sub}", gvr.path(namespace, Some(name))), Some(object)).await
    }

    /// Creates through a subresource (binding, eviction, token).
    pub async fn create_sub(
        &self,
        gvr: &Gvr,
        namespace: Option<&str>,
        name: &str,
        sub: &str,
        object: &Value,
    ) -> Result<Value, Status> {
        self.json(Method::POST, &format!("{}/{sub}", gvr.path(namespace, Some(name))), Some(object)).await
    }

    /// Patches an object (`sub` empty) or a subresource.
    pub async fn patch(
        &self,
        gvr: &Gvr,
        namespace: Option<&str>,
        name: &str,
        sub: &str,
        language: Patch<'_>,
        patch: &Value,
    ) -> Result<Value, Status> {
        let mut path = gvr.path(namespace, Some(name));
        if !sub.is_empty() {
            path = format!("{path}/{sub}");
        }
        let content_type = match language {
            Patch::Merge => "application/merge-patch+json",
            Patch::Strategic => "application/strategic-merge-patch+json",
            Patch::Json => "application/json-patch+json",
            Patch::Apply { manager, force } => {
                path = format!("{path}?fieldManager={manager}&force={force}");
                "application/apply-patch+yaml"
            }
        };
        parse(&self.send(Method::PATCH, &path, content_type, encode(patch)).await?)
    }

    /// Deletes an object; `options` is a DeleteOptions object or null. A missing object is not an error.
    pub async fn delete(&self, gvr: &Gvr, namespace: Option<&str>, name: &str, options: &Value) -> Result<(), Status> {
        let body = if options.is_null() { Bytes::new() } else { encode(options) };
        match self.send(Method::DELETE, &gvr.path(namespace, Some(name)), "application/json", body).await {
            Ok(_) => Ok(()),
            Err(status) if status.code == 404 => Ok(()),
            Err(status) => Err(status),
        }
    }

    /// Lists a collection; `query` such as `labelSelector=a%3Db` may be empty.
    pub async fn list(&self, gvr: &Gvr, namespace: Option<&str>, query: &str) -> Result<List, Status> {
        let mut list = List::default();
        let mut token = String::new();
        loop {
            let path = page_path(gvr, namespace, [query, &token]);
            let mut page = self.json(Method::GET, &path, None).await?;
            page["metadata"]["resourceVersion"].as_str().unwrap_or_default().clone_into(&mut list.revision);
            let kind = page["kind"].as_str().unwrap_or_default().trim_end_matches("List").to_owned();
            let api_version = page["apiVersion"].clone();
            if let Value::Array(items) = page["items"].take() {
                list.items.extend(items.into_iter().map(|mut item| {
                    // Items of built-in lists leave out what the list says once.
                    if item.get("kind").is_none() {
                        item["kind"] = kind.clone().into();
                        item["apiVersion"] = api_version.clone();
                    }
                    item
                }));
            }
            match page["metadata"]["continue"].as_str().filter(|next| !next.is_empty()) {
                Some(next) => token = format!("continue={next}"),
                None => return Ok(list),
            }
        }
    }

    /// Reads a collection page by page; `each` gets the JSON of every object with the kind and version of the list.
    /// Gives the revision.
    pub(crate) async fn visit(
        &self,
        gvr: &Gvr,
        namespace: Option<&str>,
        query: &str,
        mut each: impl FnMut(&str, &str, &str),
    ) -> Result<String, Status> {
        let mut token = String::new();
        loop {
            let path = page_path(gvr, namespace, [query, &token]);
            let bytes = self.send(Method::GET, &path, "application/json", Bytes::new()).await?;
            let page: Page<'_> = serde_json::from_slice(&bytes).map_err(no_json)?;
            let kind = page.kind.trim_end_matches("List");
            for item in &page.items {
                each(item.get(), kind, &page.api_version);
            }
            if page.metadata.next.is_empty() {
                return Ok(page.metadata.resource_version);
            }
            token = format!("continue={}", page.metadata.next);
            tokio::task::yield_now().await;
        }
    }

    /// Watches a collection from a revision; with an empty one the present state comes first.
    pub async fn watch(
        &self,
        gvr: &Gvr,
        namespace: Option<&str>,
        query: &str,
        revision: &str,
    ) -> Result<WatchStream, Status> {
        let mut path = format!("{}?watch=true&allowWatchBookmarks=true&timeoutSeconds=290", gvr.path(namespace, None));
        if revision.is_empty() {
            path.push_str("&sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
        } else {
            path.push_str("&resourceVersion=");
            path.push_str(revision);
        }
        if !query.is_empty() {
            path.push('&');
            path.push_str(query);
        }
        let answer = self.open(Method::GET, &path, "application/json", Bytes::new()).await?;
        let code = answer.status().as_u16();
        if code >= 400 {
            return Err(Status::from_json(code, &collect(answer.into_body()).await?));
        }
        Ok(WatchStream { body: answer.into_body(), buffer: BytesMut::new(), searched: 0 })
    }

    /// Creates an object or, when it exists, leaves it; returns what is there.
    pub async fn ensure(&self, gvr: &Gvr, namespace: Option<&str>, object: &Value) -> Result<Value, Status> {
        match self.create(gvr, namespace, object).await {
            Err(status) if status.code == 409 => {
                self.get(gvr, namespace, object["metadata"]["name"].as_str().unwrap_or_default()).await
            }
            result => result,
        }
    }

    /// Records an event about an object; failures are only logged, an event is never worth a retry storm.
    pub async fn event(&self, about: &Value, kind: &str, reason: &str, message: &str, now: jiff::Timestamp) {
        let namespace = about["metadata"]["namespace"].as_str().unwrap_or("default");
        let stamp = atoll_meta::time::format(now);
        let name = about["metadata"]["name"].as_str().unwrap_or_default();
        let event = json!({
            "kind": "Event", "apiVersion": "v1",
            "metadata": {"generateName": format!("{name}."), "namespace": namespace},
            "involvedObject": {
                "kind": about["kind"], "apiVersion": about["apiVersion"], "name": about["metadata"]["name"],
                "namespace": about["metadata"].get("namespace"), "uid": about["metadata"]["uid"],
                "resourceVersion": about["metadata"]["resourceVersion"],
            },
            "type": kind, "reason": reason, "message": message, "count": 1,
            "firstTimestamp": stamp, "lastTimestamp": stamp, "source": {"component": &*self.agent},
            "reportingComponent": &*self.agent, "reportingInstance": "",
        });
        if let Err(status) = self.create(&Gvr::new("", "v1", "events"), Some(namespace), &event).await {
            tracing::debug!(endpoint = %self.name, %status, "event not recorded");
        }
    }
}

/// Reads a body to its end.
pub async fn collect(mut body: BodyStream) -> Result<Bytes, Status> {
    let mut all = BytesMut::new();
    while let Some(piece) = body.next().await {
        all.extend_from_slice(&piece.map_err(|error| Status::unavailable(error.to_string()))?);
    }
    Ok(all.freeze())
}

/// The path of one page of a collection.
fn page_path(gvr: &Gvr, namespace: Option<&str>, query: [&str; 2]) -> String {
    let mut path = format!("{}?limit=500", gvr.path(namespace, None));
    for part in query.into_iter().filter(|part| !part.is_empty()) {
        path.push('&');
        path.push_str(part);
    }
    path
}

fn encode(value: &Value) -> Bytes {
    // A tree always serialises.
    serde_json::to_vec(value).unwrap_or_default().into()
}

fn parse(bytes: &[u8]) -> Result<Value, Status> {
    serde_json::from_slice(bytes).map_err(no_json)
}

fn no_json(error: serde_json::Error) -> Status {
    Status::internal(format!("answer is not JSON: {error}"))
}

/// A page of a list whose items are not looked into.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page<'a> {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    metadata: PageMeta,
    #[serde(borrow, default, deserialize_with = "items")]
    items: Vec<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageMeta {
    #[serde(default)]
    resource_version: String,
    #[serde(default, rename = "continue")]
    next: String,
}

/// Some servers say `null` for an empty list.
fn items<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<&'de RawValue>, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// One line of a watch whose object is not looked into.
#[derive(Deserialize)]
pub(crate) struct Line<'a> {
    /// `ADDED` and the like.
    #[serde(rename = "type")]
    pub kind: &'a str,
    /// The object.
    #[serde(borrow)]
    pub object: &'a RawValue,
}

impl<'a> Line<'a> {
    /// Reads one.
    pub(crate) fn read(line: &'a [u8]) -> Result<Self, Status> {
        serde_json::from_slice(line).map_err(no_json)
    }
}

/// The events of a watch, one JSON line each.
pub struct WatchStream {
    body: BodyStream,
    buffer: BytesMut,
    /// Up to here there is no end of a line.
    searched: usize,
}

impl WatchStream {
    /// The next event; `None` when the server closed the stream.
    pub async fn next(&mut self) -> Option<Result<WatchEvent, Status>> {
        let line = self.line().await?;
        Some(line.and_then(|line| event(&line)))
    }

    /// The next event as it was sent.
    pub(crate) async fn line(&mut self) -> Option<Result<Bytes, Status>> {
        loop {
            if let Some(end) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(self.searched + end + 1).freeze();
                self.searched = 0;
                if line.len() > 1 {
                    return Some(Ok(line));
                }
                continue;
            }
            self.searched = self.buffer.len();
            match self.body.next().await? {
                Ok(piece) => self.buffer.extend_from_slice(&piece),
                Err(error) => return Some(Err(Status::unavailable(error.to_string()))),
            }
        }
    }
}

pub(crate) fn event(line: &[u8]) -> Result<WatchEvent, Status> {
    let mut tree = parse(line)?;
    let object = tree["object"].take();
    Ok(match tree["type"].as_str().unwrap_or_default() {
        "ADDED" => WatchEvent::Added(object),
        "MODIFIED" => WatchEvent::Modified(object),
        "DELETED" => WatchEvent::Deleted(object),
        "BOOKMARK" => WatchEvent::Bookmark(
            object["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned(),
            object["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true",
        ),
        _ => {
            let code = u16::try_from(object["code"].as_u64().unwrap_or(500)).unwrap_or(500);
            WatchEvent::Error(Status::from_json(code, object.to_string().as_bytes()))
        }
    })
}
