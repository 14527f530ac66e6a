//! Tables as `kubectl get` shows them: columns and cells, kind by kind.

mod access;
mod config;
mod extension;
mod network;
mod node;
mod pod;
mod scaling;
mod storage;
mod view;
mod workload;

use serde_json::Value;

use view::View;

/// One column of a table.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub struct Column {
    /// Heading, written in capitals by clients.
    pub name: &'static str,
    /// JSON type of the cells.
    pub ty: &'static str,
    /// Format of the cells; `name` marks the name of the object.
    pub format: &'static str,
    /// What the column shows.
    pub description: &'static str,
    /// 0 is always shown, 1 only in wide output.
    pub priority: i32,
}

impl Column {
    /// The same column, shown in wide output only.
    const fn wide(self) -> Self {
        Self { priority: 1, ..self }
    }
}

const fn text(name: &'static str, description: &'static str) -> Column {
    Column { name, ty: "string", format: "", description, priority: 0 }
}

const fn integer(name: &'static str, description: &'static str) -> Column {
    Column { name, ty: "integer", format: "", description, priority: 0 }
}

const fn boolean(name: &'static str, description: &'static str) -> Column {
    Column { name, ty: "boolean", format: "", description, priority: 0 }
}

const NAME: Column = Column { format: "name", ..text("Name", "Name of the object, unique among its kind.") };
const AGE: Column = text("Age", "Time since the object was created.");
const CONTAINERS: Column = text("Containers", "Names of the containers in the template.").wide();
const IMAGES: Column = text("Images", "Images of the containers in the template.").wide();
const SELECTOR: Column = text("Selector", "Labels that select what belongs to the object.").wide();

/// How one kind is shown.
struct Printer {
    columns: &'static [Column],
    cells: fn(&View) -> Vec<Value>,
}

/// Kinds without columns of their own show when they were made.
const FALLBACK: Printer = Printer {
    columns: &[NAME, Column { ty: "date", ..text("Created At", "Time the object was created.") }],
    cells: |view| vec![view.name(), view.text("metadata.creationTimestamp").into()],
};

/// Name and age, for kinds with little else to show.
const NAME_AND_AGE: Printer = Printer { columns: &[NAME, AGE], cells: |view| vec![view.name(), view.age()] };

fn printer(group: &str, kind: &str) -> &'static Printer {
    let found = match group {
        "" => core(kind),
        "apps" | "batch" => workload::printer(kind),
        "autoscaling" | "policy" => scaling::printer(kind),
        "networking.k8s.io" | "discovery.k8s.io" => network::printer(kind),
        "storage.k8s.io" => storage::printer(kind),
        "events.k8s.io" => config::printer(kind),
        "rbac.authorization.k8s.io" | "certificates.k8s.io" | "coordination.k8s.io" => access::printer(kind),
        "node.k8s.io" | "scheduling.k8s.io" | "resource.k8s.io" => node::printer(kind),
        _ => extension::printer(kind),
    };
    found.unwrap_or(&FALLBACK)
}

fn core(kind: &str) -> Option<&'static Printer> {
    match kind {
        "Pod" | "PodTemplate" => pod::printer(kind),
        "ReplicationController" => workload::printer(kind),
        "Service" | "Endpoints" => network::printer(kind),
        "PersistentVolume" | "PersistentVolumeClaim" => storage::printer(kind),
        "Node" => node::printer(kind),
        _ => config::printer(kind),
    }
}

/// The columns of a kind.
pub fn columns(group: &str, kind: &str) -> &'static [Column] {
    printer(group, kind).columns
}

/// The cells of one object, one for each column.
pub fn cells(group: &str, kind: &str, object: &Value, now_seconds: i64) -> Vec<Value> {
    (printer(group, kind).cells)(&View { object, now: now_seconds })
}

/// Why a row is about something that is over, such as a pod that ended; null for all others.
pub fn conditions(group: &str, kind: &str, object: &Value) -> Value {
    let phase = object["status"]["phase"].as_str().unwrap_or_default();
    let message = match (group, kind, phase) {
        ("", "Pod", "Succeeded") => "The pod has completed successfully.",
        ("", "Pod", "Failed") => "The pod failed.",
        _ => return Value::Null,
    };
    serde_json::json!([{"type": "Completed", "status": "True", "reason": phase, "message": message}])
}

/// A short duration for people: `45s`, `2m10s`, `5d3h`.
pub fn age(seconds: i64) -> String {
    atoll_meta::time::age(jiff::SignedDuration::from_secs(seconds))
}

#[cfg(test)]
mod tests;
