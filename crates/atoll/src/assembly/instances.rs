//! Instances: the objects in `root` that describe them, and what runs in each.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use atoll_apiserver::{ApiService, Hub};
use atoll_fleet::enroll::Enrolment;
use atoll_fleet::{Fleet, RemoteMembers};
use atoll_meta::{Gvr, Status, time};
use atoll_runtime::{Change, Endpoint, Informer, Leadership, Patch, Queue, Selection, lead, work};
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

/// How long a hub that leads may be silent until another takes over.
const LEASE: Duration = Duration::from_secs(15);

/// The instances of the hub.
pub struct Instances {
    hub: Arc<Hub>,
    service: ApiService,
    remote: RemoteMembers,
    root: Endpoint,
    /// Whether other hubs may use the same store: then one of them leads.
    shared: bool,
    /// Whether what runs in instances runs here.
    leads: AtomicBool,
    stop: CancellationToken,
    queue: Queue<String>,
    running: Mutex<HashMap<String, Running>>,
    informer: Mutex<Option<Arc<Informer>>>,
}

/// What runs in one instance, in the hub that leads.
struct Running {
    stop: CancellationToken,
    sim: Option<Sim>,
    _leases: Option<Manager>,
    enrolment: Option<Enrolment>,
    fleet: Option<Propagation>,
}

/// Propagation in one instance.
struct Propagation {
    stop: CancellationToken,
    /// The settings it was started with, and what is wrong with them.
    settings: BTreeMap<String, String>,
    wrong: Option<String>,
    _fleet: Fleet,
}

/// What an instance that is ready says of itself.
const SERVES: &str = "the instance serves requests";

/// Where Instance objects are.
pub fn gvr() -> Gvr {
    Gvr::new("atoll.io", "v1alpha1", "instances")
}

impl Instances {
    /// The instances of a hub; nothing runs yet.
    pub fn new(
        hub: Arc<Hub>,
        service: ApiService,
        remote: RemoteMembers,
        shared: bool,
        stop: CancellationToken,
    ) -> Self {
        let root = endpoint(&service, "root", "atoll-instances");
        Self {
            hub,
            service,
            remote,
            root,
            shared,
            leads: AtomicBool::new(!shared),
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
        if self.shared {
            let leadership = Leadership {
                namespace: "kube-system".to_owned(),
                name: "atoll-instances".to_owned(),
                identity: uuid::Uuid::new_v4().to_string(),
                duration: LEASE,
            };
            let (own, root, stop) = (self.clone(), self.root.clone(), self.stop.clone());
            tokio::spawn(async move { lead(root, leadership, stop, |lost| own.clone().lead(lost)).await });
        }
        Ok(())
    }

    /// Runs what belongs to instances until another hub does.
    async fn lead(self: Arc<Self>, lost: CancellationToken) {
        self.leads.store(true, Ordering::Release);
        for instance in self.hub.instances() {
            self.queue.add(instance.name.to_string());
        }
        lost.cancelled().await;
        self.leads.store(false, Ordering::Release);
        for (_, running) in self.running.lock().drain() {
            running.stop.cancel();
        }
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
        let wrong = if self.leads.load(Ordering::Acquire) { self.run(name, &object).await? } else { None };
        let message = match wrong {
            Some(why) => format!("{SERVES}; settings of propagation are not used: {why}"),
            None => SERVES.to_owned(),
        };
        // Only one of several hubs knows what is wrong with settings.
        if self.leads.load(Ordering::Acquire) || object["status"]["phase"] != "Ready" {
            self.report(name, &object, "Ready", "Serving", &message).await?;
        }
        Ok(None)
    }

    /// Runs what the object asks for; what is wrong with its settings, if anything is.
    async fn run(self: &Arc<Self>, name: &str, object: &Value) -> Result<Option<String>, Status> {
        if !self.running.lock().contains_key(name) {
            let running = self.start_parts(name, object).await?;
            let mut all = self.running.lock();
            if !self.leads.load(Ordering::Acquire) {
                running.stop.cancel();
                return Ok(None);
            }
            all.insert(name.to_owned(), running);
        }
        if let Some(sim) = self.running.lock().get(name).and_then(|running| running.sim.as_ref()) {
            super::faults::apply(sim, object);
        }
        let (clusters, tokens) = (self.has(name, CLUSTERS).await, self.has(name, TOKENS).await);
        let wrong = if clusters { self.propagate(name, object).await } else { None };
        if clusters || tokens {
            // Members enrol with tokens, and agents renew where there are clusters.
            self.ensure_enrolment(name).await;
        }
        Ok(wrong)
    }

    /// Starts what an object asks for.
    async fn start_parts(self: &Arc<Self>, name: &str, object: &Value) -> Result<Running, Status> {
        let stop = self.stop.child_token();
        let annotations = &object["metadata"]["annotations"];
        let mut running = Running { stop: stop.clone(), sim: None, _leases: None, enrolment: None, fleet: None };
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
            running._leases = Some(self.start_leases(name, stop).await);
        }
        Ok(running)
    }

    /// Leases nodes into an instance.
    async fn start_leases(&self, name: &str, stop: CancellationToken) -> Manager {
        let way = endpoint(&self.service, name, "atoll-vnode");
        let mut options = atoll_vnode::Options::new(way, Arc::new(self.members()));
        // An instance has no load balancers: what it does not offer stays as the worker has it.
        options.intranet_required = false;
        let manager = Manager::start(options, stop).await;
        for stream in atoll_vnode::STREAMS {
            let otherwise = atoll_sim::connector(&self.hub, stream);
            let connector = atoll_vnode::connector(manager.clone(), name, Some(otherwise));
            self.hub.add_connector("", "pods", stream, connector);
        }
        if let Some(instance) = self.hub.instance(name) {
            let leased = |own| atoll_vnode::usage(manager.clone(), name, own);
            self.hub.mount_before("metrics.k8s.io", &instance, leased);
        }
        manager
    }

    /// Whether an instance holds objects whose keys begin so.
    async fn has(&self, name: &str, prefix: &str) -> bool {
        let Some(instance) = self.hub.instance(name) else { return false };
        self.hub.snapshot(&instance).await.is_ok_and(|snapshot| snapshot.range(prefix, None).next().is_some())
    }

    /// Lets members enrol in an instance.
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

    /// Runs propagation in an instance that has clusters, with its present settings; an instance without costs nothing.
    async fn propagate(&self, name: &str, object: &Value) -> Option<String> {
        let settings = atoll_fleet::settings(&object["metadata"]["annotations"]);
        let stop = {
            let mut all = self.running.lock();
            let running = all.get_mut(name)?;
            match running.fleet.take() {
                Some(same) if same.settings == settings => {
                    let wrong = same.wrong.clone();
                    running.fleet = Some(same);
                    return wrong;
                }
                // The controllers are those of a hub that was started anew: they find everything in the instance.
                Some(former) => former.stop.cancel(),
                None => {}
            }
            running.stop.child_token()
        };
        let way = endpoint(&self.service, name, "atoll-fleet");
        for (gvr, object) in atoll_fleet::objects() {
            if let Err(status) = way.ensure(&gvr, None, &object).await {
                tracing::warn!(instance = name, %status, "a namespace or service of the fleet is missing");
            }
        }
        let mut options = atoll_fleet::Options::new(way, Arc::new(self.members()));
        let wrong = options.configure(&object["metadata"]["annotations"]).err();
        if let Some(why) = &wrong {
            tracing::error!(instance = name, why, "settings of propagation are not used");
        }
        let fleet = Fleet::start(options, stop.clone()).await;
        if let Some(running) = self.running.lock().get_mut(name) {
            running.fleet = Some(Propagation { stop, settings, wrong: wrong.clone(), _fleet: fleet });
        }
        wrong
    }

    /// Waits for the first cluster and the first token of each instance.
    async fn follow_clusters(self: Arc<Self>) {
        let mut feed = self.hub.engine().feed();
        loop {
            match feed.recv().await {
                Ok(FeedItem::Changed(id, event)) if event.current.is_some() => {
                    let key = event.key.as_str();
                    let (cluster, token) = (key.starts_with(CLUSTERS), key.starts_with(TOKENS));
                    if let Some(instance) = self.hub.instance_by_id(id).filter(|_| cluster || token)
                        && self.lacks(&instance.name, cluster)
                    {
                        self.queue.add(instance.name.to_string());
                    }
                }
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => {
                    for instance in self.hub.instances() {
                        self.queue.add(instance.name.to_string());
                    }
                }
                Err(RecvError::Closed) => return,
            }
        }
    }

    /// Whether something that a cluster or a token needs does not run yet.
    fn lacks(&self, name: &str, cluster: bool) -> bool {
        let all = self.running.lock();
        all.get(name).is_some_and(|running| running.enrolment.is_none() || (cluster && running.fleet.is_none()))
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
