//! How many pods a workload wants.

use serde_json::Value;

use super::field::{get, set};
use super::{Kind, try_requirements};
use crate::{Error, Requirements};

/// How many replicas are wanted and what one needs; `None` for what runs nothing.
pub fn replicas(object: &Value) -> Result<Option<(i64, Option<Requirements>)>, Error> {
    let Some(kind) = Kind::of(object) else { return Ok(None) };
    let spec = &object["spec"];
    let wanted = match kind {
        // An API server writes 1 where nothing is said.
        Kind::Deployment | Kind::StatefulSet | Kind::ReplicaSet => spec["replicas"].as_i64().unwrap_or(1),
        Kind::Job => {
            let parallelism = spec["parallelism"].as_i64().unwrap_or(1);
            parallelism.min(spec["completions"].as_i64().unwrap_or(parallelism))
        }
        Kind::Pod => 1,
        _ => return Ok(None),
    };
    let template = kind.pod_template_path().and_then(|path| object.pointer(path));
    let mut needs = template.map(try_requirements).transpose()?.filter(|needs| !needs.is_nothing());
    if let Some(needs) = &mut needs {
        needs.namespace = object["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
    }
    Ok(Some((wanted, needs)))
}

/// Sets the number of replicas where the object says how many there are.
pub fn revise(object: &mut Value, replicas: i64) {
    let path: &[&str] = match Kind::of(object) {
        Some(Kind::Deployment | Kind::StatefulSet | Kind::ReplicaSet) => &["spec", "replicas"],
        Some(Kind::Job) => &["spec", "parallelism"],
        _ => return,
    };
    if get(object, path).is_some() {
        set(object, path, replicas.into());
    }
}
