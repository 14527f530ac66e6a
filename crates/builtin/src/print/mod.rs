//! Tables as `kubectl get` shows them: columns and cells, kind by kind.

use serde_json::Value;

use crate::strategy::text;

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

pub(crate) const fn column(name: &'static str, ty: &'static str, description: &'static str) -> Column {
    Column { name, ty, format: "", description, priority: 0 }
}

pub(crate) const NAME: Column =
    Column { name: "Name", ty: "string", format: "name", description: "Name of the object, unique among its kind.", priority: 0 };

const FALLBACK: &[Column] = &[NAME, column("Created At", "date", "Time the object was created.")];

/// The columns of a kind.
pub fn columns(_group: &str, _kind: &str) -> &'static [Column] {
    FALLBACK
}

/// The cells of one object, one for each column.
pub fn cells(_group: &str, _kind: &str, object: &Value, _now_seconds: i64) -> Vec<Value> {
    vec![text(object, "metadata.name").into(), text(object, "metadata.creationTimestamp").into()]
}

/// A short duration for people: `45s`, `2m10s`, `5d3h`.
pub fn age(seconds: i64) -> String {
    atoll_meta::time::age(jiff::SignedDuration::from_secs(seconds))
}
