//! Checks bindings and policies before they are stored, where the cluster is an instance of this hub.

use std::sync::Arc;

use atoll_api::kubeocean::{ClusterBinding, ResourceLeasingPolicySpec};
use atoll_apiserver::{Admission, Operation, Review};
use atoll_lease::check_spec;
use atoll_meta::{FieldError, FieldPath, Key, Status};
use atoll_store::Write;
use serde_json::Value;

use crate::binding;
use crate::tree;

const GROUP: &str = "cloud.tencent.com";

struct Check;

/// Refuses bindings and policies that cannot work, with the field that is wrong.
pub fn admission() -> Arc<dyn Admission> {
    Arc::new(Check)
}

#[async_trait::async_trait]
impl Admission for Check {
    async fn validate(&self, review: &Review<'_>, object: &Value) -> Result<Vec<Write>, Status> {
        if !matches!(review.operation, Operation::Create | Operation::Update) {
            return Ok(Vec::new());
        }
        // What was stored before these rules must still be able to go.
        if review.old.is_some_and(|old| old["spec"] == object["spec"]) {
            return Ok(Vec::new());
        }
        let (kind, errors) = if review.is(GROUP, "clusterbindings") {
            ("ClusterBinding", self.binding(review, object).await?)
        } else if review.is(GROUP, "resourceleasingpolicies") {
            ("ResourceLeasingPolicy", policy(object))
        } else {
            return Ok(Vec::new());
        };
        if errors.is_empty() { Ok(Vec::new()) } else { Err(Status::invalid(GROUP, kind, &review.name, &errors)) }
    }
}

/// What is wrong with a policy.
fn policy(object: &Value) -> Vec<FieldError> {
    match serde_json::from_value::<ResourceLeasingPolicySpec>(object["spec"].clone()) {
        Ok(spec) => check_spec(&spec),
        Err(error) => vec![FieldError::invalid(FieldPath::new("spec"), Value::Null, error.to_string())],
    }
}

/// What is wrong with a binding by itself, or as a change of another.
fn alone(old: Option<&Value>, object: &Value) -> Vec<FieldError> {
    let spec = FieldPath::new("spec");
    let binding = match serde_json::from_value::<ClusterBinding>(object.clone()) {
        Ok(binding) => binding,
        Err(error) => return vec![FieldError::invalid(spec, Value::Null, error.to_string())],
    };
    let id = &object["spec"]["clusterID"];
    if old.is_some_and(|old| old["spec"]["clusterID"] != *id) {
        return vec![FieldError::invalid(spec.child("clusterID"), id.clone(), "field is immutable")];
    }
    match binding::check(&binding) {
        Ok(()) => Vec::new(),
        Err(text) => {
            let (field, why) = text.split_once(' ').unwrap_or(("spec", &text));
            vec![FieldError::invalid(FieldPath::new(field), Value::Null, why)]
        }
    }
}

impl Check {
    async fn binding(&self, review: &Review<'_>, object: &Value) -> Result<Vec<FieldError>, Status> {
        let errors = alone(review.old, object);
        if !errors.is_empty() || review.operation == Operation::Update {
            return Ok(errors);
        }
        let call = review.call;
        let snapshot = call.hub.snapshot(&call.instance).await?;
        let id = &object["spec"]["clusterID"];
        for (_, entry) in snapshot.range(&Key::prefix(GROUP, "clusterbindings", ""), None) {
            let other = entry.object.tree(entry.modified);
            if other["spec"]["clusterID"] == *id && tree::name(&other) != tree::name(object) {
                let why = format!("already used by ClusterBinding {:?}", tree::name(&other));
                return Ok(vec![FieldError::invalid(FieldPath::new("spec.clusterID"), id.clone(), why)]);
            }
        }
        Ok(Vec::new())
    }
}
