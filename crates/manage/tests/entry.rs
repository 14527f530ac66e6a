//! The one entry: REST and gRPC give the same answers, within the caller's rights.
#![allow(clippy::unwrap_used)]

mod support;

use atoll_meta::Gvr;
use atoll_runtime::{Change, Informer, Selection};
use http::Request;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use support::{World, becomes, deployment, hub_object, master, user};

const N: &str = "/instances/fleet/namespaces/default";

#[tokio::test]
async fn a_deployment_is_made_listed_paused_and_deleted() {
    let world = World::new().await;
    let who = master();
    let made =
        world.ok(&who, "POST", &format!("{N}/deployments"), Some(json!({"data": deployment("web").to_string()}))).await;
    assert!(made["data"].as_str().unwrap().contains("\"web\""));
    let list = world.ok(&who, "GET", "/instances/fleet/deployments", None).await;
    assert_eq!(list["pagination"], json!({"total": 1, "page": 1, "pageSize": 10, "pages": 1}));
    assert_eq!(list["items"][0]["metadata"]["name"], "web");
    assert_eq!(list["items"][0]["status"]["state"], "WORKLOAD_STATE_WAITING");
    let paused = world.ok(&who, "POST", &format!("{N}/deployments/web:pause"), Some(json!({}))).await;
    assert_eq!(paused["deployment"]["spec"]["paused"], true);
    let resumed = world.ok(&who, "POST", &format!("{N}/deployments/web:resume"), None).await;
    assert_eq!(resumed["deployment"]["spec"]["paused"], false);
    let (code, status) = world
        .rest(&who, "POST", &format!("{N}/deployments"), Some(json!({"data": deployment("web").to_string()})))
        .await;
    assert_eq!((code, &status["code"]), (409, &json!(6)), "{status}");
    world.ok(&who, "DELETE", &format!("{N}/deployments/web"), None).await;
    assert_eq!(world.ok(&who, "GET", &format!("{N}/deployments"), None).await["items"], json!([]));
    let (code, status) = world.rest(&who, "GET", &format!("{N}/deployments/web"), None).await;
    assert_eq!((code, &status["code"]), (404, &json!(5)));
}

#[tokio::test]
async fn grpc_and_rest_give_the_same_answers() {
    let world = World::new().await;
    world
        .ok(&master(), "POST", &format!("{N}/deployments"), Some(json!({"data": deployment("web").to_string()})))
        .await;
    let by_rest =
        world.ok(&master(), "GET", &format!("{N}/deployments?pageSize=5&sortBy=field_name&sortDir=asc"), None).await;
    let asked =
        json!({"instance": "fleet", "namespace": "default", "pageSize": 5, "sortBy": "field_name", "sortDir": "asc"});
    let (code, by_grpc) = world.grpc(&master(), "AppsService/ListDeployments", asked).await;
    assert_eq!((code, by_grpc), (0, by_rest));
    assert_eq!(
        world
            .grpc(
                &master(),
                "AppsService/GetDeployment",
                json!({"instance": "fleet", "namespace": "default", "name": "none"})
            )
            .await
            .0,
        5
    );
    assert_eq!(world.grpc(&master(), "InsightService/QueryMetric", json!({"instance": "fleet"})).await.0, 12);
}

#[tokio::test]
async fn health_and_reflection_answer() {
    let world = World::new().await;
    let call = async |path: &str, body: &[u8]| {
        let request = Request::builder()
            .method("POST")
            .uri(path)
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        let answer = world.raw(&master(), request.body(Full::new(body.to_vec().into())).unwrap()).await;
        let headers = answer.headers().clone();
        let collected = answer.into_body().collect().await.unwrap();
        let status = collected.trailers().unwrap_or(&headers)["grpc-status"].to_str().unwrap().to_owned();
        (status, collected.to_bytes())
    };
    let (status, body) = call("/grpc.health.v1.Health/Check", &[0, 0, 0, 0, 0]).await;
    assert_eq!((status.as_str(), &body[..]), ("0", &[0, 0, 0, 0, 2, 8, 1][..]), "serving");
    // Field 7, list_services, with one character.
    let (_, body) =
        call("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", &[0, 0, 0, 0, 3, 0x3a, 1, b'*']).await;
    assert!(String::from_utf8_lossy(&body).contains("atoll.v1alpha1.InstanceService"));
}

#[tokio::test]
async fn the_document_and_the_page_are_served() {
    let world = World::new().await;
    let document = world.ok(&master(), "GET", "/manage/openapi.json", None).await;
    assert!(document["paths"].as_object().unwrap().len() > 115);
    assert_eq!(document["paths"]["/manage/v1alpha1/search"]["get"]["operationId"], "Search_Search");
    let (code, _) = world.rest(&master(), "GET", "/manage/docs", None).await;
    assert_eq!(code, 200);
}

#[tokio::test]
async fn search_finds_members_too_and_streams_changes() {
    let world = World::new().await;
    let maps = Gvr::new("", "v1", "configmaps");
    let made = world
        .endpoint("m1")
        .create(
            &maps,
            Some("default"),
            &json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "far", "labels": {"app": "x"}}}),
        )
        .await
        .unwrap();
    world.settled("fleet/m1", &maps, &made).await;
    let found = world.ok(&master(), "GET", "/manage/v1alpha1/search?labelSelector=app%3Dx&objects=true", None).await;
    assert_eq!((&found["items"][0]["source"], &found["items"][0]["name"]), (&json!("fleet/m1"), &json!("far")));
    assert!(!found["freshAsOf"].as_str().unwrap().is_empty());
    let facets = world.ok(&master(), "GET", "/manage/v1alpha1/facets?by=label:app&query.sources=fleet/m1", None).await;
    assert_eq!(facets["counts"], json!([{"value": "x", "count": "1"}]));
    let request =
        Request::builder().uri("/manage/v1alpha1/watch?names=far&resources=configmaps").body(Full::default()).unwrap();
    let mut body = world.raw(&master(), request).await.into_body();
    let mut next = async || {
        serde_json::from_slice::<Value>(&body.frame().await.unwrap().unwrap().into_data().unwrap()).unwrap()["result"]
            .clone()
    };
    assert_eq!(next().await["type"], "ADDED");
    assert_eq!(next().await["type"], "SYNCED");
    world.endpoint("m1").delete(&maps, Some("default"), "far", &Value::Null).await.unwrap();
    assert_eq!(next().await["type"], "DELETED");
}

#[tokio::test]
async fn names_cannot_leave_their_place_in_a_path() {
    let world = World::new().await;
    for bad in ["..%2F..%2Fsecrets", "a%3Fx=y", "a%23b", "a%2Fb", "%2E%2E"] {
        let (code, _) = world.rest(&master(), "GET", &format!("{N}/deployments/{bad}"), None).await;
        assert_eq!(code, 400, "{bad}");
    }
}

#[tokio::test]
async fn statistics_reach_the_instance() {
    let world = World::new().await;
    let instances = Gvr::new("atoll.io", "v1alpha1", "instances");
    let root = world.endpoint("root");
    becomes(&root, &instances, "fleet", |seen| seen["status"]["statistics"]["clusters"] == 1).await;
    let shown = world.ok(&master(), "GET", "/instances/fleet", None).await;
    assert_eq!(shown["status"]["summary"]["clusterSummary"]["totalNum"], 1);

    // Where nothing that counts changes, nothing is written: the next write is the one for a pod.
    let (sender, mut writes) = tokio::sync::mpsc::unbounded_channel();
    let one = Selection { namespace: None, query: "fieldSelector=metadata.name%3Dfleet".into() };
    let _informer = Informer::start(root.clone(), instances, one, move |change: Change| {
        let _ = sender.send(change.item().tree());
    });
    let mut next = async || tokio::time::timeout(support::PATIENCE, writes.recv()).await.unwrap().unwrap();
    assert_eq!(next().await["status"]["statistics"]["clusters"], 1, "as it is");
    let maps = Gvr::new("", "v1", "configmaps");
    let object = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "uncounted"}});
    let made = world.endpoint("m1").create(&maps, Some("default"), &object).await.unwrap();
    world.settled("fleet/m1", &maps, &made).await;
    let pod = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    world.endpoint("m1").create(&Gvr::new("", "v1", "pods"), Some("default"), &pod).await.unwrap();
    assert_eq!(next().await["status"]["statistics"]["pods"], 1);
}

#[tokio::test]
async fn instances_are_registered_with_their_workspaces_and_leave_the_register() {
    let world = World::with(&[("fleet", &[]), ("second", &[])]).await;
    let root = world.endpoint("root");
    let register = Gvr::new("atoll.io", "v1alpha1", "registeredresources");
    becomes(&root, &register, "fleet", |seen| seen["spec"]["resourceType"] == "Instance").await;
    let workspace = hub_object(
        "Workspace",
        json!({"metadata": {"name": "w"}, "spec": {"instances": ["second"], "namespaces": [{"instance": "fleet", "namespace": "team"}]}}),
    );
    root.create(&Gvr::new("atoll.io", "v1alpha1", "workspaces"), None, &workspace).await.unwrap();
    becomes(&root, &register, "second", |seen| seen["spec"]["workspaces"] == json!(["w"])).await;
    let place = becomes(&root, &register, "fleet.team", |seen| seen["spec"]["workspaces"] == json!(["w"])).await;
    assert_eq!(place["spec"]["resourceScope"], "fleet");
    root.delete(&register, None, "fleet", &Value::Null).await.unwrap();
    becomes(&root, &register, "fleet", |seen| seen.is_object()).await;
    root.delete(&Gvr::new("atoll.io", "v1alpha1", "instances"), None, "fleet", &Value::Null).await.unwrap();
    for name in ["fleet", "fleet.team"] {
        let gone = async || root.get_opt(&register, None, name).await.unwrap().is_none();
        world.until("it leaves the register", gone).await;
    }
}

#[tokio::test]
async fn grants_open_exactly_what_they_name_and_revocation_closes_it() {
    let world = World::new().await;
    let (root, fleet) = (world.endpoint("root"), world.endpoint("fleet"));
    let maps = Gvr::new("", "v1", "configmaps");
    fleet
        .create(
            &Gvr::new("", "v1", "namespaces"),
            None,
            &json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "team"}}),
        )
        .await
        .unwrap();
    let mut last = Value::Null;
    for namespace in ["default", "team"] {
        last = fleet
            .create(
                &maps,
                Some(namespace),
                &json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": format!("in-{namespace}")}}),
            )
            .await
            .unwrap();
    }
    world.settled("fleet", &maps, &last).await;
    let ann = user("ann");
    assert_eq!(world.ok(&ann, "GET", "/instances", None).await["items"], json!([]));
    assert_eq!(world.rest(&ann, "GET", "/instances/fleet", None).await.0, 403);
    assert_eq!(world.rest(&ann, "GET", "/instances/none", None).await.0, 403, "existence is not told");
    assert_eq!(world.ok(&ann, "GET", "/instances/fleet/configmaps", None).await["pagination"]["total"], 0);

    let grants = Gvr::new("atoll.io", "v1alpha1", "grants");
    let grant = json!({"metadata": {"name": "g"}, "spec": {"role": "editor", "subjects": [{"kind": "User", "name": "ann"}], "scope": {"instance": "fleet", "namespace": "team"}}});
    root.create(&grants, None, &hub_object("Grant", grant)).await.unwrap();
    let sees = async || {
        let list = world.ok(&ann, "GET", "/instances/fleet/configmaps?sortBy=field_name&sortDir=asc", None).await;
        list["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["metadata"]["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    world.until("the grant holds", async || sees().await == ["in-team"]).await;
    assert_eq!(world.ok(&ann, "GET", "/instances", None).await["items"][0]["metadata"]["name"], "fleet");
    assert_eq!(world.ok(&ann, "GET", "/instances/fleet/namespacesummary", None).await["accessScope"], "Namespace");
    let body = |name: &str| {
        Some(json!({"data": json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}}).to_string()}))
    };
    world.ok(&ann, "POST", "/instances/fleet/namespaces/team/configmaps", body("mine")).await;
    assert_eq!(world.rest(&ann, "POST", &format!("{N}/configmaps"), body("not-mine")).await.0, 403);
    assert_eq!(world.rest(&ann, "DELETE", "/instances/fleet", None).await.0, 403);
    let found = world.ok(&ann, "GET", "/manage/v1alpha1/search?kinds=ConfigMap", None).await;
    assert!(found["items"].as_array().unwrap().iter().all(|item| item["namespace"] == "team"), "{found}");
    // How far something is known is told to who may list it there, and to nobody else.
    for (wait, code) in [
        ("configmaps%201&namespaces=team", 200),
        ("configmaps%201", 400),
        ("configmaps%201&namespaces=default", 400),
        ("clusters.cluster.karmada.io%201&namespaces=team", 400),
    ] {
        let path = format!("/manage/v1alpha1/search?waitFor=fleet%20{wait}");
        assert_eq!(world.rest(&ann, "GET", &path, None).await.0, code, "{wait}");
    }

    root.delete(&grants, None, "g", &Value::Null).await.unwrap();
    world.until("the grant is gone", async || sees().await.is_empty()).await;
    assert_eq!(world.rest(&ann, "POST", "/instances/fleet/namespaces/team/configmaps", body("late")).await.0, 403);
}

#[tokio::test]
async fn a_grant_holds_where_instances_and_namespaces_come_later_and_stays_when_its_binding_is_taken_away() {
    let world = World::new().await;
    let (root, fleet) = (world.endpoint("root"), world.endpoint("fleet"));
    let roles = |resource: &str| Gvr::new("rbac.authorization.k8s.io", "v1", resource);
    for (name, instance, namespace) in [("g", "late", "default"), ("h", "fleet", "soon")] {
        let spec = json!({"role": "editor", "subjects": [{"kind": "User", "name": "ann"}], "scope": {"instance": instance, "namespace": namespace}});
        let grant = hub_object("Grant", json!({"metadata": {"name": name}, "spec": spec}));
        root.create(&Gvr::new("atoll.io", "v1alpha1", "grants"), None, &grant).await.unwrap();
        // Compared, and nothing more to be done.
        becomes(&root, &roles("clusterrolebindings"), &format!("atoll:grant:{name}"), Value::is_object).await;
    }
    // Another process on the same store makes an instance; no object of `root` tells of it.
    let other = atoll_apiserver::Hub::open(
        world.hub.engine().clone(),
        atoll_apiserver::auth::Keys::default(),
        std::sync::Arc::new(jiff::Timestamp::now),
        atoll_apiserver::Options::default(),
    );
    other.await.unwrap().create_instance("late").await.unwrap();
    let late = world.endpoint("late");
    let bound = async || {
        let binding = late.get_opt(&roles("rolebindings"), Some("default"), "atoll:grant:g").await;
        binding.is_ok_and(|binding| binding.is_some())
    };
    world.until("the grant holds in the new instance", bound).await;

    let space = json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "soon"}});
    fleet.create(&Gvr::new("", "v1", "namespaces"), None, &space).await.unwrap();
    let binding = becomes(&fleet, &roles("rolebindings"), "atoll:grant:h", Value::is_object).await;
    assert_eq!(binding["metadata"]["namespace"], "soon");
    fleet.delete(&roles("rolebindings"), Some("soon"), "atoll:grant:h", &Value::Null).await.unwrap();
    let anew = |seen: &Value| seen.is_object() && seen["metadata"]["uid"] != binding["metadata"]["uid"];
    let mut bent = becomes(&fleet, &roles("rolebindings"), "atoll:grant:h", anew).await;
    // Nor does it become another when somebody changes it, or the role it gives.
    bent["subjects"][0]["name"] = "eve".into();
    fleet.update(&roles("rolebindings"), Some("soon"), "atoll:grant:h", &bent).await.unwrap();
    let straight = |seen: &Value| seen["subjects"][0]["name"] == "ann";
    becomes(&fleet, &roles("rolebindings"), "atoll:grant:h", straight).await;
    let mut role = fleet.get(&roles("clusterroles"), None, "atoll:editor").await.unwrap();
    let rules = role["rules"].take();
    role["rules"] = json!([]);
    fleet.update(&roles("clusterroles"), None, "atoll:editor", &role).await.unwrap();
    becomes(&fleet, &roles("clusterroles"), "atoll:editor", |seen| seen["rules"] == rules).await;
}

#[tokio::test]
async fn a_local_account_logs_in_and_out_again() {
    let world = World::new().await;
    let root = world.endpoint("root");
    let accounts = Gvr::new("atoll.io", "v1alpha1", "accounts");
    root.create(
        &accounts,
        None,
        &hub_object("Account", json!({"metadata": {"name": "ann"}, "spec": {"groups": ["team", "system:masters"]}})),
    )
    .await
    .unwrap();
    atoll_manage::access::accounts::set_password(&root, "ann", "correct horse").await.unwrap();
    let login = async |password: &str| {
        world.rest(&user("nobody"), "POST", "/manage/login", Some(json!({"user": "ann", "password": password}))).await
    };
    assert_eq!(login("wrong horse").await.0, 401);
    let (code, answer) = login("correct horse").await;
    assert_eq!(code, 200);
    let token = answer["token"].as_str().unwrap();
    let who = world.manage.identify(token).await.unwrap().unwrap();
    assert_eq!(
        (who.user.as_str(), who.groups.as_slice()),
        ("ann", &["team".to_owned(), "system:authenticated".to_owned()][..])
    );
    assert_eq!(world.manage.identify(&format!("{token}x")).await.unwrap(), None);
    root.patch(&accounts, None, "ann", "", atoll_runtime::Patch::Merge, &json!({"spec": {"disabled": true}}))
        .await
        .unwrap();
    assert_eq!(world.manage.identify(token).await.unwrap(), None, "a closed account ends its sessions");
    assert_eq!(login("correct horse").await.0, 401);
}
