//! D13 to D17: ConfigMaps, Secrets, claims, volumes and tokens; and Services.

use base64::Engine as _;
use serde_json::{Value, json};

use crate::pods::{leased, start_pod};
use crate::stage::*;

const VNODE: &str = "vnode-w1-n1";

async fn make(
    cluster: &atoll_runtime::Endpoint,
    gvr: &atoll_meta::Gvr,
    namespace: Option<&str>,
    object: Value,
) -> Value {
    cluster.create(gvr, namespace, &object).await.unwrap()
}

fn config(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": {"k": "v"}})
}

fn secret(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "default"}, "type": "Opaque", "data": {"k": "dg=="}})
}

fn with(name: &str, more: Value) -> Value {
    let mut pod = pod(name, VNODE, "100m");
    merge(&mut pod["spec"], &more);
    pod
}

#[tokio::test(start_paused = true)]
async fn what_a_pod_refers_to_is_copied_kept_and_removed_with_the_last_pod() {
    let (stage, _manager) = leased(json!({})).await;
    make(&stage.compute, &configs(), Some("default"), config("c")).await;
    make(&stage.compute, &secrets(), Some("default"), secret("s")).await;
    let needs = json!({"volumes": [{"name": "c", "configMap": {"name": "c"}}, {"name": "s", "secret": {"secretName": "s"}}, {"name": "o", "secret": {"secretName": "absent", "optional": true}}]});
    let physical = start_pod(&stage, &with("web", needs.clone())).await;
    start_pod(&stage, &with("web2", needs)).await;
    assert_eq!(physical["spec"]["volumes"][0]["configMap"]["name"], below("default", "c"));
    let copy = until_there(&stage.w1, &configs(), Some(MOUNT), &below("default", "c")).await;
    assert_eq!(
        (annotation(&copy, "virtual-name"), annotation(&copy, "virtual-namespace"), &copy["data"]),
        ("c", "default", &json!({"k": "v"}))
    );
    until_there(&stage.w1, &secrets(), Some(MOUNT), &below("default", "s")).await;
    let original = until(&stage.compute, &configs(), Some("default"), "c", |config| {
        config.is_some_and(|config| label(config, "synced-by-w1") == "true")
    })
    .await
    .unwrap();
    assert_eq!(
        (
            label(&original, "managed-by"),
            annotation(&original, "physical-name"),
            annotation(&original, "physical-namespace")
        ),
        ("kubeocean", below("default", "c").as_str(), MOUNT)
    );
    assert_eq!(original["metadata"]["finalizers"], json!(["kubeocean.io/finalizer-w1"]));

    patch(&stage.compute, &configs(), Some("default"), "c", "", json!({"data": {"k": "new"}})).await;
    until(&stage.w1, &configs(), Some(MOUNT), &below("default", "c"), |copy| {
        copy.is_some_and(|copy| copy["data"]["k"] == "new")
    })
    .await;
    stage.w1.delete(&configs(), Some(MOUNT), &below("default", "c"), &json!({})).await.unwrap();
    until_there(&stage.w1, &configs(), Some(MOUNT), &below("default", "c")).await;

    for name in ["web", "web2"] {
        assert!(stage.w1.get_opt(&configs(), Some(MOUNT), &below("default", "c")).await.unwrap().is_some());
        stage.compute.delete(&pods(), Some("default"), name, &json!({})).await.unwrap();
        until_gone(&stage.compute, &pods(), Some("default"), name).await;
        stage.pass(30).await;
    }
    // The original keeps copies for ever.
    until_gone(&stage.w1, &configs(), Some(MOUNT), &below("default", "c")).await;
    until_gone(&stage.w1, &secrets(), Some(MOUNT), &below("default", "s")).await;
    let original = until(&stage.compute, &configs(), Some("default"), "c", |config| {
        config.is_some_and(|config| label(config, "managed-by").is_empty())
    })
    .await
    .unwrap();
    assert!(
        original["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty)
            && annotation(&original, "physical-name").is_empty()
    );
}

#[tokio::test(start_paused = true)]
async fn deleting_an_original_deletes_its_copy() {
    let (stage, _manager) = leased(json!({})).await;
    make(&stage.compute, &configs(), Some("default"), config("c")).await;
    start_pod(&stage, &with("web", json!({"volumes": [{"name": "c", "configMap": {"name": "c"}}]}))).await;
    until(&stage.compute, &configs(), Some("default"), "c", |config| {
        config.is_some_and(|config| label(config, "synced-by-w1") == "true")
    })
    .await;
    stage.compute.delete(&configs(), Some("default"), "c", &json!({})).await.unwrap();
    until_gone(&stage.compute, &configs(), Some("default"), "c").await;
    until_gone(&stage.w1, &configs(), Some(MOUNT), &below("default", "c")).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_missing_or_taken_is_told_and_awaited() {
    let (stage, _manager) = leased(json!({})).await;
    let told = |text: &'static str| {
        let stage = &stage;
        async move {
            for _ in 0..100 {
                let events = stage.compute.list(&events(), Some("default"), "").await.unwrap().items;
                if events.iter().any(|event| {
                    event["reason"] == "FailedCreatePod" && event["message"].as_str().unwrap().contains(text)
                }) {
                    return;
                }
                stage.pass(1).await;
            }
            panic!("nobody said {text}");
        }
    };
    make_pod(&stage.compute, &with("web", json!({"volumes": [{"name": "c", "configMap": {"name": "c"}}]}))).await;
    told("ConfigMap default/c does not exist").await;
    make(&stage.compute, &configs(), Some("default"), config("c")).await;
    until_there(&stage.w1, &pods(), Some(MOUNT), &below("default", "web")).await;

    let mut stranger = secret(&below("default", "s"));
    stranger["metadata"]["namespace"] = MOUNT.into();
    make(&stage.w1, &secrets(), Some(MOUNT), stranger).await;
    make(&stage.compute, &secrets(), Some("default"), secret("s")).await;
    make_pod(&stage.compute, &with("web2", json!({"volumes": [{"name": "s", "secret": {"secretName": "s"}}]}))).await;
    told("not ours").await;

    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    make(&stage.compute, &claims(), Some("default"), claim).await;
    make_pod(
        &stage.compute,
        &with("web3", json!({"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]})),
    )
    .await;
    told("is not bound, current phase").await;
}

async fn bound_claim(stage: &Stage, source: Value) {
    let mut volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv-1"},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Delete"}});
    merge(&mut volume["spec"], &source);
    make(&stage.compute, &volumes(), None, volume).await;
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "volumeName": "pv-1"}});
    make(&stage.compute, &claims(), Some("default"), claim).await;
    patch(&stage.compute, &claims(), Some("default"), "data", "status", json!({"status": {"phase": "Bound"}})).await;
}

#[tokio::test(start_paused = true)]
async fn claims_bring_their_volume_and_its_secret() {
    let (stage, _manager) = leased(json!({})).await;
    let mut publish = secret("csi");
    publish["metadata"]["namespace"] = "kube-system".into();
    make(&stage.compute, &secrets(), Some("kube-system"), publish).await;
    bound_claim(&stage, json!({"csi": {"driver": "d", "volumeHandle": "h", "nodePublishSecretRef": {"name": "csi", "namespace": "kube-system"}}})).await;
    start_pod(
        &stage,
        &with("web", json!({"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]})),
    )
    .await;
    let claim = until_there(&stage.w1, &claims(), Some(MOUNT), &below("default", "data")).await;
    assert_eq!(claim["spec"]["volumeName"], below("", "pv-1"));
    let volume = until_there(&stage.w1, &volumes(), None, &below("", "pv-1")).await;
    assert_eq!(volume["spec"]["persistentVolumeReclaimPolicy"], "Retain");
    // Into the mount namespace; the original would write into the worker's kube-system.
    assert_eq!(
        volume["spec"]["csi"]["nodePublishSecretRef"],
        json!({"name": below("kube-system", "csi"), "namespace": MOUNT})
    );
    let copy = until_there(&stage.w1, &secrets(), Some(MOUNT), &below("kube-system", "csi")).await;
    assert_eq!(label(&copy, "used-by-pv"), "true");
    assert_eq!(label(&stage.compute.get(&secrets(), Some("kube-system"), "csi").await.unwrap(), "used-by-pv"), "true");
    stage.compute.delete(&pods(), Some("default"), "web", &json!({})).await.unwrap();
    until_gone(&stage.w1, &volumes(), None, &below("", "pv-1")).await;
    until_gone(&stage.w1, &secrets(), Some(MOUNT), &below("kube-system", "csi")).await;
    until(&stage.compute, &secrets(), Some("kube-system"), "csi", |secret| {
        secret.is_some_and(|secret| label(secret, "used-by-pv").is_empty())
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_stays_while_another_binding_uses_its_copy() {
    let (stage, _manager) = leased(json!({})).await;
    make_policy(&stage.w1, "p2", "second", json!({})).await;
    crate::corners::bind_again(&stage, json!({})).await;
    bound_claim(&stage, json!({"csi": {"driver": "d", "volumeHandle": "h"}})).await;
    let needs = json!({"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]});
    start_pod(&stage, &with("a", needs.clone())).await;
    let mut other = with("b", needs);
    other["spec"]["nodeName"] = "vnode-second-n1".into();
    start_pod(&stage, &other).await;
    let copies = [(claims(), Some(MOUNT), below("default", "data")), (volumes(), None, below("", "pv-1"))];
    let uids = async || {
        let mut out = Vec::new();
        for (gvr, namespace, name) in &copies {
            let copy = stage.w1.get(gvr, *namespace, name).await.unwrap();
            assert!(copy["metadata"]["deletionTimestamp"].is_null(), "{copy:#}");
            out.push(copy["metadata"]["uid"].clone());
        }
        out
    };
    let before = uids().await;
    kill(&stage.compute, "default", "a").await;
    let let_go = |claim: Option<&Value>| {
        claim.is_some_and(|claim| claim["metadata"]["finalizers"] == json!(["kubeocean.io/finalizer-second"]))
    };
    until(&stage.compute, &claims(), Some("default"), "data", let_go).await;
    until(&stage.compute, &volumes(), None, "pv-1", let_go).await;
    assert_eq!(uids().await, before, "what the first made, the second uses");
    crate::corners::until_going(&stage.w1, MOUNT, &below("default", "a")).await;
    stage.compute.delete(&bindings(), None, "w1", &json!({})).await.unwrap();
    until_gone(&stage.compute, &bindings(), None, "w1").await;
    assert_eq!(uids().await, before, "nor does it hold the first binding back");
    kill(&stage.compute, "default", "b").await;
    for (gvr, namespace, name) in &copies {
        until_gone(&stage.w1, gvr, *namespace, name).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_volume_made_earlier_that_names_a_secret_of_the_lessor_is_not_used() {
    let (stage, _manager) = leased(json!({})).await;
    let source = json!({"csi": {"driver": "d", "volumeHandle": "h", "nodePublishSecretRef": {"name": "csi", "namespace": "kube-system"}}});
    bound_claim(&stage, source.clone()).await;
    make_pod(
        &stage.compute,
        &with("web", json!({"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]})),
    )
    .await;
    // It is known to be needed, or it would be removed at once.
    stage.pass(5).await;
    let system = stage.compute.get(&namespaces(), None, "kube-system").await.unwrap();
    let mut earlier = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": below("", "pv-1"),
        "labels": {"kubeocean.io/managed-by": "kubeocean", "kubeocean.io/cluster-binding": "w1", "atoll.io/computing-cluster": system["metadata"]["uid"]},
        "annotations": {"kubeocean.io/virtual-name": "pv-1", "kubeocean.io/virtual-namespace": ""}},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}});
    merge(&mut earlier["spec"], &source);
    make(&stage.w1, &volumes(), None, earlier).await;
    let mut publish = secret("csi");
    publish["metadata"]["namespace"] = "kube-system".into();
    make(&stage.compute, &secrets(), Some("kube-system"), publish).await;
    stage.pass(120).await;
    assert!(stage.w1.list(&pods(), None, "").await.unwrap().items.is_empty());
    let told = stage.compute.list(&events(), Some("default"), "").await.unwrap().items;
    assert!(told.iter().any(|event| event["message"].as_str().unwrap().contains("names other Secrets")), "{told:#?}");
    stage.w1.delete(&volumes(), None, &below("", "pv-1"), &json!({})).await.unwrap();
    until_there(&stage.w1, &pods(), Some(MOUNT), &below("default", "web")).await;
}

#[tokio::test(start_paused = true)]
async fn a_volume_is_no_way_around_the_rule_on_paths_of_the_node() {
    let (stage, _manager) = leased(json!({})).await;
    bound_claim(&stage, json!({"hostPath": {"path": "/etc"}})).await;
    make_pod(
        &stage.compute,
        &with("web", json!({"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]})),
    )
    .await;
    stage.pass(60).await;
    assert!(stage.w1.list(&pods(), None, "").await.unwrap().items.is_empty());
    assert!(stage.w1.list(&volumes(), None, "").await.unwrap().items.is_empty());
}

#[tokio::test(start_paused = true)]
async fn tokens_are_those_of_the_computing_cluster_and_end_with_the_pod() {
    let (stage, _manager) = leased(json!({})).await;
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "sa", "namespace": "default"}});
    stage.compute.ensure(&atoll_meta::Gvr::new("", "v1", "serviceaccounts"), Some("default"), &account).await.unwrap();
    let volume = json!({"serviceAccountName": "sa", "volumes": [{"name": "kube-api-access-x", "projected": {"sources": [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}}, {"serviceAccountToken": {"path": "v", "audience": "vault"}}]}}]});
    let physical = start_pod(&stage, &with("web", volume)).await;
    let name = physical["spec"]["volumes"][0]["projected"]["sources"][0]["secret"]["name"].as_str().unwrap().to_owned();
    assert!(physical["spec"]["serviceAccountName"] != "sa", "no such account below");
    let secret = until_there(&stage.w1, &secrets(), Some(MOUNT), &name).await;
    assert_eq!((label(&secret, "service-account-token"), annotation(&secret, "service-account")), ("true", "sa"));
    let claims = |secret: &Value, key: &str| -> Value {
        let decode = |text: &str| base64::engine::general_purpose::STANDARD.decode(text).unwrap();
        let token = String::from_utf8(decode(secret["data"][key].as_str().unwrap())).unwrap();
        let middle = token.split('.').nth(1).unwrap().to_owned();
        serde_json::from_slice(&base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(middle).unwrap()).unwrap()
    };
    assert_eq!(claims(&secret, "token-1")["aud"], json!(["vault"]), "only for whom it was asked");
    assert_eq!(claims(&secret, "token")["kubernetes.io"]["pod"]["name"], "web");
    stage.w1.delete(&secrets(), Some(MOUNT), &name, &json!({})).await.unwrap();
    let secret = until_there(&stage.w1, &secrets(), Some(MOUNT), &name).await;
    assert_eq!(
        claims(&secret, "token")["kubernetes.io"]["pod"]["name"],
        "web",
        "one that somebody deletes is replaced"
    );
    stage.pass(1800).await;
    assert_eq!(
        stage.w1.get(&secrets(), Some(MOUNT), &name).await.unwrap()["metadata"]["resourceVersion"],
        secret["metadata"]["resourceVersion"]
    );
    stage.pass(1200).await;
    let renewed = stage.w1.get(&secrets(), Some(MOUNT), &name).await.unwrap();
    assert_ne!(renewed["data"]["token"], secret["data"]["token"], "renewed before it ends");
    stage.compute.delete(&pods(), Some("default"), "web", &json!({})).await.unwrap();
    until_gone(&stage.w1, &secrets(), Some(MOUNT), &name).await;
}

#[tokio::test(start_paused = true)]
async fn services_of_the_chosen_namespaces_are_there_below_and_no_others() {
    let (stage, _manager) = leased(json!({"serviceNamespaces": ["shop"]})).await;
    make_namespace(&stage.compute, "shop").await;
    let service = |namespace: &str| json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": namespace}, "spec": {"clusterIP": "None", "clusterIPs": ["None"], "selector": {"app": "web"}, "ports": [{"port": 80}]}});
    for namespace in ["shop", "default"] {
        make(&stage.compute, &services(), Some(namespace), service(namespace)).await;
    }
    let slice = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {"name": "web-1", "namespace": "shop", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4", "ports": [{"port": 80}], "endpoints": [{"addresses": ["10.2.0.7"], "conditions": {"ready": true}}]});
    make(&stage.compute, &slices(), Some("shop"), slice).await;
    let copy = until_there(&stage.w1, &services(), Some(MOUNT), &below("shop", "web")).await;
    assert!(copy["spec"]["selector"].is_null());
    let copy = until_there(&stage.w1, &slices(), Some(MOUNT), &below("shop", "web-1")).await;
    assert_eq!(
        (&copy["metadata"]["labels"]["kubernetes.io/service-name"], &copy["endpoints"][0]["addresses"]),
        (&json!(below("shop", "web")), &json!(["10.2.0.7"]))
    );
    patch(&stage.compute, &slices(), Some("shop"), "web-1", "", json!({"endpoints": [{"addresses": ["10.2.0.8"]}]}))
        .await;
    until(&stage.w1, &slices(), Some(MOUNT), &below("shop", "web-1"), |copy| {
        copy.is_some_and(|copy| copy["endpoints"][0]["addresses"][0] == "10.2.0.8")
    })
    .await;
    assert!(stage.w1.get_opt(&services(), Some(MOUNT), &below("default", "web")).await.unwrap().is_none());
    stage.compute.delete(&services(), Some("shop"), "web", &json!({})).await.unwrap();
    until_gone(&stage.w1, &services(), Some(MOUNT), &below("shop", "web")).await;
    patch(&stage.compute, &bindings(), None, "w1", "", json!({"spec": {"serviceNamespaces": null}})).await;
    until_gone(&stage.w1, &slices(), Some(MOUNT), &below("shop", "web-1")).await;
}
