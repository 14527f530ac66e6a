#![allow(clippy::unwrap_used)]
use super::*;

fn marks() -> Vec<(String, String)> {
    vec![("kubeocean.io/managed-by".into(), "kubeocean".into())]
}

fn made(kind: Kind, original: Value) -> Result<Value, String> {
    copy(&Thing::new(kind, "default", "x"), &original, &marks(), "mount")
}

#[test]
fn copies_say_what_they_are_copies_of() {
    let original = json!({
        "metadata": {
            "labels": {"app": "a", "kubeocean.io/synced-by-w": "true"},
            "annotations": {"note": "n", "kubeocean.io/physical-name": "x-hash", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
        },
        "data": {"k": "v"}, "binaryData": {"b": "AA=="}, "immutable": true,
    });
    let copy = made(Kind::ConfigMap, original).unwrap();
    assert_eq!(copy["metadata"]["labels"], json!({"app": "a", "kubeocean.io/managed-by": "kubeocean"}));
    assert_eq!(
        copy["metadata"]["annotations"],
        json!({"note": "n", "kubeocean.io/virtual-name": "x", "kubeocean.io/virtual-namespace": "default"})
    );
    assert_eq!(
        (&copy["data"], &copy["binaryData"], copy.get("immutable")),
        (&json!({"k": "v"}), &json!({"b": "AA=="}), None)
    );
    assert_eq!(tree::namespace(&copy), "mount");
    assert_eq!(Thing::of_copy(Kind::ConfigMap, &copy), Some(Thing::new(Kind::ConfigMap, "default", "x")));
}

#[test]
fn a_token_secret_does_not_become_one_of_the_worker_cluster() {
    let copy =
        made(Kind::Secret, json!({"type": "kubernetes.io/service-account-token", "data": {"token": "eA=="}})).unwrap();
    assert_eq!((&copy["type"], &copy["data"]), (&json!("Opaque"), &json!({"token": "eA=="})));
    assert_eq!(made(Kind::Secret, json!({"type": "kubernetes.io/tls"})).unwrap()["type"], "kubernetes.io/tls");
}

#[test]
fn a_claim_must_be_bound_and_is_bound_again_below() {
    let claim = |phase: &str, volume: &str| json!({"spec": {"volumeName": volume, "storageClassName": "fast", "accessModes": ["ReadWriteOnce"]}, "status": {"phase": phase}});
    let copy = made(Kind::Claim, claim("Bound", "pv-1")).unwrap();
    assert_eq!(
        copy["spec"],
        json!({"volumeName": "pv-1-8cb1e6436dce562d7538b2167b7c4b84", "storageClassName": "", "accessModes": ["ReadWriteOnce"]})
    );
    assert!(made(Kind::Claim, claim("Pending", "")).unwrap_err().contains("is not bound, current phase: Pending"));
    assert!(made(Kind::Claim, claim("Bound", "")).unwrap_err().contains("names no volume"));
}

#[test]
fn a_volume_is_kept_when_its_copy_goes_and_finds_its_secret_in_the_mount_namespace() {
    let volume = json!({"spec": {
        "claimRef": {"name": "c"}, "persistentVolumeReclaimPolicy": "Delete", "storageClassName": "fast",
        "csi": {"driver": "d", "nodePublishSecretRef": {"name": "s", "namespace": "kube-system"}},
    }});
    let copy = made(Kind::Volume, volume).unwrap();
    assert_eq!(copy["spec"]["persistentVolumeReclaimPolicy"], "Retain");
    assert!(copy["spec"].get("claimRef").is_none());
    assert_eq!(
        copy["spec"]["csi"]["nodePublishSecretRef"],
        json!({"name": physical("kube-system", "s"), "namespace": "mount"})
    );
    assert!(copy["metadata"].get("namespace").is_none());
}

#[test]
fn no_volume_names_a_secret_of_the_worker_cluster() {
    let at = |name: &str, namespace: &str| json!({"name": name, "namespace": namespace});
    let there = |name: &str, namespace: &str| json!({"name": physical(namespace, name), "namespace": "mount"});
    let csi = json!({"spec": {"csi": {"driver": "d", "nodeStageSecretRef": at("a", "kube-system"), "controllerExpandSecretRef": at("b", "x")}}});
    assert_eq!(volume_secrets(&csi).len(), 2);
    let copy = made(Kind::Volume, csi).unwrap();
    assert_eq!(copy["spec"]["csi"]["nodeStageSecretRef"], there("a", "kube-system"));
    assert_eq!(copy["spec"]["csi"]["controllerExpandSecretRef"], there("b", "x"));
    let copy = made(Kind::Volume, json!({"spec": {"iscsi": {"secretRef": {"name": "a"}}}})).unwrap();
    assert_eq!(copy["spec"]["iscsi"]["secretRef"], there("a", ""), "of no namespace");
    for kind in ["iscsi", "flexVolume", "cephfs", "rbd", "scaleIO", "storageos"] {
        let bound =
            json!({"spec": {"claimRef": {"name": "c", "namespace": "shop"}, kind: {"secretRef": {"name": "a"}}}});
        assert_eq!(volume_secrets(&bound), [Thing::new(Kind::Secret, "shop", "a")].into(), "{kind}: the claim's");
        assert_eq!(made(Kind::Volume, bound).unwrap()["spec"][kind]["secretRef"], there("a", "shop"), "{kind}");
    }
    let azure = json!({"spec": {"azureFile": {"shareName": "s", "secretName": "a", "secretNamespace": "x"}}});
    assert_eq!(
        made(Kind::Volume, azure).unwrap()["spec"]["azureFile"],
        json!({"shareName": "s", "secretName": physical("x", "a"), "secretNamespace": "mount"})
    );
}
