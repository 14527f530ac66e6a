//! What the methods do. Most are about one kind of objects in the same way: [`operation`] reads
//! that from their names, `list` and `object` do it. The others have functions of their own.

mod aggregation;
mod backup;
mod cluster;
mod custom;
mod elsewhere;
mod event;
mod explain;
mod instance;
mod list;
mod object;
mod operation;
mod pods;
mod policy;
mod promote;
mod search;
mod settings;
mod summary;
mod workload;
mod workspace;

use atoll_meta::Status;
use prost_reflect::{Kind as FieldKind, MethodDescriptor};
use serde_json::{Value, json};

use crate::api::Reply;
use crate::context::Ctx;
use crate::kinds::{DAEMON_SET, STATEFUL_SET};
use crate::pour::pour;
use operation::Operation;

pub use instance::visible_instances;
pub use pods::target as pod_part;

/// Runs a method by name, such as `Apps.ListDeployments`.
pub async fn call(ctx: &Ctx, name: &str, method: &MethodDescriptor, input: &Value) -> Result<Reply, Status> {
    let (service, short) = name.split_once('.').unwrap_or((name, ""));
    let answer = match service {
        "Search" => return search::call(ctx, short, input).await,
        "Pod" if short == "WatchLogs" => return pods::logs(ctx, input).await,
        "Pod" => return Err(crate::transcode::status::unimplemented("commands are run by streams of gRPC")),
        "Backup" => return backup::call(ctx, short, input).await,
        "Explain" => explain::call(ctx, short, input).await?,
        "Promotion" => promote::call(ctx, short, input).await?,
        "Instance" => instance::call(ctx, short, method, input).await?,
        "Cluster" => cluster::call(ctx, short, method, input).await?,
        "Workspace" => workspace::call(ctx, short, input).await?,
        "Aggregation" => aggregation::call(ctx, short, input).await?,
        "CloudShell" | "Insight" | "Image" => elsewhere::call(service, short)?,
        _ => match special(ctx, short, method, input).await? {
            Some(answer) => answer,
            None => generic(ctx, short, method, input).await?,
        },
    };
    Ok(Reply::One(answer))
}

/// Methods that are not about objects of a kind in the usual way.
async fn special(ctx: &Ctx, name: &str, method: &MethodDescriptor, input: &Value) -> Result<Option<Value>, Status> {
    Ok(Some(match name {
        "ListInstanceEvents" | "ListEvents" => event::list(ctx, method, input).await?,
        "ListInstanceEventKinds" => event::kinds(ctx, input).await?,
        "ListNamespaceSummary" => summary::namespaces(ctx, input).await?,
        "ListMemberClusterNamespaceSummary" => summary::member_namespaces(ctx, input).await?,
        "ListIngressClassForMemberCluster" => summary::ingress_classes(ctx, input).await?,
        "ListCustomResourceDefinitionGroups" => summary::definition_groups(ctx, input).await?,
        "ListJobsByCronJobsName" => workload::jobs_of(ctx, method, input).await?,
        "PauseDeployment" | "ResumeDeployment" | "RestartDeployment" => {
            workload::deployment(ctx, name, method, input).await?
        }
        "PauseCronJob" | "ResumeCronJob" => workload::cron_job(ctx, name, method, input).await?,
        "RestartStatefulSet" => workload::restart(ctx, &STATEFUL_SET, method, input).await?,
        "RestartDaemonSet" => workload::restart(ctx, &DAEMON_SET, method, input).await?,
        "RestartJob" => workload::restart_job(ctx, method, input).await?,
        "CreateWorkloadService" => workload::service(ctx, input).await?,
        "PromoteMemberClusterDeployment" | "PromoteMemberClusterService" | "PromoteMemberClusterIngress" => {
            promote::promote(ctx, name, input).await?
        }
        _ if name.contains("CustomResource") && !name.contains("Definition") => {
            custom::call(ctx, name, method, input).await?
        }
        _ => return Ok(None),
    }))
}

async fn generic(ctx: &Ctx, name: &str, method: &MethodDescriptor, input: &Value) -> Result<Value, Status> {
    let Some((operation, kind)) = operation::parse(name) else {
        return Err(crate::transcode::status::unimplemented(&format!("{name} is not served")));
    };
    match operation {
        Operation::List => list::list(ctx, &kind, method, input).await,
        Operation::Get | Operation::Raw => object::get(ctx, &kind, method, input).await,
        Operation::Create => object::create(ctx, &kind, method, input).await,
        Operation::Update => object::update(ctx, &kind, method, input).await,
        Operation::Patch => object::patch(ctx, &kind, method, input).await,
        Operation::Delete => object::delete(ctx, &kind, input).await,
    }
}

/// Puts an object into the answer of a method: as text, as the answer itself, or as its one field.
pub fn wrap(method: &MethodDescriptor, object: &Value) -> Value {
    let output = method.output();
    if let Some(field) =
        output.get_field_by_name("data").filter(|field| field.kind() == FieldKind::String && !field.is_list())
    {
        return json!({field.json_name(): object.to_string()});
    }
    if output.get_field_by_name("metadata").is_some() {
        return pour(object, &output);
    }
    let inner = output.fields().find_map(|field| match field.kind() {
        FieldKind::Message(message) => Some((field.json_name().to_owned(), message)),
        _ => None,
    });
    inner.map_or_else(|| json!({}), |(name, message)| json!({name: pour(object, &message)}))
}
