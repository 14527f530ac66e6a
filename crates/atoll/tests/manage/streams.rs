//! What lasts ends with the rights it was opened with: watches, logs, terminals.

use http_body_util::Full;
use serde_json::json;

use crate::hub::{Hub, ended, read_until, until};

#[tokio::test(flavor = "multi_thread")]
async fn s21_watches_and_terminals_end_with_the_rights_they_were_opened_with() {
    let hub = Hub::start();
    let admin = Some(hub.token.as_str());
    let pods = "/instances/member1/api/v1/namespaces/default/pods";
    let pod = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}});
    assert_eq!(hub.rest(admin, "POST", pods, Some(pod)).await.0, 201);
    until(&hub, "the pod runs", async || {
        hub.rest(admin, "GET", &format!("{pods}/p"), None).await.1["status"]["phase"] == "Running"
    })
    .await;
    let (ann, bob) = (hub.account("ann"), hub.account("bob"));
    hub.grant("ann", "editor", "ann", "member1", "default").await;
    hub.grant("bob", "viewer", "bob", "member1", "default").await;
    for who in [&ann, &bob] {
        until(&hub, "the grants hold", async || hub.rest(Some(who), "GET", pods, None).await.0 == 200).await;
    }
    let exec = format!("{pods}/p/exec?command=sh&stdin=true&stdout=true&tty=true");
    let upgrade = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-protocol: v5.channel.k8s.io\r\n";

    // S11: who may see pods may not enter them.
    read_until(&mut hub.open(&bob, &exec, upgrade).await, "403 Forbidden").await;

    let mut terminal = hub.open(&ann, &exec, upgrade).await;
    read_until(&mut terminal, "101 Switching Protocols").await;
    let mut watch = hub.open(&ann, &format!("{pods}?watch=true&resourceVersion=0"), "connection: close\r\n").await;
    read_until(&mut watch, "\"ADDED\"").await;
    let mut search = hub.open(&bob, "/manage/v1alpha1/watch?kinds=Pod", "connection: close\r\n").await;
    read_until(&mut search, "\"SYNCED\"").await;
    let mut other = hub.open(&bob, &format!("{pods}?watch=true&resourceVersion=0"), "connection: close\r\n").await;
    read_until(&mut other, "\"ADDED\"").await;

    assert_eq!(hub.rest(admin, "DELETE", "/apis/atoll.io/v1alpha1/grants/ann", None).await.0, 200);
    ended(terminal).await;
    ended(watch).await;
    assert_eq!(hub.rest(Some(&ann), "GET", pods, None).await.0, 403);
    // Rights of others go on.
    let change = json!({"metadata": {"labels": {"still": "here"}}});
    let patch =
        hub.request(admin, "PATCH", &format!("{pods}/p")).header("content-type", "application/merge-patch+json");
    hub.send(patch.body(Full::new(change.to_string().into())).unwrap()).await;
    read_until(&mut other, "\"still\"").await;
    assert!(hub.atoll(&["account", "close", "bob"], "").0);
    ended(other).await;
    ended(search).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s11_logs_and_terminals_of_members_are_for_who_may_use_them_in_the_instance() {
    let hub = Hub::start();
    let admin = Some(hub.token.as_str());
    let pod = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}});
    let pods = "/instances/member1/api/v1/namespaces/default/pods";
    assert_eq!(hub.rest(admin, "POST", pods, Some(pod)).await.0, 201);
    let runs = async || hub.rest(admin, "GET", &format!("{pods}/p"), None).await.1["status"]["phase"] == "Running";
    until(&hub, "the pod runs", runs).await;
    let (ann, bob, eve) = (hub.account("ann"), hub.account("bob"), hub.account("eve"));
    hub.grant("ann", "editor", "ann", "fleet", "default").await;
    hub.grant("bob", "viewer", "bob", "fleet", "default").await;
    let maps = "/instances/fleet/api/v1/namespaces/default/configmaps";
    for who in [&ann, &bob] {
        until(&hub, "the grants hold", async || hub.rest(Some(who), "GET", maps, None).await.0 == 200).await;
    }
    let part =
        |name: &str| format!("/manage/v1alpha1/instances/fleet/clusters/member1/namespaces/default/pods/p/{name}");
    let exec = format!("{}?command=sh&stdin=true&stdout=true&tty=true", part("exec"));
    let upgrade = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-protocol: v5.channel.k8s.io\r\n";
    for (who, logs, terminal) in
        [(&ann, 200, "101 Switching"), (&bob, 200, "403 Forbidden"), (&eve, 403, "403 Forbidden")]
    {
        assert_eq!(hub.rest(Some(who), "GET", &part("log"), None).await.0, logs);
        let streamed = format!("{}:logs", part("log").trim_end_matches("/log"));
        assert_eq!(hub.rest(Some(who), "GET", &streamed, None).await.0, logs);
        read_until(&mut hub.open(who, &exec, upgrade).await, terminal).await;
    }
    read_until(&mut hub.open("wrong", &exec, upgrade).await, "401 Unauthorized").await;

    let mut terminal = hub.open(&ann, &exec, upgrade).await;
    read_until(&mut terminal, "101 Switching").await;
    let mut follow = hub.open(&ann, &format!("{}?follow=true", part("log")), "connection: close\r\n").await;
    read_until(&mut follow, "200 OK").await;
    assert_eq!(hub.rest(admin, "DELETE", "/apis/atoll.io/v1alpha1/grants/ann", None).await.0, 200);
    ended(terminal).await;
    ended(follow).await;
}
