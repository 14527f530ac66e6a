//! Collections: objects of several resources in one list.

use std::sync::Arc;

use atoll_apiserver::{Body, Query as Params, json};
use atoll_meta::{Status, api_version};
use http::Response;
use serde_json::{Value, json};

use super::answer::{Form, with_freshness};
use super::{GROUP, Names, VERSION, View, options};
use crate::index::Index;
use crate::query::ResourceName;
use crate::rights::Rights;
use crate::search::{Item, Page};

const WORKLOADS: [(&str, &str); 3] = [("apps", "deployments"), ("apps", "daemonsets"), ("apps", "statefulsets")];
const KUBE: [&str; 8] = [
    "",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apps",
    "autoscaling",
    "batch",
    "networking.k8s.io",
    "rbac.authorization.k8s.io",
];

/// The resources of a collection.
fn members(name: &str, params: &Params) -> Result<Vec<ResourceName>, Status> {
    let all_of = |group: &str| ResourceName::new(group, "*");
    match name {
        "workloads" => Ok(WORKLOADS.iter().map(|(group, resource)| ResourceName::new(group, resource)).collect()),
        "kuberesources" => Ok(KUBE.iter().map(|group| all_of(group)).collect()),
        "any" => {
            let words = |key: &'static str| {
                params.all(key).flat_map(|text| text.split(',')).map(str::trim).filter(|word| !word.is_empty())
            };
            let groups = words("groups").map(|group| {
                if group == "*" {
                    ResourceName { resource: "*".into(), ..ResourceName::default() }
                } else {
                    all_of(group)
                }
            });
            let named = words("resources").map(|word| match word.split('/').collect::<Vec<_>>().as_slice() {
                [group, version, resource] => {
                    ResourceName { version: Some((*version).into()), ..ResourceName::new(group, resource) }
                }
                [group, resource] => ResourceName::new(group, resource),
                _ => ResourceName::new("", word),
            });
            let found: Vec<ResourceName> = groups.chain(named).collect();
            if found.is_empty() {
                Err(Status::bad_request("collection any: groups or resources must be given"))
            } else {
                Ok(found)
            }
        }
        _ => Err(Status::not_found(GROUP, "collectionresources", name)),
    }
}

/// The list of collections.
pub fn all() -> Response<Body> {
    let entry = |name: &str| json!({"kind": "CollectionResource", "apiVersion": api_version(GROUP, VERSION), "metadata": {"name": name}, "resourceTypes": []});
    let items = ["any", "workloads", "kuberesources"].map(entry);
    json(
        200,
        &json!({"kind": "CollectionResourceList", "apiVersion": api_version(GROUP, VERSION), "metadata": {}, "items": items}),
    )
}

/// One collection with its objects.
pub async fn one(
    index: &Index,
    names: &Names<'_>,
    rights: Arc<dyn Rights>,
    name: &str,
    params: &Params,
    view: View,
) -> Result<Response<Body>, Status> {
    let mut query = options::query(params, names)?;
    query.resources = members(name, params)?;
    let page = index.query(&query, &*rights).await?;
    let only_metadata = params.flag("onlyMetadata");
    let tree = match view.form {
        Form::Table => table(&page, names, view.hub.now()),
        form => {
            let mut types: Vec<Value> = Vec::new();
            for item in &page.items {
                let ty = json!({"group": item.shelf.key.group, "version": item.shelf.version, "kind": item.shelf.kind, "resource": item.shelf.key.resource});
                if !types.contains(&ty) {
                    types.push(ty);
                }
            }
            let items: Vec<Value> =
                page.items.iter().map(|item| object(item, names, only_metadata || form == Form::Metadata)).collect();
            json!({"kind": "CollectionResource", "apiVersion": api_version(GROUP, VERSION),
                   "metadata": metadata(name, &page), "resourceTypes": types, "items": items})
        }
    };
    Ok(with_freshness(json(200, &tree), &page, names))
}

fn metadata(name: &str, page: &Page) -> Value {
    let mut metadata = json!({"name": name});
    if let Some(token) = &page.token {
        metadata["continue"] = token.as_str().into();
    }
    if let Some(remaining) = page.remaining {
        metadata["remainingItemCount"] = remaining.into();
    }
    metadata
}

fn object(item: &Item, names: &Names<'_>, only_metadata: bool) -> Value {
    let mut tree = item.tree();
    tree["metadata"]["annotations"]["shadow.clusterpedia.io/cluster-name"] =
        names.cluster(&item.shelf.key.source).into();
    if only_metadata {
        json!({"kind": tree["kind"], "apiVersion": tree["apiVersion"], "metadata": tree["metadata"]})
    } else {
        tree
    }
}

fn table(page: &Page, names: &Names<'_>, now: jiff::Timestamp) -> Value {
    let column = |name: &str| json!({"name": name, "type": "string", "format": if name == "Name" { "name" } else { "" }, "description": "", "priority": 0});
    let rows: Vec<Value> = page
        .items
        .iter()
        .map(|item| {
            let age = now.duration_since(jiff::Timestamp::from_millisecond(item.created).unwrap_or(now));
            let key = &item.shelf.key;
            json!({"cells": [names.cluster(&key.source), key.group, item.shelf.version, item.shelf.kind, item.namespace, item.name, atoll_meta::time::age(age)],
                   "object": {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": item.tree()["metadata"]}})
        })
        .collect();
    let columns = ["Cluster", "Group", "Version", "Kind", "Namespace", "Name", "Age"].map(column);
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata("", page), "columnDefinitions": columns, "rows": rows})
}
