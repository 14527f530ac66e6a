//! Pausing, resuming and restarting workloads; a Service for a workload.

use atoll_api::names;
use atoll_index::{OwnerOf, ResourceName};
use atoll_meta::{Status, time};
use atoll_runtime::Patch;
use prost_reflect::MethodDescriptor;
use serde_json::{Value, json};

use super::list::{self, Paging};
use super::{object, wrap};
use crate::ask::{self, Ask};
use crate::context::Ctx;
use crate::kinds::{CRON_JOB, DEPLOYMENT, JOB, Kind, POLICY, SERVICE};

async fn patched(
    ctx: &Ctx,
    kind: &Kind,
    method: &MethodDescriptor,
    input: &Value,
    mut change: Value,
) -> Result<Value, Status> {
    if let Some(version) = &ctx.wish.resource_version {
        change["metadata"]["resourceVersion"] = version.as_str().into();
    }
    let ask = Ask(input);
    let (instance, namespace, name) = (ask.segment("instance")?, ask.segment("namespace")?, ask.segment("name")?);
    let done =
        ctx.endpoint(instance).await?.patch(&kind.gvr(), Some(namespace), name, "", Patch::Merge, &change).await?;
    ctx.settle(instance, kind, &done).await;
    let shaped = list::shaped(ctx, kind, instance, vec![done]).await?;
    Ok(wrap(method, shaped.first().unwrap_or(&Value::Null)))
}

/// Pauses, resumes or restarts a Deployment.
pub async fn deployment(ctx: &Ctx, name: &str, method: &MethodDescriptor, input: &Value) -> Result<Value, Status> {
    let change = match name {
        "PauseDeployment" => json!({"spec": {"paused": true}}),
        "ResumeDeployment" => json!({"spec": {"paused": null}}),
        _ => {
            let now = time::format(ctx.core.hub.now());
            json!({"spec": {"template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": now}}}}})
        }
    };
    patched(ctx, &DEPLOYMENT, method, input, change).await
}

/// Restarts the pods of a StatefulSet or DaemonSet.
pub async fn restart(ctx: &Ctx, kind: &Kind, method: &MethodDescriptor, input: &Value) -> Result<Value, Status> {
    let now = time::format(ctx.core.hub.now());
    let change =
        json!({"spec": {"template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": now}}}}});
    patched(ctx, kind, method, input, change).await
}

/// Pauses or resumes a CronJob.
pub async fn cron_job(ctx: &Ctx, name: &str, method: &MethodDescriptor, input: &Value) -> Result<Value, Status> {
    patched(ctx, &CRON_JOB, method, input, json!({"spec": {"suspend": name == "PauseCronJob"}})).await
}

/// Runs a Job again: deletes it and makes it anew, unless it changed meanwhile.
pub async fn restart_job(ctx: &Ctx, method: &MethodDescriptor, input: &Value) -> Result<Value, Status> {
    let ask = Ask(input);
    let (instance, namespace, name) = (ask.segment("instance")?, ask.segment("namespace")?, ask.segment("name")?);
    let endpoint = ctx.endpoint(instance).await?;
    let old = endpoint.get(&JOB.gvr(), Some(namespace), name).await?;
    let expected = ask.text("resourceVersion");
    if !expected.is_empty() && old["metadata"]["resourceVersion"] != expected {
        return Err(Status::modified("batch", "jobs", name));
    }
    let options = json!({"propagationPolicy": "Background", "preconditions": {"uid": old["metadata"]["uid"], "resourceVersion": old["metadata"]["resourceVersion"]}});
    endpoint.delete(&JOB.gvr(), Some(namespace), name, &options).await?;
    let made = endpoint.create(&JOB.gvr(), Some(namespace), &afresh(old)).await?;
    ctx.settle(instance, &JOB, &made).await;
    let shaped = list::shaped(ctx, &JOB, instance, vec![made]).await?;
    Ok(wrap(method, shaped.first().unwrap_or(&Value::Null)))
}

/// A Job without what the server gave it.
fn afresh(mut job: Value) -> Value {
    let kept = ["name", "namespace", "annotations", "labels"].map(|key| (key.to_owned(), job["metadata"][key].clone()));
    job["metadata"] = Value::Object(kept.into_iter().filter(|(_, value)| !value.is_null()).collect());
    if let Some(map) = job.as_object_mut() {
        map.remove("status");
    }
    // The selector names the old uid.
    if job["spec"]["manualSelector"] != true
        && let Some(spec) = job["spec"].as_object_mut()
    {
        spec.remove("selector");
        for labels in ["/template/metadata/labels"] {
            if let Some(labels) = job["spec"].pointer_mut(labels).and_then(Value::as_object_mut) {
                labels.retain(|key, _| {
                    !key.ends_with("controller-uid") && key != "job-name" && key != "batch.kubernetes.io/job-name"
                });
            }
        }
    }
    job
}

/// Jobs that a CronJob made in a member.
pub async fn jobs_of(ctx: &Ctx, method: &MethodDescriptor, input: &Value) -> Result<Value, Status> {
    let source = list::source(input)?;
    let mut query = list::query(&JOB, &source, input)?;
    let cron_job = Ask(input).segment("cronjob")?.to_owned();
    query.owner = Some(OwnerOf {
        name: Some(cron_job),
        resource: Some(ResourceName::new("batch", "cronjobs")),
        uid: None,
        generations: 0,
    });
    let page = ctx.core.index.query(&query, &*ctx.rights()).await?;
    let jobs = list::shaped(ctx, &JOB, &source, page.items.iter().map(atoll_index::Item::tree).collect()).await?;
    let (jobs, pagination) = Paging::of(input).cut(jobs);
    let mut answer = list::answer(method, jobs, pagination);
    answer["Cluster"] = input["cluster"].clone();
    Ok(answer)
}

/// Makes a Service and a policy that puts it where a Deployment is.
pub async fn service(ctx: &Ctx, input: &Value) -> Result<Value, Status> {
    let ask = Ask(input);
    let (instance, namespace) = (ask.segment("instance")?, ask.segment("namespace")?);
    let workload = ask.segment("kindName")?;
    let endpoint = ctx.endpoint(instance).await?;
    let deployment = endpoint.get(&DEPLOYMENT.gvr(), Some(namespace), workload).await?;
    let policies = endpoint.list(&POLICY.gvr(), Some(namespace), "").await?.items;
    let target = super::policy::Target {
        api_version: "apps/v1".into(),
        kind: "Deployment".into(),
        namespace: namespace.into(),
        name: workload.into(),
    };
    let policy = policies.into_iter().find(|policy| target.selected_by(policy, &deployment["metadata"]["labels"]));
    let policy = policy.ok_or_else(|| {
        crate::transcode::status::precondition(format!("no policy of the namespace selects {workload}"))
    })?;
    let service = object::prepared(&SERVICE, input, None)?;
    let name = service["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    ask::segment("metadata.name", &name)?;
    let made = endpoint.create(&SERVICE.gvr(), Some(namespace), &service).await?;
    let copy = json!({
        "kind": "PropagationPolicy", "apiVersion": POLICY.api_version(),
        "metadata": {"name": names::generated_policy(&name, namespace, "/v1, Kind=Service"), "namespace": namespace},
        "spec": {"resourceSelectors": [{"apiVersion": "v1", "kind": "Service", "namespace": namespace, "name": name}], "placement": policy["spec"]["placement"]},
    });
    endpoint.ensure(&POLICY.gvr(), Some(namespace), &copy).await?;
    ctx.settle(instance, &SERVICE, &made).await;
    Ok(json!({}))
}
