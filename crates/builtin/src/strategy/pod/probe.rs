//! Judging probes and lifecycle handlers.

use atoll_meta::FieldPath;
use serde_json::Value;

use crate::strategy::errors::Errors;
use crate::strategy::name;
use crate::strategy::tree::{at, has, int, items, text};

/// The three probes of a container.
pub(super) fn all(out: &mut Errors, container: &Value, grace: Option<i64>, path: &FieldPath) {
    for field in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let probe = at(container, field);
        if probe.is_null() {
            continue;
        }
        let here = path.child(field);
        one(out, probe, grace, &here);
        if field == "readinessProbe" {
            if has(probe, "terminationGracePeriodSeconds") {
                let value = at(probe, "terminationGracePeriodSeconds").clone();
                out.invalid(&here.child("terminationGracePeriodSeconds"), value, "must not be set for readinessProbes");
            }
        } else if int(probe, "successThreshold").is_some_and(|threshold| threshold != 1) {
            out.invalid(&here.child("successThreshold"), at(probe, "successThreshold").clone(), "must be 1");
        }
    }
}

fn one(out: &mut Errors, probe: &Value, grace: Option<i64>, path: &FieldPath) {
    handler(out, probe, grace, path);
    for field in ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"] {
        out.not_negative(path, probe, field);
    }
    out.positive(path, probe, "terminationGracePeriodSeconds");
}

/// Exactly one way to act must be given.
pub(super) fn handler(out: &mut Errors, handler: &Value, grace: Option<i64>, path: &FieldPath) {
    let mut found = false;
    for kind in ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] {
        let action = at(handler, kind);
        if action.is_null() {
            continue;
        }
        let here = path.child(kind);
        if found {
            out.forbidden(&here, "may not specify more than 1 handler type");
            continue;
        }
        found = true;
        match kind {
            "exec" => {
                if items(action, "command").is_empty() {
                    out.required(&here.child("command"), "");
                }
            }
            "httpGet" => http_get(out, action, &here),
            "sleep" => {
                let seconds = int(action, "seconds").unwrap_or(0);
                if let Some(grace) = grace.filter(|grace| seconds < 0 || seconds > *grace) {
                    let detail = format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
                    out.invalid(&here, seconds, detail);
                }
            }
            _ => out.port_or_name(&here.child("port"), at(action, "port")),
        }
    }
    if !found {
        out.required(path, "must specify a handler type");
    }
}

fn http_get(out: &mut Errors, action: &Value, path: &FieldPath) {
    if text(action, "path").is_empty() {
        out.required(&path.child("path"), "");
    }
    out.port_or_name(&path.child("port"), at(action, "port"));
    out.one_of(path, action, "scheme", &["HTTP", "HTTPS"]);
    for header in items(action, "httpHeaders") {
        let own = text(header, "name");
        out.each(&path.child("httpHeaders"), own, name::header(own));
    }
}
