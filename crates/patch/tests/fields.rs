//! Sets of fields and their wire form.
#![allow(clippy::unwrap_used)]

mod kinds;

use atoll_patch::fields::FieldSet;
use serde_json::{Value, json};

fn set(value: Value) -> FieldSet {
    FieldSet::from_fields_v1(&value).unwrap()
}

fn shown(set: &FieldSet) -> Vec<String> {
    set.paths().iter().map(ToString::to_string).collect()
}

#[test]
fn paths_read_as_in_conflict_messages() {
    let set = set(json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {
        "k:{\"name\":\"a\"}": {".": {}, "f:image": {}, "f:args": {"i:0": {}}, "f:ports": {"k:{\"protocol\":\"TCP\",\"containerPort\":80}": {}}}}}}},
        "f:set": {"v:1": {}, "v:\"x\"": {}, "v:true": {}}}));
    let expected = [
        ".set[=1]",
        ".set[=\"x\"]",
        ".set[=true]",
        ".spec.template.spec.containers[name=\"a\"]",
        ".spec.template.spec.containers[name=\"a\"].image",
        ".spec.template.spec.containers[name=\"a\"].args[0]",
        ".spec.template.spec.containers[name=\"a\"].ports[containerPort=80,protocol=\"TCP\"]",
    ];
    assert_eq!(shown(&set), expected);
}

#[test]
fn the_wire_form_comes_back_as_it_was() {
    let table = [
        json!({}),
        json!({"f:a": {}, "f:b": {".": {}, "f:c": {}}}),
        json!({"f:l": {"k:{\"a\":1,\"b\":\"x\"}": {".": {}, "f:v": {}}, "i:3": {}, "v:\"\\u003c\"": {}, "v:1.5": {}, "v:false": {}}}),
    ];
    for value in table {
        assert_eq!(set(value.clone()).to_fields_v1(), value);
    }
}

#[test]
fn other_spellings_mean_the_same() {
    assert_eq!(set(json!({"f:a": {".": {}}})), set(json!({"f:a": {}})));
    assert_eq!(set(json!({"f:a": null})), set(json!({"f:a": {}})));
    assert_eq!(set(json!({"k:{\"b\":1,\"a\":2}": {}})), set(json!({"k:{\"a\":2, \"b\":1.0}": {}})));
    // Sorts of keys that a later version may know.
    assert_eq!(set(json!({"z:new": {}, "f:a": {}})), set(json!({"f:a": {}})));
}

#[test]
fn what_is_no_field_set_is_refused() {
    for value in [
        json!([]),
        json!(1),
        json!({"odd": {}}),
        json!({"v:{": {}}),
        json!({"k:1": {}}),
        json!({"i:x": {}}),
        json!({"f:a": 1}),
        json!({"": {}}),
    ] {
        assert!(FieldSet::from_fields_v1(&value).is_err(), "{value}");
    }
}

#[test]
fn sets_combine() {
    let left = || set(json!({"f:a": {".": {}, "f:b": {}, "f:c": {}}, "f:d": {}}));
    let right = || set(json!({"f:a": {"f:b": {}, "f:e": {}}, "f:d": {"f:x": {}}}));
    assert_eq!(shown(&left().union(right())), [".a", ".d", ".a.b", ".a.c", ".a.e", ".d.x"]);
    assert_eq!(shown(&left().intersection(&right())), [".a.b"]);
    assert_eq!(shown(&left().difference(&right())), [".a", ".d", ".a.c"]);
    assert_eq!(shown(&right().difference(&left())), [".a.e", ".d.x"]);
    assert_eq!(shown(&right().recursive_difference(&set(json!({"f:a": {}})))), [".d.x"]);
    assert_eq!(shown(&left().leaves()), [".d", ".a.b", ".a.c"]);
    assert!(left().difference(&left()).is_empty());
    let path = &left().paths()[2].0;
    assert!(left().contains(path) && !set(json!({})).contains(path) && !left().contains(&[]));
}

#[test]
fn an_object_has_the_fields_its_types_say() {
    let object = kinds::object(json!({
        "a": 1, "set": ["x"], "atom": {"x": "1"}, "map": {"k": "v"}, "array": [1, 2], "free": {"u": {"v": [1]}, "w": {}},
        "list": [{"id": "k", "inner": [{"id": "1"}]}], "structs": {"s": {"v": 1}}}));
    let expected = json!({
        "f:apiVersion": {}, "f:kind": {}, "f:metadata": {"f:name": {}, "f:namespace": {}},
        "f:spec": {
            "f:a": {}, "f:set": {"v:\"x\"": {}}, "f:atom": {}, "f:map": {"f:k": {}}, "f:array": {},
            "f:free": {"f:u": {".": {}, "f:v": {}}, "f:w": {}},
            "f:list": {"k:{\"id\":\"k\",\"zone\":\"z\"}": {".": {}, "f:id": {}, "f:inner": {"k:{\"id\":\"1\"}": {".": {}, "f:id": {}}}}},
            "f:structs": {"f:s": {".": {}, "f:v": {}}}}});
    assert_eq!(FieldSet::of(&object, Some(kinds::custom())).to_fields_v1(), expected);
}
