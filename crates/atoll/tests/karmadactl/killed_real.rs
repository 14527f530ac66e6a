//! A hub that is killed while it writes to real API servers: in the end they hold exactly what policies say.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use atoll_fleet::JoinOptions;
use atoll_meta::Gvr;
use atoll_runtime::{Endpoint, Patch, WatchEvent};
use atoll_testkit::{Cluster, Parts, peers};
use futures::future::join_all;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::fleet::{config_map, deployment};
use crate::killed::Mortal;

const MEMBERS: [&str; 3] = ["m1", "m2", "m3"];
const NS: Option<&str> = Some("default");
const TEMPLATES: usize = 40;

fn deployments() -> Gvr {
    Gvr::new("apps", "v1", "deployments")
}

fn policies() -> Gvr {
    Gvr::new("policy.karmada.io", "v1alpha1", "propagationpolicies")
}

/// A template; those with even numbers are divided.
#[derive(Clone, Debug)]
struct Template {
    name: String,
    divided: bool,
    replicas: u32,
    image: &'static str,
}

impl Template {
    fn new(number: usize) -> Self {
        let divided = number.is_multiple_of(2);
        let name = format!("{}-{number}", if divided { "divided" } else { "copied" });
        Self { name, divided, replicas: 12, image: "nginx:1" }
    }

    fn object(&self) -> Value {
        let mut object = deployment(&self.name, self.replicas);
        object["metadata"]["labels"] = json!({"story": if self.divided { "divided" } else { "copied" }});
        object["spec"]["template"]["spec"]["containers"][0]["image"] = self.image.into();
        object
    }
}

/// The policy for templates of one story. All sums of weights divide twelve: no replica is left over.
fn policy(story: &str, weights: Option<[u32; 3]>) -> Value {
    let list = weights.map(|weights| {
        let entry = |(name, weight)| json!({"targetCluster": {"clusterNames": [name]}, "weight": weight});
        MEMBERS.into_iter().zip(weights).map(entry).collect::<Vec<Value>>()
    });
    let scheduling = match list {
        Some(list) => json!({"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
            "weightPreference": {"staticWeightList": list}}),
        None => json!({"replicaSchedulingType": "Duplicated"}),
    };
    let selector =
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": {"matchLabels": {"story": story}}});
    json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy", "metadata": {"name": story, "namespace": "default"},
        "spec": {"resourceSelectors": [selector], "placement": {"replicaScheduling": scheduling}}})
}

/// Replicas and image of each Deployment, by name.
type Copies = BTreeMap<String, (u64, String)>;

/// What the member at this place has to hold.
fn wanted(templates: &[Template], weights: [u32; 3], at: usize) -> Copies {
    let share = |template: &Template| match template.divided {
        true => template.replicas * weights[at] / weights.iter().sum::<u32>(),
        false => template.replicas,
    };
    templates.iter().map(|one| (one.name.clone(), (share(one).into(), one.image.to_owned()))).collect()
}

async fn held(member: &Endpoint) -> Copies {
    let list = member.list(&deployments(), NS, "labelSelector=karmada.io%2Fmanaged%3Dtrue").await.unwrap();
    let copy = |copy: &Value| {
        let image = copy["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap();
        let name = copy["metadata"]["name"].as_str().unwrap();
        (name.to_owned(), (copy["spec"]["replicas"].as_u64().unwrap(), image.to_owned()))
    };
    list.items.iter().map(copy).collect()
}

/// What the members themselves tell of Deployments.
struct Told {
    events: mpsc::UnboundedReceiver<(&'static str, String)>,
    /// Names of all that was deleted anywhere.
    deleted: BTreeSet<String>,
    /// Those who follow; they end with this, or servers would wait for them.
    _tasks: JoinSet<()>,
}

impl Told {
    async fn by(members: &[Endpoint]) -> Self {
        let (sender, events) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        for member in members {
            let begin = member.list(&deployments(), NS, "").await.unwrap().revision;
            let mut stream = member.watch(&deployments(), NS, "", &begin).await.unwrap();
            let sender = sender.clone();
            tasks.spawn(async move {
                while let Some(Ok(event)) = stream.next().await {
                    let (what, object) = match event {
                        WatchEvent::Added(object) => ("added", object),
                        WatchEvent::Modified(object) => ("modified", object),
                        WatchEvent::Deleted(object) => ("deleted", object),
                        _ => continue,
                    };
                    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                    if sender.send((what, name)).is_err() {
                        return;
                    }
                }
            });
        }
        Self { events, deleted: BTreeSet::new(), _tasks: tasks }
    }

    async fn next(&mut self) -> Option<(&'static str, String)> {
        let waiting = tokio::time::timeout(Duration::from_secs(60), self.events.recv()).await;
        let (what, name) = waiting.ok()?.expect("members are followed to the end");
        if what == "deleted" {
            self.deleted.insert(name.clone());
        }
        Some((what, name))
    }

    /// Waits for the n-th event of a kind from now on.
    async fn nth(&mut self, count: usize, what: &str) {
        let mut seen = 0;
        while seen < count {
            let next = self.next().await.unwrap_or_else(|| panic!("only {seen} of {count} were {what}"));
            seen += usize::from(next.0 == what);
        }
    }

    /// Waits until all that members had to tell up to now is told.
    async fn marked(&mut self, members: &[Endpoint]) {
        for member in members {
            member.create(&deployments(), NS, &deployment("mark", 0)).await.unwrap();
        }
        let mut marks = 0;
        while marks < members.len() {
            marks += usize::from(self.next().await.expect("marks are told") == ("added", "mark".to_owned()));
        }
    }

    /// Forgets what is told already, but for deletions.
    fn skip(&mut self) {
        while let Ok((what, name)) = self.events.try_recv() {
            if what == "deleted" {
                self.deleted.insert(name);
            }
        }
    }
}

/// The hub, its members and what is wanted of them.
struct World {
    hub: Mortal,
    members: Vec<Endpoint>,
    told: Told,
    templates: Vec<Template>,
    weights: [u32; 3],
    /// Copies that were not yet as wanted whenever the hub was killed.
    unfinished: Vec<usize>,
}

impl World {
    /// A hub with an instance that real members have joined.
    async fn start(clusters: &[Cluster]) -> Self {
        let hub = Mortal::new(&["--metrics-listen", "off", "--health-listen", "off"]);
        let root = atoll_testkit::remote("root", &hub.directory.path().join("kubeconfig")).await.unwrap();
        let kind = Gvr::new("atoll.io", "v1alpha1", "instances");
        let instance = json!({"apiVersion": "atoll.io/v1alpha1", "kind": "Instance", "metadata": {"name": "fleet"}, "spec": {"type": "Hosted"}});
        root.create(&kind, None, &instance).await.unwrap();
        until(&root, &kind, "fleet", |instance| instance["status"]["phase"] == "Ready").await;
        let mut members = Vec::new();
        for (name, cluster) in MEMBERS.into_iter().zip(clusters) {
            members.push(atoll_testkit::remote(name, cluster.kubeconfig()).await.unwrap());
        }
        let told = Told::by(&members).await;
        let own = Self { hub, members, told, templates: Vec::new(), weights: [1, 2, 3], unfinished: Vec::new() };
        let fleet = own.fleet().await;
        join_all(MEMBERS.into_iter().zip(&own.members).zip(clusters).map(async |((name, member), cluster)| {
            let way = Kubeconfig::read_from(cluster.kubeconfig()).unwrap();
            let address = way.clusters[0].cluster.as_ref().unwrap().server.clone().unwrap();
            let options = JoinOptions { api_endpoint: address, insecure: true, ..JoinOptions::default() };
            atoll_fleet::join(&fleet, member, name, options).await.unwrap();
            until(&fleet, &Gvr::new("cluster.karmada.io", "v1alpha1", "clusters"), name, |cluster| {
                let conditions = cluster["status"]["conditions"].as_array().cloned().unwrap_or_default();
                conditions.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
            })
            .await;
        }))
        .await;
        own
    }

    /// A way to the instance, over connections of its own: those of a killed hub are dead.
    async fn fleet(&self) -> Endpoint {
        let mut read = Kubeconfig::read_from(self.hub.directory.path().join("kubeconfig")).unwrap();
        for cluster in read.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
            cluster.server = cluster.server.as_ref().map(|server| format!("{server}/instances/fleet"));
        }
        let config = kube::Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await.unwrap();
        Endpoint::remote("fleet", config, "atoll-test").unwrap()
    }

    /// How many copies differ from what is wanted.
    async fn missing(&self) -> usize {
        let mut count = 0;
        for (at, member) in self.members.iter().enumerate() {
            let (held, wanted) = (held(member).await, wanted(&self.templates, self.weights, at));
            let names: BTreeSet<_> = held.keys().chain(wanted.keys()).collect();
            count += names.into_iter().filter(|name| held.get(*name) != wanted.get(*name)).count();
        }
        count
    }

    /// Kills the hub at the n-th event of a kind, and starts it again.
    async fn die(&mut self, count: usize, what: &str) {
        self.told.nth(count, what).await;
        self.hub.kill();
        let missing = self.missing().await;
        println!("killed at {count} {what}: {missing} copies were not yet as wanted");
        self.unfinished.push(missing);
        self.told.skip();
        self.hub.start();
    }

    /// Waits until all members hold what is wanted, no more and no less.
    async fn settle(&mut self) {
        while self.missing().await > 0 {
            if self.told.next().await.is_some() {
                self.told.skip();
                continue;
            }
            for (at, member) in self.members.iter().enumerate() {
                let wanted = wanted(&self.templates, self.weights, at);
                println!("{}: {:#?} instead of {wanted:#?}", MEMBERS[at], held(member).await);
            }
            panic!("members never held what policies say");
        }
    }
}

/// Waits until an object is as wanted.
async fn until(endpoint: &Endpoint, kind: &Gvr, name: &str, so: impl Fn(&Value) -> bool) {
    let waiting = async {
        let query = format!("fieldSelector=metadata.name%3D{name}");
        let mut events = endpoint.watch(kind, None, &query, "").await.unwrap();
        while let Some(event) = events.next().await {
            match event.unwrap() {
                WatchEvent::Added(object) | WatchEvent::Modified(object) if so(&object) => return,
                _ => {}
            }
        }
        panic!("the watch of {name} ended");
    };
    tokio::time::timeout(Duration::from_secs(60), waiting).await.unwrap_or_else(|_| panic!("never so: {name}"));
}

/// What nobody manages, as it is in each member.
async fn bystanders(members: &[Endpoint], make: bool) -> Vec<Value> {
    let mut all = Vec::new();
    for member in members {
        let maps = Gvr::new("", "v1", "configmaps");
        if make {
            member.create(&maps, NS, &config_map("bystander", "1")).await.unwrap();
            member.create(&deployments(), NS, &deployment("bystander", 3)).await.unwrap();
        }
        all.push(member.get(&maps, NS, "bystander").await.unwrap());
        all.push(member.get(&deployments(), NS, "bystander").await.unwrap());
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_killed_while_it_writes_to_real_members_leaves_them_with_exactly_what_policies_say() {
    if ["etcd", "kube-apiserver", "certs"].into_iter().any(|name| peers::find(name).is_none()) {
        return;
    }
    let starting = MEMBERS.map(|_| tokio::task::spawn_blocking(|| Cluster::start(Parts::default()).unwrap().unwrap()));
    let clusters: Vec<Cluster> = join_all(starting).await.into_iter().map(Result::unwrap).collect();
    let mut world = World::start(&clusters).await;
    let before = bystanders(&world.members, true).await;

    // All at once: templates wait for policies. The first death is among the first copies.
    let fleet = world.fleet().await;
    world.templates = (0..TEMPLATES).map(Template::new).collect();
    for template in &world.templates {
        fleet.create(&deployments(), NS, &template.object()).await.unwrap();
    }
    fleet.create(&policies(), NS, &policy("copied", None)).await.unwrap();
    fleet.create(&policies(), NS, &policy("divided", Some(world.weights))).await.unwrap();
    world.die(10, "added").await;
    // Once more, while it makes up for the first.
    world.die(world.unfinished[0].min(10), "added").await;
    world.settle().await;

    // Every template is edited and the weights change; the hub dies among the first copies of that.
    let fleet = world.fleet().await;
    world.weights = [2, 1, 1];
    for template in &mut world.templates {
        (template.replicas, template.image) = (24, "nginx:2");
    }
    let edits = world.templates.iter().map(async |template| {
        let spec = json!({"spec": template.object()["spec"]});
        fleet.patch(&deployments(), NS, &template.name, "", Patch::Merge, &spec).await.unwrap();
    });
    join_all(edits).await;
    let spec = json!({"spec": policy("divided", Some(world.weights))["spec"]});
    world.told.skip();
    fleet.patch(&policies(), NS, "divided", "", Patch::Merge, &spec).await.unwrap();
    world.die(5, "modified").await;

    // A quarter goes before the rest is done, and the hub dies among the first deletions.
    let fleet = world.fleet().await;
    let gone: Vec<Template> = world.templates.drain(..TEMPLATES / 4).collect();
    join_all(
        gone.iter().map(async |template| fleet.delete(&deployments(), NS, &template.name, &Value::Null).await.unwrap()),
    )
    .await;
    world.die(3, "deleted").await;
    world.settle().await;

    // What comes now is the last the hub has to do.
    let last = Template { name: "divided-last".to_owned(), ..Template::new(0) };
    world.fleet().await.create(&deployments(), NS, &last.object()).await.unwrap();
    world.templates.push(last);
    world.settle().await;
    world.told.marked(&world.members).await;
    assert_eq!(world.told.deleted, gone.into_iter().map(|template| template.name).collect(), "and nothing else went");
    assert_eq!(bystanders(&world.members, false).await, before, "what nobody manages is as it was");
    assert!(world.unfinished.iter().any(|copies| *copies > 0), "the hub never died in the middle of work");
}
