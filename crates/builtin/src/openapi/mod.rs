//! OpenAPI v3 documents, one per group-version.
//!
//! Schemas come from the table, operations from the kind's verbs, descriptions from
//! k8s-openapi. Documents are built when first asked for and kept, since all instances share
//! them.

mod custom;
mod operation;
mod paths;
mod prose;
mod schema;

use std::collections::{BTreeSet, HashMap};
use std::sync::{LazyLock, Mutex};

use atoll_schema::{Schema, Type};
use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::kinds::{KindInfo, SubInfo, groups, kinds, types};
use crate::proto::type_name;
use operation::{Content, group_name};
use prose::Prose;

pub use custom::{CustomKind, custom_document};
pub use paths::{PathKind, PathSub, paths_for};
pub use schema::schema_json;

/// Media types of the discovery documents.
const PLAIN: [&str; 3] = ["application/json", "application/vnd.kubernetes.protobuf", "application/yaml"];
/// Prefix of the types of discovery.
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

/// The document of one built-in group-version; empty when there is none.
pub fn document(group: &str, version: &str) -> Bytes {
    let path = PathKind::root(group, version);
    document_at(path.trim_start_matches('/')).unwrap_or_default()
}

/// The paths under `/openapi/v3/` that have a document here, such as `apis/apps/v1`.
pub fn document_paths() -> Vec<String> {
    let mut paths: Vec<String> = ["api", "apis", "version"].map(str::to_owned).into();
    for group in groups() {
        if !group.name.is_empty() {
            paths.push(format!("apis/{}", group.name));
        }
        paths.extend(
            group.versions.iter().map(|version| PathKind::root(group.name, version).trim_start_matches('/').to_owned()),
        );
    }
    paths.sort();
    paths
}

/// The document at a path of [`document_paths`].
pub fn document_at(path: &str) -> Option<Bytes> {
    static DOCUMENTS: LazyLock<Mutex<HashMap<String, Bytes>>> = LazyLock::new(Mutex::default);
    let lock = || DOCUMENTS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(found) = lock().get(path) {
        return Some(found.clone());
    }
    let bytes = build(path)?;
    lock().insert(path.to_owned(), bytes.clone());
    Some(bytes)
}

fn build(path: &str) -> Option<Bytes> {
    let words: Vec<&str> = path.split('/').collect();
    let (group, version) = match words.as_slice() {
        ["api", version] => ("", *version),
        ["apis", group, version] => (*group, *version),
        other => return build_discovery(other),
    };
    let mut paths = Map::new();
    for kind in kinds().iter().filter(|kind| kind.group == group && kind.version == version) {
        paths.extend(paths_for(&path_kind(kind)));
    }
    if paths.is_empty() {
        return None;
    }
    paths::put_resource_list(&mut paths, group, version, Content::BuiltIn);
    Some(assemble(paths, Map::new(), &Prose::of(group, version)))
}

/// Documents of the paths that only describe what is served.
fn build_discovery(words: &[&str]) -> Option<Bytes> {
    let (path, item) = match words {
        ["api"] => {
            ("/api/".to_owned(), paths::plain_get("getCoreAPIVersions", "core", &PLAIN, &format!("{META}APIVersions")))
        }
        ["apis"] => {
            ("/apis/".to_owned(), paths::plain_get("getAPIVersions", "apis", &PLAIN, &format!("{META}APIGroupList")))
        }
        ["apis", group] => {
            let group = groups().iter().find(|known| known.name == *group && !group.is_empty())?.name;
            let name = group_name(group);
            let id = format!("get{}APIGroup", paths::capital(&name));
            (format!("/apis/{group}/"), paths::plain_get(&id, &name, &PLAIN, &format!("{META}APIGroup")))
        }
        ["version"] => {
            let info = "io.k8s.apimachinery.pkg.version.Info";
            ("/version/".to_owned(), paths::plain_get("getCodeVersion", "version", &["application/json"], info))
        }
        _ => return None,
    };
    Some(assemble(Map::from_iter([(path, item)]), Map::new(), &Prose::of("", "")))
}

/// Puts a document together: the built-in components that paths and own components reach are added.
fn assemble(paths: Map<String, Value>, own: Map<String, Value>, prose: &Prose) -> Bytes {
    let mut components = own;
    let mut todo: BTreeSet<String> = BTreeSet::new();
    paths.values().chain(components.values()).for_each(|value| references(value, &mut todo));
    while let Some(name) = todo.pop_first() {
        if components.contains_key(&name) {
            continue;
        }
        if let Some(component) = schema::component(&name, prose) {
            references(&component, &mut todo);
            components.insert(name, component);
        }
    }
    let document = json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "unversioned"},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"BearerToken": {
                "description": "Bearer Token authentication",
                "in": "header",
                "name": "authorization",
                "type": "apiKey",
            }},
        },
    });
    Bytes::from(document.to_string())
}

/// Names of all components a value points to.
fn references(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (key, inner) in object {
                match inner.as_str().and_then(|text| text.strip_prefix(schema::COMPONENTS)) {
                    Some(name) if key == "$ref" => drop(into.insert(name.to_owned())),
                    _ => references(inner, into),
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|inner| references(inner, into)),
        _ => {}
    }
}

fn path_kind(kind: &KindInfo) -> PathKind {
    let component = |group: &str, version: &str, kind: &str| type_name(group, version, kind).unwrap_or_default();
    PathKind {
        group: kind.group.to_owned(),
        version: kind.version.to_owned(),
        kind: kind.kind.to_owned(),
        plural: kind.plural.to_owned(),
        namespaced: kind.namespaced,
        verbs: owned(&kind.verbs),
        component: kind.type_name.clone(),
        list_component: component(kind.group, kind.version, kind.list_kind),
        delete_returns_object: delete_returns_object(kind.group, kind.plural),
        custom: false,
        subresources: kind
            .subresources
            .iter()
            .map(|sub| path_sub(sub, component(sub.group, sub.version, sub.kind)))
            .collect(),
    }
}

/// Kinds whose delete is declared to answer with the object.
fn delete_returns_object(group: &str, plural: &str) -> bool {
    match group {
        "" => [
            "persistentvolumeclaims",
            "persistentvolumes",
            "pods",
            "podtemplates",
            "resourcequotas",
            "serviceaccounts",
            "services",
        ]
        .contains(&plural),
        "resource.k8s.io" => true,
        "storage.k8s.io" => plural != "csistoragecapacities",
        _ => false,
    }
}

fn path_sub(sub: &SubInfo, component: String) -> PathSub {
    let connect = sub.kind.ends_with("Options");
    let log = sub.name == "log";
    let options = match (connect, log) {
        (true, _) => types().get(&component).map(options_of),
        (false, true) => types().get("io.k8s.api.core.v1.PodLogOptions").map(options_of),
        (false, false) => None,
    };
    PathSub {
        name: sub.name.to_owned(),
        verbs: owned(&sub.verbs),
        group: sub.group.to_owned(),
        version: sub.version.to_owned(),
        kind: sub.kind.to_owned(),
        component: if log { String::new() } else { component },
        options: options.unwrap_or_default(),
        connect,
    }
}

/// The fields of an options type as query parameters; what is no scalar has no place in a query.
fn options_of(schema: &Schema) -> Vec<(String, &'static str)> {
    let scalar = |schema: &Schema| match schema.ty {
        Type::String => Some("string"),
        Type::Integer => Some("integer"),
        Type::Boolean => Some("boolean"),
        _ => None,
    };
    let typed = schema.properties.iter().filter_map(|(name, property)| {
        let ty = scalar(property.items.as_deref().unwrap_or(property))?;
        Some((name.to_string(), ty))
    });
    typed.filter(|(name, _)| name != "apiVersion" && name != "kind").collect()
}

fn owned(list: &[&str]) -> Vec<String> {
    list.iter().map(ToString::to_string).collect()
}
