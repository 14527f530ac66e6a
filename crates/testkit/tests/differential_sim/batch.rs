//! Jobs complete, wait and are numbered; a CronJob starts one.

use atoll_meta::Gvr;
use serde_json::{Value, json};

use crate::side::{Side, condition, event_about, events, status};

fn jobs() -> Gvr {
    Gvr::new("batch", "v1", "jobs")
}

fn spec(more: Value) -> Value {
    let mut spec = json!({"template": {"spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0,
                                                "containers": [{"name": "c", "image": "busybox", "command": ["true"]}]}}});
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    spec
}

fn job_of(name: &str, more: Value) -> Value {
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec(more)})
}

fn conditions(object: &Value, _gone: bool) -> Vec<(String, String)> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let list = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let said: Vec<String> =
        list.iter().map(|one| format!("{} {} {}", one["type"], one["status"], one["reason"])).collect();
    vec![(format!("conditions of {name}"), said.join(", "))]
}

/// Several pods are told of in any order, so only how many and by whom.
fn told(event: &Value, gone: bool) -> Vec<(String, String)> {
    let name = event["involvedObject"]["name"].as_str().unwrap_or_default();
    let found = event_about(event, "Job").filter(|_| !gone);
    found.map(|(_, line)| (format!("events of Job {name}"), line)).into_iter().collect()
}

fn complete(object: &Value) -> bool {
    condition(object, "Complete").is_some_and(|said| said.starts_with("True"))
}

pub async fn job(side: Side) -> Vec<String> {
    let gvr = jobs();
    let said = side.record(&gvr, conditions).await;
    let events = side.record(&events(), told).await;
    let mut seen = Vec::new();
    side.create(&gvr, job_of("job", json!({"completions": 3, "parallelism": 1}))).await;
    seen.push(format!("job: {}", status(&side.until(&gvr, "job", complete).await)));
    side.create(&gvr, job_of("indexed", json!({"completions": 3, "parallelism": 1, "completionMode": "Indexed"})))
        .await;
    seen.push(format!("indexed: {}", status(&side.until(&gvr, "indexed", complete).await)));
    side.create(&gvr, job_of("later", json!({"suspend": true}))).await;
    let waits = side.until(&gvr, "later", |object| condition(object, "Suspended").is_some()).await;
    seen.push(format!("suspended: {}", status(&waits)));
    side.merge(&gvr, "later", json!({"spec": {"suspend": false}})).await;
    let resumed = side.until(&gvr, "later", complete).await;
    seen.push(format!("resumed: {}", status(&resumed)));
    seen.extend(said.steps(&resumed).await);
    seen.extend(events.lines(&["events of Job later: Normal Completed"]).await);
    seen
}

fn told_of_cron(event: &Value, gone: bool) -> Vec<(String, String)> {
    event_about(event, "CronJob").filter(|_| !gone).into_iter().collect()
}

pub async fn cron(side: Side) -> Vec<String> {
    let gvr = Gvr::new("batch", "v1", "cronjobs");
    let events = side.record(&events(), told_of_cron).await;
    let mut seen = Vec::new();
    side.create(
        &gvr,
        json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "tick"},
               "spec": {"schedule": "* * * * *", "jobTemplate": {"metadata": {"labels": {"made": "by"}}, "spec": spec(json!({}))}}}),
    )
    .await;
    let after = side.until(&gvr, "tick", |object| object["status"].get("lastSuccessfulTime").is_some()).await;
    side.merge(&gvr, "tick", json!({"spec": {"suspend": true}})).await;
    seen.push(format!("after: {}", status(&after)));
    // Whether the next minute comes before the suspension depends on when this one began.
    let first = side.list(&jobs()).await.into_iter().next().unwrap_or_default();
    let owner = &first["metadata"]["ownerReferences"][0];
    seen.push(format!(
        "job: {} {} {} {}",
        first["metadata"]["labels"], owner["kind"], owner["name"], owner["controller"]
    ));
    for line in events.lines(&["SawCompletedJob"]).await {
        let mut told: Vec<&str> = Vec::new();
        for one in line.split(" → ").map(|one| one.trim_start_matches("events of CronJob: ")) {
            if !told.contains(&one) {
                told.push(one);
            }
        }
        seen.push(format!("events of CronJob: {}", told.join(" → ")));
    }
    seen
}
