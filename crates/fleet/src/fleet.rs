//! Starts all controllers of an instance.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Weak};
use std::time::Duration;

use atoll_api::cluster::Cluster;
use atoll_api::names;
use atoll_api::words::{finalizer, label};
use atoll_meta::{Gvk, Gvr};
use atoll_placement::Snapshot;
use atoll_runtime::{Change, Informer, Item, Selection, work};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::binding::Traits;
use crate::core::{Core, Informers};
use crate::keys::{BindingKey, PolicyKey, TemplateKey};
use crate::options::Options;
use crate::overrides::OverridePolicy;
use crate::policy::Policy;
use crate::{
    attach, clusters, customize, dependencies, detector, events, failover, gvr, namespaces, pace, rebalance, render,
    report, scheduler, unified,
};

/// Changes of roles are gathered for this long.
const GRANTS: Duration = Duration::from_millis(200);

/// A running fleet. It ends with its stop token.
pub struct Fleet {
    core: Arc<Core>,
}

impl Fleet {
    /// Starts the controllers; returns when the present state is known and they work.
    pub async fn start(options: Options, stop: CancellationToken) -> Self {
        let core = Core::new(options, stop.clone());
        let informers = informers(&core);
        let all = [
            &informers.clusters,
            &informers.policies[0],
            &informers.policies[1],
            &informers.overrides[0],
            &informers.overrides[1],
            &informers.bindings,
            &informers.cluster_bindings,
            &informers.works,
            &informers.namespaces,
            &informers.secrets,
            &informers.rebalancers,
            &informers.taint_policies,
            &informers.customizations,
            &informers.roles[0],
            &informers.roles[1],
        ];
        let known = async {
            for informer in all {
                informer.synced().await;
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            // Templates need not wait for works, of which there are most.
            _ = async { tokio::join!(known, follow_known(&core, &informers)) } => {}
        }
        // Nobody else sets it.
        let _ = core.informers.set(informers);
        if customize::customized(core.clone(), ()).await.is_err() {
            core.queues.customizations.add(());
        }
        rank_known(&core).await;
        run(&core, &stop);
        let ended = core.clone();
        tokio::spawn(async move {
            stop.cancelled().await;
            ended.members.clear();
            ended.templates.clear();
        });
        Self { core }
    }

    /// What the controllers share.
    pub fn core(&self) -> &Arc<Core> {
        &self.core
    }
}

/// What waits at the start waits by its priority, too.
async fn rank_known(core: &Arc<Core>) {
    for policy in core.policies.list().iter().filter(|policy| policy.spec.schedule_priority.is_some()) {
        if detector::policy_changed(core.clone(), policy.key.clone()).await.is_err() {
            core.queues.policies.add(policy.key.clone());
        }
    }
}

/// Kinds that bindings or policies name are followed from the start.
async fn follow_known(core: &Arc<Core>, informers: &Informers) {
    let bindings = [&informers.bindings, &informers.cluster_bindings];
    for informer in informers.policies.iter().chain(bindings) {
        informer.synced().await;
    }
    let mut kinds: Vec<Gvk> =
        core.policies.list().iter().flat_map(|policy| policy.kinds().cloned().collect::<Vec<_>>()).collect();
    for item in bindings.iter().flat_map(|informer| informer.cache.list()) {
        let resource = Traits::of(&item).resource;
        kinds.push(Gvk::of(&resource.api_version, &resource.kind));
    }
    kinds.sort();
    kinds.dedup();
    for gvk in kinds {
        if let Err(status) = core.templates.follow(core, &gvk).await {
            tracing::debug!(%gvk, %status, "not followed yet");
        }
    }
}

/// Starts the workers of all queues.
fn run(core: &Arc<Core>, stop: &CancellationToken) {
    macro_rules! serve {
        ($queue:ident, $workers:expr, $task:path) => {{
            let shared = core.clone();
            let run = move |key| $task(shared.clone(), key);
            tokio::spawn(work(core.queues.$queue.clone(), $workers, stop.clone(), run));
        }};
    }
    let workers = core.options.workers;
    serve!(clusters, 4, clusters::tend);
    serve!(policies, 4, detector::policy_changed);
    serve!(templates, workers, detector::detect);
    serve!(decisions, workers, scheduler::decide);
    serve!(shifts, 1, scheduler::shift);
    serve!(works, workers, render::render);
    serve!(reports, workers / 2 + 1, report::report);
    serve!(namespaces, 4, namespaces::spread);
    serve!(overrides, 1, render::override_changed);
    serve!(customizations, 1, customize::customized);
    serve!(dependencies, workers / 4 + 1, dependencies::distribute);
    serve!(evictions, workers / 4 + 1, failover::look_after);
    serve!(rebalancers, 1, rebalance::rebalance);
    serve!(grants, 1, unified::grant);
    serve!(events, 2, events::send);
}

fn informers(core: &Arc<Core>) -> Informers {
    let weak = Arc::downgrade(core);
    let all = Selection::default;
    let start = |gvr: Gvr, selection: Selection, sink: Box<dyn Fn(&Core, Change) + Send + Sync>| {
        let weak: Weak<Core> = weak.clone();
        Informer::start_light(core.instance.clone(), gvr, selection, move |change| {
            if let Some(core) = weak.upgrade() {
                sink(&core, change);
            }
        })
    };
    Informers {
        clusters: start(gvr::clusters(), all(), cluster_sink()),
        policies: [gvr::policies(), gvr::cluster_policies()].map(|gvr| start(gvr, all(), Box::new(policy_sink))),
        overrides: [gvr::overrides(), gvr::cluster_overrides()].map(|gvr| start(gvr, all(), Box::new(override_sink))),
        taint_policies: start(gvr::taint_policies(), all(), Box::new(taint_policy_sink)),
        bindings: start(gvr::bindings(true), all(), Box::new(binding_sink)),
        cluster_bindings: start(gvr::bindings(false), all(), Box::new(binding_sink)),
        works: start(gvr::works(), all(), Box::new(work_sink)),
        namespaces: start(gvr::core("namespaces"), all(), Box::new(namespace_sink)),
        secrets: start(
            gvr::core("secrets"),
            Selection { namespace: Some(names::CLUSTER_NAMESPACE.to_owned()), query: String::new() },
            Box::new(secret_sink),
        ),
        rebalancers: start(gvr::rebalancers(), all(), Box::new(rebalancer_sink)),
        roles: unified::resources()
            .map(|gvr| start(gvr, all(), Box::new(|core, _| core.queues.grants.add_after((), GRANTS)))),
        customizations: start(gvr::customizations(), all(), Box::new(|core, _| core.queues.customizations.add(()))),
    }
}

fn key_of(item: &Item) -> BindingKey {
    BindingKey { namespace: (*item.object.head.namespace).into(), name: (*item.object.head.name).into() }
}

/// Keeps the snapshot up to date, and tells whom a change of a cluster concerns.
fn cluster_sink() -> Box<dyn Fn(&Core, Change) + Send + Sync> {
    let known: Mutex<HashMap<Arc<str>, Arc<atoll_placement::Cluster>>> = Mutex::default();
    Box::new(move |core, change| {
        let name: Arc<str> = (*change.item().object.head.name).into();
        let mut known = known.lock();
        let before = known.get(&name).cloned();
        let gone = matches!(change, Change::Deleted(_));
        let after = if gone {
            None
        } else {
            change.item().decode::<Cluster>().ok().map(|cluster| Arc::new(atoll_placement::Cluster::from(&cluster)))
        };
        match &after {
            Some(cluster) => known.insert(name.clone(), cluster.clone()),
            None => known.remove(&name),
        };
        let concerns = concerns(before.as_deref(), after.as_deref());
        core.place(Snapshot::of_shared(known.values().cloned()), concerns);
        if gone {
            core.placed.lock().remove(&name);
        } else {
            core.placed.lock().insert(name.clone(), change.item().revision.parse().unwrap_or_default());
        }
        drop(known);
        // At the start everything is looked at anyway.
        if core.informers.get().is_some() {
            core.queues.shifts.add(concerns);
        }
        if before.is_none() || gone {
            core.queues.grants.add_after((), GRANTS);
            for namespace in core.informers.get().map(|informers| informers.namespaces.cache.keys()).unwrap_or_default()
            {
                core.queues.namespaces.add(namespace.into());
            }
        }
        core.queues.clusters.add(name);
    })
}

/// Whether more than the room of a cluster changed.
fn concerns(before: Option<&atoll_placement::Cluster>, after: Option<&atoll_placement::Cluster>) -> bool {
    let (Some(a), Some(b)) = (before, after) else { return true };
    a.labels != b.labels
        || a.provider != b.provider
        || a.region != b.region
        || a.zones != b.zones
        || a.taints != b.taints
        || a.apis != b.apis
        || a.deleting != b.deleting
}

fn policy_sink(core: &Core, change: Change) {
    let item = change.item();
    let key: PolicyKey = key_of(item);
    match (&change, Policy::of(item)) {
        (Change::Added(_) | Change::Updated(..), Some(policy)) => {
            core.policies.put(policy);
        }
        _ => core.policies.remove(&key),
    }
    core.queues.policies.add(key);
}

fn override_sink(core: &Core, change: Change) {
    let item = change.item();
    match (&change, OverridePolicy::of(item)) {
        (Change::Added(_) | Change::Updated(..), Some(policy)) => core.overrides.put(policy),
        _ => core.overrides.remove(&key_of(item)),
    }
    core.queues.overrides.add(key_of(item));
}

fn taint_policy_sink(core: &Core, _change: Change) {
    for cluster in core.snapshot.load().clusters() {
        core.queues.clusters.add(cluster.name.clone());
    }
}

fn binding_sink(core: &Core, change: Change) {
    let item = change.item();
    let (key, head) = (key_of(item), &item.object.head);
    let id = head.label(label::BINDING_ID).or_else(|| head.label(label::CLUSTER_BINDING_ID));
    let traits = Traits::of(item);
    match &change {
        Change::Deleted(_) => {
            if let Some(id) = id {
                core.index.remove_binding(id);
            }
            core.unplaced.lock().remove(&key);
            core.company.lock().forget(&key);
            core.unheard.forget(&key);
            scheduler::moved(core, &key.namespace, &traits.groups);
            core.index.put_parents(&key, &BTreeSet::new());
            core.queues.evictions.add(key.clone());
            core.queues.dependencies.add(key);
            return;
        }
        Change::Added(_) => {}
        Change::Updated(former, new) => {
            let (old, new) = (&former.object.head, &new.object.head);
            if old.generation == new.generation && old.deleting == new.deleting && old.labels == new.labels {
                // Only the status, the record of a decision, a finalizer or what it takes along.
                report_soon(core, key.clone());
                if traits.propagates && traits.takes_along != Traits::of(former).takes_along {
                    core.queues.dependencies.add(key.clone());
                }
                if core.options.failover || traits.leaves {
                    core.queues.evictions.add(key);
                }
                return;
            }
            if old.generation != new.generation {
                scheduler::moved(core, &key.namespace, &Traits::of(former).groups);
            }
        }
    }
    if let Some(id) = id {
        core.index.put_binding(id, key.clone());
    }
    core.index.put_parents(&key, &attach::parents(&head.labels));
    // One of another name than its template gives it was made by others: its template knows nothing of it.
    let starts = core.informers.get().is_none() && !head.deleting;
    let template = starts.then(|| TemplateKey::of(&traits.resource)).filter(|template| template.binding() == key);
    if let Some(template) = template {
        // At the start its template is looked at first, which decides as well, and then its works; once is enough.
        core.queues.templates.add_ranked(template, traits.priority);
    } else {
        core.queues.works.add(key.clone());
        if !core.take_settled(&key, head.generation) {
            core.queues.decisions.add_ranked(key.clone(), traits.priority);
        }
    }
    let announces = head.finalizers.iter().any(|own| **own == *finalizer::DEPENDENCIES);
    if traits.propagates || announces {
        core.queues.dependencies.add(key.clone());
    }
    if core.options.failover || traits.leaves {
        core.queues.evictions.add(key.clone());
    }
    report_soon(core, key);
}

/// Tells the state of a binding when its works have had a moment to say more.
fn report_soon(core: &Core, key: BindingKey) {
    core.queues.reports.add_after(key, pace::gather(core.queues.reports.len()));
}

fn work_sink(core: &Core, change: Change) {
    let head = &change.item().object.head;
    let Some(member) = names::member_of_execution_namespace(&head.namespace) else { return };
    let concerns = core.index.take_work(&change);
    if let Some(member) = core.members.get(member) {
        member.heard(&change.item().object.head.name, &change.item().revision);
        if concerns {
            member.order(change.item());
        }
    }
    let id = head.label(label::BINDING_ID).or_else(|| head.label(label::CLUSTER_BINDING_ID));
    if let Some(key) = id.and_then(|id| core.index.binding(id)) {
        let revision = change.item().revision.parse().unwrap_or_default();
        if core.unheard.hear(&key, &head.namespace, revision) || matches!(change, Change::Deleted(_)) {
            core.queues.works.add(key.clone());
        }
        report_soon(core, key);
    } else if matches!(change, Change::Deleted(_)) {
        for namespace in core.informers.get().map(|informers| informers.namespaces.cache.keys()).unwrap_or_default() {
            if names::work("Namespace", &namespace, "") == *head.name {
                core.queues.namespaces.add(namespace.into());
            }
        }
        if let Some(member) = names::member_of_execution_namespace(&head.namespace) {
            core.queues.clusters.add(member.into());
        }
    }
}

fn namespace_sink(core: &Core, change: Change) {
    core.queues.namespaces.add((*change.item().object.head.name).into());
}

/// The credentials of a member changed.
fn secret_sink(core: &Core, change: Change) {
    let name = &*change.item().object.head.name;
    let clusters = core.informers.get().map(|informers| informers.clusters.cache.list()).unwrap_or_default();
    for item in clusters {
        let named = item
            .decode::<Cluster>()
            .is_ok_and(|cluster| cluster.spec.secret_ref.is_some_and(|reference| reference.name == name));
        if named {
            core.queues.clusters.add((*item.object.head.name).into());
        }
    }
}

fn rebalancer_sink(core: &Core, change: Change) {
    core.queues.rebalancers.add((*change.item().object.head.name).into());
}
