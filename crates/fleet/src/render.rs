//! From bindings to one Work for each cluster.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use atoll_api::names;
use atoll_api::policy::PurgeMode;
use atoll_api::work::Work;
use atoll_meta::Status;
use atoll_runtime::Endpoint;
use futures::future::join_all;
use serde_json::{Value, json};

use crate::binding::Binding;
use crate::core::{Core, belongs, fresh_id};
use crate::keys::{BindingKey, PolicyKey, TemplateKey};
use crate::unbuilt::Unbuilt;
use crate::unheard::Hearing;
use crate::work::{self, Source};
use crate::{claim, detector, gvr};

type Again = Result<Option<Duration>, Status>;

/// Makes, changes and removes the works of a binding.
pub async fn render(core: Arc<Core>, key: BindingKey) -> Again {
    let Some(item) = core.bindings(key.is_namespaced()).get(&key.namespace, &key.name) else { return Ok(None) };
    let late = match core.unheard.ask(&key) {
        _ if item.object.head.deleting => false,
        Hearing::Waits(left) => return Ok(Some(left)),
        hearing => hearing == Hearing::Late,
    };
    let Some(binding) = Binding::of(&item) else { return Ok(None) };
    let mut works = core.works_of(&binding);
    if binding.is_deleting() {
        return retire(&core, &binding, &works).await;
    }
    if late {
        works.extend(unseen(&core, &binding).await?);
        core.unheard.forget(&key);
    }
    let surplus = works.iter().filter(|(cluster, _)| !keeps(&binding, cluster));
    together(surplus.map(|(_, work)| delete(&core, work))).await?;
    let template_key = TemplateKey::of(&binding.spec.resource);
    if core.templates.follow(&core, &template_key.gvk).await?.is_none() {
        return Ok(Some(Duration::from_secs(5)));
    }
    // A template that is not in sight removes nothing: the detector asks again and deletes the binding if it is gone.
    let Some(item) = core.templates.find(&template_key) else {
        core.queues.templates.add(template_key);
        return Ok(None);
    };
    if waits_for_purge(&binding, &works) {
        return Ok(None);
    }
    let template = item.tree();
    if binding.is_claimed() && claim::read(&template).is_none() {
        // The claim is written at the same time as the binding, or after it under a lazy policy, and asks for the works
        // once it is there. It never is when no policy wants the template any more; who found that out may not have known
        // of the binding yet.
        let policy = core.policies.choose(&template_key.gvk, &item.object.head, None, core.options.preemption);
        if policy.is_none_or(|policy| policy.is_lazy()) && binding.is_of(&template) {
            core.queues.templates.add_after(template_key, Duration::from_secs(1));
        }
        return Ok(None);
    }
    let overrides = core.overrides.for_object(&template_key.gvk, &item.object.head);
    let source = Source::new(&template, &binding, overrides);
    let (changes, unbuilt) = changes(&core, &source, &works);
    if binding.status.is_some()
        && changes.iter().any(|(existing, _)| existing.is_none())
        && !remains(&core, &binding).await?
    {
        return Ok(None);
    }
    let written = write(&core, &binding, changes).await;
    unbuilt.tell(&core, &template).await?;
    written
}

/// A work that is to be written, with the one it replaces.
type Change<'a> = (Option<&'a Work>, Work);

/// The works of a binding that are not as they should be, and the clusters for which none can be built.
fn changes<'a>(core: &Core, source: &Source<'_>, works: &'a BTreeMap<String, Work>) -> (Vec<Change<'a>>, Unbuilt) {
    let snapshot = core.snapshot.load_full();
    let (mut changes, mut unbuilt) = (Vec::new(), Unbuilt::default());
    for (name, replicas) in source.binding.targets() {
        let Some(cluster) = snapshot.get(name).filter(|cluster| !cluster.deleting) else { continue };
        let existing = works.get(name);
        match work::build(source, cluster, replicas, &core.interpreter.load(), existing, fresh_id) {
            Ok(built) if stands(existing, &built) => {}
            Ok(built) => changes.push((existing, built)),
            Err(error) => unbuilt.add(name, &error),
        }
    }
    (changes, unbuilt)
}

/// Writes works so that they share a commit, and notes what was written also when another one is refused.
async fn write(core: &Core, binding: &Binding, changes: Vec<Change<'_>>) -> Again {
    let writes = changes.len();
    let ordered = changes.into_iter().enumerate().map(|(at, (existing, built))| {
        let instance = if at == 0 { core.instance.first_of(writes) } else { core.instance.clone() };
        put_over(core, instance, existing, built)
    });
    let mut refusal = None;
    let mut written = Vec::new();
    for outcome in join_all(ordered).await {
        match outcome {
            Ok(work) => written.push(work),
            Err(status) => refusal = Some(status),
        }
    }
    if !written.is_empty() {
        core.note_works(binding, written);
    }
    refusal.map_or(Ok(None), Err)
}

/// Waits for all of them, also when one fails: what is given up half way may still take effect, after something else
/// was decided.
async fn together(steps: impl IntoIterator<Item = impl Future<Output = Result<(), Status>>>) -> Result<(), Status> {
    join_all(steps).await.into_iter().collect()
}

/// Whether a cluster still keeps its copy: as a target, or while it is being left gently.
fn keeps(binding: &Binding, cluster: &str) -> bool {
    let tasks = binding.spec.graceful_eviction_tasks.iter();
    binding.targets().contains_key(cluster)
        || tasks.filter(|task| task.from_cluster == cluster).any(|task| task.purge_mode != Some(PurgeMode::Directly))
}

/// With purge mode Directly the old copy goes before a new one comes.
fn waits_for_purge(binding: &Binding, works: &BTreeMap<String, Work>) -> bool {
    let mut tasks = binding.spec.graceful_eviction_tasks.iter();
    tasks.any(|task| task.purge_mode == Some(PurgeMode::Directly) && works.contains_key(&task.from_cluster))
}

/// Whether a binding is still there, as its instance knows: when one goes with its works, their end may be heard of
/// first, and they must not be made again. Only a binding that was carried out before can have lost some.
async fn remains(core: &Core, binding: &Binding) -> Result<bool, Status> {
    let key = binding.key();
    let present = core.instance.get_opt(&key.gvr(), key.in_namespace(), &key.name).await?.unwrap_or_default();
    let meta = &present["metadata"];
    Ok(meta["uid"].as_str() == binding.metadata.uid.as_deref() && meta["deletionTimestamp"].is_null())
}

/// Whether a work is there as it should be, and stays.
fn stands(existing: Option<&Work>, built: &Work) -> bool {
    existing.is_some_and(|existing| existing.metadata.deletion_timestamp.is_none() && !work::differs(built, existing))
}

/// Writes a work if it is new or differs.
pub async fn put(core: &Core, existing: Option<&Work>, built: Work) -> Result<(), Status> {
    if stands(existing, &built) {
        return Ok(());
    }
    put_over(core, core.instance.clone(), existing, built).await.map(drop)
}

/// Writes a work; its namespace and revision.
async fn put_over(
    core: &Core,
    instance: Endpoint,
    existing: Option<&Work>,
    built: Work,
) -> Result<(String, u64), Status> {
    if existing.is_some_and(|existing| existing.metadata.deletion_timestamp.is_some()) {
        return Err(Status::unavailable("the former work is still being deleted"));
    }
    let (namespace, name) =
        (built.metadata.namespace.clone().unwrap_or_default(), built.metadata.name.clone().unwrap_or_default());
    let body: Value = serde_json::to_value(&built).map_err(Status::internal)?;
    let written = match existing {
        None => instance.brief().create(&gvr::works(), Some(&namespace), &body).await,
        Some(_) => instance.brief().update(&gvr::works(), Some(&namespace), &name, &body).await,
    };
    match written {
        Err(status) if existing.is_none() && status.code == 409 => {
            clear(core, &built).await?;
            Err(status)
        }
        written => written.map(|written| (namespace, written.revision.parse().unwrap_or_default())),
    }
}

/// Removes the work of a former binding that is in the way of this one.
async fn clear(core: &Core, built: &Work) -> Result<(), Status> {
    let (namespace, name) = (built.metadata.namespace.as_deref(), built.metadata.name.as_deref().unwrap_or_default());
    let Some(found) = core.instance.get_opt(&gvr::works(), namespace, name).await? else { return Ok(()) };
    let found: Work = serde_json::from_value(found).map_err(Status::internal)?;
    if work::is_of_former_binding(&found, built) {
        delete(core, &found).await?;
    }
    Ok(())
}

/// Asks for the end of a work; the executor removes the copy first.
pub async fn delete(core: &Core, work: &Work) -> Result<(), Status> {
    if work.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    let name = work.metadata.name.as_deref().unwrap_or_default();
    let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": work.metadata.uid}});
    match core.instance.delete(&gvr::works(), work.metadata.namespace.as_deref(), name, &options).await {
        Err(status) if status.code == 409 => Ok(()),
        other => other,
    }
}

/// A binding goes when its works are gone.
async fn retire(core: &Core, binding: &Binding, works: &BTreeMap<String, Work>) -> Again {
    if !works.is_empty() {
        together(works.values().map(|work| delete(core, work))).await?;
        return Ok(None);
    }
    let unseen = unseen(core, binding).await?;
    if !unseen.is_empty() {
        together(unseen.values().map(|work| delete(core, work))).await?;
        return Ok(Some(Duration::from_millis(100)));
    }
    let key = binding.key();
    detector::remove_finalizer(core, &key.gvr(), key.in_namespace(), &key.name, binding.finalizer()).await?;
    Ok(None)
}

/// Works of a binding that nothing told of: what was written a moment ago may not have come back yet.
async fn unseen(core: &Core, binding: &Binding) -> Result<BTreeMap<String, Work>, Status> {
    let resource = &binding.spec.resource;
    let name = names::work(&resource.kind, &resource.name, &resource.namespace);
    let targets = binding.targets();
    let asked = targets.keys().map(|cluster| names::execution_namespace(cluster)).map(|namespace| {
        let name = &name;
        async move { core.instance.get_opt(&gvr::works(), Some(&namespace), name).await }
    });
    let found: Vec<Option<Value>> = join_all(asked).await.into_iter().collect::<Result<_, _>>()?;
    let works = found.into_iter().flatten().map(serde_json::from_value).collect::<Result<Vec<Work>, _>>();
    let own = works.map_err(Status::internal)?.into_iter().filter(|work| belongs(work, binding));
    let named = own.filter_map(|work| {
        let cluster = names::member_of_execution_namespace(work.metadata.namespace.as_deref()?)?;
        Some((cluster.to_owned(), work))
    });
    Ok(named.collect())
}

/// An override policy changed: the bindings it may concern are rendered again.
pub async fn override_changed(core: Arc<Core>, key: PolicyKey) -> Again {
    for binding in core.binding_keys() {
        if !key.is_namespaced() || binding.namespace == key.namespace {
            core.queues.works.add(binding);
        }
    }
    if !key.is_namespaced() {
        for name in core.informers().namespaces.cache.keys() {
            core.queues.namespaces.add(name.into());
        }
    }
    Ok(None)
}
