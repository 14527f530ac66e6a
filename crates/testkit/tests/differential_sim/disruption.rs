//! A budget refuses an eviction, then allows one.

use atoll_meta::Gvr;
use serde_json::{Value, json};

use crate::deployment::{deployment, done};
use crate::side::{Side, plain, pods, status};

async fn a_pod(side: &Side) -> String {
    let mut list = side.list(&pods()).await;
    list.retain(|pod| pod["metadata"]["deletionTimestamp"].is_null());
    list[0]["metadata"]["name"].as_str().unwrap().to_owned()
}

fn allows(count: i64) -> impl Fn(&Value) -> bool {
    move |object| {
        object["status"]["observedGeneration"] == object["metadata"]["generation"]
            && object["status"]["disruptionsAllowed"] == count
            && object["status"]["currentHealthy"] == 3
    }
}

pub async fn story(side: Side) -> Vec<String> {
    let (budgets, deployments) =
        (Gvr::new("policy", "v1", "poddisruptionbudgets"), Gvr::new("apps", "v1", "deployments"));
    let mut seen = Vec::new();
    side.create(&deployments, deployment(3, "a:1")).await;
    side.until(&deployments, "web", done).await;
    side.create(
        &budgets,
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
               "spec": {"minAvailable": 3, "selector": {"matchLabels": {"app": "web"}}}}),
    )
    .await;
    seen.push(format!("strict: {}", status(&side.until(&budgets, "web", allows(0)).await)));
    seen.push(plain(&side.evict(&a_pod(&side).await).await));
    side.merge(&budgets, "web", json!({"spec": {"minAvailable": "50%"}})).await;
    seen.push(format!("looser: {}", status(&side.until(&budgets, "web", allows(1)).await)));
    seen.push(plain(&side.evict(&a_pod(&side).await).await));
    side.until(&deployments, "web", done).await;
    side.until(&budgets, "web", allows(1)).await;
    side.merge(&budgets, "web", json!({"spec": {"minAvailable": null, "maxUnavailable": 0}})).await;
    let closed = side.until(&budgets, "web", allows(0)).await;
    seen.push(plain(&format!("closed: {}", status(&closed))));
    seen.push(plain(&side.evict(&a_pod(&side).await).await));
    seen.push(side.evict("nosuch").await);
    seen
}
