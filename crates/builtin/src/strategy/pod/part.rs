//! Parts of a pod that change through a subresource of their own, and nothing else with them.

use atoll_meta::{FieldError, FieldPath};
use serde_json::Value;

use super::{defaults, validate};
use crate::strategy::errors::Errors;
use crate::strategy::tree::{at, at_mut, items, keep, remove, same, set, text};

const LISTS: [&str; 2] = ["containers", "initContainers"];

/// Leaves of a request to `ephemeralcontainers` only those.
pub fn prepare_ephemeral(new: &mut Value, old: &Value) {
    let given = at(new, "spec.ephemeralContainers").clone();
    rest_from(new, old);
    if given.is_null() {
        remove(new, "spec.ephemeralContainers");
    } else {
        set(new, "spec.ephemeralContainers", given);
    }
}

/// Judges a request to `ephemeralcontainers`: they come and stay as they are.
pub fn validate_ephemeral(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut out = Errors::default();
    validate(new, &mut out);
    if !out.0.is_empty() {
        return out.0;
    }
    let now = items(new, "spec.ephemeralContainers");
    for before in items(old, "spec.ephemeralContainers") {
        let name = text(before, "name");
        let what = match now.iter().find(|container| text(container, "name") == name) {
            None => "removed",
            Some(kept) if !same(kept, before) => "changed",
            Some(_) => continue,
        };
        let why = format!("existing ephemeral containers {name:?} may not be {what}\n");
        out.forbidden(&FieldPath::new("spec.ephemeralContainers"), why);
    }
    out.0
}

/// Leaves of a request to `resize` only what containers ask for.
pub fn prepare_resize(new: &mut Value, old: &Value) {
    let given: Vec<Value> = LISTS.iter().map(|list| at(new, &format!("spec.{list}")).clone()).collect();
    let known = LISTS.iter().zip(&given).all(|(list, given)| {
        let names = |list: &[Value]| list.iter().map(|own| text(own, "name").to_owned()).collect::<Vec<_>>();
        names(given.as_array().map(Vec::as_slice).unwrap_or_default()) == names(items(old, &format!("spec.{list}")))
    });
    rest_from(new, old);
    for (list, given) in LISTS.iter().zip(given) {
        let path = format!("spec.{list}");
        if !known {
            // Told of when it is judged.
            set(new, &path, given);
            continue;
        }
        let asked = given.as_array().map(Vec::as_slice).unwrap_or_default();
        for (container, asked) in at_mut(new, &path).and_then(Value::as_array_mut).into_iter().flatten().zip(asked) {
            keep(container, asked, "resources");
            keep(container, asked, "resizePolicy");
        }
    }
}

/// Judges a request to `resize`.
pub fn validate_resize(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut out = Errors::default();
    let spec = FieldPath::new("spec");
    for list in LISTS {
        let names = |pod| items(pod, &format!("spec.{list}")).iter().map(|own| text(own, "name")).collect::<Vec<_>>();
        if names(new) != names(old) {
            out.forbidden(&spec.child(list), "containers may not be added or removed on resize");
            return out.0;
        }
    }
    validate(new, &mut out);
    let class = defaults::quality(old);
    if defaults::quality(new) != class {
        out.invalid(&spec, class, "Pod QOS Class may not change as a result of resizing");
    }
    for list in LISTS {
        let pairs = items(new, &format!("spec.{list}")).iter().zip(items(old, &format!("spec.{list}")));
        for (index, (now, before)) in pairs.enumerate() {
            removed(&mut out, now, before, &spec.child(list).index(index).child("resources"));
        }
    }
    if out.0.is_empty() && !same(&without_amounts(new), &without_amounts(old)) {
        out.forbidden(&spec, "only cpu and memory resources are mutable");
    }
    out.0
}

/// What a container once asked for it must go on asking for.
fn removed(out: &mut Errors, now: &Value, before: &Value, path: &FieldPath) {
    for part in ["limits", "requests"] {
        let has = |container: &Value, resource: &str| !at(container, &format!("resources.{part}.{resource}")).is_null();
        if ["cpu", "memory"].into_iter().any(|resource| has(before, resource) && !has(now, resource)) {
            out.forbidden(&path.child(part), format!("resource {part} cannot be removed"));
        }
    }
}

/// The spec without what a resize may change.
fn without_amounts(pod: &Value) -> Value {
    let mut spec = at(pod, "spec").clone();
    for list in LISTS {
        for container in at_mut(&mut spec, list).and_then(Value::as_array_mut).into_iter().flatten() {
            remove(container, "resizePolicy");
            for part in ["limits", "requests"] {
                let amounts = at_mut(container, &format!("resources.{part}")).and_then(Value::as_object_mut);
                if let Some(amounts) = amounts {
                    amounts.retain(|resource, _| !matches!(resource.as_str(), "cpu" | "memory"));
                    if amounts.is_empty() {
                        remove(container, &format!("resources.{part}"));
                    }
                }
            }
        }
    }
    spec
}

/// Everything from the old pod; only who manages what is already noted.
fn rest_from(new: &mut Value, old: &Value) {
    let managed = at(new, "metadata.managedFields").clone();
    *new = old.clone(); // a part of it changes
    if !managed.is_null() {
        set(new, "metadata.managedFields", managed);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(containers: Value) -> Value {
        let mut pod = json!({"metadata": {"name": "p"}, "spec": {"containers": containers}});
        defaults::pod(&mut pod);
        pod
    }

    fn resized(from: Value, to: Value) -> (Value, Vec<String>) {
        let (old, mut new) = (pod(from), pod(to));
        prepare_resize(&mut new, &old);
        let faults = validate_resize(&new, &old);
        (new, faults.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_resize_changes_amounts_and_nothing_else() {
        let small = json!([{"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}]);
        let large = json!([{"name": "c", "image": "other", "resources": {"requests": {"cpu": "2", "memory": "1Gi"}}}]);
        let (new, faults) = resized(small.clone(), large);
        assert!(faults.is_empty(), "{faults:?}");
        assert_eq!(new["spec"]["containers"][0]["image"], "i");
        assert_eq!(new["spec"]["containers"][0]["resources"]["requests"], json!({"cpu": "2", "memory": "1Gi"}));
        let table = [
            (
                json!([{"name": "d", "image": "i"}]),
                "spec.containers: Forbidden: containers may not be added or removed on resize",
            ),
            (
                json!([{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1", "ephemeral-storage": "1Gi"}}}]),
                "spec: Forbidden: only cpu and memory resources are mutable",
            ),
            (
                json!([{"name": "c", "image": "i"}]),
                "spec: Invalid value: \"Burstable\": Pod QOS Class may not change as a result of resizing",
            ),
        ];
        for (to, expected) in table {
            assert_eq!(resized(small.clone(), to).1[0], expected);
        }
    }

    #[test]
    fn ephemeral_containers_come_and_stay() {
        let old = pod(json!([{"name": "c", "image": "i"}]));
        let mut one = old.clone();
        one["spec"]["ephemeralContainers"] = json!([{"name": "e", "image": "i"}]);
        one["metadata"]["labels"] = json!({"a": "b"});
        defaults::pod(&mut one);
        prepare_ephemeral(&mut one, &old);
        assert_eq!(one["metadata"].get("labels"), None);
        assert_eq!(validate_ephemeral(&one, &old), []);
        let faults = validate_ephemeral(&old, &one);
        assert!(faults[0].to_string().contains("\"e\" may not be removed"), "{faults:?}");
    }
}
