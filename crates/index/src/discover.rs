//! Which resources a source has.

use atoll_meta::{Status, split_api_version};
use atoll_runtime::Endpoint;
use serde_json::Value;

use crate::shelf::ShelfKey;
use crate::store::Label;

/// Resources that change all the time and that nobody searches for, or that repeat another.
const LEFT_OUT: [(&str, &str); 4] = [
    ("coordination.k8s.io", "leases"),
    ("events.k8s.io", "events"),
    ("", "componentstatuses"),
    ("discovery.k8s.io", "endpointslices"),
];

/// The resources of a source that can be followed, each in the preferred version of its group.
pub async fn discover(endpoint: &Endpoint, source: &str) -> Result<Vec<Label>, Status> {
    let mut found = resources(&endpoint.get_path("/api/v1").await?, source);
    let groups = endpoint.get_path("/apis").await?;
    for group in groups["groups"].as_array().into_iter().flatten() {
        let Some(preferred) = group["preferredVersion"]["groupVersion"].as_str() else { continue };
        match endpoint.get_path(&format!("/apis/{preferred}")).await {
            Ok(list) => found.extend(resources(&list, source)),
            // A broken aggregated API must not hide the others.
            Err(status) => tracing::debug!(source, group = preferred, %status, "index: group not discovered"),
        }
    }
    Ok(found)
}

fn resources(list: &Value, source: &str) -> Vec<Label> {
    let (group, version) = split_api_version(list["groupVersion"].as_str().unwrap_or_default());
    let resources = list["resources"].as_array().into_iter().flatten();
    resources
        .filter_map(|resource| {
            let name = resource["name"].as_str()?;
            let verbs = resource["verbs"].as_array()?;
            let can = |verb: &str| verbs.iter().any(|own| own == verb);
            let wanted = !name.contains('/') && can("list") && can("watch") && !LEFT_OUT.contains(&(group, name));
            wanted.then(|| Label {
                key: ShelfKey { source: source.into(), group: group.into(), resource: name.into() },
                version: version.into(),
                kind: resource["kind"].as_str().unwrap_or_default().into(),
                namespaced: resource["namespaced"].as_bool().unwrap_or_default(),
            })
        })
        .collect()
}
