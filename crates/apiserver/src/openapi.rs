//! `/openapi/v3`: what kubectl reads before it explains, validates or applies.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use atoll_builtin::openapi::{CustomKind, custom_document, document_at, document_paths};
use atoll_meta::{Reason, Revision, Status};
use atoll_schema::Schema;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, HeaderValue, LOCATION};
use http::{HeaderMap, Response};
use serde_json::{Value, json};

use crate::body::Body;
use crate::discovery::{etag, tagged_as};
use crate::hub::Hub;
use crate::instance::Instance;
use crate::kind::Kind;
use crate::respond::response;

/// The definitions of an instance by name: they hold the prose that compiled schemas leave out.
type Definitions = BTreeMap<String, Value>;

/// Answers an OpenAPI path, or `None` if it is none.
pub async fn answer(
    hub: &Hub,
    instance: &Instance,
    path: &str,
    query: Option<&str>,
    headers: &HeaderMap,
) -> Option<Result<Response<Body>, Status>> {
    if path != "/openapi/v2" && !path.starts_with("/openapi/v3") {
        return None;
    }
    let definitions = match definitions(hub, instance).await {
        Ok(definitions) => definitions,
        Err(status) => return Some(Err(status)),
    };
    if !acceptable(headers) {
        return Some(Err(Status::new(
            406,
            Reason::NotAcceptable,
            "no known representation of the document is accepted",
        )));
    }
    if path == "/openapi/v2" {
        let answer = version_two(instance, &definitions, headers);
        return Some(Ok(crate::compress::shrink(headers, answer).await));
    }
    let name = path.strip_prefix("/openapi/v3")?.trim_matches('/');
    if name.is_empty() {
        return Some(Ok(response(200, "text/plain; charset=utf-8", index(instance, &definitions))));
    }
    let Some(bytes) = document(instance, &definitions, name) else {
        return Some(Ok(response(404, "", Body::empty())));
    };
    let tag = document_tag(instance, &definitions, name).unwrap_or_default();
    let own = tag.trim_matches('"');
    let query = crate::query::Query::parse(query);
    let asked = query.get("hash").filter(|hash| !hash.is_empty());
    if asked.is_some_and(|hash| hash != own) {
        let root = instance.id == atoll_meta::InstanceId::ROOT;
        let base = if root { String::new() } else { format!("/instances/{}", instance.name) };
        let mut answer = moved(&format!("{base}/openapi/v3/{name}?hash={own}"));
        if let Ok(tag) = HeaderValue::from_str(&tag) {
            answer.headers_mut().insert(http::header::ETAG, tag);
        }
        answer.headers_mut().insert(http::header::VARY, HeaderValue::from_static("Accept"));
        return Some(Ok(answer));
    }
    let mut answer = tagged_as(&tag, || bytes, "application/json", headers);
    let keep = if asked.is_some() { "public, immutable" } else { "no-cache, private" };
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static(keep));
    Some(Ok(answer))
}

/// Whether JSON will do; also for those that would rather have it in protobuf.
fn acceptable(headers: &HeaderMap) -> bool {
    let accept = headers.get(http::header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("*/*");
    accept.split(',').any(|clause| {
        let essence = clause.split(';').next().unwrap_or_default().trim();
        matches!(essence, "" | "*/*" | "application/*" | "application/json") || essence.contains("proto-openapi")
    })
}

/// Whether the first form a caller names that there is, is protobuf.
fn prefers_protobuf(headers: &HeaderMap) -> bool {
    let accept = headers.get(http::header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let known = |essence: &&str| {
        matches!(*essence, "*/*" | "application/*" | "application/json") || essence.contains("proto-openapi")
    };
    let first = accept.split(',').map(|clause| clause.split(';').next().unwrap_or_default().trim()).find(known);
    first.is_some_and(|essence| essence.contains("proto-openapi"))
}

/// Where the document is that the caller has an old address of.
fn moved(to: &str) -> Response<Body> {
    let mut answer = response(301, "application/json", format!("<a href=\"{to}\">Moved Permanently</a>.\n\n"));
    if let Ok(to) = HeaderValue::from_str(to) {
        answer.headers_mut().insert(LOCATION, to);
    }
    answer
}

async fn definitions(hub: &Hub, instance: &Instance) -> Result<Definitions, Status> {
    let mut all: Definitions = hub.native_definitions(instance);
    if instance.custom_kinds().iter().next().is_none() {
        return Ok(all);
    }
    let snapshot = hub.snapshot(instance).await?;
    let prefix = format!("{}.{}/", crate::crd::PLURAL, crate::crd::GROUP);
    for (_, entry) in snapshot.range(&prefix, None) {
        all.insert(entry.object.head.name.to_string(), entry.object.tree(Revision(0)));
    }
    Ok(all)
}

/// The old document. It is large and rarely asked for, so only the built-in part is kept.
fn version_two(instance: &Instance, definitions: &Definitions, headers: &HeaderMap) -> Response<Body> {
    let mut names: Vec<String> =
        instance.custom_kinds().iter().map(|kind| format!("apis/{}/{}", kind.group, kind.version)).collect();
    names.sort();
    names.dedup();
    let custom: Vec<Bytes> = names.iter().filter_map(|name| document(instance, definitions, name)).collect();
    let tag = crate::openapi_v2::tag(&custom);
    let mut answer = if prefers_protobuf(headers) {
        // Caches know an answer by its tag alone: each form has its own.
        let tag = etag(format!("protobuf {tag}").as_bytes());
        tagged_as(&tag, || crate::openapi_v2::protobuf(&custom).into(), crate::openapi_proto::MEDIA, headers)
    } else {
        tagged_as(&tag, || crate::openapi_v2::document(&custom).into(), "application/json", headers)
    };
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    answer.headers_mut().append(http::header::VARY, HeaderValue::from_static("Accept-Encoding"));
    answer
}

/// Which documents there are, each with the hash of its content.
fn index(instance: &Instance, definitions: &Definitions) -> Bytes {
    let mut names: BTreeSet<String> = document_paths().into_iter().collect();
    for kind in instance.custom_kinds().iter() {
        names.insert(format!("apis/{}/{}", kind.group, kind.version));
    }
    let paths: BTreeMap<String, _> = names
        .into_iter()
        .filter_map(|name| {
            let tag = document_tag(instance, definitions, &name)?;
            let url = format!("/openapi/v3/{name}?hash={}", tag.trim_matches('"'));
            Some((name, json!({"serverRelativeURL": url})))
        })
        .collect();
    serde_json::to_vec(&json!({"paths": paths})).unwrap_or_default().into()
}

/// The tag of a document. Those of built-in groups never change and are computed once.
fn document_tag(instance: &Instance, definitions: &Definitions, name: &str) -> Option<String> {
    static BUILTIN: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
        let tag = |name: String| Some((name.clone(), etag(&document_at(&name)?)));
        document_paths().into_iter().filter_map(tag).collect()
    });
    match BUILTIN.get(name) {
        Some(tag) => Some(tag.clone()),
        None => document(instance, definitions, name).map(|bytes| etag(&bytes)),
    }
}

/// One document. Those of built-in groups are shared by all instances.
fn document(instance: &Instance, definitions: &Definitions, name: &str) -> Option<Bytes> {
    if let Some(bytes) = document_at(name) {
        return Some(bytes);
    }
    let (group, version) = name.strip_prefix("apis/")?.split_once('/')?;
    let custom = instance.custom_kinds();
    let described: Vec<(Arc<Kind>, Schema)> = custom
        .iter()
        .filter(|kind| *kind.group == *group && *kind.version == *version)
        .filter_map(|kind| Some((kind.clone(), schema(kind, definitions)?)))
        .collect();
    let kinds: Vec<CustomKind<'_>> = described
        .iter()
        .map(|(kind, schema)| CustomKind {
            group: &kind.group,
            version: &kind.version,
            kind: &kind.kind,
            list_kind: &kind.list_kind,
            plural: &kind.plural,
            namespaced: kind.namespaced,
            schema,
            status: kind.has_status(),
            scale: kind.sub("scale").is_some(),
        })
        .collect();
    (!kinds.is_empty()).then(|| custom_document(&kinds))
}

/// The schema of a kind with its prose.
fn schema(kind: &Kind, definitions: &Definitions) -> Option<Schema> {
    let custom = kind.custom()?;
    let versions = definitions.get(&custom.definition)?["spec"]["versions"].as_array()?;
    let version = versions.iter().find(|version| version["name"] == *kind.version)?;
    Schema::from_json(&version["schema"]["openAPIV3Schema"]).ok()
}
