//! Entries of `managedFields` on the wire.

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::fields::FieldSet;

/// How a manager came to own its fields.
#[derive(Copy, Clone, Debug, Eq, PartialEq, Ord, PartialOrd)]
pub(super) enum Operation {
    Apply,
    Update,
}

impl Operation {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// One manager's fields.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) manager: String,
    pub(super) operation: Operation,
    pub(super) api_version: String,
    pub(super) subresource: String,
    pub(super) time: Option<String>,
    pub(super) set: FieldSet,
    /// The wire form, while it still says the same.
    raw: Option<Value>,
}

/// What makes two entries the same: appliers keep their entry when they change the version.
#[derive(Debug, Eq, PartialEq, Ord, PartialOrd)]
pub(super) struct Identity<'e> {
    pub(super) manager: &'e str,
    pub(super) operation: Operation,
    pub(super) api_version: &'e str,
    pub(super) subresource: &'e str,
}

impl Identity<'_> {
    /// A fresh entry.
    pub(super) fn entry(&self, api_version: &str, set: FieldSet) -> Entry {
        Entry {
            manager: self.manager.to_owned(),
            operation: self.operation,
            api_version: api_version.to_owned(),
            subresource: self.subresource.to_owned(),
            time: None,
            set,
            raw: None,
        }
    }
}

impl Entry {
    pub(super) fn identity(&self) -> Identity<'_> {
        let api_version = if self.operation == Operation::Apply { "" } else { self.api_version.as_str() };
        Identity { manager: &self.manager, operation: self.operation, api_version, subresource: &self.subresource }
    }

    /// Replaces the fields.
    pub(super) fn change(&mut self, set: FieldSet) {
        self.set = set;
        self.raw = None;
    }

    /// Takes fields away.
    pub(super) fn take(&mut self, fields: &FieldSet) {
        if self.set.intersects(fields) {
            let set = std::mem::take(&mut self.set);
            self.change(set.difference(fields));
        }
    }

    /// Notes the time of a write; writes of a scale have none in the original.
    pub(super) fn touch(&mut self, now: &str) {
        self.time = (self.subresource != "scale").then(|| now.to_owned());
        self.raw = None;
    }

    /// Seconds since 1970; zero without a time.
    pub(super) fn seconds(&self) -> i64 {
        let time = self.time.as_deref().and_then(|time| time.parse::<Timestamp>().ok());
        time.map_or(0, Timestamp::as_second)
    }

    fn decode(raw: Value, at: usize) -> Result<Self, String> {
        let text = |name: &str| raw.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let operation = match raw.get("operation").and_then(Value::as_str) {
            Some("Apply") => Operation::Apply,
            Some("Update") => Operation::Update,
            _ => return Err("operation must be `Apply` or `Update`".into()),
        };
        let api_version = text("apiVersion");
        if api_version.is_empty() {
            return Err("apiVersion must not be empty".into());
        }
        match text("fieldsType").as_str() {
            "FieldsV1" => {}
            "" => return Err(format!("missing fieldsType in managed fields entry {at}")),
            other => return Err(format!("invalid fieldsType {other:?} in managed fields entry {at}")),
        }
        let set = raw.get("fieldsV1").map_or(Ok(FieldSet::new()), FieldSet::from_fields_v1)?;
        let time = raw.get("time").and_then(Value::as_str).map(str::to_owned);
        Ok(Self {
            manager: text("manager"),
            operation,
            api_version,
            subresource: text("subresource"),
            time,
            set,
            raw: Some(raw),
        })
    }

    fn encode(self) -> Value {
        if let Some(raw) = self.raw {
            return raw;
        }
        let mut out = Map::new();
        let mut put = |name: &str, value: Value| {
            out.insert(name.to_owned(), value);
        };
        put("apiVersion", self.api_version.into());
        put("fieldsType", "FieldsV1".into());
        put("fieldsV1", self.set.to_fields_v1());
        if !self.manager.is_empty() {
            put("manager", self.manager.into());
        }
        put("operation", self.operation.as_str().into());
        if !self.subresource.is_empty() {
            put("subresource", self.subresource.into());
        }
        if let Some(time) = self.time {
            put("time", time.into());
        }
        Value::Object(out)
    }
}

/// Reads the entries of an object; a later entry of the same identity wins.
pub(super) fn decode(list: Vec<Value>) -> Result<Vec<Entry>, String> {
    let mut entries: Vec<Entry> = Vec::with_capacity(list.len() + 1);
    for (at, raw) in list.into_iter().enumerate() {
        entries.push(Entry::decode(raw, at)?);
    }
    if entries.len() > 1 {
        // Stable, so of equal entries the last one comes last and is the one to keep.
        entries.sort_by(|left, right| left.identity().cmp(&right.identity()));
        entries.reverse();
        entries.dedup_by(|later, kept| later.identity() == kept.identity());
    }
    Ok(entries)
}

/// Writes entries in their fixed order; `None` if there are none.
pub(super) fn encode(mut entries: Vec<Entry>) -> Option<Value> {
    if entries.is_empty() {
        return None;
    }
    if entries.len() > 1 {
        entries.sort_by_cached_key(|entry| {
            (
                entry.operation,
                entry.seconds(),
                entry.manager.clone(),
                entry.api_version.clone(),
                entry.subresource.clone(),
            )
        });
    }
    Some(Value::Array(entries.into_iter().map(Entry::encode).collect()))
}

/// Whether a client asks for all ownership to be forgotten: an empty list, or one empty entry.
pub(super) fn is_reset(sent: &Value) -> bool {
    let blank = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        _ => false,
    };
    match sent.as_array().map(Vec::as_slice) {
        Some([]) => true,
        Some([one]) => one.as_object().is_some_and(|entry| entry.values().all(blank)),
        _ => false,
    }
}
