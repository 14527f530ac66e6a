//! What a Job makes of failed pods and of indexes that succeeded.

use std::collections::BTreeSet;

use serde_json::Value;

use super::indexes;
use crate::pod::Pod;

/// What a failed pod means.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Judgement {
    /// One failure more.
    Count,
    /// Nothing.
    Ignore,
    /// The end of its index.
    FailIndex,
    /// The end of the Job, and why.
    FailJob(String),
}

/// Judges a failed pod by the first rule that fits.
pub fn judge(job: &Value, pod: &Pod) -> Judgement {
    let rules = job["spec"]["podFailurePolicy"]["rules"].as_array();
    if rules.is_none() {
        return Judgement::Count;
    }
    let tree = pod.item.tree();
    for (at, rule) in rules.into_iter().flatten().enumerate() {
        let Some(what) = fits(rule, &tree) else { continue };
        return match rule["action"].as_str() {
            Some("Ignore") => Judgement::Ignore,
            Some("FailIndex") => Judgement::FailIndex,
            Some("FailJob") => {
                let meta = &tree["metadata"];
                let (namespace, name) =
                    (meta["namespace"].as_str().unwrap_or_default(), meta["name"].as_str().unwrap_or_default());
                Judgement::FailJob(
                    what.replace("{pod}", &format!("{namespace}/{name}")).replace("{rule}", &at.to_string()),
                )
            }
            _ => Judgement::Count,
        };
    }
    Judgement::Count
}

/// Whether a rule fits; returns the words for the message.
fn fits(rule: &Value, pod: &Value) -> Option<String> {
    if let Some(codes) = rule["onExitCodes"].as_object() {
        let only = codes.get("containerName").and_then(Value::as_str);
        let values: Vec<i64> = codes["values"].as_array().into_iter().flatten().filter_map(Value::as_i64).collect();
        let inside = codes["operator"] == "In";
        let lists = ["containerStatuses", "initContainerStatuses"];
        for status in lists.iter().flat_map(|list| pod["status"][*list].as_array().into_iter().flatten()) {
            let name = status["name"].as_str().unwrap_or_default();
            let Some(exit) = status["state"]["terminated"]["exitCode"].as_i64().filter(|exit| *exit != 0) else {
                continue;
            };
            if only.is_none_or(|only| only == name) && values.contains(&exit) == inside {
                return Some(format!(
                    "Container {name} for pod {{pod}} failed with exit code {exit} matching FailJob rule at index {{rule}}"
                ));
            }
        }
        return None;
    }
    for pattern in rule["onPodConditions"].as_array().into_iter().flatten() {
        let wanted = pattern["status"].as_str().unwrap_or("True");
        let found =
            pod["status"]["conditions"].as_array().into_iter().flatten().find(|one| one["type"] == pattern["type"]);
        if found.is_some_and(|one| one["status"] == wanted) {
            let kind = pattern["type"].as_str().unwrap_or_default();
            return Some(format!("Pod {{pod}} has condition {kind} matching FailJob rule at index {{rule}}"));
        }
    }
    None
}

/// Whether a rule of the success policy is met; returns the words for the message.
pub fn success(job: &Value, done: &BTreeSet<i64>) -> Option<String> {
    for (at, rule) in job["spec"]["successPolicy"]["rules"].as_array().into_iter().flatten().enumerate() {
        let among = rule["succeededIndexes"].as_str().map(indexes::parse);
        let count = among.as_ref().map_or(done.len(), |wanted| done.intersection(wanted).count());
        let needed = rule["succeededCount"].as_u64().and_then(|n| usize::try_from(n).ok());
        let enough = match (needed, &among) {
            (Some(needed), _) => count >= needed,
            (None, Some(wanted)) => count == wanted.len(),
            (None, None) => false,
        };
        if enough {
            return Some(format!("Matched rules at index {at}"));
        }
    }
    None
}
