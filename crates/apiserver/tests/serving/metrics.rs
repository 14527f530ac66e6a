//! `/metrics`: what it tells, and whom.

use serde_json::{Value, json};

use crate::support::{TestHub, Who};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// All lines, as an administrator of the hub reads them.
pub async fn text(hub: &TestHub) -> String {
    let answer = hub.get(&Who::Master, "/metrics").await;
    assert_eq!(answer.code, 200);
    assert!(answer.headers["content-type"].to_str().unwrap().starts_with("application/openmetrics-text"));
    answer.text
}

/// The value of a series, by its name and labels as they are written; 0 while there is none.
pub async fn value(hub: &TestHub, series: &str) -> f64 {
    let text = text(hub).await;
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.map_or(0.0, |value| value.parse().unwrap())
}

#[tokio::test]
async fn requests_instances_and_the_store_are_counted() {
    let hub = TestHub::new().await;
    let counted = |verb: &str, code: u16| {
        format!(
            "apiserver_request_total{{verb=\"{verb}\",group=\"\",version=\"v1\",resource=\"configmaps\",code=\"{code}\"}}"
        )
    };
    let before = value(&hub, "apiserver_request_duration_seconds_count{verb=\"POST\"}").await;
    hub.post(&Who::Master, MAPS, json!({"metadata": {"name": "a"}})).await.expect(201);
    assert_eq!(hub.post(&Who::Master, MAPS, json!({"metadata": {"name": "a"}})).await.code, 409);
    hub.get(&Who::Master, &format!("{MAPS}/a")).await.expect(200);
    hub.get(&Who::Master, MAPS).await.expect(200);
    for (verb, code) in [("POST", 201), ("POST", 409), ("GET", 200), ("LIST", 200)] {
        assert_eq!(value(&hub, &counted(verb, code)).await, 1.0, "{verb} {code}");
    }
    assert_eq!(value(&hub, "apiserver_request_duration_seconds_count{verb=\"POST\"}").await, before + 2.0);
    assert_eq!(value(&hub, "atoll_instances").await, 1.0);
    hub.instance("a").await;
    assert_eq!(value(&hub, "atoll_instances").await, 2.0);
    assert_eq!(value(&hub, "atoll_store_writable").await, 1.0);
    assert!(value(&hub, "process_resident_memory_bytes").await > 0.0);
    let watch = hub.watch(&format!("{MAPS}?watch=true")).await;
    assert_eq!(value(&hub, "apiserver_longrunning_requests").await, 1.0);
    drop(watch);
    assert_eq!(value(&hub, "apiserver_longrunning_requests").await, 0.0);
    let text = text(&hub).await;
    assert!(text.ends_with("# EOF\n"));
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, number) = line.rsplit_once(' ').unwrap();
        let family = name.split('{').next().unwrap();
        let known = ["_total", "_bucket", "_sum", "_count", ""].iter().filter_map(|end| family.strip_suffix(end));
        assert!(number.parse::<f64>().is_ok(), "{line}");
        assert!(known.into_iter().any(|name| text.contains(&format!("# TYPE {name} "))), "no type of {line}");
    }
}

#[tokio::test]
async fn the_number_of_series_does_not_grow_with_what_callers_make_up() {
    let hub = TestHub::new().await;
    let series = async || text(&hub).await.lines().filter(|line| line.starts_with("apiserver_request_total")).count();
    hub.get(&Who::Master, "/apis/made-up.example.com/v1/things").await;
    hub.get(&Who::Master, "/metrics").await;
    let before = series().await;
    for number in 0..20 {
        hub.instance(&format!("i{number}")).await;
        hub.get(&Who::Master, &format!("/instances/i{number}/apis/made-up-{number}.example.com/v1/things")).await;
    }
    assert_eq!(series().await, before);
}

#[tokio::test]
async fn only_those_who_watch_over_the_hub_may_read_them() {
    let hub = TestHub::new().await;
    hub.instance("a").await;
    hub.bind("", "system:monitoring", "prober").await;
    hub.bind("/instances/a", "cluster-admin", "owner").await;
    for (who, path, code) in [
        (Who::Nobody, "/metrics", 403),
        (Who::Token("wrong".into()), "/metrics", 401),
        (Who::User("jane"), "/metrics", 403),
        (Who::User("owner"), "/metrics", 403),
        (Who::User("prober"), "/metrics", 200),
        (Who::Master, "/metrics", 200),
        // They are those of the whole hub: an instance has none, whoever asks.
        (Who::User("owner"), "/instances/a/metrics", 404),
        (Who::Master, "/instances/a/metrics", 404),
    ] {
        let answer = hub.call(&who, "GET", path, Value::Null).await;
        assert_eq!(answer.code, code, "{path}: {}", answer.text);
        assert!(code == 200 || !answer.text.contains("atoll_instances"), "{path}");
    }
}
