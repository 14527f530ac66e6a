//! Changes lists, labels, embedded documents and anything else by JSON pointer.

use atoll_api::policy::{
    CommandArgsOverrider, DocumentPatch, FieldOverrider, LabelAnnotationOverrider, ListOperator, OverriderOperator,
    PlaintextOverrider,
};
use serde_json::{Value, json};

/// The containers of a pod or of the pods a workload makes; init containers do not count.
pub fn containers(manifest: &mut Value) -> impl Iterator<Item = &mut Value> {
    let pointer = match manifest["kind"].as_str().unwrap_or_default() {
        "Pod" => "/spec/containers",
        "ReplicaSet" | "Deployment" | "DaemonSet" | "StatefulSet" | "Job" => "/spec/template/spec/containers",
        "CronJob" => "/spec/jobTemplate/spec/template/spec/containers",
        _ => "/none",
    };
    manifest.pointer_mut(pointer).and_then(Value::as_array_mut).into_iter().flatten()
}

/// Appends to or removes from the command or arguments of a container.
pub fn list(manifest: &mut Value, field: &str, overrider: &CommandArgsOverrider) {
    for container in containers(manifest).filter(|container| container["name"] == overrider.container_name.as_str()) {
        let mut items: Vec<Value> = container[field].as_array().cloned().unwrap_or_default();
        match overrider.operator {
            ListOperator::Add => items.extend(overrider.value.iter().map(|item| item.as_str().into())),
            ListOperator::Remove => items.retain(|item| !overrider.value.iter().any(|gone| item == gone.as_str())),
        }
        if !(items.is_empty() && container[field].is_null()) {
            container[field] = items.into();
        }
    }
}

/// Changes labels or annotations; what is missing cannot be replaced or removed.
pub fn map(manifest: &mut Value, field: &str, overrider: &LabelAnnotationOverrider) {
    if !manifest["metadata"][field].is_object() {
        manifest["metadata"][field] = json!({});
    }
    let Some(map) = manifest["metadata"][field].as_object_mut() else { return };
    for (key, value) in &overrider.value {
        match overrider.operator {
            OverriderOperator::Remove => {
                map.remove(key);
            }
            OverriderOperator::Replace if !map.contains_key(key) => {}
            OverriderOperator::Add | OverriderOperator::Replace => {
                map.insert(key.clone(), value.as_str().into());
            }
        }
    }
}

fn operation(operator: OverriderOperator, path: &str, value: Option<&Value>) -> Value {
    let op = match operator {
        OverriderOperator::Add => "add",
        OverriderOperator::Remove => "remove",
        OverriderOperator::Replace => "replace",
    };
    let mut operation = json!({"op": op, "path": path});
    if operator != OverriderOperator::Remove {
        operation["value"] = value.cloned().unwrap_or(Value::Null);
    }
    operation
}

/// Changes anything by JSON pointer.
pub fn plain(manifest: &mut Value, overriders: &[PlaintextOverrider]) -> Result<(), String> {
    if overriders.is_empty() {
        return Ok(());
    }
    let operations: Value =
        overriders.iter().map(|one| operation(one.operator, &one.path, one.value.as_ref())).collect();
    let changed = atoll_patch::json_patch(manifest, &operations).map_err(|error| error.to_string())?;
    if !changed["kind"].is_string() || !changed["metadata"].is_object() {
        return Err("nothing with a kind and metadata is left".to_owned());
    }
    *manifest = changed;
    Ok(())
}

/// Changes a JSON or YAML document that a string field holds.
pub fn field(manifest: &mut Value, overrider: &FieldOverrider) -> Result<(), String> {
    let place =
        manifest.pointer_mut(&overrider.field_path).ok_or_else(|| format!("no field at {}", overrider.field_path))?;
    let text = place.as_str().ok_or_else(|| format!("{} is not a string", overrider.field_path))?;
    let patch = |document: &Value, patches: &[DocumentPatch]| {
        let operations: Value =
            patches.iter().map(|one| operation(one.operator, &one.sub_path, one.value.as_ref())).collect();
        atoll_patch::json_patch(document, &operations).map_err(|error| error.to_string())
    };
    // Of two languages only one is spoken.
    let changed = if !overrider.yaml.is_empty() {
        // As programs for Kubernetes read it: 0644 is a mode of files.
        let options = serde_saphyr::options! { legacy_octal_numbers: true };
        let document: Value = serde_saphyr::from_str_with_options(text, options)
            .map_err(|error| format!("{}: {error}", overrider.field_path))?;
        serde_saphyr::to_string(&patch(&document, &overrider.yaml)?).map_err(|error| error.to_string())?
    } else if !overrider.json.is_empty() {
        let document = serde_json::from_str(text).map_err(|error| format!("{}: {error}", overrider.field_path))?;
        patch(&document, &overrider.json)?.to_string()
    } else {
        return Ok(());
    };
    *place = changed.into();
    Ok(())
}
