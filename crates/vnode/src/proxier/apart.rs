//! A proxier that runs apart from its syncer: it keeps no node, it only answers for those of its binding.

use std::sync::Arc;
use std::time::Duration;

use atoll_api::kubeocean::ClusterBinding;
use atoll_api::kubeocean_names::{MANAGED_BY, label};
use atoll_meta::Status;
use atoll_runtime::{Cache, Endpoint, Informer, Queue, Selection, work};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Doors, Meter, Proxier};
use crate::binding::Binding;
use crate::manager::{Secrets, fingerprint};
use crate::switchboard::Switchboard;
use crate::worker::{WorkerResolver, kubeconfig};
use crate::{Clock, resource, tree, trim};

/// How often the binding and its kubeconfig are looked at although nothing is heard of a change; the first time again
/// sooner.
const AGAIN: Duration = Duration::from_secs(30);
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// Where the pods of all virtual nodes are answered for, as the Service of the binding has it.
pub(crate) const MAIN_PORT: u16 = 10250;

/// What a proxier needs.
pub(crate) struct Attendance {
    pub(crate) computing: Endpoint,
    pub(crate) workers: Arc<dyn WorkerResolver>,
    pub(crate) proxier: Arc<Proxier>,
    pub(crate) clock: Clock,
    /// The name of the binding.
    pub(crate) binding: String,
}

/// Answers until `stop`; says when it began.
pub(crate) async fn attend(own: Attendance, began: impl Fn(), stop: CancellationToken) {
    let mut open: Option<Session> = None;
    let mut pause = FIRST_PAUSE;
    let (changes, secrets) = (Queue::default(), Secrets::default());
    let _binding = own.follow(&changes);
    loop {
        let looked = tokio::select! {
            () = stop.cancelled() => return,
            looked = own.look(&mut open, &secrets, &changes) => looked,
        };
        let wait = match looked {
            Ok(()) => {
                began();
                pause = FIRST_PAUSE;
                AGAIN
            }
            Err(status) => {
                tracing::warn!(binding = own.binding, %status, "the binding cannot be answered for");
                pause = (pause * 2).min(AGAIN);
                pause
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(wait) => {}
            _ = changes.next() => {}
        }
    }
}

/// One worker cluster under one kubeconfig; everything closes when it is dropped.
struct Session {
    fingerprint: String,
    _informers: [Informer; 2],
    _stop: DropGuard,
}

impl Attendance {
    /// Hears of changes of the binding.
    fn follow(&self, changes: &Queue<String>) -> Informer {
        let selection = Selection { namespace: None, query: format!("fieldSelector=metadata.name%3D{}", self.binding) };
        let (sink, name) = (changes.clone(), self.binding.clone());
        Informer::start_light(self.computing.clone(), resource::bindings(), selection, move |_| sink.add(name.clone()))
    }

    /// Has a session open that goes to where the binding says, and hears when its kubeconfig changes.
    async fn look(&self, open: &mut Option<Session>, secrets: &Secrets, changes: &Queue<String>) -> Result<(), Status> {
        let object = self.computing.get(&resource::bindings(), None, &self.binding).await?;
        let binding: ClusterBinding =
            serde_json::from_value(object).map_err(|error| Status::bad_request(error.to_string()))?;
        secrets.follow(&self.computing, &binding, changes);
        let kubeconfig = kubeconfig(&self.computing, &binding).await?;
        let fingerprint = fingerprint(&kubeconfig, &Binding::of(&binding));
        if open.as_ref().is_some_and(|open| open.fingerprint == fingerprint) {
            return Ok(());
        }
        // The ports are the same: the old session closes them before the new one opens them.
        *open = None;
        *open = Some(self.open(&binding, &kubeconfig, fingerprint).await?);
        Ok(())
    }

    async fn open(&self, binding: &ClusterBinding, kubeconfig: &str, fingerprint: String) -> Result<Session, Status> {
        let system = self.computing.get(&resource::namespaces(), None, "kube-system").await?;
        let worker = self.workers.resolve(binding, kubeconfig).await?;
        let mount = binding.spec.mount_namespace.clone();
        let selection = Selection {
            namespace: Some(mount.clone()),
            query: format!("labelSelector={}%3D{MANAGED_BY}", label::MANAGED_BY),
        };
        let pods = Informer::start_slim(worker.endpoint.clone(), resource::pods(), selection, trim::below, drop);
        let board = Arc::new(Switchboard {
            computing: self.computing.clone(),
            owner: tree::uid(&system).to_owned(),
            worker,
            mount,
            pods: pods.cache.clone(),
            meter: Meter::default(),
            clock: self.clock.clone(),
        });
        let query = format!(
            "labelSelector={}%3D{MANAGED_BY}%2C{}%3D{}",
            label::MANAGED_BY,
            label::CLUSTER_BINDING,
            self.binding
        );
        let queue = Queue::default();
        let sink = queue.clone();
        let selection = Selection { namespace: None, query };
        let nodes =
            Informer::start_slim(self.computing.clone(), resource::nodes(), selection, trim::bare, move |change| {
                sink.add(change.item().object.head.name.to_string());
            });
        let doors = Arc::new(Doors::default());
        if let Err(error) = doors.open(&self.proxier, &board, "", MAIN_PORT).await {
            tracing::warn!(port = MAIN_PORT, %error, "pods are answered for on the ports of their nodes only");
        }
        nodes.synced().await;
        let stop = CancellationToken::new();
        let (cache, proxier) = (nodes.cache.clone(), self.proxier.clone());
        let keep = move |node: String| keep(doors.clone(), proxier.clone(), board.clone(), cache.clone(), node);
        tokio::spawn(work(queue, 1, stop.clone(), keep));
        Ok(Session { fingerprint, _informers: [pods, nodes], _stop: stop.drop_guard() })
    }
}

/// Has the port of a virtual node open as its label says, while it is there.
async fn keep(
    doors: Arc<Doors>,
    proxier: Arc<Proxier>,
    board: Arc<Switchboard>,
    nodes: Cache,
    node: String,
) -> Result<Option<Duration>, Status> {
    let item = nodes.get("", &node);
    let port = item.as_ref().and_then(|item| item.object.head.label(label::PROXIER_PORT)?.parse::<u16>().ok());
    match port {
        Some(port) if doors.port(&node) != Some(port) => {
            let opened = doors.open(&proxier, &board, &node, port).await;
            opened.map_err(|error| Status::unavailable(format!("port {port} of {node}: {error}")))?;
        }
        Some(_) => {}
        None => doors.close(&node),
    }
    Ok(None)
}
