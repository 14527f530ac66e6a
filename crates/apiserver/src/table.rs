//! Objects as tables for people, as `kubectl get` prints them.

use atoll_builtin::print;
use atoll_meta::Status;
use serde_json::{Value, json};

use crate::call::Call;
use crate::kind::Source;
use crate::respond::partial;

/// How much of each object comes with its row.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Include {
    /// Nothing.
    None,
    /// Metadata.
    Metadata,
    /// All of it.
    Object,
}

impl Call {
    /// The `includeObject` parameter.
    pub fn include(&self) -> Result<Include, Status> {
        match self.query.get("includeObject") {
            None | Some("" | "Metadata") => Ok(Include::Metadata),
            Some("None") => Ok(Include::None),
            Some("Object") => Ok(Include::Object),
            Some(other) => Err(Status::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: must be 'Metadata', 'Object', 'None', or empty"
            ))),
        }
    }
}

/// The column definitions of a kind.
pub fn columns(call: &Call) -> Value {
    match &call.kind.source {
        Source::Builtin(_) => print::columns(&call.kind.group, &call.kind.kind)
            .iter()
            .map(|column| {
                json!({"name": column.name, "type": column.ty, "format": column.format,
                       "description": column.description, "priority": column.priority})
            })
            .collect(),
        Source::Custom(custom) => custom.columns(),
    }
}

/// The row of an object.
pub fn row(call: &Call, object: &Value, include: Include, beta: bool) -> Value {
    let now = call.hub.now().as_second();
    let cells = match &call.kind.source {
        Source::Builtin(_) => print::cells(&call.kind.group, &call.kind.kind, object, now),
        Source::Custom(custom) => custom.cells(object, now),
    };
    let shown = match include {
        Include::None => Value::Null,
        Include::Metadata => partial(object, beta),
        Include::Object => object.clone(), // the row owns what it shows
    };
    let mut row = json!({"cells": cells, "object": shown});
    let conditions = match &call.kind.source {
        Source::Builtin(_) => print::conditions(&call.kind.group, &call.kind.kind, object),
        Source::Custom(_) => Value::Null,
    };
    if !conditions.is_null() {
        row["conditions"] = conditions;
    }
    row
}

/// A table of rows; `columns` is null for all but the first event of a watch.
pub fn table(metadata: Value, columns: Value, rows: Vec<Value>, beta: bool) -> Value {
    let version = if beta { "meta.k8s.io/v1beta1" } else { "meta.k8s.io/v1" };
    json!({"kind": "Table", "apiVersion": version, "metadata": metadata, "columnDefinitions": columns, "rows": rows})
}

/// The table of a single object.
pub fn of_one(call: &Call, object: &Value, beta: bool) -> Result<Value, Status> {
    let metadata = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
    Ok(table(metadata, columns(call), vec![row(call, object, call.include()?, beta)], beta))
}
