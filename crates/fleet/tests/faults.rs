//! Members that fail, answers that get lost, a hub that dies: in the end members hold exactly what policies say.
#![allow(clippy::unwrap_used)]

mod support;

#[path = "support/network.rs"]
mod network;
#[path = "support/real.rs"]
mod real;
#[path = "support/trial.rs"]
mod trial;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use atoll_fleet::NamedMembers;
use network::{faulty, run};
use serde_json::{Value, json};
use support::{NS, World, bindings, clusters, deployment, deployments, policies, policy};
use trial::{MEMBERS, Trial};

#[tokio::test(flavor = "multi_thread")]
async fn after_many_random_faults_members_hold_exactly_what_policies_say() {
    Trial::new(World::new(3).await).await.hold().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_many_random_faults_real_members_hold_exactly_what_policies_say() {
    let Some((_clusters, members)) = real::start(&MEMBERS).await else { return };
    Trial::new(World::with_members(members).await).await.hold().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_dies_delays_nobody_and_loses_nothing() {
    let mut world = World::new(2).await;
    let (ways, named, _) = faulty(&world, 1);
    run(&mut world, &named).await;
    for name in ["m1", "m2"] {
        world.join(name, json!({})).await;
    }
    world.instance.create(&policies(), NS, &policy("p", json!({}))).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("before", 1)).await.unwrap();
    for name in ["m1", "m2"] {
        world.in_member(name, &deployments(), "before", |_| true).await;
    }
    ways[0].cut.store(true, Ordering::Relaxed);
    world.instance.create(&deployments(), NS, &deployment("during", 1)).await.unwrap();
    world.in_member("m2", &deployments(), "during", |_| true).await;
    world
        .eventually("the trouble with m1 is told", async || {
            let binding =
                world.instance.get_opt(&bindings(), NS, "during-deployment").await.unwrap().unwrap_or_default();
            let items = binding["status"]["aggregatedStatus"].as_array().cloned().unwrap_or_default();
            items.iter().any(|item| {
                item["clusterName"] == "m1" && item["appliedMessage"].as_str().is_some_and(|text| text.contains("lost"))
            })
        })
        .await;
    world.eventually("and an event tells of it", async || world.told("SyncFailed").await).await;
    // A template that is deleted meanwhile is removed there too, once the member is back.
    world.instance.delete(&deployments(), NS, "before", &Value::Null).await.unwrap();
    world.not_in_member("m2", &deployments(), "before").await;
    assert!(world.member("m1").get_opt(&deployments(), NS, "before").await.unwrap().is_some());
    ways[0].cut.store(false, Ordering::Relaxed);
    world.in_member("m1", &deployments(), "during", |_| true).await;
    world.not_in_member("m1", &deployments(), "before").await;
    let cluster = world.instance.get(&clusters(), None, "m1").await.unwrap();
    assert!(cluster["metadata"]["deletionTimestamp"].is_null());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_member_can_be_removed() {
    let mut world = World::new(1).await;
    let (ways, named, _) = faulty(&world, 1);
    let members = Arc::new(NamedMembers::new(named));
    world
        .run(|options| {
            options.members = members;
            options.probe_interval = Duration::from_millis(200);
            options.probe_threshold = Duration::from_millis(500);
        })
        .await;
    world.join("m1", json!({})).await;
    world.instance.create(&policies(), NS, &policy("p", json!({}))).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("web", 1)).await.unwrap();
    world.in_member("m1", &deployments(), "web", |_| true).await;
    ways[0].cut.store(true, Ordering::Relaxed);
    world
        .eventually("the member is known to be gone", async || {
            let cluster = world.instance.get(&clusters(), None, "m1").await.unwrap();
            cluster["status"]["conditions"]
                .as_array()
                .into_iter()
                .flatten()
                .any(|c| c["type"] == "Ready" && c["status"] == "False")
        })
        .await;
    atoll_fleet::unjoin(&world.instance, None, "m1", Duration::from_secs(20)).await.unwrap();
    assert!(
        world.member("m1").get_opt(&deployments(), NS, "web").await.unwrap().is_some(),
        "what cannot be reached stays"
    );
}
