//! What the walk sends: objects of every kind, and the words that fill paths.

use serde_json::{Value, json};

use super::Operation;

/// What objects of a resource are called and look like.
pub fn fixture(resource: &str) -> Value {
    let meta = |name: &str| json!({"name": name});
    let select = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}]);
    match resource {
        "deployments" => {
            let labels = json!({"app": "web"});
            json!({"kind": "Deployment", "apiVersion": "apps/v1", "metadata": meta("web"), "spec": {"replicas": 1, "selector": {"matchLabels": labels},
                   "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "nginx", "ports": [{"containerPort": 80}]}]}}}})
        }
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

pub fn definition(plural: &str, kind: &str, scope: &str) -> Value {
    json!({"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1", "metadata": {"name": format!("{plural}.sea.io")},
        "spec": {"group": "sea.io", "scope": scope, "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List")},
                 "versions": [{"name": "v1", "served": true, "storage": true,
                               "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}})
}

/// Where a walk goes: an instance, one of its members, and the names it uses for what is not in it.
pub struct Walk {
    pub instance: &'static str,
    pub member: &'static str,
    pub spare: &'static str,
}

/// Fills the variables of a path; the path, and the same as fields of a request.
pub fn fill(operation: &Operation, walk: &Walk) -> (String, Value) {
    let parts: Vec<&str> = operation.path.split('/').collect();
    let (mut out, mut fields): (Vec<String>, _) = (Vec::new(), json!({}));
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
        if let Some(field) = variable.strip_prefix('{') {
            fields[field.trim_end_matches('}')] = value.as_str().into();
        }
        out.push(if action.is_empty() { value } else { format!("{value}:{action}") });
    }
    (out.join("/"), fields)
}

pub fn body(operation: &Operation, path: &str, walk: &Walk) -> Option<Value> {
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

pub fn named(mut object: Value, name: &str) -> String {
    object["metadata"]["name"] = name.into();
    object.to_string()
}
