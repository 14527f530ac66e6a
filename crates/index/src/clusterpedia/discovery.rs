//! What there is, in the shapes of Kubernetes' discovery.

use std::collections::BTreeMap;

use atoll_apiserver::{Body, json};
use atoll_meta::{Reason, Status, api_version};
use http::Response;
use serde_json::{Value, json};

use crate::index::Index;
use crate::query::Query;
use crate::shelf::Shelf;
use std::sync::Arc;

/// Answers `/`, `/api`, `/apis`, `/api/v1`, `/apis/{group}` and `/apis/{group}/{version}`.
pub fn answer(index: &Index, sources: &[String], path: &str) -> Result<Response<Body>, Status> {
    let wanted = Query { sources: sources.to_vec(), ..Query::default() };
    let shelves: Vec<Arc<Shelf>> =
        index.shelves_of(None).into_iter().filter(|shelf| wanted.wants(shelf, false)).collect();
    let mut groups: BTreeMap<&str, BTreeMap<&str, BTreeMap<&str, &Shelf>>> = BTreeMap::new();
    for shelf in &shelves {
        groups
            .entry(&shelf.key.group)
            .or_default()
            .entry(&shelf.version)
            .or_default()
            .insert(&shelf.key.resource, shelf);
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let list = |group: &str, version: &str| {
        groups.get(group).and_then(|versions| versions.get(version)).map(|found| resources(group, version, found))
    };
    let tree = match parts.as_slice() {
        [] => json!({"paths": ["/api", "/apis"]}),
        ["api"] => json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}),
        ["apis"] => {
            let named = groups.iter().filter(|(name, _)| !name.is_empty());
            json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": named.map(|(name, versions)| group(name, versions)).collect::<Vec<_>>()})
        }
        ["api", version] => list("", version).unwrap_or_else(|| resources("", version, &BTreeMap::new())),
        ["apis", name] => match groups.get(name) {
            Some(versions) => group(name, versions),
            None => return Err(missing()),
        },
        ["apis", name, version] => list(name, version).ok_or_else(missing)?,
        ["version"] => json!({"major": "1", "minor": "35", "gitVersion": "v1.35.0+atoll-index"}),
        _ => return Err(missing()),
    };
    Ok(json(200, &tree))
}

fn missing() -> Status {
    Status::new(404, Reason::NotFound, "the server could not find the requested resource")
}

fn group<T>(name: &str, versions: &BTreeMap<&str, T>) -> Value {
    let spelled = |version: &&str| json!({"groupVersion": api_version(name, version), "version": version});
    json!({
        "kind": "APIGroup", "apiVersion": "v1", "name": name,
        "versions": versions.keys().map(&spelled).collect::<Vec<_>>(),
        "preferredVersion": versions.keys().next_back().map(&spelled),
    })
}

fn resources(group: &str, version: &str, found: &BTreeMap<&str, &Shelf>) -> Value {
    let resources: Vec<Value> = found
        .iter()
        .map(|(name, shelf)| {
            json!({"name": name, "singularName": shelf.kind.to_lowercase(), "namespaced": shelf.namespaced, "kind": shelf.kind,
                   "verbs": ["get", "list", "watch"], "shortNames": short(name)})
        })
        .collect();
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version(group, version), "resources": resources})
}

/// Short names people type most.
fn short(resource: &str) -> &'static [&'static str] {
    match resource {
        "pods" => &["po"],
        "services" => &["svc"],
        "deployments" => &["deploy"],
        "namespaces" => &["ns"],
        "nodes" => &["no"],
        "configmaps" => &["cm"],
        "statefulsets" => &["sts"],
        "daemonsets" => &["ds"],
        "replicasets" => &["rs"],
        "events" => &["ev"],
        "persistentvolumeclaims" => &["pvc"],
        "persistentvolumes" => &["pv"],
        "ingresses" => &["ing"],
        "cronjobs" => &["cj"],
        "serviceaccounts" => &["sa"],
        _ => &[],
    }
}
