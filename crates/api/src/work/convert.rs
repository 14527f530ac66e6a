//! Between the two versions of the bindings: the older one says with the template how many replicas it has and what one
//! of them needs. What else the newer one has, the older one does not show.

use atoll_meta::Conversion;
use serde_json::{Map, Value, json};

use super::{ClusterResourceBinding, ClusterResourceBindingV1Alpha1, ResourceBinding, ResourceBindingV1Alpha1};
use crate::Kind;

/// The conversions of the bindings.
pub fn conversions() -> Vec<Conversion> {
    vec![
        conversion::<ResourceBindingV1Alpha1, ResourceBinding>(),
        conversion::<ClusterResourceBindingV1Alpha1, ClusterResourceBinding>(),
    ]
}

fn conversion<Served: Kind, Stored: Kind>() -> Conversion {
    Conversion {
        group: Served::GROUP,
        kind: Served::KIND,
        version: Served::VERSION,
        storage: Stored::VERSION,
        show: to_v1alpha1,
        store: from_v1alpha1,
    }
}

fn spec(binding: &mut Value) -> Option<&mut Map<String, Value>> {
    binding.get_mut("spec")?.as_object_mut()
}

fn to_v1alpha1(binding: &mut Value) {
    let Some(spec) = spec(binding) else { return };
    let replicas = spec.remove("replicas");
    let needs = spec.remove("replicaRequirements");
    let requests = needs.and_then(|mut needs| needs.as_object_mut()?.remove("resourceRequest"));
    let Some(resource) = spec.get_mut("resource").and_then(Value::as_object_mut) else { return };
    resource.extend(replicas.map(|replicas| ("replicas".to_owned(), replicas)));
    resource.extend(requests.map(|requests| ("resourcePerReplicas".to_owned(), requests)));
}

fn from_v1alpha1(binding: &mut Value) {
    let Some(spec) = spec(binding) else { return };
    let Some(resource) = spec.get_mut("resource").and_then(Value::as_object_mut) else { return };
    let replicas = resource.remove("replicas");
    let requests = resource.remove("resourcePerReplicas");
    spec.extend(replicas.map(|replicas| ("replicas".to_owned(), replicas)));
    spec.extend(requests.map(|requests| ("replicaRequirements".to_owned(), json!({"resourceRequest": requests}))));
}
