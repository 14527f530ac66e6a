//! Parents and children: pods made from templates, adopted and released.

use std::sync::Arc;

use atoll_meta::Status;
use atoll_meta::selector::LabelSelector;
use serde_json::{Value, json};

use crate::kind::Kind;
use crate::pod::Pod;
use crate::world::{Work, World};
use crate::write;

/// The reference by which a child names its controller.
pub fn controller_ref(kind: Kind, parent: &Value) -> Value {
    json!({
        "apiVersion": kind.api_version(), "kind": kind.name(),
        "name": parent["metadata"]["name"], "uid": parent["metadata"]["uid"],
        "controller": true, "blockOwnerDeletion": true,
    })
}

/// A pod made from a parent's template, still without a name.
pub fn pod_of(kind: Kind, parent: &Value, template: &Value) -> Value {
    let mut meta = json!({"ownerReferences": [controller_ref(kind, parent)]});
    for field in ["labels", "annotations", "finalizers"] {
        if let Some(value) = template["metadata"].get(field) {
            meta[field] = value.clone();
        }
    }
    meta["generateName"] = format!("{}-", parent["metadata"]["name"].as_str().unwrap_or_default()).into();
    json!({"kind": "Pod", "apiVersion": "v1", "metadata": meta, "spec": template["spec"]})
}

/// A name part made from content: equal content, equal name.
pub fn hash(content: &Value, collisions: i64) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut state: u32 = 0x811c_9dc5;
    let text = content.to_string();
    let extra = if collisions > 0 { collisions.to_string() } else { String::new() };
    for byte in text.bytes().chain(extra.bytes()) {
        state = (state ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }
    state.to_string().bytes().map(|digit| char::from(LETTERS[usize::from(digit) % LETTERS.len()])).collect()
}

/// The selector of a parent; one that cannot be read selects nothing.
pub fn selector(parent: &Value) -> LabelSelector {
    LabelSelector::from_value(&parent["spec"]["selector"]).unwrap_or_else(|_| LabelSelector::nothing())
}

/// The pods of a parent: its own that still match are kept, others released, orphans that match adopted.
pub async fn claim_pods(
    world: &World,
    work: &Work,
    kind: Kind,
    parent: &Value,
    selector: &LabelSelector,
) -> Result<Vec<Arc<Pod>>, Status> {
    let uid = parent["metadata"]["uid"].as_str().unwrap_or_default();
    let namespace = parent["metadata"]["namespace"].as_str().unwrap_or_default();
    let leaving = !parent["metadata"]["deletionTimestamp"].is_null();
    let (owned, orphans) = {
        let book = world.book.read();
        (book.owned_by(uid), book.orphans_in(namespace))
    };
    let mut pods = Vec::with_capacity(owned.len());
    for pod in owned {
        if selector.matches_head(pod.head()) {
            pods.push(pod);
        } else if !leaving && !pod.head().deleting {
            let patch =
                json!({"metadata": {"uid": pod.head().uid, "ownerReferences": [{"$patch": "delete", "uid": uid}]}});
            let written = write::strategic(&world.manager, Kind::Pod, (namespace, pod.name()), &patch).await?;
            world.expect(work, written.revision());
        }
    }
    for pod in orphans {
        if leaving
            || pod.head().deleting
            || pod.is_finished() && kind != Kind::Job
            || !selector.matches_head(pod.head())
        {
            continue;
        }
        let patch = json!({"metadata": {"uid": pod.head().uid, "ownerReferences": [controller_ref(kind, parent)]}});
        let written = write::strategic(&world.manager, Kind::Pod, (namespace, pod.name()), &patch).await?;
        world.expect(work, written.revision());
        pods.push(pod);
    }
    Ok(pods)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_content_has_equal_names() {
        let a = json!({"x": 1, "y": 2});
        assert_eq!(hash(&a, 0), hash(&json!({"y": 2, "x": 1}), 0));
        assert_ne!(hash(&a, 0), hash(&a, 1));
        assert_ne!(hash(&a, 0), hash(&json!({"x": 2, "y": 2}), 0));
    }
}
