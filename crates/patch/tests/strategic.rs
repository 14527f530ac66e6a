//! Strategic merge patch: every directive, with the built-in kinds' own strategies.
#![allow(clippy::unwrap_used)]

mod kinds;

use atoll_meta::Status;
use atoll_patch::{PatchError, create_strategic, strategic, three_way};
use kinds::{deployment, pod};
use serde_json::{Value, json};

fn patched(spec: Value, patch: Value) -> Result<Value, PatchError> {
    let object = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "n"}, "spec": spec});
    let mut patched = strategic(&object, &json!({"spec": patch}), Some(pod()))?;
    Ok(patched["spec"].take())
}

#[test]
fn lists_maps_and_directives_merge_as_their_types_say() {
    let two =
        || json!({"containers": [{"name": "a", "image": "1", "command": ["x", "y"]}, {"name": "b", "image": "1"}]});
    let table = [
        ("scalars replace", json!({"nodeName": "x"}), json!({"nodeName": "y"}), json!({"nodeName": "y"})),
        (
            "null deletes",
            json!({"nodeName": "x", "hostname": "h"}),
            json!({"nodeName": null}),
            json!({"hostname": "h"}),
        ),
        (
            "null for nothing is nothing",
            json!({}),
            json!({"nodeName": null, "securityContext": {"runAsUser": null}}),
            json!({"securityContext": {}}),
        ),
        (
            "maps merge",
            json!({"nodeSelector": {"a": "1"}}),
            json!({"nodeSelector": {"b": "2"}}),
            json!({"nodeSelector": {"a": "1", "b": "2"}}),
        ),
        (
            "keyed lists merge by key",
            two(),
            json!({"containers": [{"name": "b", "image": "2"}]}),
            json!({"containers": [{"name": "a", "image": "1", "command": ["x", "y"]}, {"name": "b", "image": "2"}]}),
        ),
        (
            "new elements come behind",
            two(),
            json!({"containers": [{"name": "c"}]}),
            json!({"containers": [{"name": "c"}, {"name": "a", "image": "1", "command": ["x", "y"]}, {"name": "b", "image": "1"}]}),
        ),
        (
            "lists without strategy are replaced",
            two(),
            json!({"containers": [{"name": "a", "command": ["z"]}]}),
            json!({"containers": [{"name": "a", "image": "1", "command": ["z"]}, {"name": "b", "image": "1"}]}),
        ),
        (
            "an element is deleted",
            two(),
            json!({"containers": [{"$patch": "delete", "name": "a"}]}),
            json!({"containers": [{"name": "b", "image": "1"}]}),
        ),
        (
            "deleting what is not there is fine",
            two(),
            json!({"containers": [{"$patch": "delete", "name": "z"}]}),
            two(),
        ),
        (
            "a list is replaced",
            two(),
            json!({"containers": [{"$patch": "replace"}, {"name": "z"}]}),
            json!({"containers": [{"name": "z"}]}),
        ),
        (
            "a map is replaced",
            json!({"nodeSelector": {"a": "1"}}),
            json!({"nodeSelector": {"$patch": "replace", "b": "2"}}),
            json!({"nodeSelector": {"b": "2"}}),
        ),
        (
            "a map is emptied",
            json!({"nodeSelector": {"a": "1"}}),
            json!({"nodeSelector": {"$patch": "delete"}}),
            json!({"nodeSelector": {}}),
        ),
        (
            "order is set",
            two(),
            json!({"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}),
            json!({"containers": [{"name": "b", "image": "1"}, {"name": "a", "image": "1", "command": ["x", "y"]}]}),
        ),
        (
            "order is set for old and new",
            two(),
            json!({"$setElementOrder/containers": [{"name": "b"}, {"name": "c"}], "containers": [{"name": "c"}]}),
            json!({"containers": [{"name": "a", "image": "1", "command": ["x", "y"]}, {"name": "b", "image": "1"}, {"name": "c"}]}),
        ),
        (
            "directives of new content vanish",
            json!({}),
            json!({"containers": [{"$patch": "delete", "name": "a"}, {"name": "b"}]}),
            json!({"containers": [{"name": "b"}]}),
        ),
        (
            "one volume source is kept",
            json!({"volumes": [{"name": "v", "emptyDir": {}}]}),
            json!({"volumes": [{"name": "v", "hostPath": {"path": "/"}, "$retainKeys": ["name", "hostPath"]}]}),
            json!({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}),
        ),
        (
            "ports merge by their number",
            json!({"containers": [{"name": "a", "ports": [{"containerPort": 80, "name": "x"}]}]}),
            json!({"containers": [{"name": "a", "ports": [{"containerPort": 80, "name": "y"}, {"containerPort": 81}]}]}),
            json!({"containers": [{"name": "a", "ports": [{"containerPort": 80, "name": "y"}, {"containerPort": 81}]}]}),
        ),
        (
            "types may change",
            json!({"tolerations": []}),
            json!({"tolerations": {"a": 1}}),
            json!({"tolerations": {"a": 1}}),
        ),
    ];
    for (what, spec, patch, expected) in table {
        assert_eq!(patched(spec, patch).unwrap(), expected, "{what}");
    }
}

#[test]
fn lists_of_scalars_merge_as_sets() {
    let object = json!({"metadata": {"finalizers": ["a", "b", "c"]}});
    let table = [
        (json!({"finalizers": ["b", "d"]}), json!(["a", "b", "d", "c"])),
        (json!({"$deleteFromPrimitiveList/finalizers": ["a", "z"]}), json!(["b", "c"])),
        (json!({"$setElementOrder/finalizers": ["c", "d", "a"], "finalizers": ["d"]}), json!(["b", "c", "d", "a"])),
        (
            json!({"$setElementOrder/finalizers": ["d", "c"], "finalizers": ["d"], "$deleteFromPrimitiveList/finalizers": ["a", "b"]}),
            json!(["d", "c"]),
        ),
    ];
    for (patch, expected) in table {
        let patched = strategic(&object, &json!({"metadata": patch}), Some(pod())).unwrap();
        assert_eq!(patched["metadata"]["finalizers"], expected, "{patch}");
    }
}

#[test]
fn retained_keys_clear_the_others() {
    let object = json!({"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}});
    let patch = json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}});
    assert_eq!(
        strategic(&object, &patch, Some(deployment())).unwrap(),
        json!({"spec": {"strategy": {"type": "Recreate"}}})
    );
}

#[test]
fn patches_that_do_not_fit_are_refused_in_the_original_words() {
    let table = [
        (json!({"containers": [{"image": "2"}]}), 500, "map: map[image:2] does not contain declared merge key: name"),
        (
            json!({"containers": [{"$patch": "delete", "image": "2"}]}),
            500,
            "map: map[$patch:delete image:2] does not contain declared merge key: name",
        ),
        (
            json!({"containers": [{"$patch": "merge", "name": "a"}]}),
            500,
            "merging lists cannot yet be specified in the patch",
        ),
        (
            json!({"containers": [{"$patch": "odd", "name": "a"}]}),
            500,
            "unknown patch type: odd in map: map[$patch:odd name:a]",
        ),
        (json!({"nodeSelector": {"$patch": "odd"}}), 500, "unknown patch type: odd in map: map[$patch:odd]"),
        (json!({"containers": ["x"]}), 500, "list element types are not identical: [[map[name:a]] [x]]"),
        (json!({"containers": [["x"]]}), 500, "list element types are not identical: [[map[name:a]] [[x]]]"),
        (json!({"$setElementOrder/containers": "x"}), 500, "expected a []interface {}, but received a string"),
        (json!({"$setElementOrder": []}), 400, "invalid patch format of setElementOrder list"),
        (json!({"$deleteFromPrimitiveList": []}), 400, "invalid patch format of primitive list"),
        (json!({"nodeSelector": {"$retainKeys": "x"}}), 400, "invalid patch format of retainKeys"),
        (json!({"nodeSelector": {"$retainKeys": ["x"], "y": "1"}}), 400, "invalid patch format of retainKeys"),
        (
            json!({"$setElementOrder/containers": [{"name": "b"}], "containers": [{"name": "c"}]}),
            500,
            "The order in patch list:\n[map[name:c]]\n doesn't match $setElementOrder list:\n[map[name:b]]\n",
        ),
    ];
    for (patch, code, message) in table {
        let spec = json!({"containers": [{"name": "a"}], "nodeSelector": {}});
        let error = patched(spec, patch.clone()).unwrap_err();
        assert_eq!(error.to_string(), message, "{patch}");
        assert_eq!(Status::from(error).code, code, "{patch}");
    }
    assert_eq!(strategic(&json!({}), &json!([]), None), Err(PatchError::Malformed("invalid JSON document".into())));
}

#[test]
fn lists_of_lists_cannot_be_merged() {
    let error = strategic(
        &json!({"metadata": {"finalizers": [["a"]]}}),
        &json!({"metadata": {"finalizers": [["b"]]}}),
        Some(pod()),
    )
    .unwrap_err();
    assert_eq!(error, PatchError::Failed("lists of lists are not supported".into()));
    let status = Status::from(error);
    assert_eq!(
        (status.code, status.message.as_str()),
        (422, "the server rejected our request due to an error in our request")
    );
}

#[test]
fn without_schema_lists_are_replaced() {
    let patched =
        strategic(&json!({"l": [{"name": "a"}], "m": {"x": 1}}), &json!({"l": [{"name": "b"}], "m": {"y": 2}}), None);
    assert_eq!(patched.unwrap(), json!({"l": [{"name": "b"}], "m": {"x": 1, "y": 2}}));
}

#[test]
fn differences_are_written_with_directives() {
    let table = [
        (
            json!({"containers": [{"name": "a"}, {"name": "b"}]}),
            json!({"containers": [{"name": "b", "image": "1"}]}),
            json!({"spec": {"$setElementOrder/containers": [{"name": "b"}], "containers": [{"name": "b", "image": "1"}, {"$patch": "delete", "name": "a"}]}}),
        ),
        (json!({"nodeName": "x"}), json!({}), json!({"spec": {"nodeName": null}})),
        (
            json!({"volumes": [{"name": "v", "emptyDir": {}}]}),
            json!({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}),
            json!({"spec": {"$setElementOrder/volumes": [{"name": "v"}],
                "volumes": [{"$retainKeys": ["hostPath", "name"], "emptyDir": null, "hostPath": {"path": "/"}, "name": "v"}]}}),
        ),
        (
            json!({"tolerations": [{"key": "a"}]}),
            json!({"tolerations": [{"key": "b"}]}),
            json!({"spec": {"tolerations": [{"key": "b"}]}}),
        ),
        (json!({"nodeName": "x"}), json!({"nodeName": "x"}), json!({})),
    ];
    for (original, modified, expected) in table {
        let patch = create_strategic(&json!({"spec": original}), &json!({"spec": modified}), Some(pod())).unwrap();
        assert_eq!(patch, expected, "{original} to {modified}");
    }
    let meta = |finalizers: Value| json!({"metadata": {"finalizers": finalizers}});
    let patch = create_strategic(&meta(json!(["a", "b"])), &meta(json!(["c", "b"])), Some(pod())).unwrap();
    let expected = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"], "$setElementOrder/finalizers": ["c", "b"], "finalizers": ["c"]}});
    assert_eq!(patch, expected);
}

#[test]
fn a_three_way_patch_deletes_only_what_was_applied_before() {
    let object = |spec: Value| json!({"spec": spec});
    let last = object(json!({"nodeName": "x", "hostname": "h", "containers": [{"name": "a"}, {"name": "b"}]}));
    let wanted = object(json!({"nodeName": "y", "containers": [{"name": "a", "image": "2"}]}));
    let current = object(json!({"nodeName": "x", "hostname": "h", "subdomain": "s",
        "containers": [{"name": "a", "image": "1", "tty": true}, {"name": "b"}, {"name": "sidecar"}]}));
    let patch = three_way(&last, &wanted, &current, Some(pod())).unwrap();
    let result = strategic(&current, &patch, Some(pod())).unwrap();
    let expected = object(json!({"nodeName": "y", "subdomain": "s",
        "containers": [{"name": "a", "image": "2", "tty": true}, {"name": "sidecar"}]}));
    assert_eq!(result, expected, "{patch}");
    assert_eq!(three_way(&last, &wanted, &result, Some(pod())).unwrap()["spec"].get("nodeName"), None);
}
