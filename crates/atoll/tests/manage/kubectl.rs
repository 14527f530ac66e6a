//! kubectl across clusters.

use std::process::Command;

use serde_json::{Value, json};

use crate::hub::{Hub, until};

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
