//! What a syncer follows.

use std::sync::Arc;

use atoll_meta::Gvr;
use atoll_runtime::{Cache, Change, Endpoint, Informer, Queue, Selection};

use super::{Queues, Usage};
use crate::manager::proxier_pods;
use crate::resource;
use crate::trim;
use crate::worker::Worker;

/// Everything that is followed; ends when dropped.
#[derive(Default)]
pub(super) struct Sources {
    informers: Vec<Informer>,
}

impl Sources {
    fn keep(&mut self, informer: Informer) -> Cache {
        let cache = informer.cache.clone();
        self.informers.push(informer);
        cache
    }

    pub(super) fn extend(&mut self, informers: Vec<Informer>) {
        self.informers.extend(informers);
    }

    /// Waits until everything is known once.
    pub(super) async fn synced(&self) {
        for informer in &self.informers {
            informer.synced().await;
        }
    }

    /// Objects of the worker cluster that are looked at by their name.
    pub(super) fn by_name(&mut self, worker: &Worker, gvr: Gvr, queue: &Queue<String>) -> Cache {
        let sink = queue.clone();
        let look = move |change: Change| sink.add(change.item().object.head.name.to_string());
        let way = worker.endpoint.clone();
        self.keep(Informer::start_slim(way, gvr, Selection::default(), trim::bare, look))
    }

    /// All pods of the worker cluster: ours are looked at, those of others use its nodes.
    pub(super) fn pods(&mut self, worker: &Worker, owner: &str, usage: &Arc<Usage>, queues: &Queues) -> Cache {
        let (sink, facts, owner) = (queues.clone(), usage.clone(), owner.to_owned());
        let hear = move |change: Change| facts.hear(&change, &owner, &sink);
        let way = worker.endpoint.clone();
        self.keep(Informer::start_slim(way, resource::pods(), Selection::default(), trim::below, hear))
    }

    /// What the worker cluster tells about pods of the mount namespace.
    pub(super) fn events(&mut self, worker: &Worker, mount: &str, queues: &Queues) -> Cache {
        let query = "fieldSelector=involvedObject.kind%3DPod".to_owned();
        let selection = Selection { namespace: Some(mount.to_owned()), query };
        let sink = queues.clone();
        let tell = move |change: Change| {
            if !matches!(change, Change::Deleted(_)) {
                sink.events.add(change.item().key());
            }
        };
        let way = worker.endpoint.clone();
        self.keep(Informer::start_slim(way, crate::pod::events(), selection, trim::bare, tell))
    }

    /// Pods that serve the kubelet API; all nodes are looked at when one comes or goes.
    pub(super) fn proxiers(&mut self, computing: &Endpoint, binding: &str, queues: &Queues, nodes: &Cache) -> Cache {
        let (sink, nodes) = (queues.clone(), nodes.clone());
        let look = move |_: Change| nodes.keys().into_iter().for_each(|name| sink.nodes.add(name));
        self.keep(Informer::start_slim(computing.clone(), resource::pods(), proxier_pods(binding), trim::bare, look))
    }
}
