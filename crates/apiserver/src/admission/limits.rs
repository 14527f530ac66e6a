//! LimitRanges: defaults for what containers request, and bounds for containers, pods and claims.

use std::collections::BTreeSet;

use atoll_meta::{Quantity, Status};
use serde_json::{Value, json};

use super::pod::{Amounts, amounts, containers, quantity, total};
use super::{Operation, Review};

const NOTE: &str = "kubernetes.io/limit-ranger";

fn concerns(review: &Review<'_>) -> bool {
    match review.operation {
        // What pods request changes later only through `resize`.
        Operation::Create => review.is("", "pods") || review.is("", "persistentvolumeclaims"),
        Operation::Update => {
            review.is("", "persistentvolumeclaims") || (is_pod(review) && review.subresource == "resize")
        }
        Operation::Delete | Operation::Connect => false,
    }
}

fn is_pod(review: &Review<'_>) -> bool {
    review.call.kind.group.is_empty() && *review.call.kind.plural == *"pods"
}

/// The limits of all LimitRanges in the namespace.
async fn ranges(review: &Review<'_>) -> Result<Vec<Value>, Status> {
    let snapshot = review.call.hub.snapshot(&review.call.instance).await?;
    let prefix = atoll_meta::Key::prefix("", "limitranges", &review.call.target.namespace);
    let trees = snapshot.range(&prefix, None).map(|(_, entry)| entry.object.tree(entry.modified));
    Ok(trees.flat_map(|range| range["spec"]["limits"].as_array().cloned().unwrap_or_default()).collect())
}

/// Fills in what containers leave open.
pub async fn mutate(review: &Review<'_>, object: &mut Value) -> Result<(), Status> {
    if !concerns(review) || !review.is("", "pods") {
        return Ok(());
    }
    let mut defaults: (Amounts, Amounts) = Default::default();
    for limit in ranges(review).await?.iter().filter(|limit| limit["type"] == "Container") {
        // Where several ranges say something, the first counts.
        merge(&mut defaults.0, amounts(&limit["defaultRequest"]));
        merge(&mut defaults.1, amounts(&limit["default"]));
    }
    if defaults.0.is_empty() && defaults.1.is_empty() {
        return Ok(());
    }
    let mut notes = Vec::new();
    for (field, what) in [("initContainers", "init container"), ("containers", "container")] {
        // Indexing a missing field would leave a null behind.
        for container in
            object.pointer_mut(&format!("/spec/{field}")).and_then(Value::as_array_mut).into_iter().flatten()
        {
            let requested = fill(container, "requests", &defaults.0);
            let limited = fill(container, "limits", &defaults.1);
            let name = container["name"].as_str().unwrap_or_default();
            for (names, kind) in [(requested, "request"), (limited, "limit")] {
                if !names.is_empty() {
                    notes
                        .push(format!("{} {kind} for {what} {name}", names.into_iter().collect::<Vec<_>>().join(", ")));
                }
            }
        }
    }
    if !notes.is_empty() {
        if !object["metadata"]["annotations"].is_object() {
            object["metadata"]["annotations"] = json!({});
        }
        object["metadata"]["annotations"][NOTE] = format!("LimitRanger plugin set: {}", notes.join("; ")).into();
    }
    Ok(())
}

fn merge(into: &mut Amounts, more: Amounts) {
    for (name, amount) in more {
        into.entry(name).or_insert(amount);
    }
}

/// The resources that were filled in.
fn fill(container: &mut Value, field: &str, defaults: &Amounts) -> BTreeSet<String> {
    let mut set = BTreeSet::new();
    for (name, amount) in defaults {
        if container["resources"][field].get(name).is_some() {
            continue;
        }
        for level in [&["resources"][..], &["resources", field][..]] {
            let place = level.iter().fold(&mut *container, |at, key| &mut at[*key]);
            if !place.is_object() {
                *place = json!({});
            }
        }
        container["resources"][field][name] = amount.to_string().into();
        set.insert(name.clone());
    }
    set
}

/// Refuses what is out of bounds.
pub async fn check(review: &Review<'_>, object: &Value) -> Result<(), Status> {
    if !concerns(review) {
        return Ok(());
    }
    let mut problems = Vec::new();
    for limit in ranges(review).await? {
        match (limit["type"].as_str().unwrap_or_default(), is_pod(review)) {
            ("Container", true) => {
                for field in ["containers", "initContainers"] {
                    for container in containers(object, field) {
                        let of = |field: &str| amounts(&container["resources"][field]);
                        bounds(&limit, "Container", &of("requests"), &of("limits"), &mut problems);
                    }
                }
            }
            ("Pod", true) => bounds(&limit, "Pod", &total(object, "requests"), &total(object, "limits"), &mut problems),
            ("PersistentVolumeClaim", false) => {
                claim(&limit, &amounts(&object["spec"]["resources"]["requests"]), &mut problems);
            }
            _ => {}
        }
    }
    let why = match problems.as_slice() {
        [] => return Ok(()),
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    };
    Err(Status::forbidden("", &review.call.kind.plural, &review.name, why))
}

fn bounds(limit: &Value, kind: &str, requests: &Amounts, limits: &Amounts, problems: &mut Vec<String>) {
    for (name, least) in amounts(&limit["min"]) {
        let text = format!("minimum {name} usage per {kind} is {least}");
        match (requests.get(&name), limits.get(&name)) {
            (None, _) => problems.push(format!("{text}.  No request is specified")),
            (Some(request), _) if *request < least => problems.push(format!("{text}, but request is {request}")),
            (_, Some(limit)) if *limit < least => problems.push(format!("{text}, but limit is {limit}")),
            _ => {}
        }
    }
    for (name, most) in amounts(&limit["max"]) {
        let text = format!("maximum {name} usage per {kind} is {most}");
        match (requests.get(&name), limits.get(&name)) {
            (_, None) => problems.push(format!("{text}.  No limit is specified")),
            (_, Some(limit)) if *limit > most => problems.push(format!("{text}, but limit is {limit}")),
            (Some(request), _) if *request > most => problems.push(format!("{text}, but request is {request}")),
            _ => {}
        }
    }
    for (name, ratio) in amounts(&limit["maxLimitRequestRatio"]) {
        let text = format!("{name} max limit to request ratio per {kind} is {ratio}");
        let given = |amounts: &Amounts| amounts.get(&name).copied().filter(|amount| !amount.is_zero());
        match (given(requests), given(limits)) {
            (None, _) => problems.push(format!("{text}, but no request is specified or request is 0")),
            (_, None) => problems.push(format!("{text}, but no limit is specified or limit is 0")),
            (Some(request), Some(limit)) => {
                let observed = limit.as_f64() / request.as_f64();
                if observed > ratio.as_f64() {
                    problems.push(format!("{text}, but provided ratio is {observed:.6}"));
                }
            }
        }
    }
}

fn claim(limit: &Value, requests: &Amounts, problems: &mut Vec<String>) {
    for (bound, word) in [("min", "minimum"), ("max", "maximum")] {
        for (name, edge) in limit[bound].as_object().into_iter().flatten() {
            let Some(edge) = quantity(edge) else { continue };
            let text = format!("{word} {name} usage per PersistentVolumeClaim is {edge}");
            let outside = |request: Quantity| if bound == "min" { request < edge } else { request > edge };
            match requests.get(name) {
                None => problems.push(format!("{text}.  No request is specified")),
                Some(request) if outside(*request) => problems.push(format!("{text}, but request is {request}")),
                Some(_) => {}
            }
        }
    }
}
