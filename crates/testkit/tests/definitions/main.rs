//! Definitions of other projects: accepted, defaulted, pruned and rejected as the original does.
//!
//! Every definition goes into Atoll and into a real kube-apiserver, then objects made from its schema, right
//! ones and wrong ones. Answers are compared; errors as sets, because the original tells them in any order.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod generate;
#[path = "../differential/normal.rs"]
mod normal;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use atoll_meta::Gvr;
use atoll_runtime::{Endpoint, collect};
use atoll_testkit::{Cluster, Parts, TestServer, peers};
use generate::{Dice, Maker};
use http::Request;
use serde_json::{Value, json};

/// Objects of each served version.
const OBJECTS: u64 = 24;

/// What came back, without what differs between any two servers.
#[derive(Debug, PartialEq)]
struct Answer {
    code: u16,
    warnings: BTreeSet<String>,
    body: Value,
}

async fn send(side: &Endpoint, path: &str, object: &Value) -> Answer {
    let request = Request::post(path)
        .header("content-type", "application/json")
        .header("accept", "application/json")
        .header("user-agent", "definitions/1.0")
        .body(object.to_string().into())
        .unwrap();
    let answer = side.transport().send(request).await.unwrap();
    let (parts, stream) = answer.into_parts();
    let bytes = collect(stream).await.unwrap();
    let mut body: Value = serde_json::from_slice(&bytes).unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into());
    normal::value(&mut body);
    if body["kind"] == "Status" {
        unordered(&mut body);
    }
    let warnings = parts.headers.get_all("warning").iter();
    let warnings = warnings.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect();
    Answer { code: parts.status.as_u16(), warnings, body }
}

/// The original finds faults in the order of its maps, which is none.
fn unordered(status: &mut Value) {
    if let Some(causes) = status.pointer_mut("/details/causes").and_then(Value::as_array_mut) {
        causes.sort_by_key(Value::to_string);
        causes.dedup();
    }
    let text = status["message"].as_str().unwrap_or_default();
    let (head, rest) = text.split_once(": ").unwrap_or((text, ""));
    let mut parts: Vec<&str> = rest.trim_matches(['[', ']']).split(", ").collect();
    parts.sort_unstable();
    parts.dedup();
    let message = format!("{head}: {}", parts.join(", "));
    status["message"] = message.into();
}

/// The definitions in manifests.
fn definitions(files: Vec<PathBuf>) -> Vec<Value> {
    let texts = files.into_iter().map(|path| std::fs::read_to_string(path).unwrap());
    let parts: Vec<String> =
        texts.flat_map(|text| text.split("\n---\n").map(ToOwned::to_owned).collect::<Vec<_>>()).collect();
    let trees = parts.iter().filter_map(|text| serde_saphyr::from_str::<Value>(text).ok());
    trees.filter(|tree| tree["kind"] == "CustomResourceDefinition").collect()
}

fn all() -> Vec<Value> {
    let mut files = peers::karmada_definitions();
    files.extend(peers::certificate_definitions());
    files.extend(["kubeocean", "clusterpedia"].map(peers::reference_definitions).concat());
    definitions(files)
}

async fn established(side: &Endpoint, definition: &Value) -> Value {
    let gvr = Gvr::new("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    let name = definition["metadata"]["name"].as_str().unwrap();
    if let Err(status) = side.create(&gvr, None, definition).await {
        return json!({"refused": normal::text(&status.message)});
    }
    let since = Instant::now();
    loop {
        let mut stored = side.get(&gvr, None, name).await.unwrap();
        let conditions = stored["status"]["conditions"].as_array().cloned().unwrap_or_default();
        if conditions.iter().any(|own| own["type"] == "Established" && own["status"] == "True") {
            normal::value(&mut stored);
            for field in ["managedFields", "generation"] {
                stored["metadata"].as_object_mut().unwrap().remove(field);
            }
            let types: BTreeSet<String> =
                conditions.iter().map(|own| format!("{}={}", own["type"], own["status"])).collect();
            stored["status"]["conditions"] = json!(types);
            return stored;
        }
        assert!(since.elapsed() < Duration::from_secs(30), "{name} is not established: {stored}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Waits until objects of a definition can be made; the original serves them a little later.
async fn served(side: &Endpoint, path: &str) {
    let since = Instant::now();
    while side.get_path(path).await.is_err() {
        assert!(since.elapsed() < Duration::from_secs(30), "{path} is not served");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Makes objects of one version on both sides and tells where the answers differ.
async fn objects(
    theirs: &Endpoint,
    ours: &Endpoint,
    definition: &Value,
    version: &Value,
) -> (usize, usize, Vec<String>) {
    let spec = &definition["spec"];
    let (group, plural) = (spec["group"].as_str().unwrap(), spec["names"]["plural"].as_str().unwrap());
    let (kind, name) = (spec["names"]["kind"].as_str().unwrap(), version["name"].as_str().unwrap());
    let namespace = if spec["scope"] == "Namespaced" { "namespaces/default/" } else { "" };
    let path = format!("/apis/{group}/{name}/{namespace}{plural}");
    served(theirs, &path).await;
    served(ours, &path).await;
    let schema = &version["schema"]["openAPIV3Schema"];
    let (mut accepted, mut refused, mut different) = (0, 0, Vec::new());
    for number in 0..OBJECTS {
        // The first are right as far as the dice know, later ones have more and more mistakes.
        let mut maker = Maker { dice: Dice::new(number * 7919 + plural.len() as u64), wrong: number / 4 };
        let object = maker.object(schema, &format!("{group}/{name}"), kind, &format!("made-{number}"));
        let validation = ["Strict", "Warn", "Ignore"][number as usize % 3];
        let path = format!("{path}?dryRun=All&fieldValidation={validation}");
        let (a, b) = tokio::join!(send(theirs, &path, &object), send(ours, &path, &object));
        if a.code == 201 {
            accepted += 1;
        } else {
            refused += 1;
        }
        if a != b {
            different.push(format!(
                "{plural}/{name} {number} {validation}\n  object {object}\n  theirs {} {:?} {}\n  ours   {} {:?} {}",
                a.code, a.warnings, a.body, b.code, b.warnings, b.body
            ));
        }
    }
    (accepted, refused, different)
}

#[test]
fn definitions_of_others_are_treated_as_the_original_treats_them() {
    let Some(cluster) = Cluster::start(Parts::default()).unwrap() else { return };
    let server = TestServer::memory().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (mut counts, mut different) = ((0, 0), Vec::new());
    runtime.block_on(async {
        let theirs = cluster.endpoint().await.unwrap();
        let ours = atoll_testkit::remote("ours", &server.kubeconfig()).await.unwrap();
        let all = all();
        for definition in &all {
            let name = definition["metadata"]["name"].as_str().unwrap();
            let (a, b) = tokio::join!(established(&theirs, definition), established(&ours, definition));
            if a != b {
                different.push(format!("{name}\n  theirs {a}\n  ours   {b}"));
            }
            if !a["refused"].is_null() {
                continue;
            }
            for version in
                definition["spec"]["versions"].as_array().into_iter().flatten().filter(|own| own["served"] == true)
            {
                let (accepted, refused, more) = objects(&theirs, &ours, definition, version).await;
                counts = (counts.0 + accepted, counts.1 + refused);
                different.extend(more);
            }
        }
        println!("definitions: {} with {} accepted and {} refused objects", all.len(), counts.0, counts.1);
        let enough = |count: usize| count >= 3 * all.len();
        assert!(enough(counts.0) && enough(counts.1), "the generator makes right and wrong objects");
    });
    for text in different.iter().take(20) {
        eprintln!("{}", text.chars().take(3000).collect::<String>());
    }
    assert!(different.is_empty(), "{} of {} answers differ", different.len(), counts.0 + counts.1);
}
