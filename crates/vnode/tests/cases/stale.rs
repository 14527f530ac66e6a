//! What is known may be old: syncers that are behind, classes that are gone, places that are never found.

use std::sync::Arc;

use atoll_api::kubeocean::ClusterBinding;
use atoll_apiserver::Identity;
use atoll_meta::Status;
use atoll_runtime::{BodyStream, Endpoint, Transport};
use atoll_vnode::{Manager, ShortCut, Worker};
use futures::StreamExt as _;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::pods::{leased, start_pod};
use crate::stage::*;

const VNODE: &str = "vnode-w1-n1";

/// Answers as ever, but tells of no change while it is held.
struct Held {
    through: Endpoint,
    held: watch::Receiver<bool>,
}

#[async_trait::async_trait]
impl Transport for Held {
    async fn send(&self, request: http::Request<bytes::Bytes>) -> Result<http::Response<BodyStream>, Status> {
        let follows = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let answer = self.through.transport().send(request).await?;
        if !follows {
            return Ok(answer);
        }
        let held = self.held.clone();
        Ok(answer.map(|body| -> BodyStream {
            Box::pin(body.then(move |piece| {
                let mut held = held.clone();
                async move {
                    // An error means that the test is over.
                    let _ = held.wait_for(|held| !held).await;
                    piece
                }
            }))
        }))
    }
}

#[tokio::test(start_paused = true)]
async fn a_syncer_that_is_behind_harms_nothing_that_another_made() {
    let stage = Stage::open().await;
    let (hold, held) = watch::channel(false);
    let mut options = stage.options();
    let slow = Held { through: stage.compute.clone(), held };
    options.computing = Endpoint::new("compute", Arc::new(slow), "atoll-vnode");
    let _behind = Manager::start(options, stage.stop.child_token()).await;
    make_node(&stage.w1, "n1", "4", "8Gi").await;
    make_policy(&stage.w1, "p1", "w1", json!({})).await;
    stage.bind("w1", json!({})).await;
    until_there(&stage.compute, &nodes(), None, VNODE).await;
    start_pod(&stage, &pod("web", VNODE, "1")).await;
    run(&stage.w1, MOUNT, &below("default", "web"), "n1").await;
    let is_running = |pod: Option<&Value>| pod.is_some_and(|pod| pod["status"]["phase"] == "Running");
    until(&stage.compute, &pods(), Some("default"), "web", is_running).await;

    // From here on the first one knows only the pod that was.
    hold.send(true).unwrap();
    let _present = stage.start().await;
    kill(&stage.compute, "default", "web").await;
    crate::corners::until_going(&stage.w1, MOUNT, &below("default", "web")).await;
    kill(&stage.w1, MOUNT, &below("default", "web")).await;
    let second = make_pod(&stage.compute, &pod("web", VNODE, "1")).await;
    let made = until(&stage.w1, &pods(), Some(MOUNT), &below("default", "web"), |pod| {
        pod.is_some_and(|pod| annotation(pod, "virtual-pod-uid") == second["metadata"]["uid"])
    })
    .await
    .unwrap();
    stage.pass(120).await;
    let kept = stage.w1.get(&pods(), Some(MOUNT), &below("default", "web")).await.unwrap();
    assert_eq!(kept["metadata"]["uid"], made["metadata"]["uid"]);
    assert!(kept["metadata"]["deletionTimestamp"].is_null(), "it runs for the pod that is");
    let above = stage.compute.get(&pods(), Some("default"), "web").await.unwrap();
    assert_ne!(above["status"]["phase"], "Failed", "what is said of the first does not hit the second");
    hold.send(false).unwrap();
    run(&stage.w1, MOUNT, &below("default", "web"), "n1").await;
    until(&stage.compute, &pods(), Some("default"), "web", is_running).await;
}

#[tokio::test(start_paused = true)]
async fn a_priority_class_that_is_gone_is_made_again_when_it_is_missed() {
    let (stage, _manager) = leased(json!({})).await;
    start_pod(&stage, &pod("web", VNODE, "1")).await;
    stage.w1.delete(&classes(), None, "kubeocean-default", &json!({})).await.unwrap();
    start_pod(&stage, &pod("more", VNODE, "1")).await;
    until_there(&stage.w1, &classes(), None, "kubeocean-default").await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_without_a_place_is_told_so_and_given_up_only_if_it_is_made_again() {
    let (stage, _manager) = leased(json!({})).await;
    for own in [&pod("web", VNODE, "1"), &job()] {
        let physical = start_pod(&stage, own).await;
        let full =
            json!({"status": {"conditions": [{"type": "PodScheduled", "status": "False", "message": "no room"}]}});
        let name = physical["metadata"]["name"].as_str().unwrap();
        patch(&stage.w1, &pods(), Some(MOUNT), name, "status", full).await;
    }
    stage.pass(290).await;
    assert_eq!(stage.w1.list(&pods(), Some(MOUNT), "").await.unwrap().items.len(), 2, "it has five minutes");
    let failed = |pod: Option<&Value>| pod.is_some_and(|pod| pod["status"]["phase"] == "Failed");
    until(&stage.compute, &pods(), Some("default"), "job", failed).await;
    until_gone(&stage.w1, &pods(), Some(MOUNT), &below("default", "job")).await;
    stage.pass(600).await;
    until_there(&stage.w1, &pods(), Some(MOUNT), &below("default", "web")).await;
    let events = stage.compute.list(&events(), Some("default"), "").await.unwrap().items;
    for name in ["web", "job"] {
        let own = events.iter().filter(|event| event["involvedObject"]["name"] == name);
        let told: Vec<&Value> = own.filter(|event| event["reason"] == "FailedSchedulingPod").collect();
        assert_eq!(told.len(), 1, "{name} is told once: {told:#?}");
        assert!(told[0]["message"].as_str().unwrap().ends_with("no room"), "{}", told[0]);
    }
}

/// A pod that its controller makes again when it is given up.
fn job() -> Value {
    let mut job = pod("job", VNODE, "1");
    job["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": true}]);
    job
}

#[tokio::test(start_paused = true)]
async fn the_workers_clock_may_be_behind_without_harm() {
    let stage = Stage::open().await;
    let (mut options, clock) = (stage.options(), stage.clock.clone());
    options.clock = Arc::new(move || clock().checked_add(jiff::SignedDuration::from_hours(1)).unwrap());
    let _manager = Manager::start(options, stage.stop.child_token()).await;
    make_node(&stage.w1, "n1", "4", "8Gi").await;
    make_policy(&stage.w1, "p1", "w1", json!({})).await;
    stage.bind("w1", json!({})).await;
    until_there(&stage.compute, &nodes(), None, VNODE).await;
    start_pod(&stage, &job()).await;
    stage.pass(280).await;
    let there = stage.w1.get(&pods(), Some(MOUNT), &below("default", "job")).await.unwrap();
    assert!(there["metadata"]["deletionTimestamp"].is_null(), "it has five minutes: {there:#}");
    until_gone(&stage.w1, &pods(), Some(MOUNT), &below("default", "job")).await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_found_its_place_unheard_is_not_given_up() {
    let stage = Stage::open().await;
    let (hold, held) = watch::channel(false);
    let (mut options, hub) = (stage.options(), stage.hub.clone());
    options.workers = ShortCut::new(move |_: &ClusterBinding, _: &str| {
        let mut worker = Worker::in_process(&hub, "w1", Identity::master("vnode"));
        let slow = Held { through: worker.endpoint.clone(), held: held.clone() };
        worker.endpoint = Endpoint::new("w1", Arc::new(slow), "atoll-vnode");
        Some(worker)
    });
    let _manager = Manager::start(options, stage.stop.child_token()).await;
    make_node(&stage.w1, "n1", "4", "8Gi").await;
    make_policy(&stage.w1, "p1", "w1", json!({})).await;
    stage.bind("w1", json!({})).await;
    until_there(&stage.compute, &nodes(), None, VNODE).await;
    let name = below("default", "job");
    start_pod(&stage, &job()).await;
    let is_known = |pod: Option<&Value>| pod.is_some_and(|pod| !annotation(pod, "physical-pod-uid").is_empty());
    until(&stage.compute, &pods(), Some("default"), "job", is_known).await;
    stage.pass(10).await;
    hold.send(true).unwrap();
    run(&stage.w1, MOUNT, &name, "n1").await;
    stage.pass(330).await;
    let there = stage.w1.get(&pods(), Some(MOUNT), &name).await.unwrap();
    assert!(there["metadata"]["deletionTimestamp"].is_null(), "{there:#}");
    hold.send(false).unwrap();
    let is_running = |pod: Option<&Value>| pod.is_some_and(|pod| pod["status"]["phase"] == "Running");
    until(&stage.compute, &pods(), Some("default"), "job", is_running).await;
}
