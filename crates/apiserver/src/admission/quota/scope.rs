//! Which objects a quota is about.

use serde_json::Value;

use super::super::pod::{amounts, containers};

/// Whether a quota is about an object. Quotas with scopes are about pods (and, by one scope, claims) only.
pub fn covers(quota: &Value, plural: &str, group: &str, object: &Value) -> bool {
    let scopes = quota["spec"]["scopes"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let terms = quota["spec"]["scopeSelector"]["matchExpressions"].as_array().into_iter().flatten();
    let mut all = scopes.map(|scope| (scope, "Exists", &Value::Null)).chain(terms.map(|term| {
        (term["scopeName"].as_str().unwrap_or_default(), term["operator"].as_str().unwrap_or_default(), &term["values"])
    }));
    let kind = if group.is_empty() { plural } else { "" };
    all.all(|(scope, operator, values)| fits(kind, object, scope, operator, values))
}

fn fits(kind: &str, object: &Value, scope: &str, operator: &str, values: &Value) -> bool {
    match (kind, scope) {
        ("pods", "PriorityClass") => {
            by_value(object["spec"]["priorityClassName"].as_str().unwrap_or_default(), operator, values)
        }
        ("pods", _) => in_scope(object, scope) != (operator == "DoesNotExist"),
        ("persistentvolumeclaims", "VolumeAttributesClass") => {
            by_value(object["spec"]["volumeAttributesClassName"].as_str().unwrap_or_default(), operator, values)
        }
        _ => false,
    }
}

fn by_value(value: &str, operator: &str, values: &Value) -> bool {
    let listed = || values.as_array().into_iter().flatten().any(|one| one == value);
    match operator {
        "In" => !value.is_empty() && listed(),
        "NotIn" => !listed(),
        "DoesNotExist" => value.is_empty(),
        _ => !value.is_empty(),
    }
}

fn in_scope(pod: &Value, scope: &str) -> bool {
    let terminates = pod["spec"]["activeDeadlineSeconds"].as_i64().is_some_and(|seconds| seconds >= 0);
    match scope {
        "Terminating" => terminates,
        "NotTerminating" => !terminates,
        "BestEffort" => is_best_effort(pod),
        "NotBestEffort" => !is_best_effort(pod),
        "CrossNamespacePodAffinity" => crosses_namespaces(pod),
        _ => false,
    }
}

fn is_best_effort(pod: &Value) -> bool {
    let silent = |resources: &Value| {
        ["requests", "limits"].iter().all(|field| {
            amounts(&resources[*field])
                .iter()
                .all(|(name, amount)| !matches!(name.as_str(), "cpu" | "memory") || amount.is_zero())
        })
    };
    silent(&pod["spec"]["resources"])
        && containers(pod, "containers")
            .chain(containers(pod, "initContainers"))
            .all(|container| silent(&container["resources"]))
}

fn crosses_namespaces(pod: &Value) -> bool {
    ["podAffinity", "podAntiAffinity"].iter().any(|kind| {
        let affinity = &pod["spec"]["affinity"][*kind];
        let hard = affinity["requiredDuringSchedulingIgnoredDuringExecution"].as_array().into_iter().flatten();
        let soft = affinity["preferredDuringSchedulingIgnoredDuringExecution"].as_array().into_iter().flatten();
        hard.chain(soft.map(|term| &term["podAffinityTerm"])).any(|term| {
            term["namespaces"].as_array().is_some_and(|list| !list.is_empty()) || !term["namespaceSelector"].is_null()
        })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn scopes_choose_pods() {
        let plain = json!({"spec": {"containers": [{}]}});
        let burst = json!({"spec": {"activeDeadlineSeconds": 5, "priorityClassName": "high", "containers": [{"resources": {"requests": {"cpu": "1"}}}]}});
        let scopes = |list: Value| json!({"spec": {"scopes": list}});
        let class = |operator: &str| json!({"spec": {"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": operator, "values": ["high"]}]}}});
        let table = [
            (scopes(json!([])), true, true),
            (scopes(json!(["BestEffort"])), true, false),
            (scopes(json!(["NotBestEffort"])), false, true),
            (scopes(json!(["Terminating"])), false, true),
            (scopes(json!(["NotTerminating", "BestEffort"])), true, false),
            (class("In"), false, true),
            (class("NotIn"), true, false),
            (class("Exists"), false, true),
            (class("DoesNotExist"), true, false),
        ];
        for (quota, covers_plain, covers_burst) in table {
            assert_eq!(covers(&quota, "pods", "", &plain), covers_plain, "{quota}");
            assert_eq!(covers(&quota, "pods", "", &burst), covers_burst, "{quota}");
        }
        assert!(!covers(&scopes(json!(["BestEffort"])), "secrets", "", &json!({})));
        assert!(covers(&scopes(Value::Null), "secrets", "", &json!({})));
    }
}
