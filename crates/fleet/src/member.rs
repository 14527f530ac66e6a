//! The ways to the members, each with its own queue of works.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};
use std::time::Duration;

use atoll_api::names;
use atoll_api::words::label;
use atoll_api::work::WorkStatus;
use atoll_meta::{Gvk, Gvr, Head, Status};
use atoll_runtime::{Change, Endpoint, Informer, Item, Queue, Selection};
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::discovery::{KindInfo, Kinds};
use crate::pace;
use crate::stray::{Place, Strays};
use crate::summary::Summary;

/// How long to wait for the first answer of a member, and for each next part of it.
const PATIENCE: Duration = Duration::from_secs(10);

/// A state of a work. Another work of the same name is another one, also in the same generation.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Stamp {
    /// Its uid.
    pub uid: Box<str>,
    /// Its generation.
    pub generation: i64,
}

/// What we last wrote into a member for a work.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Written {
    /// The work.
    pub work: Stamp,
    /// Of each manifest the version of the member's object; empty where nothing was written yet.
    versions: Vec<String>,
}

impl Written {
    /// The version of the object of a manifest, if it was written.
    pub fn version(&self, ordinal: usize) -> Option<&str> {
        self.versions.get(ordinal).map(String::as_str).filter(|version| !version.is_empty())
    }

    /// Notes the version of the object of a manifest; what is known of another state of the work counts no more.
    fn note(&mut self, work: Stamp, ordinal: usize, version: String) {
        if self.work != work {
            self.versions.clear();
            self.work = work;
        }
        if self.versions.len() <= ordinal {
            self.versions.reserve_exact(ordinal + 1 - self.versions.len());
            self.versions.resize(ordinal + 1, String::new());
        }
        self.versions[ordinal] = version;
    }
}

/// What was last told of a work, until it comes back to us.
#[derive(Clone, Debug)]
pub struct Told {
    /// The resourceVersions it was told to; one after the other when nothing came back in between.
    pub before: Vec<String>,
    /// The resourceVersion it led to.
    pub after: String,
    /// The status that was told.
    pub status: WorkStatus,
}

impl Told {
    fn is_behind(&self, revision: &str) -> bool {
        self.before.iter().any(|before| before == revision)
    }
}

/// What was last carried out for a work: there is nothing to do while both are as they were.
#[derive(Clone, Debug)]
pub struct Handled {
    /// The work.
    pub work: Stamp,
    /// Where the member's object is.
    pub gvr: Gvr,
    /// Namespace of the object, or empty.
    pub namespace: Box<str>,
    /// Name of the object.
    pub name: Box<str>,
    /// Its resourceVersion.
    pub revision: Box<str>,
}

/// One member.
pub struct Member {
    /// Its name.
    pub name: Arc<str>,
    /// The way to it.
    pub endpoint: Endpoint,
    /// Kinds it serves.
    pub kinds: Kinds,
    /// Names of works to carry out.
    pub queue: Queue<Arc<str>>,
    /// Its nodes and pods, once they are known.
    pub summary: Arc<Mutex<Summary>>,
    /// Told when it may serve more kinds than before.
    pub rediscover: Notify,
    /// Whether its nodes and pods are known.
    pub counted: AtomicBool,
    /// What the way was made from; another value means another way.
    pub origin: String,
    /// Copies that came after their works had gone.
    pub strays: Strays,
    watched: Mutex<HashMap<Gvr, Arc<Informer>>>,
    written: Mutex<HashMap<Arc<str>, Written>>,
    handled: Mutex<HashMap<Arc<str>, Handled>>,
    told: Mutex<HashMap<Arc<str>, Told>>,
    work_names: Arc<dyn Fn(&str) -> Option<Arc<str>> + Send + Sync>,
    stop: CancellationToken,
}

impl Drop for Member {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Member {
    /// A way to a member; `work_names` finds the name of a work by its id.
    pub fn new(
        name: &str,
        endpoint: Endpoint,
        origin: String,
        work_names: Arc<dyn Fn(&str) -> Option<Arc<str>> + Send + Sync>,
        stop: CancellationToken,
    ) -> Arc<Self> {
        Arc::new(Self {
            name: name.into(),
            kinds: Kinds::new(endpoint.clone()),
            endpoint,
            queue: Queue::fair(),
            summary: Arc::default(),
            rediscover: Notify::new(),
            counted: AtomicBool::new(false),
            origin,
            strays: Strays::default(),
            watched: Mutex::default(),
            written: Mutex::default(),
            handled: Mutex::default(),
            told: Mutex::default(),
            work_names,
            stop,
        })
    }

    /// Ends with the member.
    pub fn stopped(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Follows our objects of a kind in the member; returns when they are known.
    pub async fn follow(self: &Arc<Self>, gvk: &Gvk, info: &KindInfo) -> Result<Arc<Informer>, Status> {
        let informer = {
            let mut watched = self.watched.lock();
            let entry = watched.entry(info.gvr.clone()).or_insert_with(|| {
                let selection =
                    Selection { namespace: None, query: "labelSelector=karmada.io%2Fmanaged%3Dtrue".to_owned() };
                Arc::new(Informer::start_light(
                    self.endpoint.clone(),
                    info.gvr.clone(),
                    selection,
                    sink(Arc::downgrade(self), gvk.kind.clone(), info.gvr.clone()),
                ))
            });
            entry.clone()
        };
        let mut known = 0;
        while !informer.is_synced() && tokio::time::timeout(PATIENCE, informer.synced()).await.is_err() {
            // A long list is an answer, too.
            if informer.cache.len() > known {
                known = informer.cache.len();
                continue;
            }
            let why = informer.trouble().map_or_else(|| "no answer".to_owned(), |status| status.message);
            return Err(Status::unavailable(format!("member {}: {why}", self.name)));
        }
        Ok(informer)
    }

    /// What we last wrote for a work.
    pub fn written(&self, work: &str) -> Option<Written> {
        self.written.lock().get(work).cloned()
    }

    /// Notes what we wrote for a manifest of a work.
    pub fn note(&self, work: &Arc<str>, stamp: Stamp, ordinal: usize, version: String) {
        self.written.lock().entry(work.clone()).or_default().note(stamp, ordinal, version);
    }

    /// Forgets a work.
    pub fn forget(&self, work: &str) {
        self.written.lock().remove(work);
        self.handled.lock().remove(work);
        self.told.lock().remove(work);
    }

    /// Notes what was told of a work.
    pub fn tell(&self, work: &Arc<str>, told: Told) {
        self.told.lock().insert(work.clone(), told);
    }

    /// What was told of a work in this state, if that has not come back yet.
    pub fn told(&self, work: &str, revision: &str) -> Option<Told> {
        self.told.lock().get(work).filter(|told| told.is_behind(revision)).cloned()
    }

    /// A work came back in this state: what was told of it needs not be remembered any longer.
    pub fn heard(&self, work: &str, revision: &str) {
        let mut told = self.told.lock();
        if told.get(work).is_some_and(|told| !told.is_behind(revision)) {
            told.remove(work);
        }
    }

    /// Everything is to be looked at again.
    pub fn forget_all(&self) {
        let names: Vec<Arc<str>> = self.handled.lock().drain().map(|(name, _)| name).collect();
        for name in names {
            self.queue.add(name);
        }
    }

    /// Notes what was carried out, or that it has to be looked at again.
    pub fn handle(&self, work: &Arc<str>, handled: Option<Handled>) {
        match handled {
            Some(handled) => self.handled.lock().insert(work.clone(), handled),
            None => self.handled.lock().remove(work),
        };
    }

    /// Takes a work that says something new: orders go before states, and what others need before them.
    pub fn order(&self, work: &Item) {
        self.queue.add_ranked((*work.object.head.name).into(), rank(work));
    }

    /// How long changes of states are gathered before they are told: hardly at all when little happens, and about as
    /// long as it takes to get to them when much does.
    pub fn gather(&self) -> Duration {
        pace::gather(self.queue.len())
    }

    /// Whether a change calls for repair at once: the object went, or is not as we wrote it.
    fn is_drift(&self, work: &str, change: &Change) -> bool {
        let version = |item: &Item| {
            let head = &item.object.head;
            version(&head.uid, head.generation, &item.revision)
        };
        match change {
            Change::Deleted(_) => true,
            Change::Added(_) => false,
            Change::Updated(old, new) => {
                let now = version(new);
                now != version(old) && self.written(work).is_none_or(|written| !written.versions.contains(&now))
            }
        }
    }

    /// Whether this work was carried out and the member's object is as it was then.
    pub fn is_handled(&self, work: &Head) -> bool {
        let Some(handled) = self.handled.lock().get(&*work.name).cloned() else { return false };
        let Some(informer) = self.watched.lock().get(&handled.gvr).cloned() else { return false };
        let present = informer.cache.get(&handled.namespace, &handled.name);
        let same = handled.work.uid == work.uid && handled.work.generation == work.generation;
        same && present.is_some_and(|item| *item.revision == *handled.revision)
    }
}

/// Asks for a look at the work whose copy changed. Whose it is the copy says itself; when it carries the mark of a work
/// that is gone or another one than before (somebody wrote it late, or without care), its name says so, too.
fn sink(member: Weak<Member>, kind: String, gvr: Gvr) -> impl Fn(Change) + Send + Sync {
    move |change| {
        let Some(member) = member.upgrade() else { return };
        let head = &change.item().object.head;
        let id = head.label(label::WORK_ID);
        let known = id.and_then(|id| (member.work_names)(id));
        let changed_hands = matches!(&change, Change::Updated(old, _) if old.object.head.label(label::WORK_ID) != id);
        let late = !matches!(change, Change::Deleted(_)) && id.is_some_and(|id| member.strays.is_buried(id));
        if known.is_none() || changed_hands || late {
            let name: Arc<str> = names::work(&kind, &head.name, &head.namespace).into();
            if late {
                let place = Place { gvr: gvr.clone(), namespace: head.namespace.clone(), name: head.name.clone() };
                member.strays.notice(&name, place);
            }
            member.queue.add(name);
        }
        let Some(name) = known else { return };
        if member.is_drift(&name, &change) {
            member.queue.add(name);
        } else {
            member.queue.add_after(name, member.gather());
        }
    }
}

/// The place of a new order in the queue: namespaces and definitions of kinds go before what is in them and of them.
pub fn rank(work: &Item) -> i32 {
    // Both are outside namespaces; most works are not, and need not be read.
    if work.object.head.label(label::BINDING_ID).is_some() {
        return 1;
    }
    let firsts = |manifest: &Kinded| matches!(manifest.kind.as_str(), "Namespace" | "CustomResourceDefinition");
    let body: Option<Body> = work.decode().ok();
    if body.is_some_and(|body| body.spec.workload.manifests.iter().any(firsts)) { 2 } else { 1 }
}

/// Of a work only the kinds of its manifests.
#[derive(serde::Deserialize)]
struct Body {
    spec: BodySpec,
}

#[derive(serde::Deserialize)]
struct BodySpec {
    workload: Manifests,
}

#[derive(serde::Deserialize)]
struct Manifests {
    #[serde(default)]
    manifests: Vec<Kinded>,
}

#[derive(serde::Deserialize)]
struct Kinded {
    #[serde(default)]
    kind: String,
}

/// What tells one state of a member's object from another: status changes do not count where that can be told.
pub fn version(uid: &str, generation: i64, revision: &str) -> String {
    if generation > 0 { format!("{uid}/{generation}") } else { revision.to_owned() }
}

/// All members that can be reached.
#[derive(Default)]
pub struct Members {
    all: RwLock<HashMap<Arc<str>, Arc<Member>>>,
}

impl Members {
    /// One member.
    pub fn get(&self, name: &str) -> Option<Arc<Member>> {
        self.all.read().get(name).cloned()
    }

    /// Puts a member in; an older way to it ends.
    pub fn put(&self, member: Arc<Member>) {
        let old = self.all.write().insert(member.name.clone(), member);
        if let Some(old) = old {
            old.stop.cancel();
        }
    }

    /// Takes a member out.
    pub fn remove(&self, name: &str) {
        if let Some(old) = self.all.write().remove(name) {
            old.stop.cancel();
        }
    }

    /// All members.
    pub fn list(&self) -> Vec<Arc<Member>> {
        self.all.read().values().cloned().collect()
    }

    /// Ends all ways.
    pub fn clear(&self) {
        for (_, member) in self.all.write().drain() {
            member.stop.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn namespaces_and_definitions_of_kinds_go_first() {
        let work = |kind: &str, labels: Value| {
            let tree = json!({"metadata": {"name": "w", "namespace": "karmada-es-m1", "labels": labels},
                "spec": {"workload": {"manifests": [{"kind": kind, "metadata": {"name": "x"}}]}}});
            rank(&Item::of(&tree).expect("a small object"))
        };
        let outside = json!({label::CLUSTER_BINDING_ID: "i"});
        assert_eq!(work("Namespace", json!({})), 2);
        assert_eq!(work("CustomResourceDefinition", outside.clone()), 2);
        assert_eq!(work("ClusterRole", outside), 1);
        assert_eq!(work("ConfigMap", json!({label::BINDING_ID: "i"})), 1);
    }

    #[test]
    fn what_was_written_counts_for_one_state_of_a_work() {
        let stamp = |generation| Stamp { uid: "u".into(), generation };
        let mut written = Written::default();
        written.note(stamp(1), 1, "b".into());
        assert_eq!((written.version(0), written.version(1), written.version(2)), (None, Some("b"), None));
        written.note(stamp(1), 0, "a".into());
        assert_eq!((written.version(0), written.version(1)), (Some("a"), Some("b")));
        written.note(stamp(2), 0, "c".into());
        assert_eq!((written.version(0), written.version(1)), (Some("c"), None));
    }
}
