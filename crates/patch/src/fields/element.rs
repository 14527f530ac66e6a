//! Steps of a field path and their order.

use std::cmp::Ordering;
use std::fmt;

use serde_json::Value;

use crate::show;

/// One step from a value to a part of it.
#[derive(Clone, Debug)]
pub enum PathElement {
    /// A field of a map or struct.
    Field(Box<str>),
    /// An element of a list, by the values of its key fields (sorted by name).
    Key(Box<[(Box<str>, Value)]>),
    /// An element of a set, by its value.
    Value(Value),
    /// An element of a list, by its index.
    Index(i64),
}

impl PathElement {
    /// A field by name.
    pub fn field(name: &str) -> Self {
        Self::Field(name.into())
    }

    /// A list element by its keys, in any order.
    pub fn key(fields: impl IntoIterator<Item = (Box<str>, Value)>) -> Self {
        let mut fields: Vec<(Box<str>, Value)> = fields.into_iter().collect();
        fields.sort_by(|left, right| left.0.cmp(&right.0));
        Self::Key(fields.into())
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(left), Self::Field(right)) => left.cmp(right),
            (Self::Key(left), Self::Key(right)) => {
                let pairs = left
                    .iter()
                    .zip(right)
                    .map(|(left, right)| left.0.cmp(&right.0).then_with(|| compare(&left.1, &right.1)));
                pairs.fold(Ordering::Equal, Ordering::then).then(left.len().cmp(&right.len()))
            }
            (Self::Value(left), Self::Value(right)) => compare(left, right),
            (Self::Index(left), Self::Index(right)) => left.cmp(right),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for PathElement {}

impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                let parts: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={}", text(value))).collect();
                write!(f, "[{}]", parts.join(","))
            }
            Self::Value(value) => write!(f, "[={}]", text(value)),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text:?}"),
        Value::Number(number) => show::go_number(number),
        Value::Array(items) => format!("[{}]", items.iter().map(text).collect::<Vec<String>>().join(",")),
        Value::Object(map) => map.iter().map(|(name, value)| format!("{name}={}", text(value))).collect(),
        other => other.to_string(),
    }
}

/// A total order over values; whole and broken numbers compare by size.
fn compare(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => a.as_f64().unwrap_or_default().total_cmp(&b.as_f64().unwrap_or_default()),
        },
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            let pairs = a.iter().zip(b).map(|(a, b)| compare(a, b));
            pairs.fold(Ordering::Equal, Ordering::then).then(a.len().cmp(&b.len()))
        }
        // Only reachable through hand-written managedFields; any fixed order will do.
        (Value::Object(_), Value::Object(_)) => left.to_string().cmp(&right.to_string()),
        _ => rank(left).cmp(&rank(right)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

/// Whether two values mean the same; 1 and 1.0 do.
pub(crate) fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => a == b || (a.is_f64() != b.is_f64() && a.as_f64() == b.as_f64()),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| same(a, b)))
        }
        _ => left == right,
    }
}

/// A way from the root of an object to one field.
#[derive(Clone, Debug, Default, Eq, PartialEq, Ord, PartialOrd)]
pub struct Path(pub Vec<PathElement>);

impl Path {
    /// A path of field names: `metadata.labels`.
    pub fn of_fields(dotted: &str) -> Self {
        Self(dotted.split('.').map(PathElement::field).collect())
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|element| element.fmt(f))
    }
}
