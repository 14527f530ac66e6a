//! The generated table says what the original's discovery says.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeSet;
use std::path::PathBuf;

use atoll_builtin::{find, find_kind, groups, kinds, schema_of, storage_kind, types};
use atoll_schema::{ListType, Type, Typed};
use serde_json::Value;

/// The reference description, or `None` with a visible note.
fn reference() -> Option<PathBuf> {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/reference/kubernetes");
    if !dir.is_dir() {
        eprintln!("SKIPPED: {} is absent", dir.display());
        return None;
    }
    Some(dir)
}

fn json(path: PathBuf) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn every_resource_and_subresource_of_the_reference_is_served() {
    let Some(dir) = reference() else { return };
    let (mut resources, mut subresources) = (0, 0);
    for group in groups() {
        for version in &group.versions {
            let file = if group.name.is_empty() {
                format!("api__{version}.json")
            } else {
                format!("apis__{}__{version}.json", group.name)
            };
            for row in json(dir.join("discovery").join(file))["resources"].as_array().unwrap() {
                let name = row["name"].as_str().unwrap();
                let verbs: Vec<&str> = row["verbs"].as_array().unwrap().iter().map(|v| v.as_str().unwrap()).collect();
                let (plural, sub) = name.split_once('/').unwrap_or((name, ""));
                let kind =
                    find(group.name, version, plural).unwrap_or_else(|| panic!("{} {version} {plural}", group.name));
                if sub.is_empty() {
                    resources += 1;
                    assert_eq!(kind.verbs, verbs, "{name}");
                    assert_eq!(kind.kind, row["kind"], "{name}");
                    assert_eq!(kind.namespaced, row["namespaced"], "{name}");
                } else {
                    subresources += 1;
                    let found = kind.subresource(sub).unwrap();
                    assert_eq!(found.verbs, verbs, "{name}");
                    assert_eq!(found.kind, row["kind"], "{name}");
                }
            }
        }
    }
    assert_eq!(resources, kinds().len());
    assert_eq!(subresources, kinds().iter().map(|kind| kind.subresources.len()).sum::<usize>());
}

#[test]
fn groups_come_in_discovery_order_with_the_core_first() {
    let Some(dir) = reference() else { return };
    let listed = json(dir.join("discovery/apis.json"));
    let expected: Vec<&str> =
        listed["groups"].as_array().unwrap().iter().map(|g| g["name"].as_str().unwrap()).collect();
    let found: Vec<&str> = groups().iter().map(|group| group.name).collect();
    assert_eq!(found[0], "");
    assert_eq!(found[1..], expected);
}

#[test]
fn each_resource_is_stored_in_exactly_one_version() {
    let all: BTreeSet<(&str, &str)> = kinds().iter().map(|kind| (kind.group, kind.plural)).collect();
    for (group, plural) in all {
        let stored = kinds().iter().filter(|kind| kind.storage && kind.group == group && kind.plural == plural).count();
        assert_eq!(stored, usize::from(group != "events.k8s.io"), "{group} {plural}");
    }
    assert_eq!(storage_kind(find("autoscaling", "v1", "horizontalpodautoscalers").unwrap()).version, "v2");
    assert_eq!(storage_kind(find("events.k8s.io", "v1", "events").unwrap()).group, "");
}

#[test]
fn facts_people_rely_on_are_right() {
    let pods = find("", "v1", "pods").unwrap();
    assert_eq!((pods.singular, pods.list_kind, pods.short_names.as_slice()), ("pod", "PodList", ["po"].as_slice()));
    assert!(pods.categories.contains(&"all") && pods.allows("watch") && pods.is_stored());
    let scale = find("apps", "v1", "deployments").unwrap().subresource("scale").unwrap();
    assert_eq!((scale.group, scale.version, scale.kind), ("autoscaling", "v1", "Scale"));
    let review = find_kind("authorization.k8s.io", "v1", "SelfSubjectAccessReview").unwrap();
    assert_eq!((review.list_kind, review.is_stored()), ("", false));
    assert_eq!(find("", "v1", "podses").map(|kind| kind.kind), None);
}

#[test]
fn every_type_of_every_kind_resolves() {
    for (name, schema) in types().iter() {
        for (field, property) in &schema.properties {
            let mut node = property;
            while let Some(inner) = node.items.as_deref().or(node.additional.as_deref()) {
                node = inner;
            }
            if let Some(target) = &node.reference {
                assert!(types().get(target).is_some(), "{name}.{field} points to {target}");
            }
        }
    }
    for kind in kinds() {
        assert_eq!(schema_of(kind).ty, Type::Object, "{}", kind.kind);
    }
}

#[test]
fn lists_know_their_keys_and_special_types_their_formats() {
    let pod = Typed::new(types(), schema_of(find("", "v1", "pods").unwrap()));
    let spec = pod.property("spec").unwrap();
    let containers = spec.property("containers").unwrap();
    assert_eq!(containers.list_type(), ListType::Map);
    assert_eq!(*containers.list_map_keys(), ["name".into()]);
    assert_eq!(containers.field.patch_merge_key.as_deref(), Some("name"));
    assert!(containers.field.patch_strategy.merge);
    let ports = containers.items().unwrap().property("ports").unwrap();
    assert_eq!(*ports.list_map_keys(), ["containerPort".into(), "protocol".into()]);
    let limits = containers.items().unwrap().property("resources").unwrap().property("limits").unwrap();
    assert_eq!(&*limits.property("cpu").unwrap().schema.format, "quantity");
    let created = pod.property("metadata").unwrap().property("creationTimestamp").unwrap();
    assert_eq!(&*created.schema.format, "date-time");
    assert!(spec.property("nodeSelector").unwrap().is_atomic_map());
    let probe = containers.items().unwrap().property("livenessProbe").unwrap();
    assert!(probe.property("httpGet").unwrap().property("port").unwrap().schema.int_or_string);
    let volumes = spec.property("volumes").unwrap();
    assert!(volumes.field.patch_strategy.merge && volumes.field.patch_strategy.retain_keys);
}
