//! What a template refers to.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::field::{list, text};
use super::{Kind, pod_dependencies};
use crate::{LabelSelector, ObjectRef};

/// The objects a template refers to, in order.
pub fn dependencies(object: &Value) -> Vec<ObjectRef> {
    let Some(kind) = Kind::of(object) else { return Vec::new() };
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    let found = match kind {
        Kind::Ingress => tls_secrets(object, namespace),
        Kind::ServiceImport => imported(object, namespace),
        _ => {
            let template = kind.pod_template_path().and_then(|path| object.pointer(path));
            template.map(|template| pod_dependencies(template, namespace)).unwrap_or_default()
        }
    };
    let claimed = claim_templates(object);
    let made_by_itself = |found: &ObjectRef| {
        kind == Kind::StatefulSet && found.kind == "PersistentVolumeClaim" && claimed.contains(found.name.as_str())
    };
    found.into_iter().filter(|found| !made_by_itself(found)).collect()
}

fn tls_secrets(object: &Value, namespace: &str) -> BTreeSet<ObjectRef> {
    let names = list(&object["spec"], "tls").filter_map(|tls| text(tls, "secretName"));
    names.map(|name| ObjectRef::named("v1", "Secret", namespace, name)).collect()
}

/// The claims a StatefulSet makes; volumes of these names are replaced by them.
fn claim_templates(object: &Value) -> BTreeSet<&str> {
    let spec = &object["spec"];
    let names: BTreeSet<&str> =
        list(spec, "volumeClaimTemplates").filter_map(|claim| text(&claim["metadata"], "name")).collect();
    let replaced = list(&spec["template"]["spec"], "volumes")
        .filter(|volume| volume["name"].as_str().is_some_and(|name| names.contains(name)))
        .filter_map(|volume| volume["persistentVolumeClaim"]["claimName"].as_str());
    names.iter().copied().chain(replaced).collect()
}

/// An imported Service needs the one that stands for it, and the addresses behind it.
fn imported(object: &Value, namespace: &str) -> BTreeSet<ObjectRef> {
    let Some(name) = text(&object["metadata"], "name") else { return BTreeSet::new() };
    let derived = atoll_api::names::derived_service(name);
    let labels = BTreeMap::from([("kubernetes.io/service-name".to_owned(), derived.clone())]);
    BTreeSet::from([
        ObjectRef::named("v1", "Service", namespace, &derived),
        ObjectRef {
            label_selector: Some(LabelSelector { match_labels: labels, match_expressions: Vec::new() }),
            ..ObjectRef::named("discovery.k8s.io/v1", "EndpointSlice", namespace, "")
        },
    ])
}
