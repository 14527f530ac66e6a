//! Thousands of nearly empty instances must cost next to nothing.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, missing_docs)]

mod suite;

use atoll_store::{Engine as _, Expect, MemoryEngine};
use suite::{key, pod, put};

fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

#[tokio::test]
async fn an_instance_with_two_objects_takes_a_few_kibibytes() {
    const INSTANCES: u64 = 5_000;
    let engine = MemoryEngine::new();
    engine.create_instance("warm").await.unwrap();
    let before = resident();
    for number in 0..INSTANCES {
        let id = engine.create_instance(&format!("i{number}")).await.unwrap();
        let writes = vec![put(key("a"), Expect::Absent, "1"), put(pod("b"), Expect::Absent, "2")];
        engine.commit(id, writes).await.unwrap();
    }
    let each = (resident() - before) / INSTANCES;
    println!("{each} bytes per instance with two objects and their history");
    assert!(each < 5 * 1024, "{each} bytes");
}
