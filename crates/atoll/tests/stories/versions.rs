//! Kinds of which the demonstration serves two versions.

use serde_json::json;

use crate::hub::Hub;

#[test]
fn bindings_are_written_and_read_in_both_versions() {
    let Some(hub) = Hub::demo() else { return };
    let binding = json!({"apiVersion": "work.karmada.io/v1alpha1", "kind": "ResourceBinding", "metadata": {"name": "web"},
        "spec": {"resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web",
            "replicas": 3, "resourcePerReplicas": {"cpu": "1"}}, "clusters": [{"name": "m1", "replicas": 3}]}});
    hub.kubectl_fed(&["create", "-f", "-"], &binding.to_string()).ok();
    let older = "resourcebindings.v1alpha1.work.karmada.io/web";
    let newer = "resourcebindings.v1alpha2.work.karmada.io/web";
    let read = |name: &str, path: &str| hub.kubectl(&format!("get {name} -o jsonpath={{.spec.{path}}}")).ok();
    assert_eq!(read(newer, "replicas"), "3");
    assert_eq!(read(newer, "replicaRequirements.resourceRequest.cpu"), "1");
    hub.kubectl_with(&["patch", newer, "--type=merge", "-p", r#"{"spec": {"replicas": 5, "schedulerName": "own"}}"#])
        .ok();
    assert_eq!(read(older, "resource.replicas"), "5");
    hub.kubectl_with(&["patch", older, "--type=merge", "-p", r#"{"spec": {"resource": {"replicas": 7}}}"#]).ok();
    assert_eq!((read(newer, "replicas"), read(newer, "schedulerName")), ("7".to_owned(), "own".to_owned()));
}
