//! Propagation policies.

use std::collections::HashSet;

use atoll_api::policy::{
    ApplicationFailoverBehavior, ClusterAffinity, Placement, PreemptionBehavior, PropagationSpec, PurgeMode,
    ReplicaDivisionPreference, ReplicaSchedulingType, SpreadConstraint, StatePreservation,
};
use atoll_api::words::{finalizer, label};
use atoll_meta::{FieldError, FieldPath};
use serde_json::Value;

use super::{add_finalizer, items_mut, meta_map, qualified};

/// Fills in what a policy leaves out.
pub fn default(object: &mut Value, namespace: Option<&str>, create: bool, id: impl FnOnce() -> String) {
    let mut has_import = false;
    for selector in items_mut(object, "/spec/resourceSelectors") {
        has_import |= selector["kind"] == "ServiceImport"
            && selector["apiVersion"].as_str().is_some_and(|api| api.starts_with("multicluster.x-k8s.io/"));
        if let Some(namespace) = namespace
            && selector["namespace"].as_str().unwrap_or_default().is_empty()
        {
            selector["namespace"] = namespace.into();
        }
    }
    if has_import {
        object["spec"]["propagateDeps"] = true.into();
    }
    for constraint in items_mut(object, "/spec/placement/spreadConstraints") {
        let empty = |field: &str| constraint[field].as_str().unwrap_or_default().is_empty();
        if empty("spreadByField") && empty("spreadByLabel") {
            constraint["spreadByField"] = "cluster".into();
        }
        if constraint["minGroups"].as_i64().unwrap_or_default() == 0 {
            constraint["minGroups"] = 1.into();
        }
    }
    if let Some(strategy) = object.pointer_mut("/spec/placement/replicaScheduling").filter(|value| value.is_object()) {
        let divided = strategy["replicaSchedulingType"].as_str().unwrap_or("Divided") == "Divided";
        if divided && strategy["replicaDivisionPreference"].as_str().unwrap_or_default().is_empty() {
            strategy["replicaDivisionPreference"] = "Weighted".into();
        }
    }
    if let Some(application) = object.pointer_mut("/spec/failover/application").filter(|value| value.is_object())
        && matches!(application["purgeMode"].as_str(), None | Some("Gracefully" | "Graciously"))
        && application["gracePeriodSeconds"].is_null()
    {
        application["gracePeriodSeconds"] = 600.into();
    }
    if create {
        let (id_label, own) = if namespace.is_some() {
            (label::POLICY_ID, finalizer::POLICY)
        } else {
            (label::CLUSTER_POLICY_ID, finalizer::CLUSTER_POLICY)
        };
        meta_map(object, "labels").insert(id_label.to_owned(), id().into());
        add_finalizer(object, own);
    }
}

/// What is wrong with a policy.
pub fn check(spec: &PropagationSpec, object: &Value, old: Option<&Value>, namespace: Option<&str>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let root = FieldPath::new("spec");
    if let Some(old) = old {
        immutable(&mut errors, object, old, namespace);
    }
    for (at, selector) in spec.resource_selectors.iter().enumerate() {
        let path = root.child("resourceSelectors").index(at);
        if let Some(namespace) = namespace.filter(|namespace| *namespace != selector.namespace) {
            let why = format!("the namespace of a selector must be the policy's own, {namespace}");
            errors.push(FieldError::invalid(path.child("namespace"), selector.namespace.as_str(), why));
        }
        if spec.preemption == PreemptionBehavior::Always && selector.name.is_empty() {
            errors.push(FieldError::invalid(
                path.child("name"),
                "",
                "preemption Always needs a name in every selector",
            ));
        }
    }
    placement(&mut errors, &root.child("placement"), &spec.placement);
    failover(&mut errors, &root.child("failover"), spec);
    if let Some(suspension) = &spec.suspension
        && suspension.dispatching == Some(true)
        && suspension.dispatching_on_clusters.is_some()
    {
        errors.push(FieldError::invalid(
            root.child("suspension"),
            serde_json::to_value(suspension).unwrap_or_default(),
            "dispatching and dispatchingOnClusters exclude each other",
        ));
    }
    errors
}

fn immutable(errors: &mut Vec<FieldError>, object: &Value, old: &Value, namespace: Option<&str>) {
    let scheduler =
        |tree: &Value| tree["spec"]["schedulerName"].as_str().unwrap_or(atoll_api::words::DEFAULT_SCHEDULER).to_owned();
    if scheduler(object) != scheduler(old) {
        errors.push(FieldError::invalid(
            FieldPath::new("spec.schedulerName"),
            scheduler(object),
            "the schedulerName should not be updated",
        ));
    }
    let key = if namespace.is_some() { label::POLICY_ID } else { label::CLUSTER_POLICY_ID };
    let id = |tree: &Value| tree["metadata"]["labels"][key].as_str().map(ToOwned::to_owned);
    if let Some(before) = id(old)
        && id(object).as_ref() != Some(&before)
    {
        let path = FieldPath::new("metadata.labels").key(key);
        errors.push(FieldError::invalid(path, id(object).unwrap_or_default(), "the permanent id must stay as it is"));
    }
}

fn placement(errors: &mut Vec<FieldError>, path: &FieldPath, placement: &Placement) {
    if placement.cluster_affinity.is_some() && !placement.cluster_affinities.is_empty() {
        errors.push(FieldError::invalid(
            path.child("clusterAffinities"),
            placement.cluster_affinities.len(),
            "clusterAffinities can not co-exist with clusterAffinity",
        ));
    }
    if let Some(affinity) = &placement.cluster_affinity {
        check_affinity(errors, &path.child("clusterAffinity"), affinity);
    }
    affinities(errors, &path.child("clusterAffinities"), placement);
    for (at, toleration) in placement.cluster_tolerations.iter().enumerate() {
        let operator = toleration.operator.as_deref().unwrap_or("Equal");
        if !matches!(operator, "" | "Equal" | "Exists") {
            errors.push(FieldError::not_supported(
                path.child("clusterTolerations").index(at).child("operator"),
                operator,
                &["Equal", "Exists"],
            ));
        }
    }
    spread(errors, &path.child("spreadConstraints"), &placement.spread_constraints);
    for (at, entry) in placement
        .replica_scheduling
        .iter()
        .flat_map(|strategy| &strategy.weight_preference)
        .flat_map(|weights| &weights.static_weight_list)
        .enumerate()
    {
        let path = path
            .child("replicaScheduling")
            .child("weightPreference")
            .child("staticWeightList")
            .index(at)
            .child("targetCluster");
        check_affinity(errors, &path, &entry.target_cluster);
    }
    if let Some(affinity) = &placement.workload_affinity {
        let path = path.child("workloadAffinity");
        let keys: Vec<&str> = [&affinity.affinity, &affinity.anti_affinity]
            .into_iter()
            .flatten()
            .map(|term| term.group_by_label_key.as_str())
            .collect();
        for key in &keys {
            qualified(errors, &path.child("groupByLabelKey"), key);
        }
        if matches!(keys.as_slice(), [one, two] if one == two) {
            errors.push(FieldError::invalid(
                path,
                keys.first().copied().unwrap_or_default(),
                "affinity and antiAffinity need different keys",
            ));
        }
    }
}

fn affinities(errors: &mut Vec<FieldError>, path: &FieldPath, placement: &Placement) {
    let mut names = HashSet::new();
    let dynamic = placement.replica_scheduling.as_ref().is_some_and(|strategy| {
        let aggregated = strategy.replica_division_preference == Some(ReplicaDivisionPreference::Aggregated);
        let weighted = strategy.weight_preference.as_ref().is_some_and(|weights| weights.dynamic_weight.is_some());
        strategy.replica_scheduling_type == ReplicaSchedulingType::Divided && (aggregated || weighted)
    });
    for (at, term) in placement.cluster_affinities.iter().enumerate() {
        let path = path.index(at);
        qualified(errors, &path.child("affinityName"), &term.affinity_name);
        if !names.insert(term.affinity_name.as_str()) {
            errors.push(FieldError::duplicate(path.child("affinityName"), term.affinity_name.as_str()));
        }
        check_affinity(errors, &path, &term.affinity);
        if !term.overflow_affinities.is_empty() && !dynamic {
            errors.push(FieldError::forbidden(
                path.child("overflowAffinities"),
                "only with dynamic weight or Aggregated division",
            ));
        }
        let mut inner = HashSet::new();
        for (at, overflow) in term.overflow_affinities.iter().enumerate() {
            let path = path.child("overflowAffinities").index(at);
            qualified(errors, &path.child("affinityName"), &overflow.affinity_name);
            if !inner.insert(overflow.affinity_name.as_str()) {
                errors.push(FieldError::duplicate(path.child("affinityName"), overflow.affinity_name.as_str()));
            }
            if overflow.affinity == ClusterAffinity::default() {
                errors
                    .push(FieldError::required(path.clone(), "an overflow affinity must say which clusters it means"));
            }
            check_affinity(errors, &path, &overflow.affinity);
        }
    }
}

/// What is wrong with a set of clusters.
pub fn check_affinity(errors: &mut Vec<FieldError>, path: &FieldPath, affinity: &ClusterAffinity) {
    for (at, requirement) in affinity.field_selector.iter().flat_map(|selector| &selector.match_expressions).enumerate()
    {
        let path = path.child("fieldSelector").child("matchExpressions").index(at);
        if !matches!(requirement.key.as_str(), "provider" | "region" | "zone") {
            errors.push(FieldError::not_supported(
                path.child("key"),
                requirement.key.as_str(),
                &["provider", "region", "zone"],
            ));
        }
        if !matches!(requirement.operator.as_str(), "In" | "NotIn") {
            errors.push(FieldError::not_supported(
                path.child("operator"),
                requirement.operator.as_str(),
                &["In", "NotIn"],
            ));
        }
    }
    if let Some(selector) = &affinity.label_selector {
        let value = serde_json::to_value(selector).unwrap_or_default();
        if let Err(error) = atoll_meta::selector::LabelSelector::from_value(&value) {
            errors.push(FieldError::invalid(path.child("labelSelector"), value, error.to_string()));
        }
    }
}

fn spread(errors: &mut Vec<FieldError>, path: &FieldPath, constraints: &[SpreadConstraint]) {
    let mut seen = HashSet::new();
    let (mut by_field, mut by_cluster) = (false, false);
    for (at, constraint) in constraints.iter().enumerate() {
        let path = path.index(at);
        if constraint.spread_by_field.is_some() && !constraint.spread_by_label.is_empty() {
            errors.push(FieldError::invalid(
                path.clone(),
                constraint.spread_by_label.as_str(),
                "spreadByLabel should not co-exist with spreadByField",
            ));
        }
        if constraint.min_groups < 0 {
            errors.push(FieldError::invalid(
                path.child("minGroups"),
                constraint.min_groups,
                "minGroups lower than 0 is not allowed",
            ));
        }
        if constraint.max_groups < 0 {
            errors.push(FieldError::invalid(
                path.child("maxGroups"),
                constraint.max_groups,
                "maxGroups lower than 0 is not allowed",
            ));
        }
        if constraint.max_groups > 0 && constraint.max_groups < constraint.min_groups {
            errors.push(FieldError::invalid(
                path.child("maxGroups"),
                constraint.max_groups,
                "maxGroups lower than minGroups is not allowed",
            ));
        }
        if let Some(field) = constraint.spread_by_field {
            by_field = true;
            by_cluster |= field == atoll_api::policy::SpreadField::Cluster;
            if !seen.insert(field) {
                errors.push(FieldError::duplicate(
                    path.child("spreadByField"),
                    serde_json::to_value(field).unwrap_or_default(),
                ));
            }
        }
    }
    if by_field && !by_cluster {
        errors.push(FieldError::invalid(path.clone(), constraints.len(), "the cluster spread constraint must be enabled in one of the constraints in case of SpreadByField is enabled"));
    }
}

fn failover(errors: &mut Vec<FieldError>, path: &FieldPath, spec: &PropagationSpec) {
    let Some(failover) = &spec.failover else { return };
    if let Some(application) = &failover.application {
        let path = path.child("application");
        if !spec.propagate_deps {
            errors.push(FieldError::invalid(
                FieldPath::new("spec.propagateDeps"),
                false,
                "application failover is set, propagateDeps must be true",
            ));
        }
        application_failover(errors, &path, application);
        preservation(errors, &path, application.state_preservation.as_ref());
    }
    if let Some(cluster) = &failover.cluster {
        preservation(errors, &path.child("cluster"), cluster.state_preservation.as_ref());
    }
}

fn application_failover(errors: &mut Vec<FieldError>, path: &FieldPath, application: &ApplicationFailoverBehavior) {
    let seconds = application.decision_conditions.toleration_seconds;
    if seconds < 0 {
        errors.push(FieldError::invalid(
            path.child("decisionConditions").child("tolerationSeconds"),
            seconds,
            "must be greater than or equal to 0",
        ));
    }
    match (application.purge_mode, application.grace_period_seconds) {
        (PurgeMode::Gracefully, Some(grace)) if grace <= 0 => {
            errors.push(FieldError::invalid(path.child("gracePeriodSeconds"), grace, "must be greater than 0"));
        }
        (PurgeMode::Directly | PurgeMode::Never, Some(grace)) => {
            errors.push(FieldError::invalid(
                path.child("gracePeriodSeconds"),
                grace,
                "only takes effect when purgeMode is Gracefully",
            ));
        }
        _ => {}
    }
}

fn preservation(errors: &mut Vec<FieldError>, path: &FieldPath, preservation: Option<&StatePreservation>) {
    for (at, rule) in preservation.into_iter().flat_map(|preservation| &preservation.rules).enumerate() {
        let path = path.child("statePreservation").child("rules").index(at);
        qualified(errors, &path.child("aliasLabelName"), &rule.alias_label_name);
        if let Err(error) = atoll_meta::path::JsonPath::parse(&rule.json_path) {
            errors.push(FieldError::invalid(path.child("jsonPath"), rule.json_path.as_str(), error.0));
        }
    }
}
