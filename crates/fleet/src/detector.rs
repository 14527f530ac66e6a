//! From templates and policies to bindings.

use std::sync::Arc;
use std::time::Duration;

use atoll_api::words::{finalizer, label};
use atoll_meta::{Gvk, Status};
use atoll_runtime::{Patch, Written};
use serde_json::{Value, json};

use crate::binding::{self, Binding, Meaning, Priority};
use crate::claim::{self, Claim};
use crate::core::{Core, fresh_id};
use crate::events::{self, About};
use crate::keys::{PolicyKey, TemplateKey};
use crate::policy::{self, Policy};
use crate::templates::{Sight, Watched};
use crate::{attach, decision, gvr, scheduler};

/// How soon to look again for something that must exist first.
const SOON: Duration = Duration::from_secs(1);

type Again = Result<Option<Duration>, Status>;

/// Matches one template with the policies and writes its binding.
pub async fn detect(core: Arc<Core>, key: TemplateKey) -> Again {
    let Some(watched) = core.templates.get(&key.gvk) else {
        // Its kind is not served for a while: what it has become waits for that.
        core.look_at(key.binding());
        return Ok(None);
    };
    // Before the template is read: who changes it afterwards is not to be missed.
    let (touched, new) = (core.templates.take_touch(&key), core.templates.take_new(&key));
    let Some(item) = watched.cache().get(&key.namespace, &key.name) else {
        core.templates.forget(&key);
        return gone(&core, &watched, &key).await;
    };
    if item.object.head.deleting {
        core.look_at(key.binding());
        return Ok(None);
    }
    let tree = item.tree();
    let claimed = claim::read(&tree);
    let policy = core.policies.choose(&key.gvk, &item.object.head, claimed.as_ref(), core.options.preemption);
    let lazy = policy.as_ref().is_some_and(|policy| policy.is_lazy());
    let touched = touched || (new.is_some() && lazy && is_behind(&core, &key, &tree));
    let result = match policy {
        Some(policy) => {
            // One that was written anew from what was read of a former one may bring its claim along.
            let fresh = claimed.is_none() || new == Some(Sight::Made);
            let bound = bind(&core, &watched, &key, &tree, &policy, Change { touched, fresh }).await;
            if let Some(status) = bound.as_ref().err().filter(|status| events::is_lasting(status)) {
                let message = format!("{} cannot be applied: {}", policy::title(&policy.key), status.message);
                core.warn(About::object(&tree), "ApplyPolicyFailed", &message);
            }
            bound
        }
        None => release(&core, &watched, &key, &tree, claimed.as_ref()).await,
    };
    if touched && !matches!(result, Ok(None)) {
        core.templates.put_touch(&key);
    }
    if result.is_err() {
        // What it has become must not wait until the failure is over.
        core.look_at(key.binding());
    }
    result
}

/// Whether a template changed while no hub looked: its binding was made from another state.
fn is_behind(core: &Core, key: &TemplateKey, tree: &Value) -> bool {
    core.binding(&key.binding()).is_some_and(|binding| binding.is_of(tree) && binding.is_behind(tree))
}

/// The template is gone: so is its binding, once the instance itself confirms it.
async fn gone(core: &Core, watched: &Watched, key: &TemplateKey) -> Again {
    let Some(binding) = core.binding(&key.binding()) else { return Ok(None) };
    let resource = &binding.spec.resource;
    if binding.is_deleting()
        || Gvk::of(&resource.api_version, &resource.kind) != *key.gvk
        || *resource.name != *key.name
    {
        return Ok(None);
    }
    // A list, as a kind that is not served for a while must not look like objects that are gone.
    let query = format!("fieldSelector=metadata.name%3D{}", key.name);
    let there = core.instance.list(&watched.info.gvr, key.in_namespace(), &query).await?;
    if there.items.iter().any(|tree| tree["metadata"]["uid"] == resource.uid.as_str()) {
        return Ok(Some(SOON));
    }
    core.delete_binding(&binding).await?;
    Ok(None)
}

/// No policy wants the template: claims go, from the binding first. The binding and its works stay.
async fn release(core: &Core, watched: &Watched, key: &TemplateKey, tree: &Value, claimed: Option<&Claim>) -> Again {
    let labels = &tree["metadata"]["labels"];
    let marked = labels.get(label::POLICY_ID).is_some() || labels.get(label::CLUSTER_POLICY_ID).is_some();
    let binding = core.binding(&key.binding()).filter(|binding| binding.is_of(tree));
    // The claim of the template may have failed when that of its binding was written.
    if claimed.is_none() && !marked && !binding.as_ref().is_some_and(Binding::is_claimed) {
        // It may go along with others, or have had a policy once: its copies still follow it.
        core.look_at(key.binding());
        return Ok(None);
    }
    if let Some(before) = binding {
        let mut after = before.clone();
        binding::unclaim(&mut after);
        if after != before {
            core.write_binding(Some(&before), &after, core.epoch()).await?;
        }
    }
    if let Some(patch) = claim::patch(tree, None) {
        core.instance.patch(&watched.info.gvr, key.in_namespace(), &key.name, "", Patch::Merge, &patch).await?;
    }
    Ok(None)
}

/// What is known of a template besides its present state.
struct Change {
    /// Somebody changed it.
    touched: bool,
    /// No policy has had it yet.
    fresh: bool,
}

async fn bind(
    core: &Core,
    watched: &Watched,
    key: &TemplateKey,
    tree: &Value,
    policy: &Policy,
    change: Change,
) -> Again {
    let missing = policy.spec.dependent_overrides.iter().find(|name| {
        let key = PolicyKey { namespace: policy.key.namespace.clone(), name: name.as_str().into() };
        core.overrides.get(&key).is_none()
    });
    if let Some(missing) = missing {
        tracing::debug!(?key, missing, "waits for an override policy");
        core.look_at(key.binding());
        return Ok(Some(SOON));
    }
    let seen = tree["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
    if !policy.is_lazy() {
        let claim = Claiming { core, watched, key, patch: claim::patch(tree, Some(&policy.claim())) };
        return put(core, key, tree, policy, &seen, core.binding(&key.binding()), claim).await;
    }
    // A template that is younger than a lazy policy was made with it in mind.
    let fresh = change.fresh && policy.precedes(&seen);
    // One that was made anew, perhaps from what was read of the former one with its claim, is new as well: until it has
    // a binding of its own it has no claim, so that it still looks new if the hub ends meanwhile.
    let bound = core.binding(&key.binding());
    let former = bound.as_ref().is_some_and(|binding| !binding.is_of(tree));
    let wanted = (!former).then(|| policy.claim());
    let claim = Claiming { core, watched, key, patch: claim::patch(tree, wanted.as_ref()) };
    if !change.touched && !fresh && !former {
        claim.write().await?;
        if let Some(bound) = bound.filter(|binding| binding.annotation(binding::ACTIVATED_BY).is_none()) {
            // It was made when the policy was not lazy, and stays as it is until the template changes.
            let mut noted = bound.clone();
            noted.note_activation(tree);
            core.write_binding(Some(&bound), &noted, core.epoch()).await?;
        }
        // Works still follow the template and its overrides, and clusters may have changed.
        core.look_at(key.binding());
        return Ok(None);
    }
    core.templates.note_activation(key, &seen);
    let result = put(core, key, tree, policy, &seen, bound, claim).await;
    if !matches!(result, Ok(None)) {
        // With its claim it does not look new any more.
        core.templates.put_touch(key);
    }
    result
}

/// Writes the binding of a template over the `existing` one, and `claim` with it; `Ok(None)` only when it is as it should
/// be. Whoever decided on the claim has read the existing one: another read might see something else.
async fn put(
    core: &Core,
    key: &TemplateKey,
    tree: &Value,
    policy: &Policy,
    seen: &str,
    existing: Option<Binding>,
    claim: Claiming<'_>,
) -> Again {
    if let Some(other) = existing.as_ref().filter(|binding| !binding.is_of(tree)) {
        claim.write().await?;
        return replace(core, key, other, tree).await;
    }
    let (binding, epoch) = match prepare(core, tree, policy, existing.as_ref(), seen).await {
        Ok(prepared) => prepared,
        Err(status) => {
            if !policy.is_lazy() {
                claim.write().await?;
            }
            return Err(status);
        }
    };
    if existing.as_ref() == Some(&binding) {
        claim.write().await?;
        core.queues.works.add(key.binding());
        return Ok(None);
    }
    if policy.is_lazy() {
        // With its claim it does not look new any more, also to those who come after the end of this hub.
        let written = core.write_binding_first(1, existing.as_ref(), &binding, epoch).await?;
        claim.write().await?;
        follow_up(core, existing.as_ref(), &binding);
        tell(core, existing.as_ref(), binding, &written);
        return Ok(None);
    }
    // Neither needs the other: whichever of them fails alone is made up for by another look.
    let writes = 1 + usize::from(claim.patch.is_some());
    let bound = core.write_binding_first(writes, existing.as_ref(), &binding, epoch);
    let (written, claimed) = tokio::join!(bound, claim.write());
    if let Ok(written) = &written {
        follow_up(core, existing.as_ref(), &binding);
        tell(core, existing.as_ref(), binding, written);
    }
    claimed.and(written)?;
    Ok(None)
}

/// Whoever hears of a binding looks at its works only if more than a note in it changed; the template did.
fn follow_up(core: &Core, existing: Option<&Binding>, written: &Binding) {
    let noted = |old: &Binding| old.spec == written.spec && old.metadata.labels == written.metadata.labels;
    if existing.is_some_and(noted) {
        core.queues.works.add(written.key());
    }
}

/// Tells how the decision came out that was written with a binding.
fn tell(core: &Core, existing: Option<&Binding>, mut binding: Binding, written: &Written) {
    if decision::news(existing, &binding).is_none() {
        return;
    }
    // A new one gets its uid only when it is written.
    if let Some(item) = written.item().filter(|_| existing.is_none()) {
        binding.metadata.uid = Some(item.object.head.uid.to_string());
    }
    scheduler::tell(core, existing, &binding);
}

/// The binding of a template under a policy with its decision, and the epoch of the clusters that saw.
async fn prepare(
    core: &Core,
    tree: &Value,
    policy: &Policy,
    existing: Option<&Binding>,
    seen: &str,
) -> Result<(Binding, u64), Status> {
    if existing.is_none() {
        core.customizations.ensure(core, seen).await?;
    }
    let priority = priority(core, policy).await?;
    let meaning = match Meaning::of(tree, &core.interpreter.load()) {
        Ok(meaning) => meaning,
        Err(error) => {
            core.event(tree, true, "GetReplicasFailed", &error.to_string()).await;
            return Err(Status::bad_request(error.to_string()));
        }
    };
    let mut binding = binding::build(tree, policy, &meaning, priority, existing, fresh_id);
    if policy.spec.propagate_deps {
        match core.interpreter.load().try_dependencies(tree) {
            Ok(dependencies) => attach::announce(&mut binding, &dependencies),
            Err(error) => {
                core.event(tree, true, "GetDependenciesFailed", &error.to_string()).await;
                return Err(Status::bad_request(error.to_string()));
            }
        }
    }
    let epoch = scheduler::settle(core, &mut binding);
    decision::stamp(&mut binding, existing);
    Ok((binding, epoch))
}

/// A claim that is to be written into its template, if it has to be.
struct Claiming<'a> {
    core: &'a Core,
    watched: &'a Watched,
    key: &'a TemplateKey,
    patch: Option<Value>,
}

impl Claiming<'_> {
    async fn write(self) -> Result<(), Status> {
        let Self { core, watched, key, patch } = self;
        let Some(patch) = patch else { return Ok(()) };
        let (gvr, instance) = (&watched.info.gvr, core.instance.brief());
        let written = instance.patch(gvr, key.in_namespace(), &key.name, "", Patch::Merge, &patch).await?;
        // Works are made from what the cache holds; without the claim they would be made twice.
        if let Some(item) = written.item() {
            watched.cache().put_if_newer(item);
        }
        core.queues.works.add(key.binding());
        Ok(())
    }
}

/// A binding of this name belongs to a template that is gone, or to one of another group.
async fn replace(core: &Core, key: &TemplateKey, other: &Binding, tree: &Value) -> Again {
    let resource = &other.spec.resource;
    if Gvk::of(&resource.api_version, &resource.kind).group == key.gvk.group && *resource.name == *key.name {
        if !other.is_deleting() {
            core.delete_binding(other).await?;
        }
        return Ok(Some(Duration::from_millis(50)));
    }
    let message =
        format!("binding {:?} belongs to {} {} of {}", other.key(), resource.kind, resource.name, resource.api_version);
    core.event(tree, true, "ApplyPolicyFailed", &message).await;
    Err(Status::conflict("work.karmada.io", "resourcebindings", &other.key().name, message))
}

async fn priority(core: &Core, policy: &Policy) -> Result<Option<Priority>, Status> {
    let Some(wanted) = &policy.spec.schedule_priority else { return Ok(None) };
    let name = &wanted.priority_class_name;
    let class = core.instance.get_opt(&gvr::priority_classes(), None, name).await?;
    let class = class.ok_or_else(|| Status::bad_request(format!("PriorityClass {name} does not exist")))?;
    let value = class["value"].as_i64().unwrap_or_default();
    Ok(Some(Priority(i32::try_from(value).unwrap_or(i32::MAX))))
}

/// A policy came, changed or goes: its templates are looked at again.
pub async fn policy_changed(core: Arc<Core>, key: PolicyKey) -> Again {
    let policy = core.policies.get(&key);
    if let Some(policy) = policy.as_ref().filter(|policy| !policy.deleting) {
        for gvk in policy.kinds() {
            if core.templates.follow(&core, gvk).await?.is_none() {
                tracing::debug!(%gvk, policy = ?key, "the instance does not serve the kind yet");
            }
        }
    }
    let rank = match &policy {
        // A class that is missing is told with each template.
        Some(policy) => priority(&core, policy).await.ok().flatten().map(|Priority(value)| value).unwrap_or_default(),
        None => 0,
    };
    let id_label = if key.is_namespaced() { label::POLICY_ID } else { label::CLUSTER_POLICY_ID };
    let mut held = 0_usize;
    for watched in core.templates.all() {
        let items = if key.is_namespaced() { watched.cache().list_in(&key.namespace) } else { watched.cache().list() };
        for item in items {
            let head = &item.object.head;
            if core.options.skip.object(&watched.gvk, head) {
                continue;
            }
            let holds = match (head.label(id_label), &policy) {
                (Some(id), Some(policy)) => *policy.id == *id,
                // A policy that is gone without us: whatever it held is looked at again.
                (Some(_), None) => true,
                (None, _) => false,
            };
            // One that is going keeps its claim until it is gone, which may take its time and needs no policy.
            held += usize::from(holds && !head.deleting);
            if holds || policy.as_ref().is_some_and(|policy| policy.fit(&watched.gvk, head).is_some()) {
                let key = watched.key(head);
                if let Some(policy) = policy.as_ref().filter(|policy| policy.is_lazy()) {
                    core.templates.reactivate(&key, policy);
                }
                core.queues.templates.add_ranked(key, rank);
            }
        }
    }
    match policy {
        Some(policy) if policy.deleting && held == 0 => leave(&core, &policy).await,
        Some(policy) if policy.deleting => Ok(Some(Duration::from_millis(100))),
        Some(policy) => {
            let served = policy.kinds().all(|gvk| core.templates.get(gvk).is_some());
            Ok((!served).then_some(Duration::from_secs(5)))
        }
        None => Ok(None),
    }
}

/// The policy holds nothing any more and may go.
async fn leave(core: &Core, policy: &Policy) -> Again {
    let (resource, own) = if policy.key.is_namespaced() {
        (gvr::policies(), finalizer::POLICY)
    } else {
        (gvr::cluster_policies(), finalizer::CLUSTER_POLICY)
    };
    // Bindings whose template is gone still name the policy.
    let id_label = if policy.key.is_namespaced() { label::POLICY_ID } else { label::CLUSTER_POLICY_ID };
    for namespaced in [true, false] {
        for item in core.bindings(namespaced).list() {
            if item.object.head.label(id_label) == Some(&policy.id)
                && let Some(before) = Binding::of(&item).filter(|binding| !binding.is_deleting())
            {
                let mut after = before.clone();
                binding::unclaim(&mut after);
                core.write_binding(Some(&before), &after, core.epoch()).await?;
            }
        }
    }
    remove_finalizer(core, &resource, policy.key.in_namespace(), &policy.key.name, own).await?;
    Ok(None)
}

/// Removes a finalizer of ours from an object, if it is there.
pub async fn remove_finalizer(
    core: &Core,
    resource: &atoll_meta::Gvr,
    namespace: Option<&str>,
    name: &str,
    own: &str,
) -> Result<(), Status> {
    let Some(object) = core.instance.get_opt(resource, namespace, name).await? else { return Ok(()) };
    let finalizers = object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    let kept: Vec<Value> = finalizers.iter().filter(|finalizer| *finalizer != own).cloned().collect();
    if kept.len() == finalizers.len() {
        return Ok(());
    }
    let patch = json!({"metadata": {"finalizers": kept, "resourceVersion": object["metadata"]["resourceVersion"]}});
    match core.instance.patch(resource, namespace, name, "", Patch::Merge, &patch).await {
        Err(status) if status.code != 404 => Err(status),
        _ => Ok(()),
    }
}
