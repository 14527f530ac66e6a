//! Instances: the objects in `root` that describe them, and what runs in each.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use atoll_apiserver::{ApiService, Hub};
use atoll_fleet::enroll::Enrolment;
use atoll_fleet::{Fleet, RemoteMembers};
use atoll_meta::{Gvr, Status, time};
use atoll_runtime::{Change, Endpoint, Informer, Patch, Queue, Selection, work};
use atoll_sim::{Sim, Spec};
use atoll_store::FeedItem;
use atoll_vnode::Manager;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use super::members::Members;
use super::parts::endpoint;

/// Keeps an Instance until what it stands for is gone.
const FINALIZER: &str = "atoll.io/instance";
/// Marks an instance as a simulated cluster with this many nodes.
pub const NODES: &str = "sim.atoll.io/nodes";
/// Annotation that says what a simulated cluster tells as events: `all`, `controllers` or `problems`.
pub const EVENTS: &str = "sim.atoll.io/events";
/// Marks an instance as a computing cluster that leases nodes.
pub const LEASES: &str = "atoll.io/leases";
/// What keys of Cluster objects begin with.
const CLUSTERS: &str = "clusters.cluster.karmada.io/";
/// What keys of bootstrap tokens begin with.
const TOKENS: &str = "secrets./kube-system/bootstrap-token-";
/// Deletes an instance although clusters are joined to it.
const FORCE: &str = "atoll.io/force-delete";

/// The instances of the hub.
pub struct Instances {
    hub: Arc<Hub>,
    service: ApiService,
    remote: RemoteMembers,
    root: Endpoint,
    stop: CancellationToken,
    queue: Queue<String>,
    running: Mutex<HashMap<String, Running>>,
    informer: Mutex<Option<Arc<Informer>>>,
}

/// What runs in one instance. Dropping it ends it.
struct Running {
    stop: CancellationToken,
    sim: Option<Sim>,
    fleet: Option<Fleet>,
    enrolment: Option<Enrolment>,
    leases: Option<Manager>,
}

/// Where Instance objects are.
pub fn gvr() -> Gvr {
    Gvr::new("atoll.io", "v1alpha1", "instances")
}

impl Instances {
    /// The instances of a hub; nothing runs yet.
    pub fn new(hub: Arc<Hub>, service: ApiService, remote: RemoteMembers, stop: CancellationToken) -> Self {
        let root = endpoint(&service, "root", "atoll-instances");
        Self {
            hub,
            service,
            remote,
            root,
            stop,
            queue: Queue::default(),
            running: Mutex::default(),
            informer: Mutex::default(),
        }
    }

    /// Follows the Instance objects of `root`.
    pub async fn start(self: Arc<Self>) -> anyhow::Result<()> {
        let queue = self.queue.clone();
        let informer = Informer::start(self.root.clone(), gvr(), Selection::default(), move |change: Change| {
            queue.add(change.item().object.head.name.to_string());
        });
        informer.synced().await;
        *self.informer.lock() = Some(Arc::new(informer));
        let (own, queue, stop) = (self.clone(), self.queue.clone(), self.stop.clone());
        tokio::spawn(work(queue, 4, stop, move |name| {
            let own = own.clone();
            async move { own.reconcile(&name).await }
        }));
        let (own, stop) = (self.clone(), self.stop.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = own.follow_clusters() => {}
            }
        });
        Ok(())
    }

    async fn reconcile(self: &Arc<Self>, name: &str) -> Result<Option<Duration>, Status> {
        let Some(object) = self.root.get_opt(&gvr(), None, name).await? else { return Ok(None) };
        if !object["metadata"]["deletionTimestamp"].is_null() {
            return self.finish(name, &object).await;
        }
        if object["spec"]["type"] == "External" {
            return Ok(None);
        }
        if !has_finalizer(&object) {
            let mut list = object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
            list.push(FINALIZER.into());
            let patch =
                json!({"metadata": {"finalizers": list, "resourceVersion": object["metadata"]["resourceVersion"]}});
            self.root.patch(&gvr(), None, name, "", Patch::Merge, &patch).await?;
        }
        if self.hub.instance(name).is_none() {
            self.hub.create_instance(name).await?;
        }
        if let Some(instance) = self.hub.instance(name) {
            // Those that were taken back are as usual again; usual ones are shared by all instances.
            let wanted = atoll_apiserver::Limits::of(&object["spec"]["limits"]);
            if *instance.limits() != wanted {
                instance.set_limits(wanted);
            }
        }
        self.run(name, &object).await?;
        if let Some(sim) = self.running.lock().get(name).and_then(|running| running.sim.as_ref()) {
            super::faults::apply(sim, &object);
        }
        self.report(name, &object, "Ready", "Serving", "the instance serves requests").await?;
        Ok(None)
    }

    /// Starts what the object asks for and does not run yet.
    async fn run(self: &Arc<Self>, name: &str, object: &Value) -> Result<(), Status> {
        if self.running.lock().contains_key(name) {
            return Ok(());
        }
        let stop = self.stop.child_token();
        let annotations = &object["metadata"]["annotations"];
        let mut running = Running { stop: stop.clone(), sim: None, fleet: None, enrolment: None, leases: None };
        if let Some(nodes) = annotations[NODES].as_str().and_then(|text| text.parse().ok()) {
            if let Some(instance) = self.hub.instance(name) {
                instance.set_features(atoll_apiserver::Features::member());
            }
            let spec = Spec { region: text(annotations, "sim.atoll.io/region", "sim-1"), ..Spec::with_nodes(nodes) }
                .with_events(&text(annotations, EVENTS, "all"));
            let way = endpoint(&self.service, name, "atoll-sim");
            running.sim = Some(Sim::start(self.hub.clone(), way, name, spec, stop.clone()).await?);
        }
        if annotations[LEASES] == "true" {
            let way = endpoint(&self.service, name, "atoll-vnode");
            let mut options = atoll_vnode::Options::new(way, Arc::new(self.members()));
            // An instance has no load balancers: what it does not offer stays as the worker has it.
            options.intranet_required = false;
            let manager = Manager::start(options, stop.clone()).await;
            for stream in atoll_vnode::STREAMS {
                let otherwise = atoll_sim::connector(&self.hub, stream);
                let connector = atoll_vnode::connector(manager.clone(), name, Some(otherwise));
                self.hub.add_connector("", "pods", stream, connector);
            }
            if let Some(instance) = self.hub.instance(name) {
                let leased = |own| atoll_vnode::usage(manager.clone(), name, own);
                self.hub.mount_before("metrics.k8s.io", &instance, leased);
            }
            running.leases = Some(manager);
        }
        self.running.lock().insert(name.to_owned(), running);
        if self.has(name, CLUSTERS).await {
            self.ensure_fleet(name).await;
        }
        if self.has(name, TOKENS).await {
            self.ensure_enrolment(name).await;
        }
        Ok(())
    }

    /// Whether an instance holds objects whose keys begin so.
    async fn has(&self, name: &str, prefix: &str) -> bool {
        let Some(instance) = self.hub.instance(name) else { return false };
        self.hub.snapshot(&instance).await.is_ok_and(|snapshot| snapshot.range(prefix, None).next().is_some())
    }

    /// Lets members enrol in an instance that has tokens for them, and agents renew where there are clusters.
    async fn ensure_enrolment(&self, name: &str) {
        let stop = match self.running.lock().get(name) {
            Some(running) if running.enrolment.is_none() => running.stop.clone(),
            _ => return,
        };
        let way = endpoint(&self.service, name, "atoll-enrolment");
        let started = Enrolment::start(way, Arc::new(jiff::Timestamp::now), stop).await;
        match (started, self.running.lock().get_mut(name)) {
            (Ok(started), Some(running)) => running.enrolment = Some(started),
            (Err(status), _) => tracing::warn!(instance = name, %status, "members cannot enrol"),
            _ => {}
        }
    }

    /// Starts propagation in an instance that has clusters; an instance without costs nothing.
    async fn ensure_fleet(&self, name: &str) {
        let stop = match self.running.lock().get(name) {
            Some(running) if running.fleet.is_none() => running.stop.clone(),
            _ => return,
        };
        let way = endpoint(&self.service, name, "atoll-fleet");
        for (gvr, object) in atoll_fleet::objects() {
            if let Err(status) = way.ensure(&gvr, None, &object).await {
                tracing::warn!(instance = name, %status, "a namespace or service of the fleet is missing");
            }
        }
        let mut options = atoll_fleet::Options::new(way, Arc::new(self.members()));
        let object = self.root.get_opt(&gvr(), None, name).await.ok().flatten().unwrap_or_default();
        if let Err(why) = options.configure(&object["metadata"]["annotations"]) {
            tracing::error!(instance = name, why, "settings of the fleet are left at their usual values");
        }
        let fleet = Fleet::start(options, stop).await;
        if let Some(running) = self.running.lock().get_mut(name)
            && running.fleet.is_none()
        {
            running.fleet = Some(fleet);
        }
        self.ensure_enrolment(name).await;
    }

    /// Waits for the first cluster and the first token of each instance.
    async fn follow_clusters(self: Arc<Self>) {
        let mut feed = self.hub.engine().feed();
        loop {
            match feed.recv().await {
                Ok(FeedItem::Changed(id, event)) if event.current.is_some() => {
                    let key = event.key.as_str();
                    let (cluster, token) = (key.starts_with(CLUSTERS), key.starts_with(TOKENS));
                    if let Some(instance) = self.hub.instance_by_id(id).filter(|_| cluster || token) {
                        if cluster {
                            self.ensure_fleet(&instance.name).await;
                        } else {
                            self.ensure_enrolment(&instance.name).await;
                        }
                    }
                }
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => {
                    for instance in self.hub.instances() {
                        if self.has(&instance.name, CLUSTERS).await {
                            self.ensure_fleet(&instance.name).await;
                        }
                        if self.has(&instance.name, TOKENS).await {
                            self.ensure_enrolment(&instance.name).await;
                        }
                    }
                }
                Err(RecvError::Closed) => return,
            }
        }
    }

    /// How members and workers are reached.
    pub fn members(&self) -> Members {
        Members { hub: self.hub.clone(), service: self.service.clone(), remote: self.remote.clone() }
    }

    /// Removes an instance whose object is being deleted.
    async fn finish(&self, name: &str, object: &Value) -> Result<Option<Duration>, Status> {
        if !has_finalizer(object) {
            return Ok(None);
        }
        if let Some(instance) = self.hub.instance(name) {
            let clusters = self.hub.snapshot(&instance).await?.range("clusters.cluster.karmada.io/", None).count();
            let forced = object["metadata"]["annotations"][FORCE] == "true";
            if clusters > 0 && !forced {
                let why = format!("{clusters} clusters are joined; remove them first, or set the annotation {FORCE}");
                self.report(name, object, "Deleting", "ClustersJoined", &why).await?;
                return Ok(Some(Duration::from_secs(5)));
            }
            if let Some(running) = self.running.lock().remove(name) {
                running.stop.cancel();
            }
            self.hub.drop_instance(name).await?;
        }
        let kept: Vec<&Value> =
            object["metadata"]["finalizers"].as_array().into_iter().flatten().filter(|own| *own != FINALIZER).collect();
        let patch = json!({"metadata": {"finalizers": kept}});
        match self.root.patch(&gvr(), None, name, "", Patch::Merge, &patch).await {
            Err(status) if status.code != 404 => Err(status),
            _ => Ok(None),
        }
    }

    async fn report(&self, name: &str, object: &Value, phase: &str, reason: &str, message: &str) -> Result<(), Status> {
        let (major, minor, patch) = atoll_apiserver::Options::default().kubernetes_version;
        let ready = if phase == "Ready" { "True" } else { "False" };
        let old = &object["status"]["conditions"][0];
        if object["status"]["phase"] == phase && old["reason"] == reason && old["message"] == message {
            return Ok(());
        }
        let since = if old["status"] == ready {
            old["lastTransitionTime"].clone()
        } else {
            time::format(self.hub.now()).into()
        };
        let status = json!({"status": {
            "phase": phase, "version": format!("v{major}.{minor}.{patch}"),
            "observedGeneration": object["metadata"]["generation"],
            "conditions": [{"type": "Ready", "status": ready, "reason": reason, "message": message, "lastTransitionTime": since}],
        }});
        match self.root.patch(&gvr(), None, name, "status", Patch::Merge, &status).await {
            Err(status) if status.code != 404 => Err(status),
            _ => Ok(()),
        }
    }
}

fn text(annotations: &Value, key: &str, otherwise: &str) -> String {
    annotations[key].as_str().unwrap_or(otherwise).to_owned()
}

fn has_finalizer(object: &Value) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|list| list.iter().any(|own| own == FINALIZER))
}
