//! What holds for every patch and every sequence of writers.
#![allow(clippy::unwrap_used)]

mod kinds;

use std::collections::BTreeMap;

use atoll_patch::fields::FieldSet;
use atoll_patch::{create_strategic, json_patch, merge_patch, strategic, three_way};
use kinds::{World, pod};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Any JSON, with names and texts that mean something to patches.
fn any_json() -> impl Strategy<Value = Value> {
    let name = prop::sample::select(vec![
        "name",
        "spec",
        "containers",
        "env",
        "finalizers",
        "metadata",
        "$patch",
        "$retainKeys",
        "$setElementOrder/containers",
        "$deleteFromPrimitiveList/finalizers",
        "$setElementOrder/finalizers",
        "op",
        "path",
        "value",
        "from",
        "volumes",
    ]);
    let text = prop::sample::select(vec![
        "a",
        "b",
        "delete",
        "replace",
        "merge",
        "name",
        "/spec/containers/0",
        "/spec",
        "add",
        "copy",
        "move",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3).prop_map(Value::from),
        text.prop_map(Value::from)
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name.clone().prop_map(str::to_owned), inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// A list of maps told apart by one key.
fn keyed(
    key: &'static str,
    keys: &'static [&'static str],
    item: impl Strategy<Value = Map<String, Value>>,
) -> impl Strategy<Value = Value> {
    let entry = (prop::sample::select(keys), item);
    prop::collection::vec(entry, 0..4).prop_map(move |entries| {
        let mut seen = Vec::new();
        let mut list = Vec::new();
        for (id, mut item) in entries {
            if !seen.contains(&id) {
                seen.push(id);
                item.insert(key.to_owned(), id.into());
                list.push(Value::Object(item));
            }
        }
        Value::Array(list)
    })
}

fn optional(fields: Vec<(&'static str, BoxedStrategy<Value>)>) -> impl Strategy<Value = Map<String, Value>> {
    let (names, values): (Vec<_>, Vec<_>) = fields.into_iter().unzip();
    let values: Vec<_> = values.into_iter().map(|value| prop::option::of(value).boxed()).collect();
    values.prop_map(move |values| {
        names.iter().zip(values).filter_map(|(name, value)| Some(((*name).to_owned(), value?))).collect()
    })
}

fn words() -> impl Strategy<Value = Value> {
    prop::sample::select(vec!["x", "y", "z"]).prop_map(Value::from)
}

fn texts() -> impl Strategy<Value = Value> {
    let map: BoxedStrategy<BTreeMap<&str, Value>> =
        prop::collection::btree_map(prop::sample::select(vec!["k", "l", "m"]), words(), 0..3).boxed();
    map.prop_map(|map| Value::Object(map.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()))
}

fn pods() -> impl Strategy<Value = Value> {
    let env = keyed("name", &["A", "B", "C"], optional(vec![("value", words().boxed())])).boxed();
    let command = prop::collection::vec(words(), 0..3).prop_map(Value::from).boxed();
    let container = optional(vec![
        ("image", words().boxed()),
        ("command", command),
        ("env", env),
        ("resources", json_map("limits")),
    ]);
    let volume =
        optional(vec![("emptyDir", Just(json!({})).boxed()), ("hostPath", Just(json!({"path": "/"})).boxed())]);
    let spec = optional(vec![
        ("containers", keyed("name", &["a", "b", "c", "d"], container).boxed()),
        ("volumes", keyed("name", &["v", "w"], volume).boxed()),
        ("nodeSelector", texts().boxed()),
        ("nodeName", words().boxed()),
    ]);
    let finalizers = prop::sample::subsequence(vec!["f", "g", "h"], 0..=3).prop_shuffle().prop_map(|list| json!(list));
    let meta = optional(vec![("labels", texts().boxed()), ("finalizers", finalizers.boxed())]);
    (meta, spec).prop_map(|(meta, spec)| json!({"metadata": meta, "spec": spec}))
}

fn json_map(name: &'static str) -> BoxedStrategy<Value> {
    texts().prop_map(move |map| json!({name: map})).boxed()
}

/// Specs of the custom kind. Maps and lists are not empty: one that becomes empty goes, as
/// it does in the original, and comes back only with the next apply.
fn things() -> impl Strategy<Value = Value> {
    let filled = |value: &Value| !matches!(value, Value::Array(list) if list.is_empty());
    let texts = || texts().prop_filter("not empty", |map| map.as_object().is_some_and(|map| !map.is_empty()));
    let set = prop::sample::subsequence(vec!["x", "y", "z"], 1..=3).prop_shuffle().prop_map(|list| json!(list));
    let inner = keyed("id", &["1", "2"], optional(vec![("v", (0..2).prop_map(Value::from).boxed())]))
        .prop_filter("not empty", filled);
    let item = optional(vec![("v", (0..2).prop_map(Value::from).boxed()), ("inner", inner.boxed())]);
    let spec = optional(vec![
        ("a", (0..3).prop_map(Value::from).boxed()),
        ("set", set.boxed()),
        ("list", keyed("id", &["k", "l", "m"], item).prop_filter("not empty", filled).boxed()),
        ("atom", texts().boxed()),
        ("map", texts().boxed()),
        ("free", texts().prop_map(|map| json!({"u": map})).boxed()),
        ("array", prop::collection::vec((0..2).prop_map(Value::from), 0..3).prop_map(Value::from).boxed()),
    ]);
    spec.prop_filter("not empty", |spec| !spec.is_empty()).prop_map(Value::Object)
}

fn field_sets() -> impl Strategy<Value = FieldSet> {
    any_json().prop_map(|value| FieldSet::of(&json!({"spec": value}), Some(pod())))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_difference_makes_one_object_of_the_other(a in pods(), b in pods()) {
        let patch = create_strategic(&a, &b, Some(pod())).unwrap();
        prop_assert_eq!(strategic(&a, &patch, Some(pod())).unwrap(), b, "{}", patch);
    }

    #[test]
    fn a_three_way_difference_without_other_changes_makes_the_wanted_object(a in pods(), b in pods()) {
        let patch = three_way(&a, &b, &a, Some(pod())).unwrap();
        prop_assert_eq!(strategic(&a, &patch, Some(pod())).unwrap(), b, "{}", patch);
    }

    #[test]
    fn no_patch_makes_us_panic(target in any_json(), patch in any_json()) {
        let _ = json_patch(&target, &patch);
        let _ = strategic(&target, &patch, Some(pod()));
        let _ = create_strategic(&target, &patch, Some(pod()));
        let _ = three_way(&patch, &target, &patch, Some(pod()));
        let mut merged = target.clone();
        merge_patch(&mut merged, &patch);
    }

    #[test]
    fn merging_twice_is_merging_once(target in any_json(), patch in any_json()) {
        let mut once = target;
        merge_patch(&mut once, &patch);
        let mut twice = once.clone();
        merge_patch(&mut twice, &patch);
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn merging_an_object_into_nothing_gives_it_without_nulls(patch in pods()) {
        let mut target = Value::Null;
        merge_patch(&mut target, &patch);
        prop_assert_eq!(target, patch);
    }

    #[test]
    fn field_sets_survive_the_wire(set in field_sets()) {
        prop_assert_eq!(FieldSet::from_fields_v1(&set.to_fields_v1()).unwrap(), set);
    }

    #[test]
    fn field_sets_are_sets(a in field_sets(), b in field_sets()) {
        let union = a.clone().union(b.clone());
        prop_assert_eq!(&union, &b.clone().union(a.clone()));
        for path in a.paths() {
            prop_assert!(union.contains(&path.0));
            prop_assert_eq!(a.intersection(&b).contains(&path.0), b.contains(&path.0));
            prop_assert_eq!(a.clone().difference(&b).contains(&path.0), !b.contains(&path.0));
        }
        prop_assert_eq!(a.clone().difference(&b).union(a.intersection(&b)), a);
    }

    #[test]
    fn reading_arbitrary_entries_never_panics(value in any_json()) {
        let _ = FieldSet::from_fields_v1(&value);
    }

    #[test]
    fn applying_gives_every_field_of_the_configuration(writes in prop::collection::vec((0..3, any::<bool>(), things()), 1..6)) {
        let mut world = World::default();
        for (manager, apply, spec) in writes {
            world.minute += 1;
            let manager = format!("m{manager}");
            if apply {
                world.force(&manager, spec.clone());
                let wanted = FieldSet::of(&json!({"spec": spec}), Some(kinds::custom()));
                let live = FieldSet::of(world.live.as_ref().unwrap(), Some(kinds::custom()));
                prop_assert!(wanted.difference(&live).leaves().is_empty());
                let before = world.live.clone();
                world.minute += 1;
                world.apply(&manager, spec).unwrap();
                prop_assert_eq!(&world.live, &before, "a second apply changes nothing");
            } else {
                world.update(&manager, spec);
            }
        }
    }
}
