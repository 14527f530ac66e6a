//! Certificate signing requests: who asks, who approves, who signs.

use atoll_meta::{FieldError, FieldPath, Status};
use serde_json::{Map, Value, json};

use super::{Operation, Review};
use crate::auth::{self, Attributes, authorize, signing, vault};
use crate::request::Verb;

const GROUP: &str = "certificates.k8s.io";
const CLIENT: &str = "kubernetes.io/kube-apiserver-client";

fn concerns(review: &Review<'_>) -> bool {
    *review.call.kind.group == *GROUP && *review.call.kind.plural == *"certificatesigningrequests"
}

/// Stamps who asks, and keeps what each endpoint may not change.
pub fn mutate(review: &Review<'_>, object: &mut Value) {
    if !concerns(review) {
        return;
    }
    match (review.operation, review.old) {
        (Operation::Create, _) => stamp(review, object),
        (Operation::Update, Some(old)) => keep(review.subresource, object, old, &review.call.timestamp()),
        _ => {}
    }
}

fn stamp(review: &Review<'_>, object: &mut Value) {
    if let Some(map) = object.as_object_mut() {
        map.insert("status".into(), json!({}));
    }
    let Some(spec) = object["spec"].as_object_mut() else { return };
    let Value::Object(mut info) = auth::user_info(&review.call.identity) else { return };
    for field in ["username", "uid", "groups", "extra"] {
        match info.remove(field) {
            Some(value) => drop(spec.insert(field.into(), value)),
            None => drop(spec.remove(field)),
        }
    }
}

/// Approval comes through its own endpoint, certificates and failures through `status`; the request never changes.
fn keep(subresource: &str, object: &mut Value, old: &Value, now: &str) {
    object["spec"] = old["spec"].clone();
    let conditions = |tree: &Value| tree["status"]["conditions"].as_array().cloned().unwrap_or_default();
    match subresource {
        "" => set_status(object, old["status"].clone()),
        "approval" => {
            let given = conditions(object).into_iter().map(|condition| dated(condition, now)).collect();
            let mut status = old["status"].as_object().cloned().unwrap_or_default();
            put(&mut status, "conditions", given);
            set_status(object, status.into());
        }
        // What `status` may not change is refused, not dropped: see `check_approval`.
        _ => {
            let dated_all = conditions(object).into_iter().map(|condition| dated(condition, now)).collect();
            let mut status = object["status"].as_object().cloned().unwrap_or_default();
            put(&mut status, "conditions", dated_all);
            set_status(object, status.into());
        }
    }
}

/// The server dates what the approver leaves undated.
fn dated(mut condition: Value, now: &str) -> Value {
    for field in ["lastUpdateTime", "lastTransitionTime"] {
        if condition[field].is_null() {
            condition[field] = now.into();
        }
    }
    condition
}

fn put(status: &mut Map<String, Value>, field: &str, list: Vec<Value>) {
    if list.is_empty() {
        status.remove(field);
    } else {
        status.insert(field.into(), list.into());
    }
}

fn set_status(object: &mut Value, status: Value) {
    object["status"] = if status.is_null() { json!({}) } else { status };
}

/// Checks who approves and who signs, and signs what was approved.
pub async fn check(review: &Review<'_>, object: &mut Value) -> Result<(), Status> {
    if !concerns(review) {
        return Ok(());
    }
    match (review.operation, review.subresource) {
        (Operation::Create, _) => check_subject(review, object),
        (Operation::Update, "approval") => {
            permitted(review, object, "approve").await?;
            check_approval(review, object)?;
            sign(review, object).await
        }
        (Operation::Update, "status") => {
            check_certificate(review, object)?;
            let changed = review.old.is_none_or(|old| old["status"] != object["status"]);
            if changed {
                permitted(review, object, "sign").await?;
            }
            check_approval(review, object)
        }
        _ => Ok(()),
    }
}

/// A signer delivers certificates, not just bytes, and once only.
fn check_certificate(review: &Review<'_>, object: &Value) -> Result<(), Status> {
    let path = FieldPath::new("status.certificate");
    let given = object["status"]["certificate"].as_str().unwrap_or_default();
    let before = review.old.and_then(|old| old["status"]["certificate"].as_str()).unwrap_or_default();
    if given == before {
        return Ok(());
    }
    let mut errors = Vec::new();
    let mut invalid = |why: String| errors.push(FieldError::invalid(path.clone(), "<certificate data>", why));
    let text = vault::text(&object["status"]["certificate"]).unwrap_or_default();
    let mut blocks =
        text.split("-----BEGIN ").skip(1).filter_map(|rest| rest.split_once("-----")).map(|(label, _)| label);
    if let Some(other) = blocks.find(|label| *label != "CERTIFICATE") {
        invalid(format!("only CERTIFICATE PEM blocks are allowed, found {other:?}"));
    } else if !given.is_empty() && atoll_pki::validity_of(&text).is_err() {
        invalid("must contain at least one CERTIFICATE PEM block".to_owned());
    }
    if !before.is_empty() {
        errors.push(FieldError::forbidden(path, "updates may not modify existing certificate content"));
    }
    if errors.is_empty() { Ok(()) } else { Err(review.call.kind.invalid(&review.name, &errors)) }
}

/// Nobody asks for a certificate that may do everything.
fn check_subject(review: &Review<'_>, object: &Value) -> Result<(), Status> {
    let Some(request) = signing::parse(object) else {
        return Err(review.call.kind.invalid_field(
            &review.name,
            "spec.request",
            object["spec"]["request"].clone(),
            "PEM block type must be CERTIFICATE REQUEST",
        ));
    };
    let masters = request.organizations.iter().any(|organization| organization == "system:masters");
    if masters && object["spec"]["signerName"] == CLIENT {
        let why = format!("use of {CLIENT} signer with system:masters group is not allowed");
        return Err(Status::forbidden(GROUP, &review.call.kind.plural, &review.name, why));
    }
    Ok(())
}

/// An approval, denial or failure stays, and a request is not both approved and denied.
fn check_approval(review: &Review<'_>, object: &Value) -> Result<(), Status> {
    let has = |tree: &Value, kind: &str| {
        tree["status"]["conditions"].as_array().into_iter().flatten().any(|condition| condition["type"] == kind)
    };
    let path = FieldPath::new("status.conditions");
    let invalid = |error: FieldError| Err(review.call.kind.invalid(&review.name, &[error]));
    for kind in ["Approved", "Denied", "Failed"] {
        let before = review.old.is_some_and(|old| has(old, kind));
        if review.subresource == "status" && kind != "Failed" && !before && has(object, kind) {
            let why = format!("updates may not add a condition of type {kind:?}");
            return invalid(FieldError::forbidden(path, why));
        }
        if before && !has(object, kind) {
            return invalid(FieldError::forbidden(
                path,
                format!("updates may not remove a condition of type {kind:?}"),
            ));
        }
    }
    for (index, condition) in object["status"]["conditions"].as_array().into_iter().flatten().enumerate() {
        let own = path.index(index).child("status");
        if !matches!(condition["type"].as_str(), Some("Approved" | "Denied" | "Failed")) {
            continue;
        }
        match condition["status"].as_str().unwrap_or_default() {
            "True" => {}
            "" => return invalid(FieldError::required(own, "")),
            other => return invalid(FieldError::not_supported(own, other, &["True"])),
        }
    }
    if has(object, "Approved") && has(object, "Denied") {
        return invalid(FieldError::invalid(path, "Denied", "Approved and Denied conditions are mutually exclusive"));
    }
    Ok(())
}

async fn permitted(review: &Review<'_>, object: &Value, word: &str) -> Result<(), Status> {
    let call = review.call;
    let signer = object["spec"]["signerName"].as_str().unwrap_or_default();
    let domain = format!("{}/*", signer.split('/').next().unwrap_or_default());
    for name in [signer, &domain] {
        let asked = Attributes {
            verb: Verb::Get,
            verb_word: Some(word),
            group: GROUP,
            version: "*",
            resource: "signers",
            subresource: "",
            namespace: "",
            name,
            url: None,
        };
        if authorize(&call.hub, &call.instance, &call.identity, &asked).await.is_ok() {
            return Ok(());
        }
    }
    let why = format!("user not permitted to {word} requests with signerName {signer:?}");
    Err(Status::forbidden(GROUP, &call.kind.plural, &review.name, why))
}

async fn sign(review: &Review<'_>, object: &mut Value) -> Result<(), Status> {
    let call = review.call;
    match signing::sign_request(&call.hub, &call.instance, object).await? {
        None => {}
        Some(Ok(certificate)) => object["status"]["certificate"] = certificate.into(),
        Some(Err(why)) => {
            let now = call.timestamp();
            let failed = json!({"type": "Failed", "status": "True", "reason": "SignerValidationFailure", "message": why,
                "lastUpdateTime": now, "lastTransitionTime": now});
            if let Some(conditions) = object["status"]["conditions"].as_array_mut() {
                conditions.push(failed);
            }
        }
    }
    Ok(())
}
