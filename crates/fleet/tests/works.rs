//! Works: how they are built for each cluster, and in which order members get what they say.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use atoll_api::names;
use atoll_meta::{Gvr, Status};
use atoll_runtime::{BodyStream, Endpoint, Patch, Transport};
use serde_json::{Value, json};
use support::{
    NS, World, bindings, config_map, core, definitions, deployment, deployments, gear, gear_definition, gears,
    overrides, policies, policy, works,
};

/// A rule that fits no Deployment, for one cluster.
fn wrong_rule(cluster: &str) -> Value {
    json!([{"targetCluster": {"clusterNames": [cluster]},
        "overriders": {"plaintext": [{"path": "/spec/none/here", "operator": "replace", "value": 1}]}}])
}

/// Waits for the event about an object of this name, and gives what it says.
async fn event(world: &World, reason: &str, name: &str) -> String {
    let mut message = String::new();
    world
        .eventually(&format!("{reason} is told of {name}"), async || {
            let events = world.instance.list(&core("events"), None, "").await.unwrap().items;
            let found = events.iter().find(|one| one["reason"] == reason && one["involvedObject"]["name"] == name);
            message = found.and_then(|event| event["message"].as_str()).unwrap_or_default().to_owned();
            !message.is_empty()
        })
        .await;
    message
}

#[tokio::test(flavor = "multi_thread")]
async fn an_override_that_fails_for_one_cluster_keeps_no_other_from_its_copy() {
    let world = World::start(3).await;
    let rule = json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "OverridePolicy",
        "metadata": {"name": "wrong", "namespace": "default"}, "spec": {"overrideRules": wrong_rule("m1")}});
    world.instance.create(&overrides(), NS, &rule).await.unwrap();
    world.instance.create(&policies(), NS, &policy("p", json!({}))).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("web", 1)).await.unwrap();
    for member in ["m2", "m3"] {
        world.in_member(member, &deployments(), "web", |_| true).await;
    }
    let message = event(&world, "ApplyOverridePolicyFailed", "web").await;
    assert!(message.starts_with("cluster m1: override policy wrong: "), "{message}");
    assert!(world.member("m1").get_opt(&deployments(), NS, "web").await.unwrap().is_none());
    // Changes go on reaching the others, and the cluster is tried again until it can be served.
    let more = json!({"spec": {"replicas": 2}});
    world.instance.patch(&deployments(), NS, "web", "", Patch::Merge, &more).await.unwrap();
    for member in ["m2", "m3"] {
        world.in_member(member, &deployments(), "web", |copy| copy["spec"]["replicas"] == 2).await;
    }
    world.instance.delete(&overrides(), NS, "wrong", &Value::Null).await.unwrap();
    world.in_member("m1", &deployments(), "web", |copy| copy["spec"]["replicas"] == 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_override_that_fails_for_one_cluster_keeps_no_other_from_its_namespace() {
    let world = World::start(2).await;
    let rule = json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterOverridePolicy", "metadata": {"name": "wrong"},
        "spec": {"resourceSelectors": [{"apiVersion": "v1", "kind": "Namespace"}], "overrideRules": wrong_rule("m1")}});
    let cluster_overrides = Gvr::new("policy.karmada.io", "v1alpha1", "clusteroverridepolicies");
    world.instance.create(&cluster_overrides, None, &rule).await.unwrap();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    world.instance.create(&core("namespaces"), None, &namespace).await.unwrap();
    let there = async |member: &str| world.member(member).get_opt(&core("namespaces"), None, "shop").await.unwrap();
    world.eventually("m2 has it", async || there("m2").await.is_some()).await;
    let message = event(&world, "ApplyOverridePolicyFailed", "shop").await;
    assert!(message.starts_with("cluster m1: override policy wrong: "), "{message}");
    assert!(there("m1").await.is_none());
    world.instance.delete(&cluster_overrides, None, "wrong", &Value::Null).await.unwrap();
    world.eventually("m1 has it", async || there("m1").await.is_some()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_keep_the_number_that_was_decided_on_while_scheduling_is_suspended() {
    let world = World::start(1).await;
    world.instance.create(&policies(), NS, &policy("p", json!({}))).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("web", 2)).await.unwrap();
    world.in_member("m1", &deployments(), "web", |copy| copy["spec"]["replicas"] == 2).await;
    let hold = |yes: bool| json!({"spec": {"suspension": {"scheduling": yes}}});
    world.instance.patch(&bindings(), NS, "web-deployment", "", Patch::Merge, &hold(true)).await.unwrap();
    // The second change shows that the copy follows the template in all else.
    let scaled = json!({"spec": {"replicas": 5, "minReadySeconds": 7}});
    world.instance.patch(&deployments(), NS, "web", "", Patch::Merge, &scaled).await.unwrap();
    let copy = world.in_member("m1", &deployments(), "web", |copy| copy["spec"]["minReadySeconds"] == 7).await;
    assert_eq!(copy["spec"]["replicas"], 2);
    let binding = world.instance.get(&bindings(), NS, "web-deployment").await.unwrap();
    assert_eq!((&binding["spec"]["replicas"], &binding["spec"]["clusters"][0]["replicas"]), (&json!(5), &json!(2)));
    world.instance.patch(&bindings(), NS, "web-deployment", "", Patch::Merge, &hold(false)).await.unwrap();
    world.in_member("m1", &deployments(), "web", |copy| copy["spec"]["replicas"] == 5).await;
}

/// A Work that somebody wrote by hand, for the only member.
fn by_hand(manifests: Value) -> Value {
    json!({"apiVersion": "work.karmada.io/v1alpha1", "kind": "Work", "metadata": {"name": "hand", "namespace": "karmada-es-m1"},
        "spec": {"workload": {"manifests": manifests}}})
}

/// The condition Applied of a work of the only member, once it says this.
async fn applied(world: &World, work: &str, check: impl Fn(&Value) -> bool) -> Value {
    let mut found = Value::Null;
    world
        .eventually(&format!("work {work} tells it"), async || {
            found = world.instance.get(&works(), Some("karmada-es-m1"), work).await.unwrap();
            let conditions = found["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions.iter().any(|condition| condition["type"] == "Applied" && check(condition))
        })
        .await;
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn all_manifests_of_a_work_are_carried_out_followed_and_removed() {
    let world = World::start(1).await;
    let maps = core("configmaps");
    let (one, two) = (config_map("one", json!({"k": "1"})), config_map("two", json!({"k": "2"})));
    let home = Some("karmada-es-m1");
    world.instance.create(&works(), home, &by_hand(json!([one, two]))).await.unwrap();
    for name in ["one", "two"] {
        world.in_member("m1", &maps, name, |_| true).await;
    }
    let work = applied(&world, "hand", |condition| condition["status"] == "True").await;
    let seen = work["status"]["manifestStatuses"].as_array().unwrap().iter().map(|status| &status["identifier"]);
    let seen: Vec<_> =
        seen.map(|which| (which["ordinal"].as_i64().unwrap(), which["name"].as_str().unwrap())).collect();
    assert_eq!(seen, [(0, "one"), (1, "two")]);
    // Drift of either is repaired, and a change reaches the one it is for.
    let drift = json!({"data": {"k": "drift"}});
    world.member("m1").patch(&maps, NS, "two", "", Patch::Merge, &drift).await.unwrap();
    world.in_member("m1", &maps, "two", |map| map["data"]["k"] == "2").await;
    world.member("m1").delete(&maps, NS, "one", &Value::Null).await.unwrap();
    let one = world.in_member("m1", &maps, "one", |_| true).await;
    let change = json!([{"op": "replace", "path": "/spec/workload/manifests/1/data/k", "value": "3"}]);
    world.instance.patch(&works(), home, "hand", "", Patch::Json, &change).await.unwrap();
    world.in_member("m1", &maps, "two", |map| map["data"]["k"] == "3").await;
    let still = world.member("m1").get(&maps, NS, "one").await.unwrap();
    assert_eq!(still["metadata"]["resourceVersion"], one["metadata"]["resourceVersion"]);
    world.instance.delete(&works(), home, "hand", &Value::Null).await.unwrap();
    for name in ["one", "two"] {
        world.not_in_member("m1", &maps, name).await;
    }
    world
        .eventually("the work is gone", async || {
            world.instance.get_opt(&works(), home, "hand").await.unwrap().is_none()
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manifest_that_fails_keeps_no_other_of_its_work_from_the_member() {
    let world = World::start(1).await;
    let maps = core("configmaps");
    let theirs = config_map("taken", json!({"k": "theirs"}));
    world.member("m1").create(&maps, NS, &theirs).await.unwrap();
    let manifests = ["first", "taken", "last"].map(|name| config_map(name, json!({"k": "ours"})));
    world.instance.create(&works(), Some("karmada-es-m1"), &by_hand(json!(manifests))).await.unwrap();
    for name in ["first", "last"] {
        world.in_member("m1", &maps, name, |_| true).await;
    }
    let work = applied(&world, "hand", |condition| {
        let message = condition["message"].as_str().unwrap();
        condition["reason"] == "AppliedFailed" && message.starts_with("Failed to apply all manifests (2/3): ")
    })
    .await;
    let seen = work["status"]["manifestStatuses"].as_array().unwrap().iter();
    assert_eq!(seen.map(|status| status["identifier"]["ordinal"].as_i64().unwrap()).collect::<Vec<_>>(), [0, 2]);
    assert!(event(&world, "SyncFailed", "taken").await.contains("already exists in cluster m1"));
    // Theirs stays when the work goes.
    world.instance.delete(&works(), Some("karmada-es-m1"), "hand", &Value::Null).await.unwrap();
    for name in ["first", "last"] {
        world.not_in_member("m1", &maps, name).await;
    }
    assert_eq!(world.member("m1").get(&maps, NS, "taken").await.unwrap()["data"]["k"], "theirs");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_and_its_objects_arrive_in_all_members_when_they_come_together() {
    let world = World::start(3).await;
    let everywhere = json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterPropagationPolicy", "metadata": {"name": "kinds"},
        "spec": {"resourceSelectors": [{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "name": "gears.example.io"}],
                 "placement": {}}});
    let cluster_policies = Gvr::new("policy.karmada.io", "v1alpha1", "clusterpropagationpolicies");
    world.instance.create(&definitions(), None, &gear_definition()).await.unwrap();
    world.instance.create(&cluster_policies, None, &everywhere).await.unwrap();
    let rule = policy("p", json!({"resourceSelectors": [{"apiVersion": "example.io/v1", "kind": "Gear"}]}));
    world.instance.create(&policies(), NS, &rule).await.unwrap();
    world
        .eventually("the instance takes the object", async || {
            world.instance.create(&gears(), NS, &gear("g", 3)).await.is_ok()
        })
        .await;
    for member in ["m1", "m2", "m3"] {
        world
            .eventually(&format!("{member} has both"), async || {
                // The kind may not be served yet.
                world.member(member).get_opt(&gears(), NS, "g").await.ok().flatten().is_some()
            })
            .await;
    }
    assert!(!world.told("SyncFailed").await, "nothing went wrong, it only took a moment");
}

/// A member in which no namespace can be made until it is opened.
struct Closed {
    inner: Arc<dyn Transport>,
    open: Arc<AtomicBool>,
}

#[async_trait::async_trait]
impl Transport for Closed {
    async fn send(&self, request: http::Request<bytes::Bytes>) -> Result<http::Response<BodyStream>, Status> {
        let makes = request.method() == http::Method::POST && request.uri().path() == "/api/v1/namespaces";
        if makes && !self.open.load(Ordering::Relaxed) {
            return Err(Status::unavailable("not now"));
        }
        self.inner.send(request).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_waits_for_its_namespace_and_says_so() {
    let mut world = World::new(1).await;
    let open = Arc::new(AtomicBool::new(false));
    let closed = Closed { inner: world.member("m1").transport().clone(), open: open.clone() };
    let member = ("m1".to_owned(), Endpoint::new("m1", Arc::new(closed), "atoll-fleet"));
    world.run(|options| options.members = Arc::new(atoll_fleet::NamedMembers::new([member]))).await;
    world.join("m1", json!({})).await;
    let shop = Some("shop");
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    world.instance.create(&core("namespaces"), None, &namespace).await.unwrap();
    let mut rule =
        policy("p", json!({"resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "settings"}]}));
    rule["metadata"]["namespace"] = "shop".into();
    world.instance.create(&policies(), shop, &rule).await.unwrap();
    let mut map = config_map("settings", json!({"k": "v"}));
    map["metadata"]["namespace"] = "shop".into();
    world.instance.create(&core("configmaps"), shop, &map).await.unwrap();
    let work = names::work("ConfigMap", "settings", "shop");
    world
        .eventually("the work is there", async || {
            world.instance.get_opt(&works(), Some("karmada-es-m1"), &work).await.unwrap().is_some()
        })
        .await;
    applied(&world, &work, |condition| {
        condition["status"] == "False"
            && condition["reason"] == "Waiting"
            && condition["message"] == "Waiting: namespace shop is not in cluster m1"
    })
    .await;
    open.store(true, Ordering::Relaxed);
    applied(&world, &work, |condition| condition["status"] == "True").await;
    assert!(world.member("m1").get_opt(&core("configmaps"), shop, "settings").await.unwrap().is_some());
    assert!(!world.told_about("SyncFailed", "settings").await);
    // Why there was no namespace is told where it belongs.
    assert!(event(&world, "SyncFailed", "shop").await.contains("not now"));
}
