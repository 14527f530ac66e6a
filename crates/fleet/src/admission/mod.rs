//! Defaults and rules for the kinds of a fleet, applied inside the server: what breaks them is not stored.

mod cluster;
mod overrides;
mod policy;
mod rest;
mod scaling;
mod traffic;

use std::sync::Arc;

use atoll_api::policy::PropagationSpec;
use atoll_api::words::{ALWAYS, label};
use atoll_apiserver::{Admission, Operation, Review};
use atoll_meta::{FieldError, FieldPath, Key, Status, name};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::core::fresh_id;

/// Defaults and rules for all instances that serve the kinds of a fleet.
pub fn admission() -> Arc<dyn Admission> {
    Arc::new(Rules)
}

/// A policy as it would be stored, or why it would not be.
pub(crate) fn complete_policy(policy: &Value) -> Result<Value, Status> {
    let text = |pointer: &str| policy.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (api, kind, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
    let namespaced = match (api.as_str(), kind.as_str()) {
        ("policy.karmada.io/v1alpha1", "PropagationPolicy") => true,
        ("policy.karmada.io/v1alpha1", "ClusterPropagationPolicy") => false,
        _ => {
            let why = format!("{api} {kind} is neither a PropagationPolicy nor a ClusterPropagationPolicy");
            return Err(Status::bad_request(why));
        }
    };
    if name.is_empty() {
        return Err(Status::bad_request("a policy needs metadata.name"));
    }
    // What does not fit the types is refused before anything is filled in.
    read::<PropagationSpec>(policy)?;
    let (own, mut policy) = (text("/metadata/namespace"), policy.clone());
    let namespace = namespaced.then(|| if own.is_empty() { "default".to_owned() } else { own });
    policy["metadata"]["namespace"] = namespace.clone().into();
    policy::default(&mut policy, namespace.as_deref(), false, String::new);
    let errors = policy::check(&read(&policy)?, &policy, None, namespace.as_deref());
    if errors.is_empty() { Ok(policy) } else { Err(Status::invalid("policy.karmada.io", &kind, &name, &errors)) }
}

struct Rules;

/// Whether the instance of a request is one of a fleet.
fn is_fleet(review: &Review<'_>) -> bool {
    review.call.instance.kind("cluster.karmada.io", "v1alpha1", "clusters").is_some()
}

fn resource<'a>(review: &'a Review<'_>) -> (&'a str, &'a str) {
    (&review.call.kind.group, &review.call.kind.plural)
}

#[async_trait::async_trait]
impl Admission for Rules {
    async fn mutate(&self, review: &Review<'_>, object: &mut Value) -> Result<(), Status> {
        let writes = matches!(review.operation, Operation::Create | Operation::Update);
        if !writes || !review.subresource.is_empty() || !review.call.kind.group.ends_with("karmada.io") {
            return Ok(());
        }
        if !object["spec"].is_object() && !object["spec"].is_null() {
            // The schema refuses it.
            return Ok(());
        }
        let create = review.operation == Operation::Create;
        let namespace = review.call.target.namespace.as_str();
        match resource(review) {
            ("policy.karmada.io", "propagationpolicies") => policy::default(object, Some(namespace), create, fresh_id),
            ("policy.karmada.io", "clusterpropagationpolicies") => policy::default(object, None, create, fresh_id),
            ("policy.karmada.io", "overridepolicies") => overrides::default(object, namespace),
            ("cluster.karmada.io", "clusters") => cluster::default(object, &atoll_meta::time::format(review.call.now)),
            ("work.karmada.io", "works") => {
                rest::identify(object, label::WORK_ID);
                rest::complete_work(object);
            }
            ("autoscaling.karmada.io", "federatedhpas") => scaling::default(object),
            ("work.karmada.io", "resourcebindings") if create => rest::identify(object, label::BINDING_ID),
            ("work.karmada.io", "clusterresourcebindings") if create => {
                rest::identify(object, label::CLUSTER_BINDING_ID)
            }
            ("networking.karmada.io", "multiclusterservices") if create => {
                rest::identify(object, label::MULTICLUSTER_SERVICE_ID)
            }
            _ => {}
        }
        Ok(())
    }

    async fn validate(&self, review: &Review<'_>, object: &Value) -> Result<Vec<atoll_store::Write>, Status> {
        if review.operation == Operation::Delete {
            return protect(review).map(|()| Vec::new());
        }
        let writes = matches!(review.operation, Operation::Create | Operation::Update);
        if !writes || !review.subresource.is_empty() || !review.call.kind.group.ends_with("karmada.io") {
            return Ok(Vec::new());
        }
        let mut errors = check(review, object)?;
        if resource(review) == ("policy.karmada.io", "clustertaintpolicies") {
            let evicting = rest::evicting_taints(object);
            // What is stored may stay: else nobody could change anything else about it once it is no more allowed.
            let kept = review.old.is_some_and(|old| old["spec"]["taints"] == object["spec"]["taints"]);
            if !kept && !evicting.is_empty() && !may_evict(review).await? {
                errors.extend(evicting);
            }
        }
        if resource(review) == ("config.karmada.io", "resourceinterpretercustomizations") {
            errors.extend(overlaps(review, object).await?);
        }
        if errors.is_empty() {
            return Ok(Vec::new());
        }
        let kind = &review.call.kind;
        Err(Status::invalid(&kind.group, &kind.kind, &review.name, &errors))
    }
}

/// Whether the Instance allows policies to put NoExecute taints on clusters.
async fn may_evict(review: &Review<'_>) -> Result<bool, Status> {
    let call = review.call;
    let key = Key::new("atoll.io", "instances", "", &call.instance.name);
    let described = call.hub.read(&call.hub.root(), key.as_str()).await?;
    let annotations = described.map(|entry| entry.object.tree(entry.modified)["metadata"]["annotations"].clone());
    Ok(annotations.is_some_and(|annotations| crate::options::allows_evicting_taints(&annotations)))
}

/// What other customisations in the instance say about the same kind.
async fn overlaps(review: &Review<'_>, object: &Value) -> Result<Vec<FieldError>, Status> {
    let call = review.call;
    let prefix = Key::prefix("config.karmada.io", "resourceinterpretercustomizations", "");
    let snapshot = call.hub.snapshot(&call.instance).await?;
    let others = snapshot.range(&prefix, None).filter(|(_, entry)| !entry.object.head.deleting);
    Ok(others.flat_map(|(_, entry)| rest::check_overlap(object, &entry.object.tree(entry.modified))).collect())
}

/// Refuses the deletion of protected objects.
fn protect(review: &Review<'_>) -> Result<(), Status> {
    let marked = review.old.is_some_and(|old| old["metadata"]["labels"][label::DELETION_PROTECTED] == ALWAYS);
    if !marked || !is_fleet(review) {
        return Ok(());
    }
    let (group, plural) = resource(review);
    let why = format!("the label {}={ALWAYS} protects it from deletion", label::DELETION_PROTECTED);
    Err(Status::forbidden(group, plural, &review.name, why))
}

fn check(review: &Review<'_>, object: &Value) -> Result<Vec<FieldError>, Status> {
    let old = review.old.filter(|_| review.operation == Operation::Update);
    // A change of metadata on something that is going must always be possible.
    if old.is_some_and(|old| !old["metadata"]["deletionTimestamp"].is_null()) {
        return Ok(Vec::new());
    }
    let namespace = review.call.target.namespace.as_str();
    Ok(match resource(review) {
        ("policy.karmada.io", "propagationpolicies") => policy::check(&read(object)?, object, old, Some(namespace)),
        ("policy.karmada.io", "clusterpropagationpolicies") => policy::check(&read(object)?, object, old, None),
        ("policy.karmada.io", "overridepolicies" | "clusteroverridepolicies") => overrides::check(&read(object)?),
        ("policy.karmada.io", "clustertaintpolicies") => rest::check_taint_policy(&read(object)?),
        ("policy.karmada.io", "federatedresourcequotas") => rest::check_quota(&read(object)?),
        ("cluster.karmada.io", "clusters") => cluster::check(&read(object)?, &review.name),
        ("config.karmada.io", "resourceinterpretercustomizations") => rest::check_customization(object)?,
        ("config.karmada.io", "resourceinterpreterwebhookconfigurations") => traffic::check_webhooks(object),
        ("work.karmada.io", "resourcebindings") => rest::check_binding(object),
        ("autoscaling.karmada.io", "federatedhpas") => scaling::check(object),
        ("autoscaling.karmada.io", "cronfederatedhpas") => scaling::check_cron(&read(object)?),
        ("networking.karmada.io", "multiclusteringresses") => traffic::check_ingress(object),
        ("networking.karmada.io", "multiclusterservices") => traffic::check_service(&read(object)?, old),
        _ => Vec::new(),
    })
}

/// The spec of an object as its type; what does not fit the type is refused.
fn read<T: DeserializeOwned>(object: &Value) -> Result<T, Status> {
    serde_json::from_value(object["spec"].clone()).map_err(|error| Status::bad_request(format!("spec: {error}")))
}

/// The map at a field of metadata, made if missing.
fn meta_map<'a>(object: &'a mut Value, field: &str) -> &'a mut Map<String, Value> {
    if !object["metadata"][field].is_object() {
        object["metadata"][field] = json!({});
    }
    object["metadata"][field].as_object_mut().expect("just made an object")
}

/// The objects of a list at a pointer; nothing is made where there is none. Defaults come before the schema is looked at,
/// so anything may stand there.
fn items_mut<'a>(object: &'a mut Value, pointer: &str) -> impl Iterator<Item = &'a mut Value> {
    object.pointer_mut(pointer).and_then(Value::as_array_mut).into_iter().flatten().filter(|item| item.is_object())
}

/// Adds a finalizer, unless it is there.
fn add_finalizer(object: &mut Value, own: &str) {
    let mut list = object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    if !list.iter().any(|item| item == own) {
        list.push(own.into());
        object["metadata"]["finalizers"] = list.into();
    }
}

/// Complaints about a text that has to be valid.
fn complain(errors: &mut Vec<FieldError>, path: &FieldPath, text: &str, faults: Vec<String>) {
    errors.extend(faults.into_iter().map(|fault| FieldError::invalid(path.clone(), text, fault)));
}

fn label_value(errors: &mut Vec<FieldError>, path: &FieldPath, text: &str) {
    complain(errors, path, text, name::is_label_value(text));
}

fn qualified(errors: &mut Vec<FieldError>, path: &FieldPath, text: &str) {
    complain(errors, path, text, name::is_qualified_name(text));
}

#[cfg(test)]
mod tests;
