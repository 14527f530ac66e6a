//! Members that fail, answers that get lost, a hub that dies: in the end members hold exactly what policies say.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use atoll_fleet::NamedMembers;
use atoll_meta::Status;
use atoll_runtime::{BodyStream, Endpoint, Patch, Transport, WatchEvent};
use bytes::Bytes;
use futures::StreamExt as _;
use http::{Request, Response};
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};
use support::{World, bindings, clusters, config_map, core, deployment, deployments, policies, policy, works};

const NS: Option<&str> = Some("default");

/// Loses requests and answers, delays some and breaks off watches, as a bad network does. What is sent arrives, also when its sender dies.
struct Faulty {
    inner: Arc<dyn Transport>,
    home: tokio::runtime::Handle,
    random: Mutex<StdRng>,
    /// How many of a hundred requests fail.
    rate: AtomicU32,
    faults: Arc<AtomicU32>,
    cut: AtomicBool,
}

#[async_trait::async_trait]
impl Transport for Faulty {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<BodyStream>, Status> {
        let lost = || {
            self.faults.fetch_add(1, Ordering::Relaxed);
            Err(Status::unavailable("the network lost it"))
        };
        if self.cut.load(Ordering::Relaxed) {
            return lost();
        }
        let (dice, late) = {
            let mut random = self.random.lock();
            (random.random_range(0..200), random.random_range(0..2000_u64))
        };
        let rate = self.rate.load(Ordering::Relaxed);
        if dice < rate {
            return lost();
        }
        let watches = request.uri().query().is_some_and(|query| query.contains("watch="));
        let inner = self.inner.clone();
        let sent = self.home.spawn(async move {
            // Lateness is the fault, so there is nothing to wait for.
            if rate > 0 && late < 150 {
                tokio::time::sleep(Duration::from_millis(late)).await;
            }
            inner.send(request).await
        });
        let answer = sent.await.unwrap_or_else(|_| Err(Status::unavailable("the test is over")));
        // The request arrived, the answer does not.
        if dice < rate * 2 {
            return lost();
        }
        // What is followed breaks off in the middle.
        if watches && rate > 0 && late < 1000 {
            self.faults.fetch_add(1, Ordering::Relaxed);
            let pieces = usize::try_from(late % 7).unwrap_or_default();
            return answer.map(|answer| answer.map(|body| -> BodyStream { Box::pin(body.take(pieces)) }));
        }
        answer
    }
}

fn faulty(world: &World, seed: u64) -> (Vec<Arc<Faulty>>, Vec<(String, Endpoint)>, Arc<AtomicU32>) {
    let faults = Arc::new(AtomicU32::new(0));
    let ways: Vec<Arc<Faulty>> = (0u64..)
        .zip(&world.members)
        .map(|(number, member)| {
            Arc::new(Faulty {
                inner: member.transport().clone(),
                home: tokio::runtime::Handle::current(),
                random: Mutex::new(StdRng::seed_from_u64(seed + number)),
                rate: AtomicU32::new(0),
                faults: faults.clone(),
                cut: AtomicBool::new(false),
            })
        })
        .collect();
    let named = world.members.iter().zip(&ways).map(|(member, way)| {
        let transport: Arc<dyn Transport> = way.clone();
        (member.name().to_owned(), Endpoint::new(member.name(), transport, "atoll-fleet"))
    });
    (ways.clone(), named.collect(), faults)
}

async fn run(world: &mut World, named: &[(String, Endpoint)]) {
    let members = Arc::new(NamedMembers::new(named.to_vec()));
    world
        .run_apart(|options| {
            options.members = members;
            options.probe_interval = Duration::from_millis(300);
            options.probe_threshold = Duration::from_millis(600);
        })
        .await;
}

/// What a member holds of ours, as name → data.
async fn held(member: &Endpoint) -> BTreeMap<String, Value> {
    let list = member.list(&core("configmaps"), NS, "labelSelector=karmada.io%2Fmanaged%3Dtrue").await.unwrap();
    list.items
        .into_iter()
        .map(|map| (map["metadata"]["name"].as_str().unwrap().to_owned(), map["data"].clone()))
        .collect()
}

/// Waits until a member holds what policies say; tells where it does not.
async fn agrees(world: &World, name: &str, expected: &BTreeMap<String, Value>, seed: u64) {
    let member = world.member(name);
    if world.comes_true(async || held(member).await == *expected).await {
        return;
    }
    let held = held(member).await;
    let all: BTreeSet<&String> = held.keys().chain(expected.keys()).collect();
    for map in all.into_iter().filter(|map| held.get(*map) != expected.get(*map)) {
        println!("{map}: {:?} instead of {:?}", held.get(map), expected.get(map));
        println!("{:#}", member.get_opt(&core("configmaps"), NS, map).await.unwrap().unwrap_or_default());
        let binding = format!("{map}-configmap");
        println!("{:#}", world.instance.get_opt(&bindings(), NS, &binding).await.unwrap().unwrap_or_default());
        let works = world.instance.list(&works(), Some(&format!("karmada-es-{name}")), "").await.unwrap();
        let own = works
            .items
            .iter()
            .find(|work| work["spec"]["workload"]["manifests"][0]["metadata"]["name"].as_str() == Some(map));
        println!("{:#}", own.unwrap_or(&Value::Null));
    }
    panic!("never so: {name} holds what policies say (seed {seed})");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_many_random_faults_members_hold_exactly_what_policies_say() {
    let seed = std::env::var("FLEET_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(7);
    let mut random = StdRng::seed_from_u64(seed);
    let mut world = World::new(3).await;
    let (ways, named, faults) = faulty(&world, seed);
    run(&mut world, &named).await;
    for name in ["m1", "m2", "m3"] {
        world.join(name, json!({})).await;
    }
    let maps = json!({"resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": {"matchLabels": {"spread": "yes"}}}]});
    world.instance.create(&policies(), NS, &policy("p", maps)).await.unwrap();
    let template = |name: &str, value: u32| {
        let mut map = config_map(name, json!({"value": value.to_string()}));
        map["metadata"]["labels"] = json!({"spread": "yes"});
        map
    };
    world.instance.create(&core("configmaps"), NS, &template("keeper", 1)).await.unwrap();
    let mut uids = BTreeMap::new();
    for member in ["m1", "m2", "m3"] {
        let copy = world.in_member(member, &core("configmaps"), "keeper", |_| true).await;
        uids.insert(member, copy["metadata"]["uid"].clone());
    }
    let mut expected: BTreeMap<String, Value> = BTreeMap::from([("keeper".to_owned(), json!({"value": "1"}))]);
    ways.iter().for_each(|way| way.rate.store(40, Ordering::Relaxed));
    let mut deleted: BTreeSet<String> = BTreeSet::new();
    let mut begin = BTreeMap::new();
    for name in ["m1", "m2", "m3"] {
        begin.insert(name, world.member(name).list(&core("configmaps"), NS, "").await.unwrap().revision);
    }
    let mut step = 0_u32;
    while step < 60 || faults.load(Ordering::Relaxed) < 200 {
        step += 1;
        let name = format!("map-{}", random.random_range(0..12));
        let data = json!({"value": step.to_string()});
        match (random.random_range(0..4), expected.contains_key(&name)) {
            (0, true) => {
                world.instance.delete(&core("configmaps"), NS, &name, &Value::Null).await.unwrap();
                expected.remove(&name);
                deleted.insert(name);
            }
            (_, true) => {
                world
                    .instance
                    .patch(&core("configmaps"), NS, &name, "", Patch::Merge, &json!({"data": data}))
                    .await
                    .unwrap();
                expected.insert(name, data);
            }
            (_, false) => {
                world.instance.create(&core("configmaps"), NS, &template(&name, step)).await.unwrap();
                expected.insert(name, data);
            }
        }
        if step % 20 == 10 {
            // The hub dies in the middle and comes back, or is held up and ends its last steps beside the next one;
            // a member is cut off for a while.
            if random.random_bool(0.5) {
                world.kill()
            } else {
                world.crash()
            }
            ways[0].cut.store(true, Ordering::Relaxed);
            run(&mut world, &named).await;
        }
        if step % 20 == 15 {
            ways[0].cut.store(false, Ordering::Relaxed);
        }
        // The next change comes at any moment of the work on this one: no event may set the pace.
        tokio::time::sleep(Duration::from_millis(random.random_range(0..40))).await;
    }
    for way in &ways {
        way.rate.store(0, Ordering::Relaxed);
        way.cut.store(false, Ordering::Relaxed);
    }
    for name in ["m1", "m2", "m3"] {
        let member = world.member(name);
        agrees(&world, name, &expected, seed).await;
        let copy = member.get(&core("configmaps"), NS, "keeper").await.unwrap();
        assert_eq!(copy["metadata"]["uid"], uids[name], "what nobody changed was never deleted");
        // What was deleted in between is still told by the history, up to a mark that is set now.
        member.create(&core("configmaps"), NS, &config_map("mark", json!({}))).await.unwrap();
        let mut events = member.watch(&core("configmaps"), NS, "", &begin[name]).await.unwrap();
        loop {
            match events.next().await.unwrap().unwrap() {
                WatchEvent::Added(map) if map["metadata"]["name"] == "mark" => break,
                WatchEvent::Deleted(map) => {
                    let gone = map["metadata"]["name"].as_str().unwrap();
                    assert!(deleted.contains(gone), "{gone} was deleted in {name} and nobody asked for that");
                }
                _ => {}
            }
        }
    }
    let count = faults.load(Ordering::Relaxed);
    println!("{count} faults, seed {seed}");
    assert!(count >= 200, "only {count} faults");
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
