//! A manager that dies at every single step of making and deleting a pod; the next one finishes.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use atoll_api::kubeocean::ClusterBinding;
use atoll_apiserver::Identity;
use atoll_meta::Status;
use atoll_runtime::{BodyStream, Endpoint, Transport};
use atoll_vnode::{Manager, Options, ShortCut, Worker};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::stage::*;

const VNODE: &str = "vnode-w1-n1";

/// Lets so many writes through and then none; the last one may have its effect without an answer.
struct Mortal {
    through: Endpoint,
    /// Writes left; below zero is dead.
    left: Arc<AtomicI64>,
    /// Whether the deadly write still has its effect.
    after: bool,
    death: CancellationToken,
}

#[async_trait::async_trait]
impl Transport for Mortal {
    async fn send(&self, request: http::Request<bytes::Bytes>) -> Result<http::Response<BodyStream>, Status> {
        let dead = || Status::unavailable("dead");
        if self.left.load(Ordering::SeqCst) < 0 {
            return Err(dead());
        }
        // Leases are renewed by the clock, not by what is done; they are no step.
        let write = *request.method() != http::Method::GET
            && !request.uri().path().contains("/leases")
            && !request.uri().path().contains("selfsubjectaccessreviews");
        if write && self.left.fetch_sub(1, Ordering::SeqCst) == 0 {
            if self.after {
                let _ = self.through.transport().send(request).await;
            }
            self.death.cancel();
            return Err(dead());
        }
        self.through.transport().send(request).await
    }
}

fn options(stage: &Stage, left: &Arc<AtomicI64>, after: bool, death: &CancellationToken) -> Options {
    let mortal = |through: Endpoint| Mortal { through, left: left.clone(), after, death: death.clone() };
    let (hub, left, death) = (stage.hub.clone(), left.clone(), death.clone());
    let mut options = stage.options();
    options.computing = Endpoint::new("compute", Arc::new(mortal(stage.compute.clone())), "atoll-vnode");
    options.workers = ShortCut::new(move |_: &ClusterBinding, _: &str| {
        let mut worker = Worker::in_process(&hub, "w1", Identity::master("vnode"));
        let through = Mortal { through: worker.endpoint.clone(), left: left.clone(), after, death: death.clone() };
        worker.endpoint = Endpoint::new("w1", Arc::new(through), "atoll-vnode");
        Some(worker)
    });
    options
}

/// Plays a life in which a manager dies at write `step`; says whether it lived to the end.
async fn life(step: i64, after: bool) -> bool {
    let stage = Stage::open().await;
    let (left, death) = (Arc::new(AtomicI64::new(i64::MAX)), CancellationToken::new());
    let first = stage.stop.child_token();
    let manager = Manager::start(options(&stage, &left, after, &death), first.clone()).await;
    make_node(&stage.w1, "n1", "4", "8Gi").await;
    make_policy(&stage.w1, "p1", "w1", json!({})).await;
    stage.bind("w1", json!({})).await;
    until_there(&stage.compute, &nodes(), None, VNODE).await;
    until(&stage.compute, &bindings(), None, "w1", |own| own.is_some_and(|own| own["status"]["phase"] == "Ready"))
        .await;
    stage.pass(30).await;
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"}, "data": {"k": "v"}});
    stage.compute.create(&configs(), Some("default"), &config).await.unwrap();

    // From here every write counts.
    left.store(step, Ordering::SeqCst);
    let successor = {
        let (death, first) = (death.clone(), first.clone());
        let (options, stop) = (stage.options(), stage.stop.child_token());
        tokio::spawn(async move {
            death.cancelled().await;
            first.cancel();
            manager.ended().await;
            Manager::start(options, stop).await
        })
    };
    let mut web = pod("web", VNODE, "1");
    web["spec"]["volumes"] = json!([{"name": "c", "configMap": {"name": "c"}}]);
    make_pod(&stage.compute, &web).await;
    let name = below("default", "web");
    until_there(&stage.w1, &pods(), Some(MOUNT), &name).await;
    run(&stage.w1, MOUNT, &name, "n1").await;
    until(&stage.compute, &pods(), Some("default"), "web", |own| {
        own.is_some_and(|own| own["status"]["phase"] == "Running")
    })
    .await;
    assert_eq!(stage.w1.list(&pods(), Some(MOUNT), "").await.unwrap().items.len(), 1, "exactly one, step {step}");
    stage.compute.delete(&pods(), Some("default"), "web", &json!({})).await.unwrap();
    until(&stage.w1, &pods(), Some(MOUNT), &name, |own| {
        own.is_none_or(|own| own["metadata"]["deletionTimestamp"].is_string())
    })
    .await;
    kill(&stage.w1, MOUNT, &name).await;
    until_gone(&stage.compute, &pods(), Some("default"), "web").await;
    until_gone(&stage.w1, &configs(), Some(MOUNT), &below("default", "c")).await;
    until(&stage.compute, &configs(), Some("default"), "c", |own| {
        own.is_some_and(|own| label(own, "managed-by").is_empty())
    })
    .await;
    assert!(stage.w1.list(&pods(), Some(MOUNT), "").await.unwrap().items.is_empty(), "no orphan, step {step}");
    let lived = !death.is_cancelled();
    successor.abort();
    stage.stop.cancel();
    lived
}

#[tokio::test(start_paused = true)]
async fn a_manager_that_dies_at_any_step_is_continued_by_the_next() {
    for after in [false, true] {
        let mut step = 0;
        while !life(step, after).await {
            step += 1;
            assert!(step < 60, "a pod does not take so many writes");
        }
        assert!(step >= 5, "only {step} steps: the manager hardly did anything");
    }
}
