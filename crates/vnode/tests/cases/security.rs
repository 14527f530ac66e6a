//! What leased pods and their users do not get.

use atoll_apiserver::{ApiService, Identity};
use atoll_runtime::Endpoint;
use serde_json::{Value, json};

use crate::pods::{leased, start_pod};
use crate::stage::*;

const VNODE: &str = "vnode-w1-n1";

/// Somebody who may read pods and nothing else.
async fn reader(stage: &Stage) -> Endpoint {
    let access = |plural: &str| atoll_meta::Gvr::new("rbac.authorization.k8s.io", "v1", plural);
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "reader"},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}]});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "reader"}]});
    stage.compute.create(&access("clusterroles"), None, &role).await.unwrap();
    stage.compute.create(&access("clusterrolebindings"), None, &binding).await.unwrap();
    let identity =
        Identity { user: "reader".into(), groups: vec!["system:authenticated".into()], ..Identity::default() };
    Endpoint::in_process(ApiService::new(stage.hub.clone()), "compute", "test", move |extensions| {
        extensions.insert(identity.clone());
    })
}

#[tokio::test(start_paused = true)]
async fn who_may_read_pods_may_not_run_commands_in_them() {
    let (stage, manager) = leased(json!({})).await;
    for stream in atoll_vnode::STREAMS {
        let connector = atoll_vnode::connector(manager.clone(), "compute", None);
        stage.hub.add_connector("", "pods", stream, connector);
    }
    start_pod(&stage, &pod("web", VNODE, "1")).await;
    let reader = reader(&stage).await;
    assert!(reader.get(&pods(), Some("default"), "web").await.is_ok());
    for (method, path) in [
        (http::Method::POST, "exec?command=id&stdout=true"),
        (http::Method::GET, "exec?command=id&stdout=true"),
        (http::Method::POST, "attach?stdout=true"),
        (http::Method::POST, "portforward?ports=80"),
        (http::Method::GET, "log"),
    ] {
        let path = format!("/api/v1/namespaces/default/pods/web/{path}");
        let status = reader.send(method.clone(), &path, "application/json", bytes::Bytes::new()).await.unwrap_err();
        assert_eq!(status.code, 403, "{method} {path}: {status}");
    }
}

async fn never_runs(stage: &Stage, pod: Value, said: &str) {
    let name = pod["metadata"]["name"].as_str().unwrap().to_owned();
    make_pod(&stage.compute, &pod).await;
    for _ in 0..120 {
        let told = stage.compute.list(&events(), Some("default"), "").await.unwrap().items;
        let about = told.iter().filter(|event| event["involvedObject"]["name"] == *name);
        if about.clone().any(|event| event["message"].as_str().unwrap().contains(said)) {
            assert!(stage.w1.get_opt(&pods(), Some(MOUNT), &below("default", &name)).await.unwrap().is_none());
            return;
        }
        stage.pass(1).await;
    }
    panic!("nobody said {said:?} about {name}");
}

#[tokio::test(start_paused = true)]
async fn a_pod_gets_no_secret_and_no_token_that_is_not_its_own() {
    let (stage, _manager) = leased(json!({})).await;
    let secret = |namespace: &str, name: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}, "data": {"k": "dg=="}});
    stage.compute.create(&secrets(), Some("kube-system"), &secret("kube-system", "theirs")).await.unwrap();
    stage.compute.create(&secrets(), Some("default"), &secret("default", "ours")).await.unwrap();
    let mounting = |name: &str, secret: &str| {
        let mut pod = pod(name, VNODE, "1");
        pod["spec"]["volumes"] = json!([{"name": "s", "secret": {"secretName": secret}}]);
        pod
    };
    let own = start_pod(&stage, &mounting("honest", "ours")).await;
    let copy = own["spec"]["volumes"][0]["secret"]["secretName"].as_str().unwrap().to_owned();
    assert_eq!(copy, below("default", "ours"));
    never_runs(&stage, mounting("curious", "theirs"), "default/theirs does not exist").await;
    // The name of a copy is no way to it: it is a name above, too.
    never_runs(&stage, mounting("clever", &copy), "does not exist").await;
    let mut borrowed = pod("borrowed", VNODE, "1");
    borrowed["spec"]["serviceAccountName"] = "nobodys".into();
    borrowed["spec"]["volumes"] =
        json!([{"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}]);
    let admitted = stage.compute.create(&pods(), Some("default"), &borrowed).await;
    if admitted.is_ok() {
        stage.compute.delete(&pods(), Some("default"), "borrowed", &json!({"gracePeriodSeconds": 0})).await.unwrap();
        until_gone(&stage.compute, &pods(), Some("default"), "borrowed").await;
        never_runs(&stage, borrowed, "nobodys").await;
    }
    let there = stage.w1.list(&pods(), Some(MOUNT), "").await.unwrap().items;
    assert_eq!(there.len(), 1, "only the honest one");
    assert_eq!(there[0]["spec"]["automountServiceAccountToken"], false, "no token of the worker");
}
