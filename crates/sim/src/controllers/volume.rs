//! Volumes: claims find or get a volume, volumes end with their claims.

use atoll_meta::selector::LabelSelector;
use atoll_meta::{Quantity, Status};
use serde_json::{Value, json};

use super::{Again, parent, split, tell, write_status};
use crate::kind::Kind;
use crate::world::{Work, World};
use crate::write;

/// Who makes volumes of the simulated storage class.
const PROVISIONER: &str = "sim.atoll.io/volume";
/// The storage class of every simulated cluster.
const CLASS: &str = "standard";
const DEFAULT: &str = "storageclass.kubernetes.io/is-default-class";
const BOUND: &str = "pv.kubernetes.io/bind-completed";

/// Makes the storage class.
pub async fn ensure_class(world: &World) -> Result<(), Status> {
    let class = json!({
        "kind": "StorageClass", "apiVersion": "storage.k8s.io/v1", "metadata": {"name": CLASS, "annotations": {DEFAULT: "true"}},
        "provisioner": PROVISIONER, "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate", "allowVolumeExpansion": true,
    });
    world.manager.ensure(Kind::StorageClass.gvr(), None, &class).await.map(drop)
}

/// What a claim needs.
#[derive(Debug, PartialEq)]
pub enum Need {
    /// Nothing.
    Nothing,
    /// This volume.
    Bind(String),
    /// A new volume.
    Provision,
    /// Somebody else to act.
    Wait,
}

/// Decides what a claim needs.
pub fn decide(claim: &Value, volumes: &[Value], ours: bool) -> Need {
    let meta = &claim["metadata"];
    if !meta["deletionTimestamp"].is_null() {
        return Need::Nothing;
    }
    let named = claim["spec"]["volumeName"].as_str().unwrap_or_default();
    let mine = |volume: &&Value| {
        let claimed = &volume["spec"]["claimRef"];
        claimed["name"] == meta["name"]
            && claimed["namespace"] == meta["namespace"]
            && (claimed["uid"].is_null() || claimed["uid"] == meta["uid"])
    };
    if !named.is_empty() {
        let found = volumes.iter().find(|volume| volume["metadata"]["name"] == named);
        return match found {
            Some(volume) if volume["spec"]["claimRef"].is_null() || mine(&volume) => Need::Bind(named.to_owned()),
            _ => Need::Wait,
        };
    }
    let name = |volume: &Value| volume["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    if let Some(volume) = volumes.iter().find(mine) {
        return Need::Bind(name(volume));
    }
    let mut free: Vec<&Value> =
        volumes.iter().filter(|volume| volume["spec"]["claimRef"].is_null() && suits(claim, volume)).collect();
    free.sort_by_key(|volume| size(&volume["spec"]["capacity"]["storage"]));
    match free.first() {
        Some(volume) => Need::Bind(name(volume)),
        None if ours => Need::Provision,
        None => Need::Wait,
    }
}

fn size(amount: &Value) -> i64 {
    amount.as_str().and_then(|text| Quantity::parse(text).ok()).map_or(0, Quantity::value)
}

/// Whether a volume is large enough and of the right kind.
fn suits(claim: &Value, volume: &Value) -> bool {
    let text =
        |object: &Value, field: &str, default: &str| object["spec"][field].as_str().unwrap_or(default).to_owned();
    let modes = |object: &Value| object["spec"]["accessModes"].as_array().cloned().unwrap_or_default();
    let offered = modes(volume);
    let selector = &claim["spec"]["selector"];
    size(&volume["spec"]["capacity"]["storage"]) >= size(&claim["spec"]["resources"]["requests"]["storage"])
        && text(volume, "storageClassName", "") == text(claim, "storageClassName", "")
        && text(volume, "volumeMode", "Filesystem") == text(claim, "volumeMode", "Filesystem")
        && modes(claim).iter().all(|mode| offered.contains(mode))
        && volume["metadata"]["deletionTimestamp"].is_null()
        && (selector.is_null()
            || LabelSelector::from_value(selector).is_ok_and(|selector| selector.matches_tree(volume)))
}

/// Looks after one claim.
pub async fn reconcile_claim(world: &World, work: &Work) -> Again {
    let Some(mut claim) = parent(world, Kind::PersistentVolumeClaim, work) else { return Ok(None) };
    if claim["status"]["phase"] == "Bound" {
        return grow(world, work, &claim).await;
    }
    adopt_class(world, work, &mut claim).await?;
    let volumes: Vec<Value> =
        world.cache(Kind::PersistentVolume).list().iter().map(atoll_runtime::Item::tree).collect();
    let class = claim["spec"]["storageClassName"].as_str().unwrap_or_default();
    let ours =
        world.cache(Kind::StorageClass).get("", class).is_some_and(|item| item.tree()["provisioner"] == PROVISIONER);
    match decide(&claim, &volumes, ours) {
        Need::Nothing | Need::Wait => Ok(None),
        Need::Bind(name) => {
            let volume = volumes.iter().find(|volume| volume["metadata"]["name"] == name.as_str());
            bind(world, work, &claim, &name, volume).await
        }
        Need::Provision => {
            let name = format!("pvc-{}", claim["metadata"]["uid"].as_str().unwrap_or_default());
            let volume = volume(world, &claim, &name);
            match write::create(&world.manager, Kind::PersistentVolume, "", &volume).await {
                Ok(_) => {
                    tell(
                        world,
                        &claim,
                        "Normal",
                        "ProvisioningSucceeded",
                        &format!("Successfully provisioned volume {name}"),
                    )
                    .await
                }
                Err(status) if status.code == 409 => {}
                Err(status) => return Err(status),
            }
            bind(world, work, &claim, &name, Some(&volume)).await
        }
    }
}

/// A claim without a class takes the default one.
async fn adopt_class(world: &World, work: &Work, claim: &mut Value) -> Result<(), Status> {
    if claim["spec"].get("storageClassName").is_some() {
        return Ok(());
    }
    let classes = world.cache(Kind::StorageClass).list();
    let Some(class) = classes.iter().find(|item| item.tree()["metadata"]["annotations"][DEFAULT] == "true") else {
        return Ok(());
    };
    let name = class.object.head.name.to_string();
    let patch = json!({"spec": {"storageClassName": name}});
    write::merge(&world.manager, Kind::PersistentVolumeClaim, split(&work.key), "", &patch).await?;
    claim["spec"]["storageClassName"] = name.into();
    Ok(())
}

fn claim_ref(claim: &Value) -> Value {
    let meta = &claim["metadata"];
    json!({"kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": meta["namespace"], "name": meta["name"], "uid": meta["uid"]})
}

/// A volume made for a claim.
fn volume(world: &World, claim: &Value, name: &str) -> Value {
    let class = claim["spec"]["storageClassName"].as_str().unwrap_or_default();
    let reclaim = world.cache(Kind::StorageClass).get("", class).map(|item| item.tree()["reclaimPolicy"].clone());
    json!({
        "kind": "PersistentVolume", "apiVersion": "v1",
        "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": PROVISIONER}},
        "spec": {
            "capacity": {"storage": claim["spec"]["resources"]["requests"]["storage"]}, "accessModes": claim["spec"]["accessModes"],
            "persistentVolumeReclaimPolicy": reclaim.filter(Value::is_string).unwrap_or_else(|| "Delete".into()),
            "storageClassName": class, "volumeMode": claim["spec"].get("volumeMode").cloned().unwrap_or_else(|| "Filesystem".into()),
            "claimRef": claim_ref(claim), "hostPath": {"path": format!("/var/lib/volumes/{name}"), "type": "DirectoryOrCreate"},
        },
    })
}

async fn bind(world: &World, work: &Work, claim: &Value, name: &str, volume: Option<&Value>) -> Again {
    if volume.is_some_and(|volume| volume["spec"]["claimRef"]["uid"] != claim["metadata"]["uid"]) {
        let patch = json!({"spec": {"claimRef": claim_ref(claim)}, "metadata": {"annotations": {"pv.kubernetes.io/bound-by-controller": "yes"}}});
        write::merge(&world.manager, Kind::PersistentVolume, ("", name), "", &patch).await?;
    }
    let patch = json!({"spec": {"volumeName": name}, "metadata": {"annotations": {BOUND: "yes"}}});
    write::merge(&world.manager, Kind::PersistentVolumeClaim, split(&work.key), "", &patch).await?;
    let capacity = volume.map_or(&claim["spec"]["resources"]["requests"], |volume| &volume["spec"]["capacity"]);
    let status = json!({"phase": "Bound", "accessModes": claim["spec"]["accessModes"], "capacity": capacity});
    let written = write::merge(
        &world.manager,
        Kind::PersistentVolumeClaim,
        split(&work.key),
        "status",
        &json!({"status": status}),
    )
    .await?;
    world.expect(work, written.revision());
    Ok(None)
}

/// A claim may ask for more room.
async fn grow(world: &World, work: &Work, claim: &Value) -> Again {
    let wanted = &claim["spec"]["resources"]["requests"]["storage"];
    if size(wanted) <= size(&claim["status"]["capacity"]["storage"]) {
        return Ok(None);
    }
    let name = claim["spec"]["volumeName"].as_str().unwrap_or_default();
    let patch = json!({"spec": {"capacity": {"storage": wanted}}});
    write::merge(&world.manager, Kind::PersistentVolume, ("", name), "", &patch).await?;
    let mut status = claim["status"].clone();
    status["capacity"]["storage"] = wanted.clone();
    write_status(world, work, Kind::PersistentVolumeClaim, claim, &status).await?;
    Ok(None)
}

/// Looks after one volume.
pub async fn reconcile_volume(world: &World, work: &Work) -> Again {
    let Some(volume) = parent(world, Kind::PersistentVolume, work) else { return Ok(None) };
    let claimed = &volume["spec"]["claimRef"];
    let text = |field: &str| claimed[field].as_str().unwrap_or_default();
    let claim = world.cache(Kind::PersistentVolumeClaim).get(text("namespace"), text("name"));
    let alive = claim.filter(|item| *item.object.head.uid == *text("uid"));
    let phase = match (claimed.is_null() || text("uid").is_empty(), alive.is_some()) {
        (true, _) => "Available",
        (false, true) => "Bound",
        (false, false) => "Released",
    };
    // A volume is made before the cache knows its claim; only one that was bound can be released.
    if phase == "Released"
        && volume["status"]["phase"] == "Bound"
        && volume["spec"]["persistentVolumeReclaimPolicy"] == "Delete"
    {
        let uid = volume["metadata"]["uid"].as_str().unwrap_or_default();
        write::delete(&world.manager, Kind::PersistentVolume, ("", &work.key), uid, None).await?;
        return Ok(None);
    }
    let mut status = volume["status"].clone();
    if phase != "Released" || volume["status"]["phase"] == "Bound" {
        status["phase"] = phase.into();
    }
    write_status(world, work, Kind::PersistentVolume, &volume, &status).await?;
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(spec: Value) -> Value {
        let mut tree = json!({"metadata": {"name": "c", "namespace": "d", "uid": "u"},
            "spec": {"storageClassName": "standard", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}});
        for (key, value) in spec.as_object().into_iter().flatten() {
            tree["spec"][key] = value.clone();
        }
        tree
    }

    fn volume(name: &str, storage: &str, spec: Value) -> Value {
        let mut tree = json!({"metadata": {"name": name}, "spec": {
            "storageClassName": "standard", "accessModes": ["ReadWriteOnce", "ReadOnlyMany"], "capacity": {"storage": storage}}});
        for (key, value) in spec.as_object().into_iter().flatten() {
            tree["spec"][key] = value.clone();
        }
        tree
    }

    #[test]
    fn a_claim_takes_the_smallest_volume_that_suits() {
        let all = [
            volume("big", "10Gi", json!({})),
            volume("small", "1Gi", json!({})),
            volume("fits", "3Gi", json!({})),
            volume("taken", "2Gi", json!({"claimRef": {"name": "x", "namespace": "d", "uid": "y"}})),
        ];
        assert_eq!(decide(&claim(json!({})), &all, true), Need::Bind("fits".into()));
        assert_eq!(decide(&claim(json!({"accessModes": ["ReadWriteMany"]})), &all, true), Need::Provision);
        assert_eq!(decide(&claim(json!({"storageClassName": "other"})), &all, false), Need::Wait);
        assert_eq!(decide(&claim(json!({"volumeName": "taken"})), &all, true), Need::Wait);
        let kept = [volume("kept", "1Gi", json!({"claimRef": {"name": "c", "namespace": "d"}}))];
        assert_eq!(decide(&claim(json!({})), &kept, true), Need::Bind("kept".into()));
    }
}
