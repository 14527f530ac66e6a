//! The objects an informer has seen: shared bytes and heads, indexed by key and owner.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use atoll_meta::{Object, Revision};
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

#[derive(Default)]
struct Inner {
    items: BTreeMap<String, Item>,
    owned: HashMap<Box<str>, HashSet<String>>,
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
        self.inner.read().items.get(key).cloned()
    }

    /// All objects, sorted by key.
    pub fn list(&self) -> Vec<Item> {
        self.inner.read().items.values().cloned().collect()
    }

    /// All objects of a namespace.
    pub fn list_in(&self, namespace: &str) -> Vec<Item> {
        let prefix = format!("{namespace}/");
        let inner = self.inner.read();
        inner
            .items
            .range(prefix.clone()..)
            .take_while(|(key, _)| key.starts_with(&prefix))
            .map(|(_, item)| item.clone())
            .collect()
    }

    /// Objects one of whose owners has this uid.
    pub fn owned_by(&self, uid: &str) -> Vec<Item> {
        let inner = self.inner.read();
        let keys = inner.owned.get(uid).into_iter().flatten();
        keys.filter_map(|key| inner.items.get(key).cloned()).collect()
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
        let mut inner = self.inner.write();
        let key = item.key();
        let old = inner.items.insert(key.clone(), item.clone());
        if let Some(old) = &old {
            inner.unown(&key, old);
        }
        for owner in &item.object.head.owners {
            inner.owned.entry(owner.uid.clone()).or_default().insert(key.clone());
        }
        old
    }

    /// Puts an object that a write has just answered with, unless a later state is known; the
    /// informer then takes its event as seen.
    pub fn put_if_newer(&self, item: Item) {
        let number = |item: &Item| item.revision.parse::<u64>().unwrap_or_default();
        let mut inner = self.inner.write();
        let key = item.key();
        // An object that is gone by now must not come back.
        let Some(old) = inner.items.get(&key).cloned() else { return };
        if number(&old) >= number(&item) {
            return;
        }
        inner.items.insert(key.clone(), item.clone());
        inner.unown(&key, &old);
        for owner in &item.object.head.owners {
            inner.owned.entry(owner.uid.clone()).or_default().insert(key.clone());
        }
    }

    /// Removes an object.
    pub fn remove(&self, key: &str) -> Option<Item> {
        let mut inner = self.inner.write();
        let old = inner.items.remove(key)?;
        inner.unown(key, &old);
        Some(old)
    }

    /// All keys.
    pub fn keys(&self) -> Vec<String> {
        self.inner.read().items.keys().cloned().collect()
    }
}

impl Inner {
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
