//! Collects the parts of a trace from the instance and, through it, from the members.

use std::collections::BTreeMap;

use atoll_api::names;
use atoll_api::policy::PropagationSpec;
use atoll_api::words::condition as types;
use atoll_api::work::Work;
use atoll_interpreter::Interpreter;
use atoll_meta::{Gvk, Gvr, Head, Reason, Status};
use atoll_runtime::{Endpoint, Item};
use serde_json::Value;

use super::{
    BindingTrace, ClusterTrace, ObjectTrace, PodTrace, PolicyTrace, TemplateTrace, Trace, WorkTrace, obstacle,
};
use crate::binding::Binding;
use crate::claim::{self, Claim};
use crate::decision::Record;
use crate::discovery::{KindInfo, discover};
use crate::keys::BindingKey;
use crate::policy::Selector;
use crate::{condition, gvr, merge};

/// How many pods that are not ready are told of one object.
const PODS: usize = 5;

/// Follows a template from the instance to the pods in its members.
///
/// `kind` may be a kind or a plural in any case. Members are asked through the instance.
pub async fn trace(instance: &Endpoint, kind: &str, namespace: &str, name: &str) -> Result<Trace, Status> {
    let found = discover(instance).await?;
    let unknown = || Status::new(404, Reason::NotFound, format!("the instance does not serve {kind}"));
    let (gvk, info) = found.named(kind).ok_or_else(unknown)?;
    let namespace = if info.namespaced { namespace } else { "" };
    let place = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
    let mut trace = Trace { subject: format!("{} {place}{name}", gvk.kind), ..Trace::default() };
    let scope = Some(namespace).filter(|namespace| !namespace.is_empty());
    let template = instance.get_opt(&info.gvr, scope, name).await?;
    let key = BindingKey { namespace: namespace.into(), name: names::binding(&gvk.kind, name).into() };
    let binding = instance.get_opt(&key.gvr(), scope, &key.name).await?.and_then(|tree| Binding::of(&Item::of(&tree)?));
    if let Some(template) = &template {
        trace.template = Some(describe(instance, &gvk, template).await?);
        if let Some(claim) = claim::read(template) {
            trace.policy = Some(policy(instance, &claim).await?);
        }
    }
    trace.binding = binding.as_ref().map(binding_trace);
    let mut clusters = instance.list(&gvr::clusters(), None, "").await?.items;
    clusters.sort_by_key(|cluster| cluster["metadata"]["name"].as_str().unwrap_or_default().to_owned());
    // Who may not read scripts gets an answer without them.
    let scripts = instance.list(&gvr::customizations(), None, "").await.map(|list| list.items).unwrap_or_default();
    let (interpreter, _) = Interpreter::default().with_customizations(&scripts);
    let asked = Asked { instance, gvk: &gvk, info: &info, interpreter: &interpreter, namespace, name };
    let parts = clusters.iter().map(|cluster| asked.in_cluster(cluster, binding.as_ref()));
    for part in futures::future::join_all(parts).await {
        trace.clusters.push(part?);
    }
    trace.obstacle = obstacle(&trace);
    Ok(trace)
}

/// What is asked about, and by what it is judged.
struct Asked<'a> {
    instance: &'a Endpoint,
    gvk: &'a Gvk,
    info: &'a KindInfo,
    interpreter: &'a Interpreter,
    namespace: &'a str,
    name: &'a str,
}

async fn describe(instance: &Endpoint, gvk: &Gvk, template: &Value) -> Result<TemplateTrace, Status> {
    let head = template["metadata"].as_object().map(Head::of).unwrap_or_default();
    let mut near = 0;
    if claim::read(template).is_none() {
        let own = Some(&*head.namespace).filter(|namespace| !namespace.is_empty());
        let mut policies = instance.list(&gvr::cluster_policies(), None, "").await?.items;
        if own.is_some() {
            policies.extend(instance.list(&gvr::policies(), own, "").await?.items);
        }
        let selects = |policy: &Value| {
            let spec: Option<PropagationSpec> = serde_json::from_value(policy["spec"].clone()).ok();
            spec.is_some_and(|spec| spec.resource_selectors.iter().any(|selector| Selector::new(selector).gvk() == gvk))
        };
        near = policies.iter().filter(|policy| selects(policy)).count();
    }
    Ok(TemplateTrace {
        replicas: template["spec"]["replicas"].as_i64(),
        ready: template["status"]["readyReplicas"].as_i64(),
        deleting: head.deleting,
        near_policies: near,
    })
}

async fn policy(instance: &Endpoint, claim: &Claim) -> Result<PolicyTrace, Status> {
    let namespace = Some(&*claim.namespace).filter(|namespace| !namespace.is_empty());
    let (resource, kind) = match namespace {
        Some(_) => (gvr::policies(), "PropagationPolicy"),
        None => (gvr::cluster_policies(), "ClusterPropagationPolicy"),
    };
    let place = namespace.map(|namespace| format!("{namespace}/")).unwrap_or_default();
    let mut trace = PolicyTrace { name: format!("{kind} {place}{}", claim.name), ..PolicyTrace::default() };
    if let Some(policy) = instance.get_opt(&resource, namespace, &claim.name).await? {
        trace.exists = true;
        trace.lazy = policy["spec"]["activationPreference"] == "Lazy";
        for name in policy["spec"]["dependentOverrides"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            let resource = if namespace.is_some() { gvr::overrides() } else { gvr::cluster_overrides() };
            if instance.get_opt(&resource, namespace, name).await?.is_none() {
                trace.missing_overrides.push(name.to_owned());
            }
        }
    }
    Ok(trace)
}

fn binding_trace(binding: &Binding) -> BindingTrace {
    let tasks = binding.spec.graceful_eviction_tasks.iter();
    BindingTrace {
        name: binding.key().name.to_string(),
        replicas: binding.spec.replicas,
        scheduler: binding.spec.scheduler_name.clone(),
        suspended: binding.spec.suspension.as_ref().is_some_and(|suspension| suspension.scheduling == Some(true)),
        clusters: binding.targets().into_iter().map(|(name, replicas)| (name.to_owned(), replicas)).collect(),
        leaving: tasks.map(|task| (task.from_cluster.clone(), task.reason.clone())).collect::<BTreeMap<_, _>>(),
        decision: Record::of(binding),
    }
}

impl Asked<'_> {
    async fn in_cluster(&self, cluster: &Value, binding: Option<&Binding>) -> Result<ClusterTrace, Status> {
        let own = cluster["metadata"]["name"].as_str().unwrap_or_default();
        let conditions = cluster["status"]["conditions"].as_array();
        let ready = conditions.into_iter().flatten().find(|condition| condition["type"] == types::READY);
        let target = binding.is_some_and(|binding| binding.targets().contains_key(own));
        let mut trace = ClusterTrace {
            name: own.to_owned(),
            ready: ready.is_some_and(|ready| ready["status"] == "True"),
            trouble: ready.and_then(|ready| ready["message"].as_str()).unwrap_or_default().to_owned(),
            target,
            decision: binding.and_then(Record::of).and_then(|record| record.of_cluster(own)),
            ..ClusterTrace::default()
        };
        let work_name = names::work(&self.gvk.kind, self.name, self.namespace);
        let work = self.instance.get_opt(&gvr::works(), Some(&names::execution_namespace(own)), &work_name).await?;
        if let Some(work) = work.and_then(|tree| serde_json::from_value::<Work>(tree).ok()) {
            trace.work = Some(work_trace(&work_name, &work));
            trace.object = Some(self.object(own).await);
        }
        Ok(trace)
    }

    async fn object(&self, cluster: &str) -> ObjectTrace {
        let (instance, info) = (self.instance, self.info);
        let scope = Some(self.namespace).filter(|namespace| !namespace.is_empty());
        let object = match instance.get_path(&proxied(cluster, &info.gvr.path(scope, Some(self.name)))).await {
            Ok(object) => object,
            Err(status) if status.code == 404 => return ObjectTrace { exists: Some(false), ..ObjectTrace::default() },
            Err(status) => return ObjectTrace { error: status.message, ..ObjectTrace::default() },
        };
        if !merge::is_ours(&object) {
            return ObjectTrace { exists: Some(true), foreign: true, ..ObjectTrace::default() };
        }
        let mut trace = ObjectTrace {
            exists: Some(true),
            health: self.interpreter.health(&object).as_str().to_owned(),
            replicas: object["spec"]["replicas"].as_i64(),
            ready: object["status"]["readyReplicas"].as_i64(),
            ..ObjectTrace::default()
        };
        if let (Some(labels), Some(namespace)) =
            (object.pointer("/spec/selector/matchLabels").and_then(Value::as_object), scope)
        {
            let selector: Vec<String> = labels
                .iter()
                .filter_map(|(key, value)| Some(format!("{}%3D{}", escape(key), escape(value.as_str()?))))
                .collect();
            let path = format!(
                "{}?labelSelector={}",
                Gvr::new("", "v1", "pods").path(Some(namespace), None),
                selector.join("%2C")
            );
            if let Ok(list) = instance.get_path(&proxied(cluster, &path)).await {
                trace.pods = list["items"].as_array().into_iter().flatten().filter_map(pod_trace).take(PODS).collect();
            }
        }
        trace
    }
}

fn work_trace(name: &str, work: &Work) -> WorkTrace {
    let conditions = work.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let applied = condition::get(conditions, types::APPLIED);
    WorkTrace {
        name: name.to_owned(),
        applied: applied.map(|applied| applied.status.clone()).unwrap_or_default(),
        message: applied.map(|applied| applied.message.clone()).unwrap_or_default(),
        suspended: work.spec.suspend_dispatching == Some(true),
    }
}

fn proxied(cluster: &str, path: &str) -> String {
    format!("{}/proxy{path}", gvr::clusters().path(None, Some(cluster)))
}

fn escape(text: &str) -> String {
    text.replace('%', "%25").replace('/', "%2F").replace('=', "%3D").replace(',', "%2C")
}

/// A pod that is not ready, and what keeps it.
pub(super) fn pod_trace(pod: &Value) -> Option<PodTrace> {
    let status = &pod["status"];
    let conditions = || status["conditions"].as_array().into_iter().flatten();
    if conditions().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
        || status["phase"] == "Succeeded"
    {
        return None;
    }
    let containers = ["initContainerStatuses", "containerStatuses"]
        .into_iter()
        .flat_map(|field| status[field].as_array().into_iter().flatten());
    let waiting = containers.filter_map(|container| {
        let state = &container["state"];
        let found = [&state["waiting"], &state["terminated"]].into_iter().find(|state| state.is_object())?;
        Some(format!(
            "{} {}",
            found["reason"].as_str().unwrap_or_default(),
            found["message"].as_str().unwrap_or_default()
        ))
    });
    let unscheduled =
        conditions().find(|condition| condition["type"] == "PodScheduled" && condition["status"] == "False");
    let unscheduled = unscheduled.and_then(|condition| condition["message"].as_str()).map(ToOwned::to_owned);
    let reason = unscheduled
        .or_else(|| waiting.into_iter().next())
        .or_else(|| status["message"].as_str().map(ToOwned::to_owned));
    Some(PodTrace {
        name: pod["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
        phase: status["phase"].as_str().unwrap_or("Unknown").to_owned(),
        reason: reason.unwrap_or_default().trim().to_owned(),
    })
}
