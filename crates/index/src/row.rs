//! An object on its way into the index.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::field::{self, Parts};
use crate::redact::{may_change, redact};
use crate::sound::Sound;

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
        let owners = meta.get("ownerReferences").and_then(Value::as_array);
        let owners = owners.into_iter().flatten().filter_map(|owner| owner["uid"].as_str().map(ToOwned::to_owned));
        let labels = meta.get("labels").and_then(Value::as_object);
        let labels = labels.into_iter().flatten().filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)));
        Some(Self {
            namespace: text("namespace"),
            uid: text("uid"),
            revision: text("resourceVersion"),
            created: created(&text("creationTimestamp")),
            deleting: meta.get("deletionTimestamp").is_some_and(|time| !time.is_null()),
            owners: unique(owners.collect()),
            terms: terms(labels, field::indexed(&tree)),
            body: tree.to_string(),
            name,
        })
    }

    /// From the JSON of an object as a server sends it, of this kind if it does not say; `None` when it has no name.
    /// Most objects need no tree for that.
    pub fn read(text: &str, kind: &str, api_version: &str) -> Option<Self> {
        if !may_change(text, kind)
            && let Some(row) = Self::plain(text, kind, api_version)
        {
            return Some(row);
        }
        let mut tree: Value = serde_json::from_str(text).ok()?;
        let map = tree.as_object_mut()?;
        if !map.contains_key("kind") {
            // Items of built-in lists leave out what the list says once.
            map.insert("kind".into(), kind.into());
            map.insert("apiVersion".into(), api_version.into());
        }
        Self::of(tree)
    }

    /// From the JSON of an object that has nothing to hide; `None` when that takes a tree.
    fn plain(text: &str, kind: &str, api_version: &str) -> Option<Self> {
        // What no tree can be made of, such as numbers out of range, is no object; some of the rest needs one.
        serde_json::from_str::<Sound>(text).ok()?;
        let mut parts: Parts<'_> = serde_json::from_str(text).ok()?;
        let usual = [kind, api_version].map(serde_json::value::to_raw_value);
        if let [Ok(kind), Ok(api_version)] = &usual
            && !parts.contains_key("kind")
        {
            parts.insert("kind", kind);
            parts.insert("apiVersion", api_version);
        }
        let mut meta: Parts<'_> = serde_json::from_str(parts.get("metadata")?.get()).ok()?;
        meta.remove("managedFields");
        let text = |key: &str| -> String {
            meta.get(key).and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
        };
        let labels: BTreeMap<String, Value> = part(&meta, "labels")?;
        let labels = labels.iter().filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)));
        let owners: Vec<Owner> = part(&meta, "ownerReferences")?;
        let owners = owners.into_iter().filter_map(|owner| Some(owner.uid.as_str()?.to_owned()));
        let row = Self {
            name: text("name"),
            namespace: text("namespace"),
            uid: text("uid"),
            revision: text("resourceVersion"),
            created: created(&text("creationTimestamp")),
            deleting: meta.get("deletionTimestamp").is_some_and(|raw| raw.get() != "null"),
            owners: unique(owners.collect()),
            terms: terms(labels, field::indexed_parts(&parts)?.into_iter()),
            body: body(&parts, &meta),
        };
        (!row.name.is_empty()).then_some(row)
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

#[derive(Deserialize)]
struct Owner {
    #[serde(default)]
    uid: Value,
}

/// A part as a type; `None` when it is not like that.
fn part<T: Default + serde::de::DeserializeOwned>(parts: &Parts<'_>, key: &str) -> Option<T> {
    parts.get(key).map_or_else(|| Some(T::default()), |raw| serde_json::from_str(raw.get()).ok())
}

fn created(text: &str) -> i64 {
    text.parse::<jiff::Timestamp>().map_or(0, jiff::Timestamp::as_millisecond)
}

fn unique(mut list: Vec<String>) -> Vec<String> {
    list.sort_unstable();
    list.dedup();
    list
}

fn terms<'a>(
    labels: impl Iterator<Item = (&'a str, &'a str)>,
    fields: impl Iterator<Item = (&'static str, String)>,
) -> Vec<(String, String)> {
    let labels = labels.map(|(key, value)| (format!("l:{key}"), value.to_owned()));
    let mut all: Vec<(String, String)> =
        labels.chain(fields.map(|(path, value)| (format!("f:{path}"), value))).collect();
    all.sort_unstable();
    all
}

/// The JSON of an object from its parts and those of its metadata. Keys that are borrowed have nothing to escape.
fn body(parts: &Parts<'_>, meta: &Parts<'_>) -> String {
    let mut out = String::with_capacity(1024);
    let mut open = "{";
    for (key, value) in parts {
        out.extend([open, "\"", key, "\":"]);
        open = ",";
        if *key != "metadata" {
            out.push_str(value.get());
            continue;
        }
        out.push('{');
        for (at, (key, value)) in meta.iter().enumerate() {
            out.extend([if at > 0 { "," } else { "" }, "\"", key, "\":", value.get()]);
        }
        out.push('}');
    }
    out.push('}');
    // Rows wait to be written: without this each would keep the unused capacity.
    out.shrink_to_fit();
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// Words of all that redaction, labels, owners and indexed fields look at.
    fn word() -> impl Strategy<Value = String> {
        let words = [
            "kind",
            "Secret",
            "ConfigMap",
            "PediaCluster",
            "data",
            "stringData",
            "spec",
            "status",
            "metadata",
            "labels",
            "annotations",
            "atoll.io/sensitive",
            "true",
            "env",
            "name",
            "value",
            "DB_PASSWORD",
            "token",
            "kubeconfig",
            "nodeName",
            "phase",
            "type",
            "reason",
            "involvedObject",
            "uid",
            "ownerReferences",
            "managedFields",
            "deletionTimestamp",
            "creationTimestamp",
            "2024-01-01T00:00:00Z",
            "resourceVersion",
            "namespace",
            "apiVersion",
            "a\"b",
            "ä/ö",
            "\u{1}",
            "\u{0}name",
            "kubectl.kubernetes.io/last-applied-configuration",
            "{\"kind\":\"Secret\",\"data\":{\"a\":\"b\"}}",
            "",
        ];
        proptest::sample::select(words.to_vec()).prop_map(ToOwned::to_owned)
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            4 => word().prop_map(Value::from),
            1 => any::<i64>().prop_map(Value::from),
            1 => any::<bool>().prop_map(Value::from),
            1 => Just(Value::Null),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                3 => proptest::collection::btree_map(word(), inner.clone(), 0..6).prop_map(|map| json!(map)),
                1 => proptest::collection::vec(inner, 0..4).prop_map(Value::from),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_text_of_an_object_makes_the_row_of_its_tree(
            meta in proptest::collection::btree_map(word(), value(), 0..6),
            rest in proptest::collection::btree_map(word(), value(), 0..5),
            listed in proptest::sample::select(vec!["Pod", "Secret", "ConfigMap"]),
        ) {
            let mut tree = json!(rest);
            tree["metadata"] = json!(meta);
            tree["metadata"]["name"] = "x".into();
            let text = tree.to_string();
            if tree.get("kind").is_none() {
                tree["kind"] = listed.into();
                tree["apiVersion"] = "v1".into();
            }
            prop_assert_eq!(Row::read(&text, listed, "v1"), Row::of(tree));
        }
    }

    #[test]
    fn what_has_nothing_to_hide_is_read_without_a_tree() {
        let tree = json!({
            "kind": "Pod", "apiVersion": "v1",
            "metadata": {"name": "p", "namespace": "n", "uid": "u", "resourceVersion": "7", "labels": {"app": "web"},
                "creationTimestamp": "2024-01-01T00:00:00Z", "managedFields": [{"manager": "m"}],
                "annotations": {"note": "{\"a\":1}"}, "ownerReferences": [{"uid": "b"}, {"uid": "a"}, {"uid": "b"}]},
            "spec": {"nodeName": "node", "containers": [{"env": [{"name": "MODE", "value": "x"}]}]},
            "status": {"phase": "Running"},
        });
        let text = tree.to_string();
        assert!(!may_change(&text, ""));
        let row = Row::plain(&text, "", "").unwrap();
        assert_eq!((row.label("app"), row.owners.len(), row.terms.len(), row.created > 0), (Some("web"), 2, 3, true));
        assert!(!row.body.contains("managedFields"));
        assert_eq!(Some(row), Row::of(tree));
        for nameless in ["{}", "[]", "1", "{\"metadata\":{}}", "{\"metadata\":[]}", "{"] {
            assert_eq!(Row::read(nameless, "Pod", "v1"), None, "{nameless}");
        }
    }

    #[test]
    fn what_no_tree_can_be_made_of_makes_no_row() {
        let (deep, flat) =
            (format!("{}{}", "[".repeat(200), "]".repeat(200)), "[[1e300],-0.5,{\"a\":null}]".to_owned());
        for (value, sound) in [(&flat, true), (&"1e400".into(), false), (&deep, false)] {
            for text in [
                format!("{{\"metadata\":{{\"name\":\"x\"}},\"spec\":{{\"a\":{value}}}}}"),
                format!("{{\"metadata\":{{\"name\":\"x\",\"extra\":{value}}}}}"),
            ] {
                assert!(!may_change(&text, "Gear"), "{value}");
                let row = Row::read(&text, "Gear", "v1");
                assert_eq!(row.map(|row| row.tree().is_object()), sound.then_some(true), "{value}");
            }
        }
    }

    #[test]
    fn what_no_database_takes_is_not_in_a_row() {
        let text = r#"{"metadata":{"name":"x\u0000","labels":{"a\u0000pp":"w\u0000"},"ownerReferences":[{"uid":"u\u0000"}]},
            "type":"t\u0000","data":{"k\u0000":"v\u0000","spelled":"\\u0000","text":"{\"kind\":\"\\u0000\"}"}}"#;
        let row = Row::read(text, "Gear", "v1").unwrap();
        let terms = [("f:type", "t"), ("l:app", "w")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!((row.name.as_str(), &row.owners, &row.terms), ("x", &vec!["u".to_owned()], &terms.to_vec()));
        // What only looks like it stays.
        let data = json!({"k": "v", "spelled": "\\u0000", "text": "{\"kind\":\"\\u0000\"}"});
        assert_eq!(row.tree()["data"], data);
        let row = Row::read(r#"{"metadata":{"name":"x"},"spec":{"a":1e-20000,"b":0.5,"c":7}}"#, "Gear", "v1").unwrap();
        assert_eq!(row.tree()["spec"], json!({"a": 0.0, "b": 0.5, "c": 7}));
        assert!(!row.body.contains("20000"), "{}", row.body);
    }

    #[test]
    fn a_secret_of_a_list_is_one_without_saying_so() {
        let row = Row::read("{\"metadata\":{\"name\":\"s\"},\"data\":{\"a\":\"canary\"}}", "Secret", "v1").unwrap();
        assert!(!row.body.contains("canary"), "{}", row.body);
    }
}
