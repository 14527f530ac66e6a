//! Losing contact deletes nothing: what made users of other systems lose trust does not happen here.
#![allow(clippy::unwrap_used)]

mod support;

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use atoll_fleet::MemberResolver;
use atoll_meta::Status;
use atoll_runtime::{BodyStream, Endpoint, Patch, Transport};
use parking_lot::Mutex;
use serde_json::{Value, json};
use support::{
    NS, World, bindings, clusters, core, customization, customizations, definitions, deployment, deployments, gear,
    gear_definition, gears, map_policy, marked_map, only, policies, policy, works,
};

const OWN: &str = "fleet/tests/incidents.rs";
const STORIES: &str = "fleet/tests/support/stories.rs";
const STORY: &str = "fleet/tests/story.rs";

/// What users of Karmada met: the issue there, what happened, and the test here, by file below `crates` and name.
const MET: &[(&str, &str, (&str, &str))] = &[
    (
        "#1640",
        "scaling while a member is away deletes healthy replicas",
        (OWN, "scaling_while_a_member_is_away_takes_nothing_from_it"),
    ),
    (
        "#5150",
        "after hours without contact objects are deleted on return",
        (OWN, "a_long_absence_and_a_restart_of_the_hub_delete_nothing_on_return"),
    ),
    (
        "#6098",
        "custom resources are deleted around an upgrade",
        (OWN, "a_kind_that_is_not_served_for_a_while_loses_no_copies"),
    ),
    ("#1189, #4840, #6774", "replicas stay where failover put them", (STORIES, "failover_and_return")),
    ("#4560, #1411", "editing the policy moves nothing", (OWN, "a_change_of_the_policy_moves_what_is_there")),
    ("#4805", "replicas are not spread evenly", ("placement/tests/division.rs", "static_weights_divide_in_proportion")),
    (
        "#7431",
        "flapping resets the patience with an application",
        (OWN, "not_knowing_for_a_while_does_not_reset_the_patience_with_an_unhealthy_application"),
    ),
    ("#3736", "the old copy goes before the new one is well", (OWN, "an_old_copy_stays_until_its_successor_is_well")),
    (
        "#5006",
        "state is lost in a failover, or two copies run",
        ("fleet/tests/effects.rs", "cluster_failover_purges_directly_and_hands_over_state"),
    ),
    (
        "#4642, #1544, #1193",
        "kinds without a rule look unready for ever",
        ("interpreter/tests/builtin_status.rs", "kinds_without_a_rule_keep_their_status"),
    ),
    (
        "#2989",
        "a workload counts as ready in a member that died",
        (OWN, "nobody_is_said_to_be_well_in_a_member_that_died"),
    ),
    (
        "#4592",
        "containers that a member adds upset the state of pods",
        (OWN, "a_container_that_the_member_adds_stays_and_the_state_comes_back"),
    ),
    ("#4032", "a wrong script silently breaks built-in status", (OWN, "a_script_that_breaks_built_in_status_says_so")),
    (
        "#2026, #5031",
        "no cluster fits, and nobody says why",
        (STORY, "the_way_of_a_template_can_be_told_and_moves_are_planned"),
    ),
    ("#4895", "drift is not seen", (STORY, "drift_in_a_member_is_repaired_and_what_others_add_stays")),
    (
        "#4485, #7147",
        "agents and tokens may do too much",
        (
            "atoll/tests/karmadactl/agent.rs",
            "an_invited_cluster_enrols_itself_with_few_rights_and_comes_back_without_the_token",
        ),
    ),
    (
        "#4802",
        "credentials of a member cannot be replaced",
        (OWN, "a_member_whose_token_is_changed_is_served_on_without_a_restart"),
    ),
    (
        "#3176",
        "members are not asked in the caller's name",
        (STORY, "a_member_is_reached_through_the_instance_under_the_callers_name"),
    ),
    ("#4738", "a restart is dear", (STORY, "a_restart_changes_nothing_and_catches_up")),
];

#[test]
fn what_users_met_elsewhere_has_a_test_here_and_a_line_in_the_documentation() {
    let mut table = String::from("| there | what happened | shown by |\n| --- | --- | --- |\n");
    for (issues, what, (file, name)) in MET {
        let path = atoll_testkit::peers::checkout().join("crates").join(file);
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(text.contains(&format!("fn {name}(")), "{file} has no test {name}");
        writeln!(table, "| {issues} | {what} | `{file}` {} |", name.replace('_', " ")).unwrap();
    }
    atoll_testkit::peers::keep_section("docs/karmada.md", "incidents", &table);
}

/// Members are asked often and believed soon; nothing else differs from the usual settings.
async fn watchful(members: usize) -> World {
    let mut world = World::new(members).await;
    resume(&mut world).await;
    for number in 1..=members {
        world.join(&format!("m{number}"), json!({})).await;
    }
    world
}

async fn resume(world: &mut World) {
    world
        .run(|options| {
            options.probe_interval = Duration::from_millis(200);
            options.probe_threshold = Duration::from_millis(400);
        })
        .await;
}

/// Members that let in only who shows the present token, which is taken from the Secret of the cluster.
struct Guarded {
    members: std::collections::BTreeMap<String, Endpoint>,
    present: Arc<Mutex<String>>,
}

struct Guard {
    inner: Arc<dyn Transport>,
    shown: String,
    present: Arc<Mutex<String>>,
}

#[async_trait::async_trait]
impl Transport for Guard {
    async fn send(&self, request: http::Request<bytes::Bytes>) -> Result<http::Response<BodyStream>, Status> {
        if *self.present.lock() != self.shown {
            return Err(Status::unauthorized());
        }
        self.inner.send(request).await
    }
}

#[async_trait::async_trait]
impl MemberResolver for Guarded {
    async fn resolve(&self, cluster: &Value, secret: Option<&Value>) -> Result<Endpoint, Status> {
        let name = cluster["metadata"]["name"].as_str().unwrap();
        let shown = secret.and_then(|secret| secret["data"]["token"].as_str()).unwrap_or_default().to_owned();
        let guard = Guard { inner: self.members[name].transport().clone(), shown, present: self.present.clone() };
        Ok(Endpoint::new(name, Arc::new(guard), "atoll-fleet"))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_whose_token_is_changed_is_served_on_without_a_restart() {
    let mut world = World::new(1).await;
    let present = Arc::new(Mutex::new("b25l".to_owned()));
    let members = world.members.iter().map(|member| (member.name().to_owned(), member.clone())).collect();
    let guarded = Arc::new(Guarded { members, present: present.clone() });
    world
        .run(|options| {
            options.members = guarded;
            options.probe_interval = Duration::from_millis(200);
        })
        .await;
    // The Secret need not be called like the cluster.
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "credentials", "namespace": "karmada-cluster"}, "data": {"token": "b25l"}});
    world.instance.create(&core("secrets"), Some("karmada-cluster"), &secret).await.unwrap();
    let reference = json!({"namespace": "karmada-cluster", "name": "credentials"});
    world.join("m1", json!({"spec": {"secretRef": reference}})).await;
    world.instance.create(&policies(), NS, &policy("p", json!({}))).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("before", 1)).await.unwrap();
    let before = world.in_member("m1", &deployments(), "before", |_| true).await;
    // The member takes only the new token from now on; the hub learns it later.
    "dHdv".clone_into(&mut present.lock());
    world.instance.create(&deployments(), NS, &deployment("between", 1)).await.unwrap();
    world
        .eventually("the refusal is told", async || {
            let works = world.instance.list(&works(), Some("karmada-es-m1"), "").await.unwrap().items;
            works.iter().any(|work| {
                let conditions = work["status"]["conditions"].as_array().cloned().unwrap_or_default();
                conditions.iter().any(|c| c["message"].as_str().is_some_and(|text| text.contains("Unauthorized")))
            })
        })
        .await;
    let new = json!({"data": {"token": "dHdv"}});
    world
        .instance
        .patch(&core("secrets"), Some("karmada-cluster"), "credentials", "", Patch::Merge, &new)
        .await
        .unwrap();
    world.in_member("m1", &deployments(), "between", |_| true).await;
    // States come back over the new way, and repair works.
    world.report("m1", "before", 1).await;
    world
        .eventually("the state comes back", async || {
            world.instance.get(&deployments(), NS, "before").await.unwrap()["status"]["readyReplicas"] == 1
        })
        .await;
    let after = world.member("m1").get(&deployments(), NS, "before").await.unwrap();
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
}

/// Waits until something that is still so has been decided on again.
async fn decided_again(world: &World, name: &str) {
    let marker = format!("{name}-marker");
    world.instance.create(&deployments(), NS, &deployment(&marker, 1)).await.unwrap();
    world
        .eventually("a later decision was made", async || {
            world.condition(&format!("{marker}-deployment"), "Scheduled").await.is_object()
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn scaling_while_a_member_is_away_takes_nothing_from_it() {
    let world = watchful(2).await;
    let divided = json!({"placement": {"replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"}}});
    world.instance.create(&policies(), NS, &policy("p", divided)).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("web", 4)).await.unwrap();
    let before = world.in_member("m1", &deployments(), "web", |copy| copy["spec"]["replicas"] == 2).await;
    world.cut("m1", true);
    world.readiness("m1", "False").await;
    let more = json!({"spec": {"replicas": 8}});
    world.instance.patch(&deployments(), NS, "web", "", Patch::Merge, &more).await.unwrap();
    world.in_member("m2", &deployments(), "web", |copy| copy["spec"]["replicas"].as_i64() >= Some(4)).await;
    assert!(world.targets("web-deployment").await.contains(&"m1".to_owned()), "failover is off: m1 stays a target");
    let there = world.member("m1").get(&deployments(), NS, "web").await.unwrap();
    assert_eq!((&there["spec"]["replicas"], &there["metadata"]["uid"]), (&json!(2), &before["metadata"]["uid"]));
    world.cut("m1", false);
    world.readiness("m1", "True").await;
    let copy = world.in_member("m1", &deployments(), "web", |copy| copy["spec"]["replicas"].as_i64() >= Some(2)).await;
    assert_eq!(copy["metadata"]["uid"], before["metadata"]["uid"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_absence_and_a_restart_of_the_hub_delete_nothing_on_return() {
    let mut world = watchful(2).await;
    world.instance.create(&policies(), NS, &map_policy("p", "s", json!({}))).await.unwrap();
    world.instance.create(&core("configmaps"), NS, &marked_map("settings", "s", "1")).await.unwrap();
    let before = world.in_member("m1", &core("configmaps"), "settings", |_| true).await;
    world.cut("m1", true);
    world.readiness("m1", "False").await;
    world.crash();
    resume(&mut world).await;
    world.instance.create(&core("configmaps"), NS, &marked_map("later", "s", "1")).await.unwrap();
    world.in_member("m2", &core("configmaps"), "later", |_| true).await;
    world.cut("m1", false);
    world.in_member("m1", &core("configmaps"), "later", |_| true).await;
    let after = world.member("m1").get(&core("configmaps"), NS, "settings").await.unwrap();
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    let works = world.instance.list(&works(), Some("karmada-es-m1"), "").await.unwrap().items;
    assert!(works.iter().all(|work| work["metadata"]["deletionTimestamp"].is_null()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_that_is_not_served_for_a_while_loses_no_copies() {
    let mut world = watchful(1).await;
    for endpoint in [&world.instance, world.member("m1")] {
        endpoint.create(&definitions(), None, &gear_definition()).await.unwrap();
    }
    let rule = policy("p", json!({"resourceSelectors": [{"apiVersion": "example.io/v1", "kind": "Gear"}]}));
    world.instance.create(&policies(), NS, &rule).await.unwrap();
    world.instance.create(&gears(), NS, &gear("g", 3)).await.unwrap();
    let before = world.in_member("m1", &gears(), "g", |_| true).await;
    // As around an upgrade: the controllers end, the kind is not served, they start, it is served again.
    world.crash();
    let served = |yes: bool| json!([{"op": "replace", "path": "/spec/versions/0/served", "value": yes}]);
    world.instance.patch(&definitions(), None, "gears.example.io", "", Patch::Json, &served(false)).await.unwrap();
    resume(&mut world).await;
    world.instance.create(&policies(), NS, &policy("q", json!({}))).await.unwrap();
    decided_again(&world, "upgrade").await;
    assert!(world.member("m1").get_opt(&gears(), NS, "g").await.unwrap().is_some());
    assert!(world.instance.get_opt(&bindings(), NS, "g-gear").await.unwrap().is_some());
    world.instance.patch(&definitions(), None, "gears.example.io", "", Patch::Json, &served(true)).await.unwrap();
    let more = json!({"spec": {"teeth": 5}});
    world
        .eventually("the kind is served again", async || {
            world.instance.patch(&gears(), NS, "g", "", Patch::Merge, &more).await.is_ok()
        })
        .await;
    let after = world.in_member("m1", &gears(), "g", |gear| gear["spec"]["teeth"] == 5).await;
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    // The same under running controllers.
    world.instance.patch(&definitions(), None, "gears.example.io", "", Patch::Json, &served(false)).await.unwrap();
    decided_again(&world, "running").await;
    world
        .fleet
        .as_ref()
        .unwrap()
        .core()
        .queues
        .works
        .add(atoll_fleet::keys::BindingKey { namespace: "default".into(), name: "g-gear".into() });
    decided_again(&world, "again").await;
    let left = world.member("m1").get(&gears(), NS, "g").await.unwrap();
    assert_eq!(left["metadata"]["uid"], before["metadata"]["uid"]);
    assert!(world.instance.get_opt(&bindings(), NS, "g-gear").await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unready_member_keeps_its_workloads_while_failover_is_off() {
    let world = watchful(2).await;
    let one =
        json!({"placement": {"spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]}});
    world.instance.create(&policies(), NS, &policy("p", one)).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("web", 1)).await.unwrap();
    world.in_member("m1", &deployments(), "web", |_| true).await;
    let taints = json!({"spec": {"taints": [{"key": "anything", "effect": "NoExecute"}]}});
    world.instance.patch(&clusters(), None, "m1", "", Patch::Merge, &taints).await.unwrap();
    world.cut("m1", true);
    world.readiness("m1", "False").await;
    decided_again(&world, "off").await;
    assert_eq!(world.targets("web-deployment").await, ["m1"]);
    assert!(world.member("m1").get_opt(&deployments(), NS, "web").await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_the_policy_moves_what_is_there() {
    let world = watchful(2).await;
    world.instance.create(&policies(), NS, &policy("p", only(&["m1"]))).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("web", 1)).await.unwrap();
    world.in_member("m1", &deployments(), "web", |_| true).await;
    world.instance.patch(&policies(), NS, "p", "", Patch::Merge, &json!({"spec": only(&["m2"])})).await.unwrap();
    world.in_member("m2", &deployments(), "web", |_| true).await;
    world.not_in_member("m1", &deployments(), "web").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_that_breaks_built_in_status_says_so() {
    let world = watchful(1).await;
    let broken =
        json!({"statusAggregation": {"luaScript": "function AggregateStatus(obj, items) error('no idea') end"}});
    world
        .instance
        .create(&customizations(), None, &customization("bad", ("apps/v1", "Deployment"), broken))
        .await
        .unwrap();
    world.instance.create(&policies(), NS, &policy("p", json!({}))).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("web", 1)).await.unwrap();
    world.report("m1", "web", 1).await;
    world.eventually("the failure is told", async || world.told("AggregateStatusFailed").await).await;
    world.instance.delete(&customizations(), None, "bad", &Value::Null).await.unwrap();
    world
        .eventually("the built-in rule counts again", async || {
            world.instance.get(&deployments(), NS, "web").await.unwrap()["status"]["readyReplicas"] == 1
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_that_vanishes_with_its_namespace_takes_its_copies_and_others_stay() {
    let world = watchful(1).await;
    world.instance.create(&policies(), NS, &map_policy("p", "s", json!({}))).await.unwrap();
    for name in ["one", "two"] {
        world.instance.create(&core("configmaps"), NS, &marked_map(name, "s", "1")).await.unwrap();
        world.in_member("m1", &core("configmaps"), name, |_| true).await;
    }
    // Somebody else's object of the same kind is never touched.
    let foreign = support::config_map("theirs", json!({"k": "v"}));
    world.member("m1").create(&core("configmaps"), NS, &foreign).await.unwrap();
    world.instance.delete(&core("configmaps"), NS, "one", &Value::Null).await.unwrap();
    world.not_in_member("m1", &core("configmaps"), "one").await;
    for name in ["two", "theirs"] {
        assert!(world.member("m1").get_opt(&core("configmaps"), NS, name).await.unwrap().is_some(), "{name}");
    }
}

/// Two members of which one runs an application of two replicas, half of them well; `failover` says what to do then.
async fn half_well(failover: Value) -> World {
    let mut world = World::new(2).await;
    world.run(|options| options.failover = true).await;
    for name in ["m1", "m2"] {
        world.join(name, json!({})).await;
    }
    let spec = json!({"propagateDeps": true,
        "placement": {"spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]},
        "failover": {"application": failover}});
    world.instance.create(&policies(), NS, &policy("p", spec)).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("web", 2)).await.unwrap();
    world.report("m1", "web", 1).await;
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn not_knowing_for_a_while_does_not_reset_the_patience_with_an_unhealthy_application() {
    let world = half_well(json!({"decisionConditions": {"tolerationSeconds": 3}, "purgeMode": "Directly"})).await;
    let health = async |wanted: &str| {
        let binding = world.instance.get(&bindings(), NS, "web-deployment").await.unwrap();
        let items = binding["status"]["aggregatedStatus"].as_array().cloned().unwrap_or_default();
        items.iter().any(|item| item["clusterName"] == "m1" && item["health"] == wanted)
    };
    world.eventually("it is unhealthy", async || health("Unhealthy").await).await;
    // From now on nobody can tell: the time that has begun goes on.
    let unsure = json!({"healthInterpretation": {"luaScript": "function InterpretHealth(obj) error('no idea') end"}});
    world
        .instance
        .create(&customizations(), None, &customization("unsure", ("apps/v1", "Deployment"), unsure))
        .await
        .unwrap();
    world.in_member("m2", &deployments(), "web", |_| true).await;
    world.not_in_member("m1", &deployments(), "web").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_copy_stays_until_its_successor_is_well() {
    let world = half_well(
        json!({"decisionConditions": {"tolerationSeconds": 5}, "purgeMode": "Gracefully", "gracePeriodSeconds": 600}),
    )
    .await;
    world.in_member("m2", &deployments(), "web", |_| true).await;
    assert!(world.member("m1").get_opt(&deployments(), NS, "web").await.unwrap().is_some(), "nothing else serves yet");
    world.report("m2", "web", 2).await;
    world.not_in_member("m1", &deployments(), "web").await;
}

/// A member whose own webhook puts a second container into every pod.
struct Injecting(Arc<dyn Transport>);

#[async_trait::async_trait]
impl Transport for Injecting {
    async fn send(&self, request: http::Request<bytes::Bytes>) -> Result<http::Response<BodyStream>, Status> {
        let (parts, body) = request.into_parts();
        let creates = parts.method == http::Method::POST && parts.uri.path().ends_with("/pods");
        let body = match serde_json::from_slice::<Value>(&body) {
            Ok(mut pod) if creates => {
                let containers = pod["spec"]["containers"].as_array_mut().unwrap();
                containers.push(json!({"name": "sidecar", "image": "mesh:1"}));
                pod.to_string().into()
            }
            _ => body,
        };
        self.0.send(http::Request::from_parts(parts, body)).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_that_the_member_adds_stays_and_the_state_comes_back() {
    let mut world = World::new(1).await;
    let injecting = Injecting(world.member("m1").transport().clone());
    let member = ("m1".to_owned(), Endpoint::new("m1", Arc::new(injecting), "atoll-fleet"));
    world.run(|options| options.members = Arc::new(atoll_fleet::NamedMembers::new([member]))).await;
    world.join("m1", json!({})).await;
    let pods = json!({"resourceSelectors": [{"apiVersion": "v1", "kind": "Pod"}]});
    world.instance.create(&policies(), NS, &policy("p", pods)).await.unwrap();
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one", "namespace": "default"},
        "spec": {"containers": [{"name": "app", "image": "app:1"}]}});
    world.instance.create(&core("pods"), NS, &pod).await.unwrap();
    let copy = world.in_member("m1", &core("pods"), "one", |_| true).await;
    let containers = |copy: &Value| -> Vec<String> {
        let list = copy["spec"]["containers"].as_array().unwrap();
        list.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(containers(&copy), ["app", "sidecar"]);
    let state = |name: &str| json!({"name": name, "ready": true, "restartCount": 0, "image": "x", "imageID": "x", "state": {"running": {}}});
    let status = json!({"status": {"phase": "Running", "containerStatuses": [state("app"), state("sidecar")],
        "conditions": [{"type": "Ready", "status": "True"}]}});
    world.member("m1").patch(&core("pods"), NS, "one", "status", Patch::Merge, &status).await.unwrap();
    world
        .eventually("the state comes back", async || {
            world.instance.get(&core("pods"), NS, "one").await.unwrap()["status"]["phase"] == "Running"
        })
        .await;
    // The template changes in what may change; the member keeps its container, and nobody is refused.
    let label = json!({"metadata": {"labels": {"tier": "a"}}});
    world.instance.patch(&core("pods"), NS, "one", "", Patch::Merge, &label).await.unwrap();
    let copy = world.in_member("m1", &core("pods"), "one", |copy| copy["metadata"]["labels"]["tier"] == "a").await;
    assert_eq!(containers(&copy), ["app", "sidecar"]);
    let there = world.instance.get(&core("pods"), NS, "one").await.unwrap();
    assert_eq!(containers(&there), ["app"], "the template is nobody else's to change");
    assert_eq!(world.condition("one-pod", "FullyApplied").await["status"], "True");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_said_to_be_well_in_a_member_that_died() {
    let world = watchful(2).await;
    world.instance.create(&policies(), NS, &policy("p", json!({}))).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("web", 1)).await.unwrap();
    for member in ["m1", "m2"] {
        world.report(member, "web", 1).await;
    }
    let health = async |wanted: [&str; 2]| {
        let binding = world.instance.get(&bindings(), NS, "web-deployment").await.unwrap();
        let items = binding["status"]["aggregatedStatus"].as_array().cloned().unwrap_or_default();
        items.iter().map(|item| &item["health"]).eq(wanted.iter())
    };
    world.eventually("both are well", async || health(["Healthy", "Healthy"]).await).await;
    world.cut("m1", true);
    world.readiness("m1", "False").await;
    world.eventually("of m1 nobody knows", async || health(["Unknown", "Healthy"]).await).await;
    let trace = atoll_fleet::why::trace(&world.instance, "deployment", "default", "web").await.unwrap();
    assert!(trace.obstacle.as_deref().unwrap().starts_with("Cluster m1 is not ready"), "{trace}");
    world.cut("m1", false);
    world.eventually("both are well again", async || health(["Healthy", "Healthy"]).await).await;
}
