//! Pruning: fields a schema does not know are removed.

use serde_json::Value;

use crate::Schema;
use crate::objectmeta::{META_FIELDS, OBJECT_META};
use crate::trail::Trail;

/// Removes the fields `schema` does not know and returns their paths.
///
/// Everything below preserve-unknown nodes stays, except inside declared fields that do not
/// preserve themselves. `root` and embedded resources keep apiVersion, kind and metadata;
/// of metadata, only the fields every object has.
pub fn prune(value: &mut Value, schema: &Schema, root: bool) -> Vec<String> {
    let mut removed = Vec::new();
    let start = Trail::Start("");
    node(value, Some(schema), root || schema.embedded_resource, &start, &mut removed);
    removed
}

/// `schema` is `None` where values are allowed without description: scalars stay, fields go.
fn node(value: &mut Value, schema: Option<&Schema>, resource: bool, trail: &Trail<'_>, removed: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            map.retain(|key, child| {
                let trail = Trail::Field(trail, key);
                if resource && META_FIELDS.contains(&key.as_str()) {
                    if key == "metadata" {
                        node(child, Some(&OBJECT_META), false, &trail, removed);
                    }
                    return true;
                }
                if let Some(property) = schema.and_then(|schema| schema.properties.get(key.as_str())) {
                    node(child, Some(property), property.embedded_resource, &trail, removed);
                } else if let Some(values) = schema.and_then(|schema| schema.additional.as_deref()) {
                    node(child, Some(values), values.embedded_resource, &trail, removed);
                } else if schema.is_some_and(|schema| schema.free_form) {
                    node(child, None, false, &trail, removed);
                } else if !schema.is_some_and(|schema| schema.preserve_unknown) {
                    removed.push(trail.dotted());
                    return false;
                }
                true
            });
        }
        Value::Array(items) => {
            let preserve = schema.is_some_and(|schema| schema.preserve_unknown);
            let element = schema.and_then(|schema| schema.items.as_deref());
            if preserve && element.is_none() {
                return;
            }
            let resource = element.is_some_and(|element| element.embedded_resource);
            for (index, item) in items.iter_mut().enumerate() {
                node(item, element, resource, &Trail::Index(trail, index), removed);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn pruned(schema: Value, root: bool, mut value: Value) -> (Value, Vec<String>) {
        let removed = prune(&mut value, &Schema::from_json(&schema).unwrap(), root);
        (value, removed)
    }

    #[test]
    fn unknown_fields_go_and_are_named() {
        let schema = json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {
                "a": {"type": "string"},
                "list": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "integer"}}}},
                "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"x": {}}}}}}}});
        let (value, removed) = pruned(
            schema,
            true,
            json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "n", "bogus": 1, "labels": {"a": "b"}},
                   "extra": 1, "spec": {"a": "s", "b": {"c": 1}, "list": [{"x": 1, "y": 2}, 3],
                   "map": {"k": {"x": 1, "z": 2}}}}),
        );
        assert_eq!(
            value,
            json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "n", "labels": {"a": "b"}},
                   "spec": {"a": "s", "list": [{"x": 1}, 3], "map": {"k": {"x": 1}}}})
        );
        assert_eq!(removed, ["extra", "metadata.bogus", "spec.b", "spec.list[0].y", "spec.map.k.z"]);
    }

    #[test]
    fn preserving_nodes_keep_all_but_what_declared_children_do_not_know() {
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
            "strict": {"type": "object", "properties": {"a": {}}}}});
        let (value, removed) = pruned(schema, false, json!({"any": {"deep": [{"x": 1}]}, "strict": {"a": 1, "b": 2}}));
        assert_eq!(value, json!({"any": {"deep": [{"x": 1}]}, "strict": {"a": 1}}));
        assert_eq!(removed, ["strict.b"]);
    }

    #[test]
    fn embedded_resources_keep_their_identity() {
        let schema = json!({"type": "object", "properties": {
            "e": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}}},
            "plain": {"type": "object"}}});
        let object = json!({"apiVersion": "v1", "kind": "P", "metadata": {"name": "n"}, "spec": {"x": 1}});
        let (value, removed) = pruned(schema, false, json!({"e": object, "plain": {"kind": "x"}}));
        assert_eq!(
            value,
            json!({"e": {"apiVersion": "v1", "kind": "P", "metadata": {"name": "n"}, "spec": {}}, "plain": {}})
        );
        assert_eq!(removed, ["e.spec.x", "plain.kind"]);
    }

    #[test]
    fn free_values_keep_scalars_only() {
        let schema = json!({"type": "object", "additionalProperties": true});
        let (value, removed) = pruned(schema, false, json!({"a": 1, "b": {"c": 1}, "d": [1, {"e": 2}]}));
        assert_eq!(value, json!({"a": 1, "b": {}, "d": [1, {}]}));
        assert_eq!(removed, ["b.c", "d[1].e"]);
    }
}
