//! Ownership through create, update and patch.
#![allow(clippy::unwrap_used)]

mod kinds;

use atoll_patch::managed::{self, Request};
use atoll_schema::Typed;
use kinds::{World, config_map, deployment, object};
use serde_json::{Value, json};

fn create(schema: Option<Typed>, api_version: &str, mut new: Value) -> Value {
    let request = Request {
        manager: "m",
        api_version,
        subresource: "",
        now: "2024-01-01T00:00:00Z",
        schema,
        reset: &["status"],
        versions: &|_| true,
    };
    assert!(managed::update(&request, None, &mut new));
    new["metadata"]["managedFields"][0]["fieldsV1"].clone()
}

#[test]
fn a_created_config_map_belongs_to_its_creator() {
    let new = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"},
        "metadata": {"name": "n", "namespace": "d", "uid": "u", "labels": {"l": "1"}, "generateName": "n-"}});
    let expected = json!({
        "f:data": {".": {}, "f:a": {}},
        "f:metadata": {"f:generateName": {}, "f:labels": {".": {}, "f:l": {}}}});
    assert_eq!(create(Some(config_map()), "v1", new), expected);
}

#[test]
fn structs_that_are_always_there_are_not_owned_themselves() {
    let new = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "n"}, "spec": {
        "replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "strategy": {"rollingUpdate": {"maxSurge": 1}, "type": "RollingUpdate"},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [
            {"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}}, "ports": [{"containerPort": 80, "protocol": "TCP"}]}]}}}});
    let container = json!({".": {}, "f:image": {}, "f:name": {}, "f:resources": {".": {}, "f:limits": {".": {}, "f:cpu": {}}},
        "f:ports": {".": {}, "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}, "f:protocol": {}}}});
    let expected = json!({"f:spec": {
        "f:replicas": {}, "f:selector": {},
        "f:strategy": {"f:rollingUpdate": {".": {}, "f:maxSurge": {}}, "f:type": {}},
        "f:template": {
            "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
            "f:spec": {"f:containers": {"k:{\"name\":\"c\"}": container}}}}});
    assert_eq!(create(Some(deployment()), "apps/v1", new), expected);
}

#[test]
fn custom_objects_own_every_level() {
    let expected = json!({"f:spec": {".": {}, "f:a": {}, "f:set": {".": {}, "v:\"x\"": {}}, "f:array": {}}});
    assert_eq!(
        create(Some(kinds::custom()), "x.io/v1", object(json!({"a": 1, "set": ["x"], "array": [1, 2]}))),
        expected
    );
    let expected = json!({"f:spec": {".": {}, "f:a": {".": {}, "f:b": {}}, "f:set": {}}});
    assert_eq!(create(None, "x.io/v1", object(json!({"a": {"b": 1}, "set": ["x"]}))), expected);
}

#[test]
fn changed_fields_move_and_removed_fields_leave_all_sets() {
    let mut world = World::default();
    world.update("m", json!({"a": 1, "b": 1, "set": ["x", "y"]}));
    assert!(world.update("n", json!({"a": 2, "set": ["y", "z"]})));
    assert_eq!(world.owned("m"), ["", ".set", ".set[=\"y\"]"]);
    assert_eq!(world.owned("n"), [".a", ".set[=\"z\"]"]);
}

#[test]
fn an_update_that_changes_nothing_keeps_entries_and_times() {
    let mut world = World::default();
    world.update("m", json!({"a": 1}));
    let before = world.entries();
    world.minute = 7;
    assert!(!world.update("n", json!({"a": 1})));
    assert_eq!(world.entries(), before);
    // The same when the entries come back from the client.
    let back = world.live.clone().unwrap();
    assert!(!world.update_at("n", "", back));
    assert_eq!(world.entries(), before);
}

#[test]
fn only_the_writer_gets_a_new_time() {
    let mut world = World::default();
    world.update("m", json!({"a": 1, "b": 1}));
    world.minute = 3;
    world.update("n", json!({"a": 2, "b": 1}));
    let times: Vec<(Value, Value)> =
        world.entries().iter().map(|entry| (entry["manager"].clone(), entry["time"].clone())).collect();
    assert_eq!(times, [(json!("m"), json!("2024-01-01T00:00:00Z")), (json!("n"), json!("2024-01-01T00:03:00Z"))]);
}

#[test]
fn removing_fields_leaves_no_entry_and_no_time() {
    let mut world = World::default();
    world.update("m", json!({"a": 1, "b": 1}));
    world.minute = 3;
    assert!(world.update("n", json!({"a": 1})));
    assert_eq!(world.entries().len(), 1);
    assert_eq!(world.entries()[0]["time"], "2024-01-01T00:00:00Z");
}

#[test]
fn subresources_have_entries_of_their_own() {
    let mut world = World::default();
    world.update("m", json!({"a": 1}));
    let mut new = object(json!({"a": 5}));
    new["status"] = json!({"s": 1});
    world.update_at("m", "status", new);
    let entries = world.entries();
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[1]["subresource"], "status");
    // The spec is reset by the status endpoint, so its change is nobody's.
    assert_eq!(entries[1]["fieldsV1"], json!({"f:status": {".": {}, "f:s": {}}}));
}

#[test]
fn a_client_can_forget_all_ownership() {
    for reset in [json!([]), json!([{}]), json!([{"manager": ""}])] {
        let mut world = World::default();
        world.update("m", json!({"a": 1}));
        let mut new = object(json!({"a": 2}));
        new["metadata"]["managedFields"] = reset;
        assert!(world.update_at("n", "", new));
        assert!(world.entries().is_empty());
        // From then on nothing is tracked, until the first apply.
        world.update("n", json!({"a": 3}));
        assert!(world.entries().is_empty());
        world.apply("n", json!({"b": 1})).unwrap();
        assert_eq!(world.entries().len(), 2);
    }
}

#[test]
fn malformed_entries_of_a_client_are_ignored() {
    let malformed = [
        json!([{"manager": "x"}]),
        json!([{"manager": "x", "operation": "Update", "apiVersion": "x.io/v1", "fieldsType": "FieldsV2"}]),
        json!([{"manager": "x", "operation": "Update", "apiVersion": "x.io/v1", "fieldsType": "FieldsV1", "fieldsV1": {"odd": {}}}]),
        json!("text"),
    ];
    for sent in malformed {
        let mut world = World::default();
        world.update("m", json!({"a": 1}));
        let before = world.entries();
        let mut new = object(json!({"a": 1}));
        new["metadata"]["managedFields"] = sent;
        world.update_at("n", "", new);
        assert_eq!(world.entries(), before);
    }
}

#[test]
fn entries_of_a_client_replace_those_of_the_object_but_not_through_subresources() {
    let sent = json!([{"manager": "x", "operation": "Update", "apiVersion": "x.io/v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:a": {}}}}]);
    for (subresource, manager) in [("", "x"), ("status", "m")] {
        let mut world = World::default();
        world.update("m", json!({"a": 1}));
        let mut new = object(json!({"a": 1}));
        new["metadata"]["managedFields"] = sent.clone();
        world.update_at("n", subresource, new);
        assert_eq!(world.entries()[0]["manager"], manager);
    }
}

#[test]
fn of_equal_entries_the_last_one_counts_however_many_a_client_sends() {
    let entry = |field: String| json!({"manager": "x", "operation": "Update", "apiVersion": "x.io/v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {field: {}}}});
    let mut world = World::default();
    world.update("m", json!({"a": 1, "b": 1}));
    let mut new = object(json!({"a": 1, "b": 2}));
    let many: Vec<Value> = (0..20_000).map(|at| entry(format!("f:k{at}"))).chain([entry("f:a".into())]).collect();
    new["metadata"]["managedFields"] = many.into();
    world.update_at("n", "", new);
    assert_eq!(world.owned("x"), [".a"]);
    assert_eq!(world.owned("n"), [".b"]);
}

#[test]
fn the_oldest_updaters_are_merged() {
    let mut world = World::default();
    for at in 0..14 {
        world.minute = at;
        let map: serde_json::Map<String, Value> = (0..=at).map(|key| (format!("k{key:02}"), "1".into())).collect();
        world.update(&format!("m{at:02}"), json!({"map": map}));
    }
    let entries = world.entries();
    assert_eq!(entries.len(), 10);
    assert_eq!(entries[0]["manager"], "ancient-changes");
    assert_eq!(entries[0]["time"], "2024-01-01T00:04:00Z");
    assert_eq!(
        world.owned("ancient-changes"),
        ["", ".map", ".map.k00", ".map.k01", ".map.k02", ".map.k03", ".map.k04"]
    );
}

#[test]
fn entries_are_sorted_by_operation_then_time() {
    let mut world = World::default();
    world.update("z", json!({"a": 1}));
    world.minute = 1;
    world.update("a", json!({"a": 1, "b": 1}));
    world.minute = 2;
    world.apply("m", json!({"set": ["x"]})).unwrap();
    let order: Vec<Value> = world.entries().iter().map(|entry| entry["manager"].clone()).collect();
    assert_eq!(order, [json!("m"), json!("z"), json!("a")]);
}

#[test]
fn a_write_without_a_manager_is_recorded_as_unknown() {
    let mut world = World::default();
    world.update("", json!({"a": 1}));
    assert_eq!(world.entries()[0]["manager"], "unknown");
}

#[test]
fn repeated_keys_are_owned_as_a_whole() {
    let mut world = World::default();
    world.update("m", json!({"list": [{"id": "k", "v": 1}, {"id": "k", "v": 2}, {"id": "l"}]}));
    assert_eq!(
        world.owned("m"),
        ["", ".list", ".list[id=\"k\",zone=\"z\"]", ".list[id=\"l\",zone=\"z\"]", ".list[id=\"l\",zone=\"z\"].id"]
    );
    world.update("n", json!({"list": [{"id": "k", "v": 1}, {"id": "k", "v": 3}, {"id": "l"}]}));
    assert_eq!(world.owned("n"), [".list[id=\"k\",zone=\"z\"]"]);
}

#[test]
fn objects_without_metadata_are_left_alone() {
    let request = Request {
        manager: "m",
        api_version: "v1",
        subresource: "",
        now: "2024-01-01T00:00:00Z",
        schema: None,
        reset: &[],
        versions: &|_| true,
    };
    for value in [json!({"spec": 1}), json!([1]), json!(null), json!({"metadata": []})] {
        let mut new = value.clone();
        assert!(!managed::update(&request, None, &mut new));
        assert_eq!(new, value);
    }
}
