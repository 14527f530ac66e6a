//! A seeded run of random changes over a bad network, after which members must hold exactly what policies say.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use atoll_meta::Gvr;
use atoll_runtime::{Endpoint, Patch, WatchEvent};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::network::{Faulty, faulty, run};
use super::support::{
    NS, World, bindings, config_map, core, deployment, deployments, map_policy, marked_map, policies, policy, works,
};

/// The names of the members.
pub const MEMBERS: [&str; 3] = ["m1", "m2", "m3"];

/// Weights of the members, one after the other. Every sum divides twelve, so that no replica is left over whose place
/// would be a matter of tie-breaks.
const WEIGHTS: [[i64; 3]; 5] = [[1, 2, 3], [3, 2, 1], [2, 1, 1], [1, 1, 1], [1, 1, 4]];

/// A world under changes and faults, and what its policies and templates say by now.
pub struct Trial {
    world: World,
    ways: Vec<Arc<Faulty>>,
    named: Vec<(String, Endpoint)>,
    faults: Arc<AtomicU32>,
    seed: u64,
    random: StdRng,
    /// ConfigMaps that all members get, with their data.
    maps: BTreeMap<String, Value>,
    /// Deployments that are divided, with their replicas and images.
    workloads: BTreeMap<String, (i64, String)>,
    weights: [i64; 3],
    /// What was deleted on purpose at any time.
    deleted: BTreeSet<String>,
}

/// What one member told while the run went on.
struct Witness {
    member: String,
    /// What nobody manages.
    bystander: Value,
    /// The uids of copies that nobody ever asks to delete.
    keepers: [Value; 2],
    /// Names of what was deleted, up to a mark; for each kind.
    deletions: [JoinHandle<BTreeSet<String>>; 2],
}

fn kinds() -> [Gvr; 2] {
    [core("configmaps"), deployments()]
}

fn weighted(weights: [i64; 3]) -> Value {
    let entry = |(member, weight): (&str, i64)| json!({"targetCluster": {"clusterNames": [member]}, "weight": weight});
    let list: Vec<Value> = MEMBERS.into_iter().zip(weights).map(entry).collect();
    // A member that is away for a while keeps its share.
    let patient = ["not-ready", "unreachable"]
        .map(|key| json!({"key": format!("cluster.karmada.io/{key}"), "operator": "Exists"}));
    json!({"placement": {"clusterTolerations": patient, "replicaScheduling": {"replicaSchedulingType": "Divided",
        "replicaDivisionPreference": "Weighted", "weightPreference": {"staticWeightList": list}}}})
}

fn workload(replicas: i64, image: &str) -> Value {
    json!({"replicas": replicas, "image": image})
}

/// What a member holds of ours, as name → what counts of it.
async fn held(member: &Endpoint) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    for kind in kinds() {
        let list = member.list(&kind, NS, "labelSelector=karmada.io%2Fmanaged%3Dtrue").await.unwrap();
        for copy in list.items {
            let spec = &copy["spec"];
            let image = spec["template"]["spec"]["containers"][0]["image"].as_str().unwrap_or_default();
            let counts = match spec["replicas"].as_i64() {
                Some(replicas) => workload(replicas, image),
                None => copy["data"].clone(),
            };
            all.insert(copy["metadata"]["name"].as_str().unwrap().to_owned(), counts);
        }
    }
    all
}

/// Names of what a member deletes from now on, up to a mark.
async fn deletions(member: &Endpoint, kind: &Gvr) -> JoinHandle<BTreeSet<String>> {
    let begin = member.list(kind, NS, "").await.unwrap().revision;
    let mut events = member.watch(kind, NS, "", &begin).await.unwrap();
    tokio::spawn(async move {
        let mut gone = BTreeSet::new();
        loop {
            match events.next().await.unwrap().unwrap() {
                WatchEvent::Added(object) if object["metadata"]["name"] == "mark" => return gone,
                WatchEvent::Deleted(object) => {
                    gone.insert(object["metadata"]["name"].as_str().unwrap().to_owned());
                }
                _ => {}
            }
        }
    })
}

impl Trial {
    /// Joins the members of a world and places what stays there to the end.
    pub async fn new(mut world: World) -> Self {
        let seed = std::env::var("FLEET_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(7);
        let (ways, named, faults) = faulty(&world, seed);
        run(&mut world, &named).await;
        for name in MEMBERS {
            world.join(name, json!({})).await;
        }
        let mut own = Self {
            world,
            ways,
            named,
            faults,
            seed,
            random: StdRng::seed_from_u64(seed),
            maps: BTreeMap::new(),
            workloads: BTreeMap::new(),
            weights: WEIGHTS[0],
            deleted: BTreeSet::new(),
        };
        let instance = &own.world.instance;
        instance.create(&policies(), NS, &map_policy("maps", "trial", json!({}))).await.unwrap();
        instance.create(&policies(), NS, &policy("shares", weighted(own.weights))).await.unwrap();
        own.set_map("map-keeper", 0).await;
        own.set_workload("app-keeper", 12).await;
        own
    }

    /// Changes and faults, then the proof.
    pub async fn hold(mut self) {
        let mut witnesses = Vec::new();
        for name in MEMBERS {
            witnesses.push(self.witness(name).await);
        }
        self.ways.iter().for_each(|way| way.rate.store(40, Ordering::Relaxed));
        let mut number = 0;
        while number < 90 || self.faults.load(Ordering::Relaxed) < 200 {
            number += 1;
            self.step(number).await;
        }
        for way in &self.ways {
            way.rate.store(0, Ordering::Relaxed);
            way.cut.store(false, Ordering::Relaxed);
        }
        let count = self.faults.load(Ordering::Relaxed);
        println!("{count} faults in {number} steps, seed {}", self.seed);
        assert!(count >= 200, "only {count} faults");
        for name in MEMBERS {
            self.agrees(name).await;
        }
        for witness in witnesses {
            self.hear(witness).await;
        }
    }

    /// One change at any moment of the work on earlier ones, and now and then the death of the hub.
    async fn step(&mut self, number: u32) {
        match self.random.random_range(0..10) {
            0 => {
                self.weights = WEIGHTS[self.random.random_range(0..WEIGHTS.len())];
                let spec = json!({"spec": weighted(self.weights)});
                self.world.instance.patch(&policies(), NS, "shares", "", Patch::Merge, &spec).await.unwrap();
            }
            1..5 => {
                let name = format!("app-{}", self.random.random_range(0..6));
                let replicas = 12 * self.random.random_range(1..5);
                match self.random.random_range(0..4) {
                    0 if self.workloads.contains_key(&name) => self.delete(&deployments(), &name).await,
                    _ => self.set_workload(&name, replicas).await,
                }
            }
            _ => {
                let name = format!("map-{}", self.random.random_range(0..12));
                match self.random.random_range(0..4) {
                    0 if self.maps.contains_key(&name) => self.delete(&core("configmaps"), &name).await,
                    _ => self.set_map(&name, number).await,
                }
            }
        }
        if number % 20 == 10 {
            // The hub dies in the middle and comes back, or is held up and ends its last steps beside the next one;
            // a member is cut off for a while.
            if self.random.random_bool(0.5) {
                self.world.kill();
            } else {
                self.world.crash();
            }
            self.ways[0].cut.store(true, Ordering::Relaxed);
            run(&mut self.world, &self.named).await;
        }
        if number % 20 == 15 {
            self.ways[0].cut.store(false, Ordering::Relaxed);
        }
        // The next change comes at any moment of the work on this one: no event may set the pace.
        tokio::time::sleep(Duration::from_millis(self.random.random_range(0..40))).await;
    }

    async fn delete(&mut self, kind: &Gvr, name: &str) {
        self.world.instance.delete(kind, NS, name, &Value::Null).await.unwrap();
        self.maps.remove(name);
        self.workloads.remove(name);
        self.deleted.insert(name.to_owned());
    }

    /// Makes a ConfigMap or changes it.
    async fn set_map(&mut self, name: &str, number: u32) {
        let (instance, kind, data) = (&self.world.instance, core("configmaps"), json!({"value": number.to_string()}));
        if self.maps.insert(name.to_owned(), data.clone()).is_none() {
            instance.create(&kind, NS, &marked_map(name, "trial", &number.to_string())).await.unwrap();
        } else {
            instance.patch(&kind, NS, name, "", Patch::Merge, &json!({"data": data})).await.unwrap();
        }
    }

    /// Makes a Deployment, or scales it and changes its image.
    async fn set_workload(&mut self, name: &str, replicas: i64) {
        let (instance, image) = (&self.world.instance, format!("nginx:{}", self.random.random_range(1..9)));
        let mut template = deployment(name, replicas);
        template["spec"]["template"]["spec"]["containers"][0]["image"] = image.clone().into();
        if self.workloads.insert(name.to_owned(), (replicas, image)).is_none() {
            instance.create(&deployments(), NS, &template).await.unwrap();
        } else {
            let spec = json!({"spec": template["spec"]});
            instance.patch(&deployments(), NS, name, "", Patch::Merge, &spec).await.unwrap();
        }
    }

    /// What a member has to hold.
    fn wanted(&self, member: &str) -> BTreeMap<String, Value> {
        let at = MEMBERS.iter().position(|name| *name == member).unwrap();
        let share = |replicas: i64| replicas * self.weights[at] / self.weights.iter().sum::<i64>();
        let workloads = self.workloads.iter();
        let divided = workloads.map(|(name, (replicas, image))| (name.clone(), workload(share(*replicas), image)));
        self.maps.clone().into_iter().chain(divided).collect()
    }

    /// Waits until a member holds what policies say; tells where it does not.
    async fn agrees(&self, name: &str) {
        let (member, wanted) = (self.world.member(name), self.wanted(name));
        if self.world.comes_true(async || held(member).await == wanted).await {
            return;
        }
        let held = held(member).await;
        let all: BTreeSet<&String> = held.keys().chain(wanted.keys()).collect();
        let works = self.world.instance.list(&works(), Some(&format!("karmada-es-{name}")), "").await.unwrap().items;
        for object in all.into_iter().filter(|object| held.get(*object) != wanted.get(*object)) {
            println!("{object}: {:?} instead of {:?}", held.get(object), wanted.get(object));
            for kind in ["configmap", "deployment"] {
                let binding = self.world.instance.get_opt(&bindings(), NS, &format!("{object}-{kind}")).await.unwrap();
                println!("{:#}", binding.unwrap_or_default());
            }
            let named = |work: &&Value| work["spec"]["workload"]["manifests"][0]["metadata"]["name"] == **object;
            println!("{:#}", works.iter().find(named).unwrap_or(&Value::Null));
        }
        panic!("never so: {name} holds what policies say (seed {})", self.seed);
    }

    /// Looks at a member before the faults, and follows what it deletes.
    async fn witness(&self, name: &str) -> Witness {
        let member = self.world.member(name);
        let bystander = member.create(&core("configmaps"), NS, &config_map("bystander", json!({}))).await.unwrap();
        let keepers = [
            self.world.in_member(name, &core("configmaps"), "map-keeper", |_| true).await,
            self.world.in_member(name, &deployments(), "app-keeper", |_| true).await,
        ];
        let [maps, workloads] = kinds();
        let deletions = [deletions(member, &maps).await, deletions(member, &workloads).await];
        let keepers = keepers.map(|copy| copy["metadata"]["uid"].clone());
        Witness { member: name.to_owned(), bystander, keepers, deletions }
    }

    /// Nothing was deleted that should not be, and what nobody manages is as it was.
    async fn hear(&self, witness: Witness) {
        let (name, member) = (witness.member.as_str(), self.world.member(&witness.member));
        for mark in [config_map("mark", json!({})), deployment("mark", 0)] {
            let kind = if mark["kind"] == "ConfigMap" { core("configmaps") } else { deployments() };
            member.create(&kind, NS, &mark).await.unwrap();
        }
        for told in witness.deletions {
            let gone = tokio::time::timeout(Duration::from_secs(60), told).await.unwrap().unwrap();
            let unasked: Vec<_> = gone.difference(&self.deleted).collect();
            assert!(unasked.is_empty(), "{unasked:?} were deleted in {name} and nobody asked for that");
        }
        for ((kind, keeper), uid) in kinds().iter().zip(["map-keeper", "app-keeper"]).zip(witness.keepers) {
            let copy = member.get(kind, NS, keeper).await.unwrap();
            assert_eq!(copy["metadata"]["uid"], uid, "{keeper} in {name} was never deleted");
        }
        let bystander = member.get(&core("configmaps"), NS, "bystander").await.unwrap();
        assert_eq!(bystander, witness.bystander, "nobody touched it in {name}");
        assert_eq!(held(member).await, self.wanted(name), "{name} is still so");
    }
}
