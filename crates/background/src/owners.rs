//! Who owns what: dependents by the uid of their owner, for all instances.

use std::collections::{HashMap, HashSet};

use atoll_meta::{Head, InstanceId, Key};

/// Objects that name an owner, by that owner's uid. Objects without owners cost nothing.
#[derive(Default)]
pub struct Owners {
    dependents: HashMap<InstanceId, HashMap<Box<str>, HashSet<Key>>>,
}

impl Owners {
    /// Notes the owners of an object.
    pub fn add(&mut self, instance: InstanceId, key: &Key, head: &Head) {
        for owner in &head.owners {
            let by_uid = self.dependents.entry(instance).or_default();
            by_uid.entry(owner.uid.clone()).or_default().insert(key.clone());
        }
    }

    /// Forgets the owners of an object.
    pub fn remove(&mut self, instance: InstanceId, key: &Key, head: &Head) {
        let Some(by_uid) = self.dependents.get_mut(&instance) else { return };
        for owner in &head.owners {
            if let Some(keys) = by_uid.get_mut(&owner.uid) {
                keys.remove(key);
                if keys.is_empty() {
                    by_uid.remove(&owner.uid);
                }
            }
        }
        if by_uid.is_empty() {
            self.dependents.remove(&instance);
        }
    }

    /// Forgets an instance.
    pub fn drop_instance(&mut self, instance: InstanceId) {
        self.dependents.remove(&instance);
    }

    /// Objects that name this uid as an owner.
    pub fn of(&self, instance: InstanceId, uid: &str) -> Vec<Key> {
        self.dependents
            .get(&instance)
            .and_then(|by_uid| by_uid.get(uid))
            .map(|keys| keys.iter().cloned().collect())
            .unwrap_or_default()
    }
}
