//! What the contract does not have: other workloads, trials, preconditions, promotion and back, copies, rules.
#![allow(clippy::unwrap_used)]

mod support;

use atoll_meta::Gvr;
use atoll_runtime::Patch;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use support::{World, deployment, master, user};

const N: &str = "/manage/v1alpha1/instances/fleet/namespaces/default";

fn stateful_set(name: &str) -> Value {
    let mut object = deployment(name);
    object["kind"] = "StatefulSet".into();
    object["spec"]["serviceName"] = name.into();
    object
}

fn data(object: &Value) -> Option<Value> {
    Some(json!({"data": object.to_string()}))
}

/// A REST call with a header.
async fn with_header(world: &World, header: (&str, &str), verb: &str, path: &str, body: Option<Value>) -> (u16, Value) {
    let bytes = body.map(|body| body.to_string()).unwrap_or_default();
    let request = Request::builder().method(verb).uri(path).header(header.0, header.1);
    let answer = world.raw(&master(), request.body(Full::new(bytes.into())).unwrap()).await;
    let code = answer.status().as_u16();
    (code, serde_json::from_slice(&answer.into_body().collect().await.unwrap().to_bytes()).unwrap_or_default())
}

#[tokio::test]
async fn stateful_sets_and_daemon_sets_are_managed_like_deployments() {
    let world = World::new().await;
    let who = master();
    world.ok(&who, "POST", &format!("{N}/statefulsets"), data(&stateful_set("db"))).await;
    let list = world.ok(&who, "GET", "/manage/v1alpha1/instances/fleet/statefulsets", None).await;
    assert_eq!((&list["items"][0]["metadata"]["name"], &list["pagination"]["total"]), (&json!("db"), &json!(1)));
    assert_eq!(list["items"][0]["spec"]["serviceName"], "db");
    let change = json!({"data": json!({"metadata": {"labels": {"x": "y"}}}).to_string()});
    world.ok(&who, "PATCH", &format!("{N}/statefulsets/db"), Some(change)).await;
    world.ok(&who, "POST", &format!("{N}/statefulsets/db:restart"), Some(json!({}))).await;
    let raw = world.ok(&who, "GET", &format!("{N}/statefulsets/db/json"), None).await;
    assert!(raw["data"].as_str().unwrap().contains("restartedAt"));
    world.ok(&who, "DELETE", &format!("{N}/statefulsets/db"), None).await;
    assert_eq!(world.rest(&who, "GET", &format!("{N}/statefulsets/db"), None).await.0, 404);

    let mut set = deployment("agent");
    set["kind"] = "DaemonSet".into();
    set["spec"].as_object_mut().unwrap().remove("replicas");
    world.ok(&who, "POST", &format!("{N}/daemonsets"), data(&set)).await;
    assert_eq!(
        world.ok(&who, "GET", &format!("{N}/daemonsets/agent"), None).await["status"]["state"],
        "WORKLOAD_STATE_WAITING"
    );
}

#[tokio::test]
async fn a_trial_stores_nothing_and_a_precondition_guards_against_others() {
    let world = World::new().await;
    let trial = ("atoll-dry-run", "true");
    let (code, answer) =
        with_header(&world, trial, "POST", &format!("{N}/statefulsets"), data(&stateful_set("db"))).await;
    assert_eq!(code, 200, "{answer}");
    assert!(answer["data"].as_str().unwrap().contains("uid"), "the answer is as if it were made");
    assert_eq!(world.rest(&master(), "GET", &format!("{N}/statefulsets/db"), None).await.0, 404);

    world.ok(&master(), "POST", &format!("{N}/statefulsets"), data(&stateful_set("db"))).await;
    let (code, _) = with_header(&world, trial, "DELETE", &format!("{N}/statefulsets/db"), None).await;
    assert_eq!(code, 200);
    let made = world.ok(&master(), "GET", &format!("{N}/statefulsets/db"), None).await;
    let version = made["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let change = json!({"data": json!({"metadata": {"labels": {"a": "b"}}}).to_string()});
    let at = ("atoll-resource-version", version.as_str());
    let path = format!("{N}/statefulsets/db");
    assert_eq!(with_header(&world, at, "PATCH", &path, Some(change.clone())).await.0, 200);
    assert_eq!(with_header(&world, at, "PATCH", &path, Some(change)).await.0, 409, "it changed meanwhile");
    assert_eq!(with_header(&world, at, "DELETE", &path, None).await.0, 409);
    assert_eq!(with_header(&world, at, "PUT", &path, data(&stateful_set("db"))).await.0, 409);
}

#[tokio::test]
async fn five_kinds_of_workloads_are_promoted_with_what_they_need_and_taken_back() {
    let world = World::new().await;
    let member = world.endpoint("m1");
    let template = json!({"metadata": {"labels": {"app": "w"}}, "spec": {"restartPolicy": "Always", "containers": [
        {"name": "c", "image": "i", "envFrom": [{"configMapRef": {"name": "conf"}}, {"secretRef": {"name": "sec"}}]}]}});
    let mut once = template.clone();
    once["spec"]["restartPolicy"] = "Never".into();
    let select = json!({"matchLabels": {"app": "w"}});
    let kinds = [
        ("apps", "deployments", "Deployment", json!({"selector": select, "template": template})),
        ("apps", "statefulsets", "StatefulSet", json!({"selector": select, "serviceName": "w", "template": template})),
        ("apps", "daemonsets", "DaemonSet", json!({"selector": select, "template": template})),
        ("batch", "jobs", "Job", json!({"template": once})),
        ("batch", "cronjobs", "CronJob", json!({"schedule": "* * * * *", "jobTemplate": {"spec": {"template": once}}})),
    ];
    let core = |kind: &str, name: &str| json!({"kind": kind, "apiVersion": "v1", "metadata": {"name": name}});
    member.create(&Gvr::new("", "v1", "configmaps"), Some("default"), &core("ConfigMap", "conf")).await.unwrap();
    member.create(&Gvr::new("", "v1", "secrets"), Some("default"), &core("Secret", "sec")).await.unwrap();
    let mut service = core("Service", "svc");
    service["spec"] = json!({"selector": {"app": "w"}, "ports": [{"port": 80}]});
    member.create(&Gvr::new("", "v1", "services"), Some("default"), &service).await.unwrap();
    for (group, resource, kind, spec) in kinds {
        let gvr = Gvr::new(group, "v1", resource);
        let name = format!("w-{}", kind.to_lowercase());
        let object =
            json!({"kind": kind, "apiVersion": format!("{group}/v1"), "metadata": {"name": name}, "spec": spec});
        member.create(&gvr, Some("default"), &object).await.unwrap();
        let path = format!("/manage/v1alpha1/instances/fleet/clusters/m1/namespaces/default/promotions/{kind}/{name}");

        let preview = world.ok(&master(), "GET", &path, None).await;
        let shown: Vec<String> = preview["objects"]
            .as_array()
            .unwrap()
            .iter()
            .map(|text| {
                serde_json::from_str::<Value>(text.as_str().unwrap()).unwrap()["kind"].as_str().unwrap().to_owned()
            })
            .collect();
        assert_eq!(shown, ["Service", "ConfigMap", "Secret", kind], "{kind}");
        let fleet = world.endpoint("fleet");
        assert!(fleet.get_opt(&gvr, Some("default"), &name).await.unwrap().is_none(), "a preview makes nothing");

        world.ok(&master(), "POST", &path, Some(json!({}))).await;
        let made = fleet.get(&gvr, Some("default"), &name).await.unwrap();
        assert_eq!(made["metadata"]["annotations"]["work.karmada.io/conflict-resolution"], "overwrite");
        assert!(fleet.get(&Gvr::new("", "v1", "secrets"), Some("default"), "sec").await.is_ok());
        let (code, again) = world.rest(&master(), "POST", &path, Some(json!({}))).await;
        assert_eq!(code, 400, "{again}");

        let undone = world.ok(&master(), "DELETE", &path, None).await;
        assert_eq!(undone["removed"].as_array().unwrap().len(), 5, "{undone}");
        assert!(fleet.get_opt(&gvr, Some("default"), &name).await.unwrap().is_none());
        assert!(member.get(&gvr, Some("default"), &name).await.is_ok(), "the member keeps what it had");
        member.delete(&gvr, Some("default"), &name, &Value::Null).await.unwrap();
    }
}

#[tokio::test]
async fn an_instance_is_copied_and_put_back_by_who_may_do_everything_in_it() {
    let world = World::with(&[("fleet", &[]), ("second", &[])]).await;
    let maps = Gvr::new("", "v1", "configmaps");
    let object = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "kept"}, "data": {"a": "b"}});
    let made = world.endpoint("fleet").create(&maps, Some("default"), &object).await.unwrap();
    assert_eq!(
        world.rest(&user("ann"), "POST", "/manage/v1alpha1/instances/fleet:backup", Some(json!({}))).await.0,
        403
    );
    let request = Request::builder().method("POST").uri("/manage/v1alpha1/instances/fleet:backup");
    let answer = world.raw(&master(), request.body(Full::new("{}".into())).unwrap()).await;
    let text = answer.into_body().collect().await.unwrap().to_bytes();
    let pieces: Vec<Value> = String::from_utf8_lossy(&text)
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["result"].clone())
        .filter(|piece| piece["key"].as_str().unwrap().starts_with("configmaps./default/kept"))
        .collect();
    assert_eq!(pieces.len(), 1);
    let put = json!({"pieces": pieces});
    assert_eq!(
        world.rest(&user("ann"), "POST", "/manage/v1alpha1/instances/second:restore", Some(put.clone())).await.0,
        403
    );
    world.ok(&master(), "POST", "/manage/v1alpha1/instances/second:restore", Some(put)).await;
    let back = world.endpoint("second").get(&maps, Some("default"), "kept").await.unwrap();
    assert_eq!((&back["data"], &back["metadata"]["uid"]), (&made["data"], &made["metadata"]["uid"]));
    let wrong = json!({"pieces": [{"key": "configmaps./default/other", "object": made.to_string()}]});
    assert_eq!(world.rest(&master(), "POST", "/manage/v1alpha1/instances/second:restore", Some(wrong)).await.0, 400);
}

#[tokio::test]
async fn protection_and_pauses_hold_at_every_entry() {
    let world = World::with(&[("fleet", &["m1"]), ("second", &[])]).await;
    let instances = Gvr::new("atoll.io", "v1alpha1", "instances");
    let root = world.endpoint("root");
    let joined = root.delete(&instances, None, "fleet", &Value::Null).await.unwrap_err();
    assert!(joined.message.contains("1 clusters are joined"), "{joined}");
    let set = async |spec: Value| {
        root.patch(&instances, None, "second", "", Patch::Merge, &json!({"spec": spec})).await.unwrap();
    };
    set(json!({"deletionProtection": true})).await;
    let protected = root.delete(&instances, None, "second", &Value::Null).await.unwrap_err();
    assert!(protected.message.contains("protected"), "{protected}");

    let maps = Gvr::new("", "v1", "configmaps");
    let second = world.endpoint("second");
    let object = |name: &str| json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}});
    second.create(&maps, Some("default"), &object("before")).await.unwrap();
    set(json!({"paused": true})).await;
    let refused = async || {
        // The change may not be known yet.
        let name = format!("n{}", rand::random::<u32>());
        let refusal = second.create(&maps, Some("default"), &object(&name)).await.err();
        refusal.is_some_and(|status| status.code == 403 && status.message.contains("is paused"))
    };
    world.until("writes are refused", refused).await;
    let body = Some(json!({"data": object("late").to_string()}));
    let path = "/instances/second/namespaces/default/configmaps";
    let (code, told) = world.rest(&master(), "POST", path, body).await;
    assert_eq!(code, 403, "{told}");
    assert!(told["message"].as_str().unwrap().contains("is paused"), "{told}");
    let asked = json!({"instance": "second", "namespace": "default", "name": "before"});
    assert_eq!(world.grpc(&master(), "CoreService/DeleteConfigMap", asked.clone()).await.0, 7);
    let native = "/instances/second/api/v1/namespaces/default/configmaps/before";
    assert_eq!(world.native(&master(), "DELETE", native, None).await.0, 403);
    assert_eq!(world.native(&master(), "GET", native, None).await.0, 200);
    assert_eq!(world.grpc(&master(), "CoreService/GetConfigMap", asked).await.0, 0);
    assert!(second.list(&maps, None, "").await.is_ok(), "a paused instance is read as before");
    set(json!({"paused": false})).await;
    let goes_on = async || second.create(&maps, Some("default"), &object("after")).await.is_ok();
    world.until("writes go on", goes_on).await;
}

#[tokio::test]
async fn a_plan_and_a_trace_are_asked_as_the_caller() {
    let world = World::new().await;
    let policy = json!({"kind": "PropagationPolicy", "apiVersion": "policy.karmada.io/v1alpha1", "metadata": {"name": "p", "namespace": "default"},
        "spec": {"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}], "placement": {"clusterAffinity": {"clusterNames": ["m1"]}}}});
    let plan = json!({"policy": policy.to_string()});
    let path = "/manage/v1alpha1/instances/fleet/plan";
    world.ok(&master(), "POST", path, Some(plan.clone())).await;
    assert_eq!(world.rest(&user("ann"), "POST", path, Some(plan)).await.0, 403);
    assert_eq!(world.rest(&master(), "POST", path, Some(json!({}))).await.0, 400);
    world
        .endpoint("fleet")
        .create(&Gvr::new("apps", "v1", "deployments"), Some("default"), &deployment("web"))
        .await
        .unwrap();
    let why = world.ok(&master(), "GET", &format!("{N}/why/deployment/web"), None).await;
    assert!(why["text"].as_str().unwrap().contains("web"), "{why}");
    assert_eq!(world.rest(&user("ann"), "GET", &format!("{N}/why/deployment/web"), None).await.0, 403);
}
