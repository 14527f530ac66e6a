#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;

fn policy(namespace: &str, name: &str, spec: Value) -> OverridePolicy {
    let mut meta = json!({"name": name});
    if !namespace.is_empty() {
        meta["namespace"] = namespace.into();
    }
    OverridePolicy::of(&Item::of(&json!({"metadata": meta, "spec": spec})).unwrap()).unwrap()
}

fn deployment() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
           "metadata": {"name": "web", "namespace": "default", "labels": {"app": "web"}},
           "spec": {"template": {"spec": {"containers": [{"name": "c", "image": "nginx:1", "args": ["-a"]}]}}}})
}

fn run(overriders: Value) -> Result<Value, OverrideError> {
    let policy = policy("default", "o", json!({"overrideRules": [{"overriders": overriders}]}));
    let mut manifest = deployment();
    apply(&mut manifest, &Cluster::default(), &[Arc::new(policy)])?;
    Ok(manifest)
}

#[test]
fn every_overrider_changes_what_it_names() {
    let cases = [
        (
            json!({"imageOverrider": [{"component": "Registry", "operator": "add", "value": "reg.io"}]}),
            "/spec/template/spec/containers/0/image",
            json!("reg.io/nginx:1"),
        ),
        (
            json!({"imageOverrider": [{"predicate": {"path": "/spec/template/spec/containers/0/image"}, "component": "Tag", "operator": "replace", "value": "2"}]}),
            "/spec/template/spec/containers/0/image",
            json!("nginx:2"),
        ),
        (
            json!({"commandOverrider": [{"containerName": "c", "operator": "add", "value": ["run"]}]}),
            "/spec/template/spec/containers/0/command",
            json!(["run"]),
        ),
        (
            json!({"argsOverrider": [{"containerName": "c", "operator": "remove", "value": ["-a"]}]}),
            "/spec/template/spec/containers/0/args",
            json!([]),
        ),
        (
            json!({"labelsOverrider": [{"operator": "add", "value": {"x": "y"}}]}),
            "/metadata/labels",
            json!({"app": "web", "x": "y"}),
        ),
        (
            json!({"labelsOverrider": [{"operator": "replace", "value": {"none": "y"}}, {"operator": "remove", "value": {"app": ""}}]}),
            "/metadata/labels",
            json!({}),
        ),
        (
            json!({"annotationsOverrider": [{"operator": "add", "value": {"x": "y"}}]}),
            "/metadata/annotations",
            json!({"x": "y"}),
        ),
        (json!({"plaintext": [{"path": "/spec/replicas", "operator": "add", "value": 7}]}), "/spec/replicas", json!(7)),
    ];
    for (overriders, pointer, expected) in cases {
        let manifest = run(overriders.clone()).unwrap();
        assert_eq!(manifest.pointer(pointer), Some(&expected), "{overriders}");
    }
}

#[test]
fn documents_inside_fields_are_changed_in_their_own_language() {
    let manifest = |text: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"}, "data": {"f": text}});
    let rule = |language: &str| {
        json!({"overrideRules": [{"overriders": {"fieldOverrider": [
            {"fieldPath": "/data/f", language: [{"subPath": "/a/b", "operator": "replace", "value": 2}]}]}}]})
    };
    let mut one = manifest(r#"{"a":{"b":1}}"#);
    apply(&mut one, &Cluster::default(), &[Arc::new(policy("default", "o", rule("json")))]).unwrap();
    assert_eq!(one["data"]["f"], r#"{"a":{"b":2}}"#);
    let mut two = manifest("a:\n  b: 1\n");
    apply(&mut two, &Cluster::default(), &[Arc::new(policy("default", "o", rule("yaml")))]).unwrap();
    let parsed: Value = serde_saphyr::from_str(two["data"]["f"].as_str().unwrap()).unwrap();
    assert_eq!(parsed, json!({"a": {"b": 2}}));
    let mut mode = manifest("a:\n  b: 1\nmode: 0644\n");
    apply(&mut mode, &Cluster::default(), &[Arc::new(policy("default", "o", rule("yaml")))]).unwrap();
    let parsed: Value = serde_saphyr::from_str(mode["data"]["f"].as_str().unwrap()).unwrap();
    assert_eq!(parsed, json!({"a": {"b": 2}, "mode": 0o644}));
    let both = json!({"overrideRules": [{"overriders": {"fieldOverrider": [{"fieldPath": "/data/f",
        "json": [{"subPath": "/a/b", "operator": "replace", "value": 3}], "yaml": [{"subPath": "/a/b", "operator": "replace", "value": 4}]}]}}]});
    let mut three = manifest(r#"{"a":{"b":1}}"#);
    apply(&mut three, &Cluster::default(), &[Arc::new(policy("default", "o", both))]).unwrap();
    let parsed: Value = serde_saphyr::from_str(three["data"]["f"].as_str().unwrap()).unwrap();
    assert_eq!(parsed, json!({"a": {"b": 4}}));
}

#[test]
fn removing_what_is_not_there_is_an_error_that_names_the_policy() {
    let error = run(json!({"plaintext": [{"path": "/spec/none", "operator": "remove"}]})).unwrap_err();
    assert!(error.to_string().starts_with("override policy o: "), "{error}");
}

#[test]
fn what_is_no_object_any_more_is_an_error() {
    for plain in [
        json!({"path": "/kind", "operator": "remove"}),
        json!({"path": "/metadata", "operator": "replace", "value": "x"}),
    ] {
        let error = run(json!({"plaintext": [plain]})).unwrap_err();
        assert_eq!(error.why, "nothing with a kind and metadata is left");
    }
}

#[test]
fn the_old_form_counts_only_without_rules() {
    let label = |value: &str| json!({"labelsOverrider": [{"operator": "add", "value": {value: "x"}}]});
    let spec = json!({"overrideRules": [{"overriders": label("rule")}], "overriders": label("old")});
    let mut manifest = deployment();
    apply(&mut manifest, &Cluster::default(), &[Arc::new(policy("default", "o", spec))]).unwrap();
    assert_eq!(manifest["metadata"]["labels"], json!({"app": "web", "rule": "x"}));
}

#[test]
fn the_most_specific_policy_is_applied_last_and_those_of_the_instance_first() {
    let set = |value: &str| json!({"labelsOverrider": [{"operator": "add", "value": {"by": value}}]});
    let spec = |selectors: Value, value: &str| json!({"resourceSelectors": selectors, "overrideRules": [{"overriders": set(value)}]});
    let named = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}]);
    let all = Overrides::default();
    all.put(policy("default", "a-named", spec(named.clone(), "named")));
    all.put(policy("default", "z-any", spec(json!([]), "any")));
    all.put(policy("", "cluster", spec(named, "cluster")));
    all.put(policy("other", "foreign", spec(json!([]), "foreign")));
    let head = Head::of(deployment()["metadata"].as_object().unwrap());
    let order = all.for_object(&Gvk::new("apps", "v1", "Deployment"), &head);
    let names: Vec<&str> = order.iter().map(|policy| &*policy.key.name).collect();
    assert_eq!(names, ["cluster", "z-any", "a-named"]);
    let mut manifest = deployment();
    let applied = apply(&mut manifest, &Cluster::default(), &order).unwrap();
    assert_eq!(manifest["metadata"]["labels"]["by"], "named");
    assert_eq!((applied.cluster.len(), applied.namespaced.len()), (1, 2));
}

#[test]
fn a_rule_is_only_for_the_clusters_it_names() {
    let spec = json!({"overrideRules": [
        {"targetCluster": {"clusterNames": ["m1"]}, "overriders": {"plaintext": [{"path": "/spec/replicas", "operator": "add", "value": 1}]}}]});
    let policies = [Arc::new(policy("default", "o", spec))];
    for (name, changed) in [("m1", true), ("m2", false)] {
        let mut manifest = deployment();
        let cluster = Cluster { name: name.into(), ..Cluster::default() };
        apply(&mut manifest, &cluster, &policies).unwrap();
        assert_eq!(manifest["spec"]["replicas"] == 1, changed, "{name}");
    }
}
