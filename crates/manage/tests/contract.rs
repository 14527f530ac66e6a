//! Walks every path and verb of the contract, and checks the shapes of what comes back.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;
use std::path::Path;

use atoll_meta::Gvr;
use serde_json::{Map, Value, json};
use support::{World, deployment, master};

const PREFIX: &str = "/apis/kairship.io/v1alpha1";

fn document() -> Option<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/reference/openapi/kairship-v0.23.0.json");
    serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()
}

/// One operation of the contract.
struct Operation {
    verb: String,
    path: String,
    id: String,
    answer: Value,
    body: Vec<String>,
}

fn operations(document: &Value) -> Vec<Operation> {
    let mut all = Vec::new();
    for (path, verbs) in document["paths"].as_object().unwrap() {
        for (verb, operation) in verbs.as_object().unwrap() {
            let body =
                operation["parameters"].as_array().into_iter().flatten().find(|parameter| parameter["in"] == "body");
            let fields =
                body.and_then(|body| body["schema"]["properties"].as_object()).map(|map| map.keys().cloned().collect());
            all.push(Operation {
                verb: verb.to_uppercase(),
                path: path.strip_prefix(PREFIX).unwrap().to_owned(),
                id: operation["operationId"].as_str().unwrap().to_owned(),
                answer: operation["responses"]["200"]["schema"].clone(),
                body: fields.unwrap_or_default(),
            });
        }
    }
    all
}

/// What objects of a resource are called and look like.
fn fixture(resource: &str) -> Value {
    let meta = |name: &str| json!({"name": name});
    let select = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}]);
    match resource {
        "deployments" => deployment("web"),
        "jobs" => {
            json!({"kind": "Job", "apiVersion": "batch/v1", "metadata": meta("job"), "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}})
        }
        "cronjobs" => {
            json!({"kind": "CronJob", "apiVersion": "batch/v1", "metadata": meta("cron"), "spec": {"schedule": "* * * * *",
            "jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}}}})
        }
        "configmaps" => json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": meta("conf"), "data": {"a": "b"}}),
        "secrets" => json!({"kind": "Secret", "apiVersion": "v1", "metadata": meta("sec"), "stringData": {"a": "b"}}),
        "services" | "workloadservices" => {
            json!({"kind": "Service", "apiVersion": "v1", "metadata": meta(if resource == "services" { "svc" } else { "wsvc" }), "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}})
        }
        "ingresses" => {
            json!({"kind": "Ingress", "apiVersion": "networking.k8s.io/v1", "metadata": meta("ing"), "spec": {"defaultBackend": {"service": {"name": "svc", "port": {"number": 80}}}}})
        }
        "namespaces" => json!({"kind": "Namespace", "apiVersion": "v1", "metadata": meta("space")}),
        "propagationpolicies" => {
            json!({"kind": "PropagationPolicy", "apiVersion": "policy.karmada.io/v1alpha1", "metadata": meta("pp"), "spec": {"resourceSelectors": select, "placement": {"clusterAffinity": {"clusterNames": ["m1"]}}}})
        }
        "clusterpropagationpolicies" => {
            json!({"kind": "ClusterPropagationPolicy", "apiVersion": "policy.karmada.io/v1alpha1", "metadata": meta("cpp"), "spec": {"resourceSelectors": select, "placement": {}}})
        }
        "overridepolicies" => {
            json!({"kind": "OverridePolicy", "apiVersion": "policy.karmada.io/v1alpha1", "metadata": meta("op"), "spec": {"resourceSelectors": select,
            "overrideRules": [{"overriders": {"plaintext": [{"path": "/spec/replicas", "operator": "replace", "value": 3}]}}]}})
        }
        "clusteroverridepolicies" => {
            json!({"kind": "ClusterOverridePolicy", "apiVersion": "policy.karmada.io/v1alpha1", "metadata": meta("cop"), "spec": {"resourceSelectors": select, "overrideRules": [{"overriders": {}}]}})
        }
        "federatedhpas" => {
            json!({"kind": "FederatedHPA", "apiVersion": "autoscaling.karmada.io/v1alpha1", "metadata": meta("hpa"), "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}})
        }
        "customresourcedefinitions" => definition("docks", "Dock", "Namespaced"),
        "boats" => json!({"kind": "Boat", "apiVersion": "sea.io/v1", "metadata": meta("boat"), "spec": {"sails": 2}}),
        "seas" => json!({"kind": "Sea", "apiVersion": "sea.io/v1", "metadata": meta("sea")}),
        "clusters" => {
            json!({"metadata": {"name": "m9"}, "spec": {"region": "south", "taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}]}})
        }
        "cloudshells" => json!({"metadata": meta("shell")}),
        "instances" => json!({"metadata": meta("spare")}),
        _ => Value::Null,
    }
}

fn definition(plural: &str, kind: &str, scope: &str) -> Value {
    json!({"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1", "metadata": {"name": format!("{plural}.sea.io")},
        "spec": {"group": "sea.io", "scope": scope, "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List")},
                 "versions": [{"name": "v1", "served": true, "storage": true,
                               "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}})
}

/// Fills the variables of a path.
fn fill(operation: &Operation) -> String {
    let parts: Vec<&str> = operation.path.split('/').collect();
    let mut out: Vec<String> = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let (variable, action) = part.split_once(':').unwrap_or((part, ""));
        let value = match variable {
            "{instance}" => "fleet".to_owned(),
            "{namespace}" => "default".to_owned(),
            "{cluster}" => "m1".to_owned(),
            "{cronjob}" => "cron".to_owned(),
            "{group}" => "sea.io".to_owned(),
            "{version}" => "v1".to_owned(),
            "{resource}" => (if parts.contains(&"namespaces") { "boats" } else { "seas" }).to_owned(),
            "{registry}" | "{project}" | "{repository}" => "x".to_owned(),
            "{name}" if parts.contains(&"member-clusters") => "far".to_owned(),
            "{name}" => fixture(&out[at - 1])["metadata"]["name"].as_str().unwrap().to_owned(),
            other => other.to_owned(),
        };
        out.push(if action.is_empty() { value } else { format!("{value}:{action}") });
    }
    out.join("/")
}

fn body(operation: &Operation, path: &str) -> Option<Value> {
    if matches!(operation.verb.as_str(), "GET" | "DELETE") {
        return None;
    }
    let known = path.split('/').filter(|part| !matches!(*part, "default" | "json")).rev();
    let resource = known
        .map(|part| part.split(':').next().unwrap())
        .find(|part| !fixture(part).is_null())
        .unwrap_or("configmaps")
        .to_owned();
    let object = || fixture(&resource);
    Some(match operation.id.as_str() {
        "Instance_CreateInstance" => json!({"data": object()}),
        "Instance_UpdateInstance" => json!({"data": json!({"metadata": {"labels": {"a": "b"}}}).to_string()}),
        "Cluster_JoinCluster" | "Cluster_UpdateJoinedCluster" => json!({"cluster": object()}),
        "CloudShell_CreateCloudShell" => json!({"data": object()}),
        "Aggregation_CreateAggregationResource" => {
            json!({"data": {"resources": [named(fixture("configmaps"), "agg")], "popagrationpolicies": [named(fixture("propagationpolicies"), "agg")], "overridepolicies": []}, "gvr": [{"version": "v1", "resource": "configmaps"}]})
        }
        "Aggregation_CreateClusterAggregationResource" => {
            json!({"data": {"resources": [named(fixture("seas"), "agg")], "clusterpopagrationpolicies": [], "clusteroverridepolicies": []}, "gvr": [{"group": "sea.io", "version": "v1", "resource": "seas"}]})
        }
        "Workspace_BindInstances" => json!({"instance": "fleet", "workspace": {"workspace": "w"}, "action": "BIND"}),
        "Workspace_BindNamespaceInstances" => {
            json!({"instance": "fleet", "namespace": "default", "workspace": {"workspace": "w"}, "action": "BIND"})
        }
        "Core_CreateWorkloadService" => json!({"kind": "Deployment", "kindName": "web", "data": object().to_string()}),
        id if id.contains("_Patch") && operation.body.contains(&"patchType".to_owned()) => {
            json!({"patchType": "PATCH_TYPE_MERGE", "data": "{\"spec\":{\"sails\":3}}"})
        }
        id if id.contains("PatchDeployment") || id.contains("PatchNamespace") => {
            json!({"data": "{\"metadata\":{\"labels\":{\"x\":\"y\"}}}"})
        }
        id if id.contains("_Patch") => json!({"data": {"k": "v"}}),
        _ if operation.body.iter().any(|field| field == "data") => json!({"data": object().to_string()}),
        _ => json!({"enabled": true, "expirationSeconds": 3600}),
    })
}

fn named(mut object: Value, name: &str) -> String {
    object["metadata"]["name"] = name.into();
    object.to_string()
}

/// In which order operations make sense.
fn turn(operation: &Operation) -> u8 {
    let id = &operation.id;
    match operation.verb.as_str() {
        "POST" if id.contains("CustomResourceDefinition") || id.contains("CreateDeployment") => 0,
        "POST" if id.contains("_CreatePropagationPolicy") => 1,
        "POST" if id.contains("_Create") || id.contains("_Join") || id.contains("_Bind") => 2,
        "GET" => 3,
        "PUT" | "PATCH" => 4,
        "POST" => 5,
        _ => 6,
    }
}

/// What is wrong with a value by a schema of the contract.
fn faults(document: &Value, schema: &Value, value: &Value, place: &str, out: &mut Vec<String>) {
    let schema = match schema["$ref"].as_str() {
        Some(name) => &document["definitions"][name.rsplit('/').next().unwrap()],
        None => schema,
    };
    let fits = match schema["type"].as_str() {
        Some("object") => value.is_object() || value.is_null(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("integer" | "number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        _ => true,
    };
    if !fits {
        out.push(format!("{place}: {value} is not {}", schema["type"]));
        return;
    }
    if let Some(words) = schema["enum"].as_array().filter(|words| !words.contains(value)) {
        out.push(format!("{place}: {value} is none of {words:?}"));
    }
    for item in value.as_array().into_iter().flatten() {
        faults(document, &schema["items"], item, &format!("{place}[]"), out);
    }
    let empty = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&empty);
    for (key, value) in value.as_object().into_iter().flatten() {
        match (properties.get(key), schema.get("additionalProperties")) {
            (Some(inner), _) => faults(document, inner, value, &format!("{place}.{key}"), out),
            (None, Some(inner)) => faults(document, inner, value, &format!("{place}.{key}"), out),
            (None, None) => out.push(format!("{place}.{key}: not in the contract")),
        }
    }
    for (key, inner) in properties.iter().filter(|_| value.is_object()) {
        // A message that is not set is left out; a word or a number never is.
        let target = inner["$ref"].as_str().map(|name| &document["definitions"][name.rsplit('/').next().unwrap()]);
        let message = target.is_some_and(|target| target["type"] == "object");
        if value.get(key).is_none() && !message {
            out.push(format!("{place}.{key}: missing"));
        }
    }
}

async fn prepare(world: &World) {
    let definitions = Gvr::new("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    let fleet = world.endpoint("fleet");
    for definition in [definition("boats", "Boat", "Namespaced"), definition("seas", "Sea", "Cluster")] {
        fleet.create(&definitions, None, &definition).await.unwrap();
    }
    world
        .endpoint("root")
        .create(
            &Gvr::new("atoll.io", "v1alpha1", "workspaces"),
            None,
            &support::hub_object("Workspace", json!({"metadata": {"name": "w"}, "spec": {"id": 7}})),
        )
        .await
        .unwrap();
    world.hub.create_instance("spare").await.unwrap();
    let member = world.endpoint("m1");
    for (group, resource) in [("apps", "deployments"), ("", "services"), ("networking.k8s.io", "ingresses")] {
        let object: Value = serde_json::from_str(&named(fixture(resource), "far")).unwrap();
        member.create(&Gvr::new(group, "v1", resource), Some("default"), &object).await.unwrap();
    }
}

#[tokio::test]
async fn every_operation_of_the_contract_is_answered() {
    let Some(document) = document() else {
        println!("SKIPPED: the contract is not there");
        return;
    };
    let world = World::new().await;
    prepare(&world).await;
    let mut all = operations(&document);
    all.sort_by_key(|operation| (turn(operation), std::cmp::Reverse(operation.path.len())));
    let (mut served, mut elsewhere, mut wrong) = (0, BTreeMap::new(), Vec::new());
    for operation in &all {
        let path = fill(operation);
        let (code, answer) = world.rest(&master(), &operation.verb, &path, body(operation, &path)).await;
        match code {
            200 => {
                served += 1;
                let mut found = Vec::new();
                faults(&document, &operation.answer, &answer, &operation.id, &mut found);
                wrong.extend(found);
            }
            501 => {
                drop(elsewhere.insert(operation.id.clone(), answer["message"].as_str().unwrap_or_default().to_owned()))
            }
            _ => wrong.push(format!("{} {} {path}: {code} {answer}", operation.id, operation.verb)),
        }
    }
    println!("served: {served}, unimplemented: {}, of {}", elsewhere.len(), all.len());
    for (id, why) in &elsewhere {
        println!("  {id}: {why}");
    }
    assert!(wrong.is_empty(), "{} faults:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(all.len(), 178);
    assert_eq!(served + elsewhere.len(), all.len());
}
