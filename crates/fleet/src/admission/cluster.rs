//! Clusters.

use atoll_api::cluster::ClusterSpec;
use atoll_api::words::finalizer;
use atoll_meta::{FieldError, FieldPath, Quantity, name};
use serde_json::{Value, json};

use super::{add_finalizer, complain, items_mut, label_value};

/// Upper limit of what a Cluster may be called, as its name becomes part of others.
const LONGEST_NAME: usize = 48;

/// Grades of nodes when none are given: cores and GiB at least, doubling.
const GRADES: [(i64, i64); 9] =
    [(0, 0), (1, 4), (2, 16), (4, 32), (8, 64), (16, 128), (32, 256), (64, 512), (128, 1024)];

/// Fills in what a Cluster leaves out.
pub fn default(object: &mut Value, now: &str) {
    if let Some(zone) = object["spec"]["zone"].as_str().filter(|zone| !zone.is_empty()).map(ToOwned::to_owned)
        && object["spec"]["zones"].as_array().is_none_or(Vec::is_empty)
    {
        object["spec"]["zones"] = json!([zone]);
    }
    for taint in items_mut(object, "/spec/taints") {
        if taint["effect"] == "NoExecute" && taint["timeAdded"].is_null() {
            taint["timeAdded"] = now.into();
        }
    }
    match object.pointer_mut("/spec/resourceModels").and_then(Value::as_array_mut).filter(|models| !models.is_empty()) {
        None => object["spec"]["resourceModels"] = grades(),
        Some(models) => standardise(models),
    }
    if object["metadata"]["deletionTimestamp"].is_null() {
        add_finalizer(object, finalizer::CLUSTER);
    }
}

fn grades() -> Value {
    let most = i64::MAX.to_string();
    let next = |at: usize, pick: fn((i64, i64)) -> i64| GRADES.get(at + 1).map(|grade| pick(*grade));
    let grade = |(at, (cores, memory)): (usize, &(i64, i64))| {
        let cores_max = next(at, |grade| grade.0).map_or_else(|| most.clone(), |cores| cores.to_string());
        let memory_max = next(at, |grade| grade.1).map_or_else(|| most.clone(), |memory| format!("{memory}Gi"));
        let memory = if *memory == 0 { "0".to_owned() } else { format!("{memory}Gi") };
        json!({"grade": at, "ranges": [
            {"name": "cpu", "min": cores.to_string(), "max": cores_max},
            {"name": "memory", "min": memory, "max": memory_max}]})
    };
    GRADES.iter().enumerate().map(grade).collect()
}

/// Sorts given grades; the first begins at nothing, the last never ends.
fn standardise(models: &mut [Value]) {
    models.sort_by_key(|model| model["grade"].as_i64().unwrap_or_default());
    for range in models.first_mut().into_iter().flat_map(|model| items_mut(model, "/ranges")) {
        range["min"] = "0".into();
    }
    for range in models.last_mut().into_iter().flat_map(|model| items_mut(model, "/ranges")) {
        range["max"] = i64::MAX.to_string().into();
    }
}

/// What is wrong with a Cluster.
pub fn check(spec: &ClusterSpec, cluster_name: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let root = FieldPath::new("spec");
    complain(&mut errors, &FieldPath::new("metadata.name"), cluster_name, name::is_dns1123_label(cluster_name));
    if cluster_name.len() > LONGEST_NAME {
        errors.push(FieldError::too_long(FieldPath::new("metadata.name"), LONGEST_NAME));
    }
    if !spec.zone.is_empty() && spec.zones.as_slice() != [spec.zone.clone()] {
        errors.push(FieldError::invalid(root.child("zone"), spec.zone.as_str(), "zone and zones can not co-exist"));
    }
    for (field, text) in [("provider", &spec.provider), ("region", &spec.region)] {
        label_value(&mut errors, &root.child(field), text);
    }
    for (at, zone) in spec.zones.iter().enumerate() {
        label_value(&mut errors, &root.child("zones").index(at), zone);
    }
    if !spec.api_endpoint.is_empty() && http::Uri::try_from(spec.api_endpoint.as_str()).is_err() {
        errors.push(FieldError::invalid(root.child("apiEndpoint"), spec.api_endpoint.as_str(), "must be an address"));
    }
    if !spec.proxy_url.is_empty() {
        let scheme = spec.proxy_url.split_once("://").map(|(scheme, _)| scheme).unwrap_or_default();
        if !matches!(scheme, "http" | "https" | "socks5") {
            errors.push(FieldError::invalid(
                root.child("proxyURL"),
                spec.proxy_url.as_str(),
                "the scheme must be http, https or socks5",
            ));
        }
    }
    for (field, secret) in [("secretRef", &spec.secret_ref), ("impersonatorSecretRef", &spec.impersonator_secret_ref)] {
        if let Some(secret) = secret
            && (secret.name.is_empty() || secret.namespace.is_empty())
        {
            errors.push(FieldError::required(root.child(field), "needs both a namespace and a name"));
        }
    }
    for (at, taint) in spec.taints.iter().enumerate() {
        let path = root.child("taints").index(at);
        super::qualified(&mut errors, &path.child("key"), &taint.key);
        if !matches!(taint.effect.as_str(), "NoSchedule" | "PreferNoSchedule" | "NoExecute") {
            errors.push(FieldError::not_supported(
                path.child("effect"),
                taint.effect.as_str(),
                &["NoSchedule", "PreferNoSchedule", "NoExecute"],
            ));
        }
        if spec.taints[..at].iter().any(|other| other.key == taint.key && other.effect == taint.effect) {
            errors.push(FieldError::duplicate(path, format!("{}:{}", taint.key, taint.effect)));
        }
    }
    models(&mut errors, &root.child("resourceModels"), spec);
    errors
}

/// Grades are numbered from 0 and each begins where the one before ends.
fn models(errors: &mut Vec<FieldError>, path: &FieldPath, spec: &ClusterSpec) {
    for (at, model) in spec.resource_models.iter().enumerate() {
        let path = path.index(at);
        if model.grade != i64::try_from(at).unwrap_or(i64::MAX) {
            errors.push(FieldError::invalid(path.child("grade"), model.grade, "grades must be 0, 1, 2, ..."));
        }
        for (number, range) in model.ranges.iter().enumerate() {
            let path = path.child("ranges").index(number);
            let (Ok(min), Ok(max)) = (Quantity::parse(&range.min.0), Quantity::parse(&range.max.0)) else {
                errors.push(FieldError::invalid(path, range.name.as_str(), "min and max must be quantities"));
                continue;
            };
            if min >= max {
                errors.push(FieldError::invalid(path.child("max"), range.max.0.as_str(), "must be greater than min"));
            }
            let before = at.checked_sub(1).and_then(|at| spec.resource_models.get(at));
            let before = before.and_then(|model| model.ranges.iter().find(|other| other.name == range.name));
            if before.is_some_and(|before| {
                Quantity::parse(&before.max.0).is_ok_and(|end| end.partial_cmp(&min) != Some(std::cmp::Ordering::Equal))
            }) {
                errors.push(FieldError::invalid(
                    path.child("min"),
                    range.min.0.as_str(),
                    "must be the max of the grade before",
                ));
            }
        }
    }
}
