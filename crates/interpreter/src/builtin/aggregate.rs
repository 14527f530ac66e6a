//! How the statuses of members become that of the template.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::field::{get, list, number, replace_status, text};
use super::reflect::{AUTOSCALER, BUDGET, DAEMON_SET, DEPLOYMENT, Field, REPLICA_SET, STATEFUL_SET, put};
use super::{Kind, job};
use crate::status::Item;

/// Sets the template's status from those of the members; whether that changed it.
pub fn aggregate(template: &mut Value, items: &[Item<'_>]) -> bool {
    match Kind::of(template) {
        Some(Kind::Deployment) => workload(template, items, DEPLOYMENT),
        Some(Kind::StatefulSet) => workload(template, items, STATEFUL_SET),
        Some(Kind::ReplicaSet) => workload(template, items, REPLICA_SET),
        Some(Kind::DaemonSet) => workload(template, items, DAEMON_SET),
        Some(Kind::HorizontalPodAutoscaler) => autoscaler(template, items),
        Some(Kind::Job) => job::aggregate(template, items),
        Some(Kind::CronJob) => cron_job(template, items),
        Some(Kind::Service) if template["spec"]["type"] != "LoadBalancer" => false,
        Some(Kind::Service | Kind::Ingress) => load_balancer(template, items),
        Some(Kind::Pod) => pod(template, items),
        Some(Kind::PersistentVolume) => volume(template, items),
        Some(Kind::PersistentVolumeClaim) => claim(template, items),
        Some(Kind::PodDisruptionBudget) => budget(template, items),
        _ => false,
    }
}

fn old_status(template: &Value) -> Map<String, Value> {
    template["status"].as_object().cloned().unwrap_or_default()
}

/// The sum of a field over all members.
pub fn sum(items: &[Item<'_>], field: &str) -> i64 {
    reported(items).fold(0, |sum, (_, status)| sum.saturating_add(number(status, field)))
}

/// The members that reported something.
pub fn reported<'a>(items: &'a [Item<'_>]) -> impl Iterator<Item = (&'a str, &'a Value)> {
    items.iter().filter_map(|(member, status)| Some((*member, (*status)?)))
}

fn sums(status: &mut Map<String, Value>, items: &[Item<'_>], fields: &[Field]) {
    for (field, zero) in fields {
        put(status, field, sum(items, field), *zero);
    }
}

fn workload(template: &mut Value, items: &[Item<'_>], fields: &[Field]) -> bool {
    let generation = number(&template["metadata"], "generation");
    let mut status = old_status(template);
    sums(&mut status, items, fields);
    // The template counts as observed when each member has seen this generation of it, or a later one.
    let current = |status: &Value| {
        number(status, "resourceTemplateGeneration") >= generation
            && number(status, "observedGeneration") >= number(status, "generation")
    };
    if items.iter().all(|(_, status)| status.is_some_and(current)) {
        put(&mut status, "observedGeneration", generation, false);
    }
    replace_status(template, status)
}

fn autoscaler(template: &mut Value, items: &[Item<'_>]) -> bool {
    let mut status = Map::new();
    sums(&mut status, items, AUTOSCALER);
    replace_status(template, status)
}

fn cron_job(template: &mut Value, items: &[Item<'_>]) -> bool {
    let mut status = Map::new();
    let active: Vec<Value> = reported(items).flat_map(|(_, status)| list(status, "active")).cloned().collect();
    if !active.is_empty() {
        status.insert("active".to_owned(), active.into());
    }
    for field in ["lastScheduleTime", "lastSuccessfulTime"] {
        let newest = reported(items).filter_map(|(_, status)| text(status, field)).max_by(|a, b| compare_times(a, b));
        if let Some(newest) = newest {
            status.insert(field.to_owned(), newest.into());
        }
    }
    replace_status(template, status)
}

/// Which of two times is earlier; what is no time is earlier than any.
pub fn compare_times(a: &str, b: &str) -> Ordering {
    atoll_meta::time::parse(a).cmp(&atoll_meta::time::parse(b))
}

/// Addresses of members once each, with all their ports: those with a name first.
fn load_balancer(template: &mut Value, items: &[Item<'_>]) -> bool {
    let mut all: BTreeMap<_, (Value, Vec<Value>)> = BTreeMap::new();
    for entry in reported(items).flat_map(|(_, status)| list(&status["loadBalancer"], "ingress")) {
        let part = |field| text(entry, field).unwrap_or_default().to_owned();
        let (host, mode) = (part("hostname"), part("ipMode"));
        let key = (host.is_empty(), host, part("ip"), mode.is_empty(), mode);
        let (_, ports) = all.entry(key).or_insert_with(|| (entry.clone(), Vec::new()));
        for port in list(entry, "ports") {
            if !ports.contains(port) {
                ports.push(port.clone());
            }
        }
    }
    let joined: Vec<Value> = all.into_values().map(with_ports).collect();
    let addresses = if joined.is_empty() { json!({}) } else { json!({"ingress": joined}) };
    replace_status(template, Map::from_iter([("loadBalancer".to_owned(), addresses)]))
}

fn with_ports((mut entry, mut ports): (Value, Vec<Value>)) -> Value {
    let part = |port: &Value, field| text(port, field).unwrap_or_default().to_owned();
    ports.sort_by_key(|port| (number(port, "port"), part(port, "protocol"), part(port, "error")));
    if !ports.is_empty() {
        entry["ports"] = ports.into();
    }
    entry
}

/// The first of these phases that some member is in.
fn first_phase(items: &[Item<'_>], order: &[&'static str]) -> Option<&'static str> {
    // Who has not reported yet is still at the beginning.
    let phase = |status: &Option<&Value>| {
        status.map_or("Pending", |status| text(status, "phase").unwrap_or_default()).to_owned()
    };
    let phases: Vec<String> = items.iter().map(|(_, status)| phase(status)).collect();
    order.iter().copied().find(|wanted| phases.iter().any(|phase| phase == wanted))
}

fn pod(template: &mut Value, items: &[Item<'_>]) -> bool {
    if items.is_empty() {
        return false;
    }
    let mut status = Map::new();
    if let Some(phase) = first_phase(items, &["Failed", "Pending", "Running", "Succeeded"]) {
        status.insert("phase".to_owned(), phase.into());
    }
    for field in ["containerStatuses", "initContainerStatuses"] {
        let all: Vec<Value> = reported(items).flat_map(|(_, status)| list(status, field)).map(container).collect();
        if !all.is_empty() {
            status.insert(field.to_owned(), all.into());
        }
    }
    replace_status(template, status)
}

/// What of a container makes sense without the node it runs on.
fn container(status: &Value) -> Value {
    json!({
        "name": text(status, "name").unwrap_or_default(),
        "image": text(status, "image").unwrap_or_default(),
        "imageID": text(status, "imageID").unwrap_or_default(),
        "ready": status["ready"].as_bool().unwrap_or_default(),
        "restartCount": number(status, "restartCount"),
        "state": get(status, &["state"]).cloned().unwrap_or_else(|| json!({})),
        "lastState": {},
    })
}

fn volume(template: &mut Value, items: &[Item<'_>]) -> bool {
    let phase = first_phase(items, &["Failed", "Pending", "Available", "Bound", "Released"]);
    let status: Map<String, Value> = phase.map(|phase| ("phase".to_owned(), phase.into())).into_iter().collect();
    (!status.is_empty() || template["status"].is_object()) && replace_status(template, status)
}

fn claim(template: &mut Value, items: &[Item<'_>]) -> bool {
    let mut phase = "Bound";
    let mut seen = false;
    for (_, status) in reported(items) {
        seen = true;
        match text(status, "phase").unwrap_or_default() {
            "Lost" => {
                phase = "Lost";
                break;
            }
            "Bound" => {}
            other => phase = other,
        }
    }
    // Nobody has reported: nothing is bound yet.
    seen && replace_status(template, Map::from_iter([("phase".to_owned(), phase.into())]))
}

fn budget(template: &mut Value, items: &[Item<'_>]) -> bool {
    let mut status = Map::new();
    sums(&mut status, items, BUDGET);
    let mut disrupted = Map::new();
    for (member, report) in reported(items) {
        for (pod, at) in report["disruptedPods"].as_object().into_iter().flatten() {
            disrupted.insert(format!("{member}/{pod}"), at.clone());
        }
    }
    if !disrupted.is_empty() {
        status.insert("disruptedPods".to_owned(), disrupted.into());
    }
    replace_status(template, status)
}
