//! What a definition says about selectable fields, scales, names and conversion.

use atoll_meta::{FieldError, FieldPath, name};
use serde_json::Value;

/// How many fields of a version can be selected by.
const SELECTABLE: usize = 8;

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

/// Fields that selectors may use: scalars that the schema knows, each once.
pub fn selectable(version: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let fields = version["selectableFields"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut seen = Vec::new();
    for (index, field) in fields.iter().enumerate() {
        let (json_path, own) = (text(field, "jsonPath"), path.index(index).child("jsonPath"));
        if json_path.is_empty() {
            errors.push(FieldError::required(own, ""));
            continue;
        }
        match find(&version["schema"]["openAPIV3Schema"], json_path).map(|schema| text(schema, "type")) {
            Some("string" | "boolean" | "integer") => {}
            Some(_) => {
                let why = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
                errors.push(FieldError::invalid(own.clone(), json_path, why));
            }
            None => {
                let why = "is an invalid path: does not refer to a valid field";
                errors.push(FieldError::invalid(own.clone(), json_path, why));
            }
        }
        if seen.contains(&json_path) {
            errors.push(FieldError::duplicate(own, json_path));
        }
        seen.push(json_path);
    }
    if fields.len() > SELECTABLE {
        errors.push(FieldError::too_many(path.clone(), fields.len(), SELECTABLE));
    }
}

/// The schema a simple path leads to.
fn find<'a>(schema: &'a Value, json_path: &str) -> Option<&'a Value> {
    let mut steps = json_path.strip_prefix('.')?.split('.');
    steps.try_fold(schema, |schema, step| schema["properties"].get(step))
}

/// The paths of a scale: under `.spec` and `.status`.
pub fn scale(version: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let scale = &version["subresources"]["scale"];
    if !scale.is_object() {
        return;
    }
    let path = path.child("scale");
    let fields = [
        ("specReplicasPath", &[".spec."][..], "should be a json path under .spec"),
        ("statusReplicasPath", &[".status."][..], "should be a json path under .status"),
        ("labelSelectorPath", &[".spec.", ".status."][..], "should be a json path under either .spec or .status"),
    ];
    for (field, below, why) in fields {
        let (given, own) = (text(scale, field), path.child(field));
        if given.is_empty() {
            if field != "labelSelectorPath" {
                errors.push(FieldError::required(own, ""));
            }
        } else if !given.starts_with('.') {
            errors.push(FieldError::invalid(own, given, "must be a simple json path starting with ."));
        } else if !below.iter().any(|start| given.starts_with(start)) {
            errors.push(FieldError::invalid(own, given, why));
        }
    }
}

/// Short names and categories are words.
pub fn words(names: &Value, errors: &mut Vec<FieldError>) {
    for field in ["shortNames", "categories"] {
        for (index, word) in names[field].as_array().into_iter().flatten().enumerate() {
            let word = word.as_str().unwrap_or_default();
            for why in name::is_dns1035_label(word) {
                errors.push(FieldError::invalid(FieldPath::new("spec.names").child(field).index(index), word, why));
            }
        }
    }
}

/// How objects get from one version to another.
pub fn conversion(conversion: &Value, errors: &mut Vec<FieldError>) {
    let path = FieldPath::new("spec.conversion");
    match text(conversion, "strategy") {
        "None" => {}
        "Webhook" => {
            let webhook = &conversion["webhook"];
            if webhook["clientConfig"].is_null() {
                let why = "required when strategy is set to Webhook";
                errors.push(FieldError::required(path.child("webhookClientConfig"), why));
            }
            if webhook["conversionReviewVersions"].as_array().is_none_or(Vec::is_empty) {
                errors.push(FieldError::required(path.child("conversionReviewVersions"), ""));
            }
        }
        other => errors.push(FieldError::not_supported(path.child("strategy"), other, &["None", "Webhook"])),
    }
}

/// Only a deprecated version is warned of.
pub fn deprecation(version: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let warning = &version["deprecationWarning"];
    if warning.is_string() && version["deprecated"] != true {
        let why = "can only be set for deprecated versions";
        errors.push(FieldError::invalid(path.child("deprecationWarning"), warning.clone(), why));
    }
}
