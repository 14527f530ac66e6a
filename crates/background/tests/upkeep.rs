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
    bench.create(secrets, bootstrap("aaaaaa", &bench.in_seconds(600))).await;
    bench.create(secrets, bootstrap("bbbbbb", &bench.in_seconds(7200))).await;
    bench.idle().await;
    let anybody = reach(&bench.hub, "root", Identity::anonymous());
    let get = async || anybody.get(&Gvr::new("", "v1", "configmaps"), Some("kube-public"), "cluster-info").await;
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
