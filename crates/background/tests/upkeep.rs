//! What has an end goes when it has come, and what belongs together is kept together.
#![allow(clippy::unwrap_used)]

mod support;

use atoll_apiserver::Identity;
use atoll_meta::Gvr;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use support::{Bench, reach};

const HOUR: u64 = 3600;

#[tokio::test(start_paused = true)]
async fn an_idle_instance_has_nothing_to_do() {
    let bench = Bench::new().await;
    for number in 0..20 {
        bench.hub.create_instance(&format!("idle-{number}")).await.unwrap();
    }
    bench.until("all are furnished", async || bench.background.waiting() == 0).await;
    bench.pass(24 * HOUR).await;
    assert_eq!(bench.background.waiting(), 0);
    let instance = bench.hub.instance("idle-7").unwrap();
    let snapshot = bench.hub.snapshot(&instance).await.unwrap();
    assert!(snapshot.get("serviceaccounts./kube-system/default").is_some(), "it is furnished all the same");
}

#[tokio::test(start_paused = true)]
async fn finished_jobs_go_after_the_time_they_ask_for() {
    let bench = Bench::new().await;
    let jobs = "batch/v1/jobs@default";
    let template = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}});
    for (name, life) in [("short", json!(100)), ("kept", Value::Null)] {
        let spec = json!({"ttlSecondsAfterFinished": life, "template": template});
        bench.create(jobs, json!({"kind": "Job", "metadata": {"name": name}, "spec": spec})).await;
    }
    bench.pass(HOUR).await;
    assert!(bench.has(jobs, "short").await, "it is not finished");
    for name in ["short", "kept"] {
        let now = bench.now();
        let condition = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": now});
        let status = json!({"startTime": now, "completionTime": now, "succeeded": 1,
            "uncountedTerminatedPods": {}, "conditions": [condition("SuccessCriteriaMet"), condition("Complete")]});
        bench.merge(jobs, name, "status", json!({"status": status})).await.unwrap();
    }
    bench.pass(98).await;
    assert!(bench.has(jobs, "short").await);
    bench.pass(3).await;
    assert!(!bench.has(jobs, "short").await && bench.has(jobs, "kept").await);
}

#[tokio::test(start_paused = true)]
async fn events_live_for_an_hour_after_their_last_change() {
    let bench = Bench::new().await;
    let events = "/v1/events@default";
    let event = |name: &str| {
        json!({"kind": "Event", "metadata": {"name": name}, "reason": "Test", "message": "m", "type": "Normal",
               "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"}})
    };
    bench.create(events, event("old")).await;
    bench.create(events, event("again")).await;
    bench.pass(HOUR / 2).await;
    bench.merge(events, "again", "", json!({"count": 2})).await.unwrap();
    bench.pass(HOUR / 2 - 10).await;
    assert!(bench.has(events, "old").await);
    bench.pass(90).await;
    assert!(!bench.has(events, "old").await && bench.has(events, "again").await);
    bench.pass(HOUR / 2).await;
    assert!(!bench.has(events, "again").await);
    assert_eq!(bench.background.waiting(), 0, "no events, no appointment");
}

fn bootstrap(id: &str, expiration: &str) -> Value {
    let fields = json!({"token-id": id, "token-secret": "0123456789abcdef", "expiration": expiration,
                        "usage-bootstrap-signing": "true"});
    json!({"kind": "Secret", "metadata": {"name": format!("bootstrap-token-{id}")},
           "type": "bootstrap.kubernetes.io/token", "stringData": fields})
}

#[tokio::test(start_paused = true)]
async fn bootstrap_tokens_sign_the_map_for_joiners_until_they_end() {
    let bench = Bench::new().await;
    let (secrets, maps) = ("/v1/secrets@kube-system", "/v1/configmaps@kube-public");
    assert!(!bench.has(maps, "cluster-info").await, "nobody is to join");
    // A wider role somebody prepared is not handed to everybody.
    let roles = "rbac.authorization.k8s.io/v1/roles@kube-public";
    let wide = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}]);
    let reader = "kubeadm:bootstrap-signer-clusterinfo";
    bench.create(roles, json!({"kind": "Role", "metadata": {"name": reader}, "rules": wide})).await;
    bench.create(secrets, bootstrap("aaaaaa", &bench.in_seconds(600))).await;
    bench.create(secrets, bootstrap("bbbbbb", &bench.in_seconds(7200))).await;
    bench.idle().await;
    let exactly = json!([{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["cluster-info"],
                          "verbs": ["get"]}]);
    assert_eq!(bench.find(roles, reader).await.unwrap()["rules"], exactly);
    let anybody = reach(&bench.hub, "root", Identity::anonymous());
    let get = async || anybody.get(&Gvr::new("", "v1", "configmaps"), Some("kube-public"), "cluster-info").await;
    let denied = async |name: &str| {
        let answer = anybody.get(&Gvr::new("", "v1", "configmaps"), Some("kube-public"), name).await;
        assert_eq!(answer.unwrap_err().code, 403, "{name}");
    };
    denied("kube-root-ca.crt").await;
    denied("").await;
    let data = get().await.unwrap()["data"].take();
    let config = data["kubeconfig"].as_str().unwrap();
    assert!(config.contains("certificate-authority-data") && config.contains("https://127.0.0.1"), "{config}");
    for id in ["aaaaaa", "bbbbbb"] {
        let expected = atoll_pki::detached_signature(id, "0123456789abcdef", config);
        assert_eq!(data[format!("jws-kubeconfig-{id}")], expected);
    }
    // A changed map is signed anew.
    bench.merge(maps, "cluster-info", "", json!({"data": {"kubeconfig": "other"}})).await.unwrap();
    bench.idle().await;
    let data = get().await.unwrap()["data"].take();
    assert_eq!(data["jws-kubeconfig-aaaaaa"], atoll_pki::detached_signature("aaaaaa", "0123456789abcdef", "other"));
    bench.pass(601).await;
    assert!(!bench.has(secrets, "bootstrap-token-aaaaaa").await && bench.has(secrets, "bootstrap-token-bbbbbb").await);
    let data = get().await.unwrap()["data"].take();
    assert!(data.get("jws-kubeconfig-aaaaaa").is_none() && data.get("jws-kubeconfig-bbbbbb").is_some(), "{data}");
    // Whoever takes the right away keeps it away.
    bench.delete("rbac.authorization.k8s.io/v1/rolebindings@kube-public", reader, "Background").await;
    bench.create(secrets, bootstrap("cccccc", &bench.in_seconds(7200))).await;
    bench.idle().await;
    assert!(bench.find(maps, "cluster-info").await.unwrap()["data"]["jws-kubeconfig-cccccc"].is_string());
    assert_eq!(get().await.unwrap_err().code, 403);
}

#[tokio::test(start_paused = true)]
async fn signing_requests_nobody_answers_go_after_a_day() {
    let bench = Bench::new().await;
    let requests = "certificates.k8s.io/v1/certificatesigningrequests";
    let spec = json!({"request": STANDARD.encode(REQUEST), "signerName": "example.com/signer",
                      "usages": ["digital signature", "client auth"]});
    bench
        .create(requests, json!({"kind": "CertificateSigningRequest", "metadata": {"name": "one"}, "spec": spec}))
        .await;
    bench.pass(24 * HOUR - 60).await;
    assert!(bench.has(requests, "one").await);
    bench.pass(120).await;
    assert!(!bench.has(requests, "one").await);
}

#[tokio::test(start_paused = true)]
async fn token_secrets_end_with_their_account() {
    let bench = Bench::new().await;
    let (accounts, secrets) = ("/v1/serviceaccounts@default", "/v1/secrets@default");
    let secret = |name: &str, account: &str| {
        json!({"kind": "Secret", "metadata": {"name": name,
               "annotations": {"kubernetes.io/service-account.name": account}},
               "type": "kubernetes.io/service-account-token"})
    };
    bench.create(accounts, json!({"kind": "ServiceAccount", "metadata": {"name": "robot"}})).await;
    bench.create(secrets, secret("robot-token", "robot")).await;
    bench.create(secrets, secret("nobody-token", "nobody")).await;
    bench.create(secrets, json!({"kind": "Secret", "metadata": {"name": "other"}})).await;
    bench.until("the Secret of nobody went", async || !bench.has(secrets, "nobody-token").await).await;
    bench.settled().await;
    let filled = bench.find(secrets, "robot-token").await.unwrap();
    assert!(filled["data"]["token"].is_string(), "{filled}");
    bench.delete(accounts, "robot", "Background").await;
    bench.until("its Secret went", async || !bench.has(secrets, "robot-token").await).await;
    bench.settled().await;
    assert!(bench.has(secrets, "other").await);
}

#[tokio::test(start_paused = true)]
async fn what_is_deleted_is_no_longer_charged() {
    let bench = Bench::new().await;
    let (quotas, maps) = ("/v1/resourcequotas@default", "/v1/configmaps@default");
    let quota = json!({"kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": {"hard": {"configmaps": "9"}}});
    bench.create(quotas, quota).await;
    for name in ["a", "b", "c"] {
        bench.create(maps, json!({"kind": "ConfigMap", "metadata": {"name": name}})).await;
    }
    let used = async || bench.find(quotas, "few").await.unwrap()["status"]["used"]["configmaps"].take();
    let before: i64 = used().await.as_str().unwrap().parse().unwrap();
    bench.delete(maps, "a", "Background").await;
    bench.delete(maps, "b", "Background").await;
    let after = (before - 2).to_string();
    bench.until("they are no longer charged", async || used().await == after).await;
    // A status somebody wrote is counted again.
    bench.merge(quotas, "few", "status", json!({"status": {"used": {"configmaps": "7"}}})).await.unwrap();
    bench.until("the truth is back", async || used().await == after).await;
}

const REQUEST: &str = include_str!("support/request.pem");

const REQUESTS: &str = "certificates.k8s.io/v1/certificatesigningrequests";

/// Asks for a certificate as a user of some groups; gives the name of the request.
async fn ask(bench: &Bench, user: &str, groups: &[&str], spec: Value) -> String {
    let groups = groups.iter().map(|group| (*group).to_owned()).chain(["system:authenticated".to_owned()]).collect();
    let who = Identity { user: user.to_owned(), groups, ..Identity::default() };
    let request = json!({"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
                         "metadata": {"generateName": "csr-"}, "spec": spec});
    let gvr = Gvr::new("certificates.k8s.io", "v1", "certificatesigningrequests");
    let made = reach(&bench.hub, "root", who).create(&gvr, None, &request).await.unwrap();
    made["metadata"]["name"].as_str().unwrap().to_owned()
}

/// What a kubelet asks for.
fn wish(node: &str, organization: &str, signer: &str, host: Option<&str>, usages: &[&str]) -> Value {
    let mut params =
        rcgen::CertificateParams::new(host.map(ToOwned::to_owned).into_iter().collect::<Vec<_>>()).unwrap();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(rcgen::DnType::OrganizationName, organization);
    params.distinguished_name.push(rcgen::DnType::CommonName, format!("system:node:{node}"));
    let pem = params.serialize_request(&rcgen::KeyPair::generate().unwrap()).unwrap().pem().unwrap();
    json!({"request": STANDARD.encode(pem), "signerName": format!("kubernetes.io/{signer}"), "usages": usages})
}

/// The reason of the answer a request got, and whether it was signed.
async fn answer(bench: &Bench, name: &str) -> (Option<String>, bool) {
    let request = bench.find(REQUESTS, name).await.unwrap();
    let message = request["status"]["conditions"][0]["message"].as_str().map(ToOwned::to_owned);
    (message, request["status"]["certificate"].is_string())
}

#[tokio::test(start_paused = true)]
async fn kubelets_get_client_certificates_by_their_rights_and_serving_certificates_from_people() {
    let bench = Bench::new().await;
    let (tokens, nodes) = ("system:bootstrappers:kubeadm:default-node-token", "system:nodes");
    let bind = async |role: &str, group: &str| {
        let api = "rbac.authorization.k8s.io";
        let binding = json!({"kind": "ClusterRoleBinding", "metadata": {"generateName": "b-"},
            "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": api, "kind": "Group", "name": group}]});
        bench.create("rbac.authorization.k8s.io/v1/clusterrolebindings", binding).await;
    };
    bind("system:node-bootstrapper", tokens).await;
    bind("system:node-bootstrapper", nodes).await;
    let client = ["digital signature", "client auth"];
    let kubelet = |node: &str| wish(node, nodes, "kube-apiserver-client-kubelet", None, &client);
    let token =
        async |spec: Value| ask(&bench, "system:bootstrap:abcdef", &["system:bootstrappers", tokens], spec).await;
    let early = token(kubelet("n1")).await;
    bench.pass(200).await;
    assert_eq!(answer(&bench, &early).await, (None, false), "the right is missing");

    bind("system:certificates.k8s.io:certificatesigningrequests:nodeclient", tokens).await;
    bind("system:certificates.k8s.io:certificatesigningrequests:selfnodeclient", nodes).await;
    let first = "Auto approving kubelet client certificate after SubjectAccessReview.";
    let late = token(kubelet("n2")).await;
    bench.pass(61).await;
    for name in [&early, &late] {
        assert_eq!(answer(&bench, name).await, (Some(first.to_owned()), true));
    }
    let own = ask(&bench, "system:node:n1", &[nodes], kubelet("n1")).await;
    bench.idle().await;
    let renewal = "Auto approving self kubelet client certificate after SubjectAccessReview.";
    assert_eq!(answer(&bench, &own).await, (Some(renewal.to_owned()), true));

    let server = ["digital signature", "server auth"];
    let signer = "kube-apiserver-client-kubelet";
    let mut refused = vec![ask(&bench, "system:node:n1", &[nodes], kubelet("n2")).await];
    for spec in [
        wish("n3", nodes, "kubelet-serving", Some("n3"), &server),
        wish("n3", "system:masters", signer, None, &client),
        wish("n3", nodes, signer, Some("n3"), &client),
        wish("n3", nodes, signer, None, &["digital signature", "client auth", "server auth"]),
        wish("n3", nodes, "kube-apiserver-client", None, &client),
    ] {
        refused.push(token(spec).await);
    }
    bench.pass(200).await;
    for (at, name) in refused.iter().enumerate() {
        assert_eq!(answer(&bench, name).await, (None, false), "request {at} waits for a person");
    }
}
