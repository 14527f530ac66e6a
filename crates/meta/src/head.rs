//! The part of an object that lists, watches and controllers look at all the time.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// A reference to the object that owns this one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Owner {
    /// `apiVersion` of the owner.
    pub api_version: Box<str>,
    /// Kind of the owner.
    pub kind: Box<str>,
    /// Name of the owner, in the same namespace or outside namespaces.
    pub name: Box<str>,
    /// Uid of the owner: names can be reused, uids cannot.
    pub uid: Box<str>,
    /// Whether the owner manages this object.
    pub controller: bool,
    /// Whether the owner must stay until this object is gone.
    pub blocks: bool,
}

/// Parsed metadata of an object.
#[derive(Clone, Debug, Default)]
pub struct Head {
    /// Object name.
    pub name: Box<str>,
    /// Namespace; empty for objects outside namespaces.
    pub namespace: Box<str>,
    /// Unique id, never reused.
    pub uid: Box<str>,
    /// Labels, sorted by key.
    pub labels: Box<[(Box<str>, Box<str>)]>,
    /// Owners.
    pub owners: Box<[Owner]>,
    /// Finalizers that must run before the object may go.
    pub finalizers: Box<[Box<str>]>,
    /// Generation of the desired state; 0 where a kind does not track it.
    pub generation: i64,
    /// Whether deletion was asked for.
    pub deleting: bool,
}

impl Head {
    /// Reads the head from a metadata map; what is malformed is left empty.
    pub fn of(meta: &Map<String, Value>) -> Self {
        let text = |key: &str| meta.get(key).and_then(Value::as_str).unwrap_or_default().into();
        Self {
            name: text("name"),
            namespace: text("namespace"),
            uid: text("uid"),
            labels: labels(meta.get("labels")),
            owners: meta
                .get("ownerReferences")
                .and_then(Value::as_array)
                .map(|refs| refs.iter().map(owner).collect())
                .unwrap_or_default(),
            finalizers: meta
                .get("finalizers")
                .and_then(Value::as_array)
                .map(|list| list.iter().filter_map(Value::as_str).map(Into::into).collect())
                .unwrap_or_default(),
            generation: meta.get("generation").and_then(Value::as_i64).unwrap_or_default(),
            deleting: meta.get("deletionTimestamp").is_some_and(|value| !value.is_null()),
        }
    }

    /// Reads the head from the parts of the metadata it needs.
    pub(crate) fn read(meta: &BTreeMap<&str, &RawValue>) -> Result<Self, serde_json::Error> {
        const NEEDED: [&str; 8] =
            ["name", "namespace", "uid", "labels", "ownerReferences", "finalizers", "generation", "deletionTimestamp"];
        let mut map = Map::new();
        for key in NEEDED {
            if let Some(value) = meta.get(key) {
                map.insert(key.to_owned(), serde_json::from_str(value.get())?);
            }
        }
        Ok(Self::of(&map))
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        let at = self.labels.binary_search_by(|(name, _)| name.as_ref().cmp(key)).ok()?;
        Some(&self.labels[at].1)
    }

    /// The owner that manages this object.
    pub fn controller(&self) -> Option<&Owner> {
        self.owners.iter().find(|owner| owner.controller)
    }
}

/// `Map` iterates in key order, so the result is sorted.
fn labels(value: Option<&Value>) -> Box<[(Box<str>, Box<str>)]> {
    let Some(map) = value.and_then(Value::as_object) else { return Box::default() };
    map.iter().filter_map(|(key, value)| Some((key.as_str().into(), value.as_str()?.into()))).collect()
}

fn owner(value: &Value) -> Owner {
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().into();
    let flag = |key: &str| value.get(key).and_then(Value::as_bool).unwrap_or_default();
    Owner {
        api_version: text("apiVersion"),
        kind: text("kind"),
        name: text("name"),
        uid: text("uid"),
        controller: flag("controller"),
        blocks: flag("blockOwnerDeletion"),
    }
}
