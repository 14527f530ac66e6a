//! Fields whose effect shows only when the controllers run.

use atoll_meta::Gvr;
use atoll_runtime::Patch;
use serde_json::{Value, json};

use crate::support::{NS, World, bindings, deployment, deployments, policies, rebalancers};

/// Fields of PropagationPolicy and ClusterPropagationPolicy that are shown here.
pub const PROPAGATION: [&str; 4] = [
    "activationPreference",
    "dependentOverrides",
    "schedulePriority.priorityClassName",
    "schedulePriority.priorityClassSource",
];

/// Fields of WorkloadRebalancer, all of which are shown here.
pub const REBALANCER: [&str; 5] =
    ["ttlSecondsAfterFinished", "workloads.apiVersion", "workloads.kind", "workloads.name", "workloads.namespace"];

fn kind(namespaced: bool) -> (Gvr, Option<&'static str>, &'static str) {
    if namespaced {
        (policies(), NS, "PropagationPolicy")
    } else {
        (Gvr::new("policy.karmada.io", "v1alpha1", "clusterpropagationpolicies"), None, "ClusterPropagationPolicy")
    }
}

fn rule(namespaced: bool, name: &str, more: Value) -> Value {
    let mut spec = json!({"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": name}], "placement": {}});
    atoll_patch::merge_patch(&mut spec, &more);
    let mut meta = json!({"name": name});
    if namespaced {
        meta["namespace"] = "default".into();
    }
    json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": kind(namespaced).2, "metadata": meta, "spec": spec})
}

/// Each policy finds a template that was there before it; those with the field set do not do what `plain` does.
async fn shown(namespaced: bool) {
    let world = World::start(1).await;
    let (resource, namespace, _) = kind(namespaced);
    let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000});
    world.instance.create(&Gvr::new("scheduling.k8s.io", "v1", "priorityclasses"), None, &class).await.unwrap();
    let wanted = json!({"schedulePriority": {"priorityClassSource": "KubePriorityClass", "priorityClassName": "high"}});
    let rules = [
        ("lazy", json!({"activationPreference": "Lazy"})),
        ("waits", json!({"dependentOverrides": ["none"]})),
        ("urgent", wanted.clone()),
        ("plain", json!({})),
    ];
    for (name, more) in rules {
        world.instance.create(&deployments(), NS, &deployment(name, 1)).await.unwrap();
        world.instance.create(&resource, namespace, &rule(namespaced, name, more)).await.unwrap();
    }
    for name in ["urgent", "plain"] {
        world.in_member("m1", &deployments(), name, |_| true).await;
    }
    let priority = async |name: &str| {
        let binding = world.instance.get(&bindings(), NS, &format!("{name}-deployment")).await.unwrap();
        binding["spec"]["schedulePriority"]["priority"].clone()
    };
    assert_eq!((priority("urgent").await, priority("plain").await), (json!(1000), Value::Null));
    for name in ["lazy", "waits"] {
        let binding = world.instance.get_opt(&bindings(), NS, &format!("{name}-deployment")).await.unwrap();
        assert!(binding.is_none(), "{name} is not yet to be spread");
    }
    let touch = json!({"metadata": {"labels": {"touched": "yes"}}});
    world.instance.patch(&deployments(), NS, "lazy", "", Patch::Merge, &touch).await.unwrap();
    world.in_member("m1", &deployments(), "lazy", |_| true).await;
    // The only source there is; any other is refused.
    let mut foreign = rule(namespaced, "foreign", wanted);
    foreign["spec"]["schedulePriority"]["priorityClassSource"] = "PodPriorityClass".into();
    assert_eq!(world.instance.create(&resource, namespace, &foreign).await.unwrap_err().code, 422);
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_of_a_namespace_are_lazy_wait_for_overrides_and_have_priorities() {
    shown(true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_of_the_instance_are_lazy_wait_for_overrides_and_have_priorities() {
    shown(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rebalancers_serve_the_workloads_they_name_and_go_after_their_time() {
    let world = World::start(1).await;
    world.instance.create(&policies(), NS, &rule(true, "web", json!({}))).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("web", 1)).await.unwrap();
    world.in_member("m1", &deployments(), "web", |_| true).await;
    let right = json!({"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web"});
    let wrong = [("kind", "StatefulSet"), ("name", "other"), ("namespace", "other"), ("apiVersion", "batch/v1")];
    let results = async |name: &str| {
        let found = world.instance.get(&rebalancers(), None, name).await.unwrap();
        let list = found["status"]["observedWorkloads"].as_array().cloned().unwrap_or_default();
        list.iter().map(|one| one["result"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    let make = |name: &str, workload: &Value| {
        json!({"apiVersion": "apps.karmada.io/v1alpha1", "kind": "WorkloadRebalancer", "metadata": {"name": name},
            "spec": {"workloads": [workload]}})
    };
    world.instance.create(&rebalancers(), None, &make("right", &right)).await.unwrap();
    world.eventually("the right one is served", async || results("right").await == ["Successful"]).await;
    for (field, value) in wrong {
        let (mut workload, name) = (right.clone(), format!("wrong-{}", field.to_lowercase()));
        workload[field] = value.into();
        world.instance.create(&rebalancers(), None, &make(&name, &workload)).await.unwrap();
        world.eventually(&format!("{field} finds nothing"), async || results(&name).await == ["Failed"]).await;
    }
    let mut short = make("short", &right);
    short["spec"]["ttlSecondsAfterFinished"] = 0.into();
    world.instance.create(&rebalancers(), None, &short).await.unwrap();
    world
        .eventually("the one with a time goes", async || {
            world.instance.get_opt(&rebalancers(), None, "short").await.unwrap().is_none()
        })
        .await;
    assert!(world.instance.get_opt(&rebalancers(), None, "right").await.unwrap().is_some(), "the one without stays");
}
