//! What makes a policy unusable, in words for its author.

use atoll_api::kubeocean::ResourceLeasingPolicySpec;
use atoll_meta::{FieldError, FieldPath, Quantity};
use jiff::tz::TimeZone;

use crate::window::{Window, WindowError};

/// What a policy may allow.
const ALLOWED: [&str; 10] = [
    "Privileged",
    "HostPath",
    "HostNetwork",
    "HostPID",
    "HostIPC",
    "Capabilities",
    "Priority",
    "Unconfined",
    "SELinux",
    "Sysctls",
];

/// Everything that is wrong with a policy.
pub fn check_spec(spec: &ResourceLeasingPolicySpec) -> Vec<FieldError> {
    let path = FieldPath::new("spec");
    let mut errors = Vec::new();
    if spec.cluster.is_empty() {
        errors.push(FieldError::required(path.child("cluster"), "the name of a ClusterBinding"));
    }
    for (index, window) in spec.time_windows.iter().enumerate() {
        if let Err(error) = Window::read(window, &TimeZone::UTC) {
            let path = path.child("timeWindows").index(index);
            errors.push(window_error(&path, &error));
        }
    }
    for (index, limit) in spec.resource_limits.iter().enumerate() {
        let path = path.child("resourceLimits").index(index);
        if limit.resource.is_empty() {
            errors.push(FieldError::required(path.child("resource"), "the name of a resource"));
        }
        if let Some(percent) = limit.percent.filter(|percent| !(0..=100).contains(percent)) {
            errors.push(FieldError::invalid(path.child("percent"), percent, "must be between 0 and 100"));
        }
        if let Some(quantity) = &limit.quantity {
            match Quantity::parse(&quantity.0) {
                Ok(amount) if !amount.is_negative() => {}
                Ok(_) => {
                    errors.push(FieldError::invalid(path.child("quantity"), quantity.0.clone(), "must not be negative"))
                }
                Err(error) => {
                    errors.push(FieldError::invalid(path.child("quantity"), quantity.0.clone(), error.to_string()))
                }
            }
        }
    }
    if spec.graceful_reclaim_period_seconds < 0 {
        let grace = spec.graceful_reclaim_period_seconds;
        errors.push(FieldError::invalid(path.child("gracefulReclaimPeriodSeconds"), grace, "must not be negative"));
    }
    for (index, word) in spec.allow.iter().enumerate().filter(|(_, word)| !ALLOWED.contains(&word.as_str())) {
        errors.push(FieldError::not_supported(path.child("allow").index(index), word.clone(), &ALLOWED));
    }
    errors
}

/// The first thing that is wrong with a policy, as its status tells it.
pub fn check_policy(spec: &ResourceLeasingPolicySpec) -> Result<(), String> {
    check_spec(spec).first().map_or(Ok(()), |error| Err(error.to_string()))
}

fn window_error(path: &FieldPath, error: &WindowError) -> FieldError {
    match error {
        WindowError::Time { field, text } => FieldError::invalid(path.child(field), text.clone(), error.to_string()),
        WindowError::Day(text) => FieldError::invalid(path.child("days"), text.clone(), error.to_string()),
        WindowError::Zone(text) => FieldError::invalid(path.child("timeZone"), text.clone(), error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::{Value, json};

    fn wrong(spec: Value) -> Vec<String> {
        check_spec(&serde_json::from_value(spec).unwrap()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_mistake_is_named_with_its_field() {
        assert!(wrong(json!({"cluster": "b"})).is_empty());
        let fine = json!({"cluster": "b", "timeWindows": [{"start": "20:00", "end": "08:00", "days": ["Monday"], "timeZone": "Asia/Shanghai"}],
            "resourceLimits": [{"resource": "cpu", "quantity": "4", "percent": 100}], "allow": ["HostPath"]});
        assert!(wrong(fine).is_empty());
        for (spec, field) in [
            (json!({"cluster": ""}), "spec.cluster"),
            (json!({"cluster": "b", "timeWindows": [{"start": "8:00", "end": "09:00"}]}), "spec.timeWindows[0].start"),
            (json!({"cluster": "b", "timeWindows": [{"start": "08:00", "end": "24:00"}]}), "spec.timeWindows[0].end"),
            (
                json!({"cluster": "b", "timeWindows": [{"start": "08:00", "end": "09:00", "days": ["Mo"]}]}),
                "spec.timeWindows[0].days",
            ),
            (
                json!({"cluster": "b", "timeWindows": [{"start": "08:00", "end": "09:00", "timeZone": "x"}]}),
                "spec.timeWindows[0].timeZone",
            ),
            (
                json!({"cluster": "b", "resourceLimits": [{"resource": "cpu", "percent": 101}]}),
                "spec.resourceLimits[0].percent",
            ),
            (
                json!({"cluster": "b", "resourceLimits": [{"resource": "cpu", "percent": -1}]}),
                "spec.resourceLimits[0].percent",
            ),
            (
                json!({"cluster": "b", "resourceLimits": [{"resource": "", "percent": 1}]}),
                "spec.resourceLimits[0].resource",
            ),
            (
                json!({"cluster": "b", "resourceLimits": [{"resource": "cpu", "quantity": "-1"}]}),
                "spec.resourceLimits[0].quantity",
            ),
            (json!({"cluster": "b", "gracefulReclaimPeriodSeconds": -5}), "spec.gracefulReclaimPeriodSeconds"),
            (json!({"cluster": "b", "allow": ["Everything"]}), "spec.allow[0]"),
        ] {
            let errors = wrong(spec);
            assert_eq!(errors.len(), 1, "{errors:?}");
            assert!(errors[0].starts_with(field), "{errors:?}");
        }
    }
}
