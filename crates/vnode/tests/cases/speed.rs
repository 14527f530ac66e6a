//! How fast pods are mapped; run with `--ignored --nocapture`.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::stage::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn pods_are_mapped_quickly() {
    let (node_count, pod_count) = (100, 5000);
    let (stage, _manager) = Stage::play().await;
    for node in 0..node_count {
        make_node(&stage.w1, &format!("n{node}"), "64", "256Gi").await;
    }
    make_policy(&stage.w1, "p1", "w1", json!({})).await;
    let started = Instant::now();
    stage.bind("w1", json!({})).await;
    until_there(&stage.compute, &nodes(), None, &format!("vnode-w1-n{}", node_count - 1)).await;
    while stage.compute.list(&nodes(), None, "").await.unwrap().items.len() < node_count {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    println!("{node_count} nodes after {:?}", started.elapsed());
    let started = Instant::now();
    for index in 0..pod_count {
        make_pod(&stage.compute, &pod(&format!("p{index}"), &format!("vnode-w1-n{}", index % node_count), "10m")).await;
    }
    println!("{pod_count} pods made after {:?}", started.elapsed());
    loop {
        let there = stage.w1.list(&pods(), Some(MOUNT), "").await.unwrap().items.len();
        if there == pod_count {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let took = started.elapsed();
    println!("{pod_count} pods mapped after {took:?}: {:.0} per second", pod_count as f64 / took.as_secs_f64());
    let mut times = Vec::new();
    for index in 0..200 {
        let name = format!("late{index}");
        let started = Instant::now();
        make_pod(&stage.compute, &pod(&name, "vnode-w1-n0", "10m")).await;
        while stage.w1.get_opt(&pods(), Some(MOUNT), &below("default", &name)).await.unwrap().is_none() {
            tokio::time::sleep(Duration::from_micros(200)).await;
        }
        times.push(started.elapsed());
    }
    times.sort();
    println!("bind to physical pod: p50 {:?}, p99 {:?}", times[100], times[197]);
}
