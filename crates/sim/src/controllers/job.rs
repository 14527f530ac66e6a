//! Jobs: pods that end.

use atoll_meta::Status;
use futures::{FutureExt as _, StreamExt as _};
use serde_json::{Value, json};

use super::completion::{FINALIZER, INDEX, decide, is_finished};
use super::{Again, create_pods, delete_pods, parent, retry, split, tell, write_status};
use crate::child::{claim_pods, pod_of, selector};
use crate::kind::Kind;
use crate::time;
use crate::world::{Work, World};
use crate::write;

/// How many finalizers are removed at once.
const WIDTH: usize = 8;

/// Looks after one Job.
pub async fn reconcile(world: &World, work: &Work) -> Again {
    let Some(job) = parent(world, Kind::Job, work) else { return release_orphans(world, work).await };
    if job["spec"]["managedBy"].as_str().is_some_and(|name| name != "kubernetes.io/job-controller") {
        return Ok(None);
    }
    let pods = claim_pods(world, work, Kind::Job, &job, &selector(&job)).await?;
    let plan = decide(&job, &pods, world.now());
    let made = plan.create.iter().map(|index| pod(&job, *index)).collect();
    let (_, failure) = create_pods(world, work, &job, made).await;
    delete_pods(world, work, &job, &plan.delete).await?;
    // Counted first, released then: a pod is never forgotten, and never counted twice.
    write_status(world, work, Kind::Job, &job, &plan.status).await?;
    release(world, work, &plan.release).await?;
    for (kind, reason, message) in &plan.events {
        tell(world, &job, kind, reason, message).await;
    }
    if failure.is_some() {
        return retry(failure, plan.again);
    }
    if is_finished(&job) { expire(world, work, &job).await } else { Ok(plan.again) }
}

/// A pod of a Job.
fn pod(job: &Value, index: Option<i64>) -> Value {
    let mut pod = pod_of(Kind::Job, job, &job["spec"]["template"]);
    let mut finalizers: Vec<Value> = pod["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    finalizers.push(FINALIZER.into());
    pod["metadata"]["finalizers"] = finalizers.into();
    let Some(index) = index else { return pod };
    let name = job["metadata"]["name"].as_str().unwrap_or_default();
    pod["metadata"]["generateName"] = format!("{name}-{index}-").into();
    pod["metadata"]["annotations"][INDEX] = index.to_string().into();
    pod["metadata"]["labels"][INDEX] = index.to_string().into();
    if pod["spec"].get("hostname").is_none() {
        pod["spec"]["hostname"] = format!("{name}-{index}").into();
    }
    let variable = json!({"name": "JOB_COMPLETION_INDEX",
        "valueFrom": {"fieldRef": {"fieldPath": format!("metadata.labels['{INDEX}']")}}});
    for list in ["containers", "initContainers"] {
        for container in pod["spec"][list].as_array_mut().into_iter().flatten() {
            let mut all: Vec<Value> = container["env"].as_array().cloned().unwrap_or_default();
            if !all.iter().any(|one| one["name"] == "JOB_COMPLETION_INDEX") {
                all.push(variable.clone());
                container["env"] = all.into();
            }
        }
    }
    if pod["spec"]["initContainers"].is_null()
        && let Some(map) = pod["spec"].as_object_mut()
    {
        map.remove("initContainers");
    }
    pod
}

/// Lets counted pods go.
async fn release(world: &World, work: &Work, names: &[String]) -> Result<(), Status> {
    let (namespace, _) = split(&work.key);
    let patch = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": [FINALIZER]}});
    let writes: Vec<_> = names
        .iter()
        .map(|name| write::strategic(&world.manager, Kind::Pod, (namespace, name), &patch).boxed())
        .collect();
    let mut results = futures::stream::iter(writes).buffer_unordered(WIDTH);
    while let Some(result) = results.next().await {
        match result {
            Ok(written) => world.expect(work, written.revision()),
            Err(status) if status.code == 404 => {}
            Err(status) => return Err(status),
        }
    }
    Ok(())
}

/// The Job is gone: nobody will count its pods any more.
async fn release_orphans(world: &World, work: &Work) -> Again {
    let (namespace, name) = split(&work.key);
    let held: Vec<String> = {
        let book = world.book.read();
        let of_job = book.pods().filter(|pod| {
            let head = pod.head();
            *head.namespace == *namespace
                && head.controller().is_some_and(|owner| &*owner.kind == "Job" && *owner.name == *name)
                && head.finalizers.iter().any(|one| **one == *FINALIZER)
        });
        of_job.map(|pod| pod.name().to_owned()).collect()
    };
    release(world, work, &held).await?;
    Ok(None)
}

/// A finished Job may be set to go by itself.
async fn expire(world: &World, work: &Work, job: &Value) -> Again {
    let Some(seconds) = job["spec"]["ttlSecondsAfterFinished"].as_i64() else { return Ok(None) };
    let ends = job["status"]["conditions"].as_array().into_iter().flatten();
    let end = ends.filter(|one| matches!(one["type"].as_str(), Some("Complete" | "Failed")) && one["status"] == "True");
    let Some(end) = end.filter_map(|one| time::read(&one["lastTransitionTime"])).max() else { return Ok(None) };
    let due = time::plus(end, seconds);
    let now = world.now();
    if due > now {
        return Ok(Some(time::until(now, due)));
    }
    let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground",
                         "preconditions": {"uid": job["metadata"]["uid"]}});
    write::delete_with(&world.manager, Kind::Job, split(&work.key), &options).await?;
    Ok(None)
}
