//! What callers see while the store cannot write.

use std::sync::atomic::Ordering;

use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use crate::away::Away;
use crate::metrics::value;
use crate::support::{TestHub, Who};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

async fn names(hub: &TestHub, query: &str) -> Vec<String> {
    let list = hub.get(&Who::Master, &format!("{MAPS}{query}")).await.expect(200);
    list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap().into()).collect()
}

#[tokio::test]
async fn writes_fail_clearly_reads_of_the_known_state_go_on_and_service_resumes() {
    let (engine, away) = Away::new();
    let hub = TestHub::over(engine).await;
    hub.post(&Who::Master, MAPS, map("a")).await.expect(201);
    hub.grant("", "reader", "jane", json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}])).await;
    hub.get(&Who::User("jane"), &format!("{MAPS}/a")).await.expect(200);
    let watch = hub.watch(&format!("{MAPS}?watch=true&resourceVersion=0&timeoutSeconds=30")).await;
    assert_eq!(value(&hub, "atoll_store_writable").await, 1.0);

    away.store(true, Ordering::SeqCst);
    for (verb, path, body) in [
        ("POST", MAPS.to_owned(), map("b")),
        ("PUT", format!("{MAPS}/a"), json!({"metadata": {"name": "a"}, "data": {"x": "y"}})),
        ("PATCH", format!("{MAPS}/a"), json!({"data": {"x": "y"}})),
        ("DELETE", format!("{MAPS}/a"), Value::Null),
    ] {
        let refused = hub.call(&Who::Master, verb, &path, body).await;
        assert_eq!((refused.code, &refused.headers["retry-after"]), (503, &"1".parse().unwrap()), "{verb}");
        assert!(refused.message().contains("the disk is full"), "{verb}: {}", refused.message());
        assert_eq!((&refused.body["kind"], &refused.body["reason"]), (&json!("Status"), &json!("ServiceUnavailable")));
    }
    assert_eq!(value(&hub, "atoll_store_writable").await, 0.0);
    hub.get(&Who::User("jane"), &format!("{MAPS}/a?resourceVersion=0")).await.expect(200);
    assert_eq!(hub.get(&Who::Master, &format!("{MAPS}/none?resourceVersion=0")).await.code, 404);
    assert_eq!(names(&hub, "?resourceVersion=0").await, ["a"]);
    assert_eq!(names(&hub, "?resourceVersion=1&resourceVersionMatch=NotOlderThan&limit=5").await, ["a"]);
    assert_eq!(hub.get(&Who::Master, MAPS).await.code, 503, "nobody knows whether this is the newest state");
    assert_eq!(hub.watch(&format!("{MAPS}?watch=true&resourceVersion=0")).await.status(), 200);

    away.store(false, Ordering::SeqCst);
    hub.post(&Who::Master, MAPS, map("b")).await.expect(201);
    assert_eq!(value(&hub, "atoll_store_writable").await, 1.0);
    assert_eq!(names(&hub, "").await, ["a", "b"]);
    let mut stream = watch.into_body();
    for wanted in ["a", "b"] {
        let line = stream.frame().await.unwrap().map_err(|_| "cut").unwrap().into_data().unwrap();
        let event: Value = serde_json::from_slice(&line).unwrap();
        assert_eq!((&event["type"], &event["object"]["metadata"]["name"]), (&json!("ADDED"), &json!(wanted)));
    }
}
