//! Following originals and their copies.

use std::collections::{HashMap, HashSet};

use atoll_api::kubeocean_names::synced_by_label;
use atoll_runtime::{Cache, Change, Informer, Selection};
use parking_lot::Mutex;
use serde_json::Value;

use super::thing::{Kind, Thing};
use crate::binding::{Binding, OWNER};
use crate::syncer::{Computing, Queues, original_of};
use crate::trim;
use crate::worker::Worker;

/// Originals that have copies, and the copies.
pub(crate) struct Copies {
    originals: HashMap<Kind, Cache>,
    copies: HashMap<Kind, Cache>,
    mount: String,
    /// Copies of ours that we have no use for and others have.
    ceded: Mutex<HashSet<Thing>>,
}

impl Copies {
    /// Starts following; what changes is looked at.
    pub(crate) fn follow(
        computing: &Computing,
        worker: &Worker,
        binding: &Binding,
        queues: &Queues,
    ) -> (Self, Vec<Informer>) {
        let (above, below, owner) = (&computing.endpoint, &worker.endpoint, &computing.owner);
        let mut out = Self {
            originals: HashMap::new(),
            copies: HashMap::new(),
            mount: binding.mount_namespace.clone(),
            ceded: Mutex::default(),
        };
        let mut informers = Vec::new();
        for kind in Kind::ALL {
            let query = format!("labelSelector={}%3Dtrue", synced_by_label(&binding.cluster_id));
            let sink = queues.clone();
            let selection = Selection { namespace: None, query };
            let originals = Informer::start_slim(above.clone(), kind.gvr(), selection, trim::bare, move |change| {
                let head = &change.item().object.head;
                sink.objects.add(Thing::new(kind, &head.namespace, &head.name));
            });
            out.originals.insert(kind, originals.cache.clone());
            informers.push(originals);
            if kind.feature().is_some_and(|feature| worker.withheld.contains(&feature)) {
                continue;
            }
            let selection = Selection {
                namespace: kind.below(&binding.mount_namespace).map(ToOwned::to_owned),
                query: format!("labelSelector={OWNER}%3D{owner}"),
            };
            let sink = queues.clone();
            let copies = Informer::start_slim(below.clone(), kind.gvr(), selection, trim::bare, move |change| {
                let copy = change.item().tree();
                Thing::of_copy(kind, &copy).into_iter().for_each(|thing| sink.objects.add(thing));
                // Tokens are no copies: the pod they are for asks for another.
                if let Change::Deleted(_) = change {
                    original_of(&copy).into_iter().for_each(|pod| sink.pods.add(pod));
                }
            });
            out.copies.insert(kind, copies.cache.clone());
            informers.push(copies);
        }
        (out, informers)
    }

    /// An original that has copies.
    pub(crate) fn original(&self, thing: &Thing) -> Option<Value> {
        self.originals.get(&thing.kind)?.get_key(&thing.key()).map(|item| item.tree())
    }

    /// The copy of an original.
    pub(crate) fn copy(&self, thing: &Thing) -> Option<Value> {
        let namespace = thing.kind.below(&self.mount).unwrap_or_default();
        self.copies.get(&thing.kind)?.get(namespace, &thing.physical()).map(|item| item.tree())
    }

    /// Leaves a copy to others who use it.
    pub(super) fn cede(&self, thing: &Thing) {
        self.ceded.lock().insert(thing.clone());
    }

    /// Takes back what was left to others: it is used here again.
    pub(super) fn keep(&self, thing: &Thing) {
        self.ceded.lock().remove(thing);
    }

    /// Whether a copy is left to others.
    pub(crate) fn is_ceded(&self, thing: &Thing) -> bool {
        self.ceded.lock().contains(thing)
    }

    /// Everything of a kind that is ours in the worker cluster.
    pub(crate) fn below(&self, kind: Kind) -> Option<&Cache> {
        self.copies.get(&kind)
    }

    /// Everything of a kind that has copies.
    pub(crate) fn above(&self, kind: Kind) -> Option<&Cache> {
        self.originals.get(&kind)
    }
}
