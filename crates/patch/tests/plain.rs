//! JSON patch and merge patch.
#![allow(clippy::unwrap_used)]

use atoll_meta::Status;
use atoll_patch::{MAX_OPERATIONS, PatchError, json_patch, merge_patch};
use serde_json::{Value, json};

#[test]
fn operations_apply_in_order() {
    let doc = json!({"a": {"b": [1, 2, 3]}, "x~y/z": 1, "n": null});
    let table = [
        (
            json!([{"op": "add", "path": "/c", "value": 1}, {"op": "remove", "path": "/a"}]),
            json!({"c": 1, "x~y/z": 1, "n": null}),
        ),
        (
            json!([{"op": "add", "path": "/a/b/1", "value": 9}]),
            json!({"a": {"b": [1, 9, 2, 3]}, "x~y/z": 1, "n": null}),
        ),
        (
            json!([{"op": "add", "path": "/a/b/-", "value": 9}]),
            json!({"a": {"b": [1, 2, 3, 9]}, "x~y/z": 1, "n": null}),
        ),
        (
            json!([{"op": "add", "path": "/a/b/-1", "value": 9}]),
            json!({"a": {"b": [1, 2, 3, 9]}, "x~y/z": 1, "n": null}),
        ),
        (
            json!([{"op": "replace", "path": "/a/b/0", "value": null}]),
            json!({"a": {"b": [null, 2, 3]}, "x~y/z": 1, "n": null}),
        ),
        (json!([{"op": "remove", "path": "/a/b/-1"}]), json!({"a": {"b": [1, 2]}, "x~y/z": 1, "n": null})),
        (
            json!([{"op": "move", "from": "/a/b/0", "path": "/a/b/2"}]),
            json!({"a": {"b": [2, 3, 1]}, "x~y/z": 1, "n": null}),
        ),
        (
            json!([{"op": "copy", "from": "/a/b", "path": "/n"}]),
            json!({"a": {"b": [1, 2, 3]}, "x~y/z": 1, "n": [1, 2, 3]}),
        ),
        (
            json!([{"op": "test", "path": "/x~0y~1z", "value": 1}, {"op": "remove", "path": "/x~0y~1z"}]),
            json!({"a": {"b": [1, 2, 3]}, "n": null}),
        ),
        (json!([{"op": "test", "path": "/n"}]), doc.clone()),
        (json!([{"op": "replace", "path": "", "value": {"q": 1}}]), json!({"q": 1})),
        (json!([]), doc.clone()),
    ];
    for (patch, expected) in table {
        assert_eq!(json_patch(&doc, &patch).unwrap(), expected, "{patch}");
    }
}

#[test]
fn operations_that_do_not_fit_fail_with_422() {
    let doc = json!({"a": [1], "s": "text"});
    let table = [
        json!([{"op": "remove", "path": "/b"}]),
        json!([{"op": "replace", "path": "/b", "value": 1}]),
        json!([{"op": "add", "path": "/b/c", "value": 1}]),
        json!([{"op": "add", "path": "/s/c", "value": 1}]),
        json!([{"op": "add", "path": "/a/3", "value": 1}]),
        json!([{"op": "add", "path": "/a/x", "value": 1}]),
        json!([{"op": "remove", "path": "/a/-2"}]),
        json!([{"op": "remove", "path": ""}]),
        json!([{"op": "test", "path": "/s", "value": "other"}]),
        json!([{"op": "test", "path": "/nothing", "value": 1}]),
        json!([{"op": "odd", "path": "/s"}]),
        json!([{"path": "/s"}]),
        json!([{"op": "add", "value": 1}]),
        json!([{"op": "move", "path": "/s"}]),
        json!([{"op": "add", "path": "s", "value": 1}]),
    ];
    for patch in table {
        let error = json_patch(&doc, &patch).unwrap_err();
        assert!(matches!(error, PatchError::Failed(_)), "{patch}: {error:?}");
        assert_eq!(Status::from(error).code, 422);
    }
}

#[test]
fn what_is_no_patch_is_malformed() {
    let table = [
        (json!({}), "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"),
        (
            json!(["x"]),
            "error decoding patch: json: cannot unmarshal string into Go value of type handlers.jsonPatchOp",
        ),
        (
            json!([{"op": 1}]),
            "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string",
        ),
    ];
    for (patch, message) in table {
        assert_eq!(json_patch(&json!({}), &patch), Err(PatchError::Malformed(message.into())));
    }
}

#[test]
fn the_number_of_operations_is_limited() {
    let operation = json!({"op": "add", "path": "/a", "value": 1});
    assert!(json_patch(&json!({}), &Value::from(vec![operation.clone(); MAX_OPERATIONS])).is_ok());
    let error = json_patch(&json!({}), &Value::from(vec![operation; MAX_OPERATIONS + 1])).unwrap_err();
    let status = Status::from(error);
    assert_eq!(status.code, 413);
    assert_eq!(
        status.message,
        "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
    );
}

#[test]
fn copies_cannot_grow_without_bound() {
    // Every operation doubles the object.
    let double: Vec<Value> =
        (0..64).map(|at| json!({"op": "copy", "from": "/a", "path": format!("/a/k{at}")})).collect();
    let doc = json!({"a": {"text": "x".repeat(1000)}});
    assert!(matches!(json_patch(&doc, &Value::from(double)), Err(PatchError::Failed(_))));
}

#[test]
fn shifting_huge_lists_again_and_again_is_refused() {
    let doc = json!({"a": vec![0; 200_000]});
    let insert = vec![json!({"op": "add", "path": "/a/0", "value": 1}); 1_000];
    assert!(matches!(json_patch(&doc, &Value::from(insert)), Err(PatchError::Failed(_))));
}

#[test]
fn merge_patches_follow_the_examples_of_the_standard() {
    let table = [
        (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
        (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
        (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
        (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
        (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
        (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
        (json!({"a": "b"}), json!(["c"]), json!(["c"])),
        (json!({"a": "foo"}), json!(null), json!(null)),
        (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
        (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
        (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
    ];
    for (target, patch, expected) in table {
        let mut patched = target.clone();
        merge_patch(&mut patched, &patch);
        assert_eq!(patched, expected, "{target} with {patch}");
    }
}
