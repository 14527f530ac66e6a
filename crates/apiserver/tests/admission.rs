//! What writes meet before they are stored: defaults, bounds, quotas.
#![allow(clippy::unwrap_used)]

mod support;

use atoll_apiserver::Features;
use serde_json::{Value, json};
use support::{Answer, TestHub, Who};

const NS: &str = "/api/v1/namespaces/default";

fn pod(name: &str, resources: Value) -> Value {
    json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]}})
}

async fn make(hub: &TestHub, what: &str, object: Value) -> Answer {
    hub.post(&Who::Master, &format!("{NS}/{what}"), object).await
}

async fn quota(hub: &TestHub, name: &str, hard: Value) -> Value {
    make(hub, "resourcequotas", json!({"metadata": {"name": name}, "spec": {"hard": hard}})).await.expect(201)
}

async fn used(hub: &TestHub, name: &str) -> Value {
    hub.get(&Who::Master, &format!("{NS}/resourcequotas/{name}")).await.expect(200)["status"]["used"].clone()
}

#[tokio::test]
async fn quotas_are_charged_with_what_is_made_and_refuse_the_rest() {
    let hub = TestHub::new().await;
    make(&hub, "configmaps", json!({"metadata": {"name": "before"}})).await.expect(201);
    let made = quota(
        &hub,
        "q",
        json!({"configmaps": "3", "count/configmaps": "10", "services.nodeports": "1", "count/widgets.x.io": "1"}),
    )
    .await;
    assert_eq!(made["status"]["hard"], made["spec"]["hard"]);
    assert_eq!(made["status"]["used"]["configmaps"], "1");
    for name in ["a", "b"] {
        make(&hub, "configmaps", json!({"metadata": {"name": name}})).await.expect(201);
    }
    assert_eq!(used(&hub, "q").await["configmaps"], "3");
    let refused = make(&hub, "configmaps", json!({"metadata": {"name": "c"}})).await;
    assert_eq!(refused.code, 403);
    assert_eq!(
        refused.message(),
        "configmaps \"c\" is forbidden: exceeded quota: q, requested: configmaps=1, used: configmaps=3, limited: configmaps=3"
    );
    assert_eq!(
        hub.post(&Who::Master, &format!("{NS}/configmaps?dryRun=All"), json!({"metadata": {"name": "c"}})).await.code,
        403
    );
    make(&hub, "secrets", json!({"metadata": {"name": "free"}})).await.expect(201);
    hub.call(&Who::Master, "DELETE", &format!("{NS}/configmaps/a"), Value::Null).await.expect(200);
    make(&hub, "configmaps", json!({"metadata": {"name": "c"}})).await.expect(201);
    assert_eq!(used(&hub, "q").await["configmaps"], "3");
    hub.call(&Who::Master, "DELETE", &format!("{NS}/configmaps/b"), Value::Null).await.expect(200);
    atoll_apiserver::recount(&hub.hub, &hub.hub.root(), "default").await.unwrap();
    assert_eq!(used(&hub, "q").await["configmaps"], "2");
}

#[tokio::test]
async fn a_quota_is_also_kept_by_updates() {
    let hub = TestHub::new().await;
    quota(&hub, "q", json!({"services.nodeports": "1", "services": "5"})).await;
    let service = |kind: &str| json!({"metadata": {"name": "s"}, "spec": {"type": kind, "ports": [{"port": 1, "name": "a"}, {"port": 2, "name": "b"}]}});
    make(&hub, "services", service("ClusterIP")).await.expect(201);
    let refused =
        hub.call(&Who::Master, "PATCH", &format!("{NS}/services/s"), json!({"spec": {"type": "NodePort"}})).await;
    assert_eq!(refused.code, 403, "{}", refused.text);
    assert!(refused.message().contains(
        "exceeded quota: q, requested: services.nodeports=2, used: services.nodeports=0, limited: services.nodeports=1"
    ));
    hub.call(&Who::Master, "PATCH", &format!("{NS}/services/s"), json!({"metadata": {"labels": {"a": "b"}}}))
        .await
        .expect(200);
    assert_eq!(used(&hub, "q").await["services"], "2", "with the one that leads to the server");
}

#[tokio::test]
async fn quotas_of_compute_demand_that_containers_say_what_they_want() {
    let hub = TestHub::new().await;
    quota(&hub, "q", json!({"requests.cpu": "2", "limits.memory": "1Gi", "pods": "5"})).await;
    let refused = make(&hub, "pods", pod("silent", json!({}))).await;
    assert!(
        refused.message().ends_with("failed quota: q: must specify limits.memory for: c; requests.cpu for: c"),
        "{}",
        refused.text
    );
    let fits = json!({"requests": {"cpu": "1500m"}, "limits": {"memory": "512Mi"}});
    make(&hub, "pods", pod("one", fits.clone())).await.expect(201);
    assert_eq!(used(&hub, "q").await, json!({"requests.cpu": "1500m", "limits.memory": "512Mi", "pods": "1"}));
    let refused = make(&hub, "pods", pod("two", fits)).await;
    assert!(
        refused.message().ends_with(
            "exceeded quota: q, requested: requests.cpu=1500m, used: requests.cpu=1500m, limited: requests.cpu=2"
        ),
        "{}",
        refused.text
    );
}

#[tokio::test]
async fn concurrent_requests_never_overdraw_a_quota() {
    let hub = std::sync::Arc::new(TestHub::new().await);
    quota(&hub, "q", json!({"configmaps": "10"})).await;
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..40 {
        let hub = hub.clone();
        tasks.spawn(
            async move { make(&hub, "configmaps", json!({"metadata": {"name": format!("c{number}")}})).await.code },
        );
    }
    let codes = tasks.join_all().await;
    assert_eq!(codes.iter().filter(|code| **code == 201).count(), 10);
    assert_eq!(codes.iter().filter(|code| **code == 403).count(), 30);
    assert_eq!(used(&hub, "q").await["configmaps"], "10");
}

#[tokio::test]
async fn limit_ranges_fill_in_and_bound() {
    let hub = TestHub::new().await;
    let range = json!({"metadata": {"name": "l"}, "spec": {"limits": [
        {"type": "Container", "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "100m"}, "max": {"cpu": "1"}, "min": {"cpu": "50m"}},
        {"type": "Pod", "max": {"memory": "1Gi"}},
        {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}},
    ]}});
    make(&hub, "limitranges", range).await.expect(201);
    let memory = |size: &str| json!({"limits": {"memory": size}, "requests": {"memory": size}});
    let made = make(&hub, "pods", pod("a", memory("1Gi"))).await.expect(201);
    assert_eq!(made["spec"]["containers"][0]["resources"]["requests"], json!({"cpu": "100m", "memory": "1Gi"}));
    assert_eq!(
        made["metadata"]["annotations"]["kubernetes.io/limit-ranger"],
        "LimitRanger plugin set: cpu request for container c; cpu limit for container c"
    );
    let mut large = memory("2Gi");
    large["limits"]["cpu"] = "2".into();
    let refused = make(&hub, "pods", pod("b", large)).await;
    assert_eq!(
        refused.message(),
        "pods \"b\" is forbidden: [maximum cpu usage per Container is 1, but limit is 2, maximum memory usage per Pod is 1Gi, but limit is 2Gi]"
    );
    let claim = |size: &str| json!({"metadata": {"name": "v"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}});
    assert_eq!(make(&hub, "persistentvolumeclaims", claim("2Gi")).await.code, 403);
    make(&hub, "persistentvolumeclaims", claim("1Gi")).await.expect(201);
}

#[tokio::test]
async fn pods_get_priority_and_tolerations_and_in_members_an_account() {
    let hub = TestHub::new().await;
    let made = make(&hub, "pods", pod("a", json!({}))).await.expect(201);
    assert_eq!(made["spec"]["priority"], 0);
    assert_eq!(made["spec"]["preemptionPolicy"], "PreemptLowerPriority");
    assert_eq!(made["spec"]["tolerations"].as_array().unwrap().len(), 2);
    assert_eq!(made["spec"]["volumes"], Value::Null);
    let mut critical = pod("b", json!({}));
    critical["spec"]["priorityClassName"] = "system-node-critical".into();
    assert_eq!(make(&hub, "pods", critical.clone()).await.expect(201)["spec"]["priority"], 2_000_001_000);
    critical["metadata"]["name"] = "c".into();
    critical["spec"]["priority"] = 7.into();
    assert_eq!(make(&hub, "pods", critical.clone()).await.code, 403);
    critical["spec"]["priorityClassName"] = "none".into();
    let refused = make(&hub, "pods", critical).await;
    assert_eq!(refused.message(), "pods \"c\" is forbidden: no PriorityClass with name none was found");
    let classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
    let class = |name: &str| json!({"metadata": {"name": name}, "value": 5, "globalDefault": true});
    hub.post(&Who::Master, classes, class("one")).await.expect(201);
    assert_eq!(hub.post(&Who::Master, classes, class("two")).await.code, 403);
    hub.hub.root().set_features(Features::member());
    let refused = make(&hub, "pods", pod("d", json!({}))).await;
    assert_eq!(
        refused.message(),
        "pods \"d\" is forbidden: error looking up service account default/default: serviceaccount \"default\" not found"
    );
    make(&hub, "serviceaccounts", json!({"metadata": {"name": "default"}})).await.expect(201);
    let made = make(&hub, "pods", pod("d", json!({}))).await.expect(201);
    assert_eq!(made["spec"]["serviceAccountName"], "default");
    assert_eq!(made["spec"]["priority"], 5);
    assert_eq!(
        made["spec"]["containers"][0]["volumeMounts"][0]["mountPath"],
        "/var/run/secrets/kubernetes.io/serviceaccount"
    );
    assert!(made["spec"]["volumes"][0]["name"].as_str().unwrap().starts_with("kube-api-access-"));
}

#[tokio::test]
async fn pods_get_what_their_runtime_class_says_and_need_one_that_exists() {
    let hub = TestHub::new().await;
    let class = json!({"metadata": {"name": "small"}, "handler": "h", "overhead": {"podFixed": {"cpu": "10m"}},
        "scheduling": {"nodeSelector": {"runtime": "small"}, "tolerations": [{"key": "t", "operator": "Exists"}]}});
    hub.post(&Who::Master, "/apis/node.k8s.io/v1/runtimeclasses", class).await.expect(201);
    let of = |name: &str, more: Value| {
        let mut pod = pod(name, json!({}));
        for (field, value) in more.as_object().unwrap() {
            pod["spec"][field] = value.clone();
        }
        pod
    };
    let made = make(&hub, "pods", of("fits", json!({"runtimeClassName": "small"}))).await.expect(201);
    assert_eq!(made["spec"]["overhead"], json!({"cpu": "10m"}));
    assert_eq!(made["spec"]["nodeSelector"], json!({"runtime": "small"}));
    assert_eq!(made["spec"]["tolerations"][0]["key"], "t");
    let table = [
        (json!({"runtimeClassName": "none"}), "RuntimeClass \"none\" not found"),
        (json!({"overhead": {"cpu": "1"}}), "Pod Overhead set without corresponding RuntimeClass defined Overhead"),
        (
            json!({"runtimeClassName": "small", "overhead": {"cpu": "1"}}),
            "Pod's Overhead doesn't match RuntimeClass's defined Overhead",
        ),
        (
            json!({"runtimeClassName": "small", "nodeSelector": {"runtime": "big"}}),
            "conflict: runtimeClass.scheduling.nodeSelector[runtime] = small; pod.spec.nodeSelector[runtime] = big",
        ),
    ];
    for (more, why) in table {
        let refused = make(&hub, "pods", of("refused", more)).await;
        assert_eq!(refused.code, 403, "{}", refused.text);
        assert_eq!(refused.message(), format!("pods \"refused\" is forbidden: pod rejected: {why}"));
    }
}

/// A few hundred bytes that would unfold to ten to the ten.
fn alias_bomb() -> String {
    let mut text = format!("a0: &a0 [{}]\n", ["x"; 10].join(","));
    for level in 1..10 {
        let part = vec![format!("*a{}", level - 1); 10].join(",");
        text.push_str(&format!("a{level}: &a{level} [{part}]\n"));
    }
    text
}

#[tokio::test]
async fn exhausting_requests_are_refused_without_harm() {
    let hub = TestHub::new().await;
    let token = "x".repeat(1 << 20);
    assert_eq!(hub.get(&Who::Token(token), "/version").await.code, 401);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let request = |body: String, kind: &str| {
        let mut request = http::Request::builder()
            .method("POST")
            .uri(format!("{NS}/configmaps"))
            .header("content-type", kind)
            .body(http_body_util::Full::new(bytes::Bytes::from(body)))
            .unwrap();
        request.extensions_mut().insert(atoll_apiserver::Identity::master("x"));
        request
    };
    let table = [
        (deep.clone(), "application/json", 400),
        (deep, "application/yaml", 400),
        ("x".repeat(4 * 1024 * 1024), "application/json", 413),
        (alias_bomb(), "application/yaml", 400),
    ];
    for (body, kind, code) in table {
        let answer = hub.send(request(body, kind)).await;
        assert_eq!(answer.code, code, "{kind}: {:.200}", answer.text);
    }
    let selector = format!("/api/v1/configmaps?labelSelector={}", "a=b,".repeat(10_000));
    let answer = hub.get(&Who::Nobody, &selector).await;
    assert_eq!(answer.code, 403);
}
