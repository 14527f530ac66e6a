//! Events, in the core group and in `events.k8s.io`.

use atoll_meta::FieldPath;
use serde_json::Value;

use crate::strategy::errors::Errors;
use crate::strategy::tree::{at, fill, fill_map, has, int, text};
use crate::strategy::{PLAIN, Rules, name};

/// Rules of events of the core group.
pub(crate) const EVENT: Rules = Rules {
    default: |_, object| {
        fill_map(object, "involvedObject");
        fill_map(object, "source");
        for field in ["firstTimestamp", "lastTimestamp", "eventTime"] {
            fill(object, field, Value::Null);
        }
        fill(object, "reportingComponent", "");
        fill(object, "reportingInstance", "");
    },
    validate: |object, out| legacy(object, "involvedObject", "reportingComponent", "message", out),
    validate_update: |new, _, out| legacy(new, "involvedObject", "reportingComponent", "message", out),
    ..PLAIN
};

/// Rules of events of their own group.
pub(crate) const NEW_EVENT: Rules = Rules {
    default: |_, object| {
        fill_map(object, "regarding");
        fill_map(object, "deprecatedSource");
        for field in ["deprecatedFirstTimestamp", "deprecatedLastTimestamp", "eventTime"] {
            fill(object, field, Value::Null);
        }
    },
    validate: |object, out| {
        legacy(object, "regarding", "reportingController", "note", out);
        series(object, out);
        if !has(object, "eventTime") {
            out.required(&FieldPath::new("eventTime"), "");
        }
        let kind = text(object, "type");
        if kind != "Normal" && kind != "Warning" {
            out.invalid(&FieldPath::new("type"), "", format!("has invalid value: {kind}"));
        }
        for (field, shown) in
            [("deprecatedFirstTimestamp", "firstTimestamp"), ("deprecatedLastTimestamp", "lastTimestamp")]
        {
            if has(object, field) {
                out.invalid(&FieldPath::new(shown), "", "needs to be unset");
            }
        }
        if int(object, "deprecatedCount").unwrap_or(0) != 0 {
            out.invalid(&FieldPath::new("count"), "", "needs to be unset");
        }
        if !text(object, "deprecatedSource.component").is_empty() || !text(object, "deprecatedSource.host").is_empty() {
            out.invalid(&FieldPath::new("source"), "", "needs to be unset");
        }
    },
    validate_update: |new, old, out| {
        legacy(new, "regarding", "reportingController", "note", out);
        series(new, out);
        for (field, shown) in [
            ("regarding", "involvedObject"),
            ("reason", "reason"),
            ("note", "message"),
            ("type", "type"),
            ("eventTime", "eventTime"),
            ("action", "action"),
            ("related", "related"),
            ("reportingController", "reportingController"),
            ("reportingInstance", "reportingInstance"),
        ] {
            if !crate::strategy::tree::same(at(new, field), at(old, field)) {
                let value = at(new, field).clone();
                out.invalid(&FieldPath::new(shown), value, crate::strategy::errors::IMMUTABLE);
            }
        }
    },
    ..PLAIN
};

fn series(object: &Value, out: &mut Errors) {
    if !has(object, "series") {
        return;
    }
    if int(object, "series.count").unwrap_or(0) < 2 {
        out.invalid(&FieldPath::new("series.count"), "", "should be at least 2");
    }
    if !has(object, "series.lastObservedTime") {
        out.required(&FieldPath::new("series.lastObservedTime"), "");
    }
}

fn legacy(object: &Value, about: &str, controller: &str, note: &str, out: &mut Errors) {
    let namespace = text(object, "metadata.namespace");
    let target = text(at(object, about), "namespace");
    let mismatch = if !has(object, "eventTime") {
        if target.is_empty() { !matches!(namespace, "" | "default") } else { namespace != target }
    } else {
        target.is_empty() && !matches!(namespace, "default" | "kube-system")
    };
    if mismatch {
        out.invalid(&FieldPath::new("involvedObject.namespace"), target, "does not match event.namespace");
    }
    if has(object, "eventTime") {
        let path = FieldPath::new(controller);
        let reporter = text(object, controller);
        if reporter.is_empty() {
            out.required(&path, "");
        }
        out.each(&path, reporter, name::qualified(reporter));
        for field in ["reportingInstance", "action", "reason"] {
            let value = text(object, field);
            if value.is_empty() {
                out.required(&FieldPath::new(field), "");
            }
            if value.len() > 128 {
                out.invalid(&FieldPath::new(field), "", "can have at most 128 characters");
            }
        }
        if text(object, note).len() > 1024 {
            out.invalid(&FieldPath::new("message"), "", "can have at most 1024 characters");
        }
    }
}
