//! Namespaces of the instance, made in every member.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use atoll_api::names;
use atoll_api::words::{OVERWRITE, annotation};
use atoll_api::work::Work;
use atoll_meta::{Gvk, Status};
use serde_json::Value;

use crate::core::{Core, fresh_id};
use crate::unbuilt::Unbuilt;
use crate::work::{Draft, finish};
use crate::{foreign, gvr, overrides, prune, render};

type Again = Result<Option<Duration>, Status>;

/// Makes the works of a namespace, or removes them with it.
pub async fn spread(core: Arc<Core>, name: Arc<str>) -> Again {
    let item = core.informers().namespaces.cache.get("", &name);
    let works = works_of(&core, &name);
    let Some(item) = item.filter(|item| !item.object.head.deleting) else {
        if works.is_empty() {
            return Ok(None);
        }
        // Gone or going, as the instance itself says.
        let there = core.instance.get_opt(&gvr::core("namespaces"), None, &name).await?;
        if there.is_some_and(|tree| tree["metadata"]["deletionTimestamp"].is_null()) {
            return Ok(Some(Duration::from_secs(1)));
        }
        for work in works.values() {
            render::delete(&core, work).await?;
        }
        return Ok(None);
    };
    if core.options.skip.namespace(&item.object.head) {
        return Ok(None);
    }
    let tree = item.tree();
    let policies = core.overrides.for_object(&Gvk::new("", "v1", "Namespace"), &item.object.head);
    let mut bare = tree.clone();
    prune::prune(&mut bare);
    if let Some(map) = bare.as_object_mut() {
        map.remove("spec");
    }
    let (mut unbuilt, mut refusal) = (Unbuilt::default(), None);
    for cluster in core.snapshot.load_full().clusters().iter().filter(|cluster| !cluster.deleting) {
        let mut manifest = bare.clone();
        if let Err(error) = overrides::apply(&mut manifest, cluster, &policies) {
            unbuilt.add(&cluster.name, &error.into());
            continue;
        }
        let existing = works.get(&*cluster.name);
        let draft = Draft {
            namespace: names::execution_namespace(&cluster.name),
            name: names::work("Namespace", &name, ""),
            labels: BTreeMap::new(),
            annotations: mark(existing),
            suspended: false,
            preserve: None,
        };
        let built = finish(draft, manifest, &tree, existing, fresh_id);
        // One that is refused keeps no other member from its namespace.
        if let Err(status) = render::put(&core, existing, built).await {
            refusal = Some(status);
        }
    }
    unbuilt.tell(&core, &tree).await?;
    refusal.map_or(Ok(None), Err)
}

/// What a work of an earlier release says of taking over stays: an agent of that release would take it from the namespace
/// as well, and nobody would know any more that it may be somebody else's.
fn mark(existing: Option<&Work>) -> BTreeMap<String, String> {
    let manifest = existing.and_then(|work| work.spec.workload.manifests.first());
    let marked = manifest.is_some_and(foreign::may_be_shared);
    marked.then(|| (annotation::CONFLICT_RESOLUTION.to_owned(), OVERWRITE.to_owned())).into_iter().collect()
}

fn works_of(core: &Core, namespace: &str) -> BTreeMap<String, Work> {
    let name = names::work("Namespace", namespace, "");
    let snapshot = core.snapshot.load();
    let found = snapshot.clusters().iter().filter_map(|cluster| {
        let item = core.informers().works.cache.get(&names::execution_namespace(&cluster.name), &name)?;
        let mut work: Work = item.decode().ok()?;
        work.metadata.resource_version = Some(item.revision.to_string());
        let is_namespace =
            work.spec.workload.manifests.first().is_some_and(|manifest: &Value| manifest["kind"] == "Namespace");
        is_namespace.then(|| (cluster.name.to_string(), work))
    });
    found.collect()
}
