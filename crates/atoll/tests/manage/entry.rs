//! REST and gRPC on the port of the hub, and who may ask.

use serde_json::{Value, json};

use crate::hub::{API, Hub, until};

fn deployment() -> Value {
    let object = json!({"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "managed"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "managed"}}, "template": {"metadata": {"labels": {"app": "managed"}},
        "spec": {"containers": [{"name": "c", "image": "nginx"}]}}}});
    json!({"data": object.to_string()})
}

#[tokio::test(flavor = "multi_thread")]
async fn rest_and_grpc_answer_alike_on_the_port_of_the_hub_and_only_to_who_may_ask() {
    let hub = Hub::start();
    let admin = Some(hub.token.as_str());
    let list = format!("{API}/instances/fleet/namespaces/default/deployments");

    // Nobody gets nothing, in the language of the request.
    assert_eq!(hub.rest(None, "GET", &format!("{API}/instances"), None).await.0, 401);
    assert_eq!(hub.rest(Some("wrong"), "GET", &format!("{API}/instances"), None).await.0, 401);
    assert_eq!(hub.rest(None, "POST", &list, Some(deployment())).await.0, 401);
    assert_eq!(hub.grpc(None, "atoll.v1alpha1.InstanceService", "ListInstances", json!({})).await.0, 16);
    assert_eq!(hub.rest(None, "GET", "/manage/openapi.json", None).await.0, 401);
    assert_eq!(hub.frame(None, "/grpc.health.v1.Health/Check", &[]).await.0, 0, "health is for everybody");

    assert_eq!(hub.rest(admin, "POST", &list, Some(deployment())).await.0, 200);
    let settled = async || {
        let status = hub.rest(admin, "GET", &list, None).await.1["items"][0]["status"].take();
        status["state"] == "WORKLOAD_STATE_RUNNING" && status["clusters"][0]["applied"] == true
    };
    until(&hub, "the Deployment runs", settled).await;
    let (code, by_rest) = hub.rest(admin, "GET", &format!("{list}?pageSize=5"), None).await;
    assert_eq!(code, 200);
    let asked = json!({"instance": "fleet", "namespace": "default", "pageSize": 5});
    let (status, by_grpc) = hub.grpc(admin, "atoll.v1alpha1.AppsService", "ListDeployments", asked).await;
    assert_eq!((status, by_grpc), (0, by_rest));
    let missing = json!({"instance": "fleet", "namespace": "default", "name": "none"});
    assert_eq!(hub.grpc(admin, "atoll.v1alpha1.AppsService", "GetDeployment", missing).await.0, 5);
    assert_eq!(hub.rest(admin, "GET", &format!("{list}/none"), None).await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_local_account_has_the_same_rights_at_every_entry_until_it_is_closed() {
    let hub = Hub::start();
    let admin = Some(hub.token.as_str());
    assert!(hub.atoll(&["account", "create", "ann", "--group", "team"], "correct horse\n").0);
    assert!(!hub.atoll(&["login", "ann"], "wrong horse\n").0);
    let (done, text) = hub.atoll(&["login", "ann", "--instance", "fleet"], "correct horse\n");
    assert!(done);
    let access = atoll_pki::Kubeconfig::parse(&text).unwrap().access(Some("fleet")).unwrap();
    assert!(access.server.ends_with("/instances/fleet"));
    let atoll_pki::Auth::Token(token) = access.auth else { panic!("a token") };
    let ann = Some(token.as_str());

    let native = |namespace: &str| format!("/instances/fleet/api/v1/namespaces/{namespace}/configmaps");
    let managed = |namespace: &str| format!("{API}/instances/fleet/namespaces/{namespace}/configmaps");
    let search = "/manage/v1alpha1/search?kinds=ConfigMap&sources=fleet";
    assert_eq!(hub.rest(ann, "GET", &format!("{API}/instances"), None).await.1["items"], json!([]));
    assert_eq!(hub.rest(ann, "GET", &native("default"), None).await.0, 403);
    assert_eq!(hub.rest(ann, "GET", search, None).await.1["items"], json!([]));

    let map = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "seen"}});
    assert_eq!(hub.rest(admin, "POST", &native("default"), Some(map)).await.0, 201);
    let grant = json!({"kind": "Grant", "apiVersion": "atoll.io/v1alpha1", "metadata": {"name": "g"}, "spec": {"role": "viewer", "subjects": [{"kind": "Group", "name": "team"}], "scope": {"instance": "fleet", "namespace": "default"}}});
    assert_eq!(hub.rest(admin, "POST", "/apis/atoll.io/v1alpha1/grants", Some(grant)).await.0, 201);
    until(&hub, "the grant holds", async || hub.rest(ann, "GET", &native("default"), None).await.0 == 200).await;
    let items = hub.rest(ann, "GET", &managed("default"), None).await.1["items"].clone();
    assert!(items.as_array().unwrap().iter().any(|item| item["metadata"]["name"] == "seen"), "{items}");
    let found = hub.rest(ann, "GET", search, None).await.1["items"].clone();
    assert!(found.as_array().unwrap().iter().all(|item| item["namespace"] == "default"), "{found}");
    assert!(found.as_array().unwrap().iter().any(|item| item["name"] == "seen"), "{found}");
    for path in [native("kube-system"), "/instances/fleet/api/v1/configmaps".into(), "/api/v1/secrets".into()] {
        assert_eq!(hub.rest(ann, "GET", &path, None).await.0, 403, "{path}");
    }
    let map =
        json!({"data": json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "mine"}}).to_string()});
    assert_eq!(hub.rest(ann, "POST", &managed("default"), Some(map)).await.0, 403, "a viewer writes nothing");

    let record = std::fs::read_to_string(hub.directory.path().join("audit.jsonl")).unwrap();
    let line = |words: &[&str]| record.lines().any(|line| words.iter().all(|word| line.contains(word)));
    assert!(line(&["\"ann\"", "Core.CreateConfigMap", "refused"]), "a refusal: {record}");
    assert!(line(&["\"ann\"", "GET /instances/fleet/api/v1/namespaces/kube-system/configmaps", "refused"]), "{record}");
    assert!(line(&["atoll:admin", "\"seen\"", "done"]) || line(&["atoll:admin", "/configmaps", "done"]), "{record}");
    assert!(!record.contains("correct horse") && !record.contains("wrong horse"), "no passwords");

    assert!(hub.atoll(&["account", "close", "ann"], "").0);
    for path in [native("default"), managed("default"), search.to_owned()] {
        assert_eq!(hub.rest(ann, "GET", &path, None).await.0, 401, "{path}");
    }
    assert_eq!(hub.grpc(ann, "atoll.v1alpha1.InstanceService", "ListInstances", json!({})).await.0, 16);
}
