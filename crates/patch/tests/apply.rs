//! Server-side apply: merging, removal, sharing, conflicts, force and bookkeeping.
#![allow(clippy::unwrap_used)]

mod kinds;

use atoll_meta::Status;
use atoll_patch::managed::ApplyError;
use kinds::{World, object};
use serde_json::{Value, json};

/// Applies one configuration after another by the same manager and expects a spec after each.
fn sequence(steps: &[(Value, Value)]) {
    let mut world = World::default();
    for (config, expected) in steps {
        world.apply("m", config.clone()).unwrap();
        assert_eq!(world.spec(), *expected, "after {config}");
    }
}

#[test]
fn fields_the_manager_no_longer_lists_are_removed() {
    let table: &[&[(Value, Value)]] = &[
        &[(json!({"a": 1, "b": 2}), json!({"a": 1, "b": 2})), (json!({"a": 1}), json!({"a": 1}))],
        &[(json!({"set": ["x", "y"]}), json!({"set": ["x", "y"]})), (json!({"set": ["y"]}), json!({"set": ["y"]}))],
        &[
            (json!({"list": [{"id": "k", "v": 1}, {"id": "l"}]}), json!({"list": [{"id": "k", "v": 1}, {"id": "l"}]})),
            (json!({"list": [{"id": "k"}]}), json!({"list": [{"id": "k"}]})),
        ],
        &[
            (json!({"map": {"x": "1", "y": "2"}}), json!({"map": {"x": "1", "y": "2"}})),
            (json!({"map": {"y": "2"}}), json!({"map": {"y": "2"}})),
        ],
        &[
            (json!({"atom": {"x": "1", "y": "2"}}), json!({"atom": {"x": "1", "y": "2"}})),
            (json!({"atom": {"y": "3"}}), json!({"atom": {"y": "3"}})),
        ],
        &[
            (json!({"free": {"x": {"y": 1}, "z": [1]}}), json!({"free": {"x": {"y": 1}, "z": [1]}})),
            (json!({"free": {"z": [2]}}), json!({"free": {"z": [2]}})),
        ],
        &[
            (json!({"structs": {"s": {"v": 1, "w": 2}}}), json!({"structs": {"s": {"v": 1, "w": 2}}})),
            (json!({"structs": {"s": {"w": 2}}}), json!({"structs": {"s": {"w": 2}}})),
        ],
        &[
            (
                json!({"list": [{"id": "k", "inner": [{"id": "1", "v": 1}, {"id": "2"}]}]}),
                json!({"list": [{"id": "k", "inner": [{"id": "1", "v": 1}, {"id": "2"}]}]}),
            ),
            (
                json!({"list": [{"id": "k", "inner": [{"id": "2"}]}]}),
                json!({"list": [{"id": "k", "inner": [{"id": "2"}]}]}),
            ),
        ],
        &[(json!({"array": [1, 2]}), json!({"array": [1, 2]})), (json!({"array": [3]}), json!({"array": [3]}))],
    ];
    for steps in table {
        sequence(steps);
    }
}

#[test]
fn what_others_own_stays_when_its_applier_drops_it() {
    let mut world = World::default();
    world.apply("m", json!({"a": 1, "list": [{"id": "k", "v": 1}], "set": ["x", "y"]})).unwrap();
    world.apply("n", json!({"a": 1, "list": [{"id": "k"}], "set": ["x"]})).unwrap();
    world.apply("m", json!({"b": 2})).unwrap();
    assert_eq!(world.spec(), json!({"a": 1, "b": 2, "list": [{"id": "k"}], "set": ["x"]}));
    world.apply("n", json!({})).unwrap();
    assert_eq!(world.spec(), json!({"b": 2}));
}

#[test]
fn what_an_updater_owns_stays_when_its_applier_drops_it() {
    let mut world = World::default();
    world.apply("m", json!({"a": 1, "b": 1})).unwrap();
    world.update("editor", json!({"a": 2, "b": 1}));
    assert_eq!(world.owned("m"), [".b"]);
    world.apply("m", json!({"b": 1})).unwrap();
    assert_eq!(world.spec(), json!({"a": 2, "b": 1}));
}

#[test]
fn elements_of_keyed_lists_are_merged_by_all_keys_with_their_defaults() {
    let mut world = World::default();
    world.update("creator", json!({"list": [{"id": "k", "v": 1}, {"id": "k", "zone": "y", "v": 2}]}));
    // The zone defaults to z, so this is the first element.
    world.apply("m", json!({"list": [{"id": "k", "zone": "z", "v": 1}]})).unwrap();
    let first = json!({"id": "k", "zone": "z", "v": 1});
    assert_eq!(world.spec()["list"], json!([first, {"id": "k", "zone": "y", "v": 2}]));
    assert!(world.owned("m").contains(&".list[id=\"k\",zone=\"z\"].v".to_owned()));
}

#[test]
fn new_elements_come_in_the_order_of_the_configuration() {
    let table = [
        (json!(["a", "b"]), json!(["c"]), json!(["a", "b", "c"])),
        (json!(["a", "b", "c"]), json!(["c", "a"]), json!(["b", "c", "a"])),
        (json!(["a", "c"]), json!(["a", "b", "c"]), json!(["a", "b", "c"])),
        (json!(["x", "a"]), json!(["a", "b"]), json!(["x", "a", "b"])),
    ];
    for (live, config, expected) in table {
        let mut world = World::default();
        world.update("creator", json!({"set": live}));
        world.apply("m", json!({"set": config})).unwrap();
        assert_eq!(world.spec()["set"], expected, "{live} with {config}");
    }
}

#[test]
fn changing_what_somebody_else_owns_is_a_conflict() {
    let mut world = World::default();
    world.update("editor", json!({"a": 1, "list": [{"id": "k", "v": 1}]}));
    world.apply("n", json!({"b": 1})).unwrap();
    let config = json!({"a": 2, "b": 2, "list": [{"id": "k", "v": 2}]});
    let error = world.apply("m", config).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Apply failed with 3 conflicts: conflicts with \"editor\" using x.io/v1:\n- .spec.a\n\
         - .spec.list[id=\"k\",zone=\"z\"].v\nconflicts with \"n\":\n- .spec.b"
    );
    let status = Status::from(error);
    assert_eq!((status.code, status.details.as_ref().unwrap().causes.len()), (409, 3));
    let cause = &status.details.unwrap().causes[0];
    assert_eq!((cause.reason.as_str(), cause.field.as_str()), ("FieldManagerConflict", ".spec.a"));
    assert_eq!(cause.message, "conflict with \"editor\" using x.io/v1");
}

#[test]
fn one_conflict_has_a_message_of_its_own() {
    let mut world = World::default();
    world.update("creator", json!({}));
    world.update_at("scaler", "scale", object(json!({"a": 1})));
    let error = world.apply("m", json!({"a": 2})).unwrap_err();
    let text =
        "Apply failed with 1 conflict: conflict with \"scaler\" with subresource \"scale\" using x.io/v1: .spec.a";
    assert_eq!(error.to_string(), text);
}

#[test]
fn force_takes_conflicting_fields_and_only_those() {
    let mut world = World::default();
    world.apply("m", json!({"a": 1, "b": 1, "set": ["x"]})).unwrap();
    world.force("n", json!({"a": 2, "set": ["x", "y"]}));
    assert_eq!(world.spec(), json!({"a": 2, "b": 1, "set": ["x", "y"]}));
    assert_eq!(world.owned("m"), [".b", ".set[=\"x\"]"]);
    assert_eq!(world.owned("n"), [".a", ".set[=\"x\"]", ".set[=\"y\"]"]);
}

#[test]
fn the_same_value_is_shared_without_conflict() {
    let mut world = World::default();
    world.apply("m", json!({"a": 1, "atom": {"x": "1"}})).unwrap();
    world.apply("n", json!({"a": 1, "atom": {"x": "1"}})).unwrap();
    assert_eq!(world.owned("m"), world.owned("n"));
    let error = world.apply("n", json!({"a": 2})).unwrap_err();
    assert!(matches!(error, ApplyError::Conflicts(conflicts) if conflicts.len() == 1));
}

#[test]
fn atomic_maps_and_lists_have_one_owner() {
    let mut world = World::default();
    world.apply("m", json!({"atom": {"x": "1"}, "array": [1]})).unwrap();
    assert_eq!(world.owned("m"), [".array", ".atom"]);
    let error = world.apply("n", json!({"atom": {"y": "1"}})).unwrap_err();
    assert!(error.to_string().ends_with(": .spec.atom"), "{error}");
}

#[test]
fn undescribed_parts_are_granular_maps_and_atomic_lists() {
    let mut world = World::default();
    world.apply("m", json!({"free": {"x": {"y": 1}, "l": [{"id": 1}]}})).unwrap();
    world.apply("n", json!({"free": {"x": {"z": 1}}})).unwrap();
    assert_eq!(world.spec(), json!({"free": {"x": {"y": 1, "z": 1}, "l": [{"id": 1}]}}));
    let error = world.apply("n", json!({"free": {"l": [{"id": 2}]}})).unwrap_err();
    assert!(error.to_string().ends_with(": .spec.free.l"), "{error}");
}

#[test]
fn repeating_an_apply_changes_nothing_not_even_times() {
    let mut world = World::default();
    world.apply("m", json!({"a": 1, "set": ["x", "y"], "list": [{"id": "k"}]})).unwrap();
    world.update("other", {
        let mut spec = world.spec();
        spec["b"] = 1.into();
        spec
    });
    let before = world.live.clone();
    world.minute = 5;
    world.apply("m", json!({"a": 1, "set": ["x", "y"], "list": [{"id": "k"}]})).unwrap();
    assert_eq!(world.live, before);
}

#[test]
fn an_object_without_tracking_is_credited_to_before_first_apply() {
    let mut world = World { live: Some(object(json!({"a": 1}))), minute: 0 };
    world.apply("m", json!({"b": 1})).unwrap();
    assert_eq!(world.owned("before-first-apply"), ["", ".a"]);
    assert_eq!(world.owned("m"), [".b"]);
}

#[test]
fn kubectl_takes_over_what_it_applied_from_the_client() {
    let applied = object(json!({"a": 1, "b": 1}));
    let client_side = |spec: Value| {
        let mut new = object(spec);
        new["metadata"]["annotations"] =
            json!({"kubectl.kubernetes.io/last-applied-configuration": applied.to_string()});
        new
    };
    let mut world = World::default();
    world.update_at("kubectl-client-side-apply", "", client_side(json!({"a": 1, "b": 1})));
    // Somebody else changed b since, so only a may be taken.
    world.update_at("editor", "", client_side(json!({"a": 1, "b": 2})));
    let error = world.apply("kubectl", json!({"a": 5, "b": 5})).unwrap_err();
    assert!(error.to_string().ends_with("conflict with \"editor\" using x.io/v1: .spec.b"), "{error}");
    assert!(world.apply("other", json!({"a": 5})).is_err());
    world.apply("kubectl", json!({"a": 5})).unwrap();
    assert_eq!(world.spec(), json!({"a": 5, "b": 2}));
    let annotation =
        &world.live.as_ref().unwrap()["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"];
    let recorded: Value = serde_json::from_str(annotation.as_str().unwrap()).unwrap();
    assert_eq!(recorded, object(json!({"a": 5})));
}

#[test]
fn identity_and_server_fields_are_never_owned() {
    let mut world = World::default();
    let mut config = object(json!({"a": 1}));
    config["metadata"]["labels"] = json!({"l": "1"});
    world.apply_object("m", &config, false).unwrap();
    assert_eq!(world.entries()[0]["fieldsV1"], json!({"f:metadata": {"f:labels": {"f:l": {}}}, "f:spec": {"f:a": {}}}));
    assert_eq!(
        world.entries()[0],
        json!({"manager": "m", "operation": "Apply", "apiVersion": "x.io/v1", "time": "2024-01-01T00:00:00Z", "fieldsType": "FieldsV1",
               "fieldsV1": {"f:metadata": {"f:labels": {"f:l": {}}}, "f:spec": {"f:a": {}}}})
    );
}

#[test]
fn finalizers_and_owners_merge_even_where_the_schema_is_silent_about_metadata() {
    let config = |finalizer: &str, owner: &str| {
        let mut config = object(json!({}));
        config["metadata"]["finalizers"] = json!([finalizer]);
        config["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "v1", "kind": "Pod", "name": owner, "uid": owner}]);
        config
    };
    let mut world = World::default();
    world.apply_object("m", &config("x/a", "1"), false).unwrap();
    world.apply_object("n", &config("x/b", "2"), false).unwrap();
    let meta = &world.live.as_ref().unwrap()["metadata"];
    assert_eq!(meta["finalizers"], json!(["x/a", "x/b"]));
    assert_eq!(meta["ownerReferences"].as_array().unwrap().len(), 2);
}

#[test]
fn status_is_not_owned_through_the_object_itself() {
    let mut world = World::default();
    let mut config = object(json!({"a": 1}));
    config["status"] = json!({"s": 1});
    world.apply_object("m", &config, false).unwrap();
    assert_eq!(world.owned("m"), [".a"]);
}

#[test]
fn configurations_that_do_not_fit_are_refused() {
    let table: &[(Value, u16, &str)] = &[
        (
            json!({"apiVersion": "x.io/v2", "kind": "Thing", "metadata": {"name": "n"}}),
            400,
            "invalid object type: x.io/v2, Kind=Thing",
        ),
        (
            json!({"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": "n", "managedFields": []}}),
            400,
            "metadata.managedFields must be nil",
        ),
        (
            object(json!({"odd": 1})),
            500,
            "failed to create typed patch object (d/n; x.io/v1, Kind=Thing): .spec.odd: field not declared in schema",
        ),
        (
            object(json!({"set": ["x", "x"]})),
            500,
            "failed to create typed patch object (d/n; x.io/v1, Kind=Thing): .spec.set: duplicate entries for key [=\"x\"]",
        ),
        (
            object(json!({"a": "text"})),
            500,
            "failed to create typed patch object (d/n; x.io/v1, Kind=Thing): .spec.a: expected numeric (int or float), got string",
        ),
        (
            object(json!({"list": [{"zone": null}, {"v": 1}], "map": {"k": 5}})),
            500,
            "failed to create typed patch object (d/n; x.io/v1, Kind=Thing): .spec.map.k: expected string, got &value.valueUnstructured{Value:5}",
        ),
    ];
    for (config, code, message) in table {
        let status = Status::from(World::default().apply_object("m", config, false).unwrap_err());
        assert_eq!((status.code, status.message.as_str()), (*code, *message));
    }
}

#[test]
fn a_type_that_became_atomic_is_owned_as_a_whole() {
    let mut world = World::default();
    world.apply("m", json!({"atom": {"x": "1"}})).unwrap();
    let live = world.live.as_mut().unwrap();
    live["metadata"]["managedFields"][0]["fieldsV1"] = json!({"f:spec": {"f:atom": {".": {}, "f:x": {}}}});
    world.apply("n", json!({"b": 1})).unwrap();
    assert_eq!(world.owned("m"), [".atom"]);
}

#[test]
fn entries_of_versions_that_are_gone_are_dropped() {
    let mut world = World::default();
    world.apply("m", json!({"a": 1})).unwrap();
    world.live.as_mut().unwrap()["metadata"]["managedFields"][0]["apiVersion"] = "x.io/v0".into();
    world.apply("n", json!({"a": 2})).unwrap();
    assert_eq!(world.owned("m"), Vec::<String>::new());
    assert_eq!(world.owned("n"), [".a"]);
}

#[test]
fn an_applier_keeps_its_entry_when_it_changes_the_version() {
    let mut world = World::default();
    world.apply("m", json!({"a": 1, "b": 1})).unwrap();
    world.live.as_mut().unwrap()["metadata"]["managedFields"][0]["apiVersion"] = "x.io/v1alpha1".into();
    world.apply("m", json!({"a": 2})).unwrap();
    assert_eq!(world.spec(), json!({"a": 2}));
    assert_eq!(world.entries().len(), 1);
    assert_eq!(world.entries()[0]["apiVersion"], "x.io/v1");
}
