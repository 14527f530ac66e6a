#![allow(clippy::unwrap_used)]
use super::*;

fn intranet() -> Intranet {
    Intranet { api: Some(("10.0.0.1".into(), 443)), dns: Some("10.0.0.2".into()), domain: "cluster.local".into() }
}

fn pod(spec: Value) -> Value {
    json!({"metadata": {"name": "web-0", "namespace": "default", "uid": "11111111-2222-3333-4444-555555555555"}, "spec": spec})
}

fn rewrite(spec: Value, direct: bool) -> Value {
    Rewrite { node: "n1", direct, priority_class: "kubeocean-default", intranet: &intranet() }.spec(&pod(spec)).unwrap()
}

#[test]
fn scheduling_is_replaced_by_the_node_that_was_chosen() {
    let spec = json!({
        "nodeName": "vnode-w-n1", "nodeSelector": {"a": "b"}, "schedulerName": "mine", "priority": 7, "priorityClassName": "high",
        "preemptionPolicy": "Never", "topologySpreadConstraints": [{}], "affinity": {"podAffinity": {}},
        "serviceAccountName": "sa", "serviceAccount": "sa", "tolerations": [{"key": "k"}],
    });
    let below = rewrite(spec.clone(), false);
    let term =
        &below["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"][0];
    assert_eq!(*term, json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}));
    assert_eq!(below["affinity"].as_object().unwrap().len(), 1);
    for gone in [
        "nodeName",
        "nodeSelector",
        "schedulerName",
        "priority",
        "preemptionPolicy",
        "topologySpreadConstraints",
        "serviceAccountName",
        "serviceAccount",
    ] {
        assert!(below.get(gone).is_none(), "{gone}");
    }
    assert_eq!(
        (&below["priorityClassName"], &below["tolerations"]),
        (&json!("kubeocean-default"), &json!([{"key": "k"}]))
    );
    assert_eq!(below["automountServiceAccountToken"], false);
    let direct = rewrite(spec, true);
    assert_eq!((&direct["nodeName"], direct.get("affinity")), (&json!("n1"), None));
}

#[test]
fn references_point_at_the_copies() {
    let below = rewrite(
        json!({
            "containers": [{"envFrom": [{"configMapRef": {"name": "my-config"}}]}],
            "volumes": [{"name": "v", "secret": {"secretName": "s"}}, {"name": "w", "persistentVolumeClaim": {"claimName": "data"}}],
            "imagePullSecrets": [{"name": "pull"}],
        }),
        false,
    );
    assert_eq!(
        below["containers"][0]["envFrom"][0]["configMapRef"]["name"],
        "my-config-078167b8edae8c89d2ffe824c39f4648"
    );
    assert_eq!(below["volumes"][0]["secret"]["secretName"], physical("default", "s"));
    assert_eq!(below["volumes"][1]["persistentVolumeClaim"]["claimName"], physical("default", "data"));
    assert_eq!(below["imagePullSecrets"][0]["name"], physical("default", "pull"));
}

#[test]
fn projected_tokens_become_secrets() {
    let spec = json!({"volumes": [{"name": "kube-api-access-x7z9k", "projected": {"sources": [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
        {"configMap": {"name": "kube-root-ca.crt"}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
        {"serviceAccountToken": {"path": "vault", "audience": "vault"}},
    ]}}]});
    let secret = "web-0-kube-api-access-x7z9k-11-57b84d42d1288b585870a7fba794e1a7";
    let sources = rewrite(spec.clone(), false)["volumes"][0]["projected"]["sources"].clone();
    assert_eq!(sources[0], json!({"secret": {"name": secret, "items": [{"key": "token", "path": "token"}]}}));
    assert_eq!(sources[1]["configMap"]["name"], physical("default", "kube-root-ca.crt"));
    assert_eq!(
        sources[2]["downwardAPI"]["items"][0]["fieldRef"]["fieldPath"],
        "metadata.annotations['kubeocean.io/virtual-pod-namespace']"
    );
    assert_eq!(sources[3], json!({"secret": {"name": secret, "items": [{"key": "token-1", "path": "vault"}]}}));
    let wishes = token_wishes(&pod(spec));
    assert_eq!(
        wishes[0],
        TokenWish { secret: secret.into(), key: "token".into(), audience: String::new(), seconds: Some(3607) }
    );
    assert_eq!((wishes[1].key.as_str(), wishes[1].audience.as_str()), ("token-1", "vault"));
}

#[test]
fn pods_see_the_names_they_have_above() {
    let env = |path: &str| json!({"name": "X", "valueFrom": {"fieldRef": {"fieldPath": path}}});
    let paths = ["metadata.name", "metadata.namespace", "spec.nodeName", "metadata.uid", "status.podIP"];
    let below = rewrite(
        json!({"containers": [{"env": paths.map(env)}], "volumes": [{"downwardAPI": {"items": [{"fieldRef": {"fieldPath": "metadata.name"}}]}}]}),
        false,
    );
    let seen: Vec<&str> = list(&below["containers"][0]["env"])
        .iter()
        .filter_map(|env| env["valueFrom"]["fieldRef"]["fieldPath"].as_str())
        .collect();
    let annotated = |name: &str| format!("metadata.annotations['kubeocean.io/{name}']");
    assert_eq!(
        seen,
        [
            annotated("virtual-pod-name"),
            annotated("virtual-pod-namespace"),
            annotated("virtual-node-name"),
            "metadata.uid".into(),
            "status.podIP".into()
        ]
    );
    assert_eq!(below["volumes"][0]["downwardAPI"]["items"][0]["fieldRef"]["fieldPath"], annotated("virtual-pod-name"));
}

#[test]
fn the_api_server_and_the_dns_are_those_of_the_computing_cluster() {
    let below = rewrite(
        json!({
            "containers": [{"env": [{"name": "HOSTNAME", "value": "x"}, {"name": "KUBERNETES_SERVICE_HOST", "valueFrom": {"fieldRef": {}}}]}],
            "initContainers": [{}], "dnsPolicy": "ClusterFirst", "dnsConfig": {"searches": ["corp"], "options": [{"name": "timeout", "value": "1"}]},
        }),
        false,
    );
    for container in [&below["containers"][0], &below["initContainers"][0]] {
        let value = |name: &str| list(&container["env"]).iter().find(|env| env["name"] == name).cloned();
        assert_eq!(
            value("KUBERNETES_SERVICE_HOST"),
            Some(json!({"name": "KUBERNETES_SERVICE_HOST", "value": "10.0.0.1"}))
        );
        assert_eq!(value("KUBERNETES_SERVICE_PORT"), Some(json!({"name": "KUBERNETES_SERVICE_PORT", "value": "443"})));
        assert_eq!(value("HOSTNAME"), Some(json!({"name": "HOSTNAME", "value": "web-0"})));
    }
    assert_eq!(below["hostAliases"][0]["hostnames"].as_array().unwrap().len(), 4);
    assert_eq!(below["dnsPolicy"], "None");
    assert_eq!(
        below["dnsConfig"],
        json!({
            "nameservers": ["10.0.0.2"], "searches": ["default.svc.cluster.local", "svc.cluster.local", "cluster.local", "corp"],
            "options": [{"name": "ndots", "value": "5"}, {"name": "timeout", "value": "1"}],
        })
    );
    assert_eq!(rewrite(json!({"dnsPolicy": "Default"}), false)["dnsPolicy"], "Default");
    assert_eq!(rewrite(json!({"dnsPolicy": "ClusterFirst", "hostNetwork": true}), false)["dnsPolicy"], "ClusterFirst");
    assert_eq!(
        rewrite(json!({"dnsPolicy": "ClusterFirstWithHostNet", "hostNetwork": true}), false)["dnsPolicy"],
        "None"
    );
}

#[test]
fn host_names_are_short_and_need_a_letter() {
    for (name, expected) in [("web-0", Ok("web-0")), ("a.b", Ok("a-b")), ("...", Err(())), ("---", Err(()))] {
        assert_eq!(hostname(name).map_err(drop), expected.map(ToOwned::to_owned));
    }
    let long = format!("{}-{}", "a".repeat(62), "b".repeat(20));
    assert_eq!(hostname(&long).unwrap(), "a".repeat(62));
    assert_eq!(rewrite(json!({"hostname": "mine"}), false)["hostname"], "mine");
}

#[test]
fn a_service_that_is_not_offered_says_why() {
    let service = |status: Value, ports: Value| json!({"metadata": {"namespace": "default", "name": "kubernetes-intranet"}, "spec": {"ports": ports}, "status": status});
    let ingress = |ip: &str| json!({"loadBalancer": {"ingress": [{"ip": ip}]}});
    assert_eq!(network::offered(&service(ingress("10.0.0.1"), json!([{"port": 443}]))), Ok(("10.0.0.1".into(), 443)));
    for (service, why) in [
        (service(json!({}), json!([{"port": 443}])), "ingress"),
        (service(ingress(""), json!([{"port": 443}])), "IP"),
        (service(ingress("10.0.0.1"), json!([])), "port"),
    ] {
        let error = network::offered(&service).unwrap_err();
        assert!(error.contains(why) && error.contains("default/kubernetes-intranet"), "{error}");
    }
}
