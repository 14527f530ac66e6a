//! Which schemas a CRD may have.
#![allow(clippy::unwrap_used)]

use atoll_meta::FieldPath;
use atoll_schema::{Schema, check_structural};
use serde_json::{Value, json};

fn faults(schema: &Value) -> Vec<String> {
    let schema = Schema::from_json(schema).unwrap();
    check_structural(&schema, &FieldPath::new("s")).iter().map(ToString::to_string).collect()
}

fn field(schema: Value) -> Value {
    json!({"type": "object", "properties": {"x": schema}})
}

#[test]
fn each_rule_of_structure_is_enforced() {
    let none: &[&str] = &[];
    let cases: Vec<(Value, &[&str])> = vec![
        (json!({"type": "object"}), none),
        (json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}), none),
        (json!({}), &["s.type: Required value: must not be empty at the root"]),
        (
            json!({"type": "array", "items": {"type": "string"}}),
            &["s.type: Invalid value: \"array\": must be object at the root"],
        ),
        (json!({"type": "object", "nullable": true}), &["s.nullable: Forbidden: nullable cannot be true at the root"]),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            &["s.additionalProperties: Forbidden: must not be used at the root"],
        ),
        (field(json!({})), &["s.properties[x].type: Required value: must not be empty for specified object fields"]),
        (
            field(json!({"type": "strange"})),
            &[
                "s.properties[x].type: Unsupported value: \"strange\": supported values: \"array\", \"boolean\", \"integer\", \"number\", \"object\", \"string\"",
            ],
        ),
        (field(json!({"type": "array"})), &["s.properties[x].items: Required value: must be specified"]),
        (
            field(json!({"type": "array", "items": {}})),
            &["s.properties[x].items.type: Required value: must not be empty for specified array items"],
        ),
        (
            field(json!({"type": "array", "items": [{"type": "string"}]})),
            &["s.properties[x].items: Forbidden: items must be a schema object and not an array"],
        ),
        (field(json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]})), none),
        (
            field(
                json!({"x-kubernetes-int-or-string": true, "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}]}),
            ),
            none,
        ),
        (
            field(json!({"type": "integer", "anyOf": [{"type": "integer"}]})),
            &["s.properties[x].anyOf[0].type: Forbidden: must be empty to be structural"],
        ),
        (field(json!({"type": "object", "allOf": [{"properties": {"a": {"minimum": 1}}}]})), none),
        (
            json!({"type": "object", "oneOf": [{"properties": {"a": {"minimum": 1}}}]}),
            &["s.properties[a]: Required value: because it is defined in s.oneOf[0].properties[a]"],
        ),
        (
            json!({"type": "object", "anyOf": [{"properties": {"metadata": {}}}], "properties": {"metadata": {"type": "object"}}}),
            &["s.anyOf[0].properties[metadata]: Forbidden: must not be specified in a nested context"],
        ),
        (
            json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"name": {"type": "string", "pattern": "^a"}}}}}),
            none,
        ),
        (
            json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}}),
            &[
                "s.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified",
            ],
        ),
        (
            json!({"type": "object", "properties": {"kind": {"type": "integer"}}}),
            &["s.properties[kind].type: Invalid value: \"integer\": must be string"],
        ),
        (field(json!({"type": "string", "pattern": "("})), &[]),
        (
            field(json!({"type": "object", "x-kubernetes-embedded-resource": true})),
            &[
                "s.properties[x].properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
            ],
        ),
        (
            field(json!({"type": "array", "uniqueItems": true, "items": {"type": "string"}})),
            &[
                "s.properties[x].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
            ],
        ),
        (
            field(
                json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}}),
            ),
            &[
                "s.properties[x].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
            ],
        ),
        (field(json!({"$ref": "#/x"})), &["s.properties[x].$ref: Forbidden: $ref is not supported"]),
        (
            field(json!({"type": "string", "x-kubernetes-preserve-unknown-fields": false})),
            &["s.properties[x].x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined"],
        ),
        (
            field(json!({"type": "string", "x-kubernetes-list-type": "set"})),
            &["s.properties[x].type: Invalid value: \"string\": must be array if x-kubernetes-list-type is specified"],
        ),
        (
            field(json!({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "set"})),
            &[
                "s.properties[x].items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set",
            ],
        ),
        (
            field(json!({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map"})),
            &[
                "s.properties[x].x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map",
            ],
        ),
        (
            field(
                json!({"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}}}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}),
            ),
            &[
                "s.properties[x].items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
            ],
        ),
        (
            field(json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "bag"})),
            &[
                "s.properties[x].x-kubernetes-list-type: Unsupported value: \"bag\": supported values: \"atomic\", \"set\", \"map\"",
            ],
        ),
        (
            field(json!({"type": "string", "default": 1})),
            &["s.properties[x].default: Invalid value: \"integer\":  in body must be of type string: \"integer\""],
        ),
        (
            field(json!({"type": "object", "default": {"a": 1}})),
            &["s.properties[x].default: Invalid value: {\"a\":1}: must not have unknown fields"],
        ),
        (
            json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"name": {"type": "string", "default": "n"}}}}}),
            &["s.properties[metadata].properties[name].default: Forbidden: must not be set in top-level metadata"],
        ),
        (
            field(json!({"type": "string", "x-kubernetes-validations": [{"rule": " "}]})),
            &["s.properties[x].x-kubernetes-validations[0].rule: Required value: rule is not specified"],
        ),
        (
            field(
                json!({"type": "string", "x-kubernetes-validations": [{"rule": "true", "reason": "Odd", "fieldPath": ".y"}]}),
            ),
            &[
                "s.properties[x].x-kubernetes-validations[0].reason: Unsupported value: \"Odd\": supported values: \"FieldValueDuplicate\", \"FieldValueForbidden\", \"FieldValueInvalid\", \"FieldValueRequired\"",
                "s.properties[x].x-kubernetes-validations[0].fieldPath: Invalid value: \".y\": must be a valid path",
            ],
        ),
    ];
    for (schema, expected) in cases {
        let found = faults(&schema);
        if schema.pointer("/properties/x/pattern").is_some() {
            assert!(found[0].starts_with(
                "s.properties[x].pattern: Invalid value: \"(\": must be a valid regular expression, but isn't: "
            ));
            continue;
        }
        assert_eq!(found, expected, "{schema}");
    }
}
