//! Customisations of the interpreter: no template gets its first binding before those older than it are known.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use atoll_meta::Status;
use serde_json::Value;
use tokio::sync::Mutex;

use crate::core::Core;
use crate::gvr;

type Again = Result<Option<Duration>, Status>;

/// Versions of customisations by name.
type Versions = BTreeMap<String, String>;

/// Which customisations the interpreter has.
#[derive(Default)]
pub struct Customizations {
    /// The revision of the instance up to which they are known.
    known: AtomicU64,
    loaded: Mutex<Versions>,
}

impl Customizations {
    /// Waits until all customisations older than a revision are in use. Their informer may be behind that of the
    /// templates, and a copy made by the wrong rules would be in the members already.
    pub async fn ensure(&self, core: &Core, revision: &str) -> Result<(), Status> {
        let wanted = revision.parse().unwrap_or(u64::MAX);
        if self.known.load(Ordering::Acquire) >= wanted {
            return Ok(());
        }
        let mut loaded = self.loaded.lock().await;
        // Another one may have asked meanwhile, for all that waited.
        if self.known.load(Ordering::Acquire) >= wanted {
            return Ok(());
        }
        self.refresh(core, &mut loaded).await
    }

    /// Reads them again.
    async fn refresh(&self, core: &Core, loaded: &mut Versions) -> Result<(), Status> {
        let list = core.instance.list(&gvr::customizations(), None, "").await?;
        let present: Versions = list.items.iter().map(version).collect();
        if present != *loaded {
            load(core, &list.items).await;
            *loaded = present;
            look_again(core);
        }
        self.known.fetch_max(list.revision.parse().unwrap_or_default(), Ordering::AcqRel);
        Ok(())
    }
}

fn version(custom: &Value) -> (String, String) {
    let text = |field: &str| custom["metadata"][field].as_str().unwrap_or_default().to_owned();
    (text("name"), text("resourceVersion"))
}

/// Customisations changed: everything the interpreter says is asked again.
pub async fn customized(core: Arc<Core>, _: ()) -> Again {
    let mut loaded = core.customizations.loaded.lock().await;
    core.customizations.refresh(&core, &mut loaded).await?;
    Ok(None)
}

async fn load(core: &Core, list: &[Value]) {
    let (interpreter, errors) = core.interpreter.load().with_customizations(list);
    core.interpreter.store(Arc::new(interpreter));
    for (name, error) in errors {
        if let Some(about) = list.iter().find(|custom| custom["metadata"]["name"] == name.as_str()) {
            core.event(about, true, "InvalidCustomization", &error.to_string()).await;
        }
    }
}

fn look_again(core: &Core) {
    for watched in core.templates.all() {
        for item in watched.cache().list() {
            let key = watched.key(&item.object.head);
            let binding = key.binding();
            if core.bindings(binding.is_namespaced()).get(&binding.namespace, &binding.name).is_some() {
                core.queues.templates.add(key);
            }
        }
    }
    for member in core.members.list() {
        for item in core.informers().works.cache.list_in(&atoll_api::names::execution_namespace(&member.name)) {
            let name: Arc<str> = (*item.object.head.name).into();
            member.handle(&name, None);
            member.queue.add(name);
        }
    }
    for key in core.binding_keys() {
        core.queues.reports.add(key);
    }
}
