//! A syncer under supervision: when it fails it is started again, and touches nobody else.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use parking_lot::RwLock;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::Settings;
use crate::binding::Binding;
use crate::syncer::{Computing, Reach, Syncer};
use crate::worker::Worker;

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// A supervised syncer.
pub(crate) struct Running {
    /// Tells one kubeconfig from another.
    pub(crate) fingerprint: String,
    pub(crate) cluster_id: String,
    pub(crate) reach: Reach,
    /// Whether we may do in the worker cluster what we have to.
    pub(crate) permitted: Arc<AtomicBool>,
    pub(crate) worker: Worker,
    current: Arc<RwLock<Option<Arc<Syncer>>>>,
    binding: Arc<RwLock<Binding>>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Running {
    pub(crate) fn start(
        settings: Arc<Settings>,
        computing: Arc<Computing>,
        worker: Worker,
        binding: Binding,
        fingerprint: String,
    ) -> Self {
        let stop = CancellationToken::new();
        let reach = Reach::default();
        let current = Arc::new(RwLock::new(None));
        let cluster_id = binding.cluster_id.clone();
        let binding = Arc::new(RwLock::new(binding));
        let supervisor = Supervisor {
            settings,
            computing,
            worker: worker.clone(),
            binding: binding.clone(),
            reach: reach.clone(),
            current: current.clone(),
        };
        let task = tokio::spawn(supervisor.run(stop.clone()));
        Self { fingerprint, cluster_id, reach, permitted: Arc::default(), worker, current, binding, stop, task }
    }

    pub(crate) fn syncer(&self) -> Option<Arc<Syncer>> {
        self.current.read().clone()
    }

    /// Hands a changed binding over, also for later restarts.
    pub(crate) fn set_binding(&self, binding: Binding) {
        if let Some(syncer) = self.syncer() {
            syncer.set_binding(binding.clone());
        }
        *self.binding.write() = binding;
    }

    pub(crate) async fn end(self) {
        self.stop.cancel();
        // A failure of the task is logged where it happens.
        let _ = self.task.await;
    }
}

struct Supervisor {
    settings: Arc<Settings>,
    computing: Arc<Computing>,
    worker: Worker,
    binding: Arc<RwLock<Binding>>,
    reach: Reach,
    current: Arc<RwLock<Option<Arc<Syncer>>>>,
}

impl Supervisor {
    async fn run(self, stop: CancellationToken) {
        let probe = {
            let (reach, worker, every, stop) =
                (self.reach.clone(), self.worker.endpoint.clone(), self.settings.probe, stop.clone());
            tokio::spawn(async move { reach.probe(worker, every, stop).await })
        };
        let mut pause = FIRST_PAUSE;
        while !stop.is_cancelled() {
            let binding = self.binding.read().clone();
            let name = binding.name.clone();
            let current = self.current.clone();
            let ready = move |syncer: Arc<Syncer>| *current.write() = Some(syncer);
            let (settings, computing, worker) = (self.settings.clone(), self.computing.clone(), self.worker.clone());
            let once = stop.child_token();
            // In a task of its own: a panic ends this run and nothing else.
            let run = tokio::spawn(Syncer::run(
                settings,
                computing,
                worker,
                binding,
                self.reach.clone(),
                ready,
                once.clone(),
            ));
            match run.await {
                Ok(Ok(())) => pause = FIRST_PAUSE,
                Ok(Err(status)) => tracing::warn!(binding = name, %status, "the syncer failed and is started again"),
                Err(error) => tracing::error!(binding = name, %error, "the syncer crashed and is started again"),
            }
            once.cancel();
            *self.current.write() = None;
            if stop.is_cancelled() {
                break;
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
            }
        }
        let _ = probe.await;
    }
}
