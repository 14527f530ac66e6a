//! Checking a definition while it is written, and establishing it in the same transaction.

use atoll_meta::{FieldError, FieldPath, Status, name};
use serde_json::{Value, json};

use super::check;
use crate::call::Call;
use crate::kind::builtin;

/// Says that a group of Kubernetes' own may be used.
const APPROVED: &str = "api-approved.kubernetes.io";

/// Defaults and checks a definition, and computes its status.
pub async fn accept(call: &Call, old: Option<&Value>, object: &mut Value) -> Result<(), Status> {
    default_names(object);
    let errors = faults(call, old, object);
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

fn faults(call: &Call, old: Option<&Value>, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = &object["spec"];
    let at = |path: &str| FieldPath::new(path);
    check_group(old, object, &mut errors);
    match spec["scope"].as_str().unwrap_or_default() {
        "Namespaced" | "Cluster" => {}
        "" => errors.push(FieldError::required(at("spec.scope"), "")),
        other => errors.push(FieldError::not_supported(at("spec.scope"), other, &["Cluster", "Namespaced"])),
    }
    check_versions(call, old, spec, &mut errors);
    for field in ["plural", "singular", "kind", "listKind"] {
        let value = spec["names"][field].as_str().unwrap_or_default();
        let path = at("spec.names").child(field);
        if value.is_empty() || value == "List" {
            errors.push(FieldError::required(path, ""));
            continue;
        }
        // Kinds are words with capitals.
        let word = if matches!(field, "kind" | "listKind") { value.to_lowercase() } else { value.to_owned() };
        for why in name::is_dns1035_label(&word) {
            errors.push(FieldError::invalid(path.clone(), value, why));
        }
    }
    check::words(&spec["names"], &mut errors);
    check::conversion(&spec["conversion"], &mut errors);
    match old {
        Some(old) => {
            for field in ["group", "scope"] {
                if old["spec"][field] != spec[field] {
                    errors.push(FieldError::invalid(
                        at("spec").child(field),
                        spec[field].clone(),
                        "field is immutable",
                    ));
                }
            }
        }
        None if !spec["versions"].as_array().into_iter().flatten().any(|version| version["storage"] == true) => {
            errors.push(FieldError::invalid(
                at("status.storedVersions"),
                Value::Null,
                "must have at least one stored version",
            ));
        }
        None => {}
    }
    errors
}

fn check_group(old: Option<&Value>, object: &Value, errors: &mut Vec<FieldError>) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (group, plural) = (text(&object["spec"]["group"]), text(&object["spec"]["names"]["plural"]));
    let own_name = text(&object["metadata"]["name"]);
    if own_name != format!("{plural}.{group}") {
        let path = FieldPath::new("metadata.name");
        errors.push(FieldError::invalid(path, own_name, "must be spec.names.plural+\".\"+spec.group"));
    }
    let path = FieldPath::new("spec.group");
    if group.is_empty() {
        errors.push(FieldError::required(path, ""));
    } else if !group.contains('.') {
        errors.push(FieldError::invalid(path, group.clone(), "should be a domain with at least one dot"));
    }
    let guarded = group.ends_with(".k8s.io") || group.ends_with(".kubernetes.io");
    if guarded && old.is_none() && object["metadata"]["annotations"][APPROVED].as_str().unwrap_or_default().is_empty() {
        let path = FieldPath::new("metadata").child("annotations").key(APPROVED);
        let why = format!(
            "protected groups must have approval annotation {APPROVED:?}, see https://github.com/kubernetes/enhancements/pull/1111"
        );
        errors.push(FieldError::required(path, why));
    }
}

/// Where something of a version is told to be: what all versions share belongs to none of them.
fn place(versions: &[Value], index: usize, part: &str, shared: &str) -> Option<FieldPath> {
    let same = versions.iter().all(|version| version[part] == versions[0][part]);
    match same {
        true if index > 0 => None, // told once
        true => Some(FieldPath::new(shared)),
        false => Some(FieldPath::new("spec.versions").index(index).child(part)),
    }
}

fn check_versions(call: &Call, old: Option<&Value>, spec: &Value, errors: &mut Vec<FieldError>) {
    let path = FieldPath::new("spec.versions");
    let versions = spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let storage = versions.iter().filter(|version| version["storage"] == true).count();
    if storage != 1 {
        let why = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid(path.clone(), spec["versions"].clone(), why));
    }
    for (index, version) in versions.iter().enumerate() {
        let own = path.index(index);
        let name = version["name"].as_str().unwrap_or_default();
        for why in name::is_dns1035_label(name) {
            errors.push(FieldError::invalid(own.child("name"), name, why));
        }
        if versions[..index].iter().any(|other| other["name"] == version["name"]) {
            errors.push(FieldError::duplicate(own.child("name"), name));
        }
        match version["schema"].get("openAPIV3Schema") {
            None => errors.push(FieldError::required(own.child("schema").child("openAPIV3Schema"), "")),
            Some(schema) => {
                if let Some(at) = place(versions, index, "schema", "spec.validation") {
                    let at = at.child("openAPIV3Schema");
                    let known = || old.is_some_and(|old| has_schema(old, schema));
                    match call.hub.interner.compile(schema, &at) {
                        Err(faults) => errors.extend(faults),
                        // What was accepted once stays accepted.
                        Ok(compiled) if !known() => errors.extend(compiled.check_costs(&at)),
                        Ok(_) => {}
                    }
                }
            }
        }
        if let Some(at) = place(versions, index, "additionalPrinterColumns", "spec.additionalPrinterColumns") {
            check_columns(&version["additionalPrinterColumns"], &at, errors);
        }
        if let Some(at) = place(versions, index, "selectableFields", "spec.selectableFields") {
            check::selectable(version, &at, errors);
        }
        if let Some(at) = place(versions, index, "subresources", "spec.subresources") {
            check::scale(version, &at, errors);
        }
        check::deprecation(version, &own, errors);
    }
}

/// Whether a definition has a version with exactly this schema.
fn has_schema(definition: &Value, schema: &Value) -> bool {
    let versions = definition["spec"]["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    versions.iter().any(|version| version["schema"]["openAPIV3Schema"] == *schema)
}

fn check_columns(columns: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
    for (index, column) in columns.as_array().into_iter().flatten().enumerate() {
        let own = path.index(index);
        let text = |field: &str| column[field].as_str().unwrap_or_default();
        if text("name").is_empty() {
            errors.push(FieldError::required(own.child("name"), ""));
        }
        match text("type") {
            "" => errors.push(FieldError::required(own.child("type"), format!("must be one of {}", TYPES.join(",")))),
            ty if !TYPES.contains(&ty) => {
                errors.push(FieldError::invalid(own.child("type"), ty, format!("must be one of {}", TYPES.join(","))));
            }
            _ => {}
        }
        let json_path = text("jsonPath");
        if json_path.is_empty() {
            errors.push(FieldError::required(own.child("JSONPath"), ""));
        } else if !json_path.starts_with('.') {
            errors.push(FieldError::invalid(
                own.child("JSONPath"),
                json_path,
                "must be a simple json path starting with .",
            ));
        } else if let Err(error) = atoll_meta::path::JsonPath::parse(json_path) {
            errors.push(FieldError::invalid(own.child("JSONPath"), json_path, error.to_string()));
        }
    }
}

/// Which of the names a definition asks for it gets, and why not the others. The last conflict is told.
fn accept_names(call: &Call, object: &Value, accepted: &mut Value) -> Option<(&'static str, String)> {
    let own = object["metadata"]["name"].as_str().unwrap_or_default();
    let group = object["spec"]["group"].as_str().unwrap_or_default();
    let names = &object["spec"]["names"];
    let custom = call.instance.custom_kinds();
    let others: Vec<_> = builtin()
        .iter()
        .chain(custom.iter())
        .filter(|kind| *kind.group == *group && kind.custom().is_none_or(|custom| custom.definition != own))
        .collect();
    let resource_taken = |name: &str| {
        others.iter().any(|kind| {
            *kind.plural == *name || *kind.singular == *name || kind.short_names.iter().any(|short| **short == *name)
        })
    };
    let kind_taken = |name: &str| others.iter().any(|kind| *kind.kind == *name || *kind.list_kind == *name);
    let mut conflict = None;
    let fields = [
        ("plural", "PluralConflict"),
        ("singular", "SingularConflict"),
        ("shortNames", "ShortNamesConflict"),
        ("kind", "KindConflict"),
        ("listKind", "ListKindConflict"),
    ];
    for (field, reason) in fields {
        let wanted = &names[field];
        let list: Vec<&str> = match wanted {
            Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
            one => one.as_str().into_iter().collect(),
        };
        let of_kinds = matches!(field, "kind" | "listKind");
        let taken = |name: &&&str| if of_kinds { kind_taken(name) } else { resource_taken(name) };
        match list.iter().find(taken) {
            Some(name) if accepted[field] != *wanted => {
                conflict = Some((reason, format!("{name:?} is already in use")))
            }
            _ if !wanted.is_null() => accepted[field] = wanted.clone(),
            _ => {}
        }
    }
    if !names["categories"].is_null() {
        accepted["categories"] = names["categories"].clone();
    }
    conflict
}

fn set_status(call: &Call, old: Option<&Value>, object: &mut Value) {
    let now = call.timestamp();
    let mut status = old.map(|old| old["status"].clone()).filter(Value::is_object).unwrap_or_else(|| json!({}));
    if status["acceptedNames"].is_null() {
        status["acceptedNames"] = json!({"kind": "", "plural": ""});
    }
    let conflict = accept_names(call, object, &mut status["acceptedNames"]);
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
    let state = (
        "True",
        "InstanceDeletionPending",
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon".to_owned(),
    );
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
