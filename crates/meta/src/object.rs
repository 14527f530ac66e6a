//! How an object travels: canonical bytes, shared, with a small parsed head.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::{Head, Revision};

/// Storage key of an object: `resource.group/namespace/name`, or
/// `resource.group/name` for objects outside namespaces.
#[derive(Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub struct Key(Arc<str>);

impl Key {
    /// The key of one object.
    pub fn new(group: &str, resource: &str, namespace: &str, name: &str) -> Self {
        let mut text = Self::prefix(group, resource, namespace);
        text.push_str(name);
        Self(text.into())
    }

    /// A key from its stored text.
    pub fn from_text(text: &str) -> Self {
        Self(text.into())
    }

    /// What all keys of a resource, or of one namespace of it, begin with.
    pub fn prefix(group: &str, resource: &str, namespace: &str) -> String {
        if namespace.is_empty() { format!("{resource}.{group}/") } else { format!("{resource}.{group}/{namespace}/") }
    }

    /// The `resource.group` part.
    pub fn resource(&self) -> &str {
        self.0.split('/').next().unwrap_or_default()
    }

    /// The whole text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::borrow::Borrow<str> for Key {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why bytes are not an object.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// Not JSON, or not of an object's shape.
    #[error("not an object: {0}")]
    Json(#[from] serde_json::Error),
    /// No `metadata` where an object must have one.
    #[error("object has no metadata")]
    NoMetadata,
}

/// An object as stored and served: canonical JSON without a resourceVersion, and its head.
///
/// Canonical means: `kind`, `apiVersion` and `metadata` first, all other keys sorted,
/// no white space. Equal objects therefore have equal bytes.
#[derive(Debug)]
pub struct Object {
    /// What lists and watches need without parsing the body.
    pub head: Head,
    /// Canonical JSON.
    pub body: Bytes,
    /// Offset of the `"metadata"` key; everything before is `{"kind":..,"apiVersion":..,`.
    meta_key: u32,
    /// Offset just behind the `{` of metadata, where the resourceVersion goes.
    meta_open: u32,
}

impl Object {
    /// Encodes a tree canonically; a resourceVersion inside is left out.
    pub fn encode(tree: &Value) -> Result<Self, ObjectError> {
        let map = tree.as_object().ok_or(ObjectError::NoMetadata)?;
        let meta = map.get("metadata").and_then(Value::as_object).ok_or(ObjectError::NoMetadata)?;
        let mut out = Vec::with_capacity(1024);
        out.extend_from_slice(b"{");
        for key in ["kind", "apiVersion"] {
            if let Some(value) = map.get(key) {
                out.extend_from_slice(format!("\"{key}\":").as_bytes());
                serde_json::to_writer(&mut out, value)?;
                out.push(b',');
            }
        }
        let meta_key = out.len();
        out.extend_from_slice(b"\"metadata\":{");
        let meta_open = out.len();
        write_entries(&mut out, meta, |key| key != "resourceVersion", true)?;
        out.push(b'}');
        write_entries(&mut out, map, |key| !matches!(key, "kind" | "apiVersion" | "metadata"), false)?;
        out.push(b'}');
        Ok(Self {
            head: Head::of(meta),
            // Objects live long: without this each would keep the unused capacity.
            body: out.into_boxed_slice().into(),
            meta_key: u32::try_from(meta_key).unwrap_or(u32::MAX),
            meta_open: u32::try_from(meta_open).unwrap_or(u32::MAX),
        })
    }

    /// Takes an object's JSON as another server sends it, without a tree of it all: what stands behind the metadata
    /// is taken over as it is, so the bytes are canonical only if they were before. Fields of the metadata named in
    /// `without` are left out; `kind` and `api_version` are for items of lists, which do not say them. Gives the
    /// resourceVersion, too.
    pub fn compose(
        text: &str,
        kind: &str,
        api_version: &str,
        without: &[&str],
    ) -> Result<(Self, Box<str>), ObjectError> {
        let parts: BTreeMap<&str, &RawValue> = serde_json::from_str(text)?;
        let meta = parts.get("metadata").ok_or(ObjectError::NoMetadata)?;
        let meta: BTreeMap<&str, &RawValue> = serde_json::from_str(meta.get())?;
        let mut out = Vec::with_capacity(text.len());
        out.push(b'{');
        for (key, usual) in [("kind", kind), ("apiVersion", api_version)] {
            out.extend_from_slice(format!("\"{key}\":").as_bytes());
            match parts.get(key) {
                Some(value) => out.extend_from_slice(value.get().as_bytes()),
                None => serde_json::to_writer(&mut out, usual)?,
            }
            out.push(b',');
        }
        let meta_key = out.len();
        out.extend_from_slice(b"\"metadata\":{");
        let meta_open = out.len();
        let kept = meta.iter().filter(|(key, _)| **key != "resourceVersion" && !without.contains(*key));
        write_raw(&mut out, kept, true)?;
        out.push(b'}');
        let rest = parts.iter().filter(|(key, _)| !matches!(**key, "kind" | "apiVersion" | "metadata"));
        write_raw(&mut out, rest, false)?;
        out.push(b'}');
        let revision = match meta.get("resourceVersion") {
            Some(value) => serde_json::from_str(value.get())?,
            None => Box::default(),
        };
        let object = Self {
            head: Head::read(&meta)?,
            body: out.into_boxed_slice().into(),
            meta_key: u32::try_from(meta_key).unwrap_or(u32::MAX),
            meta_open: u32::try_from(meta_open).unwrap_or(u32::MAX),
        };
        Ok((object, revision))
    }

    /// Takes bytes that [`Object::encode`] made earlier, for instance from disk.
    pub fn decode(body: Bytes) -> Result<Self, ObjectError> {
        const META: &[u8] = b"\"metadata\":{";
        let tree: Value = serde_json::from_slice(&body)?;
        let meta_key = body.windows(META.len()).position(|window| window == META);
        match meta_key {
            // Only canonical bytes can be spliced; anything else is encoded anew.
            Some(at) if Self::is_prefix_canonical(&body[..at]) => {
                let meta = tree.get("metadata").and_then(Value::as_object).ok_or(ObjectError::NoMetadata)?;
                if meta.contains_key("resourceVersion") {
                    return Self::encode(&tree);
                }
                let head = Head::of(meta);
                let meta_key = u32::try_from(at).unwrap_or(u32::MAX);
                let meta_open = meta_key + META.len() as u32;
                Ok(Self { head, body, meta_key, meta_open })
            }
            _ => Self::encode(&tree),
        }
    }

    fn is_prefix_canonical(prefix: &[u8]) -> bool {
        prefix == b"{" || prefix.starts_with(b"{\"kind\":") || prefix.starts_with(b"{\"apiVersion\":")
    }

    /// The parsed tree with its resourceVersion.
    pub fn tree(&self, revision: Revision) -> Value {
        let mut tree: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        // What is not stored yet has none.
        if revision.0 > 0 {
            tree["metadata"]["resourceVersion"] = revision.to_string().into();
        }
        tree
    }

    /// Appends the JSON with its resourceVersion.
    pub fn write(&self, revision: Revision, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.body[..self.meta_open as usize]);
        self.write_rest(revision, out);
    }

    /// Appends the JSON as an item of a typed list, which names its kind once for all items.
    pub fn write_untyped(&self, revision: Revision, out: &mut Vec<u8>) {
        out.push(b'{');
        out.extend_from_slice(&self.body[self.meta_key as usize..self.meta_open as usize]);
        self.write_rest(revision, out);
    }

    /// Appends the JSON behind a prefix such as `{"kind":"X","apiVersion":"g/v",`, which
    /// presents the object in another version of the same shape.
    pub fn write_as(&self, prefix: &str, revision: Revision, out: &mut Vec<u8>) {
        out.extend_from_slice(prefix.as_bytes());
        out.extend_from_slice(&self.body[self.meta_key as usize..self.meta_open as usize]);
        self.write_rest(revision, out);
    }

    fn write_rest(&self, revision: Revision, out: &mut Vec<u8>) {
        use std::io::Write as _;
        let rest = &self.body[self.meta_open as usize..];
        let comma = if rest.first() == Some(&b'}') { "" } else { "," };
        if revision.0 > 0 {
            // Writing to a vector cannot fail.
            let _ = write!(out, "\"resourceVersion\":\"{revision}\"{comma}");
        }
        out.extend_from_slice(rest);
    }
}

fn write_raw<'a>(
    out: &mut Vec<u8>,
    entries: impl Iterator<Item = (&'a &'a str, &'a &'a RawValue)>,
    mut first: bool,
) -> Result<(), serde_json::Error> {
    for (key, value) in entries {
        if !first {
            out.push(b',');
        }
        first = false;
        serde_json::to_writer(&mut *out, key)?;
        out.push(b':');
        out.extend_from_slice(value.get().as_bytes());
    }
    Ok(())
}

fn write_entries(
    out: &mut Vec<u8>,
    map: &Map<String, Value>,
    keep: impl Fn(&str) -> bool,
    mut first: bool,
) -> Result<(), serde_json::Error> {
    for (key, value) in map {
        if !keep(key) {
            continue;
        }
        if !first {
            out.push(b',');
        }
        first = false;
        serde_json::to_writer(&mut *out, key)?;
        out.push(b':');
        serde_json::to_writer(&mut *out, value)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sample() -> Value {
        json!({"data": {"a": "1"}, "apiVersion": "v1", "kind": "ConfigMap",
               "metadata": {"name": "x", "namespace": "d", "resourceVersion": "9", "labels": {"l": "v"}}})
    }

    #[test]
    fn bytes_are_canonical_and_free_of_the_revision() {
        let object = Object::encode(&sample()).unwrap();
        let text = std::str::from_utf8(&object.body).unwrap();
        assert_eq!(
            text,
            r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"labels":{"l":"v"},"name":"x","namespace":"d"},"data":{"a":"1"}}"#
        );
        let again = Object::decode(object.body.clone()).unwrap();
        assert_eq!(again.head.name, "x".into());
        assert_eq!((again.meta_key, again.meta_open), (object.meta_key, object.meta_open));
    }

    #[test]
    fn what_others_send_is_taken_over_without_what_nobody_reads() {
        let mut tree = sample();
        tree["metadata"]["managedFields"] = json!([{"manager": "m"}]);
        let (whole, revision) = Object::compose(&tree.to_string(), "", "", &[]).unwrap();
        assert_eq!((&whole.body, &*revision), (&Object::encode(&tree).unwrap().body, "9"));
        tree.as_object_mut().unwrap().retain(|key, _| key != "kind" && key != "apiVersion");
        let (item, _) = Object::compose(&tree.to_string(), "ConfigMap", "v1", &["managedFields"]).unwrap();
        let slim = Object::encode(&sample()).unwrap();
        assert_eq!(item.body, slim.body);
        assert_eq!(format!("{:?}", item.head), format!("{:?}", slim.head));
        assert_eq!((item.meta_key, item.meta_open), (slim.meta_key, slim.meta_open));
        for bad in ["[]", "{}", "{\"metadata\":[]}", "{"] {
            assert!(Object::compose(bad, "", "", &[]).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_revision_is_spliced_into_metadata() {
        let object = Object::encode(&sample()).unwrap();
        let mut out = Vec::new();
        object.write(Revision(42), &mut out);
        let tree: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(tree["metadata"]["resourceVersion"], "42");
        assert_eq!(tree, object.tree(Revision(42)));
        out.clear();
        object.write_untyped(Revision(7), &mut out);
        let tree: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(tree["metadata"]["resourceVersion"], "7");
        assert!(tree.get("kind").is_none());
    }

    #[test]
    fn keys_sort_by_namespace_then_name() {
        let key = Key::new("apps", "deployments", "default", "web");
        assert_eq!(key.as_str(), "deployments.apps/default/web");
        assert_eq!(key.resource(), "deployments.apps");
        assert_eq!(Key::new("", "nodes", "", "n").as_str(), "nodes./n");
    }
}
