//! Checking a definition while it is written, and establishing it in the same transaction.

use atoll_meta::{FieldError, FieldPath, Status, name};
use serde_json::{Value, json};

use crate::call::Call;
use crate::kind::builtin;

/// Defaults and checks a definition, and computes its status.
pub async fn accept(call: &Call, old: Option<&Value>, object: &mut Value) -> Result<(), Status> {
    default_names(object);
    let errors = check(call, old, object);
    if !errors.is_empty() {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        return Err(call.kind.invalid(&name, &errors));
    }
    set_status(call, old, object);
    Ok(())
}

/// Fills in the names a definition leaves out.
pub fn default_names(object: &mut Value) {
    let spec = &mut object["spec"];
    let kind = spec["names"]["kind"].as_str().unwrap_or_default().to_owned();
    if spec["names"]["singular"].as_str().unwrap_or_default().is_empty() {
        spec["names"]["singular"] = kind.to_lowercase().into();
    }
    if spec["names"]["listKind"].as_str().unwrap_or_default().is_empty() {
        spec["names"]["listKind"] = format!("{kind}List").into();
    }
    if spec["conversion"].is_null() {
        spec["conversion"] = json!({"strategy": "None"});
    }
}

fn check(call: &Call, old: Option<&Value>, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = &object["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (group, plural) = (text(&spec["group"]), text(&spec["names"]["plural"]));
    let own_name = text(&object["metadata"]["name"]);
    let at = |path: &str| FieldPath::new(path);
    if own_name != format!("{plural}.{group}") {
        errors.push(FieldError::invalid(at("metadata.name"), own_name, "must be spec.names.plural+\".\"+spec.group"));
    }
    if group.is_empty() {
        errors.push(FieldError::required(at("spec.group"), ""));
    } else if !group.contains('.') {
        errors.push(FieldError::invalid(at("spec.group"), group.clone(), "should be a domain with at least one dot"));
    }
    if !matches!(spec["scope"].as_str(), Some("Namespaced" | "Cluster")) {
        errors.push(FieldError::not_supported(at("spec.scope"), spec["scope"].clone(), &["Cluster", "Namespaced"]));
    }
    for field in ["plural", "kind"] {
        let value = text(&spec["names"][field]);
        let path = at("spec.names").child(field);
        if value.is_empty() {
            errors.push(FieldError::required(path, ""));
            continue;
        }
        for why in name::is_dns1035_label(&value.to_lowercase()) {
            errors.push(FieldError::invalid(path.clone(), value.clone(), why));
        }
    }
    check_versions(call, spec, &mut errors);
    if let Some(old) = old {
        for field in ["group", "scope"] {
            if old["spec"][field] != spec[field] {
                errors.push(FieldError::invalid(at("spec").child(field), spec[field].clone(), "field is immutable"));
            }
        }
    }
    errors
}

fn check_versions(call: &Call, spec: &Value, errors: &mut Vec<FieldError>) {
    let path = FieldPath::new("spec.versions");
    let versions = spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    if versions.is_empty() {
        errors.push(FieldError::required(path, "must have at least one version"));
        return;
    }
    let storage = versions.iter().filter(|version| version["storage"] == true).count();
    if storage != 1 {
        errors.push(FieldError::invalid(
            path.clone(),
            spec["versions"].clone(),
            "must have exactly one version marked as storage version",
        ));
    }
    for (index, version) in versions.iter().enumerate() {
        let place = path.index(index);
        let name = version["name"].as_str().unwrap_or_default();
        for why in name::is_dns1035_label(name) {
            errors.push(FieldError::invalid(place.child("name"), name, why));
        }
        if versions[..index].iter().any(|other| other["name"] == version["name"]) {
            errors.push(FieldError::duplicate(place.child("name"), name));
        }
        let Some(schema) = version["schema"].get("openAPIV3Schema") else {
            errors.push(FieldError::required(place.child("schema").child("openAPIV3Schema"), "schemas are required"));
            continue;
        };
        if let Err(faults) = call.hub.interner.compile(schema, &place.child("schema").child("openAPIV3Schema")) {
            errors.extend(faults);
        }
        let columns = version["additionalPrinterColumns"].as_array().map(Vec::as_slice).unwrap_or_default();
        for (at, column) in columns.iter().enumerate() {
            if let Err(error) = atoll_meta::path::JsonPath::parse(column["jsonPath"].as_str().unwrap_or_default()) {
                let field = place.child("additionalPrinterColumns").index(at).child("jsonPath");
                errors.push(FieldError::invalid(field, column["jsonPath"].clone(), error.to_string()));
            }
        }
    }
}

/// Names in use within a group, by definitions other than `own`.
fn conflict(call: &Call, object: &Value) -> Option<(&'static str, String)> {
    let own = object["metadata"]["name"].as_str().unwrap_or_default();
    let group = object["spec"]["group"].as_str().unwrap_or_default();
    let names = &object["spec"]["names"];
    let custom = call.instance.custom_kinds();
    let others: Vec<_> = builtin()
        .iter()
        .chain(custom.iter())
        .filter(|kind| *kind.group == *group && kind.custom().is_none_or(|custom| custom.definition != own))
        .collect();
    let taken = |name: &str| {
        others.iter().any(|kind| {
            *kind.plural == *name || *kind.singular == *name || kind.short_names.iter().any(|short| **short == *name)
        })
    };
    let kind_taken = |name: &str| others.iter().any(|kind| *kind.kind == *name || *kind.list_kind == *name);
    let text = |field: &str| names[field].as_str().unwrap_or_default().to_owned();
    for (field, reason) in [("plural", "PluralConflict"), ("singular", "SingularConflict")] {
        if taken(&text(field)) {
            return Some((reason, format!("{:?} is already in use", text(field))));
        }
    }
    for short in names["shortNames"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if taken(short) {
            return Some(("ShortNamesConflict", format!("{short:?} is already in use")));
        }
    }
    for (field, reason) in [("kind", "KindConflict"), ("listKind", "ListKindConflict")] {
        if kind_taken(&text(field)) {
            return Some((reason, format!("{:?} is already in use", text(field))));
        }
    }
    None
}

fn set_status(call: &Call, old: Option<&Value>, object: &mut Value) {
    let now = call.timestamp();
    let mut status = old.map(|old| old["status"].clone()).filter(Value::is_object).unwrap_or_else(|| json!({}));
    let conflict = conflict(call, object);
    if conflict.is_none() {
        status["acceptedNames"] = object["spec"]["names"].clone();
    } else if status["acceptedNames"].is_null() {
        status["acceptedNames"] = json!({"kind": "", "plural": ""});
    }
    let established = is_true(&status, "Established") || conflict.is_none();
    let accepted = match &conflict {
        None => ("True", "NoConflicts", "no conflicts found".to_owned()),
        Some((reason, message)) => ("False", *reason, message.clone()),
    };
    set_condition(&mut status, "NamesAccepted", accepted, &now);
    let state = if established {
        ("True", "InitialNamesAccepted", "the initial names have been accepted".to_owned())
    } else {
        ("False", "NotAccepted", "not all names are accepted".to_owned())
    };
    set_condition(&mut status, "Established", state, &now);
    let storage = object["spec"]["versions"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|version| version["storage"] == true)
        .map(|version| version["name"].clone());
    let mut stored = status["storedVersions"].as_array().cloned().unwrap_or_default();
    if let Some(storage) = storage
        && !stored.contains(&storage)
    {
        stored.push(storage);
    }
    status["storedVersions"] = stored.into();
    object["status"] = status;
}

fn is_true(status: &Value, ty: &str) -> bool {
    let conditions = status["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    conditions.iter().any(|condition| condition["type"] == ty && condition["status"] == "True")
}

/// Marks a definition for deletion: its objects go first, and no new ones come.
pub fn terminate(object: &mut Value, now: &str) {
    let meta = &mut object["metadata"];
    let mut finalizers = meta["finalizers"].as_array().cloned().unwrap_or_default();
    if !finalizers.iter().any(|own| own == super::FINALIZER) {
        finalizers.push(super::FINALIZER.into());
    }
    meta["finalizers"] = finalizers.into();
    let mut status = object["status"].take();
    let state = ("True", "InstanceDeletionPending", "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon".to_owned());
    set_condition(&mut status, "Terminating", state, now);
    object["status"] = status;
}

/// Sets a condition and moves its transition time only when its status changes.
pub fn set_condition(status: &mut Value, ty: &str, (value, reason, message): (&str, &str, String), now: &str) {
    if !status["conditions"].is_array() {
        status["conditions"] = json!([]);
    }
    let Some(list) = status["conditions"].as_array_mut() else { return };
    let new = json!({"type": ty, "status": value, "reason": reason, "message": message, "lastTransitionTime": now});
    match list.iter_mut().find(|condition| condition["type"] == ty) {
        Some(own) => {
            let since = if own["status"] == value { own["lastTransitionTime"].clone() } else { now.into() };
            *own = new;
            own["lastTransitionTime"] = since;
        }
        None => list.push(new),
    }
}
