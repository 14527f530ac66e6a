//! Resource amounts in trees: canonical text, comparison, rules of resource names.

use atoll_meta::FieldPath;
use atoll_meta::quantity::Quantity;
use serde_json::Value;

use super::errors::{Errors, NOT_NEGATIVE};
use super::name;

const STANDARD: &[&str] = &[
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "storage",
    "requests.storage",
    "services.nodeports",
    "services.loadbalancers",
];

/// Resources that come in whole pieces only.
const WHOLE: &[&str] = &[
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

/// Reads an amount given as text or number.
pub(crate) fn read(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => Quantity::parse(text).ok(),
        Value::Number(number) => Quantity::parse(&number.to_string()).ok(),
        _ => None,
    }
}

/// Writes an amount the canonical way; what cannot be read stays.
pub(crate) fn canonize(value: &mut Value) {
    if let Some(amount) = read(value) {
        *value = Value::String(amount.to_string());
    }
}

/// Writes every amount of a map the canonical way, at most in thousandths.
pub(crate) fn canonize_map(map: Option<&mut Value>) {
    for value in map.and_then(Value::as_object_mut).into_iter().flat_map(|map| map.values_mut()) {
        if let Some(amount) = read(value) {
            let milli = Quantity::from_milli(amount.milli_value()).with_format(amount.format());
            // Only round where there is something below a thousandth.
            let shown = if milli == amount { amount } else { milli };
            *value = Value::String(shown.to_string());
        }
    }
}

fn huge_page(resource: &str) -> bool {
    resource.starts_with("hugepages-")
}

fn native(resource: &str) -> bool {
    !resource.contains('/') || resource.contains("kubernetes.io/")
}

fn extended(resource: &str) -> bool {
    !native(resource)
        && !resource.starts_with("requests.")
        && name::qualified(&format!("requests.{resource}")).is_empty()
}

/// May more of the resource be requested in total than there is?
pub(crate) fn overcommit(resource: &str) -> bool {
    native(resource) && !huge_page(resource)
}

/// A resource name as such.
pub(crate) fn resource_name(out: &mut Errors, path: &FieldPath, resource: &str) -> bool {
    let faults = name::qualified(resource);
    if !faults.is_empty() {
        out.each(path, resource, faults);
        return false;
    }
    if !resource.contains('/') && !STANDARD.contains(&resource) && !quota_huge_page(resource) {
        out.invalid(path, resource, "must be a standard resource type or fully qualified");
        return false;
    }
    true
}

fn quota_huge_page(resource: &str) -> bool {
    huge_page(resource) || resource.starts_with("requests.hugepages-")
}

/// May a quota limit the resource?
pub(crate) fn for_quota(resource: &str) -> bool {
    STANDARD.contains(&resource) && resource != "storage" || quota_huge_page(resource)
}

/// A resource a container may ask for.
pub(crate) fn container_resource_name(out: &mut Errors, path: &FieldPath, resource: &str) {
    resource_name(out, path, resource);
    if !resource.contains('/') {
        if !matches!(resource, "cpu" | "memory" | "ephemeral-storage") && !huge_page(resource) {
            out.invalid(path, resource, "must be a standard resource for containers");
        }
    } else if !native(resource) && !extended(resource) {
        out.invalid(path, resource, "doesn't follow extended resource name standard");
    }
}

/// The amount of a resource: not negative, whole where it must be.
pub(crate) fn resource_value(out: &mut Errors, path: &FieldPath, resource: &str, value: &Value) {
    let Some(amount) = read(value) else { return };
    not_negative(out, path, amount);
    if (WHOLE.contains(&resource) || extended(resource)) && amount.milli_value() % 1000 != 0 {
        out.invalid(path, amount.to_string(), "must be an integer");
    }
}

/// An amount may not be below zero.
pub(crate) fn not_negative(out: &mut Errors, path: &FieldPath, amount: Quantity) {
    if amount.is_negative() {
        out.invalid(path, amount.to_string(), NOT_NEGATIVE);
    }
}

/// Requests and limits of a container.
pub(crate) fn requirements(out: &mut Errors, resources: &Value, path: &FieldPath) {
    let (limits, requests) = (path.child("limits"), path.child("requests"));
    let (mut plain, mut huge) = (false, false);
    for (resource, value) in super::entries(resources, "limits") {
        let here = limits.key(resource);
        container_resource_name(out, &here, resource);
        resource_value(out, &here, resource, value);
        plain |= matches!(resource.as_str(), "cpu" | "memory");
        huge |= huge_page(resource);
    }
    for (resource, value) in super::entries(resources, "requests") {
        let here = requests.key(resource);
        container_resource_name(out, &here, resource);
        resource_value(out, &here, resource, value);
        plain |= matches!(resource.as_str(), "cpu" | "memory");
        huge |= huge_page(resource);
        let Some(wanted) = read(value) else { continue };
        match super::at(resources, "limits").get(resource).and_then(read) {
            Some(limit) if wanted != limit && !overcommit(resource) => {
                let detail = format!("must be equal to {resource} limit of {limit}");
                out.invalid(&requests, wanted.to_string(), detail);
            }
            Some(limit) if wanted > limit => {
                let detail = format!("must be less than or equal to {resource} limit of {limit}");
                out.invalid(&requests, wanted.to_string(), detail);
            }
            None if !overcommit(resource) => {
                out.required(&limits, "Limit must be set for non overcommitable resources");
            }
            _ => {}
        }
    }
    if huge && !plain {
        out.forbidden(path, "HugePages require cpu or memory");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn faults(resources: &Value) -> Vec<String> {
        let mut out = Errors::default();
        requirements(&mut out, resources, &FieldPath::new("r"));
        out.0.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn amounts_become_canonical() {
        let mut map = json!({"cpu": 1.5, "memory": "1024Ki", "x": "junk", "tiny": "100u"});
        canonize_map(Some(&mut map));
        assert_eq!(map, json!({"cpu": "1500m", "memory": "1Mi", "x": "junk", "tiny": "1m"}));
    }

    #[test]
    fn requirements_are_judged() {
        let cases = [
            (
                json!({"limits": {"cpu": "1"}, "requests": {"cpu": "500m", "example.com/gpu": "1"}}),
                vec!["r.limits: Required value: Limit must be set for non overcommitable resources"],
            ),
            (
                json!({"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}),
                vec!["r.requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1"],
            ),
            (
                json!({"limits": {"cpu": "-1"}}),
                vec!["r.limits[cpu]: Invalid value: \"-1\": must be greater than or equal to 0"],
            ),
            (
                json!({"limits": {"example.com/gpu": "1500m"}}),
                vec!["r.limits[example.com/gpu]: Invalid value: \"1500m\": must be an integer"],
            ),
            (
                json!({"limits": {"storage": "1"}}),
                vec!["r.limits[storage]: Invalid value: \"storage\": must be a standard resource for containers"],
            ),
            (json!({"limits": {"hugepages-2Mi": "4Mi"}}), vec!["r: Forbidden: HugePages require cpu or memory"]),
            (json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"memory": "1Gi"}}), vec![]),
        ];
        for (resources, expected) in cases {
            assert_eq!(faults(&resources), expected, "{resources}");
        }
    }
}
