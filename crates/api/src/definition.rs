//! The CustomResourceDefinitions of all kinds.

use serde_json::{Map, Value, json};

use crate::structural::structural_schema;
use crate::{
    Column, Kind, Scope, apps, autoscaling, cluster, clusterpedia, config, instance, kubeocean, multicluster,
    networking, policy, remedy, work,
};

/// A family of kinds that is installed together.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum CrdSet {
    /// Propagation of objects to members.
    Karmada,
    /// Leased nodes.
    Kubeocean,
    /// The index.
    Clusterpedia,
    /// Our own.
    Atoll,
}

/// The complete CustomResourceDefinition objects of a family, one for each kind.
pub fn crds(set: CrdSet) -> Vec<Value> {
    match set {
        CrdSet::Karmada => karmada(),
        CrdSet::Kubeocean => {
            vec![definition::<kubeocean::ClusterBinding>(), definition::<kubeocean::ResourceLeasingPolicy>()]
        }
        CrdSet::Clusterpedia => vec![
            definition::<clusterpedia::PediaCluster>(),
            definition::<clusterpedia::ClusterSyncResources>(),
            definition::<clusterpedia::ClusterImportPolicy>(),
            definition::<clusterpedia::PediaClusterLifecycle>(),
        ],
        CrdSet::Atoll => vec![definition::<instance::Instance>()],
    }
}

fn karmada() -> Vec<Value> {
    vec![
        definition::<cluster::Cluster>(),
        definition::<policy::PropagationPolicy>(),
        definition::<policy::ClusterPropagationPolicy>(),
        definition::<policy::OverridePolicy>(),
        definition::<policy::ClusterOverridePolicy>(),
        definition::<policy::FederatedResourceQuota>(),
        definition::<policy::ClusterTaintPolicy>(),
        with_older::<work::ResourceBindingV1Alpha1>(definition::<work::ResourceBinding>()),
        with_older::<work::ClusterResourceBindingV1Alpha1>(definition::<work::ClusterResourceBinding>()),
        definition::<work::Work>(),
        definition::<config::ResourceInterpreterCustomization>(),
        definition::<config::ResourceInterpreterWebhookConfiguration>(),
        definition::<networking::MultiClusterService>(),
        definition::<networking::MultiClusterIngress>(),
        definition::<multicluster::ServiceExport>(),
        definition::<multicluster::ServiceImport>(),
        definition::<autoscaling::FederatedHPA>(),
        definition::<autoscaling::CronFederatedHPA>(),
        definition::<apps::WorkloadRebalancer>(),
        definition::<remedy::Remedy>(),
    ]
}

/// The definition of a kind with one version.
fn definition<K: Kind>() -> Value {
    let mut names = Map::new();
    names.insert("kind".to_owned(), json!(K::KIND));
    names.insert("listKind".to_owned(), json!(format!("{}List", K::KIND)));
    names.insert("plural".to_owned(), json!(K::PLURAL));
    names.insert("singular".to_owned(), json!(K::KIND.to_lowercase()));
    if !K::SHORT.is_empty() {
        names.insert("shortNames".to_owned(), json!(K::SHORT));
    }
    if !K::CATEGORIES.is_empty() {
        names.insert("categories".to_owned(), json!(K::CATEGORIES));
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{}.{}", K::PLURAL, K::GROUP)},
        "spec": {
            "group": K::GROUP,
            "names": names,
            "scope": match K::SCOPE {
                Scope::Namespaced => "Namespaced",
                Scope::Cluster => "Cluster",
            },
            "versions": [version::<K>(true)],
        },
    })
}

fn version<K: Kind>(storage: bool) -> Value {
    let mut version = json!({
        "name": K::VERSION,
        "served": true,
        "storage": storage,
        "schema": {"openAPIV3Schema": structural_schema::<K>()},
    });
    if K::HAS_STATUS {
        version["subresources"] = json!({"status": {}});
    }
    if !K::COLUMNS.is_empty() {
        version["additionalPrinterColumns"] = K::COLUMNS.iter().map(column).collect();
    }
    version
}

fn column(column: &Column) -> Value {
    let mut out = json!({"name": column.name, "type": column.ty, "jsonPath": column.path});
    if column.priority != 0 {
        out["priority"] = json!(column.priority);
    }
    // No field of a definition: only kinds that are served without a stored one can say it.
    if !column.missing.is_empty() {
        out["missing"] = json!(column.missing);
    }
    out
}

/// Puts a version that is served but not stored before the one that is.
fn with_older<K: Kind>(mut definition: Value) -> Value {
    if let Some(versions) = definition.pointer_mut("/spec/versions").and_then(Value::as_array_mut) {
        versions.insert(0, version::<K>(false));
    }
    definition
}
