//! One Kubernetes API: an instance of this hub, or a member somewhere else.

use std::sync::Arc;

use atoll_meta::{Gvr, Reason, Status};
use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use http::{Method, Request, Response};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::transport::{BodyStream, ServiceTransport, Transport};
use crate::watch::WatchStream;

/// The longest answer that is gathered: a page of 500 objects that are all as large as etcd takes them, 1.5 MiB, and some
/// more for what JSON adds.
const LONGEST: usize = 1024 * 1024 * 1024;

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

/// A way to one Kubernetes API. Cheap to clone.
#[derive(Clone)]
pub struct Endpoint {
    name: Arc<str>,
    transport: Arc<dyn Transport>,
    agent: Arc<str>,
    patient: bool,
    company: usize,
}

impl Endpoint {
    /// Over any transport; `name` appears in logs and messages, `agent` becomes the field manager.
    pub fn new(name: &str, transport: Arc<dyn Transport>, agent: &str) -> Self {
        Self { name: name.into(), transport, agent: agent.into(), patient: false, company: 0 }
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

    /// The same endpoint for what can wait while others ask this API for something.
    #[must_use]
    pub fn patient(&self) -> Self {
        Self { patient: true, ..self.clone() }
    }

    /// The same endpoint for the first of so many writes that come one after the other: an API inside the process lets
    /// them share a commit.
    #[must_use]
    pub fn first_of(&self, writes: usize) -> Self {
        Self { company: writes, ..self.clone() }
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
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("user-agent", &*self.agent)
            .header("accept", "application/json")
            .header("content-type", content_type);
        if self.patient {
            request = request.header(atoll_meta::PATIENT, "1");
        }
        if self.company > 1 {
            request = request.header(atoll_meta::COMPANY, self.company);
        }
        let request = request.body(body).map_err(|error| Status::bad_request(error.to_string()))?;
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

    /// Reads one object that may not exist. It does not only if the API itself says so: whatever stands on the way may
    /// answer 404, or with anything, and those who ask delete and forget because of it. Kinds that are not served are an
    /// error as well.
    pub async fn get_opt(&self, gvr: &Gvr, namespace: Option<&str>, name: &str) -> Result<Option<Value>, Status> {
        match self.get(gvr, namespace, name).await {
            Ok(object) if object["metadata"]["name"] == name => Ok(Some(object)),
            Ok(_) => Err(Status::unavailable(format!("{} answered with something else than {name}", self.name))),
            Err(status) if is_absence(&status) => Ok(None),
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
        parse(&self.send_patch(gvr, namespace, name, sub, language, patch).await?)
    }

    pub(crate) async fn send_patch(
        &self,
        gvr: &Gvr,
        namespace: Option<&str>,
        name: &str,
        sub: &str,
        language: Patch<'_>,
        patch: &Value,
    ) -> Result<Bytes, Status> {
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
        self.send(Method::PATCH, &path, content_type, encode(patch)).await
    }

    /// Deletes an object; `options` is a DeleteOptions object or null. An object that is missing, as the API itself says,
    /// is not an error.
    pub async fn delete(&self, gvr: &Gvr, namespace: Option<&str>, name: &str, options: &Value) -> Result<(), Status> {
        let body = if options.is_null() { Bytes::new() } else { encode(options) };
        match self.send(Method::DELETE, &gvr.path(namespace, Some(name)), "application/json", body).await {
            Ok(_) => Ok(()),
            Err(status) if is_absence(&status) => Ok(()),
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
            if !page.is_object() {
                return Err(no_list(&self.name));
            }
            page["metadata"]["resourceVersion"].as_str().unwrap_or_default().clone_into(&mut list.revision);
            let kind = page["kind"].as_str().unwrap_or_default().trim_end_matches("List").to_owned();
            let api_version = page["apiVersion"].clone();
            if let Value::Array(items) = page["items"].take() {
                list.items.extend(items.into_iter().map(|mut item| {
                    // Items of built-in lists leave out what the list says once.
                    if let Some(map) = item.as_object_mut().filter(|map| !map.contains_key("kind")) {
                        map.insert("kind".into(), kind.clone().into());
                        map.insert("apiVersion".into(), api_version.clone());
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
            let (revision, next) = self.page(&path, &mut each).await?;
            if next.is_empty() {
                return Ok(revision);
            }
            token = format!("continue={next}");
            tokio::task::yield_now().await;
        }
    }

    /// Reads one page of a collection; `each` gets the JSON of every object with the kind and version of the list.
    /// Gives the revision and the token of the next page, which is empty on the last one.
    pub async fn page(&self, path: &str, mut each: impl FnMut(&str, &str, &str)) -> Result<(String, String), Status> {
        let bytes = self.send(Method::GET, path, "application/json", Bytes::new()).await?;
        if !is_object(&bytes) {
            return Err(no_list(&self.name));
        }
        let page: Page<'_> = serde_json::from_slice(&bytes).map_err(no_json)?;
        let kind = page.kind.trim_end_matches("List");
        for item in &page.items {
            each(item.get(), kind, &page.api_version);
        }
        Ok((page.metadata.resource_version, page.metadata.next))
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
        Ok(WatchStream::new(answer.into_body()))
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
        if let Err(status) = self.brief().create(&Gvr::new("", "v1", "events"), Some(namespace), &event).await {
            tracing::debug!(endpoint = %self.name, %status, "event not recorded");
        }
    }
}

/// Whether a Kubernetes API says that something is not there; others say 404 without a reason.
fn is_absence(status: &Status) -> bool {
    status.code == 404 && status.reason == Reason::NotFound
}

/// Reads a body to its end, if that comes before it has become too long for any answer.
pub async fn collect(body: BodyStream) -> Result<Bytes, Status> {
    gather(body, LONGEST).await
}

async fn gather(mut body: BodyStream, longest: usize) -> Result<Bytes, Status> {
    let failed = |error: std::io::Error| Status::unavailable(error.to_string());
    // Most come in one piece, which is taken as it is.
    let first = body.next().await.transpose().map_err(failed)?.unwrap_or_default();
    let Some(second) = body.next().await else { return Ok(first) };
    let mut all = BytesMut::from(first);
    let mut next = Some(second);
    while let Some(piece) = next {
        let piece = piece.map_err(failed)?;
        if all.len() + piece.len() > longest {
            return Err(Status::unavailable(format!("the answer is longer than {longest} bytes")));
        }
        all.extend_from_slice(&piece);
        next = body.next().await;
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

pub(crate) fn encode(value: &Value) -> Bytes {
    // A tree always serialises.
    serde_json::to_vec(value).unwrap_or_default().into()
}

fn parse(bytes: &[u8]) -> Result<Value, Status> {
    serde_json::from_slice(bytes).map_err(no_json)
}

/// Whether JSON is that of an object. What is read into a type would be read from an array, too.
pub(crate) fn is_object(text: &[u8]) -> bool {
    text.trim_ascii_start().starts_with(b"{")
}

fn no_list(name: &str) -> Status {
    Status::unavailable(format!("{name} answered with something else than a list"))
}

pub(crate) fn no_json(error: serde_json::Error) -> Status {
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Answers always the same.
    struct Fixed(u16, &'static str);

    #[async_trait::async_trait]
    impl Transport for Fixed {
        async fn send(&self, _: Request<Bytes>) -> Result<Response<BodyStream>, Status> {
            let body: BodyStream = Box::pin(futures::stream::iter([Ok(Bytes::from_static(self.1.as_bytes()))]));
            Ok(Response::builder().status(self.0).body(body).unwrap())
        }
    }

    #[tokio::test]
    async fn an_object_is_absent_only_if_the_api_itself_says_so() {
        let absent = r#"{"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404}"#;
        let pods = Gvr::new("", "v1", "pods");
        for (code, body, seen) in [
            (200, r#"{"metadata": {"name": "a"}}"#, Some(true)),
            (404, absent, Some(false)),
            (404, "default backend - 404", None),
            (404, "404 page not found\n", None),
            (404, "{}", None),
            (404, "", None),
            (200, "{}", None),
            (200, r#"{"metadata": {"name": "b"}}"#, None),
            (503, "", None),
        ] {
            let way = Endpoint::new("m", Arc::new(Fixed(code, body)), "test");
            let got = way.get_opt(&pods, Some("n"), "a").await;
            assert_eq!(got.ok().map(|found| found.is_some()), seen, "{code} {body}");
            let deleted = way.delete(&pods, Some("n"), "a", &Value::Null).await.is_ok();
            assert_eq!(deleted, code == 200 || seen.is_some(), "{code} {body}");
        }
    }

    #[tokio::test]
    async fn a_list_is_never_read_from_something_else() {
        let pods = Gvr::new("", "v1", "pods");
        for (body, names) in [
            (r#"{"kind":"PodList","apiVersion":"v1","items":[{"a":1}]}"#, Some(1)),
            (r#"{"kind":"PodList","apiVersion":"v1","items":null}"#, Some(0)),
            (r#"{"kind":"PodList","apiVersion":"v1","items":[7,"x",[]]}"#, Some(3)),
            ("[]", None),
            (r#"["PodList","v1",{},[]]"#, None),
            ("7", None),
            ("null", None),
            ("\"x\"", None),
        ] {
            let way = Endpoint::new("m", Arc::new(Fixed(200, body)), "test");
            assert_eq!(way.list(&pods, None, "").await.ok().map(|list| list.items.len()), names, "{body}");
            let mut seen = 0;
            let page = way.page("/api/v1/pods", |_, _, _| seen += 1).await;
            assert_eq!(page.ok().map(|_| seen), names, "{body}");
        }
    }

    #[tokio::test]
    async fn an_answer_without_end_is_given_up() {
        let body = |pieces: usize| -> BodyStream {
            Box::pin(futures::stream::iter((0..pieces).map(|_| Ok(Bytes::from_static(b"abc")))))
        };
        for (pieces, length) in [(0, Some(0)), (1, Some(3)), (2, Some(6)), (3, Some(9)), (4, None)] {
            assert_eq!(gather(body(pieces), 10).await.ok().map(|all| all.len()), length, "{pieces}");
        }
        let endless: BodyStream = Box::pin(futures::stream::repeat_with(|| Ok(Bytes::from_static(b"abc"))));
        assert!(gather(endless, 10).await.unwrap_err().message.contains("longer than 10 bytes"));
    }
}
