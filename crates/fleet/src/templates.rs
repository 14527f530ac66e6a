//! The templates of an instance: kinds are followed from the moment a policy or binding names them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use atoll_meta::{Gvk, Head, Status};
use atoll_runtime::{Cache, Change, Informer, Item, Selection};
use parking_lot::Mutex;
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

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

/// How long the present state of a kind may take to come.
const PATIENCE: Duration = Duration::from_secs(30);

/// All kinds that are followed.
#[derive(Default)]
pub struct Templates {
    watched: Mutex<HashMap<Gvk, Arc<Watched>>>,
    /// Templates that someone changed since we last looked at them.
    touched: Mutex<HashSet<TemplateKey>>,
    /// Templates that nobody has looked at since they came into view, and how they did.
    new: Mutex<HashMap<TemplateKey, Sight>>,
    /// The revisions at which changes activated lazy policies.
    activated: Mutex<HashMap<TemplateKey, u64>>,
}

/// How a template came into view.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Sight {
    /// It was there when its kind was first looked at.
    Found,
    /// It was made since.
    Made,
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

/// The parts of a JSON object, not looked into.
type Parts<'a> = BTreeMap<&'a str, &'a RawValue>;

/// Tells how a template changed, from its JSON before and after.
pub fn touch(old: &[u8], new: &[u8]) -> Touch {
    touch_parts(old, new).unwrap_or(Touch::Theirs)
}

fn touch_parts(old: &[u8], new: &[u8]) -> Result<Touch, serde_json::Error> {
    const NOTED: [&str; 5] = ["resourceVersion", "managedFields", "generation", "labels", "annotations"];
    let (old, new): (Parts<'_>, Parts<'_>) = (serde_json::from_slice(old)?, serde_json::from_slice(new)?);
    if !is_same(&old, &new, |part| !matches!(part, "status" | "metadata")) {
        return Ok(Touch::Theirs);
    }
    let (old, new) = (inner(&old, "metadata")?, inner(&new, "metadata")?);
    if !is_same(&old, &new, |part| !NOTED.contains(&part)) {
        return Ok(Touch::Theirs);
    }
    let words =
        [(inner(&old, "labels")?, inner(&new, "labels")?), (inner(&old, "annotations")?, inner(&new, "annotations")?)];
    let all_same = |counts: fn(&str) -> bool| words.iter().all(|(old, new)| is_same(old, new, counts));
    Ok(if !all_same(|key| !key.contains(".karmada.io")) {
        Touch::Theirs
    } else if !all_same(|_| true) {
        Touch::Ours
    } else {
        Touch::Nothing
    })
}

/// What others want of a template, in short: the same as long as nothing of theirs changes.
pub fn mark(template: &Value) -> String {
    let mut wanted = template.clone();
    if let Some(parts) = wanted.as_object_mut() {
        parts.remove("status");
    }
    if let Some(meta) = wanted.get_mut("metadata").and_then(Value::as_object_mut) {
        meta.retain(|part, _| !matches!(part.as_str(), "resourceVersion" | "managedFields" | "generation"));
        for words in ["labels", "annotations"] {
            if let Some(Value::Object(mut words_of_others)) = meta.remove(words) {
                words_of_others.retain(|key, _| !key.contains(".karmada.io"));
                if !words_of_others.is_empty() {
                    meta.insert(words.to_owned(), words_of_others.into());
                }
            }
        }
    }
    let digest = Sha256::digest(wanted.to_string());
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// The parts of a part; none if it is not an object.
fn inner<'a>(parts: &Parts<'a>, part: &str) -> Result<Parts<'a>, serde_json::Error> {
    let text = parts.get(part).map(|raw| raw.get()).filter(|text| text.starts_with('{'));
    serde_json::from_str(text.unwrap_or("{}"))
}

fn is_same(old: &Parts<'_>, new: &Parts<'_>, counts: impl Fn(&str) -> bool) -> bool {
    let tree = |raw: &RawValue| serde_json::from_str::<Value>(raw.get()).ok();
    let equal = |old: &RawValue, new: &RawValue| old.get() == new.get() || tree(old) == tree(new);
    let mut new = new.iter().filter(|(key, _)| counts(key));
    let mut old = old.iter().filter(|(key, _)| counts(key));
    old.all(|(key, value)| new.next().is_some_and(|(other, now)| key == other && equal(value, now)))
        && new.next().is_none()
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

    /// How a template came into view, if nobody has looked at it since; tells so once.
    pub fn take_new(&self, key: &TemplateKey) -> Option<Sight> {
        self.new.lock().remove(key)
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
        // What else is known of it may be of one that was made since.
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
        // A kind that was known may be served no more: whoever waits for it must not wait for ever. It stays followed.
        match tokio::time::timeout(PATIENCE, watched.informer.synced()).await {
            Ok(()) => Ok(Some(watched)),
            Err(_) => Err(Status::unavailable(format!("objects of {gvk} cannot be listed"))),
        }
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
            Change::Updated(old, new) => match touch(&old.object.body, &new.object.body) {
                Touch::Nothing => return,
                Touch::Ours => {}
                Touch::Theirs => core.templates.put_touch(&key),
            },
            Change::Added(_) => {
                let known = core.templates.get(&gvk).is_some_and(|watched| watched.informer.is_synced());
                let sight = if known { Sight::Made } else { Sight::Found };
                core.templates.new.lock().insert(key.clone(), sight);
            }
            Change::Deleted(_) => {}
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
            (with("/metadata/labels/more", json!("y")), Touch::Theirs),
            (with("/metadata/annotations", json!({})), Touch::Nothing),
            (with("/metadata/annotations", json!({"work.karmada.io/x": "y"})), Touch::Ours),
            (with("/metadata/annotations", json!({"note": "y"})), Touch::Theirs),
            (with("/metadata/deletionTimestamp", json!("2024-01-01T00:00:00Z")), Touch::Theirs),
            (with("/data", json!({"a": "b"})), Touch::Theirs),
        ] {
            let [before, after] = [&old, &new].map(|tree| serde_json::to_vec_pretty(tree).unwrap());
            assert_eq!(touch(&before, &after), expected, "{new}");
            assert_eq!(touch(old.to_string().as_bytes(), &after), expected, "{new}");
            assert_eq!(mark(&old) == mark(&new), expected != Touch::Theirs, "{new}");
        }
    }
}
