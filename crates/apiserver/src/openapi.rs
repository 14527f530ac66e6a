//! `/openapi/v3`: what kubectl reads before it explains, validates or applies.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use atoll_builtin::openapi::{CustomKind, custom_document, document_at, document_paths};
use atoll_meta::Status;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, HeaderValue};
use http::{HeaderMap, Request, Response};
use serde_json::json;

use crate::body::Body;
use crate::discovery::{etag, tagged};
use crate::extend::Incoming;
use crate::instance::Instance;
use crate::respond::response;

/// Answers an OpenAPI path, or `None` if it is none.
pub fn answer(instance: &Arc<Instance>, path: &str, request: &Request<Incoming>) -> Option<Result<Response<Body>, Status>> {
    if path == "/openapi/v2" {
        return Some(Ok(version_two(instance, request.headers())));
    }
    let rest = path.strip_prefix("/openapi/v3")?;
    let name = rest.trim_matches('/');
    if name.is_empty() {
        return Some(Ok(tagged(index(instance), "application/json", request.headers())));
    }
    let Some(bytes) = document(instance, name) else {
        return Some(Ok(response(404, "text/plain; charset=utf-8", "404 page not found\n")));
    };
    let tag = etag(&bytes);
    let mut answer = tagged(bytes, "application/json", request.headers());
    let query = crate::query::Query::parse(request.uri().query());
    if query.get("hash").is_some_and(|hash| hash == tag.trim_matches('"')) {
        answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable, max-age=31536000"));
    }
    Some(Ok(answer))
}

/// The old document. It is large and rarely asked for, so only the built-in part is kept.
fn version_two(instance: &Instance, headers: &HeaderMap) -> Response<Body> {
    let mut names: Vec<String> =
        instance.custom_kinds().iter().map(|kind| format!("apis/{}/{}", kind.group, kind.version)).collect();
    names.sort();
    names.dedup();
    let custom: Vec<Bytes> = names.iter().filter_map(|name| document(instance, name)).collect();
    tagged(crate::openapi_v2::document(&custom), "application/json", headers)
}

/// Which documents there are, each with the hash of its content.
fn index(instance: &Instance) -> Bytes {
    let mut names: BTreeSet<String> = document_paths().into_iter().collect();
    for kind in instance.custom_kinds().iter() {
        names.insert(format!("apis/{}/{}", kind.group, kind.version));
    }
    let paths: BTreeMap<String, _> = names
        .into_iter()
        .filter_map(|name| {
            let tag = etag(&document(instance, &name)?);
            let url = format!("/openapi/v3/{name}?hash={}", tag.trim_matches('"'));
            Some((name, json!({"serverRelativeURL": url})))
        })
        .collect();
    serde_json::to_vec(&json!({"paths": paths})).unwrap_or_default().into()
}

/// One document. Those of built-in groups are shared by all instances.
fn document(instance: &Instance, name: &str) -> Option<Bytes> {
    if let Some(bytes) = document_at(name) {
        return Some(bytes);
    }
    let (group, version) = name.strip_prefix("apis/")?.split_once('/')?;
    let custom = instance.custom_kinds();
    let kinds: Vec<CustomKind<'_>> = custom
        .iter()
        .filter(|kind| *kind.group == *group && *kind.version == *version)
        .filter_map(|kind| {
            Some(CustomKind {
                group: &kind.group,
                version: &kind.version,
                kind: &kind.kind,
                list_kind: &kind.list_kind,
                plural: &kind.plural,
                namespaced: kind.namespaced,
                schema: kind.custom()?.schema()?,
                status: kind.has_status(),
                scale: kind.sub("scale").is_some(),
            })
        })
        .collect();
    (!kinds.is_empty()).then(|| custom_document(&kinds))
}
