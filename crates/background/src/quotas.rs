//! Which namespaces have quotas, so that changes elsewhere cost nothing.

use std::collections::HashMap;

use atoll_meta::InstanceId;
use atoll_store::{Entry, Event};

/// Namespaces with quotas, and how many of them.
#[derive(Default)]
pub struct Quotas {
    namespaces: HashMap<InstanceId, HashMap<Box<str>, usize>>,
}

impl Quotas {
    /// Notes a change of a quota, and says in which namespace (if any) usage must be counted again.
    pub fn note(&mut self, id: InstanceId, change: &Event) -> Option<String> {
        let head = &change.current.as_ref().or(change.previous.as_ref())?.object.head;
        if change.key.resource() == "resourcequotas." {
            self.count(id, &head.namespace, change.previous.is_none(), change.current.is_none());
            // The status may have been written by anybody.
            return change.current.is_some().then(|| head.namespace.to_string());
        }
        let known = self.namespaces.get(&id).is_some_and(|known| known.contains_key(&head.namespace));
        (known && frees(change)).then(|| head.namespace.to_string())
    }

    fn count(&mut self, id: InstanceId, namespace: &str, new: bool, gone: bool) {
        let known = self.namespaces.entry(id).or_default();
        let count = known.entry(namespace.into()).or_default();
        match (new, gone) {
            (true, false) => *count += 1,
            (_, true) => *count = count.saturating_sub(1),
            (false, false) => *count = (*count).max(1),
        }
        if *count == 0 {
            known.remove(namespace);
        }
        if known.is_empty() {
            self.namespaces.remove(&id);
        }
    }

    /// Forgets an instance.
    pub fn drop_instance(&mut self, id: InstanceId) {
        self.namespaces.remove(&id);
    }
}

/// Whether usage may have become less: charges are made by the request itself.
fn frees(change: &Event) -> bool {
    let Some(current) = &change.current else { return true };
    match change.key.resource() {
        "pods." => {
            let phase = |entry: &Entry| entry.object.tree(entry.modified)["status"]["phase"].take();
            change.previous.as_ref().is_some_and(|old| {
                old.object.head.deleting != current.object.head.deleting || phase(old) != phase(current)
            })
        }
        "services." | "persistentvolumeclaims." | "resourceclaims.resource.k8s.io" => change.previous.is_some(),
        _ => false,
    }
}
