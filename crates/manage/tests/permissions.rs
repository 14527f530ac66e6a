//! Two tenants with random grants: every entry shows and allows exactly what a naive reading of the grants does.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;

use atoll_apiserver::Identity;
use atoll_manage::access::rights::CallerRights;
use atoll_meta::Gvr;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};
use support::{World, becomes, hub_object, user};

const PLAN: [(&str, &[&str]); 2] = [("fleet", &["m1"]), ("second", &["m2"])];
const NAMESPACES: [&str; 3] = ["default", "team-a", "team-b"];
const KINDS: [(&str, &str); 2] = [("configmaps", "ConfigMap"), ("secrets", "Secret")];
/// What must never be seen anywhere in an answer of a search.
const CANARY: &str = "canary-in-a-secret";

/// A grant as it was given.
#[derive(Clone, Debug)]
struct Given {
    user: &'static str,
    role: &'static str,
    scope: Value,
}

/// The naive reading: what the words of a grant say.
fn allows(grants: &[Given], user: &str, instance: &str, namespace: &str, resource: &str, write: bool) -> bool {
    grants.iter().filter(|grant| grant.user == user).any(|grant| {
        let scope = &grant.scope;
        let here = scope["platform"] == true
            || (scope["instance"] == instance && (scope["namespace"].is_null() || scope["namespace"] == namespace))
            || (scope["workspace"] == "w" && instance == "second" && namespace == "team-b");
        let role = match grant.role {
            "viewer" => !write && resource != "secrets",
            _ => true,
        };
        here && role
    })
}

fn random(seed: u64) -> Vec<Given> {
    let mut dice = StdRng::seed_from_u64(seed);
    let mut all = Vec::new();
    for user in ["ann", "bob"] {
        for _ in 0..dice.random_range(0..3) {
            let role = ["viewer", "editor", "admin"][dice.random_range(0..3)];
            let instance = PLAN[dice.random_range(0..2)].0;
            let namespace = NAMESPACES[dice.random_range(0..3)];
            let scope = match dice.random_range(0..8) {
                0 => json!({"platform": true}),
                1 | 2 => json!({"instance": instance}),
                3 => json!({"workspace": "w"}),
                _ => json!({"instance": instance, "namespace": namespace}),
            };
            all.push(Given { user, role, scope });
        }
    }
    all
}

async fn prepare(world: &World) {
    let root = world.endpoint("root");
    let workspace = hub_object(
        "Workspace",
        json!({"metadata": {"name": "w"}, "spec": {"namespaces": [{"instance": "second", "namespace": "team-b"}]}}),
    );
    root.create(&Gvr::new("atoll.io", "v1alpha1", "workspaces"), None, &workspace).await.unwrap();
    let core = world.manage.core().clone();
    let rights = move |identity: &Identity| -> Arc<dyn atoll_index::Rights> {
        Arc::new(CallerRights::new(core.clone(), identity.clone()))
    };
    world.hub.add_mount(Arc::new(atoll_index::Pedia::new(world.index.clone(), Arc::new(rights))));
    for (instance, members) in PLAN {
        for place in std::iter::once(&instance).chain(members) {
            let endpoint = world.endpoint(place);
            for namespace in NAMESPACES {
                let object = json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": namespace}});
                endpoint.ensure(&Gvr::new("", "v1", "namespaces"), None, &object).await.unwrap();
                for (resource, kind) in KINDS {
                    let mut object = json!({"kind": kind, "apiVersion": "v1", "metadata": {"name": format!("of-{place}"), "labels": {"story": "yes"}}});
                    if kind == "Secret" {
                        object["stringData"] = json!({"password": CANARY});
                    }
                    let gvr = Gvr::new("", "v1", resource);
                    let made = endpoint.create(&gvr, Some(namespace), &object).await.unwrap();
                    let source = if *place == instance { instance.to_owned() } else { format!("{instance}/{place}") };
                    world.settled(&source, &gvr, &made).await;
                }
            }
        }
    }
}

/// Everything of the story that a caller may see: source, resource and namespace.
fn visible(grants: &[Given], user: &str) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for (instance, members) in PLAN {
        for (resource, _) in KINDS {
            for namespace in NAMESPACES.iter().filter(|name| allows(grants, user, instance, name, resource, false)) {
                all.insert(format!("{instance} {resource} {namespace}"));
                all.extend(members.iter().map(|member| format!("{instance}/{member} {resource} {namespace}")));
            }
        }
    }
    all
}

fn of_items(items: &Value) -> BTreeSet<String> {
    let text = |item: &Value, key: &str| item[key].as_str().unwrap().to_owned();
    let shown =
        |item: &Value| format!("{} {} {}", text(item, "source"), text(item, "resource"), text(item, "namespace"));
    items.as_array().unwrap().iter().map(shown).collect()
}

/// All pages of a search, two objects at a time, with the remaining counts checked on the way.
async fn searched(world: &World, who: &Identity) -> BTreeSet<String> {
    let (mut found, mut token) = (BTreeSet::new(), String::new());
    loop {
        let path = format!("/manage/v1alpha1/search?labelSelector=story&limit=2&objects=true&continue={token}");
        let page = world.ok(who, "GET", &path, None).await;
        assert!(!page.to_string().contains(CANARY), "data of a Secret in a search");
        found.extend(of_items(&page["items"]));
        token = page["continue"].as_str().unwrap().to_owned();
        let remaining: u64 = page["remaining"].as_str().unwrap().parse().unwrap();
        assert_eq!(remaining == 0, token.is_empty(), "remaining and token tell the same");
        if token.is_empty() {
            return found;
        }
    }
}

/// What the stream of changes begins with.
async fn watched(world: &World, who: &Identity) -> BTreeSet<String> {
    let request = Request::builder().uri("/manage/v1alpha1/watch?labelSelector=story").body(Full::default()).unwrap();
    let mut body = world.raw(who, request).await.into_body();
    let mut found = Vec::new();
    loop {
        let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
        for line in String::from_utf8_lossy(&frame).lines() {
            let event = serde_json::from_str::<Value>(line).unwrap()["result"].clone();
            if event["type"] == "SYNCED" {
                return of_items(&Value::Array(found));
            }
            found.push(event["object"].clone());
        }
    }
}

/// Asks every entry that is about one namespace, and compares.
async fn compare_entries(world: &World, grants: &[Given], who: &Identity) {
    for (instance, _) in PLAN {
        for namespace in NAMESPACES {
            for (resource, kind) in KINDS {
                let what = format!("{} {instance} {namespace} {resource} {grants:?}", who.user);
                let may = allows(grants, &who.user, instance, namespace, resource, false);
                let writes = allows(grants, &who.user, instance, namespace, resource, true);
                let names = |items: &Value| -> Vec<String> {
                    let all = items.as_array().into_iter().flatten();
                    all.filter_map(|item| item["metadata"]["name"].as_str().map(ToOwned::to_owned))
                        .filter(|name| name.starts_with("of-"))
                        .collect()
                };
                let wanted: Vec<String> = may.then(|| format!("of-{instance}")).into_iter().collect();
                let rest = world
                    .ok(who, "GET", &format!("/instances/{instance}/namespaces/{namespace}/{resource}"), None)
                    .await;
                assert_eq!(names(&rest["items"]), wanted, "REST: {what}");
                if !may {
                    assert_eq!(rest["pagination"]["total"], 0, "REST counts: {what}");
                }
                let plural = format!("{kind}s");
                let asked = json!({"instance": instance, "namespace": namespace});
                let (code, grpc) = world.grpc(who, &format!("CoreService/List{plural}"), asked).await;
                assert_eq!((code, grpc), (0, rest), "gRPC: {what}");
                let native = format!("/instances/{instance}/api/v1/namespaces/{namespace}/{resource}");
                assert_eq!(world.native(who, "GET", &native, None).await.0 == 200, may, "native: {what}");
                let pedia = format!(
                    "/apis/clusterpedia.io/v1beta1/resources/clusters/{instance}/api/v1/namespaces/{namespace}/{resource}"
                );
                let (_, list) = world.native(who, "GET", &pedia, None).await;
                assert_eq!(names(&list["items"]), wanted, "Clusterpedia: {what}");
                let object = json!({"kind": kind, "apiVersion": "v1", "metadata": {"name": "tried"}});
                let (code, _) = world.native(who, "POST", &format!("{native}?dryRun=All"), Some(object.clone())).await;
                assert_eq!(code == 201, writes, "native write: {what}");
                let body = Some(json!({"data": object.to_string()}));
                let path = format!("/instances/{instance}/namespaces/{namespace}/{resource}");
                let (code, _) = world.rest(who, "POST", &path, body).await;
                assert_eq!(code, if writes { 200 } else { 403 }, "REST write: {what}");
                if writes {
                    world.ok(who, "DELETE", &format!("{path}/tried"), None).await;
                }
            }
        }
    }
}

#[tokio::test]
async fn s13_every_entry_shows_and_allows_what_the_grants_say_and_nothing_more() {
    let world = World::with(&PLAN).await;
    prepare(&world).await;
    let root = world.endpoint("root");
    let gvr = Gvr::new("atoll.io", "v1alpha1", "grants");
    for seed in 0..6 {
        let grants = random(seed);
        for (at, grant) in grants.iter().enumerate() {
            let subjects = json!([{"kind": "User", "name": grant.user}]);
            let object = hub_object(
                "Grant",
                json!({"metadata": {"name": format!("g{at}")}, "spec": {"role": grant.role, "subjects": subjects, "scope": grant.scope}}),
            );
            root.create(&gvr, None, &object).await.unwrap();
        }
        for who in [user("ann"), user("bob"), user("nobody")] {
            let wanted = visible(&grants, &who.user);
            let what = format!("search: {} {grants:?}", who.user);
            world.until(&what, async || searched(&world, &who).await == wanted).await;
            assert_eq!(watched(&world, &who).await, wanted, "stream: {} {grants:?}", who.user);
            let facets = world
                .ok(&who, "GET", "/manage/v1alpha1/facets?by=source&query.labelSelector=story&limit=100", None)
                .await;
            let counted: u64 = facets["counts"]
                .as_array()
                .unwrap()
                .iter()
                .map(|entry| entry["count"].as_str().unwrap().parse::<u64>().unwrap())
                .sum();
            assert_eq!(counted as usize, wanted.len(), "facets: {} {facets}", who.user);
            compare_entries(&world, &grants, &who).await;
        }
        for at in 0..grants.len() {
            root.delete(&gvr, None, &format!("g{at}"), &Value::Null).await.unwrap();
        }
    }
}

#[tokio::test]
async fn s16_a_viewer_reads_no_credentials_anywhere() {
    let world = World::with(&PLAN).await;
    prepare(&world).await;
    let root = world.endpoint("root");
    let kubeconfig = json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "far"}, "stringData": {"kubeconfig": CANARY}});
    root.create(&Gvr::new("", "v1", "secrets"), Some("kube-system"), &kubeconfig).await.unwrap();
    let external = hub_object(
        "Instance",
        json!({"metadata": {"name": "far"}, "spec": {"type": "External", "kubeconfigSecretRef": {"namespace": "kube-system", "name": "far"}}}),
    );
    let instances = Gvr::new("atoll.io", "v1alpha1", "instances");
    root.create(&instances, None, &external).await.unwrap();
    // What is wrong with its kubeconfig is said, without what is in it.
    becomes(&root, &instances, "far", |seen| seen["status"]["phase"] == "Failed").await;
    let everywhere = hub_object(
        "Grant",
        json!({"metadata": {"name": "g"}, "spec": {"role": "viewer", "subjects": [{"kind": "User", "name": "eve"}], "scope": {"platform": true}}}),
    );
    root.create(&Gvr::new("atoll.io", "v1alpha1", "grants"), None, &everywhere).await.unwrap();
    let eve = user("eve");
    let holds = async || world.native(&eve, "GET", "/instances/second/api/v1/configmaps", None).await.0 == 200;
    world.until("the grant holds", holds).await;
    let mut read = 0;
    for instance in ["root", "fleet", "second"] {
        let base = if instance == "root" { String::new() } else { format!("/instances/{instance}") };
        for shelf in world.index.shelves_of(Some(instance).filter(|name| *name != "root")) {
            let key = &shelf.key;
            let gvr = Gvr::new(&key.group, &shelf.version, &key.resource);
            let (code, answer) = world.native(&eve, "GET", &format!("{base}{}", gvr.path(None, None)), None).await;
            let text = answer.to_string();
            assert!(!text.contains(CANARY), "{instance} {gvr:?}: {code}");
            assert!(code != 200 || key.resource != "secrets", "a viewer lists Secrets of {instance}");
            read += u32::from(code == 200);
        }
    }
    assert!(read > 20, "{read} resources were read");
    for path in ["/instances", "/instances/far", "/instances/far/json", "/instances/fleet/clusters"] {
        let (_, answer) = world.rest(&eve, "GET", path, None).await;
        assert!(!answer.to_string().contains(CANARY), "{path}");
    }
}

/// Reads a stream until a text has come.
async fn read_until(body: &mut atoll_apiserver::Body, text: &str) {
    let mut seen = String::new();
    while !seen.contains(text) {
        let frame = body.frame().await.unwrap_or_else(|| panic!("ended after {seen}")).unwrap();
        seen.push_str(&String::from_utf8_lossy(&frame.into_data().unwrap()));
    }
}

#[tokio::test]
async fn s21_open_watches_end_within_a_second_of_a_revocation_by_the_clock_of_the_test() {
    let world = World::with(&PLAN).await;
    prepare(&world).await;
    let (root, ann) = (world.endpoint("root"), user("ann"));
    let gvr = Gvr::new("atoll.io", "v1alpha1", "grants");
    let spec = json!({"role": "viewer", "subjects": [{"kind": "User", "name": "ann"}], "scope": {"instance": "fleet", "namespace": "team-a"}});
    root.create(&gvr, None, &hub_object("Grant", json!({"metadata": {"name": "g"}, "spec": spec}))).await.unwrap();
    let maps = "/instances/fleet/api/v1/namespaces/team-a/configmaps";
    world.until("the grant holds", async || world.native(&ann, "GET", maps, None).await.0 == 200).await;
    let wanted = visible(
        &[Given { user: "ann", role: "viewer", scope: json!({"instance": "fleet", "namespace": "team-a"}) }],
        "ann",
    );
    world.until("it is found", async || searched(&world, &ann).await == wanted).await;
    let mut open = Vec::new();
    for (path, first) in [
        (format!("{maps}?watch=true&resourceVersion=0"), "of-fleet"),
        ("/manage/v1alpha1/watch?labelSelector=story".into(), "SYNCED"),
    ] {
        let mut body = world.open(&ann, "GET", &path, None).await.into_body();
        read_until(&mut body, first).await;
        open.push(body);
    }
    // From here on only what is waited for lets time go by: what is looked at every quarter minute is too late.
    tokio::time::pause();
    let begin = tokio::time::Instant::now();
    root.delete(&gvr, None, "g", &Value::Null).await.unwrap();
    for mut body in open {
        while body.frame().await.is_some() {}
    }
    assert!(begin.elapsed() < std::time::Duration::from_secs(1), "{:?}", begin.elapsed());
    tokio::time::resume();
}

#[tokio::test]
async fn refusals_are_the_same_for_what_is_there_and_what_is_not() {
    let world = World::with(&PLAN).await;
    prepare(&world).await;
    let eve = user("eve");
    let api = "/apis/kairship.io/v1alpha1/instances";
    let beyond = "/manage/v1alpha1/instances";
    let pedia = "/apis/clusterpedia.io/v1beta1/resources";
    // In each path NAMESPACE, OBJECT and MEMBER are those of the story, or made up.
    let paths = [
        format!("{api}/fleet/clusters/MEMBER"),
        format!("{api}/fleet/namespaces/NAMESPACE"),
        format!("{api}/fleet/namespaces/NAMESPACE/configmaps"),
        format!("{api}/fleet/namespaces/NAMESPACE/configmaps/OBJECT"),
        format!("{api}/fleet/namespaces/NAMESPACE/secrets/OBJECT/json"),
        format!("{api}/fleet/member-clusters/MEMBER/namespaces/NAMESPACE/deployments"),
        format!("{beyond}/fleet/namespaces/NAMESPACE/why/configmap/OBJECT"),
        format!("{beyond}/fleet/namespaces/NAMESPACE/statefulsets/OBJECT"),
        format!("{beyond}/fleet/clusters/MEMBER/namespaces/NAMESPACE/promotions/Deployment/OBJECT"),
        format!("{beyond}/fleet/clusters/MEMBER/namespaces/NAMESPACE/pods/OBJECT:logs"),
        format!("{beyond}/fleet/clusters/MEMBER/namespaces/NAMESPACE/pods/OBJECT/log"),
        "/manage/v1alpha1/search?sources=fleet/MEMBER&namespaces=NAMESPACE&names=OBJECT".to_owned(),
        "/manage/v1alpha1/search?waitFor=fleet/MEMBER%20configmaps%201".to_owned(),
        "/manage/v1alpha1/facets?by=source&query.sources=fleet/MEMBER&query.namespaces=NAMESPACE".to_owned(),
        "/manage/v1alpha1/facets?by=namespace&query.names=OBJECT".to_owned(),
        "/instances/fleet/api/v1/namespaces/NAMESPACE".to_owned(),
        "/instances/fleet/apis/cluster.karmada.io/v1alpha1/clusters/MEMBER".to_owned(),
        "/instances/fleet/api/v1/namespaces/NAMESPACE/configmaps/OBJECT".to_owned(),
        "/instances/fleet/apis/cluster.karmada.io/v1alpha1/clusters/MEMBER/proxy/api/v1/namespaces".to_owned(),
        format!("{pedia}/clusters/fleet/api/v1/namespaces/NAMESPACE/configmaps"),
        format!("{pedia}/clusters/fleet/api/v1/namespaces/NAMESPACE/configmaps/OBJECT"),
        format!("{pedia}/api/v1/namespaces/NAMESPACE/configmaps"),
    ];
    // Names of instances are no secret: anybody may ask for the health of one, as Kubernetes has it.
    let there = [("NAMESPACE", "team-a"), ("OBJECT", "of-fleet"), ("MEMBER", "m1")];
    let absent = [("NAMESPACE", "team-x"), ("OBJECT", "of-nobody"), ("MEMBER", "m9")];
    let asked = async |path: &str, words: &[(&str, &str)]| {
        let path = words.iter().fold(path.to_owned(), |path, (word, name)| path.replace(word, name));
        let (code, answer) = world.native(&eve, "GET", &path, None).await;
        // What the caller said comes back; everything else must not depend on it, except the hour.
        let text = words.iter().fold(answer.to_string(), |text, (word, name)| text.replace(name, word));
        let mut tree: Value = serde_json::from_str(&text).unwrap();
        if let Some(map) = tree.as_object_mut() {
            map.remove("freshAsOf");
        }
        (code, tree)
    };
    let mut told = Vec::new();
    for path in &paths {
        let (real, made_up) = (asked(path, &there).await, asked(path, &absent).await);
        assert!(!real.1.to_string().contains("second"), "{path}: {}", real.1);
        if real != made_up {
            told.push(format!("{path}\n  there:  {} {}\n  absent: {} {}", real.0, real.1, made_up.0, made_up.1));
        }
    }
    assert!(told.is_empty(), "existence is told:\n{}", told.join("\n"));
}
