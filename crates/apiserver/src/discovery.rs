//! What the server can do: `/api`, `/apis` and below, in the old and the aggregated form.

use std::fmt::Write as _;

use atoll_meta::{Status, api_version};
use bytes::Bytes;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderValue, IF_NONE_MATCH, VARY};
use http::{HeaderMap, Method, Response};
use serde_json::{Value, json};
use sha2::{Digest, Sha512};

use crate::body::Body;
use crate::extend::MountedResource;
use crate::hub::Hub;
use crate::instance::Instance;
use crate::kind::Kind;
use crate::respond::{json, response};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// A group with its versions in order of preference.
struct Group {
    name: String,
    versions: Vec<Version>,
}

struct Version {
    name: String,
    resources: Vec<Resource>,
}

/// A resource as discovery shows it.
struct Resource {
    plural: String,
    singular: String,
    kind: String,
    namespaced: bool,
    verbs: Vec<String>,
    short_names: Vec<String>,
    categories: Vec<String>,
    subresources: Vec<(String, String, String, String, Vec<String>)>,
}

impl Resource {
    fn of(kind: &Kind) -> Self {
        let owned = |list: &[Box<str>]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        Self {
            plural: kind.plural.to_string(),
            singular: kind.singular.to_string(),
            kind: kind.kind.to_string(),
            namespaced: kind.namespaced,
            verbs: owned(&kind.verbs),
            short_names: owned(&kind.short_names),
            categories: owned(&kind.categories),
            subresources: kind
                .subresources
                .iter()
                .map(|sub| {
                    (
                        sub.name.to_string(),
                        sub.group.to_string(),
                        sub.version.to_string(),
                        sub.kind.to_string(),
                        owned(&sub.verbs),
                    )
                })
                .collect(),
        }
    }

    fn mounted(resource: &MountedResource) -> Self {
        Self {
            plural: resource.plural.clone(),
            singular: resource.singular.clone(),
            kind: resource.kind.clone(),
            namespaced: resource.namespaced,
            verbs: resource.verbs.clone(),
            short_names: resource.short_names.clone(),
            categories: Vec::new(),
            subresources: Vec::new(),
        }
    }

    fn legacy(&self, group: &str, version: &str) -> Vec<Value> {
        let mut own = json!({
            "name": self.plural, "singularName": self.singular, "namespaced": self.namespaced,
            "kind": self.kind, "verbs": self.verbs,
        });
        if !self.short_names.is_empty() {
            own["shortNames"] = json!(self.short_names);
        }
        if !self.categories.is_empty() {
            own["categories"] = json!(self.categories);
        }
        if self.verbs.iter().any(|verb| verb == "watch") {
            own["storageVersionHash"] = storage_hash(group, version, &self.kind).into();
        }
        let mut all = vec![own];
        for (name, sub_group, sub_version, kind, verbs) in &self.subresources {
            let mut sub = json!({
                "name": format!("{}/{name}", self.plural), "singularName": "", "namespaced": self.namespaced,
                "kind": kind, "verbs": verbs,
            });
            if (sub_group.as_str(), sub_version.as_str()) != (group, version) {
                sub["group"] = sub_group.clone().into();
                sub["version"] = sub_version.clone().into();
            }
            all.push(sub);
        }
        all
    }

    fn aggregated(&self, group: &str, version: &str) -> Value {
        let mut own = json!({
            "resource": self.plural,
            "responseKind": response_kind(group, version, &self.kind),
            "scope": if self.namespaced { "Namespaced" } else { "Cluster" },
            "singularResource": self.singular,
            "verbs": self.verbs,
        });
        if !self.short_names.is_empty() {
            own["shortNames"] = json!(self.short_names);
        }
        if !self.categories.is_empty() {
            own["categories"] = json!(self.categories);
        }
        if !self.subresources.is_empty() {
            own["subresources"] = self
                .subresources
                .iter()
                .map(|(name, group, version, kind, verbs)| {
                    json!({"subresource": name, "responseKind": response_kind(group, version, kind), "verbs": verbs})
                })
                .collect();
        }
        own
    }
}

/// The core version goes without saying here, as in the original.
fn response_kind(group: &str, version: &str, kind: &str) -> Value {
    json!({"group": group, "version": if group.is_empty() { "" } else { version }, "kind": kind})
}

/// Eight bytes that change when the storage version does; migration tools compare them.
fn storage_hash(group: &str, version: &str, kind: &str) -> String {
    use base64::Engine as _;
    let digest = Sha512::digest(format!("{group}/{version}/{kind}"));
    base64::engine::general_purpose::STANDARD.encode(&digest[..8])
}

fn groups(hub: &Hub, instance: &Instance) -> Vec<Group> {
    let mut groups: Vec<Group> = atoll_builtin::groups()
        .iter()
        .map(|info| Group {
            name: info.name.to_string(),
            versions: info
                .versions
                .iter()
                .map(|name| Version { name: name.to_string(), resources: Vec::new() })
                .collect(),
        })
        .collect();
    for kind in instance.kinds() {
        add(&mut groups, &kind.group, &kind.version, Resource::of(&kind));
    }
    for mount in hub.mounts.read().iter().filter(|mount| mount.serves(instance)) {
        for resource in mount.resources() {
            add(&mut groups, mount.group(), mount.version(), Resource::mounted(&resource));
        }
    }
    groups.retain(|group| group.versions.iter().any(|version| !version.resources.is_empty()));
    for group in &mut groups {
        group.versions.retain(|version| !version.resources.is_empty());
    }
    groups
}

fn add(groups: &mut Vec<Group>, group: &str, version: &str, resource: Resource) {
    let at = groups.iter().position(|known| known.name == group).unwrap_or_else(|| {
        groups.push(Group { name: group.into(), versions: Vec::new() });
        groups.len() - 1
    });
    let versions = &mut groups[at].versions;
    let at = versions.iter().position(|known| known.name == version).unwrap_or_else(|| {
        // Versions of custom groups come sorted by priority from the definitions.
        let place =
            versions.iter().position(|known| priority(&known.name) < priority(version)).unwrap_or(versions.len());
        versions.insert(place, Version { name: version.into(), resources: Vec::new() });
        place
    });
    versions[at].resources.push(resource);
}

/// Orders versions: GA before beta before alpha, higher before lower.
pub fn priority(version: &str) -> (u8, u64, u64) {
    let Some(rest) = version.strip_prefix('v') else { return (0, 0, 0) };
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let Ok(major) = rest[..digits].parse::<u64>() else { return (0, 0, 0) };
    let tail = &rest[digits..];
    if tail.is_empty() {
        return (3, major, 0);
    }
    if let Some(minor) = tail.strip_prefix("beta") {
        return (2, major, minor.parse().unwrap_or(0));
    }
    if let Some(minor) = tail.strip_prefix("alpha") {
        return (1, major, minor.parse().unwrap_or(0));
    }
    (0, 0, 0)
}

/// Answers a discovery path, or `None` if it is none.
pub fn answer(
    hub: &Hub,
    instance: &Instance,
    path: &str,
    method: &Method,
    headers: &HeaderMap,
) -> Option<Result<Response<Body>, Status>> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let found = document(hub, instance, &parts, headers)?;
    if !matches!(*method, Method::GET | Method::HEAD) {
        return Some(Err(crate::service::unknown_method()));
    }
    let aggregated = matches!(parts.as_slice(), ["api" | "apis"]) && wants_aggregated(headers);
    if !aggregated && !crate::negotiate::accepts_plain(headers) {
        return Some(Err(crate::negotiate::no_representation(false)));
    }
    Some(Ok(found))
}

fn document(hub: &Hub, instance: &Instance, parts: &[&str], headers: &HeaderMap) -> Option<Response<Body>> {
    match parts {
        [] => Some(json(200, &json!({"paths": paths(hub, instance)}))),
        ["api"] if wants_aggregated(headers) => Some(aggregated(hub, instance, headers, true)),
        ["apis"] if wants_aggregated(headers) => Some(aggregated(hub, instance, headers, false)),
        ["api"] => Some(json(
            200,
            &json!({"kind": "APIVersions", "versions": ["v1"],
                    "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": ""}]}),
        )),
        ["apis"] => {
            let list: Vec<Value> =
                groups(hub, instance).iter().filter(|group| !group.name.is_empty()).map(legacy_group).collect();
            Some(json(200, &json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": list})))
        }
        ["apis", group] => {
            let groups = groups(hub, instance);
            let found = groups.iter().find(|known| known.name == **group)?;
            let mut value = legacy_group(found);
            value["kind"] = "APIGroup".into();
            value["apiVersion"] = "v1".into();
            Some(json(200, &value))
        }
        ["api", version] => resource_list(hub, instance, "", version),
        ["apis", group, version] => resource_list(hub, instance, group, version),
        _ => None,
    }
}

/// What can be asked for, as `/` tells.
fn paths(hub: &Hub, instance: &Instance) -> Vec<String> {
    let mut all: Vec<String> = [
        "/api",
        "/api/v1",
        "/apis",
        "/apis/",
        "/healthz",
        "/livez",
        "/metrics",
        "/openapi/v2",
        "/openapi/v3",
        "/openapi/v3/",
        "/openid/v1/jwks",
        "/readyz",
        "/version",
        "/.well-known/openid-configuration",
    ]
    .map(str::to_owned)
    .into();
    for group in groups(hub, instance).iter().filter(|group| !group.name.is_empty()) {
        all.push(format!("/apis/{}", group.name));
        all.extend(group.versions.iter().map(|version| format!("/apis/{}/{}", group.name, version.name)));
    }
    all.sort();
    all
}

fn resource_list(hub: &Hub, instance: &Instance, group: &str, version: &str) -> Option<Response<Body>> {
    let groups = groups(hub, instance);
    let found = groups.iter().find(|known| known.name == group)?.versions.iter().find(|known| known.name == version)?;
    let mut sorted: Vec<&Resource> = found.resources.iter().collect();
    sorted.sort_by(|a, b| a.plural.cmp(&b.plural));
    let resources: Vec<Value> = sorted.iter().flat_map(|resource| resource.legacy(group, version)).collect();
    let mut list =
        json!({"kind": "APIResourceList", "groupVersion": api_version(group, version), "resources": resources});
    if !group.is_empty() {
        list["apiVersion"] = "v1".into();
    }
    Some(json(200, &list))
}

fn legacy_group(group: &Group) -> Value {
    let versions: Vec<Value> = group
        .versions
        .iter()
        .map(|version| json!({"groupVersion": api_version(&group.name, &version.name), "version": version.name}))
        .collect();
    json!({"name": group.name, "preferredVersion": versions.first(), "versions": versions})
}

fn wants_aggregated(headers: &HeaderMap) -> bool {
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    for clause in accept.split(',') {
        let parts: Vec<&str> = clause.split(';').map(str::trim).collect();
        let has = |part: &str| parts.contains(&part);
        if has("g=apidiscovery.k8s.io") && has("v=v2") && has("as=APIGroupDiscoveryList") {
            return matches!(parts.first(), Some(&("application/json" | "*/*" | "application/*")));
        }
        if parts.len() == 1 && matches!(parts[0], "application/json" | "*/*") {
            return false;
        }
    }
    false
}

fn aggregated(hub: &Hub, instance: &Instance, headers: &HeaderMap, core: bool) -> Response<Body> {
    let items: Vec<Value> = groups(hub, instance)
        .iter()
        .filter(|group| group.name.is_empty() == core)
        .map(|group| {
            let versions: Vec<Value> = group
                .versions
                .iter()
                .map(|version| {
                    let mut resources: Vec<&Resource> = version.resources.iter().collect();
                    resources.sort_by(|a, b| a.plural.cmp(&b.plural));
                    let resources: Vec<Value> =
                        resources.iter().map(|resource| resource.aggregated(&group.name, &version.name)).collect();
                    json!({"version": version.name, "freshness": "Current", "resources": resources})
                })
                .collect();
            let metadata = if core { json!({}) } else { json!({"name": group.name}) };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    let list = json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items});
    let bytes = serde_json::to_vec(&list).unwrap_or_default();
    tagged(bytes, AGGREGATED, headers)
}

/// An answer that a client may keep and ask about by its tag.
pub fn tagged(bytes: impl Into<Bytes>, content_type: &str, headers: &HeaderMap) -> Response<Body> {
    let bytes = bytes.into();
    let tag = etag(&bytes);
    tagged_as(&tag, move || bytes, content_type, headers)
}

/// Like [`tagged`] for a document that is only made when its tag is new to the client.
pub fn tagged_as(tag: &str, make: impl FnOnce() -> Bytes, content_type: &str, headers: &HeaderMap) -> Response<Body> {
    let known = headers.get(IF_NONE_MATCH).is_some_and(|value| value.as_bytes() == tag.as_bytes());
    let mut answer =
        if known { response(304, content_type, Body::empty()) } else { response(200, content_type, make()) };
    let own = answer.headers_mut();
    if let Ok(value) = HeaderValue::from_str(tag) {
        own.insert(ETAG, value);
    }
    own.insert(VARY, HeaderValue::from_static("Accept"));
    own.insert(CACHE_CONTROL, HeaderValue::from_static("public"));
    if known {
        own.remove(CONTENT_TYPE);
    }
    answer
}

/// The tag of a document.
pub fn etag(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(130);
    text.push('"');
    for byte in Sha512::digest(bytes) {
        let _ = write!(text, "{byte:02X}"); // writing to a string cannot fail
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_sort_by_maturity() {
        let mut versions = ["v1alpha1", "v2", "v1", "foo", "v1beta2", "v11", "v1beta1"];
        versions.sort_by_key(|version| std::cmp::Reverse(priority(version)));
        assert_eq!(versions, ["v11", "v2", "v1", "v1beta2", "v1beta1", "v1alpha1", "foo"]);
    }
}
