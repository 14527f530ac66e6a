//! Writes whose answers are read only as far as most writers need them.

use atoll_meta::{Gvr, Status};
use bytes::Bytes;
use http::Method;
use serde::Deserialize;
use serde_json::Value;

use crate::cache::Item;
use crate::endpoint::{Endpoint, Patch, encode, no_json};

/// What a write left behind.
#[derive(Clone, Debug)]
pub struct Written {
    /// The name of the object.
    pub name: String,
    /// Its resourceVersion.
    pub revision: String,
    text: Bytes,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Answer {
    metadata: Meta,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Meta {
    name: String,
    resource_version: String,
}

impl Written {
    fn read(text: Bytes) -> Result<Self, Status> {
        let Answer { metadata } = serde_json::from_slice(&text).map_err(no_json)?;
        Ok(Self { name: metadata.name, revision: metadata.resource_version, text })
    }

    /// The object as informers keep it, without the record of who manages which field.
    pub fn item(&self) -> Option<Item> {
        Item::read(std::str::from_utf8(&self.text).ok()?, "", "", &["managedFields"])
    }
}

/// An endpoint for those who write and need next to nothing of the answer: no tree is made of it.
#[derive(Copy, Clone)]
pub struct Brief<'a>(&'a Endpoint);

impl Endpoint {
    /// For writes whose answers are not needed.
    pub fn brief(&self) -> Brief<'_> {
        Brief(self)
    }
}

impl Brief<'_> {
    /// Creates an object.
    pub async fn create(self, gvr: &Gvr, namespace: Option<&str>, object: &Value) -> Result<Written, Status> {
        let path = gvr.path(namespace, None);
        Written::read(self.0.send(Method::POST, &path, "application/json", encode(object)).await?)
    }

    /// Replaces an object; its resourceVersion, if set, is a precondition.
    pub async fn update(
        self,
        gvr: &Gvr,
        namespace: Option<&str>,
        name: &str,
        object: &Value,
    ) -> Result<Written, Status> {
        let path = gvr.path(namespace, Some(name));
        Written::read(self.0.send(Method::PUT, &path, "application/json", encode(object)).await?)
    }

    /// Deletes an object with these DeleteOptions; tells what it was, or what it is while it goes.
    pub async fn delete(
        self,
        gvr: &Gvr,
        namespace: Option<&str>,
        name: &str,
        options: &Value,
    ) -> Result<Written, Status> {
        let path = gvr.path(namespace, Some(name));
        Written::read(self.0.send(Method::DELETE, &path, "application/json", encode(options)).await?)
    }

    /// Patches an object (`sub` empty) or a subresource.
    pub async fn patch(
        self,
        gvr: &Gvr,
        namespace: Option<&str>,
        name: &str,
        sub: &str,
        language: Patch<'_>,
        patch: &Value,
    ) -> Result<Written, Status> {
        Written::read(self.0.send_patch(gvr, namespace, name, sub, language, patch).await?)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_answer_is_read_only_as_far_as_it_must_be_json() {
        let text = r#"{"kind":"A","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"7","managedFields":[{}]},"spec":{"b":[1]}}"#;
        let written = Written::read(Bytes::from_static(text.as_bytes())).unwrap();
        assert_eq!((written.name.as_str(), written.revision.as_str()), ("a", "7"));
        let item = written.item().unwrap();
        assert_eq!(
            item.tree(),
            serde_json::json!({"kind": "A", "apiVersion": "v1", "metadata": {"name": "a", "resourceVersion": "7"}, "spec": {"b": [1]}})
        );
        // Some answer a write with a Status, which has no name.
        assert_eq!(Written::read(Bytes::from_static(b"{\"kind\":\"Status\",\"metadata\":{}}")).unwrap().name, "");
        assert!(Written::read(Bytes::from_static(b"<html>")).is_err());
    }
}
