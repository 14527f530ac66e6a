#![allow(clippy::unwrap_used)]

use super::*;

fn policy(more: Value) -> Value {
    let mut object = json!({"metadata": {"name": "p", "namespace": "default"},
        "spec": {"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}]}});
    atoll_patch::merge_patch(&mut object, &json!({"spec": more}));
    policy::default(&mut object, Some("default"), true, || "pid".to_owned());
    object
}

fn faults(more: Value) -> Vec<String> {
    let object = policy(more);
    policy::check(&read(&object).unwrap(), &object, None, Some("default")).iter().map(ToString::to_string).collect()
}

#[test]
fn a_policy_gets_its_id_finalizer_and_defaults() {
    let object = policy(json!({
        "placement": {"spreadConstraints": [{}], "replicaScheduling": {"replicaSchedulingType": "Divided"}},
        "propagateDeps": true, "failover": {"application": {"decisionConditions": {}}},
    }));
    assert_eq!(object["metadata"]["labels"][label::POLICY_ID], "pid");
    assert_eq!(object["metadata"]["finalizers"], json!(["karmada.io/propagation-policy-controller"]));
    assert_eq!(object["spec"]["resourceSelectors"][0]["namespace"], "default");
    assert_eq!(
        object["spec"]["placement"]["spreadConstraints"][0],
        json!({"spreadByField": "cluster", "minGroups": 1})
    );
    assert_eq!(object["spec"]["placement"]["replicaScheduling"]["replicaDivisionPreference"], "Weighted");
    assert_eq!(object["spec"]["failover"]["application"]["gracePeriodSeconds"], 600);
    let older = policy(json!({"failover": {"application": {"decisionConditions": {}, "purgeMode": "Graciously"}}}));
    assert_eq!(older["spec"]["failover"]["application"]["gracePeriodSeconds"], 600);
    let imports = policy(
        json!({"resourceSelectors": [{"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ServiceImport"}]}),
    );
    assert_eq!(imports["spec"]["propagateDeps"], true);
}

#[test]
fn policies_that_contradict_themselves_are_refused() {
    let dynamic = json!({"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"});
    for (spec, field) in [
        (
            json!({"resourceSelectors": [{"apiVersion": "v1", "kind": "X", "namespace": "other"}]}),
            "spec.resourceSelectors[0].namespace",
        ),
        (json!({"preemption": "Always"}), "spec.resourceSelectors[0].name"),
        (
            json!({"placement": {"clusterAffinity": {}, "clusterAffinities": [{"affinityName": "a"}]}}),
            "spec.placement.clusterAffinities",
        ),
        (
            json!({"placement": {"clusterAffinities": [{"affinityName": "a"}, {"affinityName": "a"}]}}),
            "spec.placement.clusterAffinities[1].affinityName",
        ),
        (
            json!({"placement": {"clusterAffinities": [{"affinityName": "a", "overflowAffinities": [{"affinityName": "b", "clusterNames": ["m"]}]}]}}),
            "overflowAffinities",
        ),
        (
            json!({"placement": {"replicaScheduling": dynamic, "clusterAffinities": [{"affinityName": "a", "overflowAffinities": [{"affinityName": "b"}]}]}}),
            "overflowAffinities[0]",
        ),
        (
            json!({"placement": {"clusterAffinity": {"fieldSelector": {"matchExpressions": [{"key": "moon", "operator": "In", "values": ["x"]}]}}}}),
            "fieldSelector.matchExpressions[0].key",
        ),
        (
            json!({"placement": {"clusterAffinity": {"fieldSelector": {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}}}}),
            "fieldSelector.matchExpressions[0].operator",
        ),
        (
            json!({"placement": {"clusterTolerations": [{"key": "a", "operator": "Gt", "value": "1"}]}}),
            "clusterTolerations[0].operator",
        ),
        (
            json!({"placement": {"spreadConstraints": [{"spreadByField": "region"}]}}),
            "spec.placement.spreadConstraints",
        ),
        (
            json!({"placement": {"spreadConstraints": [{"spreadByField": "cluster"}, {"spreadByField": "cluster"}]}}),
            "spreadConstraints[1].spreadByField",
        ),
        (
            json!({"placement": {"spreadConstraints": [{"spreadByField": "cluster", "minGroups": 3, "maxGroups": 2}]}}),
            "maxGroups",
        ),
        (
            json!({"placement": {"spreadConstraints": [{"spreadByField": "cluster", "spreadByLabel": "x"}]}}),
            "spreadConstraints[0]",
        ),
        (
            json!({"placement": {"workloadAffinity": {"affinity": {"groupByLabelKey": "a"}, "antiAffinity": {"groupByLabelKey": "a"}}}}),
            "workloadAffinity",
        ),
        (json!({"failover": {"application": {"decisionConditions": {}}}}), "spec.propagateDeps"),
        (
            json!({"propagateDeps": true, "failover": {"application": {"decisionConditions": {"tolerationSeconds": -1}}}}),
            "tolerationSeconds",
        ),
        (
            json!({"propagateDeps": true, "failover": {"application": {"decisionConditions": {}, "purgeMode": "Never", "gracePeriodSeconds": 5}}}),
            "gracePeriodSeconds",
        ),
        (
            json!({"suspension": {"dispatching": true, "dispatchingOnClusters": {"clusterNames": ["m"]}}}),
            "spec.suspension",
        ),
    ] {
        let found = faults(spec.clone());
        assert!(found.iter().any(|fault| fault.contains(field)), "{spec}: {found:?}");
    }
    assert_eq!(faults(json!({})), Vec::<String>::new());
}

#[test]
fn what_identifies_a_policy_cannot_change() {
    let old = policy(json!({}));
    let mut new = old.clone();
    new["spec"]["schedulerName"] = "other".into();
    new["metadata"]["labels"] = json!({});
    let found = policy::check(&read(&new).unwrap(), &new, Some(&old), Some("default"));
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn overrides_that_cannot_work_are_refused() {
    let rule = |overriders: Value| json!({"spec": {"overrideRules": [{"overriders": overriders}]}});
    for (object, field) in [
        (rule(json!({"plaintext": [{"path": "spec/x", "operator": "remove"}]})), "plaintext[0].path"),
        (rule(json!({"plaintext": [{"path": "/a~2", "operator": "remove"}]})), "plaintext[0].path"),
        (rule(json!({"fieldOverrider": [{"fieldPath": "/data/x"}]})), "fieldOverrider[0]"),
        (
            rule(json!({"labelsOverrider": [{"operator": "add", "value": {"bad key": "x"}}]})),
            "labelsOverrider[0].value",
        ),
        (
            rule(json!({"labelsOverrider": [{"operator": "add", "value": {"a": "bad value"}}]})),
            "labelsOverrider[0].value[a]",
        ),
        (json!({"spec": {"targetCluster": {}, "overrideRules": [{"overriders": {}}]}}), "spec.overrideRules"),
    ] {
        let found: Vec<String> = overrides::check(&read(&object).unwrap()).iter().map(ToString::to_string).collect();
        assert!(found.iter().any(|fault| fault.contains(field)), "{object}: {found:?}");
    }
}

#[test]
fn a_cluster_gets_grades_and_is_checked() {
    let mut object = json!({"metadata": {"name": "m"}, "spec": {"syncMode": "Push", "zone": "z", "taints": [{"key": "a", "effect": "NoExecute"}]}});
    cluster::default(&mut object, "2026-01-01T00:00:00Z");
    assert_eq!(object["spec"]["zones"], json!(["z"]));
    assert_eq!(object["spec"]["taints"][0]["timeAdded"], "2026-01-01T00:00:00Z");
    assert_eq!(object["spec"]["resourceModels"].as_array().unwrap().len(), 9);
    assert_eq!(
        object["spec"]["resourceModels"][8]["ranges"][1],
        json!({"name": "memory", "min": "1024Gi", "max": "9223372036854775807"})
    );
    assert_eq!(cluster::check(&read(&object).unwrap(), "m"), Vec::new());
    for (spec, name, field) in [
        (json!({"syncMode": "Push"}), "Bad_Name", "metadata.name"),
        (json!({"syncMode": "Push"}), "a23456789b23456789c23456789d23456789e23456789f234", "metadata.name"),
        (json!({"syncMode": "Push", "provider": "no good"}), "m", "spec.provider"),
        (json!({"syncMode": "Push", "proxyURL": "ftp://x"}), "m", "spec.proxyURL"),
        (json!({"syncMode": "Push", "zone": "a", "zones": ["b"]}), "m", "spec.zone"),
        (
            json!({"syncMode": "Push", "resourceModels": [{"grade": 0, "ranges": [{"name": "cpu", "min": "0", "max": "1"}]},
            {"grade": 1, "ranges": [{"name": "cpu", "min": "2", "max": "3"}]}]}),
            "m",
            "resourceModels[1].ranges[0].min",
        ),
    ] {
        let found: Vec<String> = cluster::check(&serde_json::from_value(spec.clone()).unwrap(), name)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert!(found.iter().any(|fault| fault.contains(field)), "{spec} {name}: {found:?}");
    }
}

#[test]
fn taint_policies_and_quotas_are_checked() {
    let policy = json!({"spec": {"addOnConditions": [{"conditionType": "Ready", "operator": "Is", "statusValues": ["False"]}],
        "taints": [{"key": "a", "effect": "NoExecute"}, {"key": "a", "effect": "Never"}, {"key": "b", "effect": "NoSchedule"}, {"key": "b", "effect": "NoSchedule"}]}});
    let found: Vec<String> =
        rest::check_taint_policy(&read(&policy).unwrap()).iter().map(ToString::to_string).collect();
    for field in ["addOnConditions[0].operator", "taints[1].effect", "taints[3]"] {
        assert!(found.iter().any(|fault| fault.contains(field)), "{field}: {found:?}");
    }
    assert_eq!(told(&rest::evicting_taints(&policy)), ["spec.taints[0].effect"]);
    let quota = json!({"spec": {"overall": {"cpu": "2"}, "staticAssignments": [
        {"clusterName": "m1", "hard": {"cpu": "2"}}, {"clusterName": "m2", "hard": {"cpu": "1", "memory": "1Gi"}}]}});
    assert_eq!(rest::check_quota(&read(&quota).unwrap()).len(), 2);
}

fn told(errors: &[FieldError]) -> Vec<&str> {
    errors.iter().map(|error| error.path.as_str()).collect()
}

#[test]
fn autoscalers_get_the_usual_defaults_and_are_checked_as_such() {
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let mut object = json!({"spec": {"scaleTargetRef": target, "maxReplicas": 3, "behavior": {"scaleDown": {}}}});
    scaling::default(&mut object);
    assert_eq!(object["spec"]["minReplicas"], 1);
    assert_eq!(object["spec"]["metrics"][0]["resource"]["name"], "cpu");
    assert_eq!(object["spec"]["behavior"]["scaleUp"]["policies"].as_array().unwrap().len(), 2);
    assert!(object.get("status").is_none());
    assert_eq!(told(&scaling::check(&object)), Vec::<&str>::new());
    for (change, field) in [
        (json!({"minReplicas": 0}), "spec.minReplicas"),
        (json!({"maxReplicas": 0}), "spec.maxReplicas"),
        (json!({"minReplicas": 5}), "spec.maxReplicas"),
        (json!({"scaleTargetRef": {"name": ""}}), "spec.scaleTargetRef.name"),
        (json!({"metrics": [{"type": "Moon"}]}), "spec.metrics[0].type"),
        (
            json!({"behavior": {"scaleDown": {"stabilizationWindowSeconds": 99999}}}),
            "spec.behavior.scaleDown.stabilizationWindowSeconds",
        ),
    ] {
        let mut wrong = object.clone();
        atoll_patch::merge_patch(&mut wrong, &json!({"spec": change}));
        let errors = scaling::check(&wrong);
        assert!(told(&errors).contains(&field), "{change}: {errors:?}");
    }
}

#[test]
fn time_tables_are_checked() {
    let check = |kind: &str, rules: Value| {
        let spec = json!({"spec": {"scaleTargetRef": {"kind": kind, "name": "x"}, "rules": rules}});
        let errors = scaling::check_cron(&read(&spec).unwrap());
        told(&errors).into_iter().map(ToOwned::to_owned).collect::<Vec<_>>()
    };
    let rule = |more: Value| {
        let mut rule = json!({"name": "a", "schedule": "0 8 * * *", "targetReplicas": 2});
        atoll_patch::merge_patch(&mut rule, &more);
        rule
    };
    let none: [&str; 0] = [];
    assert_eq!(check("Deployment", json!([rule(json!({"timeZone": "Europe/Berlin"}))])), none);
    assert_eq!(check("Deployment", json!([rule(json!({})), rule(json!({}))])), ["spec.rules[1].name"]);
    assert_eq!(check("Deployment", json!([rule(json!({"schedule": "soon"}))])), ["spec.rules[0].schedule"]);
    assert_eq!(check("Deployment", json!([rule(json!({"timeZone": "no where"}))])), ["spec.rules[0].timeZone"]);
    assert_eq!(check("Deployment", json!([rule(json!({"targetReplicas": null}))])), ["spec.rules[0].targetReplicas"]);
    assert_eq!(check("Deployment", json!([rule(json!({"targetReplicas": -1}))])), ["spec.rules[0].targetReplicas"]);
    assert_eq!(check("FederatedHPA", json!([rule(json!({}))])), ["spec.rules[0].targetMinReplicas"]);
    assert_eq!(
        check("FederatedHPA", json!([rule(json!({"targetMaxReplicas": 0}))])),
        ["spec.rules[0].targetMaxReplicas"]
    );
    let bounds = json!({"targetMinReplicas": 3, "targetMaxReplicas": 2});
    assert_eq!(check("FederatedHPA", json!([rule(bounds)])), ["spec.rules[0].targetMinReplicas"]);
    assert_eq!(check("FederatedHPA", json!([rule(json!({"targetMinReplicas": 3}))])), none);
}

#[test]
fn what_is_called_over_the_network_is_checked() {
    let ingress = |spec: Value| traffic::check_ingress(&json!({"spec": spec}));
    let backend = json!({"service": {"name": "web", "port": {"number": 80}}});
    assert_eq!(told(&ingress(json!({"defaultBackend": backend}))), Vec::<&str>::new());
    assert_eq!(told(&ingress(json!({}))), ["spec"]);
    assert_eq!(
        told(&ingress(json!({"defaultBackend": backend, "rules": [{"host": "1.2.3.4"}]}))),
        ["spec.rules[0].host"]
    );

    let service = |spec: Value, old: Option<&Value>| {
        let errors = traffic::check_service(&read(&json!({"spec": spec})).unwrap(), old);
        told(&errors).into_iter().map(ToOwned::to_owned).collect::<Vec<_>>()
    };
    let none: [&str; 0] = [];
    let good = json!({"types": ["CrossCluster"], "ports": [{"name": "http", "port": 80}], "providerClusters": [{"name": "m1"}]});
    assert_eq!(service(good.clone(), Some(&json!({"spec": good}))), none);
    assert_eq!(service(json!({"types": ["CrossCluster", "LoadBalancer"]}), None), ["spec.types"]);
    assert_eq!(service(json!({"types": ["Moon"]}), None), ["spec.types[0]"]);
    assert_eq!(service(json!({"types": ["LoadBalancer"]}), Some(&json!({"spec": good}))), ["spec.types"]);
    let ports =
        json!({"types": [], "ports": [{"name": "a", "port": 0}, {"name": "a", "port": 1}, {"name": "B", "port": 2}]});
    assert_eq!(service(ports, None), ["spec.ports[0].port", "spec.ports[1].name", "spec.ports[2].name"]);
    assert_eq!(
        service(json!({"types": [], "consumerClusters": [{"name": "M_1"}]}), None),
        ["spec.consumerClusters[0].name"]
    );

    let webhook = |more: Value| {
        let mut hook = json!({"name": "a.example.com", "clientConfig": {"url": "https://x"}, "interpreterContextVersions": ["v1alpha1"]});
        atoll_patch::merge_patch(&mut hook, &more);
        let errors = traffic::check_webhooks(&json!({"webhooks": [hook]}));
        told(&errors).into_iter().map(ToOwned::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(webhook(json!({})), none);
    assert_eq!(webhook(json!({"name": "short.com"})), ["webhooks[0].name"]);
    assert_eq!(webhook(json!({"clientConfig": {"url": null}})), ["webhooks[0].clientConfig"]);
    assert_eq!(
        webhook(json!({"clientConfig": {"service": {"namespace": "n", "name": "s"}}})),
        ["webhooks[0].clientConfig"]
    );
    assert_eq!(webhook(json!({"clientConfig": {"url": "http://x"}})), ["webhooks[0].clientConfig.url"]);
    assert_eq!(webhook(json!({"timeoutSeconds": 31})), ["webhooks[0].timeoutSeconds"]);
    assert_eq!(webhook(json!({"interpreterContextVersions": ["v9"]})), ["webhooks[0].interpreterContextVersions"]);
}

#[test]
fn bindings_are_checked_and_works_by_hand_are_completed() {
    let binding = json!({"metadata": {"annotations": {"resourcebinding.karmada.io/dependencies": "{"}},
        "spec": {"components": [{"name": "a"}, {"name": "a"}, {"name": "B!"}]}});
    let errors = rest::check_binding(&binding);
    assert_eq!(
        told(&errors),
        [
            "metadata.annotations[resourcebinding.karmada.io/dependencies]",
            "spec.components[1].name",
            "spec.components[2].name"
        ]
    );
    let mut work = json!({"metadata": {"name": "w", "namespace": "karmada-es-m1", "labels": {label::WORK_ID: "id"}},
        "spec": {"workload": {"manifests": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "uid": "u", "labels": {"a": "b"}}}]}}});
    rest::complete_work(&mut work);
    let manifest = work["spec"]["workload"]["manifests"][0].clone();
    assert!(manifest["metadata"].get("uid").is_none());
    assert_eq!(manifest["metadata"]["labels"], json!({"a": "b", label::MANAGED: "true", label::WORK_ID: "id"}));
    assert_eq!(manifest["metadata"]["annotations"]["work.karmada.io/name"], "w");
    rest::complete_work(&mut work);
    assert_eq!(work["spec"]["workload"]["manifests"][0], manifest, "once is enough");
}
