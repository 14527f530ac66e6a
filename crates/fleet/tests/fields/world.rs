//! The clusters and the template that all cases are about.

use atoll_placement::{Capacity, Cluster, Snapshot, Taint};
use serde_json::{Value, json};

/// Four clusters; the last one has a taint.
pub fn clusters() -> Snapshot {
    let build = |name: &str, region: &str, provider: &str, env: &str, rack: &str, pods: i64| Cluster {
        name: name.into(),
        region: region.to_owned(),
        provider: provider.to_owned(),
        zones: vec![format!("{region}a")],
        labels: [("env", env), ("rack", rack)].map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
        apis: ["apps/v1/Deployment".into()].into(),
        capacity: Capacity::new(pods, []),
        ..Cluster::default()
    };
    let mut tainted = build("m4", "r2", "p2", "prod", "c", 10);
    let taint = Taint { key: "gpu".to_owned(), value: "yes".to_owned(), effect: "NoSchedule".to_owned() };
    tainted.taints = vec![taint.into()];
    Snapshot::new([
        build("m1", "r1", "p1", "prod", "a", 10),
        build("m2", "r1", "p2", "test", "b", 20),
        build("m3", "r2", "p1", "prod", "b", 30),
        tainted,
    ])
}

/// A Deployment that refers to a ConfigMap.
pub fn template() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default", "uid": "u", "resourceVersion": "7", "generation": 1,
            "labels": {"app": "web", "tier": "front"}, "annotations": {"note": "x"}},
        "spec": {"replicas": 6, "template": {"spec": {
            "containers": [{"name": "c", "image": "reg.io/team/app:v1", "command": ["run"], "args": ["-a"]}],
            "volumes": [{"name": "v", "configMap": {"name": "settings"}}]}}},
        "data": {"json": r#"{"a":1,"b":2}"#, "yaml": "a: 1\nb: 2\n"}})
}

/// A policy of a kind as the instance has it.
pub fn object(name: &str, spec: &Value, namespaced: bool) -> Value {
    let mut meta = json!({"name": name, "uid": name, "resourceVersion": "5"});
    if namespaced {
        meta["namespace"] = "default".into();
    }
    json!({"metadata": meta, "spec": spec})
}
