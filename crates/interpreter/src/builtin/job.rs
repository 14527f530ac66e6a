//! How the statuses of a Job in members become that of the template.

use serde_json::{Map, Value, json};

use super::aggregate::{compare_times, reported, sum};
use super::field::{list, replace_status, text};
use super::reflect::{JOB, put};
use crate::status::Item;

/// Whether a condition of this type holds.
fn holds<'a>(status: &'a Value, wanted: &str) -> Option<&'a Value> {
    list(status, "conditions").find(|condition| condition["type"] == wanted && condition["status"] == "True")
}

/// Sets the status of a Job; a finished one stays as it is.
pub fn aggregate(template: &mut Value, items: &[Item<'_>]) -> bool {
    let old = &template["status"];
    if holds(old, "Complete").is_some() || holds(old, "Failed").is_some() {
        return false;
    }
    let mut status = Map::new();
    for (field, zero) in JOB {
        put(&mut status, field, sum(items, field), *zero);
    }
    let mut conditions = failed(items);
    conditions.extend(completed(items));
    if !conditions.is_empty() {
        status.insert("conditions".to_owned(), conditions.into());
    }
    let started = text(old, "startTime").map(ToOwned::to_owned);
    if let Some(time) = started.or_else(|| everywhere(items, "startTime").map(|times| earliest(&times).to_owned())) {
        status.insert("startTime".to_owned(), time.into());
    }
    if let Some(times) = everywhere(items, "completionTime") {
        status.insert("completionTime".to_owned(), latest(&times).into());
    }
    replace_status(template, status)
}

/// The times of all members; `None` while one is missing.
fn everywhere<'a>(items: &'a [Item<'_>], field: &str) -> Option<Vec<&'a str>> {
    let times: Vec<&str> = reported(items).filter_map(|(_, status)| text(status, field)).collect();
    (!times.is_empty() && times.len() == items.len()).then_some(times)
}

fn earliest<'a>(times: &[&'a str]) -> &'a str {
    times.iter().copied().min_by(|a, b| compare_times(a, b)).unwrap_or_default()
}

fn latest<'a>(times: &[&'a str]) -> &'a str {
    times.iter().copied().max_by(|a, b| compare_times(a, b)).unwrap_or_default()
}

/// How a member's Job ended: the first of the two conditions that holds.
fn end(status: &Value) -> Option<&str> {
    list(status, "conditions")
        .filter(|condition| condition["status"] == "True")
        .filter_map(|condition| condition["type"].as_str())
        .find(|kind| matches!(*kind, "Complete" | "Failed"))
}

fn failed(items: &[Item<'_>]) -> Vec<Value> {
    let members: Vec<&str> =
        reported(items).filter(|(_, status)| end(status) == Some("Failed")).map(|(member, _)| member).collect();
    if members.is_empty() {
        return Vec::new();
    }
    let message = format!("Job executed failed in member clusters {}", members.join(","));
    let mut conditions = Vec::new();
    // API servers want to hear of the failure before they hear of the end.
    if reported(items).any(|(_, status)| holds(status, "FailureTarget").is_some()) {
        conditions.push(condition(items, "FailureTarget", "JobFailed", &message));
    }
    conditions.push(condition(items, "Failed", "JobFailed", &message));
    conditions
}

fn completed(items: &[Item<'_>]) -> Vec<Value> {
    let all = |wanted: &str, test: &dyn Fn(&Value, &str) -> bool| {
        !items.is_empty() && items.iter().all(|(_, status)| status.is_some_and(|status| test(status, wanted)))
    };
    if !all("Complete", &|status, wanted| end(status) == Some(wanted)) {
        return Vec::new();
    }
    let mut conditions = vec![condition(items, "Complete", "Completed", "Job completed")];
    if all("SuccessCriteriaMet", &|status, wanted| holds(status, wanted).is_some()) {
        let message = "All member clusters have met success criteria";
        conditions.push(condition(items, "SuccessCriteriaMet", "CompletionsReached", message));
    }
    conditions
}

/// A condition that holds since it holds in the last member, so that it reads the same each time.
fn condition(items: &[Item<'_>], kind: &str, reason: &str, message: &str) -> Value {
    let mut made = json!({"type": kind, "status": "True", "reason": reason, "message": message});
    for field in ["lastProbeTime", "lastTransitionTime"] {
        let times: Vec<&str> = reported(items).filter_map(|(_, status)| text(holds(status, kind)?, field)).collect();
        if !times.is_empty() {
            made[field] = latest(&times).into();
        }
    }
    made
}
