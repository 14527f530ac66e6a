//! A real kube-apiserver and a real Karmada, managed as external instances.
#![allow(clippy::unwrap_used)]

mod support;

use atoll_meta::Gvr;
use atoll_testkit::{Cluster, Parts};
use http::Request;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use support::{PATIENCE, World, becomes, hub_object, master, user};

/// A request to the native path of an instance elsewhere, as somebody.
async fn native(
    world: &World,
    who: &atoll_apiserver::Identity,
    verb: &str,
    path: &str,
    body: Option<Value>,
) -> (u16, Value) {
    world.native(who, verb, &format!("/instances/far{path}"), body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_api_server_is_managed_searched_and_proxied_in_the_callers_name() {
    let Some(cluster) = Cluster::start(Parts::default()).unwrap() else { return };
    let world = World::with(&[("fleet", &[])]).await;
    let root = world.endpoint("root");
    manage(&world, cluster.kubeconfig()).await;
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
    let may = async || native(&world, &ann, "GET", "/api/v1/namespaces/default/configmaps", None).await.0 == 200;
    world.until("the binding holds", may).await;
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

    // A pause holds here as it does in instances of the hub: reads go on, writes are refused at every entry.
    let pause = json!({"spec": {"paused": true}});
    let instances = Gvr::new("atoll.io", "v1alpha1", "instances");
    root.patch(&instances, None, "far", "", atoll_runtime::Patch::Merge, &pause).await.unwrap();
    let (code, refused) =
        native(&world, &master(), "DELETE", "/apis/apps/v1/namespaces/default/deployments/web", None).await;
    assert_eq!(code, 403, "{refused}");
    assert!(refused["message"].as_str().unwrap().contains("is paused"), "{refused}");
    let (code, refused) =
        world.rest(&master(), "DELETE", "/instances/far/namespaces/default/deployments/web", None).await;
    assert_eq!(code, 403, "{refused}");
    let asked = json!({"instance": "far", "namespace": "default", "name": "web"});
    assert_eq!(world.grpc(&master(), "AppsService/DeleteDeployment", asked).await.0, 7);
    assert_eq!(native(&world, &master(), "GET", "/apis/apps/v1/namespaces/default/deployments/web", None).await.0, 200);
    world.ok(&master(), "GET", "/instances/far/namespaces/default/deployments/web", None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_kubeconfig_leads_the_hub_into_a_denied_network() {
    let world = World::with(&[("fleet", &[])]).await;
    let root = world.endpoint("root");
    let config = json!({"apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": "https://169.254.169.254"}}],
        "users": [{"name": "c", "user": {"token": "t"}}], "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}]});
    let secret = json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "far"}, "stringData": {"kubeconfig": config.to_string()}});
    root.create(&Gvr::new("", "v1", "secrets"), Some("kube-system"), &secret).await.unwrap();
    let reference = json!({"namespace": "kube-system", "name": "far"});
    let spec = json!({"metadata": {"name": "far"}, "spec": {"type": "External", "kubeconfigSecretRef": reference}});
    root.create(&Gvr::new("atoll.io", "v1alpha1", "instances"), None, &hub_object("Instance", spec)).await.unwrap();
    let (code, refused) = native(&world, &master(), "GET", "/latest/meta-data", None).await;
    assert_eq!(code, 503, "{refused}");
    assert!(refused["message"].as_str().unwrap().contains("--deny-member-networks"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_entry_of_the_same_secret_is_another_way() {
    let world = World::with(&[("fleet", &[])]).await;
    let root = world.endpoint("root");
    let config = |server: &str| {
        let config = json!({"apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": server}}], "users": [{"name": "c", "user": {"token": "t"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}]});
        config.to_string()
    };
    let entries = json!({"one": config("https://127.0.0.1:1"), "other": config("https://169.254.169.254")});
    let secret = json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "far"}, "stringData": entries});
    root.create(&Gvr::new("", "v1", "secrets"), Some("kube-system"), &secret).await.unwrap();
    let instances = Gvr::new("atoll.io", "v1alpha1", "instances");
    let spec = |key: &str| {
        let reference = json!({"namespace": "kube-system", "name": "far", "key": key});
        json!({"metadata": {"name": "far"}, "spec": {"type": "External", "kubeconfigSecretRef": reference}})
    };
    root.create(&instances, None, &hub_object("Instance", spec("one"))).await.unwrap();
    let asked = async || {
        let (code, refused) = native(&world, &master(), "GET", "/version", None).await;
        assert_eq!(code, 503, "{refused}");
        refused["message"].as_str().unwrap().contains("--deny-member-networks")
    };
    assert!(!asked().await);
    root.patch(&instances, None, "far", "", atoll_runtime::Patch::Merge, &spec("other")).await.unwrap();
    assert!(asked().await, "the way is still the old one");
}

/// Makes an instance of a kubeconfig, and waits until it answers.
async fn manage(world: &World, kubeconfig: &std::path::Path) {
    let root = world.endpoint("root");
    let config = inline(&std::fs::read_to_string(kubeconfig).unwrap());
    let secret = json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "far"}, "stringData": {"kubeconfig": config}});
    root.create(&Gvr::new("", "v1", "secrets"), Some("kube-system"), &secret).await.unwrap();
    let instance = hub_object(
        "Instance",
        json!({"metadata": {"name": "far"}, "spec": {"type": "External", "kubeconfigSecretRef": {"namespace": "kube-system", "name": "far"}}}),
    );
    let instances = Gvr::new("atoll.io", "v1alpha1", "instances");
    root.create(&instances, None, &instance).await.unwrap();
    becomes(&root, &instances, "far", |seen| seen["status"]["phase"] == "Ready").await;
}

/// Definitions as Karmada publishes them.
fn definitions(directory: &std::path::Path) -> Vec<Value> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            all.extend(definitions(&entry));
        } else {
            all.push(serde_saphyr::from_str(&std::fs::read_to_string(entry).unwrap()).unwrap());
        }
    }
    all
}

/// Karmada's own API server for clusters, behind a kube-apiserver; it ends when dropped.
struct Aggregated(std::process::Child);

impl Drop for Aggregated {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Aggregated {
    async fn start(program: &std::path::Path, cluster: &Cluster) -> Self {
        let directory = cluster.directory();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let etcd = std::fs::read_to_string(directory.join("ports/etcd")).unwrap();
        let config = cluster.kubeconfig().display().to_string();
        let log = std::fs::File::create(directory.join("log/karmada-aggregated-apiserver.log")).unwrap();
        let process = std::process::Command::new(program)
            .args([format!("--kubeconfig={config}"), format!("--authentication-kubeconfig={config}")])
            .args([format!("--authorization-kubeconfig={config}"), format!("--secure-port={port}")])
            .args([format!("--etcd-servers=http://127.0.0.1:{}", etcd.trim()), "--bind-address=127.0.0.1".into()])
            .arg(format!("--tls-cert-file={}", directory.join("pki/server.crt").display()))
            .arg(format!("--tls-private-key-file={}", directory.join("pki/server.key").display()))
            .stderr(log)
            .spawn()
            .unwrap();
        let own = Self(process);
        let endpoint = cluster.endpoint().await.unwrap();
        let system = json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "karmada-system"}});
        endpoint.create(&Gvr::new("", "v1", "namespaces"), None, &system).await.unwrap();
        let service = json!({"kind": "Service", "apiVersion": "v1", "metadata": {"name": "karmada-aggregated-apiserver"},
            "spec": {"type": "ExternalName", "externalName": "localhost"}});
        endpoint.create(&Gvr::new("", "v1", "services"), Some("karmada-system"), &service).await.unwrap();
        let reference = json!({"name": "karmada-aggregated-apiserver", "namespace": "karmada-system", "port": port});
        let api = json!({"kind": "APIService", "apiVersion": "apiregistration.k8s.io/v1", "metadata": {"name": "v1alpha1.cluster.karmada.io"},
            "spec": {"group": "cluster.karmada.io", "version": "v1alpha1", "groupPriorityMinimum": 2000, "versionPriority": 10,
                     "insecureSkipTLSVerify": true, "service": reference}});
        let services = Gvr::new("apiregistration.k8s.io", "v1", "apiservices");
        endpoint.create(&services, None, &api).await.unwrap();
        becomes(&endpoint, &services, "v1alpha1.cluster.karmada.io", |seen| {
            let conditions = seen["status"]["conditions"].as_array();
            conditions.into_iter().flatten().any(|one| one["type"] == "Available" && one["status"] == "True")
        })
        .await;
        own
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_karmada_and_its_member_are_managed_searched_and_proxied() {
    let cache = atoll_testkit::peers::cache();
    let published = cache.join("src/karmada/charts/karmada/_crds/bases");
    let Some(program) = atoll_testkit::peers::find("karmada-aggregated-apiserver") else { return };
    if !published.is_dir() {
        return atoll_testkit::peers::skip("the sources of Karmada are missing (tests/peers/build)");
    }
    let Some(cluster) = Cluster::start(Parts::default()).unwrap() else { return };
    let karmada = cluster.endpoint().await.unwrap();
    let gvr = Gvr::new("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    for definition in definitions(&published) {
        karmada.create(&gvr, None, &definition).await.unwrap();
    }
    let _aggregated = Aggregated::start(&program, &cluster).await;
    let member = atoll_testkit::TestServer::memory().unwrap();
    let world = World::with(&[("fleet", &[])]).await;
    manage(&world, cluster.kubeconfig()).await;
    world.index.synced("far", PATIENCE).await.unwrap();

    // A member is joined through the hub, as Karmada's own tools store it.
    let space = json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "karmada-cluster"}});
    assert_eq!(native(&world, &master(), "POST", "/api/v1/namespaces", Some(space)).await.0, 201);
    let config = atoll_pki::Kubeconfig::read(&member.kubeconfig()).unwrap().access(Some("root")).unwrap();
    let credentials = json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "m1"},
        "stringData": {"token": member.token(), "caBundle": config.ca_pem.unwrap()}});
    let path = "/api/v1/namespaces/karmada-cluster/secrets";
    assert_eq!(native(&world, &master(), "POST", path, Some(credentials)).await.0, 201);
    let reference = json!({"namespace": "karmada-cluster", "name": "m1"});
    let joined = json!({"kind": "Cluster", "apiVersion": "cluster.karmada.io/v1alpha1", "metadata": {"name": "m1"},
        "spec": {"syncMode": "Push", "apiEndpoint": member.url(), "secretRef": reference, "impersonatorSecretRef": reference}});
    let clusters = "/apis/cluster.karmada.io/v1alpha1/clusters";
    let (code, made) = native(&world, &master(), "POST", clusters, Some(joined)).await;
    assert_eq!(code, 201, "{made}");

    // Its objects are found, and it is listed as joined.
    world.index.synced("far/m1", PATIENCE).await.unwrap();
    let maps = Gvr::new("", "v1", "configmaps");
    let object = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "of-the-member"}});
    let made = member.endpoint("root").create(&maps, Some("default"), &object).await.unwrap();
    world.settled("far/m1", &maps, &made).await;
    let found = world.ok(&master(), "GET", "/manage/v1alpha1/search?names=of-the-member&sources=far/*", None).await;
    assert_eq!(found["items"][0]["source"], "far/m1", "{found}");
    let list = world.ok(&master(), "GET", "/instances/far/clusters", None).await;
    assert_eq!(list["items"][0]["metadata"]["name"], "m1", "{list}");

    // Karmada's own proxy, through that of the hub, in the name of the caller.
    let inside = format!("{clusters}/m1/proxy/api/v1/namespaces/default/configmaps/of-the-member");
    let (code, through) = native(&world, &master(), "GET", &inside, None).await;
    assert_eq!((code, &through["metadata"]["uid"]), (200, &made["metadata"]["uid"]), "{through}");
    assert_eq!(native(&world, &user("ann"), "GET", &inside, None).await.0, 403);

    // Workloads and policies are written through the one entry, and Karmada has them.
    let policy = json!({"kind": "PropagationPolicy", "apiVersion": "policy.karmada.io/v1alpha1", "metadata": {"name": "p", "namespace": "default"},
        "spec": {"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}], "placement": {"clusterAffinity": {"clusterNames": ["m1"]}}}});
    let body = |object: &Value| Some(json!({"data": object.to_string()}));
    let place = "/instances/far/namespaces/default";
    world.ok(&master(), "POST", &format!("{place}/propagationpolicies"), body(&policy)).await;
    world.ok(&master(), "POST", &format!("{place}/deployments"), body(&support::deployment("web"))).await;
    let policies = Gvr::new("policy.karmada.io", "v1alpha1", "propagationpolicies");
    let stored = karmada.get(&policies, Some("default"), "p").await.unwrap();
    assert_eq!(stored["spec"]["placement"], policy["spec"]["placement"]);
    let touching = world.ok(&master(), "GET", &format!("{place}/propagationpolicies"), None).await;
    assert_eq!(touching["items"][0]["metadata"]["name"], "p", "{touching}");
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
