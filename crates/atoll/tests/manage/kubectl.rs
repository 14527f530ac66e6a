//! kubectl across clusters.

use std::process::Command;

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};

use crate::hub::{API, Hub, until};

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_gets_objects_of_all_clusters_by_the_paths_of_clusterpedia() {
    let Some(kubectl) = atoll_testkit::peers::find("kubectl") else { return };
    let hub = Hub::start();
    let admin = Some(hub.token.as_str());
    for place in ["fleet", "member1"] {
        let map = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": format!("of-{place}")}});
        let path = format!("/instances/{place}/api/v1/namespaces/default/configmaps");
        assert_eq!(hub.rest(admin, "POST", &path, Some(map)).await.0, 201);
    }
    let get = async |below: &str, words: &[&str]| {
        let server = format!("https://{}/apis/clusterpedia.io/v1beta1/resources{below}", hub.address);
        let mut command = Command::new(&kubectl);
        command.env("KUBECONFIG", hub.directory.path().join("kubeconfig")).env("HOME", hub.directory.path());
        command.args(["--context", "root", "--server", &server, "get"]).args(words);
        tokio::task::spawn_blocking(move || atoll_testkit::peers::run(&mut command)).await.unwrap()
    };
    let all = ["configmaps", "-n", "default"];
    let found = async || {
        let text = get("", &all).await;
        text.code == 0 && text.stdout.contains("of-member1")
    };
    until(&hub, "the member is known", found).await;
    let table = get("", &all).await.ok();
    assert!(table.lines().next().unwrap().starts_with("CLUSTER"), "{table}");
    let one = get("/clusters/fleet", &all).await.ok();
    assert!(one.contains("of-fleet") && !one.contains("of-member1"), "{one}");
    let object = get("/clusters/fleet", &["configmaps", "of-fleet", "-n", "default", "-o", "json"]).await.ok();
    let object: Value = serde_json::from_str(&object).unwrap();
    assert_eq!(object["metadata"]["annotations"]["shadow.clusterpedia.io/cluster-name"], "fleet");
}

/// A role in a namespace of the fleet, or in all of it.
type Given = (&'static str, &'static str, Option<&'static str>);

/// What the words of grants say, read naively.
fn allows(grants: &[Given], user: &str, namespace: &str, resource: &str, write: bool) -> bool {
    grants.iter().any(|(whom, role, place)| {
        *whom == user
            && place.is_none_or(|place| place == namespace)
            && (*role != "viewer" || (!write && resource != "secrets"))
    })
}

fn random(seed: u64) -> Vec<Given> {
    let mut dice = StdRng::seed_from_u64(seed);
    let mut all = Vec::new();
    for user in ["ann", "bob"] {
        for _ in 0..dice.random_range(1..3) {
            let role = ["viewer", "editor", "admin"][dice.random_range(0..3)];
            all.push((user, role, [None, Some("default"), Some("team")][dice.random_range(0..3)]));
        }
    }
    all
}

/// kubectl as somebody, at one of the doors.
struct Door<'a> {
    hub: &'a Hub,
    kubectl: &'a std::path::Path,
    token: &'a str,
}

impl Door<'_> {
    async fn run(&self, path: &str, words: &[&str]) -> atoll_testkit::peers::Ran {
        let ca = self.hub.directory.path().join("ca.pem");
        std::fs::write(&ca, &self.hub.ca).unwrap();
        let mut command = Command::new(self.kubectl);
        command.env("KUBECONFIG", "/dev/null").env("HOME", self.hub.directory.path());
        command.arg("--server").arg(format!("https://{}{path}", self.hub.address));
        command.arg("--certificate-authority").arg(ca).args(["--token", self.token]).args(words);
        tokio::task::spawn_blocking(move || atoll_testkit::peers::run(&mut command)).await.unwrap()
    }

    /// What one of the doors shows of a namespace.
    async fn compare(&self, grants: &[Given], user: &str, namespace: &str, resource: &str) {
        let what = format!("{user} {resource} {namespace} {grants:?}");
        let may = allows(grants, user, namespace, resource, false);
        let shown = self.run("/instances/fleet", &["get", resource, "-n", namespace, "-o", "name"]).await;
        let name = format!("story-{namespace}-fleet");
        assert_eq!((shown.code == 0, shown.stdout.contains(&name)), (may, may), "{what}: {shown:?}");
        assert!(may || !shown.stderr.contains("story"), "{what}: {}", shown.stderr);
        // Clusterpedia: all members, and the instance by its name.
        for (below, place) in [("", "member1"), ("/clusters/fleet", "fleet")] {
            let path = format!("/apis/clusterpedia.io/v1beta1/resources{below}");
            let found = self.run(&path, &["get", resource, "-n", namespace, "-o", "name"]).await;
            let name = format!("story-{namespace}-{place}");
            assert_eq!(found.stdout.contains(&name), may, "{what} {name}: {found:?}");
        }
        let api = format!("{API}/instances/fleet/namespaces/{namespace}/{resource}");
        let list = self.hub.rest(Some(self.token), "GET", &api, None).await.1;
        assert_eq!(list["items"].to_string().contains("story"), may, "REST: {what}");
        let tried = match resource {
            "secrets" => ["create", "secret", "generic", "tried"].as_slice(),
            _ => ["create", "configmap", "tried"].as_slice(),
        };
        let words = [tried, &["-n", namespace, "--dry-run=server", "-o", "name"]].concat();
        let made = self.run("/instances/fleet", &words).await;
        assert_eq!(made.code == 0, allows(grants, user, namespace, resource, true), "{what}: {made:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn s13_kubectl_shows_and_allows_others_what_their_grants_say_at_every_door() {
    let Some(kubectl) = atoll_testkit::peers::find("kubectl") else { return };
    let hub = Hub::start();
    let admin = Some(hub.token.as_str());
    for place in ["fleet", "member1"] {
        let space = json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "team"}});
        // The fleet may have brought it to the member already.
        assert!(matches!(
            hub.rest(admin, "POST", &format!("/instances/{place}/api/v1/namespaces"), Some(space)).await.0,
            201 | 409
        ));
        for namespace in ["default", "team"] {
            for (resource, kind) in [("configmaps", "ConfigMap"), ("secrets", "Secret")] {
                let object = json!({"kind": kind, "apiVersion": "v1", "metadata": {"name": format!("story-{namespace}-{place}")}});
                let path = format!("/instances/{place}/api/v1/namespaces/{namespace}/{resource}");
                assert_eq!(hub.rest(admin, "POST", &path, Some(object)).await.0, 201);
            }
        }
    }
    let found = "/manage/v1alpha1/facets?by=source&query.fuzzyName=story-";
    let all = async || hub.rest(admin, "GET", found, None).await.1["counts"].to_string().matches("\"4\"").count() == 2;
    until(&hub, "all is found", all).await;
    let tokens = ["ann", "bob", "eve"].map(|name| (name, hub.account(name)));
    for (seed, namespace) in [(0, "default"), (1, "team")] {
        let grants = random(seed);
        for (at, (user, role, place)) in grants.iter().enumerate() {
            let grant = json!({"kind": "Grant", "apiVersion": "atoll.io/v1alpha1", "metadata": {"name": format!("g{seed}-{at}")}, "spec": {
                "role": role, "subjects": [{"kind": "User", "name": user}], "scope": {"instance": "fleet", "namespace": place}}});
            let (code, answer) = hub.rest(admin, "POST", "/apis/atoll.io/v1alpha1/grants", Some(grant)).await;
            assert_eq!(code, 201, "{grants:?}: {answer}");
        }
        for (user, token) in &tokens {
            let reads = async |resource: &str| {
                let path = format!("/instances/fleet/api/v1/namespaces/{namespace}/{resource}");
                (hub.rest(Some(token), "GET", &path, None).await.0 == 200)
                    == allows(&grants, user, namespace, resource, false)
            };
            until(&hub, "the grants hold", async || reads("configmaps").await && reads("secrets").await).await;
            let door = Door { hub: &hub, kubectl: &kubectl, token };
            for resource in ["configmaps", "secrets"] {
                door.compare(&grants, user, namespace, resource).await;
            }
        }
        for at in 0..grants.len() {
            let path = format!("/apis/atoll.io/v1alpha1/grants/g{seed}-{at}");
            assert_eq!(hub.rest(admin, "DELETE", &path, None).await.0, 200);
        }
    }
}
