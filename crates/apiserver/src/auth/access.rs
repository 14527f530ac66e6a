//! "May they?": the SubjectAccessReview family.

use std::collections::BTreeMap;

use atoll_meta::{FieldError, FieldPath, Status};
use serde_json::{Value, json};

use super::{Attributes, Rule};
use crate::call::Call;
use crate::identity::Identity;
use crate::request::Verb;

/// About any user.
pub async fn subject(call: &Call, review: &Value) -> Result<Value, Status> {
    let spec = &review["spec"];
    let identity = subject_of(spec);
    let mut errors = shape_errors(spec);
    if identity.user.is_empty() && identity.groups.is_empty() {
        errors.push(FieldError::invalid(
            FieldPath::new("spec.user"),
            "",
            "at least one of user or group must be specified",
        ));
    }
    refuse(call, &errors)?;
    decide(call, &identity, spec).await
}

/// About any user in one namespace.
pub async fn local(call: &Call, review: &Value) -> Result<Value, Status> {
    let spec = &review["spec"];
    let identity = subject_of(spec);
    let mut errors = shape_errors(spec);
    if !spec["nonResourceAttributes"].is_null() {
        let path = FieldPath::new("spec.nonResourceAttributes");
        errors.push(FieldError::invalid(
            path,
            spec["nonResourceAttributes"].clone(),
            "disallowed on this kind of request",
        ));
    }
    if identity.user.is_empty() && identity.groups.is_empty() {
        errors.push(FieldError::invalid(
            FieldPath::new("spec.user"),
            "",
            "at least one of user or group must be specified",
        ));
    }
    let given = spec["resourceAttributes"]["namespace"].as_str().unwrap_or_default();
    if spec["resourceAttributes"].is_object() && given != call.target.namespace {
        let path = FieldPath::new("spec.resourceAttributes.namespace");
        errors.push(FieldError::invalid(path, given, "must match metadata.namespace"));
    }
    refuse(call, &errors)?;
    decide(call, &identity, spec).await
}

/// About oneself.
pub async fn own(call: &Call, review: &Value) -> Result<Value, Status> {
    refuse(call, &shape_errors(&review["spec"]))?;
    decide(call, &call.identity, &review["spec"]).await
}

/// Everything one may do in a namespace.
pub async fn rules(call: &Call, review: &Value) -> Result<Value, Status> {
    let namespace = review["spec"]["namespace"].as_str().unwrap_or_default();
    if namespace.is_empty() {
        return Err(Status::bad_request("no namespace on request"));
    }
    let roles = call.instance.roles.get(&call.hub, &call.instance).await?;
    let (urls, resources): (Vec<&Rule>, Vec<&Rule>) =
        roles.rules(&call.identity, namespace).partition(|rule| !rule.urls.is_empty());
    let resources: Vec<Value> = resources
        .iter()
        .map(|rule| {
            let mut item = json!({"verbs": rule.verbs, "apiGroups": rule.api_groups, "resources": rule.resources});
            if !rule.resource_names.is_empty() {
                item["resourceNames"] = json!(rule.resource_names);
            }
            item
        })
        .collect();
    let urls: Vec<Value> = urls.iter().map(|rule| json!({"verbs": rule.verbs, "nonResourceURLs": rule.urls})).collect();
    Ok(json!({"resourceRules": resources, "nonResourceRules": urls, "incomplete": false}))
}

fn subject_of(spec: &Value) -> Identity {
    let list = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(Value::as_str).map(ToOwned::to_owned).collect()
    };
    let extra: BTreeMap<String, Vec<String>> =
        spec["extra"].as_object().into_iter().flatten().map(|(key, value)| (key.to_lowercase(), list(value))).collect();
    Identity {
        user: spec["user"].as_str().unwrap_or_default().to_owned(),
        uid: spec["uid"].as_str().unwrap_or_default().to_owned(),
        groups: list(&spec["groups"]),
        extra,
    }
}

fn shape_errors(spec: &Value) -> Vec<FieldError> {
    let path = FieldPath::new("spec.resourceAttributes");
    match (spec["resourceAttributes"].is_object(), spec["nonResourceAttributes"].is_object()) {
        (true, true) => {
            let given = &spec["nonResourceAttributes"];
            let text = |field: &str| given[field].as_str().unwrap_or_default();
            let given = json!({"Path": text("path"), "Verb": text("verb")});
            let why = "cannot be specified in combination with resourceAttributes";
            vec![FieldError::invalid(FieldPath::new("spec.nonResourceAttributes"), given, why)]
        }
        (false, false) => {
            let why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            vec![FieldError::invalid(path, Value::Null, why)]
        }
        _ => Vec::new(),
    }
}

fn refuse(call: &Call, errors: &[FieldError]) -> Result<(), Status> {
    // Without a kind, as the original has it.
    if errors.is_empty() { Ok(()) } else { Err(Status::invalid(&call.kind.group, "", "", errors)) }
}

async fn decide(call: &Call, identity: &Identity, spec: &Value) -> Result<Value, Status> {
    let asked = attributes(spec);
    if identity.is_master() {
        return Ok(json!({"allowed": true}));
    }
    let roles = call.instance.roles.get(&call.hub, &call.instance).await?;
    Ok(match roles.reason(identity, &asked) {
        Some(reason) => json!({"allowed": true, "reason": format!("RBAC: allowed by {reason}")}),
        None => json!({"allowed": false}),
    })
}

fn attributes(spec: &Value) -> Attributes<'_> {
    let (resource, url) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    let text = |field: &str| resource[field].as_str().unwrap_or_default();
    let verb = if url.is_object() { &url["verb"] } else { &resource["verb"] };
    Attributes {
        // The word below counts; any verb can be asked about.
        verb: Verb::Get,
        verb_word: Some(verb.as_str().unwrap_or_default()),
        group: text("group"),
        version: text("version"),
        resource: text("resource"),
        subresource: text("subresource"),
        namespace: text("namespace"),
        name: text("name"),
        url: url.is_object().then(|| url["path"].as_str().unwrap_or_default()),
    }
}
