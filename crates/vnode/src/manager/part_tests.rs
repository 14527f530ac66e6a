#![allow(clippy::unwrap_used)]
use super::*;

fn made(secret_namespace: &str) -> Vec<Part> {
    let binding: ClusterBinding = serde_json::from_value(json!({
        "apiVersion": "cloud.tencent.com/v1beta1", "kind": "ClusterBinding", "metadata": {"name": "gpu", "uid": "u"},
        "spec": {"clusterID": "g1", "mountNamespace": "m", "secretRef": {"name": "key", "namespace": secret_namespace}},
    }))
    .unwrap();
    let deployed = Deployed { image: "atoll:1".into(), replicas: 2, arguments: vec!["--without-intranet".into()] };
    parts(&binding, &deployed)
}

fn of<'a>(parts: &'a [Part], kind: &str, name: &str) -> Vec<&'a Part> {
    let ours = |part: &&Part| part.object["kind"] == kind && part.object["metadata"]["name"] == name;
    parts.iter().filter(ours).collect()
}

#[test]
fn a_binding_gets_two_accounts_with_roles_and_a_deployment_each() {
    let parts = made("kubeocean-system");
    for part in &parts {
        let meta = &part.object["metadata"];
        assert_eq!(meta["ownerReferences"][0]["uid"], "u", "{meta}");
        assert_eq!(meta["namespace"].as_str(), part.namespace.as_deref());
        assert_eq!(meta["labels"]["kubeocean.io/cluster-binding"], "gpu");
    }
    for (name, flag, more) in [
        ("kubeocean-syncer-g1", "--syncer", &["--without-intranet"][..]),
        ("kubeocean-proxier-g1", "--proxier", &["--kubelet-name", "kubeocean-proxier-g1-svc.kubeocean-system.svc"]),
    ] {
        assert_eq!(of(&parts, "ServiceAccount", name).len(), 1);
        let deployment = &of(&parts, "Deployment", name)[0].object;
        let pod = &deployment["spec"]["template"]["spec"];
        assert_eq!(pod["serviceAccountName"], name);
        let mut command = vec!["atoll", "vnode-manager", flag, "gpu"];
        command.extend(more);
        assert_eq!(pod["containers"][0]["command"], json!(command));
        let selector = &deployment["spec"]["selector"]["matchLabels"];
        let labels = &deployment["spec"]["template"]["metadata"]["labels"];
        assert!(selector.as_object().unwrap().iter().all(|(key, value)| labels[key] == *value), "{labels}");
    }
    let service = &of(&parts, "Service", "kubeocean-proxier-g1-svc")[0].object;
    assert_eq!(service["spec"]["ports"][0]["port"], 10250);
}

#[test]
fn a_syncer_writes_only_its_own_binding_and_asks_nothing_about_callers() {
    let parts = made("kubeocean-system");
    let rules = of(&parts, "ClusterRole", "kubeocean-syncer-g1")[0].object["rules"].as_array().unwrap();
    let writes = |rule: &&Value| {
        rule["resources"][0].as_str().unwrap().starts_with("clusterbindings") && rule["verbs"] == json!(["patch"])
    };
    let own: Vec<&Value> = rules.iter().filter(writes).collect();
    assert_eq!(own.len(), 2, "the binding and its status");
    assert!(own.iter().all(|rule| rule["resourceNames"] == json!(["gpu"])), "{own:?}");
    assert!(!rules.iter().any(|rule| rule["resources"][0] == "tokenreviews"));
}

#[test]
fn a_proxier_writes_nothing_and_reads_two_secrets() {
    for (namespace, expected) in [
        ("kubeocean-system", vec![("kubeocean-system", json!(["atoll-kubelet-ca", "key"]))]),
        ("keys", vec![("kubeocean-system", json!(["atoll-kubelet-ca"])), ("keys", json!(["key"]))]),
    ] {
        let parts = made(namespace);
        let name = "kubeocean-proxier-g1";
        let names = |part: &Part| -> Value {
            let rules = part.object["rules"].as_array().unwrap().iter();
            rules.flat_map(|rule| rule["resourceNames"].as_array().unwrap().clone()).collect::<Vec<_>>().into()
        };
        let secrets: Vec<(&str, Value)> =
            of(&parts, "Role", name).iter().map(|part| (part.namespace.as_deref().unwrap(), names(part))).collect();
        assert_eq!(secrets, expected);
        assert_eq!(of(&parts, "RoleBinding", name).len(), expected.len());
        for rule in of(&parts, "ClusterRole", name)[0].object["rules"].as_array().unwrap() {
            let resource = rule["resources"][0].as_str().unwrap();
            let asks = ["tokenreviews", "subjectaccessreviews"].contains(&resource);
            let verbs = rule["verbs"].as_array().unwrap();
            let reads = verbs.iter().all(|verb| ["get", "list", "watch"].contains(&verb.as_str().unwrap()));
            assert!(resource != "secrets" && (asks || reads), "{rule}");
        }
    }
}
