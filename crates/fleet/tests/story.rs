//! Stories of propagation over a hub in memory.
#![allow(clippy::unwrap_used)]

mod support;

use atoll_runtime::Patch;
use serde_json::{Value, json};
use support::{
    World, bindings, clusters, config_map, core, deployment, deployments, overrides, policies, policy, works,
};

const NS: Option<&str> = Some("default");

async fn spread(world: &World) {
    world.instance.create(&policies(), NS, &policy("p", json!({}))).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("web", 3)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_reaches_every_member_and_its_status_comes_back() {
    let world = World::start(3).await;
    spread(&world).await;
    for member in ["m1", "m2", "m3"] {
        let copy = world.in_member(member, &deployments(), "web", |_| true).await;
        assert_eq!(copy["spec"]["replicas"], 3);
        assert_eq!(copy["metadata"]["labels"]["karmada.io/managed"], "true");
        let mut status = copy.clone();
        status["status"] = json!({"observedGeneration": copy["metadata"]["generation"], "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3});
        world.member(member).update_sub(&deployments(), NS, "web", "status", &status).await.unwrap();
    }
    world
        .eventually("the template shows nine ready replicas", async || {
            let template = world.instance.get(&deployments(), NS, "web").await.unwrap();
            template["status"]["readyReplicas"] == 9
                && template["status"]["observedGeneration"] == template["metadata"]["generation"]
        })
        .await;
    let binding = world.instance.get(&bindings(), NS, "web-deployment").await.unwrap();
    let condition = |kind: &str| {
        binding["status"]["conditions"].as_array().unwrap().iter().find(|c| c["type"] == kind).unwrap().clone()
    };
    assert_eq!(condition("Scheduled")["status"], "True");
    assert_eq!(condition("FullyApplied")["status"], "True");
    assert_eq!(binding["status"]["schedulerObservedGeneration"], binding["metadata"]["generation"]);
    assert_eq!(binding["status"]["aggregatedStatus"].as_array().unwrap().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_are_divided_by_weight_and_follow_changes() {
    let world = World::start(2).await;
    let weights = json!({"placement": {"replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
        "weightPreference": {"staticWeightList": [
            {"targetCluster": {"clusterNames": ["m1"]}, "weight": 1}, {"targetCluster": {"clusterNames": ["m2"]}, "weight": 2}]}}}});
    world.instance.create(&policies(), NS, &policy("p", weights)).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("web", 6)).await.unwrap();
    for (member, replicas) in [("m1", 2), ("m2", 4)] {
        world.in_member(member, &deployments(), "web", |copy| copy["spec"]["replicas"] == replicas).await;
    }
    world.instance.patch(&deployments(), NS, "web", "", Patch::Merge, &json!({"spec": {"replicas": 3}})).await.unwrap();
    for (member, replicas) in [("m1", 1), ("m2", 2)] {
        world.in_member(member, &deployments(), "web", |copy| copy["spec"]["replicas"] == replicas).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn overrides_make_copies_differ_and_their_removal_makes_them_equal() {
    let world = World::start(2).await;
    spread(&world).await;
    let image = |copy: &Value| copy["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap().to_owned();
    world.in_member("m1", &deployments(), "web", |copy| image(copy) == "nginx:1").await;
    let rule = json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "OverridePolicy", "metadata": {"name": "o", "namespace": "default"},
        "spec": {"overrideRules": [{"targetCluster": {"clusterNames": ["m1"]},
            "overriders": {"imageOverrider": [{"component": "Tag", "operator": "replace", "value": "2"}]}}]}});
    world.instance.create(&overrides(), NS, &rule).await.unwrap();
    world.in_member("m1", &deployments(), "web", |copy| image(copy) == "nginx:2").await;
    world.in_member("m2", &deployments(), "web", |copy| image(copy) == "nginx:1").await;
    world.instance.delete(&overrides(), NS, "o", &Value::Null).await.unwrap();
    world.in_member("m1", &deployments(), "web", |copy| image(copy) == "nginx:1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn drift_in_a_member_is_repaired_and_what_others_add_stays() {
    let world = World::start(1).await;
    spread(&world).await;
    world.in_member("m1", &deployments(), "web", |_| true).await;
    let drift = json!({"metadata": {"labels": {"theirs": "yes"}}, "spec": {"replicas": 9, "minReadySeconds": 5}});
    world.member("m1").patch(&deployments(), NS, "web", "", Patch::Merge, &drift).await.unwrap();
    let copy = world.in_member("m1", &deployments(), "web", |copy| copy["spec"]["replicas"] == 3).await;
    assert!(copy["spec"].get("minReadySeconds").is_none_or(|seconds| seconds == 0), "{}", copy["spec"]);
    assert_eq!(copy["metadata"]["labels"]["theirs"], "yes");
    world.member("m1").delete(&deployments(), NS, "web", &Value::Null).await.unwrap();
    world.in_member("m1", &deployments(), "web", |copy| copy["metadata"]["deletionTimestamp"].is_null()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_is_not_ours_is_left_alone_unless_we_may_take_it() {
    let world = World::start(1).await;
    let mut foreign = deployment("web", 1);
    foreign["spec"]["template"]["spec"]["containers"][0]["image"] = "foreign:1".into();
    world.member("m1").create(&deployments(), NS, &foreign).await.unwrap();
    spread(&world).await;
    world
        .eventually("the conflict is told", async || {
            let binding = world.instance.get_opt(&bindings(), NS, "web-deployment").await.unwrap().unwrap_or_default();
            let message = binding["status"]["aggregatedStatus"][0]["appliedMessage"].as_str().unwrap_or_default();
            message.contains("already exists in cluster m1")
        })
        .await;
    world.eventually("and at the template", async || world.told_about("SyncFailed", "web").await).await;
    let copy = world.member("m1").get(&deployments(), NS, "web").await.unwrap();
    assert_eq!(copy["spec"]["replicas"], 1);
    world
        .instance
        .patch(&policies(), NS, "p", "", Patch::Merge, &json!({"spec": {"conflictResolution": "Overwrite"}}))
        .await
        .unwrap();
    let copy = world.in_member("m1", &deployments(), "web", |copy| copy["spec"]["replicas"] == 3).await;
    assert_eq!(copy["spec"]["template"]["spec"]["containers"][0]["image"], "nginx:1");
}

#[tokio::test(flavor = "multi_thread")]
async fn deletions_follow_the_template_or_stop_where_they_are_told_to() {
    let world = World::start(2).await;
    spread(&world).await;
    world.in_member("m2", &deployments(), "web", |_| true).await;
    world.instance.delete(&deployments(), NS, "web", &Value::Null).await.unwrap();
    for member in ["m1", "m2"] {
        world.not_in_member(member, &deployments(), "web").await;
    }
    world
        .eventually("no binding is left", async || {
            world.instance.get_opt(&bindings(), NS, "web-deployment").await.unwrap().is_none()
        })
        .await;
    let left = world.instance.list(&works(), None, "").await.unwrap();
    assert!(left.items.iter().all(|work| work["spec"]["workload"]["manifests"][0]["kind"] != "Deployment"));

    let keep = json!({"spec": {"preserveResourcesOnDeletion": true}});
    world.instance.patch(&policies(), NS, "p", "", Patch::Merge, &keep).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("kept", 1)).await.unwrap();
    world.in_member("m1", &deployments(), "kept", |_| true).await;
    world
        .eventually("the work knows that the copy stays", async || {
            let works = world.instance.list(&works(), Some("karmada-es-m1"), "").await.unwrap();
            works.items.iter().any(|work| work["spec"]["preserveResourcesOnDeletion"] == true)
        })
        .await;
    world.instance.delete(&deployments(), NS, "kept", &Value::Null).await.unwrap();
    world
        .eventually("no binding is left", async || {
            world.instance.get_opt(&bindings(), NS, "kept-deployment").await.unwrap().is_none()
        })
        .await;
    let kept = world.member("m1").get(&deployments(), NS, "kept").await.unwrap();
    assert!(kept["metadata"]["labels"].get("karmada.io/managed").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_goes_leaves_everything_in_place() {
    let world = World::start(1).await;
    spread(&world).await;
    world.in_member("m1", &deployments(), "web", |_| true).await;
    world.instance.delete(&policies(), NS, "p", &Value::Null).await.unwrap();
    world
        .eventually("the policy is gone", async || {
            world.instance.get_opt(&policies(), NS, "p").await.unwrap().is_none()
        })
        .await;
    let template = world.instance.get(&deployments(), NS, "web").await.unwrap();
    assert!(template["metadata"]["labels"].get("propagationpolicy.karmada.io/permanent-id").is_none());
    let binding = world.instance.get(&bindings(), NS, "web-deployment").await.unwrap();
    assert_eq!(binding["spec"]["clusters"][0]["name"], "m1");
    assert!(world.member("m1").get_opt(&deployments(), NS, "web").await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn namespaces_are_made_in_members_before_what_is_in_them() {
    let world = World::start(1).await;
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"team": "a"}}});
    world.instance.create(&core("namespaces"), None, &namespace).await.unwrap();
    let mut map = config_map("settings", json!({"k": "v"}));
    map["metadata"]["namespace"] = "shop".into();
    world.instance.create(&core("configmaps"), Some("shop"), &map).await.unwrap();
    let mut rule = policy("p", json!({"resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap"}]}));
    rule["metadata"]["namespace"] = "shop".into();
    world.instance.create(&policies(), Some("shop"), &rule).await.unwrap();
    world
        .eventually("the map is in the member's namespace", async || {
            let map = world.member("m1").get_opt(&core("configmaps"), Some("shop"), "settings").await.unwrap();
            map.is_some_and(|map| map["data"]["k"] == "v")
        })
        .await;
    let made = world.member("m1").get(&core("namespaces"), None, "shop").await.unwrap();
    assert_eq!(made["metadata"]["labels"]["team"], "a");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_changes_nothing_and_catches_up() {
    let mut world = World::start(2).await;
    spread(&world).await;
    for member in ["m1", "m2"] {
        world.in_member(member, &deployments(), "web", |_| true).await;
    }
    world
        .eventually("all is applied", async || {
            let binding = world.instance.get(&bindings(), NS, "web-deployment").await.unwrap();
            binding["status"]["conditions"]
                .as_array()
                .into_iter()
                .flatten()
                .any(|c| c["type"] == "FullyApplied" && c["status"] == "True")
        })
        .await;
    world.crash();
    let before = world.member("m1").get(&deployments(), NS, "web").await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("late", 1)).await.unwrap();
    world.run(|_| {}).await;
    world.in_member("m2", &deployments(), "late", |_| true).await;
    let after = world.member("m1").get(&deployments(), NS, "web").await.unwrap();
    assert_eq!(
        after["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"],
        "nothing was written again"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_breaks_a_rule_is_refused_and_what_is_protected_stays() {
    let world = World::start(1).await;
    let bad = policy("bad", json!({"placement": {"spreadConstraints": [{"spreadByField": "region"}]}}));
    let refusal = world.instance.create(&policies(), NS, &bad).await.unwrap_err();
    assert_eq!(refusal.code, 422, "{refusal}");
    world.instance.create(&policies(), NS, &policy("p", json!({}))).await.unwrap();
    let mut protected = deployment("web", 1);
    protected["metadata"]["labels"]["resourcetemplate.karmada.io/deletion-protected"] = "Always".into();
    world.instance.create(&deployments(), NS, &protected).await.unwrap();
    world.in_member("m1", &deployments(), "web", |_| true).await;
    let refusal = world.instance.delete(&deployments(), NS, "web", &Value::Null).await.unwrap_err();
    assert_eq!(refusal.code, 403, "{refusal}");
    let free = json!({"metadata": {"labels": {"resourcetemplate.karmada.io/deletion-protected": null}}});
    world.instance.patch(&deployments(), NS, "web", "", Patch::Merge, &free).await.unwrap();
    world.instance.delete(&deployments(), NS, "web", &Value::Null).await.unwrap();
    world.not_in_member("m1", &deployments(), "web").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_is_reached_through_the_instance_under_the_callers_name() {
    let world = World::start_with_proxy(1).await;
    let path = "/apis/cluster.karmada.io/v1alpha1/clusters/m1/proxy/api/v1/namespaces";
    let list = world.instance.get_path(path).await.unwrap();
    assert!(list["items"].as_array().unwrap().iter().any(|namespace| namespace["metadata"]["name"] == "kube-system"));
    // The member knows the caller by name, and judges by its own rules.
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let sub = "proxy/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let review = world.instance.create_sub(&clusters(), None, "m1", sub, &review).await.unwrap();
    assert_eq!(review["status"]["userInfo"]["username"], "test");
    let absent =
        world.instance.get_path("/apis/cluster.karmada.io/v1alpha1/clusters/none/proxy/api").await.unwrap_err();
    assert_eq!(absent.code, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn all_members_are_asked_at_once_through_the_instance() {
    let world = World::start_with_proxy(2).await;
    let path =
        |rest: &str| format!("/apis/cluster.karmada.io/v1alpha1/clusters/*/proxy/api/v1/namespaces/default/{rest}");
    for (member, name) in [("m1", "both"), ("m2", "both"), ("m2", "one")] {
        let map = config_map(name, json!({"in": member}));
        world.member(member).create(&core("configmaps"), NS, &map).await.unwrap();
    }
    let list = world.instance.get_path(&path("configmaps")).await.unwrap();
    let from = |name: &str| -> Vec<&str> {
        let own = list["items"].as_array().unwrap().iter().filter(|map| map["metadata"]["name"] == name);
        own.map(|map| map["metadata"]["annotations"]["resource.karmada.io/cached-from-cluster"].as_str().unwrap())
            .collect()
    };
    assert_eq!((from("both"), from("one")), (vec!["m1", "m2"], vec!["m2"]));
    assert_eq!(world.instance.get_path(&path("configmaps/one")).await.unwrap()["data"]["in"], "m2");
    for (rest, code) in [("configmaps/both", 409), ("configmaps/none", 404), ("configmaps?watch=true", 400)] {
        assert_eq!(world.instance.get_path(&path(rest)).await.unwrap_err().code, code, "{rest}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_way_of_a_template_can_be_told_and_moves_are_planned() {
    let world = World::start_with_proxy(2).await;
    let absent = atoll_fleet::why::trace(&world.instance, "deployments", "default", "web").await.unwrap();
    assert!(absent.obstacle.as_deref().unwrap().contains("does not exist"));
    world.instance.create(&deployments(), NS, &deployment("web", 2)).await.unwrap();
    let lone = atoll_fleet::why::trace(&world.instance, "deployment", "default", "web").await.unwrap();
    assert!(lone.obstacle.as_deref().unwrap().contains("No policy selects"), "{lone}");
    let only = json!({"placement": {"clusterAffinity": {"clusterNames": ["m1"]}}});
    let moves =
        atoll_fleet::plan::plan(&world.instance, &Value::Null, &policy("p", only.clone()), jiff::Timestamp::now())
            .await
            .unwrap();
    assert_eq!(moves.len(), 1);
    assert_eq!(moves[0].to_string(), "Deployment default/web: m1 new→2");
    world.instance.create(&policies(), NS, &policy("p", only)).await.unwrap();
    world.in_member("m1", &deployments(), "web", |_| true).await;
    let mut text = String::new();
    world
        .eventually("the trace reaches the member", async || {
            let trace = atoll_fleet::why::trace(&world.instance, "deployment", "default", "web").await.unwrap();
            text = trace.to_string();
            trace.obstacle.as_deref().is_some_and(|obstacle| obstacle.contains("In cluster m1 0 of 2 replicas"))
        })
        .await;
    assert!(text.contains("○ m2  refused by ClusterAffinity"), "{text}");
    let now = jiff::Timestamp::now();
    let loss = atoll_fleet::plan::plan_without(&world.instance, &Value::Null, "m1", now).await.unwrap().to_string();
    assert!(loss.starts_with("Failover is off in this instance: losing contact with m1 moves nothing."), "{loss}");
    assert!(loss.contains("If m1 is unjoined, this moves:\n") && loss.contains("m1 2→gone no place"), "{loss}");
    let wider = json!({"placement": {"replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"}}});
    let moves = atoll_fleet::plan::plan(&world.instance, &Value::Null, &policy("p", wider), jiff::Timestamp::now())
        .await
        .unwrap();
    assert_eq!(moves[0].to_string(), "Deployment default/web: m1 2→1 m2 new→1");
}
