//! The objects an informer has seen: shared bytes and heads, indexed by key and owner.

mod pack;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use atoll_meta::{Object, Owner, Revision};
use pack::{Packed, Packer};
use parking_lot::RwLock;
use serde_json::Value;

/// A cached object.
#[derive(Clone, Debug)]
pub struct Item {
    /// Bytes and head.
    pub object: Arc<Object>,
    /// Its resourceVersion.
    pub revision: Arc<str>,
}

impl Item {
    /// From a tree as a server sends it.
    pub fn of(tree: &Value) -> Option<Self> {
        let revision = tree["metadata"]["resourceVersion"].as_str().unwrap_or_default().into();
        Some(Self { object: Arc::new(Object::encode(tree).ok()?), revision })
    }

    /// From JSON as a server sends it, without the fields of the metadata named in `without`; `kind` and
    /// `api_version` are those of the list it is in.
    pub(crate) fn read(text: &str, kind: &str, api_version: &str, without: &[&str]) -> Option<Self> {
        match Object::compose(text, kind, api_version, without) {
            Ok((object, revision)) => Some(Self { object: Arc::new(object), revision: revision.into() }),
            // Names with escapes, for instance; nobody sends them, and they are read all the same.
            Err(_) => Self::of(&serde_json::from_str(text).ok()?),
        }
    }

    /// The whole tree, with its resourceVersion.
    pub fn tree(&self) -> Value {
        let mut tree = self.object.tree(Revision(0));
        tree["metadata"]["resourceVersion"] = (*self.revision).into();
        tree
    }

    /// Decodes into a type.
    pub fn decode<T: serde::de::DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(&self.object.body)
    }

    /// `namespace/name`, or only the name outside namespaces.
    pub fn key(&self) -> String {
        key(&self.object.head.namespace, &self.object.head.name)
    }
}

/// `namespace/name`, or only the name outside namespaces.
pub fn key(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}

/// Fewer objects than these are not worth packing.
const MANY: usize = 256;

enum Entry {
    Whole(Item),
    Packed(Packed),
}

impl Entry {
    fn item(&self) -> Item {
        match self {
            Self::Whole(item) => item.clone(),
            Self::Packed(packed) => packed.item(),
        }
    }
}

#[derive(Default)]
struct Inner {
    items: BTreeMap<String, Entry>,
    owned: HashMap<Box<str>, HashSet<String>>,
    packing: Option<Packing>,
}

/// Which objects may be packed next.
#[derive(Default)]
struct Packing {
    /// Changed since the last look.
    touched: HashSet<String>,
    /// Unchanged since the look before.
    resting: HashSet<String>,
    /// What objects are packed with.
    dictionary: Arc<[u8]>,
}

/// What an informer knows. Cheap to clone; readers share it.
#[derive(Clone, Default)]
pub struct Cache {
    inner: Arc<RwLock<Inner>>,
}

impl Cache {
    /// One object.
    pub fn get(&self, namespace: &str, name: &str) -> Option<Item> {
        self.get_key(&key(namespace, name))
    }

    /// One object by `namespace/name`.
    pub fn get_key(&self, key: &str) -> Option<Item> {
        self.inner.read().items.get(key).map(Entry::item)
    }

    /// All objects, sorted by key.
    pub fn list(&self) -> Vec<Item> {
        self.inner.read().items.values().map(Entry::item).collect()
    }

    /// All objects of a namespace.
    pub fn list_in(&self, namespace: &str) -> Vec<Item> {
        let prefix = format!("{namespace}/");
        let inner = self.inner.read();
        inner
            .items
            .range(prefix.clone()..)
            .take_while(|(key, _)| key.starts_with(&prefix))
            .map(|(_, entry)| entry.item())
            .collect()
    }

    /// Objects one of whose owners has this uid.
    pub fn owned_by(&self, uid: &str) -> Vec<Item> {
        let inner = self.inner.read();
        let keys = inner.owned.get(uid).into_iter().flatten();
        keys.filter_map(|key| inner.items.get(key).map(Entry::item)).collect()
    }

    /// Number of objects.
    pub fn len(&self) -> usize {
        self.inner.read().items.len()
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Puts an object and returns the one it replaces.
    pub fn put(&self, item: Item) -> Option<Item> {
        self.inner.write().replace(item.key(), item)
    }

    /// Puts an object that a write has just answered with, unless a later state is known; the
    /// informer then takes its event as seen.
    pub fn put_if_newer(&self, item: Item) {
        let number = |item: &Item| item.revision.parse::<u64>().unwrap_or_default();
        let mut inner = self.inner.write();
        let key = item.key();
        // An object that is gone by now must not come back.
        let Some(old) = inner.items.get(&key).map(Entry::item) else { return };
        if number(&old) >= number(&item) {
            return;
        }
        inner.replace(key, item);
    }

    /// Removes an object.
    pub fn remove(&self, key: &str) -> Option<Item> {
        let mut inner = self.inner.write();
        let old = inner.items.remove(key)?.item();
        inner.unown(key, &old);
        Some(old)
    }

    /// Removes an object unless it changed since it was read.
    pub fn remove_same(&self, read: &Item) {
        let (key, mut inner) = (read.key(), self.inner.write());
        if inner.items.get(&key).is_some_and(|entry| entry.item().revision == read.revision) {
            inner.items.remove(&key);
            inner.unown(&key, read);
        }
    }

    /// All keys.
    pub fn keys(&self) -> Vec<String> {
        self.inner.read().items.keys().cloned().collect()
    }

    /// One whose objects are packed by [`Cache::rest`].
    pub(crate) fn packing() -> Self {
        let inner = Inner { packing: Some(Packing::default()), ..Inner::default() };
        Self { inner: Arc::new(RwLock::new(inner)) }
    }

    /// Packs what has not changed since this was called last; reading it unpacks a copy.
    pub(crate) async fn rest(&self) {
        let keys = self.inner.write().resting();
        for some in keys.chunks(32) {
            self.pack(some);
            tokio::task::yield_now().await;
        }
    }

    /// Packs some objects, without holding others up meanwhile.
    fn pack(&self, keys: &[String]) {
        let (items, known) = self.inner.read().whole(keys);
        let dictionary = pack::dictionary(known.clone(), &items);
        if !Arc::ptr_eq(&dictionary, &known)
            && let Some(packing) = &mut self.inner.write().packing
        {
            packing.dictionary = dictionary.clone();
        }
        let mut packer = Packer::new(dictionary);
        for item in items {
            let Some(packed) = packer.pack(&item) else { continue };
            let mut inner = self.inner.write();
            if let Some(Entry::Whole(now)) = inner.items.get(&item.key())
                && Arc::ptr_eq(&now.object, &item.object)
            {
                inner.items.insert(item.key(), Entry::Packed(packed));
            }
        }
    }
}

impl Inner {
    /// Puts an object in the place of the one it replaces.
    fn replace(&mut self, key: String, item: Item) -> Option<Item> {
        if let Some(packing) = &mut self.packing {
            packing.touched.insert(key.clone());
        }
        let object = item.object.clone();
        let Some(place) = self.items.get_mut(&key) else {
            self.own(&key, &object.head.owners);
            self.items.insert(key, Entry::Whole(item));
            return None;
        };
        let old = std::mem::replace(place, Entry::Whole(item)).item();
        // Owners hardly ever change.
        if old.object.head.owners != object.head.owners {
            self.unown(&key, &old);
            self.own(&key, &object.head.owners);
        }
        Some(old)
    }

    fn own(&mut self, key: &str, owners: &[Owner]) {
        for owner in owners {
            self.owned.entry(owner.uid.clone()).or_default().insert(key.to_owned());
        }
    }

    /// The keys of what has not changed since this was called last.
    fn resting(&mut self) -> Vec<String> {
        let count = self.items.len();
        let Some(packing) = self.packing.as_mut().filter(|_| count >= MANY) else { return Vec::new() };
        let touched = std::mem::take(&mut packing.touched);
        let resting = std::mem::replace(&mut packing.resting, touched);
        resting.into_iter().filter(|key| !packing.resting.contains(key)).collect()
    }

    /// Those of some objects that are not packed, and what objects are packed with at present.
    fn whole(&self, keys: &[String]) -> (Vec<Item>, Arc<[u8]>) {
        let whole = keys.iter().filter_map(|key| match self.items.get(key)? {
            Entry::Whole(item) => Some(item.clone()),
            Entry::Packed(_) => None,
        });
        (whole.collect(), self.packing.as_ref().map(|packing| packing.dictionary.clone()).unwrap_or_default())
    }

    fn unown(&mut self, key: &str, item: &Item) {
        for owner in &item.object.head.owners {
            if let Some(keys) = self.owned.get_mut(&owner.uid) {
                keys.remove(key);
                if keys.is_empty() {
                    self.owned.remove(&owner.uid);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    fn pod(index: usize, revision: usize) -> Item {
        let tree = json!({
            "kind": "Pod", "apiVersion": "v1",
            "metadata": {"name": format!("p{index}"), "namespace": "n", "uid": format!("uid-{index}"), "resourceVersion": revision.to_string(),
                "labels": {"app": "web"}, "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "owner"}]},
            "spec": {"containers": [{"name": "c", "image": "registry.example/web:1", "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}}]},
            "status": {"phase": "Running", "podIP": format!("10.0.0.{index}"), "conditions": [{"type": "Ready", "status": "True"}]},
        });
        Item::of(&tree).unwrap()
    }

    fn packed(cache: &Cache) -> usize {
        let small = |entry: &&Entry| matches!(entry, Entry::Packed(packed) if packed.len() < 200);
        cache.inner.read().items.values().filter(small).count()
    }

    #[tokio::test]
    async fn what_rests_is_packed_and_read_as_it_was() {
        let cache = Cache::packing();
        for index in 0..MANY {
            cache.put(pod(index, index + 1));
        }
        cache.rest().await;
        assert_eq!(packed(&cache), 0, "everything is new");
        cache.put(pod(7, 1000));
        cache.rest().await;
        assert_eq!(packed(&cache), MANY - 1, "all but the one that changed");
        for index in 0..MANY {
            let revision = if index == 7 { 1000 } else { index + 1 };
            let item = cache.get("n", &format!("p{index}")).unwrap();
            assert_eq!(item.tree(), pod(index, revision).tree());
            assert_eq!(item.object.head.label("app"), Some("web"));
        }
        assert_eq!(cache.owned_by("owner").len(), MANY);
        let old = cache.put(pod(3, 2000)).unwrap();
        assert_eq!(old.tree(), pod(3, 4).tree(), "the one it replaces");
        assert_eq!(cache.remove("n/p5").unwrap().tree(), pod(5, 6).tree());
        assert_eq!((cache.owned_by("owner").len(), cache.list().len()), (MANY - 1, MANY - 1));
    }

    /// A pod as controllers see it: before and after its kubelet has told of it.
    fn leased(index: usize, running: bool) -> Item {
        let digest = |salt: u64, times: usize| {
            let word =
                |at: usize| (index as u64 + 1).wrapping_mul(salt + at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            (0..times).map(|at| format!("{:016x}", word(at))).collect::<String>()
        };
        let name = format!("p{index}");
        let mut tree = json!({
            "kind": "Pod", "apiVersion": "v1",
            "metadata": {"name": name, "namespace": "default", "uid": digest(3, 2), "resourceVersion": (index + 4711).to_string(),
                "annotations": {"kubeocean.io/physical-pod-name": format!("{name}-{}", digest(5, 2)), "kubeocean.io/physical-pod-uid": digest(7, 2)}},
            "spec": {"nodeName": format!("vnode-{}", index % 100), "containers": [{"name": "c", "image": "registry.example/web:1",
                "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}, "terminationMessagePath": "/dev/termination-log"}],
                "restartPolicy": "Always", "schedulerName": "default-scheduler", "securityContext": {}},
            "status": {"phase": "Pending", "qosClass": "Burstable"},
        });
        if running {
            let ip = format!("10.{}.{}.9", index / 250, index % 250);
            let yes = |kind: &str| json!({"type": kind, "status": "True", "lastProbeTime": null, "lastTransitionTime": "2026-01-05T12:00:00Z"});
            let conditions = ["PodScheduled", "Initialized", "ContainersReady", "Ready"].map(yes);
            tree["status"] = json!({"phase": "Running", "qosClass": "Burstable", "podIP": ip, "podIPs": [{"ip": ip}], "hostIP": "10.1.0.1",
                "conditions": conditions, "startTime": "2026-01-05T12:00:00Z",
                "containerStatuses": [{"name": "c", "image": "registry.example/web:1", "ready": true, "started": true, "restartCount": 0,
                    "containerID": format!("sim://{}", digest(11, 4)), "state": {"running": {"startedAt": "2026-01-05T12:00:00Z"}}}]});
        }
        Item::of(&tree).unwrap()
    }

    #[tokio::test]
    async fn a_dictionary_that_no_longer_fits_is_replaced() {
        let cache = Cache::packing();
        for running in [false, true] {
            for index in 0..2 * MANY {
                cache.put(leased(index, running));
            }
            cache.rest().await;
            cache.rest().await;
        }
        let inner = cache.inner.read();
        let sizes = inner.items.values().map(|entry| match entry {
            Entry::Whole(item) => item.object.body.len(),
            Entry::Packed(packed) => packed.len(),
        });
        let each = sizes.sum::<usize>() / inner.items.len();
        assert!(each < 260, "{each} bytes for each of {} bytes", leased(1, true).object.body.len());
    }

    #[tokio::test]
    async fn few_objects_are_left_as_they_are() {
        let cache = Cache::packing();
        cache.put(pod(1, 1));
        for _ in 0..3 {
            cache.rest().await;
        }
        assert_eq!(packed(&cache), 0);
    }

    #[test]
    fn an_object_that_changed_since_it_was_read_is_not_removed() {
        let cache = Cache::default();
        cache.put(pod(1, 1));
        let read = cache.get("n", "p1").unwrap();
        cache.put(pod(1, 2));
        cache.remove_same(&read);
        assert_eq!(cache.len(), 1);
        cache.remove_same(&cache.get("n", "p1").unwrap());
        assert!(cache.is_empty() && cache.owned_by("owner").is_empty());
    }
}
