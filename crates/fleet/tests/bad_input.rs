//! Bad input: a clear condition or refusal, and nothing is lost.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use atoll_fleet::{JoinOptions, NamedMembers, RemoteMembers};
use atoll_meta::Status;
use atoll_runtime::{BodyStream, Endpoint, Patch, Transport};
use bytes::Bytes;
use http::{Request, Response};
use serde_json::{Value, json};
use support::{
    NS, World, bindings, clusters, customization, customizations, definitions, deployment, deployments, gear,
    gear_definition, gears, only, policies, policy,
};

#[tokio::test(flavor = "multi_thread")]
async fn policies_that_contradict_themselves_are_refused_with_the_field_at_fault() {
    let world = World::new(1).await;
    for (spec, field) in [
        (json!({"resourceSelectors": []}), "resourceSelectors"),
        (json!({"resourceSelectors": [{"kind": "Deployment"}]}), "apiVersion"),
        (
            json!({"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "other"}]}),
            "namespace",
        ),
        (
            json!({"placement": {"clusterAffinity": {"clusterNames": ["a"]}, "clusterAffinities": [{"affinityName": "x"}]}}),
            "placement",
        ),
        (json!({"placement": {"clusterAffinities": [{"affinityName": "x"}, {"affinityName": "x"}]}}), "affinityName"),
        (
            json!({"placement": {"spreadConstraints": [{"spreadByField": "cluster", "minGroups": 3, "maxGroups": 2}]}}),
            "maxGroups",
        ),
        (json!({"placement": {"spreadConstraints": [{"spreadByField": "moon"}]}}), "spreadByField"),
        (
            json!({"placement": {"replicaScheduling": {"weightPreference": {"staticWeightList": [{"targetCluster": {}, "weight": 0}]}}}}),
            "weight",
        ),
        (
            json!({"placement": {"clusterAffinity": {"fieldSelector": {"matchExpressions": [{"key": "moon", "operator": "In", "values": ["x"]}]}}}}),
            "fieldSelector",
        ),
        (json!({"preemption": "Sometimes"}), "preemption"),
        (json!({"preemption": "Always"}), "name"),
        (json!({"conflictResolution": "Fight"}), "conflictResolution"),
        (json!({"priority": "high"}), "priority"),
        (json!({"failover": {"application": {"decisionConditions": {"tolerationSeconds": -1}}}}), "failover"),
        (json!({"suspension": {"dispatching": true, "dispatchingOnClusters": {"clusterNames": ["a"]}}}), "suspension"),
    ] {
        let refusal = world.instance.create(&policies(), NS, &policy("bad", spec.clone())).await.unwrap_err();
        assert_eq!(refusal.code, 422, "{spec}: {refusal}");
        assert!(refusal.message.contains(field), "{spec}: {refusal}");
    }
    assert!(world.instance.list(&policies(), NS, "").await.unwrap().items.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_clusters_and_selectors_without_match_are_told() {
    let world = World::start(1).await;
    world.instance.create(&policies(), NS, &policy("p", only(&["nowhere"]))).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("web", 1)).await.unwrap();
    world
        .eventually("no cluster fits", async || {
            world.condition("web-deployment", "Scheduled").await["reason"] == "NoClusterFit"
        })
        .await;
    let message = world.condition("web-deployment", "Scheduled").await["message"].to_string();
    assert!(message.contains("0/1 clusters"), "{message}");
    let trace = atoll_fleet::why::trace(&world.instance, "deployment", "default", "web").await.unwrap();
    assert!(trace.obstacle.is_some(), "{trace}");
    // A selector that matches nothing makes nothing.
    let nothing = json!({"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "none"}]});
    world.instance.create(&policies(), NS, &policy("idle", nothing)).await.unwrap();
    // A kind nobody serves waits; the others go on.
    let unserved = json!({"resourceSelectors": [{"apiVersion": "nobody.io/v1", "kind": "Ghost"}]});
    world.instance.create(&policies(), NS, &policy("ghost", unserved)).await.unwrap();
    world.instance.patch(&policies(), NS, "p", "", Patch::Merge, &json!({"spec": only(&["m1"])})).await.unwrap();
    world.in_member("m1", &deployments(), "web", |_| true).await;
    assert_eq!(world.instance.list(&bindings(), NS, "").await.unwrap().items.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_that_loop_or_eat_memory_stop_only_themselves() {
    let world = World::start(1).await;
    for endpoint in [&world.instance, world.member("m1")] {
        endpoint.create(&definitions(), None, &gear_definition()).await.unwrap();
    }
    let nonsense = json!({"replicaResource": {"luaScript": "function GetReplicas("}});
    let target = ("example.io/v1", "Gear");
    let refusal =
        world.instance.create(&customizations(), None, &customization("bad", target, nonsense)).await.unwrap_err();
    assert_eq!(refusal.code, 422, "{refusal}");
    let both =
        json!([{"apiVersion": "example.io/v1", "kind": "Gear"}, {"apiVersion": "apps/v1", "kind": "Deployment"}]);
    world.instance.create(&policies(), NS, &policy("p", json!({"resourceSelectors": both}))).await.unwrap();
    for (name, script) in [
        ("loops", "function GetReplicas(obj) while true do end end"),
        (
            "eats",
            "function GetReplicas(obj) local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(1000) .. i end return 1, nil end",
        ),
    ] {
        let scripts = json!({"replicaResource": {"luaScript": script}});
        world.instance.create(&customizations(), None, &customization("bad", target, scripts)).await.unwrap();
        world.instance.create(&gears(), NS, &gear(name, 1)).await.unwrap();
        world.eventually("the failure is told", async || world.told_about("GetReplicasFailed", name).await).await;
        world.instance.create(&deployments(), NS, &deployment(name, 1)).await.unwrap();
        world.in_member("m1", &deployments(), name, |_| true).await;
        assert!(world.member("m1").get_opt(&gears(), NS, name).await.unwrap().is_none());
        world.instance.delete(&customizations(), None, "bad", &Value::Null).await.unwrap();
        let touch = json!({"metadata": {"labels": {"again": "yes"}}});
        world.instance.patch(&gears(), NS, name, "", Patch::Merge, &touch).await.unwrap();
        world.in_member("m1", &gears(), name, |_| true).await;
    }
}

/// Waits until a Cluster says that it is not ready, and why.
async fn told(world: &World, name: &str, why: &str) {
    world
        .eventually(&format!("{name} tells {why}"), async || {
            let cluster = world.instance.get(&clusters(), None, name).await.unwrap();
            let conditions = cluster["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions.iter().any(|c| {
                c["type"] == "Ready"
                    && c["status"] == "False"
                    && c["message"].as_str().is_some_and(|text| text.contains(why))
            })
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clusters_whose_address_or_secret_lies_are_told_to_be_unreachable() {
    let mut world = World::new(1).await;
    world
        .run(|options| {
            options.members = Arc::new(RemoteMembers::default());
            options.probe_interval = Duration::from_millis(200);
        })
        .await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "liar", "namespace": "karmada-cluster"},
        "stringData": {"token": "made-up", "caBundle": "no certificate"}});
    world.instance.create(&support::core("secrets"), Some("karmada-cluster"), &secret).await.unwrap();
    let cluster = |name: &str, spec: Value| json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": name}, "spec": spec});
    let reference = json!({"namespace": "karmada-cluster", "name": "liar"});
    // Nobody listens there; and a server that is no cluster, reached without checking who it is.
    let dead = json!({"syncMode": "Push", "apiEndpoint": "https://127.0.0.1:1", "secretRef": reference, "insecureSkipTLSVerification": true});
    world.instance.create(&clusters(), None, &cluster("dead", dead)).await.unwrap();
    world.readiness("dead", "False").await;
    let damaged = json!({"syncMode": "Push", "apiEndpoint": "https://127.0.0.1:1", "secretRef": reference});
    world.instance.create(&clusters(), None, &cluster("damaged", damaged)).await.unwrap();
    told(&world, "damaged", "caBundle").await;
    // Nor does anything lead to where machines of clouds learn their credentials, also not through the proxy.
    let good = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "good", "namespace": "karmada-cluster"},
        "stringData": {"token": "made-up"}});
    world.instance.create(&support::core("secrets"), Some("karmada-cluster"), &good).await.unwrap();
    let good = json!({"namespace": "karmada-cluster", "name": "good"});
    let spec = json!({"syncMode": "Push", "apiEndpoint": "https://169.254.169.254", "secretRef": good, "impersonatorSecretRef": good});
    world.instance.create(&clusters(), None, &cluster("metadata", spec)).await.unwrap();
    told(&world, "metadata", "169.254.169.254, which lies in a network that is denied").await;
    let path = "/apis/cluster.karmada.io/v1alpha1/clusters/metadata/proxy/latest/meta-data";
    let refusal = world.instance.get_path(path).await.unwrap_err();
    assert!(refusal.code == 503 && refusal.message.contains("denied"), "{refusal}");
    for (spec, why) in [
        (json!({"syncMode": "Sideways"}), "syncMode"),
        (json!({"syncMode": "Push", "zone": "a", "zones": ["b"]}), "zone"),
        (json!({"syncMode": "Push", "proxyURL": "ftp://x"}), "proxyURL"),
    ] {
        let refusal = world.instance.create(&clusters(), None, &cluster("bad", spec)).await.unwrap_err();
        assert!(refusal.code == 422 && refusal.message.contains(why), "{refusal}");
    }
    for name in ["Not_A_Name", &"x".repeat(49)] {
        let refusal =
            atoll_fleet::join(&world.instance, world.member("m1"), name, JoinOptions::default()).await.unwrap_err();
        assert_eq!(refusal.code, 400, "{refusal}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_does_not_serve_a_kind_or_version_is_passed_over_and_named() {
    let world = World::start(2).await;
    for endpoint in [&world.instance, world.member("m1")] {
        endpoint.create(&definitions(), None, &gear_definition()).await.unwrap();
    }
    let rule = policy("p", json!({"resourceSelectors": [{"apiVersion": "example.io/v1", "kind": "Gear"}]}));
    world.instance.create(&policies(), NS, &rule).await.unwrap();
    world.instance.create(&gears(), NS, &gear("g", 1)).await.unwrap();
    world.in_member("m1", &gears(), "g", |_| true).await;
    assert_eq!(world.targets("g-gear").await, ["m1"]);
    let trace = atoll_fleet::why::trace(&world.instance, "gears", "default", "g").await.unwrap().to_string();
    assert!(trace.contains("m2") && trace.contains("APIEnablement"), "{trace}");
    // It learns the kind, but in another version: a copy in the template's version would be refused there.
    let mut older = gear_definition();
    older["spec"]["versions"][0]["name"] = "v1beta1".into();
    world.member("m2").create(&definitions(), None, &older).await.unwrap();
    world
        .eventually("m2 is known to serve the older version", async || {
            let cluster = world.instance.get(&clusters(), None, "m2").await.unwrap();
            let groups = cluster["status"]["apiEnablements"].as_array().cloned().unwrap_or_default();
            groups.iter().any(|group| group["groupVersion"] == "example.io/v1beta1")
        })
        .await;
    assert_eq!(world.targets("g-gear").await, ["m1"]);
    // It learns the version later: the copy follows.
    let mut both = older["spec"]["versions"].clone();
    let mut newer = gear_definition()["spec"]["versions"][0].clone();
    newer["storage"] = false.into();
    both.as_array_mut().unwrap().push(newer);
    let change = json!({"spec": {"versions": both}});
    world.member("m2").patch(&definitions(), None, "gears.example.io", "", Patch::Merge, &change).await.unwrap();
    world.in_member("m2", &gears(), "g", |_| true).await;
}

/// A way to a member that answers in its place while it is told what to say.
struct Liar {
    inner: Arc<dyn Transport>,
    says: parking_lot::Mutex<Option<(u16, &'static str, &'static str)>>,
    /// What was asked while it lied.
    asked: parking_lot::Mutex<Vec<String>>,
}

#[async_trait::async_trait]
impl Transport for Liar {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<BodyStream>, Status> {
        let says = *self.says.lock();
        let Some((code, kind, body)) = says else { return self.inner.send(request).await };
        self.asked.lock().push(request.uri().path().to_owned());
        let body: BodyStream = Box::pin(futures::stream::iter([Ok(Bytes::from_static(body.as_bytes()))]));
        Ok(Response::builder().status(code).header("content-type", kind).body(body).unwrap())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_answers_nonsense_delays_nobody_and_loses_nothing() {
    let mut world = World::new(2).await;
    let inner = world.member("m2").transport().clone();
    let liar = Arc::new(Liar { inner, says: None.into(), asked: Vec::new().into() });
    let way: Arc<dyn Transport> = liar.clone();
    let named =
        vec![("m1".to_owned(), world.member("m1").clone()), ("m2".to_owned(), Endpoint::new("m2", way, "atoll-fleet"))];
    world
        .run(|options| {
            options.members = Arc::new(NamedMembers::new(named));
            options.probe_interval = Duration::from_millis(200);
            options.probe_threshold = Duration::from_millis(400);
        })
        .await;
    for name in ["m1", "m2"] {
        world.join(name, json!({})).await;
    }
    world.instance.create(&policies(), NS, &policy("p", json!({}))).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("web", 1)).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("gone", 1)).await.unwrap();
    world.in_member("m2", &deployments(), "gone", |_| true).await;
    let before = world.in_member("m2", &deployments(), "web", |_| true).await;
    let json = "application/json";
    let stranger = "is no Kubernetes API server";
    for (replicas, (says, told)) in (2..).zip([
        (
            (401, json, r#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","code":401}"#),
            "401",
        ),
        ((200, "text/html", "<html>Please sign in</html>"), stranger),
        ((200, "text/plain", "ok"), stranger),
        ((200, json, "{}"), stranger),
        ((200, json, r#"{"kind":"DeploymentList","apiVersion":"apps/v1","metadata":7,"items":"none"}"#), stranger),
        ((200, json, r#"["#), stranger),
        ((302, "text/plain", ""), "/readyz answers 302"),
    ]) {
        *liar.says.lock() = Some(says);
        let more = json!({"spec": {"replicas": replicas}});
        world.instance.patch(&deployments(), NS, "web", "", Patch::Merge, &more).await.unwrap();
        world.in_member("m1", &deployments(), "web", |copy| copy["spec"]["replicas"] == replicas).await;
        self::told(&world, "m2", told).await;
        *liar.says.lock() = None;
        let copy = world.in_member("m2", &deployments(), "web", |copy| copy["spec"]["replicas"] == replicas).await;
        assert_eq!(copy["metadata"]["uid"], before["metadata"]["uid"], "never deleted: {says:?}");
        world.readiness("m2", "True").await;
    }
    assert_eq!(world.targets("web-deployment").await, ["m1", "m2"]);
    // What is deleted meanwhile is not forgotten.
    *liar.says.lock() = Some((200, json, "{}"));
    world.instance.delete(&deployments(), NS, "gone", &Value::Null).await.unwrap();
    world.not_in_member("m1", &deployments(), "gone").await;
    world
        .eventually("the member is asked to remove it", async || {
            liar.asked.lock().iter().any(|path| path.ends_with("/deployments/gone"))
        })
        .await;
    *liar.says.lock() = None;
    world.not_in_member("m2", &deployments(), "gone").await;
}

/// Every place of a schema, with what it may hold.
fn places<'a>(schema: &'a Value, path: &[String], found: &mut Vec<(Vec<String>, &'a Value)>) {
    found.push((path.to_vec(), schema));
    if let Some(properties) = schema["properties"].as_object() {
        for (name, inner) in properties {
            places(inner, &[path, std::slice::from_ref(name)].concat(), found);
        }
    }
    if schema["items"].is_object() {
        places(&schema["items"], &[path, &["[]".to_owned()]].concat(), found);
    }
}

/// A value at a place, with nothing around it but what leads there.
fn planted(path: &[String], value: &Value) -> Value {
    match path.split_first() {
        None => value.clone(),
        Some((first, rest)) if first == "[]" => json!([planted(rest, value)]),
        Some((first, rest)) => json!({first: planted(rest, value)}),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nonsense_at_any_place_of_any_kind_is_refused_and_harms_nobody() {
    let world = World::new(1).await;
    let mut asked = 0;
    for definition in atoll_api::crds(atoll_api::CrdSet::Karmada) {
        let (group, names) = (definition["spec"]["group"].as_str().unwrap(), &definition["spec"]["names"]);
        let versions = definition["spec"]["versions"].as_array().unwrap();
        let version = versions.iter().find(|version| version["storage"] == true).unwrap();
        let gvr = atoll_meta::Gvr::new(group, version["name"].as_str().unwrap(), names["plural"].as_str().unwrap());
        let namespace = NS.filter(|_| definition["spec"]["scope"] == "Namespaced");
        let mut all = Vec::new();
        places(&version["schema"]["openAPIV3Schema"]["properties"]["spec"], &["spec".to_owned()], &mut all);
        // Schemas know nothing of what manifests hold.
        let within = |path: &str| path.split('.').map(ToOwned::to_owned).collect();
        for inside in ["metadata", "metadata.labels", "metadata.annotations", "spec", "status"] {
            all.push((within(&format!("spec.workload.manifests.[].{inside}")), &Value::Null));
        }
        for (path, schema) in all {
            let wrong = if schema["type"] == "string" { json!([7]) } else { json!("nonsense") };
            for value in [wrong, Value::Null] {
                let mut object = planted(&path, &value);
                object["apiVersion"] = format!("{group}/{}", version["name"].as_str().unwrap()).into();
                object["kind"] = names["kind"].clone();
                object["metadata"] = json!({"name": "nonsense"});
                asked += 1;
                match world.instance.create(&gvr, namespace, &object).await {
                    Ok(_) => world.instance.delete(&gvr, namespace, "nonsense", &Value::Null).await.map(drop).unwrap(),
                    Err(refusal) => assert!([400, 409, 422].contains(&refusal.code), "{object}: {refusal}"),
                }
            }
        }
    }
    println!("{asked} nonsensical objects");
    assert!(asked > 1000, "only {asked}");
    world.instance.create(&policies(), NS, &policy("p", json!({}))).await.unwrap();
}
