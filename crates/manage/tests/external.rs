//! A real kube-apiserver, managed as an external instance.
#![allow(clippy::unwrap_used)]

mod support;

use atoll_meta::Gvr;
use atoll_testkit::{Cluster, Parts};
use http::Request;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use support::{PATIENCE, World, hub_object, master, user};

/// A request to the native path of an instance elsewhere, as somebody.
async fn native(
    world: &World,
    who: &atoll_apiserver::Identity,
    verb: &str,
    path: &str,
    body: Option<Value>,
) -> (u16, Value) {
    let bytes = body.map(|body| body.to_string()).unwrap_or_default();
    let request =
        Request::builder().method(verb).uri(format!("/instances/far{path}")).header("content-type", "application/json");
    let body = Full::<bytes::Bytes>::new(bytes.into()).map_err(|never| match never {}).boxed_unsync();
    let mut request = request.body(body).unwrap();
    request.extensions_mut().insert(who.clone());
    let answer = world.manage.answer(request).await;
    let code = answer.status().as_u16();
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_api_server_is_managed_searched_and_proxied_in_the_callers_name() {
    let Some(cluster) = Cluster::start(Parts::default()).unwrap() else { return };
    let world = World::with(&[("fleet", &[])]).await;
    let root = world.endpoint("root");
    let text = std::fs::read_to_string(cluster.kubeconfig()).unwrap();
    // Files of the machine are not used: what they hold travels in the Secret.
    let config = atoll_pki::Kubeconfig::parse(&text).and_then(|config| config.to_yaml()).unwrap_or(text);
    let config = inline(&config);
    let secret = json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "far"}, "stringData": {"kubeconfig": config}});
    root.create(&Gvr::new("", "v1", "secrets"), Some("kube-system"), &secret).await.unwrap();
    let instance = hub_object(
        "Instance",
        json!({"metadata": {"name": "far"}, "spec": {"type": "External", "kubeconfigSecretRef": {"namespace": "kube-system", "name": "far"}}}),
    );
    root.create(&Gvr::new("atoll.io", "v1alpha1", "instances"), None, &instance).await.unwrap();
    for _ in 0..1500 {
        if root.get(&Gvr::new("atoll.io", "v1alpha1", "instances"), None, "far").await.unwrap()["status"]["phase"]
            == "Ready"
        {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let shown = world.ok(&master(), "GET", "/instances/far", None).await;
    assert_eq!(shown["status"]["state"], "INSTANCE_STATE_RUNNING", "{shown}");
    assert!(shown["status"]["kubernetesVersion"].as_str().unwrap().starts_with('v'));
    world.index.synced("far", PATIENCE).await.unwrap();

    // Written through the one entry, found in the index.
    let body = Some(json!({"data": support::deployment("web").to_string()}));
    world.ok(&master(), "POST", "/instances/far/namespaces/default/deployments", body).await;
    let list = world.ok(&master(), "GET", "/instances/far/deployments", None).await;
    assert_eq!(list["items"][0]["metadata"]["name"], "web");
    let found =
        world.ok(&master(), "GET", "/manage/v1alpha1/search?sources=far&names=web&kinds=Deployment", None).await;
    assert_eq!(found["items"].as_array().unwrap().len(), 1);

    // The native proxy: with all rights, and with the caller's own.
    assert_eq!(native(&world, &master(), "GET", "/apis/apps/v1/namespaces/default/deployments/web", None).await.0, 200);
    let ann = user("ann");
    assert_eq!(native(&world, &ann, "GET", "/api/v1/namespaces/default/configmaps", None).await.0, 403);
    assert_eq!(world.ok(&ann, "GET", "/manage/v1alpha1/search?sources=far", None).await["items"], json!([]));
    let roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let group = "rbac.authorization.k8s.io";
    let role = json!({"kind": "Role", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "see"},
        "rules": [{"apiGroups": ["", "apps"], "resources": ["configmaps", "deployments"], "verbs": ["get", "list", "watch"]}]});
    let binding = json!({"kind": "RoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "ann"},
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "see"}, "subjects": [{"kind": "User", "name": "ann", "apiGroup": group}]});
    for (resource, object) in [("roles", role), ("rolebindings", binding)] {
        let (code, made) = native(&world, &master(), "POST", &format!("{roles}/{resource}"), Some(object)).await;
        assert_eq!(code, 201, "{made}");
    }
    let mut code = 0;
    for _ in 0..250 {
        code = native(&world, &ann, "GET", "/api/v1/namespaces/default/configmaps", None).await.0;
        if code == 200 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(code, 200);
    assert_eq!(native(&world, &ann, "GET", "/api/v1/namespaces/default/secrets", None).await.0, 403);
    let seen = world.ok(&ann, "GET", "/manage/v1alpha1/search?sources=far&kinds=Deployment", None).await;
    assert_eq!(seen["items"][0]["name"], "web");
    // Headers do not make somebody else of the caller.
    let request = Request::builder()
        .uri("/instances/far/api/v1/namespaces/default/secrets")
        .header("impersonate-user", "admin")
        .header("impersonate-group", "system:masters");
    let mut request =
        request.body(Full::<bytes::Bytes>::default().map_err(|never| match never {}).boxed_unsync()).unwrap();
    request.extensions_mut().insert(ann);
    assert_eq!(world.manage.answer(request).await.status(), 403);
    let nobody = Request::builder()
        .uri("/instances/far/api/v1/namespaces")
        .body(Full::<bytes::Bytes>::default().map_err(|never| match never {}).boxed_unsync());
    assert_eq!(world.manage.answer(nobody.unwrap()).await.status(), 401);
}

/// A kubeconfig with the contents of the files it names.
fn inline(text: &str) -> String {
    let mut tree: Value = serde_saphyr::from_str(text).unwrap();
    let read = |path: &Value| {
        use base64::Engine as _;
        path.as_str()
            .and_then(|path| std::fs::read(path).ok())
            .map(|bytes| base64::engine::general_purpose::STANDARD.encode(bytes))
    };
    for (list, part, keys) in [
        ("clusters", "cluster", &["certificate-authority"][..]),
        ("users", "user", &["client-certificate", "client-key"][..]),
    ] {
        for entry in tree[list].as_array_mut().into_iter().flatten() {
            for key in keys {
                if let Some(data) = read(&entry[part][*key]) {
                    entry[part][format!("{key}-data")] = data.into();
                    entry[part].as_object_mut().unwrap().remove(*key);
                }
            }
        }
    }
    tree.to_string()
}
