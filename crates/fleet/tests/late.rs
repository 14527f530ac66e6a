//! What comes late or is lost: writes for works that have gone, or that somebody made who knew nothing of the newer state.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use atoll_fleet::NamedMembers;
use atoll_meta::Status;
use atoll_runtime::{BodyStream, Endpoint, Patch, Transport};
use bytes::Bytes;
use http::{Method, Request, Response};
use parking_lot::Mutex;
use serde_json::{Value, json};
use support::{
    NS, World, bindings, clusters, core, definitions, gear, gear_definition, gears, map_policy, marked_map, only,
    policies, policy, works,
};

const WORK_ID: &str = "work.karmada.io/permanent-id";

/// Keeps new ConfigMaps back while it holds, and delivers them when it is asked to.
struct Held {
    inner: Arc<dyn Transport>,
    holds: AtomicBool,
    kept: Mutex<Vec<Request<Bytes>>>,
}

#[async_trait::async_trait]
impl Transport for Held {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<BodyStream>, Status> {
        let creates = request.method() == Method::POST && request.uri().path().ends_with("/configmaps");
        if creates && self.holds.load(Ordering::Relaxed) {
            self.kept.lock().push(request);
            return Err(Status::timeout("no answer in time", 1));
        }
        self.inner.send(request).await
    }
}

/// Lets new bindings wait at the door while it is closed.
struct Door {
    inner: Arc<dyn Transport>,
    closed: tokio::sync::watch::Sender<bool>,
    waiting: AtomicBool,
}

#[async_trait::async_trait]
impl Transport for Door {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<BodyStream>, Status> {
        if request.method() == Method::POST && request.uri().path().ends_with("/resourcebindings") {
            self.waiting.store(true, Ordering::Relaxed);
            self.closed.subscribe().wait_for(|closed| !closed).await.unwrap();
        }
        self.inner.send(request).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_becomes_fit_while_a_binding_is_being_written_is_not_forgotten() {
    let mut world = World::new(2).await;
    let inner = world.instance.transport().clone();
    let closed = tokio::sync::watch::Sender::new(true);
    let door = Arc::new(Door { inner, closed, waiting: AtomicBool::new(false) });
    let way: Arc<dyn Transport> = door.clone();
    world.run(|options| options.instance = Endpoint::new("fleet", way, "atoll-fleet")).await;
    for name in ["m1", "m2"] {
        world.join(name, json!({})).await;
    }
    let taints = |list: Value| json!({"spec": {"taints": list}});
    let closed = taints(json!([{"key": "closed", "effect": "NoSchedule"}]));
    world.instance.patch(&clusters(), None, "m2", "", Patch::Merge, &closed).await.unwrap();
    let core_of = |world: &World| world.fleet.as_ref().unwrap().core().clone();
    let tainted = async |wanted: bool| {
        let core = core_of(&world);
        world
            .eventually("decisions see the taint as it is", async || {
                let seen = core.snapshot.load().get("m2").is_some_and(|cluster| !cluster.taints.is_empty()) == wanted;
                seen && core.queues.shifts.is_empty() && core.queues.decisions.is_empty()
            })
            .await;
    };
    tainted(true).await;
    world.instance.create(&policies(), NS, &map_policy("p", "s", json!({}))).await.unwrap();
    world.instance.create(&core("configmaps"), NS, &marked_map("settings", "s", "1")).await.unwrap();
    world.eventually("the binding waits", async || door.waiting.load(Ordering::Relaxed)).await;
    world.instance.patch(&clusters(), None, "m2", "", Patch::Merge, &taints(Value::Null)).await.unwrap();
    tainted(false).await;
    door.closed.send_replace(false);
    world.in_member("m2", &core("configmaps"), "settings", |_| true).await;
}

/// Lets requests of one sort never arrive.
struct Halt {
    inner: Arc<dyn Transport>,
    halts: fn(&Request<Bytes>) -> bool,
    halted: AtomicBool,
}

#[async_trait::async_trait]
impl Transport for Halt {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<BodyStream>, Status> {
        if (self.halts)(&request) {
            self.halted.store(true, Ordering::Relaxed);
            std::future::pending::<()>().await;
        }
        self.inner.send(request).await
    }
}

/// Starts controllers that are killed when they come to a request of this sort; `act` leads them there.
async fn killed_at(world: &mut World, halts: fn(&Request<Bytes>) -> bool, act: impl AsyncFnOnce(&World)) {
    let plain = world.instance.clone();
    let halt = Arc::new(Halt { inner: plain.transport().clone(), halts, halted: AtomicBool::new(false) });
    world.instance = Endpoint::new("fleet", halt.clone(), "test");
    world.run_apart(|_| {}).await;
    world.instance = plain;
    act(world).await;
    world.eventually("they come to it", async || halt.halted.load(Ordering::Relaxed)).await;
    world.kill();
}

fn makes_binding(request: &Request<Bytes>) -> bool {
    request.method() == Method::POST && request.uri().path().ends_with("/resourcebindings")
}

fn claims(request: &Request<Bytes>) -> bool {
    request.method() == Method::PATCH && request.uri().path().ends_with("/configmaps/settings")
}

fn lazy_policy() -> Value {
    map_policy("p", "s", json!({"activationPreference": "Lazy"}))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lazy_policy_is_activated_also_when_the_hub_is_killed_between_binding_and_claim() {
    for halts in [makes_binding, claims] {
        let mut world = World::new(1).await;
        let act = async |world: &World| {
            world.join("m1", json!({})).await;
            world.instance.create(&policies(), NS, &lazy_policy()).await.unwrap();
            world.instance.create(&core("configmaps"), NS, &marked_map("settings", "s", "1")).await.unwrap();
        };
        killed_at(&mut world, halts, act).await;
        world.run(|_| {}).await;
        world.in_member("m1", &core("configmaps"), "settings", |_| true).await;
        let claim = "propagationpolicy.karmada.io/permanent-id";
        let claimed = async || {
            let template = world.instance.get(&core("configmaps"), NS, "settings").await.unwrap();
            template["metadata"]["labels"][claim].is_string()
        };
        world.eventually("the template is claimed", claimed).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_that_is_made_anew_with_its_claim_is_activated_also_when_the_hub_is_killed() {
    let mut world = World::start(1).await;
    world.instance.create(&policies(), NS, &lazy_policy()).await.unwrap();
    world.instance.create(&core("configmaps"), NS, &marked_map("settings", "s", "old")).await.unwrap();
    world.in_member("m1", &core("configmaps"), "settings", |_| true).await;
    let claim = "propagationpolicy.karmada.io/permanent-id";
    let mut again = marked_map("settings", "s", "new");
    world
        .eventually("the template is claimed", async || {
            let former = world.instance.get(&core("configmaps"), NS, "settings").await.unwrap();
            for field in ["labels", "annotations"] {
                again["metadata"][field] = former["metadata"][field].clone();
            }
            again["metadata"]["labels"][claim].is_string()
        })
        .await;
    world.crash();
    world.instance.delete(&core("configmaps"), NS, "settings", &Value::Null).await.unwrap();
    world.instance.create(&core("configmaps"), NS, &again).await.unwrap();
    killed_at(&mut world, makes_binding, async |_| {}).await;
    world.run(|_| {}).await;
    world.in_member("m1", &core("configmaps"), "settings", |copy| copy["data"]["value"] == "new").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_came_while_no_hub_looked_activates_a_lazy_policy_and_a_restart_alone_does_not() {
    let mut world = World::start(2).await;
    let maps = core("configmaps");
    let policy = |activation: Value, cluster: &str| {
        let mut spec = only(&[cluster]);
        spec["activationPreference"] = activation;
        map_policy("p", "s", spec)
    };
    let now = async |world: &World, policy: &Value| {
        let spec = &policy["spec"];
        let spec =
            json!({"spec": {"placement": spec["placement"], "activationPreference": spec["activationPreference"]}});
        world.instance.patch(&policies(), NS, "p", "", Patch::Merge, &spec).await.unwrap();
    };
    world.instance.create(&policies(), NS, &policy("Lazy".into(), "m1")).await.unwrap();
    for name in ["edited", "labelled", "untouched"] {
        world.instance.create(&maps, NS, &marked_map(name, "s", "1")).await.unwrap();
        world.in_member("m1", &maps, name, |_| true).await;
    }
    rest(&world).await;
    world.crash();
    now(&world, &policy("Lazy".into(), "m2")).await;
    for (name, change) in
        [("edited", json!({"data": {"value": "2"}})), ("labelled", json!({"metadata": {"labels": {"more": "x"}}}))]
    {
        world.instance.patch(&maps, NS, name, "", Patch::Merge, &change).await.unwrap();
    }
    world.run(|_| {}).await;
    for name in ["edited", "labelled"] {
        world.in_member("m2", &maps, name, |_| true).await;
        world.not_in_member("m1", &maps, name).await;
    }
    rest(&world).await;
    assert_eq!(world.targets("untouched-configmap").await, ["m1"], "nobody changed it");
    // A policy that was not lazy when it was last applied.
    now(&world, &policy(Value::Null, "m1")).await;
    world.in_member("m1", &maps, "edited", |_| true).await;
    rest(&world).await;
    now(&world, &policy("Lazy".into(), "m2")).await;
    let noted = async || {
        let binding = world.instance.get(&bindings(), NS, "edited-configmap").await.unwrap();
        binding["metadata"]["annotations"]["atoll.io/activated-by"].is_string()
    };
    world.eventually("the policy is known to be lazy", noted).await;
    world.crash();
    world.instance.patch(&maps, NS, "edited", "", Patch::Merge, &json!({"data": {"value": "3"}})).await.unwrap();
    world.run(|_| {}).await;
    world.in_member("m2", &maps, "edited", |copy| copy["data"]["value"] == "3").await;
    rest(&world).await;
    assert_eq!(world.targets("labelled-configmap").await, ["m1"], "nobody changed it");
}

async fn one_map() -> World {
    let world = World::start(1).await;
    world.instance.create(&policies(), NS, &map_policy("p", "s", json!({}))).await.unwrap();
    world.instance.create(&core("configmaps"), NS, &marked_map("settings", "s", "new")).await.unwrap();
    world.in_member("m1", &core("configmaps"), "settings", |_| true).await;
    world
}

/// Waits until nothing is left to be done in the member: no look that is due anyway finds what happens next.
async fn rest(world: &World) {
    let member = world.fleet.as_ref().unwrap().core().members.get("m1").unwrap();
    world
        .eventually("all is applied", async || {
            let left = world.instance.list(&works(), Some("karmada-es-m1"), "").await.unwrap().items;
            let applied = |work: &Value| work["status"]["conditions"].to_string().contains("AppliedSuccessful");
            member.queue.is_empty() && left.iter().all(applied)
        })
        .await;
}

fn mark(id: Value, value: &str) -> Value {
    json!({"metadata": {"labels": {WORK_ID: id}}, "data": {"value": value}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_is_overwritten_with_the_mark_of_a_former_work_is_put_right() {
    let world = one_map().await;
    let member = world.member("m1");
    let right = member.get(&core("configmaps"), NS, "settings").await.unwrap()["metadata"]["labels"][WORK_ID].clone();
    for wrong in [json!("of-a-work-that-is-gone"), Value::Null] {
        rest(&world).await;
        member.patch(&core("configmaps"), NS, "settings", "", Patch::Merge, &mark(wrong.clone(), "old")).await.unwrap();
        world
            .in_member("m1", &core("configmaps"), "settings", |copy| {
                copy["data"]["value"] == "new" && copy["metadata"]["labels"][WORK_ID] == right
            })
            .await;
        rest(&world).await;
        // The same, and then it is removed altogether.
        member.patch(&core("configmaps"), NS, "settings", "", Patch::Merge, &mark(wrong, "old")).await.unwrap();
        member.delete(&core("configmaps"), NS, "settings", &Value::Null).await.unwrap();
        world.in_member("m1", &core("configmaps"), "settings", |copy| copy["data"]["value"] == "new").await;
    }
}

/// Runs the fleet with one member behind `way` until a first map of its policy is there.
async fn spread_by(world: &mut World, way: Arc<dyn Transport>, first: &str) {
    let members = Arc::new(NamedMembers::new([("m1".to_owned(), Endpoint::new("m1", way, "atoll-fleet"))]));
    world.run(|options| options.members = members).await;
    world.join("m1", json!({})).await;
    world.instance.create(&policies(), NS, &map_policy("p", "s", json!({}))).await.unwrap();
    world.instance.create(&core("configmaps"), NS, &marked_map(first, "s", "1")).await.unwrap();
    world.in_member("m1", &core("configmaps"), first, |_| true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_arrives_after_its_work_has_gone_is_removed_and_nothing_else_is() {
    let mut world = World::new(1).await;
    let held = Arc::new(Held {
        inner: world.member("m1").transport().clone(),
        holds: AtomicBool::new(false),
        kept: Mutex::default(),
    });
    spread_by(&mut world, held.clone(), "before").await;
    held.holds.store(true, Ordering::Relaxed);
    world.instance.create(&core("configmaps"), NS, &marked_map("late", "s", "1")).await.unwrap();
    world.eventually("it was sent", async || !held.kept.lock().is_empty()).await;
    world.instance.delete(&core("configmaps"), NS, "late", &Value::Null).await.unwrap();
    world
        .eventually("its work is gone", async || {
            let left = world.instance.list(&works(), Some("karmada-es-m1"), "").await.unwrap().items;
            !left.iter().any(|work| work["metadata"]["name"].as_str().unwrap().starts_with("late-"))
        })
        .await;
    // One of ours that nobody here ever knew, as after a backup was put back.
    let mut unknown = marked_map("unknown", "s", "1");
    unknown["metadata"]["labels"] = json!({"karmada.io/managed": "true", WORK_ID: "of-another-hub"});
    world.member("m1").create(&core("configmaps"), NS, &unknown).await.unwrap();
    let request = held.kept.lock().remove(0);
    assert_eq!(held.inner.send(request).await.unwrap().status(), 201);
    world.not_in_member("m1", &core("configmaps"), "late").await;
    held.holds.store(false, Ordering::Relaxed);
    for name in ["before", "unknown"] {
        assert!(world.member("m1").get_opt(&core("configmaps"), NS, name).await.unwrap().is_some(), "{name}");
    }
}

/// Stands before a member and answers requests for ConfigMaps itself while it is told to.
struct Ingress {
    inner: Arc<dyn Transport>,
    says: Mutex<Option<(u16, &'static str)>>,
    said: AtomicUsize,
}

#[async_trait::async_trait]
impl Transport for Ingress {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<BodyStream>, Status> {
        let says = *self.says.lock();
        if let Some((code, text)) = says.filter(|_| request.uri().path().contains("/configmaps/")) {
            self.said.fetch_add(1, Ordering::Relaxed);
            let body: BodyStream = Box::pin(futures::stream::iter([Ok(Bytes::from_static(text.as_bytes()))]));
            return Ok(Response::builder().status(code).body(body).unwrap());
        }
        self.inner.send(request).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stands_before_a_member_cannot_say_that_a_copy_is_gone() {
    let mut world = World::new(1).await;
    let inner = world.member("m1").transport().clone();
    let ingress = Arc::new(Ingress { inner, says: Mutex::default(), said: AtomicUsize::new(0) });
    spread_by(&mut world, ingress.clone(), "first").await;
    for (name, says) in [("first", (404, "default backend - 404")), ("second", (200, "{}"))] {
        if name != "first" {
            world.instance.create(&core("configmaps"), NS, &marked_map(name, "s", "1")).await.unwrap();
            world.in_member("m1", &core("configmaps"), name, |_| true).await;
        }
        rest(&world).await;
        *ingress.says.lock() = Some(says);
        let before = ingress.said.load(Ordering::Relaxed);
        world.instance.delete(&core("configmaps"), NS, name, &Value::Null).await.unwrap();
        // The second question comes only if the first answer was not believed.
        world.eventually("it asks again", async || ingress.said.load(Ordering::Relaxed) >= before + 2).await;
        assert!(world.member("m1").get_opt(&core("configmaps"), NS, name).await.unwrap().is_some());
        let left = world.instance.list(&works(), Some("karmada-es-m1"), "").await.unwrap().items;
        let own = |work: &Value| work["metadata"]["name"].as_str().unwrap().starts_with(&format!("{name}-"));
        assert!(left.iter().any(own), "its work waits");
        *ingress.says.lock() = None;
        world.not_in_member("m1", &core("configmaps"), name).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_work_ends_when_its_kind_went_from_the_member_with_all_objects() {
    let world = World::start(1).await;
    for endpoint in [&world.instance, world.member("m1")] {
        endpoint.create(&definitions(), None, &gear_definition()).await.unwrap();
    }
    let rule = policy("p", json!({"resourceSelectors": [{"apiVersion": "example.io/v1", "kind": "Gear"}]}));
    world.instance.create(&policies(), NS, &rule).await.unwrap();
    world.instance.create(&gears(), NS, &gear("g", 3)).await.unwrap();
    world.in_member("m1", &gears(), "g", |_| true).await;
    world.member("m1").delete(&definitions(), None, "gears.example.io", &Value::Null).await.unwrap();
    // Nobody cleans up in this member.
    let released = json!({"metadata": {"finalizers": null}});
    world.member("m1").patch(&definitions(), None, "gears.example.io", "", Patch::Merge, &released).await.unwrap();
    let gone = async || world.member("m1").list(&gears(), NS, "").await.is_err_and(|status| status.code == 404);
    world.eventually("the kind is not served", gone).await;
    world.instance.delete(&gears(), NS, "g", &Value::Null).await.unwrap();
    world
        .eventually("its work is gone", async || {
            let left = world.instance.list(&works(), Some("karmada-es-m1"), "").await.unwrap().items;
            !left.iter().any(|work| work["metadata"]["name"].as_str().unwrap().starts_with("g-"))
        })
        .await;
}

/// Loses all claims of ConfigMaps.
struct Unclaimed(Arc<dyn Transport>);

#[async_trait::async_trait]
impl Transport for Unclaimed {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<BodyStream>, Status> {
        if request.method() == Method::PATCH && request.uri().path().contains("/configmaps/") {
            return Err(Status::unavailable("the claim is lost"));
        }
        self.0.send(request).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_binding_whose_template_was_never_claimed_is_released_as_well() {
    let mut world = World::new(1).await;
    let way: Arc<dyn Transport> = Arc::new(Unclaimed(world.instance.transport().clone()));
    world.run(|options| options.instance = Endpoint::new("fleet", way, "atoll-fleet")).await;
    world.join("m1", json!({})).await;
    world.instance.create(&policies(), NS, &map_policy("p", "s", json!({}))).await.unwrap();
    world.instance.create(&core("configmaps"), NS, &marked_map("settings", "s", "1")).await.unwrap();
    let claimed = async || {
        let binding = world.instance.get_opt(&bindings(), NS, "settings-configmap").await.unwrap();
        binding.map(|binding| binding["metadata"]["labels"].get("propagationpolicy.karmada.io/permanent-id").is_some())
    };
    world.eventually("the binding is claimed", async || claimed().await == Some(true)).await;
    let others = json!({"spec": map_policy("p", "other", json!({}))["spec"]});
    world.instance.patch(&policies(), NS, "p", "", Patch::Merge, &others).await.unwrap();
    world.eventually("the binding is released", async || claimed().await == Some(false)).await;
    world.in_member("m1", &core("configmaps"), "settings", |_| true).await;
}

/// Ends a template with all that it has become at the very moment its copy is to be changed.
struct Meanwhile {
    inner: Arc<dyn Transport>,
    instance: Endpoint,
    armed: AtomicBool,
    made: AtomicBool,
}

impl Meanwhile {
    async fn end(&self) -> Result<(), Status> {
        let maps = core("configmaps");
        self.instance.delete(&maps, NS, "settings", &Value::Null).await?;
        self.instance.delete(&bindings(), NS, "settings-configmap", &Value::Null).await?;
        for work in self.instance.list(&works(), Some("karmada-es-m1"), "").await?.items {
            let name = work["metadata"]["name"].as_str().unwrap();
            if name.starts_with("settings-") {
                self.instance.delete(&works(), Some("karmada-es-m1"), name, &Value::Null).await?;
            }
        }
        Endpoint::new("m1", self.inner.clone(), "someone").delete(&maps, NS, "settings", &Value::Null).await
    }
}

#[async_trait::async_trait]
impl Transport for Meanwhile {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<BodyStream>, Status> {
        let path = request.uri().path();
        if request.method() == Method::POST && path.ends_with("/configmaps") {
            self.made.store(true, Ordering::Relaxed);
        }
        let changes = request.method() == Method::PUT && path.ends_with("/configmaps/settings");
        if changes && self.armed.swap(false, Ordering::Relaxed) {
            self.made.store(false, Ordering::Relaxed);
            self.end().await?;
        }
        self.inner.send(request).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_went_with_its_work_is_not_made_again() {
    let mut world = World::new(1).await;
    let way = Arc::new(Meanwhile {
        inner: world.member("m1").transport().clone(),
        instance: world.instance.clone(),
        armed: AtomicBool::new(false),
        made: AtomicBool::new(false),
    });
    spread_by(&mut world, way.clone(), "settings").await;
    way.armed.store(true, Ordering::Relaxed);
    let change = json!({"data": {"value": "2"}});
    world.instance.patch(&core("configmaps"), NS, "settings", "", Patch::Merge, &change).await.unwrap();
    world
        .eventually("its work is gone", async || {
            let left = world.instance.list(&works(), Some("karmada-es-m1"), "").await.unwrap().items;
            !left.iter().any(|work| work["metadata"]["name"].as_str().unwrap().starts_with("settings-"))
        })
        .await;
    assert!(!way.armed.load(Ordering::Relaxed), "it went while its copy was being changed");
    assert!(!way.made.load(Ordering::Relaxed), "nothing was made for a work that goes");
}
