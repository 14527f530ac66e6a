//! Autoscalers, scales and disruption budgets.

use serde_json::Value;

use super::view::{NONE, UNKNOWN, UNSET, View, shown};
use super::{AGE, NAME, Printer, integer, text};
use crate::strategy as tree;

pub(super) fn printer(kind: &str) -> Option<&'static Printer> {
    Some(match kind {
        "HorizontalPodAutoscaler" => &AUTOSCALER,
        "Scale" => &SCALE,
        "PodDisruptionBudget" => &BUDGET,
        _ => return None,
    })
}

const AUTOSCALER: Printer = Printer {
    columns: &[
        NAME,
        text("Reference", "Object that is scaled."),
        text("Targets", "Measured and wanted values."),
        text("MinPods", "Least number of pods."),
        text("MaxPods", "Greatest number of pods."),
        text("Replicas", "Pods there are now."),
        AGE,
    ],
    cells: |view| {
        let reference = format!("{}/{}", view.text("spec.scaleTargetRef.kind"), view.text("spec.scaleTargetRef.name"));
        let least = tree::int(view.object, "spec.minReplicas").map_or(UNSET.to_owned(), |number| number.to_string());
        vec![
            view.name(),
            reference.into(),
            targets(view).into(),
            least.into(),
            view.int("spec.maxReplicas").into(),
            view.int("status.currentReplicas").into(),
            view.age(),
        ]
    },
};

fn targets(view: &View) -> String {
    if let Some(wanted) = tree::int(view.object, "spec.targetCPUUtilizationPercentage") {
        let current = tree::int(view.object, "status.currentCPUUtilizationPercentage");
        return format!("cpu: {}/{wanted}%", current.map_or(UNKNOWN.to_owned(), |now| format!("{now}%")));
    }
    let specs = view.items("spec.metrics");
    if specs.is_empty() {
        return NONE.to_owned();
    }
    let statuses = view.items("status.currentMetrics");
    let all: Vec<String> = specs.iter().enumerate().map(|(index, spec)| metric(spec, statuses.get(index))).collect();
    match all.as_slice() {
        [one, two, rest @ ..] if !rest.is_empty() => format!("{one}, {two} + {} more...", rest.len()),
        few => few.join(", "),
    }
}

fn metric(spec: &Value, status: Option<&Value>) -> String {
    let (field, named) = match tree::text(spec, "type") {
        "External" => ("external", false),
        "Pods" => ("pods", false),
        "Object" => ("object", false),
        "Resource" => ("resource", true),
        "ContainerResource" => ("containerResource", true),
        _ => return "<unknown type>".to_owned(),
    };
    let target = tree::at(tree::at(spec, field), "target");
    let current = status.map_or(&Value::Null, |status| tree::at(tree::at(status, field), "current"));
    let prefix = if named { format!("{}: ", tree::text(tree::at(spec, field), "name")) } else { String::new() };
    let now = |part: &str| match tree::at(current, part) {
        Value::Null => UNKNOWN.to_owned(),
        value => shown(value),
    };
    if tree::has(target, "averageValue") {
        let suffix = if matches!(field, "external" | "object") { " (avg)" } else { "" };
        return format!("{prefix}{}/{}{suffix}", now("averageValue"), shown(tree::at(target, "averageValue")));
    }
    if named {
        let percent = |value: Option<i64>, absent: &str| value.map_or(absent.to_owned(), |value| format!("{value}%"));
        let now = percent(tree::int(current, "averageUtilization"), UNKNOWN);
        return format!("{prefix}{now}/{}", percent(tree::int(target, "averageUtilization"), "<auto>"));
    }
    format!("{}/{}", now("value"), shown(tree::at(target, "value")))
}

const SCALE: Printer = Printer {
    columns: &[
        super::Column { format: "", ..NAME },
        integer("Desired", "Pods wanted."),
        integer("Available", "Pods there are."),
        AGE,
    ],
    cells: |view| vec![view.name(), view.int("spec.replicas").into(), view.int("status.replicas").into(), view.age()],
};

const BUDGET: Printer = Printer {
    columns: &[
        NAME,
        text("Min Available", "Least number of pods that must stay available."),
        text("Max Unavailable", "Greatest number of pods that may be unavailable."),
        integer("Allowed Disruptions", "Pods that may be evicted now."),
        AGE,
    ],
    cells: |view| {
        let limit = |path: &str| match view.at(path) {
            Value::Null => "N/A".to_owned(),
            value => shown(value),
        };
        vec![
            view.name(),
            limit("spec.minAvailable").into(),
            limit("spec.maxUnavailable").into(),
            view.int("status.disruptionsAllowed").into(),
            view.age(),
        ]
    },
};
