//! Deletion of definitions: their objects first.

use std::time::Duration;

use atoll_meta::{Gvr, Key, Status};
use serde_json::{Value, json};

use crate::hands::Hands;

const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Deletes the objects of a definition, then lets it go; `Some` asks for another look.
pub async fn empty(hands: &Hands, name: &str) -> Result<Option<Duration>, Status> {
    let snapshot = hands.snapshot().await?;
    let own = Key::new("apiextensions.k8s.io", "customresourcedefinitions", "", name);
    let Some(entry) = snapshot.get(own.as_str()) else { return Ok(None) };
    let head = &entry.object.head;
    if !head.deleting || !head.finalizers.iter().any(|finalizer| &**finalizer == FINALIZER) {
        return Ok(None);
    }
    let tree = entry.object.tree(entry.modified);
    let group = tree["spec"]["group"].as_str().unwrap_or_default();
    let plural = tree["spec"]["names"]["plural"].as_str().unwrap_or_default();
    let prefix = Key::prefix(group, plural, "");
    let left: Vec<(Key, Box<str>, bool)> = snapshot
        .range(&prefix, None)
        .map(|(key, entry)| (key.clone(), entry.object.head.uid.clone(), entry.object.head.deleting))
        .collect();
    if left.is_empty() {
        let kept: Vec<&Value> =
            tree["metadata"]["finalizers"].as_array().into_iter().flatten().filter(|own| *own != FINALIZER).collect();
        let patch = json!({"metadata": {"finalizers": kept, "resourceVersion": tree["metadata"]["resourceVersion"]}});
        let definitions = Gvr::new("apiextensions.k8s.io", "v1", "customresourcedefinitions");
        return match hands.endpoint.patch(&definitions, None, name, "", atoll_runtime::Patch::Merge, &patch).await {
            Err(status) if status.code == 404 => Ok(None),
            result => result.map(|_| None),
        };
    }
    for (key, uid, deleting) in &left {
        if !deleting {
            hands.delete(key, uid, "Background").await?;
        }
    }
    Ok(Some(Duration::from_millis(100)))
}
