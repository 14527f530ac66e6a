//! Clusters: their namespaces, their ways, their taints and their end.

use std::sync::Arc;
use std::time::Duration;

use atoll_api::cluster::{Cluster, ClusterSyncMode};
use atoll_api::names;
use atoll_api::policy::ClusterTaintPolicy;
use atoll_api::words::{TRUE, condition as types, finalizer, label, reason};
use atoll_meta::Status;
use atoll_runtime::{Patch, work};
use serde_json::{Value, json};

use crate::core::Core;
use crate::execute::Executor;
use crate::member::{self, Member};
use crate::probe::Prober;
use crate::{condition, detector, enroll, gvr, taints};

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
    taint(&core, &cluster, &name).await?;
    match cluster.spec.sync_mode {
        ClusterSyncMode::Push => match reach(&core, &item.tree(), &name).await {
            Err(status) => {
                // What cannot be reached at all is told as such; nothing is removed for that.
                core.members.remove(&name);
                let message = format!("failed to create a ClusterClient: {}", status.message);
                let why = (reason::STATUS_COLLECTION_FAILED, message);
                tell(&core, &cluster, &name, "False", why).await?;
                Err(status)
            }
            Ok(()) => Ok(None),
        },
        ClusterSyncMode::Pull => {
            core.members.remove(&name);
            listen(&core, &cluster, &name).await
        }
    }
}

/// An agent that renews no lease any more leaves its member unknown. Nothing is removed for that.
async fn listen(core: &Core, cluster: &Cluster, name: &str) -> Again {
    let lease = core.instance.get_opt(&gvr::leases(), Some(names::CLUSTER_NAMESPACE), name).await?;
    let renewed = lease.as_ref().and_then(|lease| atoll_meta::time::parse(lease["spec"]["renewTime"].as_str()?));
    let created = cluster.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let (since, grace) = match (renewed, created) {
        (Some(renewed), _) => (renewed, core.options.lease_grace),
        (None, Some(created)) => (created, core.options.lease_grace * 3 / 2),
        (None, None) => return Ok(Some(core.options.lease_grace)),
    };
    let silent = Duration::try_from(core.now().duration_since(since)).unwrap_or_default();
    if let Some(left) = grace.checked_sub(silent).filter(|left| !left.is_zero()) {
        return Ok(Some(left + Duration::from_millis(100)));
    }
    let why = if renewed.is_some() {
        (reason::CLUSTER_STATUS_UNKNOWN, "Agent has stopped renewing its lease.".to_owned())
    } else {
        (reason::CLUSTER_STATUS_NEVER_UPDATED, "Agent has never reported.".to_owned())
    };
    tell(core, cluster, name, "Unknown", why).await?;
    Ok(Some(core.options.lease_grace / 4))
}

/// Says how a cluster is when it does not say so itself.
async fn tell(
    core: &Core,
    cluster: &Cluster,
    name: &str,
    status: &'static str,
    (reason, message): (&'static str, String),
) -> Result<(), Status> {
    let mut conditions = cluster.status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default();
    let wanted = condition::Wanted { type_: types::READY, status, reason, message, generation: 0 };
    if condition::set(&mut conditions, wanted, core.now()) {
        let patch = json!({"status": {"conditions": conditions}});
        core.instance.patch(&gvr::clusters(), None, name, "status", Patch::Merge, &patch).await?;
    }
    Ok(())
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

/// Brings the taints of a cluster in line with its conditions.
async fn taint(core: &Core, cluster: &Cluster, name: &str) -> Result<(), Status> {
    let conditions = cluster.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let mut wanted = taints::by_readiness(conditions, &cluster.spec.taints);
    let mut policies: Vec<ClusterTaintPolicy> =
        core.informers().taint_policies.cache.list().iter().filter_map(|item| item.decode().ok()).collect();
    policies.sort_by(|a, b| {
        a.metadata.creation_timestamp.cmp(&b.metadata.creation_timestamp).then(a.metadata.name.cmp(&b.metadata.name))
    });
    let subject = cluster.into();
    for policy in &policies {
        wanted = taints::by_policy(&policy.spec, &subject, conditions, wanted, core.now());
    }
    if wanted != cluster.spec.taints {
        let patch =
            json!({"metadata": {"resourceVersion": cluster.metadata.resource_version}, "spec": {"taints": wanted}});
        core.instance.patch(&gvr::clusters(), None, name, "", Patch::Merge, &patch).await?;
    }
    Ok(())
}

/// Makes the way to a member, or a new one when what it was made from changed.
async fn reach(core: &Arc<Core>, cluster: &Value, name: &Arc<str>) -> Result<(), Status> {
    let secret = secret(core, cluster).await?;
    let spec = &cluster["spec"];
    let origin = format!(
        "{} {} {} {} {} {}",
        spec["apiEndpoint"],
        spec["secretRef"],
        spec["insecureSkipTLSVerification"],
        spec["proxyURL"],
        spec["proxyHeader"],
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
    let (Some(namespace), Some(name)) = (reference["namespace"].as_str(), reference["name"].as_str()) else {
        return Ok(None);
    };
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
            queue.add_ranked((*item.object.head.name).into(), member::rank(&item) - 1);
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
    let pulls = cluster.spec.sync_mode == ClusterSyncMode::Pull;
    let reachable = condition::is_true(conditions, types::READY) && (pulls || core.members.get(name).is_some());
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
    if pulls {
        // Its agent may do nothing any more.
        for (resource, object) in enroll::rights::of_agent(name) {
            let named = object["metadata"]["name"].as_str().unwrap_or_default();
            core.instance.delete(&resource, object["metadata"]["namespace"].as_str(), named, &Value::Null).await?;
        }
    }
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
