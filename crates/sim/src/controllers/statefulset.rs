//! StatefulSets: pods with stable names and volumes.

use atoll_meta::Status;
use serde_json::{Value, json};

use super::ordinal::{Names, decide};
use super::revision::{self, LABEL};
use super::{Again, create_pods, delete_pods, parent, retry, write_status};
use crate::child::{claim_pods, pod_of, selector};
use crate::kind::Kind;
use crate::world::{Work, World};
use crate::write;

/// Looks after one StatefulSet.
pub async fn reconcile(world: &World, work: &Work) -> Again {
    let Some(set) = parent(world, Kind::StatefulSet, work) else { return Ok(None) };
    let pods = claim_pods(world, work, Kind::StatefulSet, &set, &selector(&set)).await?;
    if !set["metadata"]["deletionTimestamp"].is_null() {
        return Ok(None);
    }
    let history = revision::sync(world, work, Kind::StatefulSet, &set).await?;
    let newest = history.newest();
    let update = revision::name(&newest).to_owned();
    let known = set["status"]["currentRevision"].as_str().filter(|name| history.named(name).is_some());
    let current = known.unwrap_or(&update).to_owned();
    let plan = decide(&set, &pods, Names { current: &current, update: &update }, world.now());
    let mut made = Vec::new();
    for (number, name) in &plan.create {
        let revision = history.named(name).unwrap_or(&newest);
        make_claims(world, &set, *number).await?;
        made.push(pod(&set, revision, *number));
    }
    let (_, failure) = create_pods(world, work, &set, made).await;
    delete_pods(world, work, &set, &plan.delete).await?;
    write_status(world, work, Kind::StatefulSet, &set, &plan.status).await?;
    history
        .trim(world, work, &set, |one| {
            let name = revision::name(one);
            name == current || pods.iter().any(|pod| pod.head().label(LABEL) == Some(name))
        })
        .await?;
    match failure {
        // The predecessor of the same name is still going; its last event calls again.
        Some(status) if status.code == 409 => Ok(Some(std::time::Duration::from_secs(1))),
        failure => retry(failure, plan.again),
    }
}

/// A pod with a number.
fn pod(set: &Value, revision: &Value, number: i64) -> Value {
    let own = set["metadata"]["name"].as_str().unwrap_or_default();
    let name = format!("{own}-{number}");
    let mut pod = pod_of(Kind::StatefulSet, set, &revision::template(revision));
    if let Some(meta) = pod["metadata"].as_object_mut() {
        meta.remove("generateName");
    }
    pod["metadata"]["name"] = name.clone().into();
    pod["metadata"]["labels"][LABEL] = revision::name(revision).into();
    pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] = name.clone().into();
    pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"] = number.to_string().into();
    pod["spec"]["hostname"] = name.into();
    if let Some(service) = set["spec"]["serviceName"].as_str().filter(|name| !name.is_empty()) {
        pod["spec"]["subdomain"] = service.into();
    }
    let mut volumes: Vec<Value> = claims(set)
        .map(|claim| {
            let volume = &claim["metadata"]["name"];
            json!({"name": volume, "persistentVolumeClaim": {"claimName": claim_name(set, claim, number)}})
        })
        .collect();
    let own_names: Vec<Value> = volumes.iter().map(|volume| volume["name"].clone()).collect();
    let others = pod["spec"]["volumes"].as_array().into_iter().flatten();
    volumes.extend(others.filter(|volume| !own_names.contains(&volume["name"])).cloned());
    if !volumes.is_empty() {
        pod["spec"]["volumes"] = volumes.into();
    }
    pod
}

fn claims(set: &Value) -> impl Iterator<Item = &Value> {
    set["spec"]["volumeClaimTemplates"].as_array().into_iter().flatten()
}

fn claim_name(set: &Value, claim: &Value, number: i64) -> String {
    let text = |value: &Value| value["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    format!("{}-{}-{number}", text(claim), text(set))
}

/// Makes the claims of a pod that are missing. They outlive the pod.
async fn make_claims(world: &World, set: &Value, number: i64) -> Result<(), Status> {
    let namespace = set["metadata"]["namespace"].as_str().unwrap_or_default();
    for template in claims(set) {
        let name = claim_name(set, template, number);
        if world.cache(Kind::PersistentVolumeClaim).get(namespace, &name).is_some() {
            continue;
        }
        let mut labels = template["metadata"]["labels"].clone();
        for (key, value) in set["spec"]["selector"]["matchLabels"].as_object().into_iter().flatten() {
            labels[key] = value.clone();
        }
        let mut claim = json!({
            "kind": "PersistentVolumeClaim", "apiVersion": "v1",
            "metadata": {"name": name, "labels": labels}, "spec": template["spec"],
        });
        if let Some(annotations) = template["metadata"].get("annotations") {
            claim["metadata"]["annotations"] = annotations.clone();
        }
        match write::create(&world.manager, Kind::PersistentVolumeClaim, namespace, &claim).await {
            Ok(_) => {}
            Err(status) if status.code == 409 => {}
            Err(status) => return Err(status),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_has_its_number_everywhere() {
        let set = json!({"metadata": {"name": "db", "namespace": "d", "uid": "u"},
            "spec": {"serviceName": "db", "volumeClaimTemplates": [{"metadata": {"name": "data"}}]}});
        let revision = json!({"metadata": {"name": "db-abc"}, "data": {"spec": {"template": {
            "$patch": "replace", "metadata": {"labels": {"app": "db"}}, "spec": {"volumes": [{"name": "data"}, {"name": "tmp"}]}}}}});
        let pod = pod(&set, &revision, 2);
        assert_eq!(pod["metadata"]["name"], "db-2");
        assert_eq!(pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"], "2");
        assert_eq!(pod["metadata"]["labels"][LABEL], "db-abc");
        assert_eq!((&pod["spec"]["hostname"], &pod["spec"]["subdomain"]), (&json!("db-2"), &json!("db")));
        assert_eq!(
            pod["spec"]["volumes"],
            json!([
            {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-2"}}, {"name": "tmp"}])
        );
        assert!(pod["spec"].get("$patch").is_none());
    }
}
