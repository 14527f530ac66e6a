//! Kinds with few rules.

use std::collections::BTreeMap;

use atoll_api::config::ResourceInterpreterCustomization;
use atoll_api::policy::{ClusterTaintPolicySpec, FederatedResourceQuotaSpec};
use atoll_api::words::{TRUE, annotation, label};
use atoll_meta::{FieldError, FieldPath, Quantity, Status};
use serde_json::Value;

use super::{meta_map, qualified};
use crate::core::fresh_id;

/// Gives an object a permanent id, unless it has one.
pub fn identify(object: &mut Value, key: &str) {
    let labels = meta_map(object, "labels");
    if labels.get(key).and_then(Value::as_str).unwrap_or_default().is_empty() {
        labels.insert(key.to_owned(), fresh_id().into());
    }
}

/// Makes the manifests of a Work that somebody wrote by hand such as those the fleet writes: without what only a server
/// may say, and with the marks that tell whose they are.
pub fn complete_work(object: &mut Value) {
    let meta = object["metadata"].clone();
    for manifest in super::items_mut(object, "/spec/workload/manifests") {
        let nameless = !manifest["metadata"].is_object();
        if nameless || manifest["metadata"]["annotations"][annotation::MANAGED_LABELS].is_string() {
            continue;
        }
        crate::prune::prune(manifest);
        let labels = meta_map(manifest, "labels");
        labels.insert(label::MANAGED.to_owned(), TRUE.into());
        labels.insert(label::WORK_ID.to_owned(), meta["labels"][label::WORK_ID].clone());
        let keys: Vec<&str> = labels.keys().map(String::as_str).collect();
        let keys = keys.join(",");
        let annotations = meta_map(manifest, "annotations");
        for (field, key) in [("namespace", annotation::WORK_NAMESPACE), ("name", annotation::WORK_NAME)] {
            annotations.insert(key.to_owned(), meta[field].clone());
        }
        annotations.insert(annotation::MANAGED_LABELS.to_owned(), keys.into());
        annotations.insert(annotation::MANAGED_ANNOTATIONS.to_owned(), "".into());
        let keys: Vec<&str> = annotations.keys().map(String::as_str).collect();
        let keys = keys.join(",");
        annotations.insert(annotation::MANAGED_ANNOTATIONS.to_owned(), keys.into());
    }
}

/// What is wrong with a ResourceBinding.
pub fn check_binding(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let noted = object["metadata"]["annotations"][annotation::DEPENDENCIES].as_str();
    if let Some(text) = noted.filter(|text| serde_json::from_str::<Vec<Value>>(text).is_err()) {
        let path = FieldPath::new("metadata.annotations").key(annotation::DEPENDENCIES);
        errors.push(FieldError::invalid(path, text, "must be a JSON list of references"));
    }
    let mut seen = Vec::new();
    for (at, component) in object["spec"]["components"].as_array().into_iter().flatten().enumerate() {
        let path = FieldPath::new("spec.components").index(at).child("name");
        let name = component["name"].as_str().unwrap_or_default();
        super::complain(&mut errors, &path, name, atoll_meta::name::is_dns1123_subdomain(name));
        if seen.contains(&name) {
            errors.push(FieldError::duplicate(path, name));
        }
        seen.push(name);
    }
    errors
}

/// What is wrong with a ClusterTaintPolicy.
pub fn check_taint_policy(spec: &ClusterTaintPolicySpec) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let root = FieldPath::new("spec");
    if let Some(affinity) = &spec.target_clusters {
        super::policy::check_affinity(&mut errors, &root.child("targetClusters"), affinity);
    }
    for (field, conditions) in
        [("addOnConditions", &spec.add_on_conditions), ("removeOnConditions", &spec.remove_on_conditions)]
    {
        for (at, condition) in conditions.iter().enumerate() {
            let path = root.child(field).index(at);
            qualified(&mut errors, &path.child("conditionType"), &condition.condition_type);
            if !matches!(condition.operator.as_str(), "In" | "NotIn") {
                errors.push(FieldError::not_supported(
                    path.child("operator"),
                    condition.operator.as_str(),
                    &["In", "NotIn"],
                ));
            }
            if condition.status_values.is_empty() {
                errors.push(FieldError::required(path.child("statusValues"), "at least one value is needed"));
            }
        }
    }
    for (at, taint) in spec.taints.iter().enumerate() {
        let path = root.child("taints").index(at);
        qualified(&mut errors, &path.child("key"), &taint.key);
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
    errors
}

/// The taints of a ClusterTaintPolicy that would move workloads away on their own: allowed only where an Instance says so.
pub fn evicting_taints(object: &Value) -> Vec<FieldError> {
    let taints = object["spec"]["taints"].as_array().into_iter().flatten().enumerate();
    let why = format!(
        "NoExecute moves workloads away on its own; it is allowed where the Instance has the annotation {}=true",
        crate::options::EVICTING_TAINTS
    );
    taints
        .filter(|(_, taint)| taint["effect"] == "NoExecute")
        .map(|(at, _)| FieldError::forbidden(FieldPath::new("spec.taints").index(at).child("effect"), why.as_str()))
        .collect()
}

/// What is wrong with a FederatedResourceQuota.
pub fn check_quota(spec: &FederatedResourceQuotaSpec) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let root = FieldPath::new("spec");
    let mut sums: BTreeMap<&str, Quantity> = BTreeMap::new();
    for name in spec.overall.keys() {
        qualified(&mut errors, &root.child("overall"), name);
    }
    for (at, assignment) in spec.static_assignments.iter().enumerate() {
        for (name, amount) in &assignment.hard {
            let path = root.child("staticAssignments").index(at).child("hard").key(name);
            if !spec.overall.contains_key(name) {
                errors.push(FieldError::invalid(
                    path,
                    name.as_str(),
                    "assignment resourceName does not exist in overall",
                ));
                continue;
            }
            let sum = sums.entry(name).or_insert(Quantity::ZERO);
            *sum += Quantity::parse(&amount.0).unwrap_or(Quantity::ZERO);
        }
    }
    for (name, sum) in sums {
        let limit = spec.overall.get(name).and_then(|limit| Quantity::parse(&limit.0).ok());
        if limit.is_some_and(|limit| sum > limit) {
            errors.push(FieldError::invalid(
                root.child("overall").key(name),
                sum.to_string(),
                "overall is less than assignments",
            ));
        }
    }
    errors
}

/// What another customisation already says about the same kind.
pub fn check_overlap(object: &Value, other: &Value) -> Vec<FieldError> {
    let (spec, theirs) = (&object["spec"], &other["spec"]);
    let name = other["metadata"]["name"].as_str().unwrap_or_default();
    if spec["target"] != theirs["target"] || object["metadata"]["name"] == name {
        return Vec::new();
    }
    let path = FieldPath::new("spec.customizations");
    let given = |spec: &Value| -> Vec<String> {
        let rules = spec["customizations"].as_object().into_iter().flatten();
        rules.filter(|(_, rule)| !rule.is_null()).map(|(operation, _)| operation.clone()).collect()
    };
    let twice = given(spec).into_iter().filter(|operation| given(theirs).contains(operation));
    twice
        .map(|operation| {
            let why =
                format!("conflicts with ResourceInterpreterCustomization {name}, which says it for the same kind");
            FieldError::invalid(path.child(&operation), operation.as_str(), why)
        })
        .collect()
}

/// Whether the scripts of a customisation compile.
pub fn check_customization(object: &Value) -> Result<Vec<FieldError>, Status> {
    let custom: ResourceInterpreterCustomization =
        serde_json::from_value(object.clone()).map_err(|error| Status::bad_request(error.to_string()))?;
    let path = FieldPath::new("spec.customizations");
    let faults = atoll_interpreter::check(&custom);
    Ok(faults
        .into_iter()
        .map(|(operation, error)| FieldError::invalid(path.clone(), operation.as_str(), error.to_string()))
        .collect())
}
