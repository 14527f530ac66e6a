//! What spreading costs: the number of writes is what a control plane under load is slow by.
#![allow(clippy::unwrap_used)]

mod support;

use atoll_runtime::{Endpoint, Patch};
use futures::StreamExt as _;
use serde_json::json;
use support::{NS, World, deployment, deployments, policies, policy};

const COUNT: u64 = 60;

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
