//! The annotation of client-side apply, for objects that change over to server-side apply.

use serde_json::Value;

use super::Request;
use super::conflict::Conflict;
use crate::fields::FieldSet;
use crate::typed::{compare, field_set, validate};

/// Where client-side apply keeps what was applied last.
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// How large all annotations of an object may be together.
const MAX_ANNOTATIONS: usize = 256 * 1024;

/// Only this manager changes over from client-side apply.
pub(super) const MANAGER: &str = "kubectl";

fn annotation(object: &Value) -> Option<&str> {
    object.get("metadata")?.get("annotations")?.get(ANNOTATION)?.as_str().filter(|text| !text.is_empty())
}

/// Leaves out conflicts over fields that the same user applied from the client, and that
/// still have the applied value.
pub(super) fn without_allowed(conflicts: Vec<Conflict>, live: Option<&Value>, request: &Request) -> Vec<Conflict> {
    match live.and_then(|live| applied_fields(live, request)) {
        Some(own) => conflicts.into_iter().filter(|conflict| !own.contains(&conflict.path.0)).collect(),
        None => conflicts,
    }
}

fn applied_fields(live: &Value, request: &Request) -> Option<FieldSet> {
    let applied: Value = serde_json::from_str(annotation(live)?).ok()?;
    if applied.get("apiVersion").and_then(Value::as_str) != Some(request.api_version) {
        return None;
    }
    validate(&applied, request.kind()).ok()?;
    let diff = compare(Some(&applied), live, request.kind());
    let set = field_set(&applied, request.kind());
    Some(set.difference(&diff.modified).difference(&diff.added).difference(&diff.removed))
}

/// Brings the annotation of an object up to date, if it has one.
pub(super) fn refresh(object: &mut Value, config: &Value) {
    if annotation(object).is_none() {
        return;
    }
    let mut config = config.clone();
    if let Some(annotations) = config.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(ANNOTATION);
    }
    let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) else { return };
    annotations.insert(ANNOTATION.to_owned(), format!("{config}\n").into());
    let size: usize = annotations.iter().map(|(name, value)| name.len() + value.as_str().map_or(0, str::len)).sum();
    if size > MAX_ANNOTATIONS {
        annotations.remove(ANNOTATION);
    }
}
