//! Deletion of namespaces: content first, pods before the rest, then the namespace itself.

use std::time::Duration;

use atoll_meta::{Gvr, Key, Status};
use atoll_store::Entry;
use serde_json::{Value, json};

use crate::hands::Hands;

/// Deletes what is left in a namespace and finishes it when nothing is; `Some` asks for another look.
pub async fn empty(hands: &Hands, name: &str) -> Result<Option<Duration>, Status> {
    let snapshot = hands.snapshot().await?;
    let own = Key::new("", "namespaces", "", name);
    let Some(entry) = snapshot.get(own.as_str()) else { return Ok(None) };
    if !entry.object.head.deleting {
        return Ok(None);
    }
    let tree = entry.object.tree(entry.modified);
    let mut left: Vec<(Key, Entry)> = Vec::new();
    for kind in hands.instance.kinds().iter().filter(|kind| kind.namespaced && kind.has_verb("delete")) {
        if kind.version != kind.storage_version
            && hands.instance.kind(&kind.group, &kind.storage_version, &kind.plural).is_some()
        {
            continue; // the same objects, seen in another version
        }
        let prefix = Key::prefix(&kind.group, &kind.plural, name);
        left.extend(snapshot.range(&prefix, None).map(|(key, entry)| (key.clone(), entry.clone())));
    }
    if left.is_empty() {
        finish(hands, &tree).await?;
        return Ok(None);
    }
    let pods = left.iter().any(|(key, _)| key.resource() == "pods.");
    for (key, entry) in &left {
        // Others may still need what the pods use: pods go first.
        if pods && key.resource() != "pods." {
            continue;
        }
        if !entry.object.head.deleting {
            hands.delete(key, &entry.object.head.uid, "Background").await?;
        }
    }
    report(hands, name, &tree, &left).await?;
    Ok(Some(Duration::from_millis(if pods { 500 } else { 100 })))
}

async fn finish(hands: &Hands, tree: &Value) -> Result<(), Status> {
    let mut done = tree.clone(); // only the finalizers differ
    let kept: Vec<Value> = tree["spec"]["finalizers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|own| *own != "kubernetes")
        .cloned()
        .collect();
    done["spec"]["finalizers"] = kept.into();
    let name = tree["metadata"]["name"].as_str().unwrap_or_default();
    match hands.endpoint.update_sub(&Gvr::new("", "v1", "namespaces"), None, name, "finalize", &done).await {
        Err(status) if status.code == 404 => Ok(()),
        result => result.map(drop),
    }
}

/// Says in the namespace's conditions what keeps it.
async fn report(hands: &Hands, name: &str, tree: &Value, left: &[(Key, Entry)]) -> Result<(), Status> {
    let finalizers: Vec<&str> =
        left.iter().flat_map(|(_, entry)| entry.object.head.finalizers.iter().map(|f| &**f)).collect();
    let mut kinds: Vec<String> = left.iter().map(|(key, _)| key.resource().to_owned()).collect();
    kinds.sort();
    let mut counts: Vec<(String, usize)> = Vec::new();
    for kind in kinds {
        match counts.last_mut() {
            Some((last, count)) if *last == kind => *count += 1,
            _ => counts.push((kind, 1)),
        }
    }
    let remaining: Vec<String> = counts
        .iter()
        .map(|(kind, count)| format!("{} has {count} resource instances", kind.trim_end_matches('.')))
        .collect();
    let now = atoll_meta::time::format(hands.hub.now());
    let condition = |ty: &str, bad: bool, reason: &str, message: String| {
        json!({"type": ty, "status": if bad { "True" } else { "False" }, "reason": reason, "message": message,
               "lastTransitionTime": now})
    };
    let conditions = json!([
        condition(
            "NamespaceDeletionDiscoveryFailure",
            false,
            "ResourcesDiscovered",
            "All resources successfully discovered".into()
        ),
        condition(
            "NamespaceDeletionGroupVersionParsingFailure",
            false,
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed".into()
        ),
        condition(
            "NamespaceDeletionContentFailure",
            false,
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization".into()
        ),
        condition(
            "NamespaceContentRemaining",
            true,
            "SomeResourcesRemain",
            format!("Some resources are remaining: {}", remaining.join(", "))
        ),
        condition(
            "NamespaceFinalizersRemaining",
            !finalizers.is_empty(),
            if finalizers.is_empty() { "ContentHasNoFinalizers" } else { "SomeFinalizersRemain" },
            if finalizers.is_empty() {
                "All content-preserving finalizers finished".into()
            } else {
                format!(
                    "Some content in the namespace has finalizers remaining: {} in {} resource instances",
                    finalizers.join(", "),
                    finalizers.len()
                )
            },
        ),
    ]);
    let same = |old: &Value, new: &Value| old["status"] == new["status"] && old["message"] == new["message"];
    let old = tree["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let new = conditions.as_array().map(Vec::as_slice).unwrap_or_default();
    if old.len() == new.len() && old.iter().zip(new).all(|(old, new)| same(old, new)) {
        return Ok(());
    }
    let patch = json!({"status": {"conditions": conditions}});
    let namespaces = Gvr::new("", "v1", "namespaces");
    match hands.endpoint.patch(&namespaces, None, name, "status", atoll_runtime::Patch::Merge, &patch).await {
        Err(status) if status.code == 404 => Ok(()),
        result => result.map(drop),
    }
}
