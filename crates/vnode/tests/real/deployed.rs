//! Manager, syncer and proxier apart in a real computing cluster, each with no more than its own account's rights.

use std::sync::Arc;
use std::time::Duration;

use atoll_meta::Gvr;
use atoll_pki::Ca;
use atoll_runtime::{Endpoint, Patch};
use atoll_testkit::Cluster;
use atoll_vnode::{Deployed, KubeconfigResolver, Manager, Options, ProxierOptions, Share};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{NODES, as_holder, bind, condition, core, deployments, lend, own, until, virtual_nodes};

const SYSTEM: &str = "kubeocean-system";
const SYNCER: &str = "kubeocean-syncer-d";
const PROXIER: &str = "kubeocean-proxier-d";
/// Where the proxier answers.
const ADDRESS: &str = "127.0.0.91";

fn access(plural: &str) -> Gvr {
    Gvr::new("rbac.authorization.k8s.io", "v1", plural)
}

/// A way into the real cluster with the rights of a ServiceAccount.
async fn as_account(cluster: &Cluster, admin: &Endpoint, name: &str) -> Endpoint {
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []}});
    let answer = admin.create_sub(&core("serviceaccounts"), Some(SYSTEM), name, "token", &request).await.unwrap();
    let text = as_holder(cluster, answer["status"]["token"].as_str().unwrap().to_owned());
    let config = kube::config::Kubeconfig::from_yaml(&text).unwrap();
    let choice = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(config, &choice).await.unwrap();
    Endpoint::remote(name, config, "atoll-vnode").unwrap()
}

/// An account with the printed roles of a manager that deploys.
async fn manager_account(admin: &Endpoint) {
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "manager", "namespace": SYSTEM}});
    admin.ensure(&core("serviceaccounts"), Some(SYSTEM), &account).await.unwrap();
    let subjects = json!([{"kind": "ServiceAccount", "name": "manager", "namespace": SYSTEM}]);
    for role in atoll_vnode::computing_roles("manager").iter().chain(&atoll_vnode::deploying_roles("manager")) {
        let (kind, namespace) = (role["kind"].as_str().unwrap(), role["metadata"]["namespace"].as_str());
        let plural = kind.to_lowercase();
        admin.create(&access(&format!("{plural}s")), namespace, role).await.unwrap();
        let grant = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": format!("{kind}Binding"), "metadata": role["metadata"],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role["metadata"]["name"]}, "subjects": subjects});
        admin.create(&access(&format!("{plural}bindings")), namespace, &grant).await.unwrap();
    }
}

async fn start(
    computing: Endpoint,
    share: Share,
    proxier: Option<ProxierOptions>,
    stop: &CancellationToken,
) -> Manager {
    let mut options = Options::new(computing, Arc::new(KubeconfigResolver::default()));
    options.intranet_required = false;
    options.probe = Duration::from_secs(1);
    options.identity = Some("only".to_owned());
    options.share = share;
    options.proxier = proxier;
    Manager::start(options, stop.child_token()).await
}

fn named<'a>(list: &'a [Value], name: &str) -> Option<&'a Value> {
    list.iter().find(|own| own["metadata"]["name"] == name)
}

pub async fn in_processes_of_their_own(cluster: &Cluster, below: &Endpoint, kubeconfig: &str) {
    let admin = cluster.endpoint().await.unwrap();
    manager_account(&admin).await;
    let now = jiff::Timestamp::now();
    let authority = Arc::new(atoll_vnode::kubelet_ca(&admin, now).await.unwrap());
    lend(below, "apart", "d").await;
    let stop = CancellationToken::new();
    let deployed =
        Deployed { image: "atoll:1".to_owned(), replicas: 1, arguments: vec!["--without-intranet".to_owned()] };
    let manager = start(as_account(cluster, &admin, "manager").await, Share::Manager(deployed), None, &stop).await;
    bind(&admin, "d", kubeconfig).await;
    let both = |list: &[Value]| named(list, SYNCER).is_some() && named(list, PROXIER).is_some();
    until(&admin, &deployments(), Some(SYSTEM), "two Deployments", both).await;

    let syncer = as_account(cluster, &admin, SYNCER).await;
    let proxier = as_account(cluster, &admin, PROXIER).await;
    least(&syncer, &proxier).await;
    let syncer = start(syncer, Share::Syncer("d".to_owned()), None, &stop).await;
    let proxier = start(proxier, Share::Proxier("d".to_owned()), Some(serving(authority)), &stop).await;
    until(&admin, &own("clusterbindings"), None, "a ready binding in parts", |list| {
        named(list, "d").is_some_and(|own| own["status"]["phase"] == "Ready")
    })
    .await;
    announced(&admin).await;
    repaired(&admin).await;

    admin.delete(&own("clusterbindings"), None, "d", &json!({})).await.unwrap();
    until(&admin, &own("clusterbindings"), None, "no binding in parts", <[Value]>::is_empty).await;
    let none =
        |list: &[Value]| !list.iter().any(|own| own["metadata"]["labels"]["kubeocean.io/cluster-binding"] == "d");
    for (gvr, namespace) in [
        (deployments(), Some(SYSTEM)),
        (core("serviceaccounts"), Some(SYSTEM)),
        (core("services"), Some(SYSTEM)),
        (access("clusterroles"), None),
        (access("clusterrolebindings"), None),
        (access("roles"), None),
        (access("rolebindings"), None),
    ] {
        until(&admin, &gvr, namespace, "nothing of the binding", none).await;
    }
    stop.cancel();
    for own in [manager, syncer, proxier] {
        own.ended().await;
    }
}

fn serving(ca: Arc<Ca>) -> ProxierOptions {
    let address = ADDRESS.parse().unwrap();
    ProxierOptions { listen: address, advertise: address, names: Vec::new(), ca, clients: None, audiences: Vec::new() }
}

/// The real authoriser gives each account what it needs and not what is the other's.
async fn least(syncer: &Endpoint, proxier: &Endpoint) {
    let code = |result: Result<Value, atoll_meta::Status>| result.err().map_or(200, |status| status.code);
    assert_eq!(code(proxier.get(&core("secrets"), Some(SYSTEM), "d").await), 200);
    assert_eq!(code(proxier.get(&core("secrets"), Some(SYSTEM), "other").await), 403);
    assert_eq!(code(proxier.get(&own("clusterbindings"), None, "other").await), 403);
    let mark = json!({"metadata": {"labels": {"mine": "yes"}}});
    assert_eq!(code(proxier.patch(&own("clusterbindings"), None, "d", "", Patch::Merge, &mark).await), 403);
    assert_eq!(code(syncer.patch(&own("clusterbindings"), None, "other", "", Patch::Merge, &mark).await), 403);
    assert_eq!(code(syncer.get(&deployments(), Some(SYSTEM), SYNCER).await), 403);
}

/// The pod that the real Deployment made becomes ready, and virtual nodes say where it answers.
async fn announced(admin: &Endpoint) {
    let of_proxier = |own: &&Value| own["metadata"]["labels"]["k8s-app"] == PROXIER;
    let pods = until(admin, &core("pods"), Some(SYSTEM), "a pod of the proxier", |list| {
        list.iter().filter(of_proxier).count() == 1
    })
    .await;
    let name = pods.iter().find(of_proxier).unwrap()["metadata"]["name"].as_str().unwrap();
    let status = json!({"status": {"podIP": ADDRESS, "podIPs": [{"ip": ADDRESS}], "conditions": [{"type": "Ready", "status": "True"}]}});
    admin.patch(&core("pods"), Some(SYSTEM), name, "status", Patch::Merge, &status).await.unwrap();
    until(admin, &core("nodes"), None, "nodes that announce the proxier", |nodes| {
        let nodes = virtual_nodes(nodes);
        let at =
            |node: &&Value| node["status"]["addresses"][0]["address"] == ADDRESS && condition(node, "Ready") == "True";
        nodes.len() == NODES && nodes.iter().all(at)
    })
    .await;
}

/// What somebody changes or deletes is put right.
async fn repaired(admin: &Endpoint) {
    let image = json!({"spec": {"template": {"spec": {"containers": [{"name": "syncer", "image": "other"}]}}}});
    admin.patch(&deployments(), Some(SYSTEM), SYNCER, "", Patch::Strategic, &image).await.unwrap();
    admin.delete(&core("services"), Some(SYSTEM), "kubeocean-proxier-d-svc", &json!({})).await.unwrap();
    admin.delete(&access("clusterroles"), None, PROXIER, &json!({})).await.unwrap();
    admin.delete(&deployments(), Some(SYSTEM), PROXIER, &json!({})).await.unwrap();
    until(admin, &deployments(), Some(SYSTEM), "both as they should be", |list| {
        let image = |own: &Value| own["spec"]["template"]["spec"]["containers"][0]["image"] == "atoll:1";
        [SYNCER, PROXIER].iter().all(|name| {
            named(list, name).is_some_and(|own| image(own) && own["metadata"]["deletionTimestamp"].is_null())
        })
    })
    .await;
    until(admin, &core("services"), Some(SYSTEM), "the Service again", |list| {
        named(list, "kubeocean-proxier-d-svc").is_some()
    })
    .await;
    until(admin, &access("clusterroles"), None, "the role again", |list| named(list, PROXIER).is_some()).await;
}
