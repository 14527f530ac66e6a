//! Our definitions against the originals: names, versions, columns and every node of the schema.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::PathBuf;

use atoll_api::{CrdSet, crds};
use atoll_testkit::peers;
use serde_json::{Value, json};

/// Differences that are meant, each with its reason: file name, path, reason.
const MEANT: &[(&str, &str, &str)] = &[
    (
        "multicluster.x-k8s.io_serviceexports.yaml",
        "names.listKind",
        "the original leaves it to the server, which fills in the same",
    ),
    (
        "multicluster.x-k8s.io_serviceimports.yaml",
        "names.listKind",
        "the original leaves it to the server, which fills in the same",
    ),
    (
        "cloud.tencent.com_resourceleasingpolicies.yaml",
        "versions[0].schema.openAPIV3Schema.properties.spec.properties.timeWindows.items.properties.timeZone",
        "an addition: the original knows only the zone of its own process",
    ),
    (
        "cloud.tencent.com_resourceleasingpolicies.yaml",
        "versions[0].schema.openAPIV3Schema.properties.spec.properties.allow",
        "an addition: the lessor says what leased pods may do",
    ),
    ("work.karmada.io_resourcebindings.yaml", CLUSTER_COMPONENTS, NEXT),
    ("work.karmada.io_resourcebindings.yaml", SNAPSHOT_COMPONENTS, NEXT),
    ("work.karmada.io_clusterresourcebindings.yaml", CLUSTER_COMPONENTS, NEXT),
    ("work.karmada.io_clusterresourcebindings.yaml", SNAPSHOT_COMPONENTS, NEXT),
];
const CLUSTER_COMPONENTS: &str =
    "versions[1].schema.openAPIV3Schema.properties.spec.properties.clusters.items.properties.components";
const SNAPSHOT_COMPONENTS: &str = "versions[1].schema.openAPIV3Schema.properties.spec.properties.requiredBy.items.properties.clusters.items.properties.components";
const NEXT: &str = "an addition of Karmada's next release, which places sets of components";

/// The originals by file name.
fn read(files: &[PathBuf]) -> BTreeMap<String, Value> {
    let read = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, serde_saphyr::from_str::<Value>(&std::fs::read_to_string(path).unwrap()).unwrap())
    };
    files.iter().map(read).collect()
}

/// Makes equal what means the same: prose away, order of `required` and `enum` fixed, empty values away.
fn normal(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut out = serde_json::Map::new();
            for (key, inner) in map {
                if key == "description" && inner.is_string() {
                    continue;
                }
                let mut inner = normal(inner);
                if matches!(key.as_str(), "required" | "enum")
                    && let Value::Array(names) = &mut inner
                {
                    names.sort_by_key(ToString::to_string);
                }
                if (key == "subresources" && inner == json!({})) || (key == "priority" && inner == json!(0)) {
                    continue;
                }
                out.insert(key.clone(), inner);
            }
            Value::Object(out)
        }
        Value::Array(items) => Value::Array(items.iter().map(normal).collect()),
        Value::Number(number) => number.as_f64().map_or(value.clone(), |number| json!(number)),
        other => other.clone(),
    }
}

fn differences(path: &str, theirs: &Value, ours: &Value, out: &mut Vec<(String, String)>) {
    match (theirs, ours) {
        (Value::Object(theirs), Value::Object(ours)) => {
            let keys: std::collections::BTreeSet<_> = theirs.keys().chain(ours.keys()).collect();
            for key in keys {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                match (theirs.get(key), ours.get(key)) {
                    (Some(theirs), Some(ours)) => differences(&path, theirs, ours, out),
                    (theirs, ours) => out.push((path, format!("theirs {theirs:?}, ours {ours:?}"))),
                }
            }
        }
        (Value::Array(theirs), Value::Array(ours)) if theirs.len() == ours.len() => {
            for (index, (theirs, ours)) in theirs.iter().zip(ours).enumerate() {
                differences(&format!("{path}[{index}]"), theirs, ours, out);
            }
        }
        (theirs, ours) if theirs != ours => out.push((path.to_owned(), format!("theirs {theirs}, ours {ours}"))),
        _ => {}
    }
}

fn compare(originals: &[PathBuf], set: CrdSet, left_out: &[&str]) {
    let originals = read(originals);
    let ours: BTreeMap<String, Value> =
        crds(set).into_iter().map(|crd| (crd["metadata"]["name"].as_str().unwrap().to_owned(), crd)).collect();
    let mut failures = Vec::new();
    let mut compared = 0;
    for (file, original) in &originals {
        let name = original["metadata"]["name"].as_str().unwrap();
        if left_out.contains(&name) {
            continue;
        }
        let Some(our) = ours.get(name) else {
            failures.push(format!("{file}: not defined"));
            continue;
        };
        compared += 1;
        let mut found = Vec::new();
        differences("", &normal(&original["spec"]), &normal(&our["spec"]), &mut found);
        for (path, what) in found {
            match MEANT.iter().find(|(meant, at, _)| meant == file && *at == path) {
                Some((_, _, reason)) => println!("{file}: {path}: meant, {reason}"),
                None => failures.push(format!("{file}: {path}: {what}")),
            }
        }
    }
    println!("{set:?}: {compared} definitions compared");
    assert!(failures.is_empty(), "{} differences\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn karmada_definitions_are_the_originals() {
    compare(&peers::karmada_definitions(), CrdSet::Karmada, &[]);
}

#[test]
fn kubeocean_definitions_are_the_originals() {
    // Log collection belongs to one vendor's log service and is not served.
    compare(&peers::reference_definitions("kubeocean"), CrdSet::Kubeocean, &["logconfigs.cls.cloud.tencent.com"]);
}

#[test]
fn clusterpedia_definitions_are_the_originals() {
    compare(&peers::reference_definitions("clusterpedia"), CrdSet::Clusterpedia, &[]);
}
