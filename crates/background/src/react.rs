//! From changes anywhere in the hub to tasks, and from tasks to work.

use std::sync::Arc;
use std::time::Duration;

use atoll_apiserver::Hub;
use atoll_meta::{InstanceId, Status};
use atoll_runtime::{Queue, work};
use atoll_store::{Event, FeedItem};
use parking_lot::Mutex;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use crate::hands::Hands;
use crate::owners::Owners;
use crate::task::Task;
use crate::{account, collect, definition, namespace};

const WORKERS: usize = 8;

/// The running background work of a hub.
pub struct Background {
    hub: Arc<Hub>,
    queue: Queue<Task>,
    owners: Arc<Mutex<Owners>>,
    root_ca: Arc<str>,
}

impl Background {
    /// Starts it; `root_ca` is what `kube-root-ca.crt` tells pods to trust.
    pub fn start(hub: Arc<Hub>, root_ca: &str, stop: CancellationToken) -> Arc<Self> {
        let own = Arc::new(Self { hub, queue: Queue::default(), owners: Arc::default(), root_ca: root_ca.into() });
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

    async fn follow(&self) {
        loop {
            let mut feed = self.hub.engine().feed();
            self.scan().await;
            loop {
                match feed.recv().await {
                    Ok(FeedItem::Changed(id, event)) => self.changed(id, &event),
                    Ok(FeedItem::Created(..)) => {}
                    Ok(FeedItem::Dropped(id, _)) => self.owners.lock().drop_instance(id),
                    // Too far behind: what was missed is found by looking at everything again.
                    Err(RecvError::Lagged(_)) => break,
                    Err(RecvError::Closed) => return,
                }
            }
        }
    }

    /// Looks at the present state of all instances.
    async fn scan(&self) {
        for instance in self.hub.instances() {
            let Ok(snapshot) = self.hub.snapshot(&instance).await else { continue };
            for (key, entry) in &snapshot.entries {
                let event =
                    Event { key: key.clone(), revision: entry.modified, current: Some(entry.clone()), previous: None };
                self.changed(instance.id, &event);
            }
        }
    }

    fn changed(&self, id: InstanceId, event: &Event) {
        if let Some(previous) = &event.previous
            && !previous.object.head.owners.is_empty()
        {
            self.owners.lock().remove(id, &event.key, &previous.object.head);
        }
        let resource = event.key.resource();
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
                match resource {
                    "namespaces." if head.deleting => self.queue.add(Task::EmptyNamespace(id, head.name.to_string())),
                    "namespaces." if event.previous.is_none() => {
                        self.queue.add(Task::FurnishNamespace(id, head.name.to_string()));
                    }
                    "customresourcedefinitions.apiextensions.k8s.io" if head.deleting => {
                        self.queue.add(Task::EmptyDefinition(id, head.name.to_string()));
                    }
                    "configmaps." if &*head.name == "kube-root-ca.crt" && event.previous.is_some() => {
                        self.queue.add(Task::FurnishNamespace(id, head.namespace.to_string()));
                    }
                    _ => {}
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
        // A dependent that went may have been the last its owner waited for.
        for owner in &head.owners {
            if let Some(hands) = Hands::reach(&self.hub, id, "generic-garbage-collector") {
                let (group, version) = atoll_meta::split_api_version(&owner.api_version);
                if let Some(kind) = hands.instance.kind_named(group, Some(version), &owner.kind) {
                    let namespace = if kind.namespaced { &*head.namespace } else { "" };
                    let key = atoll_meta::Key::new(&kind.group, &kind.plural, namespace, &owner.name);
                    self.queue.add(Task::FinishOwner(id, key));
                }
            }
        }
        match event.key.resource() {
            "configmaps." if &*head.name == "kube-root-ca.crt" => {
                self.queue.add(Task::FurnishNamespace(id, head.namespace.to_string()));
            }
            "serviceaccounts." if &*head.name == "default" => {
                self.queue.add(Task::FurnishNamespace(id, head.namespace.to_string()));
            }
            _ => {}
        }
    }

    async fn perform(&self, task: Task) -> Result<Option<Duration>, Status> {
        let Some(hands) = Hands::reach(&self.hub, task.instance(), agent(&task)) else {
            // An instance is in the store a moment before it serves; one that was dropped is in neither.
            let coming = self.hub.engine().revision(task.instance()).is_ok();
            return if coming { Err(Status::unavailable("the instance does not serve yet")) } else { Ok(None) };
        };
        match task {
            Task::EmptyNamespace(_, name) => namespace::empty(&hands, &name).await,
            Task::EmptyDefinition(_, name) => definition::empty(&hands, &name).await,
            Task::FurnishNamespace(_, name) => account::furnish(&hands, &name, &self.root_ca).await.map(|()| None),
            Task::CheckDependent(_, key) => collect::check_dependent(&hands, &key).await.map(|()| None),
            Task::FinishOwner(id, key) => collect::finish_owner(&hands, &self.owners, id, &key).await.map(|()| None),
        }
    }
}

fn agent(task: &Task) -> &'static str {
    match task {
        Task::EmptyNamespace(..) => "namespace-controller",
        Task::FurnishNamespace(..) => "service-account-controller",
        Task::EmptyDefinition(..) => "crd-finalizer",
        Task::FinishOwner(..) | Task::CheckDependent(..) => "generic-garbage-collector",
    }
}
