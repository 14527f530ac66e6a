//! FederatedHPA and CronFederatedHPA: what an autoscaler and a time table must look like anywhere.

use atoll_api::autoscaling::{CronFederatedHPARule, CronFederatedHPASpec};
use atoll_builtin::strategy::{self, Context};
use atoll_meta::{FieldError, FieldPath};
use serde_json::{Value, json};

const AUTOSCALER: Context<'_> =
    Context { group: "autoscaling", version: "v2", kind: "HorizontalPodAutoscaler", now: "" };
const CRON_JOB: Context<'_> = Context { group: "batch", version: "v1", kind: "CronJob", now: "" };

/// The defaults of an autoscaler.
pub fn default(object: &mut Value) {
    let mut like = json!({"spec": object["spec"]});
    strategy::default(&AUTOSCALER, &mut like);
    object["spec"] = like["spec"].take();
}

/// What is wrong with a FederatedHPA.
pub fn check(object: &Value) -> Vec<FieldError> {
    let mut errors = strategy::validate_create(&AUTOSCALER, &json!({"spec": object["spec"]}));
    // Only newer autoscalers insist on the group.
    errors.retain(|error| error.path.as_str() != "spec.scaleTargetRef.apiVersion");
    errors
}

/// What is wrong with a CronFederatedHPA.
pub fn check_cron(spec: &CronFederatedHPASpec) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let root = FieldPath::new("spec.rules");
    let scales_scaler = spec.scale_target_ref.kind == "FederatedHPA";
    for (at, rule) in spec.rules.iter().enumerate() {
        let path = root.index(at);
        if spec.rules[..at].iter().any(|other| other.name == rule.name) {
            errors.push(FieldError::duplicate(path.child("name"), rule.name.as_str()));
        }
        check_time(&mut errors, &path, rule);
        if scales_scaler {
            check_bounds(&mut errors, &path, rule);
        } else if rule.target_replicas.is_none_or(|wanted| wanted < 0) {
            let why = "targetReplicas should be larger than or equal to 0";
            errors.push(FieldError::invalid(path.child("targetReplicas"), rule.target_replicas, why));
        }
    }
    errors
}

/// The time table is judged as that of a CronJob.
fn check_time(errors: &mut Vec<FieldError>, path: &FieldPath, rule: &CronFederatedHPARule) {
    let mut like = json!({"spec": {"schedule": rule.schedule}});
    if let Some(zone) = &rule.time_zone {
        like["spec"]["timeZone"] = zone.as_str().into();
    }
    for mut error in strategy::validate_create(&CRON_JOB, &like) {
        let field = ["schedule", "timeZone"].into_iter().find(|field| error.path.as_str() == format!("spec.{field}"));
        if let Some(field) = field {
            error.path = path.child(field);
            errors.push(error);
        }
    }
}

fn check_bounds(errors: &mut Vec<FieldError>, path: &FieldPath, rule: &CronFederatedHPARule) {
    let (least, most) = (rule.target_min_replicas, rule.target_max_replicas);
    if least.is_none() && most.is_none() {
        let why = "targetMinReplicas or targetMaxReplicas should be set for a FederatedHPA";
        errors.push(FieldError::required(path.child("targetMinReplicas"), why));
    }
    for (field, value) in [("targetMinReplicas", least), ("targetMaxReplicas", most)] {
        if value.is_some_and(|value| value <= 0) {
            errors.push(FieldError::invalid(path.child(field), value, "should be larger than 0"));
        }
    }
    if let (Some(least), Some(most)) = (least, most)
        && least > most
    {
        let why = "targetMinReplicas should be less than or equal to targetMaxReplicas";
        errors.push(FieldError::invalid(path.child("targetMinReplicas"), least, why));
    }
}
