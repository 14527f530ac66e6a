//! From changes anywhere in the hub to tasks, and from tasks to work.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use atoll_apiserver::Hub;
use atoll_meta::{Head, InstanceId, Key, Revision, Status};
use atoll_runtime::{Queue, work};
use atoll_store::{Event, FeedItem};
use parking_lot::Mutex;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use crate::hands::Hands;
use crate::owners::Owners;
use crate::quotas::Quotas;
use crate::task::Task;
use crate::{account, approve, ask, bootstrap, collect, definition, event, job, namespace, request, token};

const WORKERS: usize = 8;
/// Several deletions in a row are counted together.
const COUNTING: Duration = Duration::from_millis(50);

/// The running background work of a hub.
pub struct Background {
    hub: Arc<Hub>,
    queue: Queue<Task>,
    owners: Mutex<Owners>,
    quotas: Mutex<Quotas>,
    root_ca: Arc<str>,
}

impl Background {
    /// Starts it; `root_ca` is what `kube-root-ca.crt` tells pods to trust.
    pub fn start(hub: Arc<Hub>, root_ca: &str, stop: CancellationToken) -> Arc<Self> {
        let own = Arc::new(Self {
            hub,
            queue: Queue::default(),
            owners: Mutex::default(),
            quotas: Mutex::default(),
            root_ca: root_ca.into(),
        });
        let follower = own.clone();
        let token = stop.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = token.cancelled() => {}
                () = follower.follow() => {}
            }
        });
        let worker = own.clone();
        tokio::spawn(work(own.queue.clone(), WORKERS, stop, move |task| {
            let own = worker.clone();
            async move { own.perform(task).await }
        }));
        own
    }

    /// How much is to be done, now or later.
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Waits until nothing is to be done, now or later.
    pub async fn rest(&self) {
        self.queue.rest().await;
    }

    async fn follow(&self) {
        // Up to where each instance was looked at.
        let mut seen = HashMap::new();
        loop {
            let mut feed = self.hub.engine().feed();
            self.scan(&mut seen).await;
            loop {
                match feed.recv().await {
                    Ok(FeedItem::Changed(id, event)) => {
                        self.changed(id, &event);
                        seen.insert(id, event.revision);
                    }
                    Ok(FeedItem::Created(..)) => {}
                    Ok(FeedItem::Dropped(id, _)) => {
                        seen.remove(&id);
                        self.owners.lock().drop_instance(id);
                        self.quotas.lock().drop_instance(id);
                    }
                    // Too far behind: what was missed is found by looking at what changed since.
                    Err(RecvError::Lagged(_)) => break,
                    Err(RecvError::Closed) => return,
                }
            }
        }
    }

    /// Looks at the present state of all instances that changed since they were seen.
    async fn scan(&self, seen: &mut HashMap<InstanceId, Revision>) {
        let engine = self.hub.engine();
        let all: HashMap<InstanceId, Arc<str>> = engine.instances().into_iter().collect();
        seen.retain(|id, _| all.contains_key(id));
        for id in all.into_keys() {
            if engine.revision(id).is_ok_and(|newest| seen.get(&id) == Some(&newest)) {
                continue;
            }
            let Ok(snapshot) = engine.snapshot(id, None).await else { continue };
            seen.insert(id, snapshot.revision);
            self.quotas.lock().drop_instance(id);
            for (key, entry) in &snapshot.entries {
                let current = Some(entry.clone());
                self.changed(id, &Event { key: key.clone(), revision: entry.modified, current, previous: None });
            }
            if snapshot.range("events./", None).next().is_some() {
                self.queue.add(Task::ExpireEvents(id));
            }
        }
    }

    fn changed(&self, id: InstanceId, event: &Event) {
        if let Some(previous) = &event.previous
            && !previous.object.head.owners.is_empty()
        {
            self.owners.lock().remove(id, &event.key, &previous.object.head);
            if event.current.as_ref().is_none_or(|entry| entry.object.head.owners != previous.object.head.owners) {
                // It may have been the last dependent that an owner waited for.
                self.call_owners(id, &previous.object.head);
            }
        }
        if let Some(namespace) = self.quotas.lock().note(id, event) {
            self.queue.add_after(Task::CountUsage(id, namespace), COUNTING);
        }
        for (task, delay) in ask::asks(id, event) {
            self.queue.add_after(task, delay);
        }
        match &event.current {
            Some(entry) => {
                let head = &entry.object.head;
                if !head.owners.is_empty() {
                    self.owners.lock().add(id, &event.key, head);
                    let new = event.previous.as_ref().is_none_or(|old| old.object.head.owners != head.owners);
                    if new {
                        self.queue.add(Task::CheckDependent(id, event.key.clone()));
                    }
                }
                if head.deleting && head.finalizers.iter().any(|f| matches!(&**f, "orphan" | "foregroundDeletion")) {
                    self.queue.add(Task::FinishOwner(id, event.key.clone()));
                }
            }
            None => self.gone(id, event),
        }
    }

    fn gone(&self, id: InstanceId, event: &Event) {
        let Some(last) = &event.previous else { return };
        let head = &last.object.head;
        let owners = self.owners.lock();
        for dependent in owners.of(id, &head.uid) {
            self.queue.add(Task::CheckDependent(id, dependent));
        }
        drop(owners);
    }

    /// Has a look taken at all owners of an object.
    fn call_owners(&self, id: InstanceId, head: &Head) {
        let Some(instance) = self.hub.instance_by_id(id) else { return };
        for owner in &head.owners {
            let (group, version) = atoll_meta::split_api_version(&owner.api_version);
            let Some(kind) = instance.kind_named(group, Some(version), &owner.kind) else { continue };
            let namespace = if kind.namespaced { &*head.namespace } else { "" };
            let key = Key::new(&kind.group, &kind.plural, namespace, &owner.name);
            self.queue.add(Task::FinishOwner(id, key));
        }
    }

    async fn perform(&self, task: Task) -> Result<Option<Duration>, Status> {
        let Some(hands) = Hands::reach(&self.hub, task.instance(), task.agent()) else {
            // An instance is in the store a moment before it serves; one that was dropped is in neither.
            let coming = self.hub.engine().revision(task.instance()).is_ok();
            return if coming { Err(Status::unavailable("the instance does not serve yet")) } else { Ok(None) };
        };
        match task {
            Task::EmptyNamespace(_, name) => namespace::empty(&hands, &name).await,
            Task::EmptyDefinition(_, name) => definition::empty(&hands, &name).await,
            Task::FurnishNamespace(_, name) => account::furnish(&hands, &name, &self.root_ca).await.map(|()| None),
            Task::CheckDependent(_, key) => collect::check_dependent(&hands, &self.owners, &key).await.map(|()| None),
            Task::FinishOwner(_, key) => collect::finish_owner(&hands, &self.owners, &key).await.map(|()| None),
            Task::CountUsage(_, namespace) => {
                atoll_apiserver::recount(&self.hub, &hands.instance, &namespace).await.map(|()| None)
            }
            Task::SettleTokens(_, namespace, account) => {
                token::settle(&hands, &namespace, &account).await.map(|()| None)
            }
            Task::SignInfo(_) => bootstrap::sign(&hands).await.map(|()| None),
            Task::ExpireToken(_, name) => bootstrap::expire(&hands, &name).await,
            Task::ExpireEvents(_) => event::expire(&hands).await,
            Task::ExpireJob(_, key) => job::expire(&hands, &key).await,
            Task::ApproveRequest(_, name) => approve::approve(&hands, &name).await,
            Task::ExpireRequest(_, name) => request::expire(&hands, &name).await,
        }
    }
}
