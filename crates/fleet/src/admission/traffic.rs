//! MultiClusterIngress, MultiClusterService and webhooks that interpret: what is called over the network.

use atoll_api::networking::MultiClusterServiceSpec;
use atoll_builtin::strategy::{self, Context};
use atoll_meta::{FieldError, FieldPath, name};
use serde_json::{Value, json};

use super::complain;

const INGRESS: Context<'_> = Context { group: "networking.k8s.io", version: "v1", kind: "Ingress", now: "" };
const TYPES: [&str; 2] = ["CrossCluster", "LoadBalancer"];

/// What is wrong with a MultiClusterIngress: what is wrong with an Ingress.
pub fn check_ingress(object: &Value) -> Vec<FieldError> {
    strategy::validate_create(&INGRESS, &json!({"spec": object["spec"]}))
}

/// What is wrong with a MultiClusterService.
pub fn check_service(spec: &MultiClusterServiceSpec, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let root = FieldPath::new("spec");
    let types = root.child("types");
    if spec.types.len() > 1 {
        errors.push(FieldError::invalid(types.clone(), spec.types.clone(), "only one type may be given"));
    }
    for (at, kind) in spec.types.iter().enumerate().filter(|(_, kind)| !TYPES.contains(&kind.as_str())) {
        errors.push(FieldError::not_supported(types.index(at), kind.as_str(), &TYPES));
    }
    if old.is_some_and(|old| old["spec"]["types"] != json!(spec.types)) {
        errors.push(FieldError::forbidden(types, "types are immutable"));
    }
    for (at, port) in spec.ports.iter().enumerate() {
        let path = root.child("ports").index(at);
        if !(1..=65535).contains(&port.port) {
            errors.push(FieldError::invalid(path.child("port"), port.port, "must be between 1 and 65535, inclusive"));
        }
        if !port.name.is_empty() {
            complain(&mut errors, &path.child("name"), &port.name, name::is_dns1123_label(&port.name));
            if spec.ports[..at].iter().any(|other| other.name == port.name) {
                errors.push(FieldError::duplicate(path.child("name"), port.name.as_str()));
            }
        }
    }
    for (field, clusters) in
        [("providerClusters", &spec.provider_clusters), ("consumerClusters", &spec.consumer_clusters)]
    {
        for (at, cluster) in clusters.iter().enumerate() {
            let path = root.child(field).index(at).child("name");
            complain(&mut errors, &path, &cluster.name, name::is_dns1123_subdomain(&cluster.name));
        }
    }
    errors
}

/// What is wrong with a ResourceInterpreterWebhookConfiguration.
pub fn check_webhooks(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (at, webhook) in object["webhooks"].as_array().into_iter().flatten().enumerate() {
        let path = FieldPath::new("webhooks").index(at);
        let called = webhook["name"].as_str().unwrap_or_default();
        complain(&mut errors, &path.child("name"), called, name::is_dns1123_subdomain(called));
        if called.split('.').count() < 3 {
            let why = "should be a domain with at least three segments separated by dots";
            errors.push(FieldError::invalid(path.child("name"), called, why));
        }
        let way = &webhook["clientConfig"];
        if way["url"].is_null() == way["service"].is_null() {
            let why = "exactly one of url or service is required";
            errors.push(FieldError::required(path.child("clientConfig"), why));
        }
        if let Some(url) = way["url"].as_str().filter(|url| !url.starts_with("https://")) {
            errors.push(FieldError::invalid(
                path.child("clientConfig").child("url"),
                url,
                "'https' is the only allowed URL scheme",
            ));
        }
        if let Some(seconds) = webhook["timeoutSeconds"].as_i64().filter(|seconds| !(1..=30).contains(seconds)) {
            let why = "the timeout value must be between 1 and 30 seconds";
            errors.push(FieldError::invalid(path.child("timeoutSeconds"), seconds, why));
        }
        let versions = webhook["interpreterContextVersions"].as_array();
        if !versions.is_some_and(|versions| versions.iter().any(|version| version == "v1alpha1")) {
            let why = "must include at least one of v1alpha1";
            let given = webhook["interpreterContextVersions"].clone();
            errors.push(FieldError::invalid(path.child("interpreterContextVersions"), given, why));
        }
    }
    errors
}
