//! Bindings of objects that go along with others.

use std::collections::BTreeSet;

use atoll_api::names;
use atoll_api::policy::ConflictResolution;
use atoll_api::words::label;
use atoll_api::work::BindingSnapshot;
use atoll_interpreter::{Interpreter, ObjectRef};
use serde_json::Value;

use crate::binding::{self, Binding, Meaning};

/// Finalizers, labels and annotations of a binding that takes dependencies along.
pub fn announce(binding: &mut Binding, dependencies: &[ObjectRef]) {
    let text = serde_json::to_string(dependencies).unwrap_or_default();
    binding.annotate(atoll_api::words::annotation::DEPENDENCIES, text);
    let own = atoll_api::words::finalizer::DEPENDENCIES.to_owned();
    let finalizers = binding.metadata.finalizers.get_or_insert_default();
    if !finalizers.contains(&own) {
        finalizers.push(own);
    }
}

/// What a binding says it takes along.
pub fn announced(binding: &Binding) -> Vec<ObjectRef> {
    let text = binding.annotation(atoll_api::words::annotation::DEPENDENCIES);
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// Ties the binding of a dependency to the binding it goes along with.
pub fn attach(
    template: &Value,
    existing: Option<&Binding>,
    parent: &Binding,
    interpreter: &Interpreter,
    id: impl FnOnce() -> String,
) -> Result<Binding, atoll_interpreter::Error> {
    let mut child = binding::bare(template, existing, id);
    binding::describe(&mut child, &Meaning::of(template, interpreter)?);
    let key = parent.key();
    let tie = names::depended_by_label(&key.namespace, &key.name);
    child.metadata.labels.get_or_insert_default().insert(tie, parent.id().unwrap_or_default().to_owned());
    let snapshot = BindingSnapshot {
        namespace: key.namespace.to_string(),
        name: key.name.to_string(),
        clusters: parent.spec.clusters.clone(),
    };
    match child.spec.required_by.iter_mut().find(|other| is_same(other, &snapshot)) {
        Some(other) => *other = snapshot,
        None => child.spec.required_by.push(snapshot),
    }
    if !is_independent(&child) {
        // Among parents that disagree, taking over beats leaving alone and keeping beats removing.
        if parent.spec.conflict_resolution == ConflictResolution::Overwrite {
            child.spec.conflict_resolution = ConflictResolution::Overwrite;
        }
        if parent.spec.preserve_resources_on_deletion == Some(true) {
            child.spec.preserve_resources_on_deletion = Some(true);
        }
    }
    Ok(child)
}

fn is_same(one: &BindingSnapshot, other: &BindingSnapshot) -> bool {
    one.namespace == other.namespace && one.name == other.name
}

/// Whether a binding has a policy of its own.
pub fn is_independent(binding: &Binding) -> bool {
    binding.is_managed()
}

/// Unties a binding from one it went along with; `None` when nothing holds it any more. One with clusters of its own was
/// placed by a policy that is gone, which leaves copies where they are.
pub fn detach(child: &Binding, parent_namespace: &str, parent_name: &str) -> Option<Binding> {
    let mut child = child.clone();
    child.spec.required_by.retain(|other| !(other.namespace == parent_namespace && other.name == parent_name));
    if let Some(labels) = &mut child.metadata.labels {
        labels.remove(&names::depended_by_label(parent_namespace, parent_name));
    }
    let held = is_independent(&child) || !child.spec.required_by.is_empty() || !child.spec.clusters.is_empty();
    held.then_some(child)
}

/// The ids of the bindings one goes along with, from its labels.
pub fn parents(labels: &[(Box<str>, Box<str>)]) -> BTreeSet<&str> {
    labels.iter().filter(|(key, _)| key.starts_with(label::DEPENDED_BY_PREFIX)).map(|(_, id)| &**id).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn parent(name: &str, clusters: &[&str], overwrite: bool) -> Binding {
        let clusters: Vec<Value> = clusters.iter().map(|name| json!({"name": name})).collect();
        let conflict = if overwrite { "Overwrite" } else { "Abort" };
        serde_json::from_value(json!({"metadata": {"name": name, "namespace": "default", "labels": {label::BINDING_ID: format!("id-{name}")}},
            "spec": {"resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}, "clusters": clusters, "conflictResolution": conflict}}))
        .unwrap()
    }

    #[test]
    fn a_dependency_goes_where_any_of_its_parents_goes_until_the_last_lets_go() {
        let template = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default", "uid": "u"}});
        let interpreter = Interpreter::default();
        let (one, two) = (parent("one", &["m1"], false), parent("two", &["m2"], true));
        let child = attach(&template, None, &one, &interpreter, || "cid".to_owned()).unwrap();
        assert_eq!(child.targets().keys().copied().collect::<Vec<_>>(), ["m1"]);
        let child = attach(&template, Some(&child), &two, &interpreter, || "other".to_owned()).unwrap();
        assert_eq!(child.targets().keys().copied().collect::<Vec<_>>(), ["m1", "m2"]);
        assert_eq!(child.spec.conflict_resolution, ConflictResolution::Overwrite);
        assert_eq!(child.id(), Some("cid"));
        let child = detach(&child, "default", "one").unwrap();
        assert_eq!(child.targets().keys().copied().collect::<Vec<_>>(), ["m2"]);
        assert_eq!(detach(&child, "default", "two"), None);
        let mut own = child;
        own.metadata.labels.as_mut().unwrap().insert(label::POLICY_ID.to_owned(), "p".to_owned());
        assert!(detach(&own, "default", "two").is_some(), "its own policy keeps it");
        own.metadata.labels.as_mut().unwrap().remove(label::POLICY_ID);
        own.spec.clusters = two.spec.clusters.clone();
        assert!(detach(&own, "default", "two").is_some(), "what a policy that is gone has placed stays");
    }

    #[test]
    fn what_is_taken_along_is_written_down() {
        let mut binding = parent("one", &[], false);
        let list = vec![ObjectRef::named("v1", "ConfigMap", "default", "c")];
        announce(&mut binding, &list);
        announce(&mut binding, &list);
        assert_eq!(announced(&binding), list);
        assert_eq!(binding.metadata.finalizers.unwrap().len(), 1);
    }
}
