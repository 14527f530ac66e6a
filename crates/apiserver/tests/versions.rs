//! A kind whose versions have different shapes: what is written in one is read in the other, and nothing is lost.
#![allow(clippy::unwrap_used)]

mod support;

use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use support::{TestHub, Who};

const OLDER: &str = "/instances/fleet/apis/work.karmada.io/v1alpha1/namespaces/default/resourcebindings";
const NEWER: &str = "/instances/fleet/apis/work.karmada.io/v1alpha2/namespaces/default/resourcebindings";

async fn fleet() -> TestHub {
    let test = TestHub::new().await;
    test.instance("fleet").await;
    test.hub.add_conversions(&atoll_api::work::conversions());
    let definitions = atoll_api::crds(atoll_api::CrdSet::Karmada);
    test.hub.add_native(|instance| &*instance.name == "fleet", definitions).await.unwrap();
    test
}

fn template() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web", "resourceVersion": "7"})
}

fn older() -> Value {
    let mut resource = template();
    resource["replicas"] = 3.into();
    resource["resourcePerReplicas"] = json!({"cpu": "1"});
    json!({"apiVersion": "work.karmada.io/v1alpha1", "kind": "ResourceBinding", "metadata": {"name": "web"},
        "spec": {"resource": resource, "clusters": [{"name": "m1", "replicas": 3}]}})
}

fn newer() -> Value {
    let mut resource = template();
    resource["uid"] = "4711".into();
    json!({"apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding", "metadata": {"name": "web"},
    "spec": {
        "resource": resource, "replicas": 3,
        "replicaRequirements": {"resourceRequest": {"cpu": "1"}, "namespace": "default"},
        "clusters": [{"name": "m1", "replicas": 3, "components": [{"name": "a", "replicas": 3}]}],
        "placement": {"clusterAffinity": {"clusterNames": ["m1"]}},
    }})
}

impl TestHub {
    async fn ask(&self, method: &str, path: &str, body: Value, code: u16) -> Value {
        self.call(&Who::Master, method, path, body).await.expect(code)
    }

    async fn stored(&self, code: u16) -> Value {
        self.ask("GET", &format!("{NEWER}/web"), Value::Null, code).await
    }
}

#[tokio::test]
async fn what_the_newer_version_says_is_read_in_the_older_one() {
    let test = fleet().await;
    let made = test.ask("POST", NEWER, newer(), 201).await;
    let read = test.ask("GET", &format!("{OLDER}/web"), Value::Null, 200).await;
    assert_eq!(read["apiVersion"], "work.karmada.io/v1alpha1");
    assert_eq!(read["spec"], older()["spec"], "the older shape and nothing else");
    for field in ["uid", "resourceVersion", "generation"] {
        assert_eq!(read["metadata"][field], made["metadata"][field], "{field}");
    }
    let list = test.ask("GET", OLDER, Value::Null, 200).await;
    assert_eq!(
        (&list["kind"], &list["apiVersion"]),
        (&json!("ResourceBindingList"), &json!("work.karmada.io/v1alpha1"))
    );
    assert_eq!(list["items"], json!([read]));
    let page = test.ask("GET", &format!("{OLDER}?limit=1"), Value::Null, 200).await;
    assert_eq!(page["items"], json!([read]));
    assert_eq!(test.stored(200).await["spec"]["replicaRequirements"], newer()["spec"]["replicaRequirements"]);
}

#[tokio::test]
async fn what_is_written_in_the_older_version_is_stored_in_the_newer_one() {
    let test = fleet().await;
    let made = test.ask("POST", OLDER, older(), 201).await;
    assert_eq!((&made["apiVersion"], &made["spec"]), (&json!("work.karmada.io/v1alpha1"), &older()["spec"]));
    let read = test.stored(200).await;
    let spec = json!({"resource": template(), "replicas": 3, "replicaRequirements": {"resourceRequest": {"cpu": "1"}},
        "clusters": [{"name": "m1", "replicas": 3}], "conflictResolution": read["spec"]["conflictResolution"]});
    assert_eq!(read["spec"], spec);
    let instance = test.hub.instance("fleet").unwrap();
    let key = atoll_meta::Key::new("work.karmada.io", "resourcebindings", "default", "web");
    let entry = test.hub.read(&instance, key.as_str()).await.unwrap().unwrap();
    assert_eq!(entry.object.tree(entry.modified)["apiVersion"], "work.karmada.io/v1alpha2");
}

#[tokio::test]
async fn a_change_through_the_older_version_keeps_what_that_does_not_show() {
    let test = fleet().await;
    test.ask("POST", NEWER, newer(), 201).await;
    let before = test.stored(200).await;
    // Labels only: the spec stays as it is, to the last field.
    let labelled = test.ask("PATCH", &format!("{OLDER}/web"), json!({"metadata": {"labels": {"a": "b"}}}), 200).await;
    assert_eq!(labelled["metadata"]["generation"], 1);
    assert_eq!(test.stored(200).await["spec"], before["spec"]);
    // A replacement of what it was shown, with another number.
    let mut changed = labelled;
    changed["spec"]["resource"]["replicas"] = 5.into();
    changed["spec"]["resource"]["resourcePerReplicas"] = json!({"cpu": "2"});
    changed["spec"]["clusters"] = json!([{"name": "m2", "replicas": 5}]);
    let changed = test.ask("PUT", &format!("{OLDER}/web"), changed, 200).await;
    assert_eq!((&changed["metadata"]["generation"], &changed["spec"]["resource"]["replicas"]), (&json!(2), &json!(5)));
    let mut wanted = before["spec"].clone();
    wanted["replicas"] = 5.into();
    wanted["replicaRequirements"]["resourceRequest"] = json!({"cpu": "2"});
    wanted["clusters"] = json!([{"name": "m2", "replicas": 5}]);
    assert_eq!(test.stored(200).await["spec"], wanted);
    // What it does show, it can remove.
    let patch =
        json!([{"op": "remove", "path": "/spec/resource/replicas"}, {"op": "remove", "path": "/spec/clusters"}]);
    let json_patch = [("content-type", "application/json-patch+json")];
    test.call_as(&Who::Master, "PATCH", &format!("{OLDER}/web"), patch, &json_patch).await.expect(200);
    let read = test.stored(200).await;
    assert_eq!((read["spec"].get("replicas"), read["spec"].get("clusters")), (None, None));
    assert_eq!(read["spec"]["placement"], newer()["spec"]["placement"]);
}

#[tokio::test]
async fn a_status_in_the_older_version_changes_the_status_only() {
    let test = fleet().await;
    test.ask("POST", NEWER, newer(), 201).await;
    let before = test.stored(200).await;
    let status =
        json!({"schedulerObservedGeneration": 1, "aggregatedStatus": [{"clusterName": "m1", "health": "Healthy"}]});
    test.ask("PATCH", &format!("{NEWER}/web/status"), json!({"status": status}), 200).await;
    let mut read = test.ask("GET", &format!("{OLDER}/web/status"), Value::Null, 200).await;
    assert_eq!(read["status"], json!({"aggregatedStatus": [{"clusterName": "m1"}]}));
    let scheduled = json!([{"type": "Scheduled", "status": "True", "reason": "Success", "message": "",
        "lastTransitionTime": "2024-01-01T00:00:00Z"}]);
    read["status"]["conditions"] = scheduled.clone();
    read["spec"]["resource"]["replicas"] = 9.into();
    let said = test.ask("PUT", &format!("{OLDER}/web/status"), read, 200).await;
    assert_eq!((&said["status"]["conditions"], &said["spec"]["resource"]["replicas"]), (&scheduled, &json!(3)));
    let after = test.stored(200).await;
    assert_eq!((&after["spec"], &after["metadata"]["generation"]), (&before["spec"], &json!(1)));
    let mut wanted = status;
    wanted["conditions"] = scheduled;
    assert_eq!(after["status"], wanted);
}

#[tokio::test]
async fn a_configuration_of_the_older_version_is_applied() {
    let test = fleet().await;
    let apply = [("content-type", "application/apply-patch+yaml")];
    let path = format!("{OLDER}/web?fieldManager=tool&force=true");
    let made = test.call_as(&Who::Master, "PATCH", &path, older(), &apply).await.expect(201);
    let owner = &made["metadata"]["managedFields"][0];
    assert_eq!(owner["apiVersion"], "work.karmada.io/v1alpha1");
    assert!(owner["fieldsV1"]["f:spec"]["f:resource"]["f:replicas"].is_object(), "{owner}");
    assert_eq!(test.stored(200).await["spec"]["replicas"], 3);
    test.ask("PATCH", &format!("{NEWER}/web"), json!({"spec": {"schedulerName": "own"}}), 200).await;
    let mut config = older();
    config["spec"]["resource"]["replicas"] = 4.into();
    test.call_as(&Who::Master, "PATCH", &path, config, &apply).await.expect(200);
    let read = test.stored(200).await;
    assert_eq!((&read["spec"]["replicas"], &read["spec"]["schedulerName"]), (&json!(4), &json!("own")));
}

#[tokio::test]
async fn a_watch_of_either_version_tells_of_writes_in_the_other() {
    let test = fleet().await;
    let mut watches = Vec::new();
    for base in [OLDER, NEWER] {
        watches.push((base, test.watch(&format!("{base}?watch=true&timeoutSeconds=30")).await.into_body()));
    }
    test.ask("POST", OLDER, older(), 201).await;
    test.ask("PATCH", &format!("{NEWER}/web"), json!({"spec": {"replicas": 5}}), 200).await;
    test.ask("DELETE", &format!("{OLDER}/web"), Value::Null, 200).await;
    for (base, mut body) in watches {
        let mut events: Vec<Value> = Vec::new();
        while events.len() < 3 {
            let bytes = body.frame().await.unwrap().map_err(|_| "body").unwrap().into_data().unwrap();
            events.extend(String::from_utf8_lossy(&bytes).lines().map(|line| serde_json::from_str(line).unwrap()));
        }
        let replicas = if base == OLDER { "/object/spec/resource/replicas" } else { "/object/spec/replicas" };
        let told: Vec<_> =
            events.iter().map(|event| (event["type"].as_str().unwrap(), event.pointer(replicas))).collect();
        let wanted = [("ADDED", Some(&json!(3))), ("MODIFIED", Some(&json!(5))), ("DELETED", Some(&json!(5)))];
        assert_eq!(told, wanted, "{base}");
    }
}

#[tokio::test]
async fn faults_are_told_in_the_words_of_the_version_that_was_written() {
    let test = fleet().await;
    let mut wrong = older();
    wrong["spec"]["resource"]["replicas"] = "three".into();
    let answer = test.post(&Who::Master, OLDER, wrong).await;
    assert_eq!(answer.code, 422, "{}", answer.text);
    assert!(answer.message().contains("spec.resource.replicas: Invalid value: \"string\""), "{}", answer.message());
    let mut foreign = older();
    foreign["spec"]["replicas"] = 3.into();
    let answer = test.post(&Who::Master, &format!("{OLDER}?fieldValidation=Strict"), foreign).await;
    assert!(answer.message().contains("unknown field \"spec.replicas\""), "{}", answer.text);
}

#[tokio::test]
async fn definitions_that_are_stored_are_converted_too() {
    let test = TestHub::new().await;
    test.hub.add_conversions(&atoll_api::work::conversions());
    test.instance("fleet").await;
    let definitions = atoll_api::crds(atoll_api::CrdSet::Karmada);
    let own = definitions.into_iter().find(|own| own["spec"]["names"]["kind"] == "ResourceBinding").unwrap();
    let path = "/instances/fleet/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    test.ask("POST", path, own, 201).await;
    test.ask("POST", OLDER, older(), 201).await;
    assert_eq!(test.stored(200).await["spec"]["replicas"], 3);
}

#[tokio::test]
async fn kinds_without_a_conversion_are_served_as_they_are_stored() {
    let test = fleet().await;
    let instance = test.hub.instance("fleet").unwrap();
    for definition in atoll_api::crds(atoll_api::CrdSet::Karmada) {
        let spec = &definition["spec"];
        for version in spec["versions"].as_array().unwrap() {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            let (group, version) = (text(&spec["group"]), text(&version["name"]));
            let kind = instance.kind(&group, &version, &text(&spec["names"]["plural"])).unwrap();
            let wanted = kind.kind.ends_with("ResourceBinding") && version == "v1alpha1";
            assert_eq!(kind.converts(), wanted, "{version} {}", kind.kind);
        }
    }
    test.ask("POST", OLDER, older(), 201).await;
    let key = atoll_meta::Key::new("work.karmada.io", "resourcebindings", "default", "web");
    let entry = test.hub.read(&instance, key.as_str()).await.unwrap().unwrap();
    // No tree is made of what is stored in the version that is asked for, whoever wrote it.
    for (version, stored) in [("v1alpha1", false), ("v1alpha2", true)] {
        let kind = instance.kind("work.karmada.io", version, "resourcebindings").unwrap();
        assert_eq!(kind.is_stored_form(&entry), stored, "{version}");
    }
}
