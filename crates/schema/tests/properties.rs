//! What must hold for any schema and any value.
#![allow(clippy::unwrap_used)]

use atoll_meta::FieldPath;
use atoll_schema::{
    Compiled, Schema, Typed, Types, apply_defaults, check_structural, drop_unknown, duplicate, prune, type_errors,
    unknown_fields, validate,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn name() -> impl Strategy<Value = String> {
    prop_oneof![Just("a"), Just("b"), Just("metadata"), Just("kind"), Just("x-y"), Just("in")].prop_map(str::to_owned)
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z0-9 .:/é-]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 48, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name(), inner, 0..4).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Schemas as people write them, most of them structural.
fn any_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string", "default": "d"})),
        Just(json!({"type": "string", "nullable": true, "maxLength": 3})),
        Just(json!({"type": "string", "format": "date-time"})),
        Just(json!({"type": "integer", "minimum": 0, "multipleOf": 2})),
        Just(json!({"type": "number", "maximum": 1.5, "default": 1})),
        Just(json!({"type": "boolean"})),
        Just(json!({"x-kubernetes-int-or-string": true})),
        Just(json!({"x-kubernetes-preserve-unknown-fields": true})),
        Just(json!({"type": "object", "additionalProperties": true})),
        Just(json!({"type": "string", "enum": ["a", "b"], "pattern": "^[a-z]+$"})),
        Just(
            json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true})
        ),
        Just(
            json!({"type": "string", "x-kubernetes-validations": [{"rule": "self.size() < 3 && self.matches('^.')"}]})
        ),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        let object = prop::collection::btree_map(name(), inner.clone(), 0..4);
        prop_oneof![
            (object, any::<bool>(), any::<bool>()).prop_map(|(properties, keep, default)| {
                let mut schema = json!({"type": "object", "properties": properties, "required": ["a"]});
                if keep {
                    schema["x-kubernetes-preserve-unknown-fields"] = true.into();
                }
                if default {
                    schema["default"] = json!({});
                }
                schema
            }),
            inner.clone().prop_map(|items| json!({"type": "array", "items": items, "x-kubernetes-list-type": "set"})),
            inner.clone().prop_map(|items| json!({"type": "array", "items": items, "maxItems": 2})),
            inner.clone().prop_map(|values| json!({"type": "object", "additionalProperties": values})),
            inner.prop_map(|one| json!({"type": "object", "anyOf": [one.clone()], "oneOf": [one.clone(), {"required": ["b"]}], "not": one})),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn pruning_twice_removes_nothing_more(schema in any_schema(), mut value in any_value(), root: bool) {
        let schema = Schema::from_json(&schema).unwrap();
        prune(&mut value, &schema, root);
        let once = value.clone();
        prop_assert!(prune(&mut value, &schema, root).is_empty());
        prop_assert_eq!(value, once);
    }

    #[test]
    fn defaulting_twice_changes_nothing_more(schema in any_schema(), mut value in any_value()) {
        let schema = Schema::from_json(&schema).unwrap();
        apply_defaults(&mut value, &schema);
        let once = value.clone();
        apply_defaults(&mut value, &schema);
        prop_assert_eq!(value, once);
    }

    #[test]
    fn schemas_survive_being_written(json in any_schema()) {
        let schema = Schema::from_json(&json).unwrap();
        prop_assert_eq!(Schema::from_json(&schema.to_json()).unwrap(), schema);
    }

    #[test]
    fn unchanged_objects_break_no_rule_of_type_and_limit(schema in any_schema(), value in any_value()) {
        let schema = Schema::from_json(&schema).unwrap();
        let path = FieldPath::root();
        let with_old = validate(&value, &schema, Some(&value), &path).len();
        prop_assert!(with_old <= validate(&value, &schema, None, &path).len());
    }

    #[test]
    fn nothing_panics(json in any_value(), value in any_value(), old in any_value()) {
        if let Ok(schema) = Schema::from_json(&json) {
            let _ = check_structural(&schema, &FieldPath::root());
            let _ = validate(&value, &schema, Some(&old), &FieldPath::root());
            let types = Types::default();
            let typed = Typed::new(&types, &schema);
            let _ = type_errors(&value, typed);
            prop_assert_eq!(unknown_fields(&value, typed), drop_unknown(&mut value.clone(), typed));
        }
        let _ = Compiled::new(&json);
    }

    #[test]
    fn compiled_schemas_take_any_object(schema in any_schema(), mut value in any_value(), old in any_value()) {
        let json = json!({"type": "object", "properties": {"a": schema}});
        if let Ok(compiled) = Compiled::new(&json) {
            compiled.prune(&mut value);
            compiled.default(&mut value);
            let _ = compiled.validate(&value, Some(&old));
            let _ = compiled.validate(&value, None);
        }
    }

    #[test]
    fn any_text_as_a_rule_is_compiled_or_refused(rule in "[a-z0-9 .()'\\[\\]{}<>=!&|?:,+*/-]{0,24}") {
        let json = json!({"type": "object", "properties": {"a": {"type": "string", "x-kubernetes-validations": [{"rule": rule}]}}});
        if let Ok(compiled) = Compiled::new(&json) {
            let _ = compiled.validate(&json!({"a": "x"}), None);
        }
    }

    #[test]
    fn strict_parsing_agrees_with_plain_parsing(value in any_value()) {
        let bytes = serde_json::to_vec(&value).unwrap();
        let (parsed, duplicates) = duplicate::parse_strict(&bytes).unwrap();
        prop_assert_eq!(parsed, serde_json::from_slice::<Value>(&bytes).unwrap());
        prop_assert!(duplicates.is_empty());
    }
}

#[test]
fn deep_schemas_and_values_are_bounded() {
    let mut schema = json!({"type": "string"});
    for _ in 0..300 {
        schema = json!({"type": "array", "items": schema});
    }
    assert!(Schema::from_json(&schema).is_err());
    let mut value = json!(1);
    for _ in 0..100 {
        value = json!({"a": [value]});
    }
    let free = Schema::from_json(&json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})).unwrap();
    assert!(prune(&mut value, &free, false).is_empty());
}
