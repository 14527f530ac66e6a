//! How fast copies reach members. The limits are loose: this also runs unoptimised on busy machines.
#![allow(clippy::unwrap_used)]

mod support;

use std::time::{Duration, Instant};

use serde_json::json;
use support::{World, deployment, deployments, policies, policy};

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_reach_three_members_fast() {
    let world = World::start(3).await;
    world.instance.create(&policies(), Some("default"), &policy("p", json!({}))).await.unwrap();
    let rounds = number("FLEET_ROUNDS", 20);
    let mut times = Vec::new();
    for round in 0..rounds {
        let name = format!("one-{round}");
        let begin = Instant::now();
        world.instance.create(&deployments(), Some("default"), &deployment(&name, 1)).await.unwrap();
        for member in ["m1", "m2", "m3"] {
            while world.member(member).get_opt(&deployments(), Some("default"), &name).await.unwrap().is_none() {
                tokio::time::sleep(Duration::from_micros(200)).await;
            }
        }
        times.push(begin.elapsed());
    }
    times.sort();
    println!("apply to last of three members: p50 {:?}, max {:?}", times[rounds / 2], times[rounds - 1]);

    let count = number("FLEET_COUNT", 100);
    let begin = Instant::now();
    let create = |index: usize| {
        let instance = world.instance.clone();
        async move {
            instance.create(&deployments(), Some("default"), &deployment(&format!("many-{index}"), 1)).await.unwrap()
        }
    };
    futures::StreamExt::collect::<Vec<_>>(futures::StreamExt::buffer_unordered(
        futures::stream::iter((0..count).map(create)),
        16,
    ))
    .await;
    let created = begin.elapsed();
    for member in ["m1", "m2", "m3"] {
        loop {
            let list = world.member(member).list(&deployments(), Some("default"), "").await.unwrap();
            if list.items.len() == count + rounds {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    let all = begin.elapsed();
    let writes = |endpoint: &atoll_runtime::Endpoint| {
        let endpoint = endpoint.clone();
        async move { endpoint.list(&deployments(), Some("default"), "").await.unwrap().revision.parse::<u64>().unwrap() }
    };
    tokio::time::sleep(Duration::from_millis(1500)).await;
    println!("writes: instance {}, m1 {}", writes(&world.instance).await, writes(world.member("m1")).await);
    println!("{count} Deployments: created in {created:?}, all {} copies after {all:?}", count * 3);
    assert!(times[rounds / 2] < Duration::from_millis(500) && all < Duration::from_secs(60));
}
