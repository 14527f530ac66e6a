//! Many instances side by side: what one may use, what they share, what the hub sees of all of them.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;

use atoll_apiserver::{ApiService, Identity, Limits};
use atoll_background::Background;
use atoll_store::FeedItem;
use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};
use support::{TestHub, Who};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

const A: &str = "/instances/a/api/v1/namespaces/default/configmaps";
const B: &str = "/instances/b/api/v1/namespaces/default/configmaps";

async fn two() -> TestHub {
    let hub = TestHub::new().await;
    hub.instance("a").await;
    hub.instance("b").await;
    hub
}

fn limit(hub: &TestHub, change: impl FnOnce(&mut Limits)) {
    let instance = hub.hub.instance("a").unwrap();
    let mut limits = Limits::clone(&instance.limits());
    change(&mut limits);
    instance.set_limits(limits);
}

fn map(name: &str, size: usize) -> Value {
    json!({"metadata": {"name": name}, "data": {"x": "x".repeat(size)}})
}

fn usage(hub: &TestHub) -> (u64, u64) {
    hub.hub.engine().usage(hub.hub.instance("a").unwrap().id).unwrap()
}

#[tokio::test]
async fn an_instance_holds_no_more_objects_than_it_may() {
    let hub = two().await;
    let objects = usage(&hub).0;
    limit(&hub, |limits| limits.objects = objects + 1);
    hub.post(&Who::Master, A, map("one", 1)).await.expect(201);
    let refused = hub.post(&Who::Master, A, map("two", 1)).await;
    assert_eq!(refused.code, 403);
    let expected = format!("instance \"a\" has no room for it: it may hold {} objects", objects + 1);
    assert!(refused.message().ends_with(&expected), "{}", refused.message());
    hub.post(&Who::Master, B, map("two", 1)).await.expect(201);
    hub.call(&Who::Master, "PUT", &format!("{A}/one"), map("one", 9)).await.expect(200);
    hub.call(&Who::Master, "DELETE", &format!("{A}/one"), Value::Null).await.expect(200);
    hub.post(&Who::Master, A, map("two", 1)).await.expect(201);
}

#[tokio::test]
async fn an_instance_holds_no_more_bytes_than_it_may_and_can_always_shrink() {
    let hub = two().await;
    hub.post(&Who::Master, A, map("one", 50_000)).await.expect(201);
    let bytes = usage(&hub).1;
    limit(&hub, |limits| limits.bytes = bytes + 10_000);
    assert_eq!(hub.post(&Who::Master, A, map("two", 20_000)).await.code, 403);
    assert_eq!(hub.call(&Who::Master, "PUT", &format!("{A}/one"), map("one", 90_000)).await.code, 403);
    limit(&hub, |limits| limits.bytes = 1);
    hub.call(&Who::Master, "PUT", &format!("{A}/one"), map("one", 10)).await.expect(200);
    hub.call(&Who::Master, "DELETE", &format!("{A}/one"), Value::Null).await.expect(200);
    hub.post(&Who::Master, B, map("two", 20_000)).await.expect(201);
}

async fn watch(hub: &TestHub, base: &str) -> http::Response<atoll_apiserver::Body> {
    let mut request = Request::get(format!("{base}?watch=true")).body(String::new()).unwrap();
    request.extensions_mut().insert(Identity::master("x"));
    ApiService::new(hub.hub.clone()).oneshot(request).await.unwrap()
}

#[tokio::test]
async fn an_instance_has_no_more_watches_than_it_may() {
    let hub = two().await;
    limit(&hub, |limits| limits.watches = 2);
    let (one, two) = (watch(&hub, A).await, watch(&hub, A).await);
    assert_eq!((one.status().as_u16(), two.status().as_u16()), (200, 200));
    let refused = watch(&hub, A).await;
    assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (429, &"1".parse().unwrap()));
    assert_eq!(watch(&hub, B).await.status(), 200);
    drop(one);
    assert_eq!(watch(&hub, A).await.status(), 200, "a watch that ended makes room");
}

/// A request whose body never comes: it is in flight until it is dropped.
fn stuck(hub: &TestHub, base: &str) -> impl Future<Output = http::Response<atoll_apiserver::Body>> + use<> {
    let never = futures::stream::pending::<Result<http_body::Frame<Bytes>, std::io::Error>>();
    let mut request = Request::post(base).body(http_body_util::StreamBody::new(never)).unwrap();
    request.extensions_mut().insert(Identity::master("x"));
    let service = ApiService::new(hub.hub.clone());
    async move { service.oneshot(request).await.unwrap() }
}

#[tokio::test]
async fn requests_of_one_instance_leave_room_for_those_of_others() {
    let hub = two().await;
    limit(&hub, |limits| limits.in_flight = 5);
    let mut waiting: Vec<_> = (0..5).map(|_| Box::pin(stuck(&hub, A))).collect();
    for request in &mut waiting {
        assert!(futures::poll!(request).is_pending());
    }
    let refused = hub.get(&Who::Master, A).await;
    assert_eq!(refused.code, 429);
    assert_eq!(refused.message(), "instance \"a\" has 5 requests in flight, its limit");
    hub.get(&Who::Master, B).await.expect(200);
    drop(waiting);
    hub.get(&Who::Master, A).await.expect(200);
}

#[tokio::test]
async fn a_hub_that_is_full_still_serves_a_few_requests_of_every_instance() {
    let hub = two().await;
    limit(&hub, |limits| limits.in_flight = 10_000);
    // As many as the whole hub takes, and the few that every instance may have beyond that.
    let mut waiting = Vec::new();
    let refused = loop {
        let mut next = Box::pin(stuck(&hub, A));
        match futures::poll!(&mut next) {
            std::task::Poll::Pending => waiting.push(next),
            std::task::Poll::Ready(answer) => break answer,
        }
    };
    assert_eq!((refused.status().as_u16(), waiting.len()), (429, 600));
    hub.get(&Who::Master, B).await.expect(200);
    assert_eq!(hub.get(&Who::Master, A).await.code, 429);
}

#[tokio::test]
async fn an_instance_keeps_the_pace_it_was_given() {
    let hub = two().await;
    limit(&hub, |limits| limits.requests_per_second = Some(5));
    for _ in 0..5 {
        hub.get(&Who::Master, A).await.expect(200);
    }
    let refused = hub.get(&Who::Master, A).await;
    assert_eq!(refused.message(), "instance \"a\" makes more than 5 requests per second, its limit");
    hub.get(&Who::Master, B).await.expect(200);
    hub.pass(1);
    hub.get(&Who::Master, A).await.expect(200);
}

#[tokio::test]
async fn instances_with_equal_definitions_share_what_was_made_of_them() {
    let hub = TestHub::new().await;
    let definition = json!({"metadata": {"name": "things.example.com"}, "spec": {
        "group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
            "type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}}}]}});
    let before = hub.hub.schemas_in_use();
    for number in 0..10 {
        let name = format!("i{number}");
        hub.instance(&name).await;
        let path = format!("/instances/{name}/apis/apiextensions.k8s.io/v1/customresourcedefinitions");
        hub.post(&Who::Master, &path, definition.clone()).await.expect(201);
    }
    assert_eq!(hub.hub.schemas_in_use(), before + 1);
    for number in 0..10 {
        hub.hub.drop_instance(&format!("i{number}")).await.unwrap();
    }
    assert_eq!(hub.hub.schemas_in_use(), before, "what nobody uses is not kept");
}

#[tokio::test]
async fn the_hub_sees_the_changes_of_all_instances_in_one_feed() {
    let hub = two().await;
    let mut feed = hub.hub.engine().feed();
    hub.post(&Who::Master, A, map("one", 1)).await.expect(201);
    hub.post(&Who::Master, B, map("two", 1)).await.expect(201);
    let made = hub.instance("c").await;
    hub.hub.drop_instance("c").await.unwrap();
    let (a, b) = (hub.hub.instance("a").unwrap().id, hub.hub.instance("b").unwrap().id);
    let mut seen = Vec::new();
    while let Ok(item) = feed.try_recv() {
        match item {
            FeedItem::Changed(id, event) if id == a || id == b => seen.push((id, event.key.to_string())),
            FeedItem::Changed(..) => {}
            FeedItem::Created(id, name) | FeedItem::Dropped(id, name) => seen.push((id, name.to_string())),
        }
    }
    let expected = [(a, "configmaps./default/one"), (b, "configmaps./default/two"), (made.id, "c"), (made.id, "c")];
    assert_eq!(seen, expected.map(|(id, text)| (id, text.to_owned())));
}

#[tokio::test]
async fn thousands_of_instances_are_found_by_name_and_number() {
    let hub = TestHub::new().await;
    let made: Vec<Arc<_>> = futures::future::join_all((0..50).map(|n| {
        let hub = hub.hub.clone();
        async move { hub.create_instance(&format!("i{n}")).await.unwrap() }
    }))
    .await;
    for instance in &made {
        assert_eq!(hub.hub.instance_by_id(instance.id).unwrap().name, instance.name);
    }
    hub.hub.drop_instance("i7").await.unwrap();
    assert!(hub.hub.instance_by_id(made[7].id).is_none() && hub.hub.instance("i7").is_none());
}

/// The series of the metrics, without their values.
async fn series(hub: &TestHub) -> BTreeSet<String> {
    let text = hub.get(&Who::Master, "/metrics").await.text;
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| line.rsplit_once(' ').unwrap().0.to_owned()).collect()
}

/// Waits until the newest of some instances have what namespaces have, and nothing is left to do.
async fn settled(hub: &TestHub, background: &Background) {
    for instance in hub.hub.instances() {
        let key = "configmaps./kube-node-lease/kube-root-ca.crt";
        let mut changes = hub.hub.engine().feed();
        while hub.hub.read(&instance, key).await.unwrap().is_none() {
            // One that comes too late has missed changes, which is also a reason to look again.
            let _ = changes.recv().await;
        }
    }
    background.rest().await;
}

/// What users do in an instance, to built-in kinds, kinds of their own and kinds that do not exist.
async fn use_it(hub: &TestHub, name: &str) {
    let base = format!("/instances/{name}");
    let maps = format!("{base}/api/v1/namespaces/default/configmaps");
    hub.post(&Who::Master, &maps, map("m", 1)).await.expect(201);
    hub.post(&Who::Master, &maps, map("m", 1)).await.expect(409);
    hub.get(&Who::User("jane"), &maps).await.expect(403);
    let group = format!("{name}.example.com");
    let definition = json!({"metadata": {"name": format!("things.{group}")}, "spec": {
        "group": group, "scope": "Cluster", "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
        "versions": [{"name": "v1", "served": true, "storage": true,
                      "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
    let definitions = format!("{base}/apis/apiextensions.k8s.io/v1/customresourcedefinitions");
    hub.post(&Who::Master, &definitions, definition).await.expect(201);
    let things = format!("{base}/apis/{group}/v1/things");
    let thing = json!({"apiVersion": format!("{group}/v1"), "kind": "Thing", "metadata": {"name": "t"}});
    hub.post(&Who::Master, &things, thing).await.expect(201);
    hub.get(&Who::Master, &format!("{base}/apis/{group}/v1/no-{name}")).await.expect(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_series_of_metrics_do_not_grow_with_instances() {
    let hub = TestHub::new().await;
    let stop = CancellationToken::new();
    let background = Background::start(hub.hub.clone(), "authority", stop.clone());
    hub.instance("first").await;
    use_it(&hub, "first").await;
    settled(&hub, &background).await;
    series(&hub).await; // the first look makes the series of looking
    let before = series(&hub).await;
    let mut tasks = tokio::task::JoinSet::new();
    for lane in 0..4 {
        let hub = hub.hub.clone();
        tasks.spawn(async move {
            for number in 0..50 {
                hub.create_instance(&format!("i{lane}-{number}")).await.unwrap();
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    for number in 0..20 {
        use_it(&hub, &format!("i0-{number}")).await;
    }
    settled(&hub, &background).await;
    assert_eq!(series(&hub).await, before);
    stop.cancel();
}
