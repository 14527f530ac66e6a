//! Schema features against values, with the exact words of the original.
#![allow(clippy::unwrap_used)]

use atoll_meta::FieldPath;
use atoll_schema::{Schema, validate};
use serde_json::{Value, json};

fn texts(schema: &Value, value: &Value, old: Option<&Value>) -> Vec<String> {
    let schema = Schema::from_json(schema).unwrap();
    validate(value, &schema, old, &FieldPath::root()).iter().map(ToString::to_string).collect()
}

/// Schema of one field `x` below `spec`.
fn field(schema: Value) -> Value {
    json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"x": schema}}}})
}

#[test]
fn each_feature_accepts_and_rejects_with_the_words_of_the_original() {
    let none: &[&str] = &[];
    let cases: Vec<(Value, Value, &[&str])> = vec![
        (json!({"type": "integer"}), json!(1), none),
        (json!({"type": "integer"}), json!(1.0), none),
        (json!({"type": "integer", "format": "int32"}), json!(3_000_000_000i64), none),
        (
            json!({"type": "integer"}),
            json!("1"),
            &["spec.x: Invalid value: \"string\": spec.x in body must be of type integer: \"string\""],
        ),
        (
            json!({"type": "integer"}),
            json!(1.5),
            &["spec.x: Invalid value: \"number\": spec.x in body must be of type integer: \"number\""],
        ),
        (
            json!({"type": "integer", "format": "int32"}),
            json!(true),
            &["spec.x: Invalid value: \"boolean\": spec.x in body must be of type integer: \"boolean\""],
        ),
        (json!({"type": "number"}), json!(1), none),
        (
            json!({"type": "string"}),
            json!(1),
            &["spec.x: Invalid value: \"integer\": spec.x in body must be of type string: \"integer\""],
        ),
        (
            json!({"type": "string"}),
            json!(null),
            &["spec.x: Invalid value: \"null\": spec.x in body must be of type string: \"null\""],
        ),
        (json!({"type": "string", "nullable": true}), json!(null), none),
        (
            json!({"type": "object"}),
            json!([]),
            &["spec.x: Invalid value: \"array\": spec.x in body must be of type object: \"array\""],
        ),
        (
            json!({"type": "array", "items": {"type": "string"}}),
            json!(["a", 1]),
            &["spec.x[1]: Invalid value: \"integer\": spec.x[1] in body must be of type string: \"integer\""],
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"k": 1}),
            &["spec.x.k: Invalid value: \"integer\": spec.x.k in body must be of type string: \"integer\""],
        ),
        (json!({"x-kubernetes-int-or-string": true}), json!("a"), none),
        (
            json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
            json!(3),
            none,
        ),
        (
            json!({"x-kubernetes-int-or-string": true}),
            json!(true),
            &["spec.x: Invalid value: \"boolean\": spec.x in body must be of type integer,string: \"boolean\""],
        ),
        (json!({"x-kubernetes-preserve-unknown-fields": true}), json!([1, {"a": null}]), none),
        (json!({"type": "string", "maxLength": 2}), json!("äöü"), &["spec.x: Too long: may not be more than 2 bytes"]),
        (json!({"type": "string", "maxLength": 1}), json!("ab"), &["spec.x: Too long: may not be more than 1 byte"]),
        (
            json!({"type": "string", "minLength": 2}),
            json!("a"),
            &["spec.x: Invalid value: \"a\": spec.x in body should be at least 2 chars long"],
        ),
        (
            json!({"type": "string", "pattern": "^a+$"}),
            json!("b"),
            &["spec.x: Invalid value: \"b\": spec.x in body should match '^a+$'"],
        ),
        (
            json!({"type": "string", "enum": ["b", "a"]}),
            json!("c"),
            &["spec.x: Unsupported value: \"c\": supported values: \"b\", \"a\""],
        ),
        (
            json!({"type": "integer", "enum": [1, 2]}),
            json!(3),
            &["spec.x: Unsupported value: 3: supported values: \"1\", \"2\""],
        ),
        (
            json!({"type": "string", "format": "date-time"}),
            json!("now"),
            &["spec.x: Invalid value: \"now\": spec.x in body must be of type date-time: \"now\""],
        ),
        (
            json!({"type": "string", "format": "date-time"}),
            json!(5),
            &["spec.x: Invalid value: \"int64\": spec.x in body must be of type date-time: \"int64\""],
        ),
        (json!({"type": "string", "format": "never-heard-of"}), json!("x"), none),
        (
            json!({"type": "integer", "minimum": 1}),
            json!(0),
            &["spec.x: Invalid value: 0: spec.x in body should be greater than or equal to 1"],
        ),
        (
            json!({"type": "integer", "minimum": 1, "exclusiveMinimum": true}),
            json!(1),
            &["spec.x: Invalid value: 1: spec.x in body should be greater than 1"],
        ),
        (
            json!({"type": "integer", "maximum": 5}),
            json!(6),
            &["spec.x: Invalid value: 6: spec.x in body should be less than or equal to 5"],
        ),
        (
            json!({"type": "number", "maximum": 2.5, "exclusiveMaximum": true}),
            json!(2.5),
            &["spec.x: Invalid value: 2.5: spec.x in body should be less than 2.5"],
        ),
        (
            json!({"type": "number", "maximum": 1_000_000}),
            json!(1_000_000.5),
            &["spec.x: Invalid value: 1000000.5: spec.x in body should be less than or equal to 1e+06"],
        ),
        (
            json!({"type": "integer", "multipleOf": 3}),
            json!(4),
            &["spec.x: Invalid value: 4: spec.x in body should be a multiple of 3"],
        ),
        (json!({"type": "number", "multipleOf": 0.5}), json!(1.5), none),
        (
            json!({"type": "array", "items": {}, "minItems": 1}),
            json!([]),
            &["spec.x: Invalid value: 0: spec.x in body should have at least 1 items"],
        ),
        (
            json!({"type": "array", "items": {}, "maxItems": 1}),
            json!([1, 2]),
            &["spec.x: Too many: 2: must have at most 1 item"],
        ),
        (
            json!({"type": "object", "minProperties": 1}),
            json!({}),
            &["spec.x: Invalid value: 0: spec.x in body should have at least 1 properties"],
        ),
        (
            json!({"type": "object", "maxProperties": 2}),
            json!({"a": 1, "b": 2, "c": 3}),
            &["spec.x: Too many: 3: must have at most 2 items"],
        ),
        (json!({"type": "object", "required": ["a", "b"]}), json!({"b": 1}), &["spec.x.a: Required value"]),
        (
            json!({"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}], "properties": {"a": {}, "b": {}}}),
            json!({}),
            &[
                "<nil>: Invalid value: \"\": \"spec.x\" must validate at least one schema (anyOf)",
                "spec.x.a: Required value",
            ],
        ),
        (
            json!({"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}], "properties": {"a": {}, "b": {}}}),
            json!({"a": 1, "b": 1}),
            &[
                "<nil>: Invalid value: \"\": \"spec.x\" must validate one and only one schema (oneOf). Found 2 valid alternatives",
            ],
        ),
        (
            json!({"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
            json!({}),
            &[
                "<nil>: Invalid value: \"\": \"spec.x\" must validate one and only one schema (oneOf). Found none valid",
                "spec.x.a: Required value",
            ],
        ),
        (
            json!({"type": "integer", "allOf": [{"minimum": 2}, {"maximum": 5}]}),
            json!(1),
            &[
                "spec.x: Invalid value: 1: spec.x in body should be greater than or equal to 2",
                "<nil>: Invalid value: \"\": \"spec.x\" must validate all the schemas (allOf)",
            ],
        ),
        (
            json!({"type": "integer", "not": {"enum": [1]}}),
            json!(1),
            &["<nil>: Invalid value: \"\": \"spec.x\" must not validate the schema (not)"],
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
            json!(["a", "b", "a", "a"]),
            &["spec.x[2]: Duplicate value: \"a\""],
        ),
        (
            json!({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}),
            json!([{"k": 1}, {"k": 2}, {"k": 1}]),
            &["spec.x[2]: Duplicate value: {\"k\":1}"],
        ),
        (
            json!({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "l"]}),
            json!([{"k": 1, "l": 1}, {"k": 1}, {"k": 1}]),
            &["spec.x[2]: Duplicate value: {\"k\":1}"],
        ),
    ];
    for (schema, value, expected) in cases {
        let errors = texts(&field(schema.clone()), &json!({"spec": {"x": value}}), None);
        assert_eq!(errors, expected, "{schema} on {value}");
    }
}

#[test]
fn embedded_objects_must_say_what_they_are() {
    let schema = field(
        json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}),
    );
    let cases: Vec<(Value, &[&str])> = vec![
        (json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": {"a": "b"}}}), &[]),
        (json!({}), &["spec.x.apiVersion: Required value", "spec.x.kind: Required value"]),
        (
            json!({"apiVersion": "a/b/c", "kind": "", "metadata": {"name": 1}}),
            &[
                "spec.x.apiVersion: Invalid value: \"a/b/c\": unexpected GroupVersion string: a/b/c",
                "spec.x.kind: Invalid value: \"\": must not be empty",
                "spec.x.metadata: Invalid value: {\"name\":1}: json: cannot unmarshal number into Go struct field ObjectMeta.name of type string",
            ],
        ),
    ];
    for (value, expected) in cases {
        assert_eq!(texts(&schema, &json!({"spec": {"x": value}}), None), expected);
    }
}

#[test]
fn faults_that_did_not_change_are_forgiven() {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "a": {"type": "string", "maxLength": 1},
        "b": {"type": "string"},
        "plain": {"type": "array", "items": {"type": "string", "maxLength": 1}},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string", "maxLength": 1}},
        "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": {
            "type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "string", "maxLength": 1}, "w": {"type": "string"}}}},
        "free": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 1}}}}}});
    let cases: Vec<(&str, Value, Value, &[&str])> = vec![
        ("an unchanged field", json!({"a": "long"}), json!({"a": "long", "b": "new"}), &[]),
        (
            "a changed field",
            json!({"a": "long"}),
            json!({"a": "longer"}),
            &["spec.a: Too long: may not be more than 1 byte"],
        ),
        ("a new field", json!({}), json!({"a": "long"}), &["spec.a: Too long: may not be more than 1 byte"]),
        ("an unchanged list", json!({"plain": ["long"]}), json!({"plain": ["long"], "b": "x"}), &[]),
        (
            "a longer list",
            json!({"plain": ["long"]}),
            json!({"plain": ["long", "x"]}),
            &["spec.plain[0]: Too long: may not be more than 1 byte"],
        ),
        (
            "a longer set",
            json!({"set": ["long"]}),
            json!({"set": ["long", "x"]}),
            &["spec.set[0]: Too long: may not be more than 1 byte"],
        ),
        (
            "a moved element",
            json!({"map": [{"k": "1", "v": "long"}]}),
            json!({"map": [{"k": "0", "v": "x"}, {"k": "1", "v": "long", "w": "n"}]}),
            &[],
        ),
        (
            "a changed element",
            json!({"map": [{"k": "1", "v": "long"}]}),
            json!({"map": [{"k": "1", "v": "other"}]}),
            &["spec.map[0].v: Too long: may not be more than 1 byte"],
        ),
        ("a map entry", json!({"free": {"k": "long"}}), json!({"free": {"k": "long", "l": "x"}}), &[]),
        ("old duplicates", json!({"set": ["a", "a"]}), json!({"set": ["b", "b"]}), &[]),
        ("new duplicates", json!({"set": ["a"]}), json!({"set": ["b", "b"]}), &["spec.set[1]: Duplicate value: \"b\""]),
    ];
    for (what, old, new, expected) in cases {
        assert_eq!(texts(&schema, &json!({"spec": new}), Some(&json!({"spec": old}))), expected, "{what}");
    }
}

#[test]
fn complaints_are_bounded() {
    let schema = field(json!({"type": "array", "items": {"type": "string"}}));
    let many: Vec<i32> = (0..5000).collect();
    assert_eq!(texts(&schema, &json!({"spec": {"x": many}}), None).len(), 1000);
}
