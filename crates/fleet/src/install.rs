//! What an instance needs before a fleet can run in it.

use atoll_api::{CrdSet, crds, names};
use atoll_meta::{Gvr, Status};
use atoll_runtime::Endpoint;
use serde_json::{Value, json};

const CLUSTERS: &str = "clusters.cluster.karmada.io";

/// The definitions to store in an instance; Cluster is not among them, see [`native_definitions`].
pub fn definitions() -> Vec<Value> {
    crds(CrdSet::Karmada).into_iter().filter(|definition| definition["metadata"]["name"] != CLUSTERS).collect()
}

/// The definitions of kinds that are served without being stored: Cluster.
pub fn native_definitions() -> Vec<Value> {
    let own = crds(CrdSet::Karmada).into_iter().filter(|definition| definition["metadata"]["name"] == CLUSTERS);
    own.map(|mut definition| {
        let names = definition["spec"]["names"].clone();
        definition["status"] = json!({
            "acceptedNames": names, "storedVersions": ["v1alpha1"],
            "conditions": [{"type": "Established", "status": "True"}, {"type": "NamesAccepted", "status": "True"}],
        });
        definition
    })
    .collect()
}

/// Objects an instance of a fleet has from its first moment, each with its resource.
pub fn objects() -> Vec<(Gvr, Value)> {
    let namespace = |name: &str| {
        (Gvr::new("", "v1", "namespaces"), json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
    };
    let service = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": "v1alpha1.cluster.karmada.io", "labels": {"app": "karmada-aggregated-apiserver", "apiserver": "true"}},
        "spec": {"group": "cluster.karmada.io", "version": "v1alpha1", "groupPriorityMinimum": 2000, "versionPriority": 10},
    });
    vec![
        namespace(names::SYSTEM_NAMESPACE),
        namespace(names::CLUSTER_NAMESPACE),
        (Gvr::new("apiregistration.k8s.io", "v1", "apiservices"), service),
    ]
}

/// Makes an instance ready for a fleet; running it again changes nothing but outdated definitions.
pub async fn install(instance: &Endpoint) -> Result<(), Status> {
    let gvr = Gvr::new("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    for definition in definitions() {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        match instance.get_opt(&gvr, None, name).await? {
            None => {
                instance.ensure(&gvr, None, &definition).await?;
            }
            Some(mut present) if present["spec"]["versions"] != definition["spec"]["versions"] => {
                present["spec"]["versions"] = definition["spec"]["versions"].clone();
                instance.update(&gvr, None, name, &present).await?;
            }
            Some(_) => {}
        }
    }
    for (gvr, object) in objects() {
        instance.ensure(&gvr, None, &object).await?;
    }
    Ok(())
}
