//! A Deployment is rolled out, updated, scaled, paused, resumed and taken back.

use atoll_meta::Gvr;
use serde_json::{Value, json};

use crate::side::{Side, condition, event_about, events, plain, status, template};

fn deployments() -> Gvr {
    Gvr::new("apps", "v1", "deployments")
}

pub fn deployment(replicas: u32, image: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
           "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template("web", image)}})
}

fn image(name: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": name}]}}}})
}

/// Nothing is left to do, and it is said so.
pub fn done(object: &Value) -> bool {
    let count = |field: &str| object["status"][field].as_i64().unwrap_or_default();
    let wanted = object["spec"]["replicas"].as_i64().unwrap_or_default();
    count("observedGeneration") == object["metadata"]["generation"].as_i64().unwrap_or_default()
        && ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"]
            .iter()
            .all(|field| count(field) == wanted)
        && condition(object, "Progressing").is_some_and(|said| said == "True NewReplicaSetAvailable")
        && count("terminatingReplicas") == 0
}

fn conditions(object: &Value, _gone: bool) -> Vec<(String, String)> {
    let said =
        ["Available", "Progressing"].iter().filter_map(|kind| Some(((*kind).to_owned(), condition(object, kind)?)));
    // Whether anybody writes a step in between down depends on who was faster.
    said.filter(|(_, said)| said != "True ReplicaSetUpdated").collect()
}

fn scaling(event: &Value, gone: bool) -> Vec<(String, String)> {
    event_about(event, "Deployment").filter(|_| !gone).into_iter().collect()
}

/// The sets of a Deployment by revision. How often one was touched depends on who was faster.
async fn sets(side: &Side) -> Vec<String> {
    let mut rows: Vec<String> = Vec::new();
    for mut set in side.list(&Gvr::new("apps", "v1", "replicasets")).await {
        set["status"]["observedGeneration"] =
            (set["status"]["observedGeneration"] == set["metadata"]["generation"]).into();
        let note = |key: &str| set["metadata"]["annotations"][format!("deployment.kubernetes.io/{key}")].clone();
        rows.push(format!(
            "set of {}: revision {} after {}, replicas {}, desired {}, at most {}, {}",
            set["spec"]["template"]["spec"]["containers"][0]["image"],
            note("revision"),
            note("revision-history"),
            set["spec"]["replicas"],
            note("desired-replicas"),
            note("max-replicas"),
            status(&set),
        ));
    }
    rows.sort();
    rows
}

/// With two or three replicas the usual strategy goes pod by pod, so that every step is the same on both sides.
pub async fn story(side: Side) -> Vec<String> {
    let gvr = deployments();
    let said = side.record(&gvr, conditions).await;
    let told = side.record(&events(), scaling).await;
    let mut seen = Vec::new();
    side.create(&gvr, deployment(2, "a:1")).await;
    side.until(&gvr, "web", done).await;
    side.merge(&gvr, "web", image("a:2")).await;
    let updated = side.until(&gvr, "web", done).await;
    seen.push(format!("updated: {}", status(&updated)));
    side.merge(&gvr, "web", json!({"spec": {"replicas": 3}})).await;
    side.until(&gvr, "web", done).await;

    side.merge(&gvr, "web", json!({"spec": {"paused": true}})).await;
    side.until(&gvr, "web", |object| condition(object, "Progressing").is_some_and(|said| said.ends_with("Paused")))
        .await;
    side.merge(&gvr, "web", image("a:3")).await;
    let paused = side
        .until(&gvr, "web", |object| object["status"]["observedGeneration"] == object["metadata"]["generation"])
        .await;
    seen.push(format!("paused: {}", status(&paused)));
    seen.push(format!("sets while paused: {}", sets(&side).await.len()));
    side.merge(&gvr, "web", json!({"spec": {"paused": false}})).await;
    side.until(&gvr, "web", done).await;
    side.merge(&gvr, "web", image("a:1")).await;
    let back = side.until(&gvr, "web", done).await;
    let number = &back["metadata"]["annotations"]["deployment.kubernetes.io/revision"];
    seen.push(format!("taken back: revision {number}, {}", status(&back)));
    seen.extend(sets(&side).await);

    side.merge(&gvr, "web", json!({"spec": {"strategy": {"type": "Recreate", "rollingUpdate": null}}})).await;
    side.until(&gvr, "web", done).await;
    side.merge(&gvr, "web", image("a:4")).await;
    side.until(&gvr, "web", done).await;
    side.merge(&gvr, "web", json!({"spec": {"replicas": 0}})).await;
    let empty = side.until(&gvr, "web", done).await;
    seen.push(plain(&format!("empty: {}", status(&empty))));
    seen.extend(said.steps(&empty).await);
    seen.extend(told.lines(&["from 3 to 0"]).await);
    seen
}
