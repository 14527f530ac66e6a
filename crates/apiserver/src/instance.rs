//! One isolated control plane inside a hub.

use std::sync::Arc;

use arc_swap::ArcSwap;
use atoll_meta::{InstanceId, Status};
use atoll_store::{Entry, Snapshot, StoreError};

use crate::hub::Hub;
use crate::kind::{Kind, Kinds, builtin};

/// An instance: everything a request needs to know about it besides its stored objects.
pub struct Instance {
    /// Its number in the store.
    pub id: InstanceId,
    /// Its name.
    pub name: Arc<str>,
    /// Kinds defined inside it. Empty instances share one empty set.
    pub(crate) custom: ArcSwap<Kinds>,
    /// What `custom` was made from; held while it is made anew.
    pub(crate) definitions: parking_lot::Mutex<Loaded>,
    /// Role rules parsed from its objects, kept while they do not change.
    pub(crate) roles: crate::auth::RoleCache,
    /// Which parts of admission are on.
    features: ArcSwap<crate::admission::Features>,
    /// What it may use of the hub.
    limits: ArcSwap<crate::limit::Limits>,
    /// What it uses now.
    pub(crate) load: crate::limit::Load,
    /// Held by the request that is charging a quota.
    pub(crate) charging: Arc<tokio::sync::Mutex<()>>,
    /// Ends the watches of this instance when it is dropped.
    pub(crate) gone: tokio_util::sync::CancellationToken,
}

/// Which definitions an instance serves.
#[derive(Default)]
pub(crate) struct Loaded {
    /// The state of the store they were read from.
    pub revision: atoll_meta::Revision,
    /// See [`crate::crd::fingerprint`].
    pub fingerprint: u64,
}

impl Instance {
    pub(crate) fn new(id: InstanceId, name: Arc<str>) -> Self {
        Self {
            id,
            name,
            custom: ArcSwap::new(empty_kinds()),
            definitions: parking_lot::Mutex::default(),
            roles: crate::auth::RoleCache::default(),
            limits: ArcSwap::new(crate::limit::Limits::shared()),
            load: crate::limit::Load::default(),
            charging: Arc::default(),
            features: ArcSwap::new(crate::admission::Features::control_plane()),
            gone: tokio_util::sync::CancellationToken::new(),
        }
    }

    /// Which parts of admission are on.
    pub fn features(&self) -> Arc<crate::admission::Features> {
        self.features.load_full()
    }

    /// Switches parts of admission on or off, for instance to make a simulated member of an instance.
    pub fn set_features(&self, features: Arc<crate::admission::Features>) {
        self.features.store(features);
    }

    /// What it may use of the hub.
    pub fn limits(&self) -> Arc<crate::limit::Limits> {
        self.limits.load_full()
    }

    /// Says what it may use of the hub; requests that run go on.
    pub fn set_limits(&self, limits: crate::limit::Limits) {
        self.limits.store(Arc::new(limits));
    }

    /// The kind at a place in the URL.
    pub fn kind(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Kind>> {
        builtin().get(group, version, plural).or(self.custom.load().get(group, version, plural)).cloned()
    }

    /// All kinds, built-in ones first.
    pub fn kinds(&self) -> Vec<Arc<Kind>> {
        builtin().iter().chain(self.custom.load().iter()).cloned().collect()
    }

    /// Kinds that are defined inside the instance.
    pub fn custom_kinds(&self) -> Arc<Kinds> {
        self.custom.load_full()
    }

    /// The preferred served version of a kind given by group and Kind.
    pub fn kind_named(&self, group: &str, version: Option<&str>, kind: &str) -> Option<Arc<Kind>> {
        let fits = |candidate: &&Arc<Kind>| {
            *candidate.group == *group && *candidate.kind == *kind && version.is_none_or(|v| *candidate.version == *v)
        };
        builtin().iter().find(fits).cloned().or_else(|| self.custom.load().iter().find(fits).cloned())
    }
}

fn empty_kinds() -> Arc<Kinds> {
    static EMPTY: std::sync::LazyLock<Arc<Kinds>> = std::sync::LazyLock::new(Arc::default);
    EMPTY.clone()
}

/// Reads of one instance, for code inside the server.
impl Hub {
    /// One stored object.
    pub async fn read(&self, instance: &Instance, key: &str) -> Result<Option<Entry>, Status> {
        self.engine.get(instance.id, key).await.map_err(|error| store_status(&error))
    }

    /// Everything in the instance as this replica knows it: perhaps a little old, but there even while the
    /// store cannot be asked.
    pub async fn recent(&self, instance: &Instance) -> Result<Snapshot, Status> {
        let newest = self.engine.revision(instance.id).map_err(|error| store_status(&error))?;
        match self.engine.snapshot(instance.id, Some(newest)).await {
            Ok(snapshot) => Ok(snapshot),
            // Many changes came between the two steps.
            Err(StoreError::Compacted { .. }) => self.snapshot(instance).await,
            Err(error) => Err(store_status(&error)),
        }
    }

    /// Everything in the instance as of now.
    pub async fn snapshot(&self, instance: &Instance) -> Result<Snapshot, Status> {
        self.engine.snapshot(instance.id, None).await.map_err(|error| store_status(&error))
    }
}

/// 504 of a revision that has not come yet.
pub fn too_large(wanted: impl std::fmt::Display, newest: atoll_meta::Revision) -> Status {
    let message = format!("Timeout: Too large resource version: {wanted}, current: {newest}");
    Status::timeout(message, 1).cause("ResourceVersionTooLarge", "Too large resource version", "")
}

/// How a failure of the store is told to a caller.
pub fn store_status(error: &StoreError) -> Status {
    match error {
        StoreError::Compacted { .. } => Status::expired("The resourceVersion for the provided watch is too old."),
        StoreError::Future { newest } => too_large("in the future", *newest),
        StoreError::NoInstance => Status::new(404, atoll_meta::Reason::NotFound, "the instance does not exist"),
        StoreError::InstanceExists => {
            Status::new(409, atoll_meta::Reason::AlreadyExists, "the instance already exists")
        }
        StoreError::Conflict { .. } => Status::internal("unexpected conflict in the store"),
        StoreError::Unavailable(why) => {
            Status::unavailable(format!("the store is not available: {why}")).retry_after(1)
        }
        StoreError::Damaged(why) => Status::internal(why),
    }
}
