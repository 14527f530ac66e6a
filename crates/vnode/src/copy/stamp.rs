//! The marks on an original that has copies.

use atoll_api::kubeocean_names::{
    MANAGED_BY, PREFIX, annotation, deleting_annotation, label, object_finalizer, synced_by_label,
};
use serde_json::{Value, json};

use super::thing::Thing;
use crate::tree;

/// On an original, with a cluster id behind it: the uid of another binding's copy that this one uses too.
pub(crate) const SHARED_BY: &str = "atoll.io/shared-by-";

/// Whether an original is to lose its copy in this worker cluster.
pub(crate) fn is_leaving(original: &Value, cluster_id: &str) -> bool {
    tree::is_deleting(original) || !tree::annotation(original, &deleting_annotation(cluster_id)).is_empty()
}

/// Whether another binding has a copy of an original.
pub(crate) fn is_copied_by_others(original: &Value, cluster_id: &str) -> bool {
    let own = synced_by_label(cluster_id);
    tree::labels(original).keys().any(|key| key.starts_with(&synced_by_label("")) && *key != own)
}

/// Whether another binding uses this very copy of an original.
pub(crate) fn is_shared(original: &Value, copy: &Value, cluster_id: &str) -> bool {
    let labels = tree::labels(original);
    tree::annotations(original).iter().any(|(key, uid)| {
        key.strip_prefix(SHARED_BY)
            .is_some_and(|id| id != cluster_id && uid == tree::uid(copy) && labels.contains_key(&synced_by_label(id)))
    })
}

/// The patch that marks an original; `None` if it is marked. `shared` is the uid of a copy that another binding made.
pub(crate) fn stamp(
    thing: &Thing,
    original: &Value,
    cluster_id: &str,
    mount: &str,
    shared: Option<&str>,
) -> Result<Option<Value>, String> {
    let (name, known) = (thing.physical(), tree::annotation(original, annotation::PHYSICAL_NAME));
    if !known.is_empty() && known != name {
        return Err(format!("{} says that its copy is named {known}, not {name}", thing.title()));
    }
    let mut wanted = original.clone();
    wanted["metadata"]["labels"][label::MANAGED_BY] = MANAGED_BY.into();
    wanted["metadata"]["labels"][synced_by_label(cluster_id)] = "true".into();
    wanted["metadata"]["annotations"][annotation::PHYSICAL_NAME] = name.into();
    // One original may have copies in several workers, in namespaces of different names.
    if tree::annotation(original, annotation::PHYSICAL_NAMESPACE).is_empty() && thing.above().is_some() {
        wanted["metadata"]["annotations"][annotation::PHYSICAL_NAMESPACE] = mount.into();
    }
    if let Some(uid) = shared {
        wanted["metadata"]["annotations"][format!("{SHARED_BY}{cluster_id}")] = uid.into();
    }
    let finalizer = object_finalizer(cluster_id);
    if !tree::has_finalizer(original, &finalizer) {
        let mut finalizers = tree::list(&original["metadata"]["finalizers"]).to_vec();
        finalizers.push(finalizer.into());
        wanted["metadata"]["finalizers"] = finalizers.into();
    }
    Ok(patch(original, &wanted))
}

/// The patch that takes the marks of one worker cluster off; `None` if there are none.
pub(crate) fn unstamp(original: &Value, cluster_id: &str) -> Option<Value> {
    let rest = tree::finalizers_without(original, &object_finalizer(cluster_id));
    let others = rest.iter().filter_map(Value::as_str).any(|own| own.starts_with(&format!("{PREFIX}finalizer-")));
    let mut labels = tree::labels(original);
    let mut annotations = tree::annotations(original);
    labels.remove(&synced_by_label(cluster_id));
    annotations.remove(&deleting_annotation(cluster_id));
    annotations.remove(&format!("{SHARED_BY}{cluster_id}"));
    if !others {
        for key in [label::MANAGED_BY, label::USED_BY_PV] {
            labels.remove(key);
        }
        for key in [annotation::PHYSICAL_NAME, annotation::PHYSICAL_NAMESPACE] {
            annotations.remove(key);
        }
    }
    let mut wanted = original.clone();
    wanted["metadata"]["labels"] = json!(labels);
    wanted["metadata"]["annotations"] = json!(annotations);
    wanted["metadata"]["finalizers"] = rest.into();
    let empty = |field: &str| original["metadata"][field].is_null();
    for field in ["labels", "annotations", "finalizers"] {
        if empty(field) {
            wanted["metadata"].as_object_mut().map(|map| map.remove(field));
        }
    }
    patch(original, &wanted)
}

/// Lists of finalizers are replaced as a whole, so nobody may have changed them meanwhile.
fn patch(original: &Value, wanted: &Value) -> Option<Value> {
    let mut patch = tree::difference(original, wanted)?;
    patch["metadata"]["resourceVersion"] = original["metadata"]["resourceVersion"].clone();
    Some(patch)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::thing::Kind;
    use super::*;

    fn apply(target: &mut Value, patch: &Value) {
        match patch {
            Value::Object(map) => map.iter().for_each(|(key, value)| {
                if value.is_null() {
                    target.as_object_mut().map(|map| map.remove(key));
                } else {
                    apply(&mut target[key], value);
                }
            }),
            other => *target = other.clone(),
        }
    }

    #[test]
    fn marks_of_two_workers_come_and_go_independently() {
        let thing = Thing::new(Kind::ConfigMap, "default", "x");
        let plain =
            json!({"metadata": {"name": "x", "namespace": "default", "labels": {"mine": "1"}, "resourceVersion": "1"}});
        let mut object = plain.clone();
        for id in ["a", "b"] {
            let shared = (id == "b").then_some("copy-of-a");
            let patch = stamp(&thing, &object, id, "mount", shared).unwrap().unwrap();
            apply(&mut object, &patch);
            assert_eq!(stamp(&thing, &object, id, "mount", shared).unwrap(), None, "already marked");
        }
        let copy = |uid: &str| json!({"metadata": {"uid": uid}});
        assert!(is_shared(&object, &copy("copy-of-a"), "a"), "b uses what a made");
        assert!(!is_shared(&object, &copy("elsewhere"), "a") && !is_shared(&object, &copy("copy-of-a"), "b"));
        assert_eq!(object["metadata"]["finalizers"], json!(["kubeocean.io/finalizer-a", "kubeocean.io/finalizer-b"]));
        let patch = unstamp(&object, "a").unwrap();
        apply(&mut object, &patch);
        assert_eq!(
            (tree::label(&object, "kubeocean.io/managed-by"), tree::label(&object, "kubeocean.io/synced-by-a")),
            ("kubeocean", "")
        );
        assert_eq!(unstamp(&object, "a"), None);
        let patch = unstamp(&object, "b").unwrap();
        apply(&mut object, &patch);
        assert_eq!(object["metadata"]["labels"], json!({"mine": "1"}));
        assert_eq!(tree::annotations(&object), tree::annotations(&plain));
        assert_eq!(object["metadata"]["finalizers"], json!([]));
    }

    #[test]
    fn a_copy_of_another_name_is_a_conflict() {
        let object = json!({"metadata": {"annotations": {"kubeocean.io/physical-name": "other"}}});
        assert!(
            stamp(&Thing::new(Kind::Secret, "default", "x"), &object, "a", "m", None).unwrap_err().contains("other")
        );
    }
}
