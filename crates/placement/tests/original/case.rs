//! Random worlds: clusters, a binding, its status.

use rand::Rng as _;
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom as _, SliceRandom as _};
use serde_json::{Map, Value, json};

const REGIONS: [&str; 5] = ["", "east", "north", "south", "west"];
const PROVIDERS: [&str; 3] = ["", "acme", "umbra"];
const ZONES: [&str; 4] = ["za", "zb", "zc", "zd"];
const TIERS: [&str; 3] = ["gold", "iron", "tin"];
const GPU: &str = "nvidia.com/gpu";
const DAYS: [&str; 3] = ["2025-01-01T00:00:00Z", "2025-01-02T00:00:00Z", "2025-01-03T00:00:00Z"];

/// How large clusters are.
#[derive(Copy, Clone)]
struct Size {
    most: i64,
    /// Without decimal units: for components the original compares their thousandths with wholes of binary ones.
    binary: bool,
}

impl Size {
    fn part(self, of: i64) -> Self {
        Size { most: self.most / of, ..self }
    }
}

/// One question to a scheduler.
#[derive(Clone, Debug)]
pub struct Case {
    pub clusters: Vec<Value>,
    pub spec: Value,
    pub status: Value,
    /// Other bindings, which may be of the same group.
    pub bindings: Vec<Value>,
    pub empty_workloads: bool,
    pub components: bool,
}

impl Case {
    /// A world with up to so many clusters.
    pub fn random(random: &mut StdRng, most: usize) -> Self {
        let components = random.random_bool(0.1);
        let size = Size { most: *[4, 12, 40, 200].choose(random).unwrap(), binary: components };
        let count = random.random_range(1..=most);
        let clusters: Vec<Value> = (1..=count).map(|at| cluster(random, &format!("m{at}"), size)).collect();
        let names: Vec<String> = (1..=count).map(|at| format!("m{at}")).collect();
        let placement = placement(random, &names, components);
        let (mut spec, status) = binding(random, &names, placement, components);
        let bindings = if random.random_bool(0.15) { company(random, &names, &mut spec) } else { Vec::new() };
        Case { clusters, spec, status, bindings, empty_workloads: random.random_bool(0.15), components }
    }

    /// As the original is asked.
    pub fn into_question(self) -> Value {
        let mut question = json!({
            "ask": "placement", "emptyWorkloads": self.empty_workloads, "components": self.components,
        });
        question["clusters"] = Value::Array(self.clusters);
        question["bindings"] = Value::Array(self.bindings);
        (question["spec"], question["status"]) = (self.spec, self.status);
        question
    }

    /// Whether all is decided anew.
    pub fn is_fresh(&self) -> bool {
        match (self.spec["rescheduleTriggeredAt"].as_str(), self.status["lastScheduledTime"].as_str()) {
            (Some(asked), Some(last)) => asked > last,
            _ => false,
        }
    }

    /// Whether there is a spread constraint by one of these.
    pub fn spreads_by(&self, fields: &[&str]) -> bool {
        let constraints = self.spec["placement"]["spreadConstraints"].as_array();
        constraints.into_iter().flatten().any(|it| fields.contains(&it["spreadByField"].as_str().unwrap_or_default()))
    }

    /// Whether at least so many regions are asked for that clusters may not be as many.
    pub fn wants_more_regions_than_clusters(&self) -> bool {
        let bound = |by: &str, bound: &str| {
            let constraints = self.spec["placement"]["spreadConstraints"].as_array();
            let constraint = constraints.into_iter().flatten().find(|it| it["spreadByField"] == by);
            constraint.and_then(|it| it[bound].as_i64()).unwrap_or_default()
        };
        let clusters = bound("cluster", "maxGroups");
        clusters > 0 && bound("region", "minGroups") > clusters && !self.is_static()
    }

    /// Whether each cluster gets all replicas.
    pub fn is_copied(&self) -> bool {
        let strategy = &self.spec["placement"]["replicaScheduling"];
        strategy.is_null() || strategy["replicaSchedulingType"] == "Duplicated"
    }

    /// Whether there is a cluster of this name that neither goes nor is left.
    pub fn may_have(&self, name: &str) -> bool {
        let tasks = self.spec["gracefulEvictionTasks"].as_array();
        let left = tasks.into_iter().flatten().any(|task| task["fromCluster"] == name);
        !left && self.cluster(name).is_some_and(|cluster| cluster["metadata"]["deletionTimestamp"].is_null())
    }

    fn cluster(&self, name: &str) -> Option<&Value> {
        self.clusters.iter().find(|cluster| cluster["metadata"]["name"] == name)
    }

    /// The group of a cluster by a field; of several zones the first counts.
    pub fn group<'a>(&'a self, name: &'a str, by: &str) -> &'a str {
        let spec = self.cluster(name).map(|cluster| &cluster["spec"]).unwrap_or(&Value::Null);
        match by {
            "cluster" => name,
            "zone" => spec["zones"][0].as_str().unwrap_or_default(),
            other => spec[other].as_str().unwrap_or_default(),
        }
    }

    /// Whether static weights name the clusters, so that spread constraints have no say.
    pub fn is_static(&self) -> bool {
        let strategy = &self.spec["placement"]["replicaScheduling"];
        let preference = &strategy["weightPreference"];
        self.preference() == "Weighted" && (preference.is_null() || !preference["staticWeightList"].is_null())
    }

    /// How replicas are divided.
    pub fn preference(&self) -> &str {
        self.spec["placement"]["replicaScheduling"]["replicaDivisionPreference"].as_str().unwrap_or_default()
    }

    /// Whether there are named affinity terms.
    pub fn has_terms(&self) -> bool {
        self.spec["placement"]["clusterAffinities"].is_array()
    }

    /// Whether there was a decision before.
    pub fn has_previous(&self) -> bool {
        self.spec["clusters"].as_array().is_some_and(|clusters| !clusters.is_empty())
    }
}

fn one<'a>(random: &mut StdRng, from: &[&'a str]) -> &'a str {
    from.choose(random).copied().unwrap_or_default()
}

fn some<'a>(random: &mut StdRng, from: &[&'a str], most: usize) -> Vec<&'a str> {
    let count = random.random_range(0..=most.min(from.len()));
    let mut chosen: Vec<&str> = from.choose_multiple(random, count).copied().collect();
    chosen.shuffle(random);
    chosen
}

fn cluster(random: &mut StdRng, name: &str, size: Size) -> Value {
    let mut labels = Map::new();
    if random.random_bool(0.7) {
        labels.insert("tier".to_owned(), json!(one(random, &TIERS)));
    }
    let mut metadata = json!({"name": name, "labels": labels});
    if random.random_bool(0.04) {
        metadata["deletionTimestamp"] = json!(DAYS[0]);
    }
    let zones = some(random, &ZONES, 2);
    let (region, provider) = (one(random, &REGIONS), one(random, &PROVIDERS));
    let mut spec = json!({"syncMode": "Push", "region": region, "provider": provider, "zones": zones});
    if random.random_bool(0.2) {
        spec["taints"] = taints(random);
    }
    let mut status = json!({});
    if random.random_bool(0.93) {
        let deployments = json!({"name": "deployments", "kind": "Deployment"});
        status["apiEnablements"] = json!([{"groupVersion": "apps/v1", "resources": [deployments]}]);
    }
    if random.random_bool(0.95) {
        status["resourceSummary"] = summary(random, size);
        if random.random_bool(0.3) {
            let (models, counts) = models(random);
            status["resourceSummary"]["allocatableModelings"] = counts;
            spec["resourceModels"] = models;
        }
    }
    json!({"metadata": metadata, "spec": spec, "status": status})
}

fn taints(random: &mut StdRng) -> Value {
    let count = random.random_range(1..=2);
    let mut taints = Vec::new();
    for key in ["k", "gpu"].choose_multiple(random, count) {
        let effect = one(random, &["NoSchedule", "NoExecute", "PreferNoSchedule"]);
        taints.push(json!({"key": key, "value": one(random, &["", "v"]), "effect": effect}));
    }
    json!(taints)
}

fn cores(random: &mut StdRng, most: i64) -> String {
    match random.random_range(0..4) {
        0 => format!("{}m", random.random_range(0..=most * 1000)),
        1 => format!("{}500m", random.random_range(0..=most)),
        _ => random.random_range(0..=most).to_string(),
    }
}

fn bytes(random: &mut StdRng, most: i64, binary: bool) -> String {
    match random.random_range(0..4) {
        0 => format!("{}Mi", random.random_range(0..=most * 1024)),
        1 if !binary => format!("{}M", random.random_range(0..=most * 1000)),
        _ => format!("{}Gi", random.random_range(0..=most)),
    }
}

fn amounts(random: &mut StdRng, size: Size) -> Value {
    let most = size.most;
    let mut amounts = json!({
        "cpu": cores(random, most), "memory": bytes(random, most * 2, size.binary), "pods": random.random_range(0..=most).to_string(),
    });
    if random.random_bool(0.3) {
        amounts[GPU] = json!(random.random_range(0..=most / 4 + 1).to_string());
    }
    amounts
}

fn summary(random: &mut StdRng, size: Size) -> Value {
    let mut summary = json!({"allocatable": amounts(random, size)});
    if random.random_bool(0.5) {
        summary["allocated"] = amounts(random, size.part(3));
    }
    if random.random_bool(0.2) {
        summary["allocating"] = amounts(random, size.part(6));
    }
    summary
}

/// Grades as a cluster has them and how many nodes are of each; neither need know all that the other does.
fn models(random: &mut StdRng) -> (Value, Value) {
    let (mut models, mut counts) = (Vec::new(), Vec::new());
    let known = random.random_range(0..5_i64);
    for grade in 0..known {
        let mut ranges = vec![
            json!({"name": "cpu", "min": grade.to_string(), "max": (grade + 1).to_string()}),
            json!({"name": "memory", "min": format!("{}Gi", grade * 2), "max": format!("{}Gi", grade * 2 + 2)}),
        ];
        if random.random_bool(0.2) {
            ranges.push(json!({"name": GPU, "min": grade.to_string(), "max": "100"}));
        }
        if random.random_bool(0.1) {
            ranges.remove(0);
        }
        models.push(json!({"grade": grade, "ranges": ranges}));
    }
    for grade in 0..known + random.random_range(0..2) {
        if random.random_bool(0.8) {
            counts.push(json!({"grade": grade, "count": random.random_range(0..4)}));
        }
    }
    (json!(models), json!(counts))
}

fn strings(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

fn affinity(random: &mut StdRng, names: &[String]) -> Value {
    let mut affinity = json!({});
    if random.random_bool(0.4) {
        affinity["clusterNames"] = json!(some(random, &strings(names), names.len()));
    }
    if random.random_bool(0.2) {
        affinity["exclude"] = json!(some(random, &strings(names), 3));
    }
    if random.random_bool(0.25) {
        affinity["labelSelector"] = selector(random);
    }
    if random.random_bool(0.25) {
        let count = random.random_range(1..=2);
        let fields: Vec<Value> = (0..count).map(|_| field(random)).collect();
        affinity["fieldSelector"] = json!({"matchExpressions": fields});
    }
    affinity
}

fn selector(random: &mut StdRng) -> Value {
    match random.random_range(0..5) {
        0 => json!({"matchLabels": {"tier": one(random, &TIERS)}}),
        1 => json!({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}),
        2 => json!({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}),
        _ => {
            let operator = one(random, &["In", "NotIn"]);
            json!({"matchExpressions": [{"key": "tier", "operator": operator, "values": some(random, &TIERS, 3)}]})
        }
    }
}

fn field(random: &mut StdRng) -> Value {
    let operator = one(random, &["In", "NotIn"]);
    let (key, values) = match random.random_range(0..3) {
        0 => ("provider", &PROVIDERS[..]),
        1 => ("region", &REGIONS[..]),
        _ => ("zone", &ZONES[..]),
    };
    let count = random.random_range(1..=2);
    let values: Vec<&str> = values.choose_multiple(random, count).copied().filter(|value| !value.is_empty()).collect();
    json!({"key": key, "operator": operator, "values": values})
}

/// Named terms; those that overflow are only for division by room.
fn terms(random: &mut StdRng, names: &[String], may_overflow: bool) -> Value {
    let mut terms = Vec::new();
    for at in 0..random.random_range(1..=3) {
        let mut term = affinity(random, names);
        term["affinityName"] = json!(format!("term{at}"));
        if may_overflow && random.random_bool(0.6) {
            let count = random.random_range(1..=2);
            let overflow = (0..count).map(|next| {
                let mut overflow = affinity(random, names);
                overflow["affinityName"] = json!(format!("overflow{next}"));
                overflow
            });
            term["overflowAffinities"] = overflow.collect();
        }
        terms.push(term);
    }
    json!(terms)
}

fn strategy(random: &mut StdRng, names: &[String]) -> Option<Value> {
    let weighted = |preference: Value| {
        Some(json!({
            "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted", "weightPreference": preference,
        }))
    };
    match random.random_range(0..13) {
        0 => None,
        12 => weighted(json!({})),
        1 | 2 => Some(json!({"replicaSchedulingType": "Duplicated"})),
        3 => Some(json!({"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"})),
        4 | 5 => {
            let count = random.random_range(1..=4);
            let entries: Vec<Value> = (0..count)
                .map(|_| json!({"targetCluster": affinity(random, names), "weight": random.random_range(1..=6)}))
                .collect();
            weighted(json!({"staticWeightList": entries}))
        }
        6..=8 => weighted(json!({"dynamicWeight": "AvailableReplicas"})),
        _ => Some(json!({"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"})),
    }
}

fn constraint(random: &mut StdRng, by: &str) -> Value {
    let least = random.random_range(1..=3);
    let most = if random.random_bool(0.1) { 0 } else { least + random.random_range(0..=3) };
    json!({"spreadByField": by, "minGroups": least, "maxGroups": most})
}

fn spread(random: &mut StdRng) -> Vec<Value> {
    let fields: &[&str] = match random.random_range(0..20) {
        0..=6 => &[],
        7..=11 => &["cluster"],
        12..=18 => &["region", "cluster"],
        _ => {
            [&["provider", "cluster"][..], &["zone", "cluster"], &["zone", "region", "cluster"]].choose(random).unwrap()
        }
    };
    let mut constraints: Vec<Value> = fields.iter().map(|by| constraint(random, by)).collect();
    constraints.shuffle(random);
    constraints
}

fn tolerations(random: &mut StdRng) -> Value {
    let count = random.random_range(1..=2);
    let toleration = |random: &mut StdRng| {
        let (operator, value) = [("Exists", ""), ("Equal", "v"), ("Equal", ""), ("", "v")].choose(random).unwrap();
        let effect = one(random, &["", "NoSchedule", "NoExecute"]);
        let key = if *operator == "Exists" && random.random_bool(0.3) { "" } else { one(random, &["k", "gpu"]) };
        json!({"key": key, "operator": operator, "value": value, "effect": effect})
    };
    (0..count).map(|_| toleration(random)).collect()
}

fn placement(random: &mut StdRng, names: &[String], components: bool) -> Value {
    let mut placement = json!({});
    let strategy = strategy(random, names);
    let by_room = strategy.as_ref().is_some_and(|it| {
        it["replicaDivisionPreference"] == "Aggregated" || !it["weightPreference"]["dynamicWeight"].is_null()
    });
    if let Some(strategy) = strategy {
        placement["replicaScheduling"] = strategy;
    }
    match random.random_range(0..10) {
        0..=3 => {}
        4..=6 => placement["clusterAffinity"] = affinity(random, names),
        _ => placement["clusterAffinities"] = terms(random, names, by_room),
    }
    let mut constraints = spread(random);
    if components && random.random_bool(0.7) {
        constraints = vec![json!({"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1})];
    }
    if !constraints.is_empty() {
        placement["spreadConstraints"] = json!(constraints);
    }
    if random.random_bool(0.3) {
        placement["clusterTolerations"] = tolerations(random);
    }
    placement
}

fn requests(random: &mut StdRng) -> Value {
    let mut requests = json!({});
    if random.random_bool(0.9) {
        requests["cpu"] = json!(one(random, &["0", "100m", "250m", "1", "1500m", "3"]));
    }
    if random.random_bool(0.5) {
        requests["memory"] = json!(one(random, &["0", "64Mi", "1Gi", "4Gi"]));
    }
    if random.random_bool(0.1) {
        requests[GPU] = json!("1");
    }
    json!({"resourceRequest": requests})
}

fn binding(random: &mut StdRng, names: &[String], placement: Value, components: bool) -> (Value, Value) {
    let uid = if random.random_bool(0.2) { String::new() } else { format!("{:08x}", random.random::<u32>()) };
    let mut previous = Vec::new();
    if random.random_bool(0.6) {
        let mut known = strings(names);
        known.push("gone");
        let mut known = some(random, &known, 5);
        // The original divides less in the order of this list, which it writes in no order. Ours is by name.
        known.sort_unstable();
        for name in known {
            previous.push(json!({"name": name, "replicas": random.random_range(0..15)}));
        }
    }
    let sum: i64 = previous.iter().filter_map(|target| target["replicas"].as_i64()).sum();
    let replicas = match random.random_range(0..21) {
        0 => 0,
        20 => random.random_range(1..=3000),
        1..=5 => sum,
        6..=13 => random.random_range(1..=12),
        _ => random.random_range(1..=60),
    };
    let mut spec = json!({
        "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web", "uid": uid},
        "replicas": replicas, "clusters": previous, "placement": placement,
    });
    if random.random_bool(0.5) {
        spec["replicaRequirements"] = requests(random);
    }
    if components {
        let count = random.random_range(1..=3);
        let list = (0..count).map(|at| component(random, at));
        spec["components"] = list.collect();
        spec["replicas"] = json!(0);
        spec.as_object_mut().unwrap().remove("replicaRequirements");
    }
    if random.random_bool(0.15) {
        let leave =
            |name: &&str| json!({"fromCluster": name, "reason": "TaintUntolerated", "producer": "TaintManager"});
        spec["gracefulEvictionTasks"] = some(random, &strings(names), 2).iter().map(leave).collect();
    }
    let mut status = json!({});
    if random.random_bool(0.5) {
        status["schedulerObservingAffinityName"] = json!(one(random, &["term0", "term1", "gone"]));
    }
    if random.random_bool(0.35) {
        spec["rescheduleTriggeredAt"] = json!(one(random, &DAYS));
    }
    if random.random_bool(0.7) {
        status["lastScheduledTime"] = json!(DAYS[1]);
    }
    (spec, status)
}

/// Makes a binding one of a group, or one that keeps away from it; gives the others, of which one is the same binding.
fn company(random: &mut StdRng, names: &[String], spec: &mut Value) -> Vec<Value> {
    let groups = |random: &mut StdRng| {
        let mut groups = json!({});
        for kind in ["affinityGroup", "antiAffinityGroup"] {
            if random.random_bool(0.6) {
                groups[kind] = json!(one(random, &["team=a", "team=a", "team=b"]));
            }
        }
        groups
    };
    spec["workloadAffinityGroups"] = groups(random);
    let mut others = Vec::new();
    for name in ["web-deployment", "api-deployment", "db-deployment"] {
        let clusters = some(random, &strings(names), names.len());
        let clusters: Vec<Value> = clusters.iter().map(|name| json!({"name": name, "replicas": 1})).collect();
        let namespace = if random.random_bool(0.9) { "default" } else { "other" };
        let resource = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": name.replace("-deployment", "")});
        others.push(json!({
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"resource": resource, "clusters": clusters, "workloadAffinityGroups": groups(random)},
        }));
    }
    others
}

fn component(random: &mut StdRng, at: usize) -> Value {
    let mut component = json!({"name": format!("part{at}"), "replicas": random.random_range(1..=3)});
    if random.random_bool(0.8) {
        component["replicaRequirements"] = requests(random);
    }
    component
}
