//! A proxier in a process of its own: it answers for nodes that somebody else keeps.

use std::collections::BTreeSet;
use std::sync::Arc;

use atoll_runtime::Endpoint;
use atoll_vnode::{Manager, Share};
use serde_json::{Value, json};

use crate::apart::{PROXIER, SYNCER, SYSTEM, manage, proxier_pod, syncer, way_of};
use crate::kubelet::{Play, listening, refused_everywhere};
use crate::rights::{Recorder, Seen};
use crate::stage::*;

/// Manager, syncer and proxier apart, each with its own account; the proxier's requests are noted.
async fn play(ip: &str) -> (Play, Seen, [Manager; 3]) {
    let mut play = Play::open(ip).await;
    let stage = &play.stage;
    let published = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "extension-apiserver-authentication", "namespace": "kube-system"}, "data": {"client-ca-file": play.vouches()}});
    let known = stage.compute.get_opt(&configs(), Some("kube-system"), "extension-apiserver-authentication").await;
    match known.unwrap() {
        None => drop(stage.compute.create(&configs(), Some("kube-system"), &published).await.unwrap()),
        Some(_) => {
            let data = json!({"data": published["data"]});
            patch(&stage.compute, &configs(), Some("kube-system"), "extension-apiserver-authentication", "", data)
                .await;
        }
    }
    let manager = manage(stage).await;
    let (syncer, _) = syncer(stage, &stage.stop.child_token()).await;
    let seen = Seen::default();
    let recorder = Recorder { through: way_of(stage, PROXIER), seen: seen.clone() };
    let mut options = stage.options();
    options.computing = Endpoint::new("compute", Arc::new(recorder), "atoll-vnode");
    options.share = Share::Proxier("w1".to_owned());
    let mut proxier = play.proxier();
    // As published by the computing cluster.
    proxier.clients = None;
    options.proxier = Some(proxier);
    let proxier = Manager::start(options, stage.stop.child_token()).await;
    play.begin(&manager).await;
    proxier_pod(&play.stage, "p1", ip, true).await;
    play.arrive().await;
    (play, seen, [manager, syncer, proxier])
}

/// What was used is what the roles of a proxier allow.
fn assert_used_is_allowed(seen: &Seen) {
    let roles = atoll_vnode::proxier_roles(PROXIER, "w1", (SYSTEM, "w1"));
    let rules = roles.iter().flat_map(|role| role["rules"].as_array().unwrap());
    let allowed: BTreeSet<(String, String)> = rules
        .flat_map(|rule| {
            let text = |value: &Value| value[0].as_str().unwrap().to_owned();
            let resource = format!("{}.{}", text(&rule["resources"]), text(&rule["apiGroups"]));
            let verbs = rule["verbs"].as_array().unwrap().iter();
            verbs.map(|verb| (verb.as_str().unwrap().to_owned(), resource.clone())).collect::<Vec<_>>()
        })
        .collect();
    let used: BTreeSet<(String, String)> =
        seen.lock().iter().map(|(verb, resource, _)| (verb.clone(), resource.clone())).collect();
    assert_eq!(used, allowed, "what is used is what is allowed");
}

#[tokio::test]
async fn a_proxier_of_its_own_answers_with_no_more_rights_than_it_needs() {
    let (mut play, seen, managers) = play("127.0.0.81").await;
    let is_open = async || listening(play.address.ip()).contains(&play.address);
    until_so("the door of the node opens", is_open).await;
    let (admin, name) = (play.admin(), below("default", "web"));
    // Its own view of the worker may be a moment behind.
    let answers = async || play.get("/containerLogs/default/web/c", &admin).await.0 == 200;
    until_so("the pod is answered for", answers).await;
    let (code, text) = play.get("/containerLogs/default/web/c?tailLines=3", &admin).await;
    assert_eq!((code, text.as_str()), (200, format!("w1 {name} container=c&tailLines=3\n").as_str()));
    assert!(play.get("/pods", &admin).await.1.contains("\"name\":\"web\""));
    assert_eq!(play.send("GET", "/exec/default/web/c?output=1&command=id", &admin, true).await.status(), 101);
    assert_eq!(play.get("/containerLogs/default/absent/c", &admin).await.0, 404);

    refused_everywhere(&play).await;
    let node = play.address.port();
    let mut doors: Vec<u16> = listening(play.address.ip()).iter().map(|door| door.port()).collect();
    doors.sort_unstable();
    assert_eq!(doors, [10250, node], "one for the node, one for the Service");
    play.address.set_port(10250);
    refused_everywhere(&play).await;
    assert_eq!(play.get("/containerLogs/default/web/c", &admin).await.0, 200);
    assert_eq!(play.get("/pods", &admin).await.0, 404, "of which node?");

    assert_used_is_allowed(&seen);
    let way = way_of(&play.stage, PROXIER);
    assert_eq!(way.get(&secrets(), Some("default"), "other").await.unwrap_err().code, 403);
    assert_eq!(way.list(&secrets(), Some(SYSTEM), "").await.unwrap_err().code, 403);
    let reviews = atoll_meta::Gvr::new("authentication.k8s.io", "v1", "tokenreviews");
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "x"}});
    let asked = way_of(&play.stage, SYNCER).create(&reviews, None, &review).await;
    assert_eq!(asked.unwrap_err().code, 403, "a syncer asks nothing about callers");

    play.address.set_port(node);
    play.stage.w1.delete(&policies(), None, "p1", &json!({})).await.unwrap();
    until(&play.stage.w1, &pods(), Some(MOUNT), &name, |pod| {
        pod.is_none_or(|pod| pod["metadata"]["deletionTimestamp"].is_string())
    })
    .await;
    kill(&play.stage.w1, MOUNT, &name).await;
    until_gone(&play.stage.compute, &nodes(), None, "vnode-w1-n1").await;
    let is_closed = async || !listening(play.address.ip()).contains(&play.address);
    until_so("the door of a node that is gone closes", is_closed).await;
    drop(managers);
}
