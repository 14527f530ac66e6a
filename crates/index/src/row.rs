//! An object on its way into the index.

use serde_json::Value;

use crate::{field, redact};

/// An object as the index keeps it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Namespace; empty outside namespaces.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Uid.
    pub uid: String,
    /// Its resourceVersion.
    pub revision: String,
    /// When it was made, in milliseconds since 1970.
    pub created: i64,
    /// Whether deletion was asked for.
    pub deleting: bool,
    /// Uids of its owners.
    pub owners: Vec<String>,
    /// What it is found by: labels as `l:key`, fields as `f:path`; sorted.
    pub terms: Vec<(String, String)>,
    /// The object without what must not be kept, as JSON.
    pub body: String,
}

impl Row {
    /// From an object as a server sends it; `None` when it has no name.
    pub fn of(mut tree: Value) -> Option<Self> {
        redact(&mut tree);
        let meta = tree.get("metadata")?;
        let text = |key: &str| meta.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let name = text("name");
        if name.is_empty() {
            return None;
        }
        let created = text("creationTimestamp").parse::<jiff::Timestamp>().map_or(0, jiff::Timestamp::as_millisecond);
        let owners = meta.get("ownerReferences").and_then(Value::as_array);
        let mut owners: Vec<String> =
            owners.into_iter().flatten().filter_map(|owner| owner["uid"].as_str().map(ToOwned::to_owned)).collect();
        owners.sort_unstable();
        owners.dedup();
        Some(Self {
            namespace: text("namespace"),
            uid: text("uid"),
            revision: text("resourceVersion"),
            created,
            deleting: meta.get("deletionTimestamp").is_some_and(|time| !time.is_null()),
            owners,
            terms: terms(&tree),
            body: tree.to_string(),
            name,
        })
    }

    /// The object.
    pub fn tree(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.terms.iter().find(|(term, _)| term.strip_prefix("l:") == Some(key)).map(|(_, value)| value.as_str())
    }
}

fn terms(tree: &Value) -> Vec<(String, String)> {
    let labels = tree["metadata"]["labels"].as_object();
    let labels =
        labels.into_iter().flatten().filter_map(|(key, value)| Some((format!("l:{key}"), value.as_str()?.to_owned())));
    let fields = field::indexed(tree).map(|(path, value)| (format!("f:{path}"), value));
    let mut all: Vec<(String, String)> = labels.chain(fields).collect();
    all.sort_unstable();
    all
}
