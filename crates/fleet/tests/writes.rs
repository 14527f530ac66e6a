//! What spreading costs: the number of writes is what a control plane under load is slow by.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use atoll_fleet::keys::TemplateKey;
use atoll_meta::{Gvk, Status};
use atoll_runtime::{BodyStream, Endpoint, Patch, Transport};
use bytes::Bytes;
use futures::StreamExt as _;
use http::{Method, Request, Response, StatusCode};
use serde_json::json;
use support::{NS, World, core, deployment, deployments, map_policy, marked_map, policies, policy, works};

const COUNT: u64 = 60;
const MANY: u64 = 200;

/// Counts the works that were to be made though they were there.
struct Counting {
    inner: Arc<dyn Transport>,
    twice: AtomicUsize,
}

#[async_trait::async_trait]
impl Transport for Counting {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<BodyStream>, Status> {
        let makes = request.method() == Method::POST && request.uri().path().ends_with("/works");
        let answer = self.inner.send(request).await?;
        if makes && answer.status() == StatusCode::CONFLICT {
            self.twice.fetch_add(1, Ordering::Relaxed);
        }
        Ok(answer)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_work_is_made_twice() {
    let mut world = World::new(3).await;
    let plain = world.instance.clone();
    let counting = Arc::new(Counting { inner: plain.transport().clone(), twice: AtomicUsize::new(0) });
    world.instance = Endpoint::new("fleet", counting.clone(), "test");
    world.run(|_| {}).await;
    world.instance = plain;
    for name in ["m1", "m2", "m3"] {
        world.join(name, json!({})).await;
    }
    world.instance.create(&policies(), NS, &policy("p", json!({}))).await.unwrap();
    let create = |at: u64| {
        let instance = world.instance.clone();
        async move { drop(instance.create(&deployments(), NS, &deployment(&format!("web-{at}"), 1)).await.unwrap()) }
    };
    futures::stream::iter((0..MANY).map(create)).buffer_unordered(16).collect::<Vec<()>>().await;
    let all = async || {
        let mut copies = Vec::new();
        for member in &world.members {
            copies.push(member.list(&deployments(), NS, "").await.unwrap().items.len() as u64);
        }
        copies == [MANY; 3]
    };
    world.eventually("all copies are there", all).await;
    let twice = counting.twice.load(Ordering::Relaxed);
    println!("{twice} of {} works were made twice", 3 * MANY);
    assert_eq!(twice, 0);
}

async fn revision(endpoint: &Endpoint) -> u64 {
    endpoint.list(&policies(), NS, "").await.unwrap().revision.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn spreading_to_three_members_takes_few_writes_and_telling_states_takes_fewer() {
    let world = World::start(3).await;
    world.instance.create(&policies(), NS, &policy("p", json!({}))).await.unwrap();
    let before = revision(&world.instance).await;
    let create = |at: u64| {
        let instance = world.instance.clone();
        async move { drop(instance.create(&deployments(), NS, &deployment(&format!("web-{at}"), 1)).await.unwrap()) }
    };
    futures::stream::iter((0..COUNT).map(create)).buffer_unordered(16).collect::<Vec<()>>().await;
    let applied = async |at: u64| {
        let condition = world.condition(&format!("web-{at}-deployment"), "FullyApplied").await;
        condition["status"] == "True"
    };
    for at in 0..COUNT {
        world.eventually("all copies are there and told of", async || applied(at).await).await;
    }
    let spread = (revision(&world.instance).await - before) as f64 / COUNT as f64;
    // The template and its claim, the binding, three works and their first states, the binding's and the template's.
    assert!(spread <= 15.0, "{spread} writes for each template");

    // Three steps of three copies each: told as often as there is time for, not nine times.
    let before = revision(&world.instance).await;
    for ready in 1..=3 {
        for at in 0..COUNT {
            for member in ["m1", "m2", "m3"] {
                let status = json!({"status": {"observedGeneration": 1, "replicas": 3, "updatedReplicas": 3, "readyReplicas": ready, "availableReplicas": ready}});
                let name = format!("web-{at}");
                world.member(member).patch(&deployments(), NS, &name, "status", Patch::Merge, &status).await.unwrap();
            }
        }
    }
    for at in 0..COUNT {
        let told = async || {
            let template = world.instance.get(&deployments(), NS, &format!("web-{at}")).await.unwrap();
            template["status"]["readyReplicas"] == 9
        };
        world.eventually("the template counts nine", told).await;
    }
    let states = (revision(&world.instance).await - before) as f64 / COUNT as f64;
    assert!(states <= 27.0, "{states} writes for nine changes of states");
    println!("writes for each template: {spread:.1} to spread it, {states:.1} for nine changes of states");
}

/// Holds back what is told of works while it is shut.
struct Late {
    inner: Arc<dyn Transport>,
    shut: tokio::sync::watch::Sender<bool>,
}

#[async_trait::async_trait]
impl Transport for Late {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<BodyStream>, Status> {
        let follows =
            request.uri().path().ends_with("/works") && request.uri().query().is_some_and(|q| q.contains("watch"));
        let answer = self.inner.send(request).await?;
        if !follows {
            return Ok(answer);
        }
        let shut = self.shut.subscribe();
        Ok(answer.map(|body| -> BodyStream {
            Box::pin(body.then(move |piece| {
                let mut shut = shut.clone();
                async move {
                    let _ = shut.wait_for(|shut| !shut).await;
                    piece
                }
            }))
        }))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_is_taken_back_before_its_work_was_heard_of_is_taken_back_in_the_work() {
    let mut world = World::new(1).await;
    let plain = world.instance.clone();
    let late = Arc::new(Late { inner: plain.transport().clone(), shut: tokio::sync::watch::Sender::new(false) });
    world.instance = Endpoint::new("fleet", late.clone(), "test");
    world.run(|_| {}).await;
    world.instance = plain;
    world.join("m1", json!({})).await;
    world.instance.create(&policies(), NS, &map_policy("p", "s", json!({}))).await.unwrap();
    world.instance.create(&core("configmaps"), NS, &marked_map("settings", "s", "1")).await.unwrap();
    let applied = async || world.condition("settings-configmap", "FullyApplied").await["status"] == "True";
    world.eventually("all that happened was heard of", applied).await;
    let ordered = async || {
        let works = world.instance.list(&works(), Some("karmada-es-m1"), "").await.unwrap().items;
        let manifests = works.iter().map(|work| &work["spec"]["workload"]["manifests"][0]);
        let own = manifests.filter(|manifest| manifest["metadata"]["name"] == "settings");
        own.map(|manifest| manifest["data"]["value"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    late.shut.send_replace(true);
    let set = async |value: &str| {
        let change = json!({"data": {"value": value}});
        world.instance.patch(&core("configmaps"), NS, "settings", "", Patch::Merge, &change).await.unwrap();
    };
    set("2").await;
    world.eventually("the work says it", async || ordered().await == ["2"]).await;
    set("1").await;
    let gvk = Arc::new(Gvk::new("", "v1", "ConfigMap"));
    let key = TemplateKey { gvk, namespace: "default".into(), name: "settings".into() };
    let seen = async || {
        let item = world.fleet.as_ref().unwrap().core().templates.find(&key);
        item.is_some_and(|item| item.tree()["data"]["value"] == "1")
    };
    world.eventually("the change back is known", seen).await;
    world
        .eventually("it was looked at", async || world.fleet.as_ref().unwrap().core().queues.templates.is_empty())
        .await;
    late.shut.send_replace(false);
    world.eventually("the work says what the template says", async || ordered().await == ["1"]).await;
    world.in_member("m1", &core("configmaps"), "settings", |copy| copy["data"]["value"] == "1").await;
}
