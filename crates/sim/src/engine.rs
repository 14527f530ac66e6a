//! Runs one simulated cluster: follows its objects and works off what is to do.

use std::sync::Arc;

use atoll_apiserver::Hub;
use atoll_meta::Status;
use atoll_runtime::{Endpoint, work};
use jiff::SignedDuration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::controllers::{self, Again};
use crate::fault::Fault;
use crate::follow::Follower;
use crate::kind::Kind;
use crate::spec::Spec;
use crate::world::{Task, Work, World};
use crate::{kubelet, recorder, registry, scheduler};

/// A running simulated cluster. It ends with its token.
pub struct Sim {
    pub(crate) world: Arc<World>,
    stop: CancellationToken,
    running: TaskTracker,
}

impl Sim {
    /// Starts a simulated cluster in an instance: makes the nodes that are missing, then goes on
    /// with whatever objects are there.
    pub async fn start(
        hub: Arc<Hub>,
        endpoint: Endpoint,
        name: &str,
        spec: Spec,
        stop: CancellationToken,
    ) -> Result<Self, Status> {
        let world = Arc::new(World::new(hub, &endpoint, name, spec, stop.clone()));
        registry::add(&world);
        kubelet::ensure_nodes(&world).await?;
        controllers::volume::ensure_class(&world).await?;
        let instance = world.hub.instance(name).ok_or_else(|| Status::not_found("atoll.io", "instances", name))?;
        let follower = Follower::start(world.clone(), instance).await?;
        look_at_all(&world);
        let running = TaskTracker::new();
        running.spawn(follower.run());
        running.spawn(recorder::run(world.clone()));
        let (inner, token) = (world.clone(), stop.clone());
        running.spawn(async move {
            let workers = inner.spec.workers.max(1);
            let queue = inner.queue.clone();
            work(queue, workers, token, move |job: Work| {
                let world = inner.clone();
                async move { reconcile(&world, &job).await }
            })
            .await;
        });
        running.close();
        Ok(Self { world, stop, running })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.world.name
    }

    /// Ends it and waits until nothing runs any more. Objects stay.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.running.wait().await;
    }

    /// Breaks something.
    pub fn fail(&self, fault: Fault) {
        if let Fault::ClockSkew(skew) = &fault {
            self.world.set_skew(*skew);
        }
        self.world.faults.add(fault);
        self.wake();
    }

    /// Repairs everything.
    pub fn heal(&self) {
        self.repair(|_| true);
    }

    /// Repairs some faults.
    pub fn repair(&self, which: impl Fn(&Fault) -> bool) {
        for fault in self.world.faults.remove(which) {
            if matches!(fault, Fault::ClockSkew(_)) {
                self.world.set_skew(SignedDuration::ZERO);
            }
        }
        self.wake();
    }

    /// Breaks exactly this; what was broken otherwise is repaired.
    pub fn set_faults(&self, wanted: &[Fault]) {
        let present = self.faults();
        if present.iter().any(|fault| !wanted.contains(fault)) {
            self.repair(|fault| !wanted.contains(fault));
        }
        for fault in wanted.iter().filter(|fault| !present.contains(fault)) {
            self.fail(fault.clone());
        }
    }

    /// What is broken at present.
    pub fn faults(&self) -> Vec<Fault> {
        self.world.faults.list()
    }

    /// Takes a node away from the network.
    pub fn node_down(&self, node: &str) {
        self.fail(Fault::NodeDown(node.to_owned()));
    }

    /// Brings a node back.
    pub fn node_up(&self, node: &str) {
        self.repair(|fault| matches!(fault, Fault::NodeDown(name) if name == node));
    }

    /// Everyone looks again, because something outside the objects changed.
    fn wake(&self) {
        for node in self.world.book.read().nodes() {
            self.world.add(Task::Node, node.name());
            kubelet::wake_node(&self.world, node.name());
        }
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        self.stop.cancel();
        registry::remove(&self.world);
    }
}

/// Puts everything on the queue that is there when a cluster starts.
fn look_at_all(world: &World) {
    for kind in Kind::ALL {
        for item in world.cache(kind).list() {
            let key = item.key();
            match kind {
                Kind::Pod => world.add(Task::Pod, key),
                Kind::Node => world.add(Task::Node, key),
                Kind::PersistentVolumeClaim => world.add(Task::Claim, key),
                Kind::PersistentVolume => world.add(Task::Volume, key),
                Kind::PodDisruptionBudget => world.add(Task::Budget, key),
                Kind::Service => {
                    for task in [Task::Service, Task::Endpoints, Task::EndpointSlice] {
                        world.add(task, key.as_str());
                    }
                }
                _ => {
                    if let Some(task) = Task::of(kind) {
                        world.add(task, key);
                    }
                }
            }
        }
    }
    for pod in world.book.read().pods().filter(|pod| !pod.ip.is_empty() && pod.takes_room()) {
        world.addresses.lock().take("", &pod.head().uid, &pod.ip);
    }
    world.add(Task::Schedule, "");
}

/// Does one piece of work.
async fn reconcile(world: &World, job: &Work) -> Again {
    if !world.caught_up(job) {
        return Ok(None);
    }
    let result = match job.task {
        Task::Deployment => Box::pin(controllers::deployment::reconcile(world, job)).await,
        Task::ReplicaSet => Box::pin(controllers::replicaset::reconcile(world, job)).await,
        Task::ReplicationController => Box::pin(controllers::replication::reconcile(world, job)).await,
        Task::StatefulSet => Box::pin(controllers::statefulset::reconcile(world, job)).await,
        Task::DaemonSet => Box::pin(controllers::daemonset::reconcile(world, job)).await,
        Task::Job => Box::pin(controllers::job::reconcile(world, job)).await,
        Task::CronJob => Box::pin(controllers::cronjob::reconcile(world, job)).await,
        Task::Service => Box::pin(controllers::service::reconcile(world, job)).await,
        Task::Endpoints => Box::pin(controllers::endpoints::reconcile(world, job)).await,
        Task::EndpointSlice => Box::pin(controllers::endpointslice::reconcile(world, job)).await,
        Task::Claim => Box::pin(controllers::volume::reconcile_claim(world, job)).await,
        Task::Volume => Box::pin(controllers::volume::reconcile_volume(world, job)).await,
        Task::Budget => Box::pin(controllers::disruption::reconcile(world, job)).await,
        Task::Node => Box::pin(controllers::node_lifecycle::reconcile(world, job)).await,
        Task::Pod => Box::pin(kubelet::reconcile(world, job)).await,
        Task::Schedule => Box::pin(scheduler::reconcile(world)).await,
    };
    match result {
        // Gone meanwhile: its event has called whoever cares.
        Err(status) if status.code == 404 => Ok(None),
        result => result,
    }
}
