//! The templates of an instance: kinds are followed from the moment a policy or binding names them.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};

use atoll_meta::{Gvk, Head, Status};
use atoll_runtime::{Cache, Change, Informer, Item, Selection};
use parking_lot::Mutex;
use serde_json::Value;

use crate::core::Core;
use crate::discovery::KindInfo;
use crate::keys::TemplateKey;
use crate::policy::Policy;

/// A kind that is followed.
pub struct Watched {
    /// The kind.
    pub gvk: Arc<Gvk>,
    /// Where it is.
    pub info: Arc<KindInfo>,
    informer: Informer,
}

impl Watched {
    /// What is known of its objects.
    pub fn cache(&self) -> &Cache {
        &self.informer.cache
    }

    /// The key of one of its objects.
    pub fn key(&self, head: &Head) -> TemplateKey {
        TemplateKey { gvk: self.gvk.clone(), namespace: (*head.namespace).into(), name: (*head.name).into() }
    }
}

/// All kinds that are followed.
#[derive(Default)]
pub struct Templates {
    watched: Mutex<HashMap<Gvk, Arc<Watched>>>,
    /// Templates that someone changed since we last looked at them.
    touched: Mutex<HashSet<TemplateKey>>,
    /// The revisions at which changes activated lazy policies.
    activated: Mutex<HashMap<TemplateKey, u64>>,
}

/// How a template changed.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Touch {
    /// Only its status, or what servers note.
    Nothing,
    /// Only metadata that we write.
    Ours,
    /// Something a person or another program wants.
    Theirs,
}

/// Tells how a template changed.
pub fn touch(old: &Value, new: &Value) -> Touch {
    let significant = |tree: &Value, ours: bool| {
        let mut tree = tree.clone();
        if let Some(map) = tree.as_object_mut() {
            map.remove("status");
        }
        if let Some(meta) = tree["metadata"].as_object_mut() {
            for field in ["resourceVersion", "managedFields", "generation"] {
                meta.remove(field);
            }
            for field in ["labels", "annotations"] {
                let map = meta.remove(field);
                let entries = map.as_ref().and_then(Value::as_object).into_iter().flatten();
                let kept: serde_json::Map<String, Value> = entries
                    .filter(|(key, _)| ours || !key.contains(".karmada.io"))
                    .map(|(key, value)| (key.clone(), value.clone()))
                    .collect();
                if !kept.is_empty() {
                    meta.insert(field.to_owned(), kept.into());
                }
            }
        }
        tree
    };
    if significant(old, false) != significant(new, false) {
        Touch::Theirs
    } else if significant(old, true) != significant(new, true) {
        Touch::Ours
    } else {
        Touch::Nothing
    }
}

impl Templates {
    /// A kind, if it is followed.
    pub fn get(&self, gvk: &Gvk) -> Option<Arc<Watched>> {
        self.watched.lock().get(gvk).cloned()
    }

    /// All kinds that are followed.
    pub fn all(&self) -> Vec<Arc<Watched>> {
        self.watched.lock().values().cloned().collect()
    }

    /// One template.
    pub fn find(&self, key: &TemplateKey) -> Option<Item> {
        self.get(&key.gvk)?.cache().get(&key.namespace, &key.name)
    }

    /// Takes the note that someone changed a template.
    pub fn take_touch(&self, key: &TemplateKey) -> bool {
        self.touched.lock().remove(key)
    }

    /// Puts the note back, after a failure.
    pub fn put_touch(&self, key: &TemplateKey) {
        self.touched.lock().insert(key.clone());
    }

    /// Notes that a change of a template activated a lazy policy.
    pub fn note_activation(&self, key: &TemplateKey, revision: &str) {
        self.activated.lock().insert(key.clone(), revision.parse().unwrap_or_default());
    }

    /// A lazy policy is known in a newer state. A template that was changed after that state was written, and taken
    /// by the older one because news of it came first, counts as changed again.
    pub fn reactivate(&self, key: &TemplateKey, policy: &Policy) {
        let at = self.activated.lock().get(key).copied();
        if at.is_some_and(|at| policy.precedes(&at.to_string())) {
            self.put_touch(key);
        }
    }

    /// Forgets a template that is gone.
    pub fn forget(&self, key: &TemplateKey) {
        self.touched.lock().remove(key);
        self.activated.lock().remove(key);
    }

    /// Follows a kind; returns when its present state is known. `None` when the instance does not serve it.
    pub async fn follow(&self, core: &Arc<Core>, gvk: &Gvk) -> Result<Option<Arc<Watched>>, Status> {
        if core.options.skip.kind(gvk) {
            return Ok(None);
        }
        if self.get(gvk).is_none() {
            let Some(info) = core.kinds.get(gvk).await? else { return Ok(None) };
            let mut watched = self.watched.lock();
            if !watched.contains_key(gvk) {
                let shared = Arc::new(gvk.clone());
                let sink = sink(Arc::downgrade(core), shared.clone());
                let informer =
                    Informer::start_light(core.instance.clone(), info.gvr.clone(), Selection::default(), sink);
                watched.insert(gvk.clone(), Arc::new(Watched { gvk: shared, info, informer }));
            }
        }
        let Some(watched) = self.get(gvk) else { return Ok(None) };
        watched.informer.synced().await;
        Ok(Some(watched))
    }

    /// Stops following everything.
    pub fn clear(&self) {
        self.watched.lock().clear();
    }
}

fn sink(core: Weak<Core>, gvk: Arc<Gvk>) -> impl Fn(Change) + Send + Sync {
    move |change| {
        let Some(core) = core.upgrade() else { return };
        let head = &change.item().object.head;
        if core.options.skip.object(&gvk, head) {
            return;
        }
        let key = TemplateKey { gvk: gvk.clone(), namespace: (*head.namespace).into(), name: (*head.name).into() };
        match &change {
            Change::Updated(old, new) => match touch(&old.tree(), &new.tree()) {
                Touch::Nothing => return,
                Touch::Ours => {}
                Touch::Theirs => core.templates.put_touch(&key),
            },
            Change::Added(_) | Change::Deleted(_) => {}
        }
        core.dependents_changed(&key);
        core.queues.templates.add(key);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_others_write_touches_a_template() {
        let old = json!({"metadata": {"name": "a", "resourceVersion": "1", "labels": {"app": "x"}}, "spec": {"n": 1}, "status": {}});
        let with = |pointer: &str, value: Value| {
            let mut new = old.clone();
            let (path, last) = pointer.rsplit_once('/').unwrap_or_default();
            new.pointer_mut(path).unwrap()[last] = value;
            new
        };
        for (new, expected) in [
            (with("/metadata/resourceVersion", json!("2")), Touch::Nothing),
            (with("/status/x", json!(1)), Touch::Nothing),
            (with("/metadata/labels/propagationpolicy.karmada.io~1permanent-id", json!("x")), Touch::Ours),
            (with("/spec/n", json!(2)), Touch::Theirs),
            (with("/metadata/labels/app", json!("y")), Touch::Theirs),
        ] {
            assert_eq!(touch(&old, &new), expected, "{new}");
        }
    }
}
