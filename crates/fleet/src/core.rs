//! What all controllers of a fleet share.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use atoll_api::names;
use atoll_api::work::{Work, WorkSpec, WorkStatus};
use atoll_interpreter::Interpreter;
use atoll_meta::Status;
use atoll_placement::Snapshot;
use atoll_runtime::{Cache, Endpoint, Informer, Queue, Written};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::binding::Binding;
use crate::company::{self, Company};
use crate::customize::Customizations;
use crate::discovery::Kinds;
use crate::events::{About, Note, Trouble};
use crate::evict::Unhealthy;
use crate::index::Index;
use crate::keys::{BindingKey, PolicyKey, TemplateKey};
use crate::member::Members;
use crate::options::Options;
use crate::overrides::Overrides;
use crate::policy::Policies;
use crate::templates::Templates;
use crate::unheard::Unheard;

/// Work that waits.
#[derive(Default)]
pub struct Queues {
    /// Templates to match with policies.
    pub templates: Queue<TemplateKey>,
    /// Policies whose templates are to be looked at again.
    pub policies: Queue<PolicyKey>,
    /// Bindings to decide on.
    pub decisions: Queue<BindingKey>,
    /// Bindings whose works are to be made.
    pub works: Queue<BindingKey>,
    /// Bindings whose status is to be told.
    pub reports: Queue<BindingKey>,
    /// Bindings whose dependencies are to go along.
    pub dependencies: Queue<BindingKey>,
    /// Bindings whose evictions are to be looked after.
    pub evictions: Queue<BindingKey>,
    /// Clusters.
    pub clusters: Queue<Arc<str>>,
    /// Clusters whose change concerns decisions; true when more than their room changed.
    pub shifts: Queue<bool>,
    /// Namespaces to be made in members.
    pub namespaces: Queue<Arc<str>>,
    /// Override policies that changed.
    pub overrides: Queue<PolicyKey>,
    /// Set when the rights to reach members may have changed.
    pub grants: Queue<()>,
    /// Set when customisations of the interpreter changed.
    pub customizations: Queue<()>,
    /// Requests for new decisions.
    pub rebalancers: Queue<Arc<str>>,
    /// Events to be sent.
    pub events: Queue<Arc<Note>>,
}

/// The informers of a fleet's own kinds.
pub struct Informers {
    pub(crate) clusters: Informer,
    pub(crate) policies: [Informer; 2],
    pub(crate) overrides: [Informer; 2],
    pub(crate) taint_policies: Informer,
    pub(crate) bindings: Informer,
    pub(crate) cluster_bindings: Informer,
    pub(crate) works: Informer,
    pub(crate) namespaces: Informer,
    pub(crate) secrets: Informer,
    pub(crate) rebalancers: Informer,
    pub(crate) customizations: Informer,
    pub(crate) roles: [Informer; 2],
}

/// What all controllers share.
pub struct Core {
    /// The instance.
    pub instance: Endpoint,
    /// Settings.
    pub options: Options,
    /// What resources mean.
    pub interpreter: Arc<ArcSwap<Interpreter>>,
    /// Which customisations it has.
    pub customizations: Customizations,
    /// Kinds the instance serves.
    pub kinds: Kinds,
    /// Propagation policies.
    pub policies: Policies,
    /// Override policies.
    pub overrides: Overrides,
    /// Templates.
    pub templates: Templates,
    /// The clusters as decisions see them.
    pub snapshot: ArcSwap<Snapshot>,
    /// The revisions of the clusters in the snapshot, which follows the cache of their informer.
    pub placed: Mutex<HashMap<Arc<str>, u64>>,
    /// The ways to the members.
    pub members: Members,
    /// Work that waits.
    pub queues: Queues,
    /// Who belongs to whom.
    pub index: Arc<Index>,
    /// How often clusters changed in more than their room.
    epoch: AtomicU64,
    /// Generations of bindings that were written with their decision, and the epoch of the clusters it saw.
    settled: Mutex<HashMap<BindingKey, (i64, u64)>>,
    /// Bindings whose last decision failed.
    pub unplaced: Mutex<HashSet<BindingKey>>,
    /// Decisions on workloads of groups that are on their way.
    pub company: Mutex<Company>,
    /// Works that were written for bindings, until we hear of them.
    pub unheard: Unheard,
    last_eviction: Mutex<Option<tokio::time::Instant>>,
    /// Since when copies are unhealthy, by binding.
    pub unhealthy: Mutex<HashMap<BindingKey, Unhealthy>>,
    /// What was told of lasting trouble.
    pub trouble: Mutex<Trouble>,
    /// Ends everything.
    pub stop: CancellationToken,
    pub(crate) informers: OnceLock<Informers>,
}

impl Core {
    /// Nothing runs yet.
    pub fn new(options: Options, stop: CancellationToken) -> Arc<Self> {
        let instance = options.instance.clone();
        Arc::new(Self {
            kinds: Kinds::new(instance.clone()),
            instance,
            options,
            interpreter: Arc::default(),
            customizations: Customizations::default(),
            policies: Policies::default(),
            overrides: Overrides::default(),
            templates: Templates::default(),
            snapshot: ArcSwap::default(),
            placed: Mutex::default(),
            members: Members::default(),
            queues: Queues::default(),
            index: Arc::default(),
            epoch: AtomicU64::default(),
            settled: Mutex::default(),
            unplaced: Mutex::default(),
            company: Mutex::default(),
            unheard: Unheard::default(),
            last_eviction: Mutex::default(),
            unhealthy: Mutex::default(),
            trouble: Mutex::default(),
            stop,
            informers: OnceLock::new(),
        })
    }

    /// The present moment.
    pub fn now(&self) -> Timestamp {
        (self.options.clock)()
    }

    /// The informers; they run before any controller does.
    pub(crate) fn informers(&self) -> &Informers {
        self.informers.get().expect("controllers start after the informers")
    }

    /// Bindings of namespaced or of cluster-scoped templates.
    pub fn bindings(&self, namespaced: bool) -> &Cache {
        let informers = self.informers();
        if namespaced { &informers.bindings.cache } else { &informers.cluster_bindings.cache }
    }

    /// A binding.
    pub fn binding(&self, key: &BindingKey) -> Option<Binding> {
        Binding::of(&self.bindings(key.is_namespaced()).get(&key.namespace, &key.name)?)
    }

    /// The keys of all bindings.
    pub fn binding_keys(&self) -> Vec<BindingKey> {
        let both = [true, false].into_iter().flat_map(|namespaced| self.bindings(namespaced).list());
        both.map(|item| BindingKey {
            namespace: (*item.object.head.namespace).into(),
            name: (*item.object.head.name).into(),
        })
        .collect()
    }

    /// The works of a template by cluster, without their states.
    pub fn works_of(&self, binding: &Binding) -> BTreeMap<String, Work> {
        let resource = &binding.spec.resource;
        let name = names::work(&resource.kind, &resource.name, &resource.namespace);
        let works = &self.informers().works.cache;
        let clusters = self.informers().clusters.cache.keys();
        let found = clusters.into_iter().filter_map(|cluster| {
            let item = works.get(&names::execution_namespace(&cluster), &name)?;
            let Wish { mut metadata, spec } = item.decode().ok()?;
            metadata.resource_version = Some(item.revision.to_string());
            Some((cluster, Work { metadata, spec, ..Work::default() }))
        });
        // Two templates may share a name; the id tells whose work it is.
        found.filter(|(_, work)| belongs(work, binding)).collect()
    }

    /// The works of a template by cluster, without what they carry: enough to tell how they are.
    pub fn work_states(&self, binding: &Binding) -> BTreeMap<String, Work> {
        let resource = &binding.spec.resource;
        let name = names::work(&resource.kind, &resource.name, &resource.namespace);
        let works = &self.informers().works.cache;
        let clusters = self.informers().clusters.cache.keys();
        let found = clusters.into_iter().filter_map(|cluster| {
            let state: State = works.get(&names::execution_namespace(&cluster), &name)?.decode().ok()?;
            Some((cluster, Work { metadata: state.metadata, status: state.status, ..Work::default() }))
        });
        found.filter(|(_, work)| belongs(work, binding)).collect()
    }

    /// A Cluster object.
    pub fn cluster(&self, name: &str) -> Option<Value> {
        Some(self.informers().clusters.cache.get("", name)?.tree())
    }

    /// The epoch of the clusters: to be read before the snapshot a decision is made with.
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Takes new clusters for decisions; with `concerns` they changed in more than their room.
    pub fn place(&self, snapshot: Snapshot, concerns: bool) {
        self.snapshot.store(Arc::new(snapshot));
        self.epoch.fetch_add(concerns.into(), Ordering::AcqRel);
    }

    /// Creates a binding or replaces the one it was made from; `epoch` is that of the clusters its decision saw.
    pub async fn write_binding(&self, before: Option<&Binding>, after: &Binding, epoch: u64) -> Result<(), Status> {
        self.write_binding_first(1, before, after, epoch).await.map(drop)
    }

    /// The same as the first of so many writes; gives what it left behind.
    pub async fn write_binding_first(
        &self,
        writes: usize,
        before: Option<&Binding>,
        after: &Binding,
        epoch: u64,
    ) -> Result<Written, Status> {
        let key = after.key();
        let body = after.to_value();
        let groups = company::groups(after);
        // One without a place may have missed that room came, or that others went, while it was not known itself.
        let record = crate::decision::Record::of(after).filter(|record| record.error.is_none());
        if let Some(record) = record {
            self.settled.lock().insert(key.clone(), (record.generation, epoch));
        }
        let instance = self.instance.first_of(writes);
        let written = match before {
            None => instance.brief().create(&key.gvr(), key.in_namespace(), &body).await,
            Some(_) => instance.brief().update(&key.gvr(), key.in_namespace(), &key.name, &body).await,
        };
        if let Some(groups) = groups {
            let undone = self.company.lock().wrote(after, written.is_ok());
            if undone {
                crate::scheduler::undone(self, &key, groups);
            }
        }
        written
    }

    /// Whether a binding of this generation was written with its decision, and the clusters are those that saw; tells so
    /// once. While it was written it was not known, so nobody may have asked for another decision on it.
    pub fn take_settled(&self, key: &BindingKey, generation: i64) -> bool {
        let mut settled = self.settled.lock();
        settled.remove(key) == Some((generation, self.epoch()))
    }

    /// Notes that works were written for a binding: their namespaces and revisions.
    pub fn note_works(&self, binding: &Binding, works: Vec<(String, u64)>) {
        let resource = &binding.spec.resource;
        let name = names::work(&resource.kind, &resource.name, &resource.namespace);
        let cache = &self.informers().works.cache;
        self.unheard.note(&binding.key(), works, |namespace| cache.get(namespace, &name)?.revision.parse().ok());
    }

    /// Deletes a binding, unless another one has its name by now.
    pub async fn delete_binding(&self, binding: &Binding) -> Result<(), Status> {
        let key = binding.key();
        let options =
            json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": binding.metadata.uid}});
        match self.instance.delete(&key.gvr(), key.in_namespace(), &key.name, &options).await {
            Err(status) if status.code == 409 => Ok(()),
            other => other,
        }
    }

    /// Tells something about an object, without failing and without waiting for it; a warning is not repeated at every
    /// try.
    pub async fn event(&self, about: &Value, warning: bool, reason: &str, message: &str) {
        let about = About::object(about);
        if warning {
            self.warn(about, reason, message);
        } else {
            self.tell(about, false, reason, message);
        }
    }

    /// Looks at a binding whose template says nothing new: its decision and its works.
    pub fn look_at(&self, key: BindingKey) {
        self.queues.decisions.add_ranked(key.clone(), crate::scheduler::rank(self, &key));
        self.queues.works.add(key);
    }

    /// Looks again at bindings that depend on a template.
    pub fn dependents_changed(&self, key: &TemplateKey) {
        for binding in self.index.dependents(key) {
            self.queues.dependencies.add(binding);
        }
    }

    /// Takes the right to evict one workload, or tells how long to wait for it.
    pub fn eviction_turn(&self) -> Option<Duration> {
        let mut last = self.last_eviction.lock();
        let now = tokio::time::Instant::now();
        if let Some(left) = last
            .and_then(|last| (last + self.options.eviction_interval).checked_duration_since(now))
            .filter(|left| !left.is_zero())
        {
            return Some(left);
        }
        *last = Some(now);
        None
    }
}

/// A work without its state.
#[derive(serde::Deserialize)]
struct Wish {
    metadata: ObjectMeta,
    spec: WorkSpec,
}

/// A work without its manifests.
#[derive(serde::Deserialize)]
struct State {
    metadata: ObjectMeta,
    status: Option<WorkStatus>,
}

/// Whether a work was made for this binding, not for another of its name.
pub fn belongs(work: &Work, binding: &Binding) -> bool {
    let labels = work.metadata.labels.as_ref();
    let key = if binding.key().is_namespaced() {
        atoll_api::words::label::BINDING_ID
    } else {
        atoll_api::words::label::CLUSTER_BINDING_ID
    };
    labels.and_then(|labels| labels.get(key)).map(String::as_str) == binding.id()
}

/// A fresh permanent id.
pub fn fresh_id() -> String {
    uuid::Uuid::new_v4().to_string()
}
