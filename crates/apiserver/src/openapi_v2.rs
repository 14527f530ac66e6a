//! `/openapi/v2`: the older document, made from the newer ones for clients that still ask for it.

use std::collections::HashSet;
use std::sync::LazyLock;

use atoll_builtin::openapi::{document_at, document_paths};
use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::discovery::etag;
use crate::openapi_proto;

/// Paths and definitions of the built-in kinds, encoded once: the document is large.
struct Base {
    paths: Vec<u8>,
    definitions: Vec<u8>,
    /// The definitions in protobuf.
    schemas: Vec<u8>,
    names: HashSet<String>,
}

static BASE: LazyLock<Base> = LazyLock::new(|| {
    let mut paths = Map::new();
    let mut definitions = Map::new();
    for name in document_paths() {
        if let Some(bytes) = document_at(&name) {
            convert(&bytes, &mut paths, &mut definitions);
        }
    }
    let names = definitions.keys().cloned().collect();
    let schemas = openapi_proto::schemas(&definitions);
    Base { paths: entries(&paths), definitions: entries(&definitions), schemas, names }
});

/// A tag of the document that is cheaper than the document: it changes whenever the document does.
pub fn tag(custom: &[Bytes]) -> String {
    static BUILTIN: LazyLock<String> = LazyLock::new(|| etag(&[BASE.paths.as_slice(), &BASE.definitions].concat()));
    let mut parts = BUILTIN.as_bytes().to_vec();
    custom.iter().for_each(|bytes| parts.extend_from_slice(bytes));
    etag(&parts)
}

/// The document of an instance; `custom` are the v3 documents of its own kinds.
pub fn document(custom: &[Bytes]) -> Vec<u8> {
    let mut paths = Map::new();
    let mut definitions = Map::new();
    for bytes in custom {
        convert(bytes, &mut paths, &mut definitions);
    }
    // Documents repeat the types they use, and a name may stand only once.
    definitions.retain(|name, _| !BASE.names.contains(name));
    let mut out = Vec::with_capacity(BASE.paths.len() + BASE.definitions.len() + 4096);
    out.extend_from_slice(br#"{"swagger":"2.0","info":{"title":"Kubernetes","version":"unversioned"},"paths":{"#);
    join(&mut out, &BASE.paths, &entries(&paths));
    out.extend_from_slice(br#"},"definitions":{"#);
    join(&mut out, &BASE.definitions, &entries(&definitions));
    out.extend_from_slice(b"}}");
    out
}

/// The definitions of an instance in protobuf.
pub fn protobuf(custom: &[Bytes]) -> Vec<u8> {
    let mut definitions = Map::new();
    for bytes in custom {
        convert(bytes, &mut Map::new(), &mut definitions);
    }
    definitions.retain(|name, _| !BASE.names.contains(name));
    openapi_proto::document(&[&BASE.schemas, &openapi_proto::schemas(&definitions)])
}

fn join(out: &mut Vec<u8>, first: &[u8], second: &[u8]) {
    out.extend_from_slice(first);
    if !first.is_empty() && !second.is_empty() {
        out.push(b',');
    }
    out.extend_from_slice(second);
}

/// The members of a map without its braces.
fn entries(map: &Map<String, Value>) -> Vec<u8> {
    let bytes = serde_json::to_vec(map).unwrap_or_default();
    bytes.get(1..bytes.len().saturating_sub(1)).unwrap_or_default().to_vec()
}

fn convert(bytes: &[u8], paths: &mut Map<String, Value>, definitions: &mut Map<String, Value>) {
    let Ok(mut document) = serde_json::from_slice::<Value>(bytes) else { return };
    if let Value::Object(map) = document["components"]["schemas"].take() {
        for (name, mut schema) in map {
            // Names must be unique over all documents, and they are: they carry group and version.
            self::schema(&mut schema, true);
            definitions.entry(name).or_insert(schema);
        }
    }
    if let Value::Object(map) = document["paths"].take() {
        for (path, mut item) in map {
            self::item(&mut item);
            paths.entry(path).or_insert(item);
        }
    }
}

/// Rewrites a schema in place: references move, and what v2 cannot say is left out.
fn schema(schema: &mut Value, root: bool) {
    let Value::Object(map) = schema else { return };
    if let Some(Value::Array(all)) = map.get("allOf")
        && let [single] = all.as_slice()
        && let Some(target) = single.get("$ref").cloned()
    {
        map.insert("$ref".into(), target);
    }
    if let Some(Value::String(target)) = map.get_mut("$ref") {
        *target = target.replace("#/components/schemas/", "#/definitions/");
        let description = map.remove("description");
        map.retain(|key, _| key == "$ref");
        if let Some(description) = description {
            map.insert("description".into(), description);
        }
        return;
    }
    let nullable = map.get("nullable") == Some(&Value::Bool(true));
    for key in ["allOf", "anyOf", "oneOf", "not", "nullable", "default"] {
        map.remove(key);
    }
    let free = map.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true));
    if free && root {
        // An object that keeps everything is described as nothing more than an object.
        map.retain(|key, _| matches!(key.as_str(), "type" | "description" | "x-kubernetes-group-version-kind"));
    } else if free || nullable {
        // Old clients would refuse null, or fields that are kept, if a type stood here.
        for key in ["type", "properties", "items", "additionalProperties", "required"] {
            map.remove(key);
        }
    }
    if let Some(Value::Object(properties)) = map.get_mut("properties") {
        properties.values_mut().for_each(|child| self::schema(child, false));
    }
    for key in ["items", "additionalProperties"] {
        if let Some(child) = map.get_mut(key) {
            self::schema(child, false);
        }
    }
}

fn item(item: &mut Value) {
    let Value::Object(map) = item else { return };
    for (key, value) in map.iter_mut() {
        match key.as_str() {
            "parameters" => parameters(value),
            _ => operation(value),
        }
    }
}

fn parameters(list: &mut Value) {
    for parameter in list.as_array_mut().into_iter().flatten() {
        if let Some(schema) = parameter.as_object_mut().and_then(|map| map.remove("schema")) {
            parameter["type"] = schema["type"].clone();
        }
    }
}

fn operation(operation: &mut Value) {
    let Value::Object(map) = operation else { return };
    let mut list = map.remove("parameters").unwrap_or_else(|| json!([]));
    parameters(&mut list);
    if let Some(mut body) = map.remove("requestBody") {
        let content = body["content"].take();
        let consumes: Vec<&String> = content.as_object().into_iter().flat_map(Map::keys).collect();
        map.insert("consumes".into(), json!(consumes));
        let mut schema =
            content.as_object().and_then(|map| map.values().next()).map_or(json!({}), |media| media["schema"].clone());
        self::schema(&mut schema, false);
        if let Some(list) = list.as_array_mut() {
            list.push(json!({"in": "body", "name": "body", "required": true, "schema": schema}));
        }
    }
    map.insert("parameters".into(), list);
    for answer in map.get_mut("responses").and_then(Value::as_object_mut).into_iter().flat_map(|map| map.values_mut()) {
        let Some(content) = answer.as_object_mut().and_then(|map| map.remove("content")) else { continue };
        if let Some(media) = content.as_object().and_then(|map| map.values().next()) {
            let mut schema = media["schema"].clone();
            self::schema(&mut schema, false);
            answer["schema"] = schema;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_move_and_unsayable_things_go() {
        let mut value = json!({"type": "object", "properties": {
            "a": {"allOf": [{"$ref": "#/components/schemas/x.Y"}], "default": {}},
            "b": {"anyOf": [{"type": "string"}], "x-kubernetes-int-or-string": true},
        }});
        schema(&mut value, true);
        assert_eq!(
            value,
            json!({"type": "object", "properties": {
                "a": {"$ref": "#/definitions/x.Y"}, "b": {"x-kubernetes-int-or-string": true}}})
        );
    }
}
