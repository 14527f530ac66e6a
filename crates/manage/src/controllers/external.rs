//! States of instances elsewhere: whether they answer, and their version.

use std::sync::Arc;
use std::time::Duration;

use atoll_apiserver::Identity;
use atoll_meta::{Status, time};
use atoll_runtime::{Change, Informer, Patch, Selection};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::context::Core;
use crate::kinds::INSTANCE;

/// How often an external instance is asked.
const PERIOD: Duration = Duration::from_secs(15);
/// How long it may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Keeps the states until `stop`.
pub async fn run(core: Arc<Core>, stop: CancellationToken) {
    let told = Arc::new(Notify::new());
    let teller = told.clone();
    let _informer =
        Informer::start(core.own_endpoint("root"), INSTANCE.gvr(), Selection::default(), move |change: Change| {
            // What is only stated of an instance is no reason to ask it.
            if !change.keeps_generation() && change.item().tree()["spec"]["type"] == "External" {
                teller.notify_one();
            }
        });
    loop {
        let list =
            core.own_endpoint("root").list(&INSTANCE.gvr(), None, "").await.map(|list| list.items).unwrap_or_default();
        let asked = list
            .into_iter()
            .filter(|object| object["spec"]["type"] == "External")
            .map(|object| tell(core.clone(), object));
        futures::future::join_all(asked).await;
        tokio::select! {
            () = stop.cancelled() => return,
            () = told.notified() => {}
            () = tokio::time::sleep(PERIOD) => {}
        }
    }
}

async fn tell(core: Arc<Core>, object: Value) {
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let answer = tokio::time::timeout(PATIENCE, version(&core, &name))
        .await
        .unwrap_or_else(|_| Err(Status::timeout("no answer", 1)));
    let (phase, ready, reason, message, version) = match answer {
        Ok(version) => ("Ready", "True", "Answers", "the instance answers".to_owned(), version),
        Err(status) => (
            "Failed",
            "False",
            "NoAnswer",
            status.message,
            object["status"]["version"].as_str().unwrap_or_default().to_owned(),
        ),
    };
    let old = &object["status"]["conditions"][0];
    if object["status"]["phase"] == phase
        && old["message"] == message.as_str()
        && object["status"]["version"] == version.as_str()
    {
        return;
    }
    let since =
        if old["status"] == ready { old["lastTransitionTime"].clone() } else { time::format(core.hub.now()).into() };
    let change = json!({"status": {
        "phase": phase, "version": version, "observedGeneration": object["metadata"]["generation"],
        "conditions": [{"type": "Ready", "status": ready, "reason": reason, "message": message, "lastTransitionTime": since}],
    }});
    if let Err(status) =
        core.own_endpoint("root").patch(&INSTANCE.gvr(), None, &name, "status", Patch::Merge, &change).await
    {
        tracing::debug!(name, %status, "state not written");
    }
}

async fn version(core: &Core, name: &str) -> Result<String, Status> {
    let own = Identity::master("system:atoll:manage");
    let endpoint = core
        .externals
        .endpoint(core, name, &own)
        .await?
        .ok_or_else(|| Status::not_found("atoll.io", "instances", name))?;
    let answer = endpoint.get_path("/version").await?;
    Ok(answer["gitVersion"].as_str().unwrap_or_default().to_owned())
}
