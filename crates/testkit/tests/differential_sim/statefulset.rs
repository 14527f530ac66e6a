//! A StatefulSet comes, is updated, held back and goes in order.

use atoll_meta::Gvr;
use serde_json::{Value, json};

use crate::side::{Side, event_about, events, pods, status, template};

fn sets() -> Gvr {
    Gvr::new("apps", "v1", "statefulsets")
}

/// In which order pods of an image come and go. A controller that is late makes one of the old image once more, so that
/// only the first time one comes and the last time it goes count.
fn order(lines: Vec<String>) -> Vec<String> {
    let tidy = |line: String| {
        let (subject, names) = line.split_once(": ").expect("a subject");
        let mut names: Vec<&str> = names.split(" → ").collect();
        let mut seen = std::collections::HashSet::new();
        if subject.starts_with("gone") {
            names.reverse();
            names.retain(|name| seen.insert(*name));
            names.reverse();
        } else {
            names.retain(|name| seen.insert(*name));
        }
        format!("{subject}: {}", names.join(" → "))
    };
    lines.into_iter().map(tidy).collect()
}

fn comings(pod: &Value, gone: bool) -> Vec<(String, String)> {
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    let image = pod["spec"]["containers"][0]["image"].as_str().unwrap_or_default();
    vec![(format!("{} with {image}", if gone { "gone" } else { "there" }), name.to_owned())]
}

fn told(event: &Value, gone: bool) -> Vec<(String, String)> {
    event_about(event, "StatefulSet").filter(|_| !gone).into_iter().collect()
}

fn done(object: &Value) -> bool {
    let count = |field: &str| object["status"][field].as_i64().unwrap_or_default();
    let wanted = object["spec"]["replicas"].as_i64().unwrap_or_default();
    let held = object["spec"]["updateStrategy"]["rollingUpdate"]["partition"].as_i64().unwrap_or_default();
    count("observedGeneration") == object["metadata"]["generation"].as_i64().unwrap_or_default()
        && ["replicas", "readyReplicas", "availableReplicas"].iter().all(|field| count(field) == wanted)
        && (held > 0 && count("updatedReplicas") == wanted - held && count("currentReplicas") == held
            || object["status"]["currentRevision"] == object["status"]["updateRevision"])
}

pub async fn story(side: Side) -> Vec<String> {
    let gvr = sets();
    let pods_seen = side.record(&pods(), comings).await;
    let events = side.record(&events(), told).await;
    let image = |name: &str| json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": name}]}}}});
    let mut seen = Vec::new();
    side.create(
        &gvr,
        json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"},
               "spec": {"replicas": 3, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}}, "template": template("db", "a:1")}}),
    )
    .await;
    seen.push(format!("made: {}", status(&side.until(&gvr, "db", done).await)));
    side.merge(&gvr, "db", image("a:2")).await;
    seen.push(format!("updated: {}", status(&side.until(&gvr, "db", done).await)));
    side.merge(&gvr, "db", json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 2}}}})).await;
    side.until(&gvr, "db", done).await;
    side.merge(&gvr, "db", image("a:3")).await;
    seen.push(format!("held back: {}", status(&side.until(&gvr, "db", done).await)));
    for pod in side.list(&pods()).await {
        let meta = &pod["metadata"];
        let labels = ["apps.kubernetes.io/pod-index", "statefulset.kubernetes.io/pod-name"]
            .map(|key| meta["labels"][key].clone());
        let spec = &pod["spec"];
        seen.push(format!(
            "{}: {} {labels:?} {} {}",
            meta["name"], spec["containers"][0]["image"], spec["hostname"], spec["subdomain"]
        ));
    }
    side.merge(&gvr, "db", json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})).await;
    side.until(&gvr, "db", done).await;
    side.merge(&gvr, "db", json!({"spec": {"replicas": 1}})).await;
    seen.push(format!("smaller: {}", status(&side.until(&gvr, "db", done).await)));
    let revisions = side.list(&Gvr::new("apps", "v1", "controllerrevisions")).await;
    let mut numbers: Vec<String> = revisions.iter().map(|one| one["revision"].to_string()).collect();
    numbers.sort();
    seen.push(format!("revisions: {}", numbers.join(" ")));
    seen.extend(order(pods_seen.lines(&["gone with a:3: db-1"]).await));
    seen.extend(events.lines(&["Delete Pod db-1"]).await);
    seen
}
