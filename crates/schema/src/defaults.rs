//! Defaulting: missing fields get the value their schema names.

use serde_json::Value;

use crate::Schema;

/// Removes nulls that are no values, then fills in defaults, also inside defaulted values.
///
/// A null where null is not allowed is replaced by the default when there is one, and
/// removed when there is none; in a list it stays for validation to refuse.
pub fn apply_defaults(value: &mut Value, schema: &Schema) {
    drop_nulls(value, schema);
    fill(value, schema);
}

fn of_field<'a>(schema: &'a Schema, name: &str) -> Option<&'a Schema> {
    schema.properties.get(name).or(schema.additional.as_deref())
}

fn drop_nulls(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(map) => map.retain(|key, child| {
            let Some(schema) = of_field(schema, key) else { return true };
            if child.is_null() && !schema.nullable && schema.default.is_none() {
                return false;
            }
            drop_nulls(child, schema);
            true
        }),
        Value::Array(items) => {
            if let Some(schema) = schema.items.as_deref() {
                items.iter_mut().for_each(|item| drop_nulls(item, schema));
            }
        }
        _ => {}
    }
}

fn fill(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(map) => {
            for (name, property) in &schema.properties {
                if let Some(default) = &property.default
                    && !map.contains_key(&**name)
                {
                    map.insert(name.to_string(), default.clone());
                }
            }
            for (key, child) in map.iter_mut() {
                if let Some(schema) = of_field(schema, key) {
                    replace_null(child, schema);
                    fill(child, schema);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.items.as_deref() {
                for item in items {
                    replace_null(item, schema);
                    fill(item, schema);
                }
            }
        }
        _ => {}
    }
}

fn replace_null(value: &mut Value, schema: &Schema) {
    if value.is_null()
        && !schema.nullable
        && let Some(default) = &schema.default
    {
        *value = default.clone();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn defaults_and_nulls_follow_the_table() {
        let schema = Schema::from_json(&json!({"type": "object", "properties": {
            "plain": {"type": "string", "default": "d"},
            "nullable": {"type": "string", "nullable": true, "default": "d"},
            "bare": {"type": "string"},
            "bareNullable": {"type": "string", "nullable": true},
            "nested": {"type": "object", "default": {}, "properties": {"x": {"type": "integer", "default": 5}}},
            "list": {"type": "array", "items": {"type": "string", "default": "i"}},
            "strict": {"type": "array", "items": {"type": "string"}},
            "objects": {"type": "array", "items": {"type": "object", "properties": {"x": {"default": 1}}}},
            "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"x": {"default": 1}}}}}}))
        .unwrap();
        let cases = [
            (json!({}), json!({"plain": "d", "nullable": "d", "nested": {"x": 5}})),
            (
                json!({"plain": null, "nullable": null, "bare": null, "bareNullable": null, "nested": null}),
                json!({"plain": "d", "nullable": null, "bareNullable": null, "nested": {"x": 5}}),
            ),
            (
                json!({"plain": "p", "nullable": "n", "nested": {"x": 1, "unknown": null}, "list": [null, "a"],
                       "strict": [null], "objects": [{}, {"x": 2}], "map": {"a": {}, "b": null}}),
                json!({"plain": "p", "nullable": "n", "nested": {"x": 1, "unknown": null}, "list": ["i", "a"],
                       "strict": [null], "objects": [{"x": 1}, {"x": 2}], "map": {"a": {"x": 1}}}),
            ),
        ];
        for (mut value, expected) in cases {
            apply_defaults(&mut value, &schema);
            assert_eq!(value, expected);
            let again = value.clone();
            apply_defaults(&mut value, &schema);
            assert_eq!(value, again);
        }
    }
}
