//! Pods that ask for a runtime class get its overhead and its place; the class must exist.

use atoll_meta::{Key, Status};
use serde_json::{Map, Value};

use super::{Review, pod};

/// Fills in what the class of a pod says.
pub async fn mutate(review: &Review<'_>, object: &mut Value) -> Result<(), Status> {
    if !pod::is_created(review) {
        return Ok(());
    }
    let refuse = |why: String| Err(Status::forbidden("", "pods", &review.name, format!("pod rejected: {why}")));
    let overhead = object["spec"].get("overhead").filter(|own| !own.is_null()).cloned();
    let name = object["spec"]["runtimeClassName"].as_str().unwrap_or_default().to_owned();
    if name.is_empty() {
        return match overhead {
            Some(_) => refuse("Pod Overhead set without corresponding RuntimeClass defined Overhead".into()),
            None => Ok(()),
        };
    }
    let key = Key::new("node.k8s.io", "runtimeclasses", "", &name);
    let Some(entry) = review.call.hub.read(&review.call.instance, key.as_str()).await? else {
        return refuse(format!("RuntimeClass {name:?} not found"));
    };
    let class = entry.object.tree(entry.modified);
    let fixed = class["overhead"]["podFixed"].as_object().map(|map| Value::Object(map.clone()));
    match (&overhead, &fixed) {
        (Some(own), Some(fixed)) if pod::amounts(own) != pod::amounts(fixed) => {
            return refuse("Pod's Overhead doesn't match RuntimeClass's defined Overhead".into());
        }
        (Some(_), None) => {
            return refuse("Pod Overhead set without corresponding RuntimeClass defined Overhead".into());
        }
        (None, Some(fixed)) => object["spec"]["overhead"] = fixed.clone(),
        _ => {}
    }
    match place(object, &class["scheduling"]) {
        Ok(()) => Ok(()),
        Err(why) => refuse(why),
    }
}

/// Adds the class's node selector and tolerations.
fn place(object: &mut Value, scheduling: &Value) -> Result<(), String> {
    if let Some(wanted) = scheduling["nodeSelector"].as_object().filter(|wanted| !wanted.is_empty()) {
        let mut selector: Map<String, Value> = object["spec"]["nodeSelector"].as_object().cloned().unwrap_or_default();
        for (label, value) in wanted {
            if let Some(own) = selector.get(label).filter(|own| *own != value) {
                let (ours, theirs) = (own.as_str().unwrap_or_default(), value.as_str().unwrap_or_default());
                return Err(format!(
                    "conflict: runtimeClass.scheduling.nodeSelector[{label}] = {theirs}; pod.spec.nodeSelector[{label}] = {ours}"
                ));
            }
            selector.insert(label.clone(), value.clone());
        }
        object["spec"]["nodeSelector"] = selector.into();
    }
    if let Some(wanted) = scheduling["tolerations"].as_array().filter(|wanted| !wanted.is_empty()) {
        let mut list = object["spec"]["tolerations"].as_array().cloned().unwrap_or_default();
        list.extend(wanted.iter().filter(|one| !list.contains(one)).cloned().collect::<Vec<_>>());
        object["spec"]["tolerations"] = list.into();
    }
    Ok(())
}
