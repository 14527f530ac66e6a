//! Collects the parts of a trace from the instance and, through it, from the members.

use std::collections::BTreeMap;

use atoll_api::names;
use atoll_api::words::{annotation, condition as types};
use atoll_api::work::Work;
use atoll_interpreter::Interpreter;
use atoll_meta::{Gvk, Gvr, Head, Reason, Status};
use atoll_runtime::{Endpoint, Item};
use serde_json::Value;

use super::{
    BindingTrace, ClusterTrace, ObjectTrace, PodTrace, PolicyTrace, TemplateTrace, Trace, WorkTrace, obstacle,
};
use crate::binding::{Binding, Meaning};
use crate::claim::{self, Claim};
use crate::decision::Record;
use crate::discovery::{KindInfo, discover};
use crate::keys::{BindingKey, PolicyKey};
use crate::overrides::{OverridePolicy, Overrides};
use crate::policy::{self, Policies, Policy};
use crate::work::{self, Source};
use crate::{condition, gvr, merge, plan};

/// How many pods that are not ready are told of one object.
const PODS: usize = 5;

/// Follows a template in an instance with the usual settings.
pub async fn trace(instance: &Endpoint, kind: &str, namespace: &str, name: &str) -> Result<Trace, Status> {
    trace_with(instance, &Value::Null, kind, namespace, name).await
}

/// Follows a template from the instance to the pods in its members, with the `settings` of the instance.
///
/// `kind` may be a kind or a plural in any case. Members are asked through the instance.
pub async fn trace_with(
    instance: &Endpoint,
    settings: &Value,
    kind: &str,
    namespace: &str,
    name: &str,
) -> Result<Trace, Status> {
    let options = plan::options(instance, settings);
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
    // Who may not read scripts or overrides gets an answer without them.
    let scripts = instance.list(&gvr::customizations(), None, "").await.map(|list| list.items).unwrap_or_default();
    let (interpreter, _) = Interpreter::default().with_customizations(&scripts);
    let mut source = None;
    if let Some(template) = &template {
        let head = template["metadata"].as_object().map(Head::of).unwrap_or_default();
        let (holder, near) = match claim::read(template) {
            Some(claim) => (held(instance, &claim).await?, 0),
            None => candidate(instance, &gvk, &head, options.preemption).await?,
        };
        let policy = if let Holder::Policy(policy) = &holder { Some(&**policy) } else { None };
        trace.template = Some(TemplateTrace {
            replicas: template["spec"]["replicas"].as_i64(),
            ready: template["status"]["readyReplicas"].as_i64(),
            deleting: head.deleting,
            near_policies: near,
            skipped: options.skip.reason(&gvk, &head),
            unreadable: unreadable(template, policy, &interpreter),
        });
        trace.policy = holder.trace(instance).await?;
        if let Some(binding) = binding.as_ref().filter(|binding| binding.is_of(template)) {
            let overrides = overrides(instance, scope).await.for_object(&gvk, &head);
            source = Some(Source::new(template, binding, overrides));
        }
    }
    trace.binding = binding.as_ref().map(binding_trace);
    let mut clusters = instance.list(&gvr::clusters(), None, "").await?.items;
    clusters.sort_by_key(|cluster| cluster["metadata"]["name"].as_str().unwrap_or_default().to_owned());
    let source = source.as_ref();
    let asked = Asked { instance, gvk: &gvk, info: &info, interpreter: &interpreter, source, namespace, name };
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
    /// What copies are made from; none while there is no binding.
    source: Option<&'a Source<'a>>,
    namespace: &'a str,
    name: &'a str,
}

/// Who has a template, or would get it.
enum Holder {
    Nobody,
    /// A policy that does not exist any more.
    Gone(PolicyKey),
    Policy(Box<Policy>),
}

impl Holder {
    async fn trace(&self, instance: &Endpoint) -> Result<Option<PolicyTrace>, Status> {
        match self {
            Self::Nobody => Ok(None),
            Self::Gone(key) => Ok(Some(PolicyTrace { name: policy::title(key), ..PolicyTrace::default() })),
            Self::Policy(policy) => policy_trace(instance, policy).await.map(Some),
        }
    }
}

/// The policy that claims a template.
async fn held(instance: &Endpoint, claim: &Claim) -> Result<Holder, Status> {
    let key = PolicyKey { namespace: claim.namespace.clone(), name: claim.name.clone() };
    let resource = if key.is_namespaced() { gvr::policies() } else { gvr::cluster_policies() };
    let tree = instance.get_opt(&resource, key.in_namespace(), &key.name).await?;
    let policy = tree.and_then(|tree| Policy::of(&Item::of(&tree)?));
    Ok(policy.map_or(Holder::Gone(key), |policy| Holder::Policy(Box::new(policy))))
}

/// The policy that will claim a template nobody has claimed; if there is none, how many select its kind but not it.
async fn candidate(instance: &Endpoint, gvk: &Gvk, head: &Head, preemption: bool) -> Result<(Holder, usize), Status> {
    let own = Some(&*head.namespace).filter(|namespace| !namespace.is_empty());
    let mut trees = instance.list(&gvr::cluster_policies(), None, "").await?.items;
    if own.is_some() {
        trees.extend(instance.list(&gvr::policies(), own, "").await?.items);
    }
    let policies = Policies::default();
    for policy in trees.iter().filter_map(|tree| Policy::of(&Item::of(tree)?)) {
        policies.put(policy);
    }
    if let Some(chosen) = policies.choose(gvk, head, None, preemption) {
        return Ok((Holder::Policy(Box::new((*chosen).clone())), 0));
    }
    let near = policies.list().iter().filter(|policy| policy.kinds().any(|kind| kind == gvk)).count();
    Ok((Holder::Nobody, near))
}

async fn policy_trace(instance: &Endpoint, policy: &Policy) -> Result<PolicyTrace, Status> {
    let (key, spec) = (&policy.key, &policy.spec);
    let name = policy::title(key);
    let mut trace = PolicyTrace { name, exists: true, lazy: policy.is_lazy(), ..PolicyTrace::default() };
    let resource = if key.is_namespaced() { gvr::overrides() } else { gvr::cluster_overrides() };
    for name in &spec.dependent_overrides {
        if instance.get_opt(&resource, key.in_namespace(), name).await?.is_none() {
            trace.missing_overrides.push(name.clone());
        }
    }
    if let Some(wanted) = &spec.schedule_priority {
        let name = &wanted.priority_class_name;
        // Who may not read classes is not told that there is none.
        let class = instance.get_opt(&gvr::priority_classes(), None, name).await;
        trace.missing_priority_class = class.is_ok_and(|class| class.is_none()).then(|| name.clone());
    }
    Ok(trace)
}

/// What the interpreter fails to say of a template and has to.
fn unreadable(template: &Value, policy: Option<&Policy>, interpreter: &Interpreter) -> Option<String> {
    if let Err(error) = Meaning::of(template, interpreter) {
        return Some(error.to_string());
    }
    policy.filter(|policy| policy.spec.propagate_deps)?;
    interpreter.try_dependencies(template).err().map(|error| error.to_string())
}

async fn overrides(instance: &Endpoint, scope: Option<&str>) -> Overrides {
    let overrides = Overrides::default();
    let own = scope.map(|namespace| (gvr::overrides(), Some(namespace)));
    for (resource, namespace) in own.into_iter().chain([(gvr::cluster_overrides(), None)]) {
        let trees = instance.list(&resource, namespace, "").await.map(|list| list.items).unwrap_or_default();
        for policy in trees.iter().filter_map(|tree| OverridePolicy::of(&Item::of(tree)?)) {
            overrides.put(policy);
        }
    }
    overrides
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
            decision: binding.and_then(Record::of).and_then(|record| reason(&record, cluster, own)),
            unmade: self.unmade(cluster, own),
            ..ClusterTrace::default()
        };
        let work_name = names::work(&self.gvk.kind, self.name, self.namespace);
        let work = self.instance.get_opt(&gvr::works(), Some(&names::execution_namespace(own)), &work_name).await?;
        if let Some(work) = work.and_then(|tree| serde_json::from_value::<Work>(tree).ok()) {
            trace.work = Some(work_trace(&work_name, &work, self.source.map(|source| source.template)));
            trace.object = Some(self.object(own).await);
        }
        Ok(trace)
    }

    /// Why no copy for a cluster can be made; what cannot be told is none.
    fn unmade(&self, cluster: &Value, own: &str) -> Option<String> {
        let source = self.source?;
        let replicas = *source.binding.targets().get(own)?;
        let cluster: atoll_api::cluster::Cluster = serde_json::from_value(cluster.clone()).ok()?;
        let cluster = atoll_placement::Cluster::from(&cluster);
        work::build(source, &cluster, replicas, self.interpreter, None, String::new)
            .err()
            .map(|error| error.to_string())
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

/// Why a cluster is in or out.
fn reason(record: &Record, cluster: &Value, own: &str) -> Option<String> {
    record.of_cluster(own).or_else(|| {
        let joined = atoll_meta::time::parse(cluster["metadata"]["creationTimestamp"].as_str()?)?;
        let decided = atoll_meta::time::parse(&record.at)?;
        (joined > decided).then(|| "joined after the last decision".to_owned())
    })
}

/// What a work has not caught up with, or its member.
pub(super) fn behind(work: &Work, template: Option<&Value>) -> Option<String> {
    let manifest = work.spec.workload.manifests.first();
    let made_from = manifest.and_then(|manifest| {
        manifest["metadata"]["annotations"][annotation::TEMPLATE_GENERATION].as_str()?.parse::<i64>().ok()
    });
    let present = template.and_then(|template| template["metadata"]["generation"].as_i64());
    if let (Some(made_from), Some(present)) = (made_from, present)
        && made_from < present
    {
        return Some(format!("the work is made from generation {made_from} of the template, which is at {present}"));
    }
    let conditions = work.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let applied = condition::get(conditions, types::APPLIED)?.observed_generation?;
    let generation = work.metadata.generation?;
    (applied < generation).then(|| format!("generation {applied} of the work is applied, which is at {generation}"))
}

fn work_trace(name: &str, work: &Work, template: Option<&Value>) -> WorkTrace {
    let conditions = work.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let applied = condition::get(conditions, types::APPLIED);
    WorkTrace {
        name: name.to_owned(),
        applied: applied.map(|applied| applied.status.clone()).unwrap_or_default(),
        message: applied.map(|applied| applied.message.clone()).unwrap_or_default(),
        suspended: work.spec.suspend_dispatching == Some(true),
        behind: behind(work, template),
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
