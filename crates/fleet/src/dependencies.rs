//! Takes what a template refers to along with it.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use atoll_api::names;
use atoll_api::words::finalizer;
use atoll_interpreter::ObjectRef;
use atoll_meta::selector::LabelSelector;
use atoll_meta::{Gvk, Status};

use crate::attach;
use crate::binding::Binding;
use crate::core::{Core, fresh_id};
use crate::detector;
use crate::events::{self, About};
use crate::keys::{BindingKey, TemplateKey};

type Again = Result<Option<Duration>, Status>;

/// Ties the bindings of all dependencies of a binding to it, and unties those that are none any more.
pub async fn distribute(core: Arc<Core>, key: BindingKey) -> Again {
    let binding = core.binding(&key);
    let active = binding.as_ref().filter(|binding| !binding.is_deleting() && binding.spec.propagate_deps);
    let references = active.map(attach::announced).unwrap_or_default();
    core.index.put_needs(&key, references.iter().map(template_key).collect());
    let mut wanted = HashSet::new();
    if let Some(parent) = active {
        for reference in &references {
            for template in find(&core, reference).await? {
                let tied = tie(&core, parent, &template).await;
                if let Some(status) = tied.as_ref().err().filter(|status| events::is_lasting(status)) {
                    let [about, _] = About::both(parent);
                    let message = format!("{template:?} cannot go along: {}", status.message);
                    core.warn(about, "SyncScheduleResultToDependenciesFailed", &message);
                }
                tied?;
                wanted.insert(template.binding());
            }
        }
    }
    for child in core.index.attached_to(&key) {
        if !wanted.contains(&child) {
            untie(&core, &key, &child).await?;
        }
    }
    if let Some(binding) = binding.filter(|binding| binding.is_deleting() || !binding.spec.propagate_deps)
        && binding.metadata.finalizers.iter().flatten().any(|own| own == finalizer::DEPENDENCIES)
    {
        detector::remove_finalizer(&core, &key.gvr(), key.in_namespace(), &key.name, finalizer::DEPENDENCIES).await?;
    }
    Ok(None)
}

/// The template a reference names; several share the one without a name.
fn template_key(reference: &ObjectRef) -> TemplateKey {
    let name = if reference.label_selector.is_some() { "" } else { reference.name.as_str() };
    TemplateKey {
        gvk: Arc::new(Gvk::of(&reference.api_version, &reference.kind)),
        namespace: reference.namespace.as_str().into(),
        name: name.into(),
    }
}

/// The templates a reference means, as far as they exist.
async fn find(core: &Arc<Core>, reference: &ObjectRef) -> Result<Vec<TemplateKey>, Status> {
    let key = template_key(reference);
    let Some(watched) = core.templates.follow(core, &key.gvk).await? else { return Ok(Vec::new()) };
    let Some(selector) = &reference.label_selector else {
        let there = watched.cache().get(&key.namespace, &key.name);
        let spread = there.is_some_and(|item| !core.options.skip.object(&key.gvk, &item.object.head));
        return Ok(spread.then_some(key).into_iter().collect());
    };
    let value = serde_json::to_value(selector).map_err(Status::internal)?;
    let selector = LabelSelector::from_value(&value).map_err(|error| Status::bad_request(error.to_string()))?;
    let items = watched.cache().list_in(&key.namespace);
    let heads = items.iter().map(|item| &item.object.head).filter(|head| selector.matches_head(head));
    let heads = heads.filter(|head| !core.options.skip.object(&key.gvk, head));
    Ok(heads.map(|head| watched.key(head)).collect())
}

async fn tie(core: &Core, parent: &Binding, template: &TemplateKey) -> Result<(), Status> {
    let Some(item) = core.templates.find(template).filter(|item| !item.object.head.deleting) else { return Ok(()) };
    let existing = core.binding(&template.binding());
    if existing
        .as_ref()
        .is_some_and(|binding| binding.is_deleting() || binding.spec.resource.uid != *item.object.head.uid)
    {
        return Err(Status::unavailable("the binding of a former object of that name is still there"));
    }
    let child = attach::attach(&item.tree(), existing.as_ref(), parent, &core.interpreter.load(), fresh_id)
        .map_err(|error| Status::bad_request(error.to_string()))?;
    if existing.as_ref() != Some(&child) {
        core.write_binding(existing.as_ref(), &child, core.epoch()).await?;
    }
    Ok(())
}

async fn untie(core: &Core, parent: &BindingKey, child: &BindingKey) -> Result<(), Status> {
    let Some(before) = core.binding(child).filter(|binding| !binding.is_deleting()) else { return Ok(()) };
    if before.label(&names::depended_by_label(&parent.namespace, &parent.name)).is_none() {
        return Ok(());
    }
    match attach::detach(&before, &parent.namespace, &parent.name) {
        Some(after) => core.write_binding(Some(&before), &after, core.epoch()).await,
        None => core.delete_binding(&before).await,
    }
}
