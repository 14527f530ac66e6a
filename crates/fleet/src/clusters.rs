//! Clusters: their namespaces, their ways, their taints and their end.

use std::sync::Arc;
use std::time::Duration;

use atoll_api::cluster::{Cluster, ClusterSyncMode};
use atoll_api::names;
use atoll_api::words::{TRUE, condition as types, finalizer, label, taint};
use atoll_meta::Status;
use atoll_runtime::{Patch, work};
use k8s_openapi::api::core::v1::Taint;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::{Value, json};

use crate::core::Core;
use crate::execute::Executor;
use crate::member::Member;
use crate::probe::Prober;
use crate::{condition, detector, gvr};

type Again = Result<Option<Duration>, Status>;

/// Brings everything around a cluster in order.
pub async fn tend(core: Arc<Core>, name: Arc<str>) -> Again {
    let Some(item) = core.informers().clusters.cache.get("", &name) else {
        core.members.remove(&name);
        return Ok(None);
    };
    let mut cluster: Cluster = item.decode().map_err(Status::internal)?;
    cluster.metadata.resource_version = Some(item.revision.to_string());
    if item.object.head.deleting {
        return part(&core, &cluster, &name).await;
    }
    ensure_finalizer(&core, &cluster, &name).await?;
    ensure_namespace(&core, &name).await?;
    let taints = taints(&cluster.status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default(), &cluster.spec.taints);
    if let Some(taints) = taints {
        let patch = json!({"metadata": {"resourceVersion": item.revision}, "spec": {"taints": taints}});
        core.instance.patch(&gvr::clusters(), None, &name, "", Patch::Merge, &patch).await?;
    }
    if cluster.spec.sync_mode == ClusterSyncMode::Push {
        reach(&core, &item.tree(), &name).await?;
    }
    Ok(None)
}

async fn ensure_finalizer(core: &Core, cluster: &Cluster, name: &str) -> Result<(), Status> {
    let mut finalizers = cluster.metadata.finalizers.clone().unwrap_or_default();
    if finalizers.iter().any(|own| own == finalizer::CLUSTER) {
        return Ok(());
    }
    finalizers.push(finalizer::CLUSTER.to_owned());
    let patch = json!({"metadata": {"finalizers": finalizers, "resourceVersion": cluster.metadata.resource_version}});
    core.instance.patch(&gvr::clusters(), None, name, "", Patch::Merge, &patch).await?;
    Ok(())
}

async fn ensure_namespace(core: &Core, name: &str) -> Result<(), Status> {
    let namespace = names::execution_namespace(name);
    if core.informers().namespaces.cache.get("", &namespace).is_none() {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": {label::SYSTEM: TRUE}}});
        core.instance.ensure(&gvr::core("namespaces"), None, &object).await?;
    }
    Ok(())
}

/// The taints a cluster gets by its conditions; `None` when it has them.
pub fn taints(conditions: &[Condition], present: &[Taint]) -> Option<Vec<Taint>> {
    let wanted = match condition::get(conditions, types::READY).map(|ready| ready.status.as_str()) {
        Some("False") => Some(taint::NOT_READY),
        Some("Unknown") => Some(taint::UNREACHABLE),
        _ => None,
    };
    let ours = |own: &Taint| own.effect == "NoSchedule" && (own.key == taint::NOT_READY || own.key == taint::UNREACHABLE);
    let right = present.iter().filter(|own| ours(own)).map(|own| own.key.as_str()).eq(wanted);
    if right {
        return None;
    }
    let mut taints: Vec<Taint> = present.iter().filter(|own| !ours(own)).cloned().collect();
    taints.extend(wanted.map(|key| Taint { key: key.to_owned(), effect: "NoSchedule".to_owned(), ..Taint::default() }));
    Some(taints)
}

/// Makes the way to a member, or a new one when what it was made from changed.
async fn reach(core: &Arc<Core>, cluster: &Value, name: &Arc<str>) -> Result<(), Status> {
    let secret = secret(core, cluster).await?;
    let spec = &cluster["spec"];
    let origin = format!(
        "{} {} {} {} {}",
        spec["apiEndpoint"],
        spec["secretRef"],
        spec["insecureSkipTLSVerification"],
        spec["proxyURL"],
        secret.as_ref().map(|secret| secret["data"].to_string()).unwrap_or_default()
    );
    if core.members.get(name).is_some_and(|member| member.origin == origin) {
        return Ok(());
    }
    let endpoint = core.options.members.resolve(cluster, secret.as_ref()).await?;
    let index = core.index.clone();
    let names = Arc::new(move |id: &str| index.work(id).map(|(_, name)| name));
    let member = Member::new(name, endpoint, origin, names, core.stop.child_token());
    core.members.put(member.clone());
    start(core, &member);
    Ok(())
}

async fn secret(core: &Core, cluster: &Value) -> Result<Option<Value>, Status> {
    let reference = &cluster["spec"]["secretRef"];
    let (Some(namespace), Some(name)) = (reference["namespace"].as_str(), reference["name"].as_str()) else { return Ok(None) };
    if let Some(item) = core.informers().secrets.cache.get(namespace, name) {
        return Ok(Some(item.tree()));
    }
    core.instance.get_opt(&gvr::core("secrets"), Some(namespace), name).await
}

/// Starts the workers and the prober of a member.
fn start(core: &Arc<Core>, member: &Arc<Member>) {
    let executor = Arc::new(Executor {
        instance: core.instance.clone(),
        works: core.informers().works.cache.clone(),
        interpreter: core.interpreter.clone(),
        clock: core.options.clock.clone(),
    });
    let weak = Arc::downgrade(member);
    let run = move |name: Arc<str>| {
        let (executor, member) = (executor.clone(), weak.upgrade());
        async move {
            match member {
                Some(member) => executor.execute(member, name).await,
                None => Ok(None),
            }
        }
    };
    tokio::spawn(work(member.queue.clone(), core.options.workers, member.stopped(), run));
    let (queue, works) = (member.queue.clone(), core.informers().works.cache.clone());
    let namespace = names::execution_namespace(&member.name);
    let back = move || {
        for item in works.list_in(&namespace) {
            queue.add((*item.object.head.name).into());
        }
    };
    let prober = Prober {
        instance: core.instance.clone(),
        member: member.clone(),
        clock: core.options.clock.clone(),
        interval: core.options.probe_interval,
        threshold: core.options.probe_threshold,
        back: Arc::new(back),
    };
    tokio::spawn(prober.run());
}

/// A cluster leaves: its works go, bindings move away, then its namespace and itself.
async fn part(core: &Core, cluster: &Cluster, name: &Arc<str>) -> Again {
    if !cluster.metadata.finalizers.iter().flatten().any(|own| own == finalizer::CLUSTER) {
        return Ok(None);
    }
    let namespace = names::execution_namespace(name);
    let works = core.informers().works.cache.list_in(&namespace);
    let conditions = cluster.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let reachable = condition::is_true(conditions, types::READY) && core.members.get(name).is_some();
    for item in &works {
        let work_name = &*item.object.head.name;
        if !item.object.head.deleting {
            core.instance.delete(&gvr::works(), Some(&namespace), work_name, &Value::Null).await?;
        }
        if !reachable {
            // Nobody can remove the copies there; the works must not wait for ever.
            detector::remove_finalizer(core, &gvr::works(), Some(&namespace), work_name, finalizer::EXECUTION).await?;
        }
    }
    if !works.is_empty() || is_named(core, name) {
        return Ok(Some(Duration::from_millis(500)));
    }
    core.instance.delete(&gvr::core("namespaces"), None, &namespace, &Value::Null).await?;
    core.members.remove(name);
    detector::remove_finalizer(core, &gvr::clusters(), None, name, finalizer::CLUSTER).await?;
    Ok(None)
}

/// Whether a binding still sends its template to a cluster.
fn is_named(core: &Core, name: &str) -> bool {
    let mut keys = core.binding_keys().into_iter();
    keys.any(|key| {
        core.binding(&key).is_some_and(|binding| {
            let named = binding.spec.clusters.iter().any(|cluster| cluster.name == name);
            if named {
                core.queues.decisions.add(key.clone());
            }
            // A binding nobody decides on cannot move away.
            named && crate::decision::is_ours(&binding)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taints_follow_the_condition_and_leave_others_alone() {
        let ready = |status: &str| vec![Condition { type_: "Ready".into(), status: status.into(), ..Condition { last_transition_time: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(jiff::Timestamp::UNIX_EPOCH), message: String::new(), observed_generation: None, reason: String::new(), status: String::new(), type_: String::new() } }];
        let own = Taint { key: "mine".into(), effect: "NoSchedule".into(), ..Taint::default() };
        let keys = |taints: Option<Vec<Taint>>| taints.map(|taints| taints.into_iter().map(|taint| taint.key).collect::<Vec<_>>());
        assert_eq!(keys(taints(&ready("True"), &[own.clone()])), None);
        let ill = taints(&ready("False"), &[own.clone()]).unwrap_or_default();
        assert_eq!(keys(Some(ill.clone())), Some(vec!["mine".to_owned(), taint::NOT_READY.to_owned()]));
        assert_eq!(keys(taints(&ready("False"), &ill)), None);
        assert_eq!(keys(taints(&ready("Unknown"), &ill)), Some(vec!["mine".to_owned(), taint::UNREACHABLE.to_owned()]));
        assert_eq!(keys(taints(&ready("True"), &ill)), Some(vec!["mine".to_owned()]));
    }
}
