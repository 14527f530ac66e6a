//! Objects and the policies that change them.

use serde_json::{Value, json};

/// An object on its way to a cluster, and the policies there are.
#[derive(Clone, Debug)]
pub struct Case {
    pub object: Value,
    pub cluster: Value,
    pub cluster_policies: Vec<Value>,
    pub policies: Vec<Value>,
}

fn policy(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "OverridePolicy", "metadata": {"name": name, "namespace": "ns"}, "spec": spec})
}

fn cluster_policy(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterOverridePolicy", "metadata": {"name": name}, "spec": spec})
}

fn cluster() -> Value {
    json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "member1", "labels": {"tier": "gold"}},
        "spec": {"syncMode": "Push", "provider": "p1", "region": "r1", "zone": "z1", "zones": ["z1"]}})
}

/// One overrider for one object.
fn one(object: &Value, overriders: Value) -> Case {
    Case {
        object: object.clone(),
        cluster: cluster(),
        cluster_policies: Vec::new(),
        policies: vec![policy("o", json!({"overrideRules": [{"overriders": overriders}]}))],
    }
}

fn meta() -> Value {
    json!({"name": "it", "namespace": "ns", "labels": {"app": "it", "example.io/tier": "web"}, "annotations": {"note": "x"}})
}

fn pod_spec(image: &str) -> Value {
    json!({"initContainers": [{"name": "init", "image": "busybox:1", "args": ["a"]}],
        "containers": [{"name": "web", "image": image, "command": ["run"], "args": ["-a", "-b", "-a"]}, {"name": "side", "image": "proxy"}]})
}

fn workload(kind: &str, image: &str) -> Value {
    let (api_version, spec) = match kind {
        "Pod" => ("v1", pod_spec(image)),
        "CronJob" => ("batch/v1", json!({"jobTemplate": {"spec": {"template": {"spec": pod_spec(image)}}}})),
        "Job" => ("batch/v1", json!({"template": {"spec": pod_spec(image)}})),
        "Rollout" => ("argoproj.io/v1alpha1", json!({"template": {"spec": pod_spec(image)}})),
        _ => ("apps/v1", json!({"replicas": 2, "template": {"spec": pod_spec(image)}})),
    };
    json!({"apiVersion": api_version, "kind": kind, "metadata": meta(), "spec": spec})
}

const KINDS: [&str; 8] = ["Pod", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob", "Rollout"];

const DIGEST: &str = "sha256:50d858e0985ecc7f60418aaf0cc5ab587f42c2570a884095a9e8ccacd0f6545c";

fn images() -> Vec<Case> {
    let mut cases = Vec::new();
    let digested = format!("reg.example.io/a/b@{DIGEST}");
    let both = format!("nginx:1@{DIGEST}");
    let names = [
        "nginx",
        "nginx:1.25",
        "library/nginx:1",
        "reg.example.io/a/b:v1",
        "reg:5000/a",
        "localhost/a:x",
        "localhost:5000/a/b",
        "a/b/c",
        &digested,
        &both,
        "Nginx",
        "",
    ];
    let other = DIGEST.replace('5', "6");
    for image in names {
        for component in ["Registry", "Repository", "Tag"] {
            for (operator, value) in [
                ("add", "x"),
                ("add", ""),
                ("replace", "y.io"),
                ("replace", ""),
                ("remove", ""),
                ("remove", "nginx"),
                ("add", "/z"),
                ("add", ":8"),
                ("replace", &other),
                ("replace", "-bad-"),
            ] {
                cases.push(one(
                    &workload("Deployment", image),
                    json!({"imageOverrider": [{"component": component, "operator": operator, "value": value}]}),
                ));
            }
        }
    }
    for kind in KINDS {
        cases.push(one(
            &workload(kind, "nginx:1"),
            json!({"imageOverrider": [{"component": "Tag", "operator": "replace", "value": "2"}]}),
        ));
        let path = if kind == "Pod" { "/spec/containers/1/image" } else { "/spec/template/spec/containers/1/image" };
        cases.push(one(&workload(kind, "nginx:1"), json!({"imageOverrider": [{"predicate": {"path": path}, "component": "Registry", "operator": "add", "value": "r.io"}]})));
    }
    for path in [
        "/spec/template/spec/initContainers/0/image",
        "/spec/template/spec/containers/9/image",
        "/spec/none/image",
        "/spec/replicas",
        "spec/template/spec/containers/0/image",
        "/spec/template/spec/containers/x/image",
        "/metadata/labels/app",
        "/metadata/labels/example.io~1tier",
        "",
        "/spec/template/spec/containers",
    ] {
        cases.push(one(&workload("Deployment", "nginx:1"), json!({"imageOverrider": [{"predicate": {"path": path}, "component": "Tag", "operator": "replace", "value": "9"}]})));
    }
    let several = json!({"imageOverrider": [{"component": "Registry", "operator": "add", "value": "r.io"}, {"component": "Repository", "operator": "add", "value": "-x"}, {"component": "Tag", "operator": "add", "value": "-y"}]});
    cases.push(one(&workload("Deployment", "nginx:1"), several));
    let custom = json!({"apiVersion": "example.io/v1", "kind": "Thing", "metadata": meta(), "spec": {"image": "a/b:1", "list": [{"image": "c"}]}});
    for path in ["/spec/image", "/spec/list/0/image"] {
        cases.push(one(&custom, json!({"imageOverrider": [{"predicate": {"path": path}, "component": "Registry", "operator": "replace", "value": "r.io"}]})));
    }
    cases
}

fn lists() -> Vec<Case> {
    let mut cases = Vec::new();
    for kind in KINDS {
        for field in ["commandOverrider", "argsOverrider"] {
            for container in ["web", "side", "init", "none"] {
                for (operator, value) in [
                    ("add", json!(["x", "y"])),
                    ("remove", json!(["-a"])),
                    ("remove", json!(["none"])),
                    ("add", json!([])),
                    ("remove", json!(["-a", "-b", "run"])),
                ] {
                    cases.push(one(
                        &workload(kind, "nginx"),
                        json!({field: [{"containerName": container, "operator": operator, "value": value}]}),
                    ));
                }
            }
        }
    }
    cases
}

fn maps() -> Vec<Case> {
    let mut cases = Vec::new();
    for field in ["labelsOverrider", "annotationsOverrider"] {
        for operator in ["add", "replace", "remove"] {
            for value in [
                json!({"app": "new"}),
                json!({"note": "new"}),
                json!({"none": "x"}),
                json!({"example.io/tier": "y"}),
                json!({"a/b": "c", "d": ""}),
                json!({}),
            ] {
                for labelled in [true, false] {
                    let mut object = workload("Deployment", "nginx");
                    if !labelled {
                        object["metadata"] = json!({"name": "it", "namespace": "ns"});
                    }
                    cases.push(one(&object, json!({field: [{"operator": operator, "value": value}]})));
                }
            }
        }
    }
    let several = json!({"labelsOverrider": [{"operator": "add", "value": {"x": "1"}}, {"operator": "replace", "value": {"x": "2"}}, {"operator": "remove", "value": {"app": ""}}]});
    cases.push(one(&workload("Pod", "nginx"), several));
    cases
}

fn plain() -> Vec<Case> {
    let object = json!({"apiVersion": "example.io/v1", "kind": "Thing", "metadata": meta(),
        "spec": {"replicas": 2, "list": [1, 2, 3], "map": {"a": "b", "c/d": 1, "e~f": 2}, "null": null, "deep": {"er": {"est": true}}, "items": [{"name": "x"}, {"name": "y"}]}});
    let paths = [
        "/spec/replicas",
        "/spec/none",
        "/spec/none/deeper",
        "/spec/list/0",
        "/spec/list/3",
        "/spec/list/4",
        "/spec/list/-",
        "/spec/list/x",
        "/spec/list/01",
        "/spec/map/a",
        "/spec/map/c~1d",
        "/spec/map/e~0f",
        "/spec/null",
        "/spec/null/x",
        "/spec/deep/er",
        "/spec/deep/er/est",
        "/spec/items/1/name",
        "/spec/items/2/name",
        "/spec",
        "/metadata/labels/app",
        "/metadata/labels/example.io~1tier",
        "/metadata/labels/new",
        "",
        "/",
        "spec",
        "/kind",
        "/metadata/name",
        "/spec/list",
        "/spec/replicas/x",
        "/spec/list/1",
        "/spec/list/1e0",
        "/spec/map/",
    ];
    let mut cases = Vec::new();
    for path in paths {
        for (operator, value) in [
            ("add", json!(7)),
            ("replace", json!({"a": [1]})),
            ("remove", Value::Null),
            ("add", Value::Null),
            ("replace", Value::Null),
        ] {
            let mut overrider = json!({"path": path, "operator": operator});
            if !value.is_null() {
                overrider["value"] = value;
            }
            cases.push(one(&object, json!({"plaintext": [overrider]})));
        }
    }
    for list in [
        json!([{"path": "/spec/new", "operator": "add", "value": {}}, {"path": "/spec/new/x", "operator": "add", "value": 1}]),
        json!([{"path": "/spec/list/0", "operator": "remove"}, {"path": "/spec/list/0", "operator": "remove"}]),
        json!([{"path": "/spec/replicas", "operator": "add", "value": 1}, {"path": "/spec/none", "operator": "remove"}]),
        json!([{"path": "/spec/map", "operator": "remove"}, {"path": "/spec/map/a", "operator": "add", "value": 1}]),
        json!([{"path": "/spec/list/1", "operator": "add", "value": "between"}, {"path": "/spec/list/1", "operator": "replace", "value": "x"}]),
        json!([]),
        json!([{"path": "/metadata/annotations", "operator": "replace", "value": {"only": "this"}}]),
        json!([{"path": "/spec/big", "operator": "add", "value": 12345678901234567u64}, {"path": "/spec/float", "operator": "add", "value": 1.5}]),
    ] {
        cases.push(one(&object, json!({"plaintext": list})));
    }
    cases
}

/// Changes inside of documents; texts that other languages could take for something else.
fn patches() -> Vec<(&'static str, &'static str, Value)> {
    vec![
        ("/a/c", "replace", json!("y")),
        ("/a/c", "remove", Value::Null),
        ("/a/new", "add", json!({"k": [1, {"x": true}]})),
        ("/none", "remove", Value::Null),
        ("/none", "replace", json!(1)),
        ("/none/x", "add", json!(1)),
        ("/a/b/0", "remove", Value::Null),
        ("/a/b/-", "add", json!(3)),
        ("/a/b/9", "add", json!(3)),
        ("", "replace", json!({"all": "new"})),
        ("/z", "replace", json!("1")),
        ("/s", "add", json!("no")),
        ("/s", "add", json!("0x1F")),
        ("/s", "add", json!("1e3")),
        ("/s", "add", json!("null")),
        ("/s", "add", json!("~")),
        ("/s", "add", json!("a: b")),
        ("/s", "add", json!("line\nline\n")),
        ("/s", "add", json!("# x")),
        ("/s", "add", json!("")),
        ("/s", "add", json!(" lead")),
        ("/s", "add", json!("2026-01-02")),
        ("/s", "add", json!("12:30")),
        ("/s", "add", json!("y")),
        ("/s", "add", json!("Off")),
        ("/s", "add", json!("1_000")),
        ("/s", "add", json!("0644")),
        ("/s", "add", json!(".5")),
        ("/s", "add", json!("- x")),
        ("/s", "add", json!("{x}")),
        ("/s", "add", json!("tab\there")),
        ("/s", "add", json!("ünï")),
        ("/s", "add", json!(1.5)),
        ("/s", "add", json!(true)),
        ("/s", "add", json!([])),
        ("/s", "add", json!({})),
        ("/s", "add", json!("*x")),
        ("/s", "add", json!("&x")),
        ("/s", "add", json!("!x")),
        ("/s", "add", json!("%x")),
        ("/s", "add", json!("@x")),
        ("/s", "add", json!("'x'")),
        ("/s", "add", json!("x: ")),
        ("/s", "add", json!("trailing ")),
        ("/s", "add", json!("0b1")),
        ("/s", "add", json!("+1")),
        ("/s", "add", json!("0o7")),
        ("/s", "add", json!("1.")),
        ("/s", "add", json!(".inf")),
        ("/s", "add", json!(".NaN")),
        ("/s", "add", json!("=")),
        ("/s", "add", json!("<<")),
        ("/y", "add", json!("key is y")),
        ("/1", "add", json!("key is 1")),
        ("/true", "add", json!("key is true")),
    ]
}

fn documents() -> Vec<Case> {
    let json_text = r#"{"z": 1, "a": {"b": [1, 2], "c": "x"}, "on": "yes", "n": null}"#;
    let yaml_text = "z: 1\na:\n  b:\n  - 1\n  - 2\n  c: x\nenabled: yes\nquoted: \"yes\"\nversion: \"1.0\"\nnumber: 1.0\noctal: 0644\nempty:\nmulti: |\n  one\n  two\nlist:\n- name: q\n  up: true\n";
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta(),
        "data": {"json": json_text, "yaml": yaml_text, "text": "just words", "empty": "", "broken": "{a: [", "list": "[1, 2]"}});
    let mut cases = Vec::new();
    for (path, operator, value) in &patches() {
        for (language, field) in [("json", "json"), ("yaml", "yaml")] {
            let mut patch = json!({"subPath": path, "operator": operator});
            if !value.is_null() {
                patch["value"] = value.clone();
            }
            cases.push(one(
                &object,
                json!({"fieldOverrider": [{"fieldPath": format!("/data/{field}"), language: [patch]}]}),
            ));
        }
    }
    let set = |language: &str, field: &str, path: &str| json!({"fieldOverrider": [{"fieldPath": field, language: [{"subPath": path, "operator": "add", "value": 1}]}]});
    for language in ["json", "yaml"] {
        for (field, path) in [
            ("/data/none", "/x"),
            ("/data", "/x"),
            ("/data/text", "/x"),
            ("/data/empty", "/x"),
            ("/data/broken", "/x"),
            ("/data/list", "/0"),
            ("data/json", "/x"),
            ("/data/json", "x"),
            ("/metadata/generation", "/x"),
            ("/metadata/name", "/x"),
            ("", "/x"),
            ("/data/json", "/a/b/0"),
            ("/data/yaml", "/list/0/up"),
        ] {
            cases.push(one(&object, set(language, field, path)));
        }
    }
    let change = |value: u8| json!([{"subPath": "/z", "operator": "replace", "value": value}]);
    cases.push(one(
        &object,
        json!({"fieldOverrider": [{"fieldPath": "/data/json", "json": change(5), "yaml": change(6)}]}),
    ));
    cases.push(one(&object, json!({"fieldOverrider": [{"fieldPath": "/data/json", "json": change(5)}, {"fieldPath": "/data/json", "json": change(7)}, {"fieldPath": "/data/yaml", "yaml": change(8)}]})));
    cases.push(one(&object, json!({"fieldOverrider": [{"fieldPath": "/data/json"}]})));
    let switched =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta(), "data": {"yaml": "on: push\nz: 1\n"}});
    cases.push(one(&switched, json!({"fieldOverrider": [{"fieldPath": "/data/yaml", "yaml": change(5)}]})));
    cases
}

/// Which policies and rules apply, and in which order.
fn policies() -> Vec<Case> {
    let set =
        |value: &str| json!({"plaintext": [{"path": "/metadata/annotations/by", "operator": "add", "value": value}]});
    let object = workload("Deployment", "nginx");
    let selectors = [
        json!([]),
        json!([{"apiVersion": "apps/v1", "kind": "Deployment"}]),
        json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "it"}]),
        json!([{"apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": {"matchLabels": {"app": "it"}}}]),
        json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "other"}]),
        json!([{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "other"}]),
        json!([{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "ns"}]),
        json!([{"apiVersion": "v1", "kind": "Service"}, {"apiVersion": "apps/v1", "kind": "Deployment", "name": "it"}]),
    ];
    let targets = [
        Value::Null,
        json!({}),
        json!({"clusterNames": ["member1"]}),
        json!({"clusterNames": ["member2"]}),
        json!({"exclude": ["member1"]}),
        json!({"labelSelector": {"matchLabels": {"tier": "gold"}}}),
        json!({"labelSelector": {"matchLabels": {"tier": "lead"}}}),
        json!({"fieldSelector": {"matchExpressions": [{"key": "provider", "operator": "In", "values": ["p1"]}]}}),
        json!({"fieldSelector": {"matchExpressions": [{"key": "region", "operator": "NotIn", "values": ["r1"]}]}}),
        json!({"fieldSelector": {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z1", "z2"]}]}}),
    ];
    let mut cases = Vec::new();
    for (at, first) in selectors.iter().enumerate() {
        for second in &selectors[at..] {
            let spec = |selectors: &Value, value: &str| json!({"resourceSelectors": selectors, "overrideRules": [{"overriders": set(value)}]});
            cases.push(Case {
                object: object.clone(),
                cluster: cluster(),
                cluster_policies: vec![cluster_policy("c", spec(second, "cluster"))],
                policies: vec![policy("b", spec(first, "b")), policy("a", spec(second, "a"))],
            });
        }
    }
    for target in &targets {
        let mut rule = json!({"overriders": set("rule")});
        let mut old = json!({"overriders": set("old")});
        if !target.is_null() {
            rule["targetCluster"] = target.clone();
            old["targetCluster"] = target.clone();
        }
        for spec in [
            json!({"overrideRules": [rule.clone()]}),
            old,
            json!({"overrideRules": [{"overriders": set("first")}, rule]}),
        ] {
            cases.push(Case {
                object: object.clone(),
                cluster: cluster(),
                cluster_policies: Vec::new(),
                policies: vec![policy("o", spec)],
            });
        }
    }
    let mixed = json!({"overrideRules": [{"overriders": set("rule")}], "overriders": set("old")});
    cases.push(Case { object, cluster: cluster(), cluster_policies: Vec::new(), policies: vec![policy("o", mixed)] });
    let all = json!({"imageOverrider": [{"component": "Tag", "operator": "replace", "value": "2"}], "commandOverrider": [{"containerName": "web", "operator": "add", "value": ["c"]}],
        "argsOverrider": [{"containerName": "web", "operator": "remove", "value": ["-a"]}], "labelsOverrider": [{"operator": "add", "value": {"l": "1"}}], "annotationsOverrider": [{"operator": "add", "value": {"n": "1"}}],
        "plaintext": [{"path": "/metadata/labels/l", "operator": "replace", "value": "2"}, {"path": "/spec/template/spec/containers/0/image", "operator": "replace", "value": "last"}]});
    cases.extend(KINDS.iter().filter(|kind| **kind != "Pod").map(|kind| one(&workload(kind, "nginx:1"), all.clone())));
    cases
}

pub fn all() -> Vec<Case> {
    [images(), lists(), maps(), plain(), documents(), policies()].concat()
}
