//! Instance registry: every instance is known to global management by a `RegisteredResource` of `root`,
//! with the workspaces it belongs to. Whoever decides about access reads and watches those.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use atoll_meta::Status;
use atoll_runtime::{Change, Queue};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::whole;
use crate::access::objects::{REGISTERED, WORKSPACE};
use crate::context::Core;
use crate::kinds::INSTANCE;

/// Keeps the register until `stop`.
pub async fn run(core: Arc<Core>, stop: CancellationToken) {
    // What is only counted or stated of an instance does not change the register.
    let matter = |change: &Change| !change.keeps_generation();
    whole::run(&core, Queue::default(), &[&INSTANCE, &WORKSPACE, &REGISTERED], matter, stop, reconcile).await;
}

async fn reconcile(core: Arc<Core>) -> Result<Option<Duration>, Status> {
    let root = core.own_endpoint("root");
    let instances = root.list(&INSTANCE.gvr(), None, "").await?.items;
    let workspaces = root.list(&WORKSPACE.gvr(), None, "").await?.items;
    let mut wanted = plan(&instances, &workspaces);
    for mut present in root.list(&REGISTERED.gvr(), None, "").await?.items {
        let name = present["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        match wanted.remove(&name) {
            None => root.delete(&REGISTERED.gvr(), None, &name, &Value::Null).await?,
            Some(spec) if spec == present["spec"] => {}
            Some(spec) => {
                present["spec"] = spec;
                root.update(&REGISTERED.gvr(), None, &name, &present).await?;
            }
        }
    }
    for (name, spec) in wanted {
        let object = json!({
            "apiVersion": "atoll.io/v1alpha1", "kind": "RegisteredResource", "metadata": {"name": name}, "spec": spec,
        });
        root.create(&REGISTERED.gvr(), None, &object).await?;
    }
    Ok(None)
}

/// What is registered, by name: instances, and the namespaces that workspaces name.
fn plan(instances: &[Value], workspaces: &[Value]) -> BTreeMap<String, Value> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut all = BTreeMap::new();
    for instance in instances {
        let name = text(&instance["metadata"]["name"]);
        let inside = |workspace: &&Value| {
            workspace["spec"]["instances"].as_array().is_some_and(|list| list.iter().any(|one| *one == name.as_str()))
        };
        let mut spec = json!({"product": "atoll", "resourceType": "Instance", "resourceName": name});
        bind(&mut spec, workspaces.iter().filter(inside));
        for workspace in workspaces {
            let places = workspace["spec"]["namespaces"].as_array().into_iter().flatten();
            for place in places.filter(|place| place["instance"] == name.as_str()) {
                let namespace = text(&place["namespace"]);
                let own = |workspace: &&Value| {
                    workspace["spec"]["namespaces"].as_array().is_some_and(|list| list.contains(place))
                };
                let mut spec = json!({"product": "atoll", "resourceType": "Namespace", "resourceScope": name, "resourceName": namespace});
                bind(&mut spec, workspaces.iter().filter(own));
                all.insert(format!("{name}.{namespace}"), spec);
            }
        }
        all.insert(name, spec);
    }
    all
}

fn bind<'a>(spec: &mut Value, workspaces: impl Iterator<Item = &'a Value>) {
    let names: Vec<&str> = workspaces.filter_map(|workspace| workspace["metadata"]["name"].as_str()).collect();
    if !names.is_empty() {
        spec["workspaces"] = names.into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_and_bound_namespaces_are_registered_with_their_workspaces() {
        let instances = [json!({"metadata": {"name": "a"}}), json!({"metadata": {"name": "b"}})];
        let workspaces = [
            json!({"metadata": {"name": "w"}, "spec": {"instances": ["b"], "namespaces": [{"instance": "a", "namespace": "n"}, {"instance": "gone", "namespace": "n"}]}}),
            json!({"metadata": {"name": "v"}, "spec": {"instances": ["b"]}}),
        ];
        let plan = plan(&instances, &workspaces);
        assert_eq!(plan.keys().collect::<Vec<_>>(), ["a", "a.n", "b"]);
        assert_eq!(plan["a"], json!({"product": "atoll", "resourceType": "Instance", "resourceName": "a"}));
        assert_eq!(
            plan["a.n"],
            json!({"product": "atoll", "resourceType": "Namespace", "resourceScope": "a", "resourceName": "n", "workspaces": ["w"]})
        );
        assert_eq!(plan["b"]["workspaces"], json!(["w", "v"]));
    }
}
