//! The hub: all instances over one store, and what they share.

use std::collections::HashMap;
use std::sync::Arc;

use atoll_meta::Status;
use atoll_store::{Engine, StoreError};
use jiff::Timestamp;
use parking_lot::RwLock;
use tokio_util::sync::CancellationToken;

use crate::admission::Admission;
use crate::extend::{Connect, Mount};
use crate::instance::{Instance, store_status};

/// Settings of a hub.
#[derive(Clone, Debug)]
pub struct Options {
    /// Largest accepted request body.
    pub max_body: usize,
    /// Requests that may run at once, watches not counted.
    pub max_in_flight: usize,
    /// The version `/version` reports.
    pub kubernetes_version: (u32, u32, u32),
    /// Where programs inside instances reach the hub.
    pub advertise: Option<std::net::SocketAddr>,
    /// Where callers reach the hub, without a slash at the end; also [`Hub::set_url`].
    pub url: String,
    /// Instances are also reached as `NAME.DOMAIN`.
    pub domain: String,
    /// The longest life of a token a TokenRequest may ask for; longer wishes are shortened.
    pub max_token_seconds: i64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_body: 3 * 1024 * 1024,
            max_in_flight: 600,
            kubernetes_version: (1, 35, 8),
            advertise: None,
            url: "https://127.0.0.1:7443".into(),
            domain: "atoll.localhost".into(),
            max_token_seconds: 365 * 24 * 3600,
        }
    }
}

/// What tells the time; injected so that tests can turn the hands.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Kinds served without a stored definition, and in which instances.
struct Native {
    fits: Box<dyn Fn(&Instance) -> bool + Send + Sync>,
    kinds: Vec<Arc<crate::kind::Kind>>,
    /// Where they come from, for documents that want their prose.
    definitions: Vec<serde_json::Value>,
}

/// The instances that serve, found by name (by requests) and by number (by changes).
#[derive(Default)]
struct Instances {
    by_name: HashMap<Arc<str>, Arc<Instance>>,
    by_id: HashMap<atoll_meta::InstanceId, Arc<Instance>>,
}

impl Instances {
    fn insert(&mut self, instance: Arc<Instance>) {
        self.by_id.insert(instance.id, instance.clone());
        if let Some(old) = self.by_name.insert(instance.name.clone(), instance.clone())
            && old.id != instance.id
        {
            self.by_id.remove(&old.id);
        }
    }

    fn remove(&mut self, name: &str) -> Option<Arc<Instance>> {
        let gone = self.by_name.remove(name)?;
        self.by_id.remove(&gone.id);
        Some(gone)
    }
}

/// Everything that serves requests.
pub struct Hub {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) options: Options,
    pub(crate) clock: Clock,
    instances: RwLock<Instances>,
    /// Counts what begins and ends to be served.
    roster: tokio::sync::watch::Sender<u64>,
    /// Names of instances this replica is just making; they are shown only when complete.
    creating: parking_lot::Mutex<std::collections::HashSet<String>>,
    pub(crate) admission: RwLock<Vec<Arc<dyn Admission>>>,
    pub(crate) connectors: RwLock<HashMap<(String, String, String), Arc<dyn Connect>>>,
    pub(crate) mounts: RwLock<Vec<Arc<dyn Mount>>>,
    native: RwLock<Vec<Native>>,
    conversions: RwLock<Vec<atoll_meta::Conversion>>,
    /// Sets of native kinds as instances without definitions of their own serve them, by what fits.
    native_sets: parking_lot::Mutex<HashMap<Vec<bool>, Arc<crate::kind::Kinds>>>,
    pub(crate) keys: crate::auth::Keys,
    url: arc_swap::ArcSwap<String>,
    pub(crate) interner: atoll_schema::Interner,
    pub(crate) in_flight: Arc<tokio::sync::Semaphore>,
    pub(crate) precedence: crate::precedence::Precedence,
    /// All series of the process; other parts add theirs.
    pub metrics: atoll_telemetry::Metrics,
    pub(crate) requests: crate::metrics::Requests,
    /// Cancelled when the hub shuts down: watches end, nothing is lost.
    pub shutdown: CancellationToken,
}

impl Hub {
    /// Opens a hub over a store and loads its instances.
    pub async fn open(
        engine: Arc<dyn Engine>,
        keys: crate::auth::Keys,
        clock: Clock,
        options: Options,
    ) -> Result<Arc<Self>, Status> {
        let metrics = atoll_telemetry::Metrics::default();
        let hub = Arc::new(Self {
            requests: crate::metrics::Requests::new(&metrics),
            metrics,
            engine,
            in_flight: Arc::new(tokio::sync::Semaphore::new(options.max_in_flight)),
            precedence: crate::precedence::Precedence::default(),
            url: arc_swap::ArcSwap::from_pointee(options.url.clone()),
            options,
            clock,
            instances: RwLock::default(),
            roster: tokio::sync::watch::Sender::new(0),
            creating: parking_lot::Mutex::default(),
            admission: RwLock::default(),
            connectors: RwLock::default(),
            mounts: RwLock::default(),
            native: RwLock::default(),
            conversions: RwLock::default(),
            native_sets: parking_lot::Mutex::default(),
            keys,
            interner: atoll_schema::Interner::default(),
            shutdown: CancellationToken::new(),
        });
        hub.metrics.collect(Box::new(crate::metrics::State(Arc::downgrade(&hub))));
        // From before anything is read, so that no change is missed.
        let feed = hub.engine.feed();
        hub.keys.load(&*hub.engine, hub.now()).await?;
        for (id, name) in hub.engine.instances() {
            let instance = Arc::new(Instance::new(id, name));
            // What a newer version adds, older instances get too.
            crate::bootstrap::ensure(&hub, &instance).await?;
            hub.load(&instance).await?;
            hub.instances.write().insert(instance);
        }
        crate::follow::follow(&hub, feed);
        Ok(hub)
    }

    async fn load(&self, instance: &Instance) -> Result<(), Status> {
        let snapshot = self.snapshot(instance).await?;
        crate::crd::reload(self, instance, &snapshot);
        Ok(())
    }

    /// The present moment.
    pub fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Where callers reach an instance.
    pub fn url(&self, instance: &Instance) -> String {
        let base = self.url.load();
        if instance.id == atoll_meta::InstanceId::ROOT {
            base.to_string()
        } else {
            format!("{base}/instances/{}", instance.name)
        }
    }

    /// The domain under which each instance has a host name.
    pub fn domain(&self) -> &str {
        &self.options.domain
    }

    /// Says where callers reach the hub, once that is known; without a slash at the end.
    pub fn set_url(&self, url: &str) {
        self.url.store(Arc::new(url.trim_end_matches('/').to_owned()));
    }

    /// The store, for the hub's own controllers that follow all instances.
    pub fn engine(&self) -> &Arc<dyn Engine> {
        &self.engine
    }

    /// The instance that holds the hub's own objects.
    pub fn root(&self) -> Arc<Instance> {
        self.instance("root").expect("every engine has a root instance")
    }

    /// How many different schemas of custom kinds are in use; instances with equal ones share them.
    pub fn schemas_in_use(&self) -> usize {
        self.interner.live()
    }

    /// An instance by name.
    pub fn instance(&self, name: &str) -> Option<Arc<Instance>> {
        self.instances.read().by_name.get(name).cloned()
    }

    /// An instance by number.
    pub fn instance_by_id(&self, id: atoll_meta::InstanceId) -> Option<Arc<Instance>> {
        self.instances.read().by_id.get(&id).cloned()
    }

    /// All instances, `root` included, sorted by name.
    pub fn instances(&self) -> Vec<Arc<Instance>> {
        let mut all: Vec<_> = self.instances.read().by_name.values().cloned().collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// Tells when an instance begins or ends to be served here, whichever replica made or dropped it.
    pub fn roster(&self) -> tokio::sync::watch::Receiver<u64> {
        self.roster.subscribe()
    }

    fn serve(&self, instance: Arc<Instance>) {
        self.instances.write().insert(instance);
        self.roster.send_modify(|count| *count += 1);
    }

    /// How many instances there are, `root` included.
    pub fn instance_count(&self) -> usize {
        self.instances.read().by_name.len()
    }

    /// Makes a new instance with its namespaces and default roles.
    pub async fn create_instance(self: &Arc<Self>, name: &str) -> Result<Arc<Instance>, Status> {
        if let Some(why) = atoll_meta::name::is_dns1123_label(name).first() {
            return Err(Status::bad_request(format!("instance name {name:?}: {why}")));
        }
        if !self.creating.lock().insert(name.to_owned()) {
            return Err(store_status(&StoreError::InstanceExists));
        }
        let made = self.make_instance(name).await;
        self.creating.lock().remove(name);
        made
    }

    async fn make_instance(&self, name: &str) -> Result<Arc<Instance>, Status> {
        let id = match self.engine.create_instance(name).await {
            // Another replica made it while this one was about to, and so did not take it in; or it was not finished.
            Err(StoreError::InstanceExists) if self.instance(name).is_none() => self.stored(name),
            made => made,
        };
        let id = id.map_err(|error| store_status(&error))?;
        let instance = Arc::new(Instance::new(id, name.into()));
        crate::bootstrap::ensure(self, &instance).await?;
        self.load(&instance).await?;
        self.serve(instance.clone());
        Ok(instance)
    }

    /// An instance that the store has, served or not.
    fn stored(&self, name: &str) -> Result<atoll_meta::InstanceId, StoreError> {
        let found = self.engine.instances().into_iter().find(|(_, known)| **known == *name);
        found.map(|(id, _)| id).ok_or(StoreError::InstanceExists)
    }

    /// Takes in an instance that another replica made.
    pub(crate) async fn adopt(&self, id: atoll_meta::InstanceId, name: Arc<str>) {
        if self.creating.lock().contains(&*name) || self.instance(&name).is_some_and(|known| known.id == id) {
            return;
        }
        let instance = Arc::new(Instance::new(id, name.clone()));
        // Gone already, or the store is away; then requests fail too.
        if self.load(&instance).await.is_ok() && !self.creating.lock().contains(&*name) {
            self.serve(instance);
        }
    }

    /// Forgets an instance that another replica dropped.
    pub(crate) fn forget_instance(&self, id: atoll_meta::InstanceId, name: &str) {
        self.keys.forget(id);
        let mut instances = self.instances.write();
        if instances.by_name.get(name).is_some_and(|known| known.id == id)
            && let Some(instance) = instances.remove(name)
        {
            instance.gone.cancel();
            drop(instances);
            self.roster.send_modify(|count| *count += 1);
        }
    }

    /// Drops an instance with everything in it; its watches end.
    pub async fn drop_instance(&self, name: &str) -> Result<(), Status> {
        if name == "root" {
            return Err(Status::bad_request("the root instance cannot be deleted"));
        }
        let Some(instance) = self.instance(name) else {
            return Err(Status::not_found("atoll.io", "instances", name));
        };
        self.engine.drop_instance(instance.id).await.map_err(|error| store_status(&error))?;
        self.instances.write().remove(name);
        instance.gone.cancel();
        self.roster.send_modify(|count| *count += 1);
        self.forget_authority(&instance).await
    }

    /// Kinds that are served in an instance without a stored definition, such as those of a fleet.
    pub(crate) fn native_kinds(&self, instance: &Instance) -> Vec<Arc<crate::kind::Kind>> {
        self.native
            .read()
            .iter()
            .filter(|native| (native.fits)(instance))
            .flat_map(|native| native.kinds.clone())
            .collect()
    }

    /// The same, made once for all instances that have no other kinds.
    pub(crate) fn shared_native_kinds(&self, instance: &Instance) -> Arc<crate::kind::Kinds> {
        let fits: Vec<bool> = self.native.read().iter().map(|native| (native.fits)(instance)).collect();
        let mut sets = self.native_sets.lock();
        sets.entry(fits).or_insert_with(|| Arc::new(crate::kind::Kinds::new(self.native_kinds(instance)))).clone()
    }

    /// The definitions of the kinds an instance has without storing them, by name.
    pub(crate) fn native_definitions(
        &self,
        instance: &Instance,
    ) -> std::collections::BTreeMap<String, serde_json::Value> {
        let native = self.native.read();
        let fitting = native.iter().filter(|native| (native.fits)(instance)).flat_map(|native| &native.definitions);
        fitting.filter_map(|own| Some((own["metadata"]["name"].as_str()?.to_owned(), own.clone()))).collect()
    }

    /// Serves kinds in all instances that `fits` accepts, without a stored definition. They are made once
    /// and shared, so that an instance that does not use them pays nothing for them.
    pub async fn add_native(
        &self,
        fits: impl Fn(&Instance) -> bool + Send + Sync + 'static,
        definitions: Vec<serde_json::Value>,
    ) -> Result<(), Status> {
        let kinds =
            definitions.iter().flat_map(|definition| crate::crd::native_kinds_of(self, definition.clone())).collect();
        self.native.write().push(Native { fits: Box::new(fits), kinds, definitions });
        for instance in self.instances() {
            self.load(&instance).await?;
        }
        Ok(())
    }

    /// Converts objects between versions of custom kinds, in all instances that have a definition with both. To be
    /// said before the definitions are added.
    pub fn add_conversions(&self, conversions: &[atoll_meta::Conversion]) {
        self.conversions.write().extend(conversions);
    }

    /// How objects of a version of a custom kind come from and get to the stored one.
    pub(crate) fn conversion(
        &self,
        group: &str,
        kind: &str,
        version: &str,
        storage: &str,
    ) -> Option<atoll_meta::Conversion> {
        let known = self.conversions.read();
        known
            .iter()
            .find(|own| (own.group, own.kind, own.version, own.storage) == (group, kind, version, storage))
            .copied()
    }

    /// Adds a check or change that every write passes.
    pub fn add_admission(&self, admission: Arc<dyn Admission>) {
        self.admission.write().push(admission);
    }

    /// Serves a streaming subresource such as `pods/exec`.
    pub fn add_connector(&self, group: &str, resource: &str, subresource: &str, connector: Arc<dyn Connect>) {
        self.connectors.write().insert((group.into(), resource.into(), subresource.into()), connector);
    }

    /// Serves a whole group that is not stored as objects.
    pub fn add_mount(&self, mount: Arc<dyn Mount>) {
        self.mounts.write().push(mount);
    }

    /// Serves a whole group of an instance in front of whoever serves it so far, and who is handed to `make`.
    pub fn mount_before(
        &self,
        group: &str,
        instance: &Instance,
        make: impl FnOnce(Option<Arc<dyn Mount>>) -> Arc<dyn Mount>,
    ) {
        let mut mounts = self.mounts.write();
        let before = mounts.iter().find(|mount| mount.group() == group && mount.serves(instance)).cloned();
        mounts.insert(0, make(before));
    }
}
