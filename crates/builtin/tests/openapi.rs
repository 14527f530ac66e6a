//! OpenAPI documents against the original's.
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::PathBuf;

use atoll_builtin::openapi::{CustomKind, custom_document, document, document_at, document_paths};
use atoll_schema::{Schema, Type};
use serde_json::{Value, json};

/// Drops prose, and writes a reference in a list of one as the reference it is.
fn plain(value: &mut Value) {
    match value {
        Value::Object(object) => {
            if object.get("description").is_some_and(Value::is_string) {
                object.remove("description");
            }
            if object.len() == 1
                && let Some(Value::Array(list)) = object.get("allOf")
                && let [only] = list.as_slice()
            {
                *value = only.clone();
                return;
            }
            object.values_mut().for_each(plain);
        }
        Value::Array(list) => list.iter_mut().for_each(plain),
        _ => {}
    }
}

fn differences(path: &str, left: &Value, right: &Value, out: &mut Vec<String>) {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => {
            let keys: std::collections::BTreeSet<&String> = left.keys().chain(right.keys()).collect();
            for key in keys {
                match (left.get(key), right.get(key)) {
                    (Some(a), Some(b)) => differences(&format!("{path}.{key}"), a, b, out),
                    (a, _) => {
                        out.push(format!("{path}.{key}: only in {}", if a.is_some() { "ours" } else { "the original" }))
                    }
                }
            }
        }
        _ if left == right => {}
        _ => out.push(format!("{path}: {left} / {right}")),
    }
}

#[test]
fn documents_equal_the_originals_apart_from_prose() {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/reference/kubernetes/openapi-v3");
    if !dir.is_dir() {
        eprintln!("SKIPPED: {} is absent", dir.display());
        return;
    }
    let mut failures = Vec::new();
    for path in document_paths() {
        let file = dir.join(format!("{}_openapi.json", path.replace('/', "__")));
        let mut original: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        let mut ours: Value = serde_json::from_slice(&document_at(&path).unwrap()).unwrap();
        plain(&mut original);
        plain(&mut ours);
        let mut found = Vec::new();
        differences("", &ours, &original, &mut found);
        failures.extend(found.into_iter().map(|difference| format!("{path}{difference}")));
    }
    assert!(failures.is_empty(), "{} differences\n{}", failures.len(), failures[..failures.len().min(60)].join("\n"));
}

#[test]
fn every_described_type_has_prose() {
    let apps: Value = serde_json::from_slice(&document("apps", "v1")).unwrap();
    let schemas = apps["components"]["schemas"].as_object().unwrap();
    assert!(schemas["io.k8s.api.apps.v1.DeploymentSpec"]["properties"]["replicas"]["description"].is_string());
    assert!(schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]["description"].is_string());
    let silent = schemas.iter().filter(|(_, schema)| schema["description"].is_null()).count();
    assert!(silent * 4 < schemas.len(), "{silent} of {} types have no description", schemas.len());
}

#[test]
fn unknown_paths_have_no_document() {
    for path in ["", "apis/", "apis/nope", "apis/apps/v2", "api/v2", "apis/apps/v1/deployments"] {
        assert_eq!(document_at(path), None, "{path}");
    }
    assert!(document("nope", "v1").is_empty());
}

#[test]
fn custom_resources_get_the_paths_and_components_kubectl_looks_for() {
    let spec = Schema { ty: Type::Object, preserve_unknown: true, ..Schema::default() };
    let schema = Schema { ty: Type::Object, properties: [("spec".into(), spec)].into(), ..Schema::default() };
    let kind = CustomKind {
        group: "example.com",
        version: "v1",
        kind: "Foo",
        list_kind: "FooList",
        plural: "foos",
        namespaced: true,
        schema: &schema,
        status: true,
        scale: true,
    };
    let document: Value = serde_json::from_slice(&custom_document(&[kind])).unwrap();
    let patch = &document["paths"]["/apis/example.com/v1/namespaces/{namespace}/foos/{name}"]["patch"];
    assert_eq!(patch["operationId"], "patchExampleComV1NamespacedFoo");
    assert_eq!(
        patch["x-kubernetes-group-version-kind"],
        json!({"group": "example.com", "version": "v1", "kind": "Foo"})
    );
    assert!(patch["parameters"].as_array().unwrap().iter().any(|parameter| parameter["name"] == "fieldValidation"));
    assert!(patch["requestBody"]["content"].get("application/strategic-merge-patch+json").is_none());
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas["com.example.v1.Foo"]["x-kubernetes-group-version-kind"][0]["kind"], "Foo");
    assert_eq!(schemas["com.example.v1.Foo"]["properties"]["spec"]["x-kubernetes-preserve-unknown-fields"], true);
    for name in ["meta.v1.ObjectMeta", "meta.v1.ListMeta", "meta.v1.Status", "meta.v1.DeleteOptions", "meta.v1.Patch"] {
        assert!(schemas[format!("io.k8s.apimachinery.pkg.apis.{name}")].is_object(), "{name}");
    }
    assert!(schemas["io.k8s.api.autoscaling.v1.Scale"].is_object());
    assert!(document["paths"]["/apis/example.com/v1/namespaces/{namespace}/foos/{name}/scale"]["get"].is_object());
}
