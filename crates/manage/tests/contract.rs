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

/// Where a walk goes: an instance, one of its members, and the names it uses for what is not in it.
struct Walk {
    instance: &'static str,
    member: &'static str,
    spare: &'static str,
}

/// Fills the variables of a path.
fn fill(operation: &Operation, walk: &Walk) -> String {
    let parts: Vec<&str> = operation.path.split('/').collect();
    let mut out: Vec<String> = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let (variable, action) = part.split_once(':').unwrap_or((part, ""));
        let value = match variable {
            "{instance}" => walk.instance.to_owned(),
            "{namespace}" => "default".to_owned(),
            "{cluster}" => walk.member.to_owned(),
            "{name}" if out.last().is_some_and(|part| part == "instances") => walk.spare.to_owned(),
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

fn body(operation: &Operation, path: &str, walk: &Walk) -> Option<Value> {
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
        "Instance_CreateInstance" => json!({"data": {"metadata": {"name": walk.spare}}}),
        "Instance_UpdateInstance" => json!({"data": json!({"metadata": {"labels": {"a": "b"}}}).to_string()}),
        "Cluster_JoinCluster" | "Cluster_UpdateJoinedCluster" => json!({"cluster": object()}),
        "CloudShell_CreateCloudShell" => json!({"data": object()}),
        "Aggregation_CreateAggregationResource" => {
            json!({"data": {"resources": [named(fixture("configmaps"), "agg")], "popagrationpolicies": [named(fixture("propagationpolicies"), "agg")], "overridepolicies": []}, "gvr": [{"version": "v1", "resource": "configmaps"}]})
        }
        "Aggregation_CreateClusterAggregationResource" => {
            json!({"data": {"resources": [named(fixture("seas"), "agg")], "clusterpopagrationpolicies": [], "clusteroverridepolicies": []}, "gvr": [{"group": "sea.io", "version": "v1", "resource": "seas"}]})
        }
        "Workspace_BindInstances" => {
            json!({"instance": walk.instance, "workspace": {"workspace": "w"}, "action": "BIND"})
        }
        "Workspace_BindNamespaceInstances" => {
            json!({"instance": walk.instance, "namespace": "default", "workspace": {"workspace": "w"}, "action": "BIND"})
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

/// What both walks need.
async fn prepare(world: &World) {
    let workspace = support::hub_object("Workspace", json!({"metadata": {"name": "w"}, "spec": {"id": 7}}));
    world.endpoint("root").create(&Gvr::new("atoll.io", "v1alpha1", "workspaces"), None, &workspace).await.unwrap();
}

/// What one walk needs.
async fn prepare_walk(world: &World, walk: &Walk) {
    let definitions = Gvr::new("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    let fleet = world.endpoint(walk.instance);
    for definition in [definition("boats", "Boat", "Namespaced"), definition("seas", "Sea", "Cluster")] {
        fleet.create(&definitions, None, &definition).await.unwrap();
    }
    world.hub.create_instance(walk.spare).await.unwrap();
    let member = world.endpoint(walk.member);
    for (group, resource) in [("apps", "deployments"), ("", "services"), ("networking.k8s.io", "ingresses")] {
        let object: Value = serde_json::from_str(&named(fixture(resource), "far")).unwrap();
        member.create(&Gvr::new(group, "v1", resource), Some("default"), &object).await.unwrap();
    }
}

/// Calls every operation; what is not served and why, and what is wrong.
async fn go(world: &World, document: &Value, walk: &Walk) -> (BTreeMap<String, String>, Vec<String>) {
    let mut all = operations(document);
    assert_eq!(all.len(), 178);
    all.sort_by_key(|operation| (turn(operation), std::cmp::Reverse(operation.path.len())));
    let (mut elsewhere, mut wrong) = (BTreeMap::new(), Vec::new());
    for operation in &all {
        let path = fill(operation, walk);
        let (code, answer) = world.rest(&master(), &operation.verb, &path, body(operation, &path, walk)).await;
        match code {
            200 => faults(document, &operation.answer, &answer, &operation.id, &mut wrong),
            501 => {
                let why = answer["message"].as_str().unwrap_or_default().to_owned();
                elsewhere.insert(operation.id.clone(), why);
            }
            _ => wrong.push(format!("{} {} {path}: {code} {answer}", operation.id, operation.verb)),
        }
    }
    (elsewhere, wrong)
}

/// The page that lists all operations.
fn page(document: &Value, elsewhere: &BTreeMap<String, String>) -> String {
    let mut all = operations(document);
    all.sort_by(|a, b| (a.id.split('_').next(), &a.path, &a.verb).cmp(&(b.id.split('_').next(), &b.path, &b.verb)));
    let mut text = format!(
        "# Operations of the management plane\n\n\
         The contract of Kairship v0.23.0 has {} operations below `{PREFIX}`. {} are served, {} answer\n\
         `Unimplemented` with the reason given here. The table is written by the contract test of `atoll-manage`,\n\
         which calls every operation in two instances with three members and compares the shapes of the answers;\n\
         it fails when this page is out of date, and writes it anew when `ATOLL_WRITE_DOCS=1` is set.\n\n\
         Operations beyond the contract are described in [management](howto/management.md).\n\n\
         | service | operation | verb | path | answer |\n|---|---|---|---|---|\n",
        all.len(),
        all.len() - elsewhere.len(),
        elsewhere.len(),
    );
    for operation in all {
        let (service, name) = operation.id.split_once('_').unwrap();
        let answer = elsewhere.get(&operation.id).map_or("served".to_owned(), |why| format!("unimplemented: {why}"));
        text.push_str(&format!("| {service} | {name} | {} | `{}` | {answer} |\n", operation.verb, operation.path));
    }
    text
}

#[tokio::test]
async fn every_operation_of_the_contract_is_answered_in_every_instance() {
    let Some(document) = document() else {
        println!("SKIPPED: the contract is not there");
        return;
    };
    let world = World::with(&[("fleet", &["m1", "m2"]), ("second", &["m3"])]).await;
    prepare(&world).await;
    let mut tables = Vec::new();
    for walk in [
        Walk { instance: "fleet", member: "m1", spare: "spare" },
        Walk { instance: "second", member: "m3", spare: "other" },
    ] {
        prepare_walk(&world, &walk).await;
        let (elsewhere, wrong) = go(&world, &document, &walk).await;
        assert!(wrong.is_empty(), "{} faults in {}:\n{}", wrong.len(), walk.instance, wrong.join("\n"));
        tables.push(elsewhere);
    }
    assert_eq!(tables[0], tables[1]);
    let text = page(&document, &tables[0]);
    println!("{text}");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/management-operations.md");
    if std::env::var_os("ATOLL_WRITE_DOCS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(known == text, "docs/management-operations.md is out of date: run this test with ATOLL_WRITE_DOCS=1");
}
