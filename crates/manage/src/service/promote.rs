//! Promotion: an object of one member becomes a multicloud one, where it is and without a restart.

use atoll_api::names;
use atoll_meta::{Gvr, Status};
use atoll_runtime::Endpoint;
use serde_json::{Map, Value, json};

use crate::ask::Ask;
use crate::context::Ctx;
use crate::kinds::{
    BINDING, CONFIG_MAP, CRON_JOB, DAEMON_SET, DEPLOYMENT, INGRESS, JOB, Kind, NAMESPACE, POLICY, SECRET, SERVICE,
    STATEFUL_SET,
};
use crate::transcode::status::precondition;

/// Says that members must take over what they already have.
const TAKE_OVER: &str = "work.karmada.io/conflict-resolution";

/// Marks a policy of a promotion; it holds what was made, to be taken back.
const MADE: &str = "atoll.io/promoted";
/// How long taking back waits until members are told to keep what they have.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);

/// An object of a member that is to become multicloud, with what it needs.
struct Wanted {
    instance: String,
    member: String,
    namespace: String,
    name: String,
    kind: Kind,
    /// The object itself comes last.
    objects: Vec<(Kind, Value)>,
}

/// Runs a method of the promotion service.
pub async fn call(ctx: &Ctx, method: &str, input: &Value) -> Result<Value, Status> {
    let kind = kind_of(Ask(input).text("kind"))?;
    if method == "DeletePromotion" {
        return undo(ctx, &kind, input).await;
    }
    let wanted = gather(ctx, &kind, input, true).await?;
    let conflicts = conflicts(ctx, &wanted).await?;
    if method == "CreatePromotion" && conflicts.is_empty() {
        make(ctx, &wanted).await?;
    } else if method == "CreatePromotion" {
        return Err(precondition(conflicts.join("; ")));
    }
    let objects: Vec<String> =
        wanted.objects.iter().map(|(kind, object)| template(kind, object.clone()).to_string()).collect();
    Ok(json!({"objects": objects, "policy": policy(&wanted).to_string(), "conflicts": conflicts}))
}

fn kind_of(word: &str) -> Result<Kind, Status> {
    let known = [&DEPLOYMENT, &STATEFUL_SET, &DAEMON_SET, &JOB, &CRON_JOB, &SERVICE, &INGRESS];
    let found = known.iter().find(|kind| kind.kind.eq_ignore_ascii_case(word));
    found.map(|kind| (*kind).clone()).ok_or_else(|| Status::bad_request(format!("kind: {word:?} cannot be promoted")))
}

/// Promotes a Deployment, Service or Ingress of a member, as the contract has it.
pub async fn promote(ctx: &Ctx, method: &str, input: &Value) -> Result<Value, Status> {
    let kind = kind_of(method.trim_start_matches("PromoteMemberCluster"))?;
    let wanted = gather(ctx, &kind, input, false).await?;
    if let Some(conflict) = conflicts(ctx, &wanted).await?.into_iter().next() {
        return Err(precondition(conflict));
    }
    make(ctx, &wanted).await?;
    Ok(json!({}))
}

/// The pod template of a workload.
fn pod_template<'a>(kind: &Kind, object: &'a Value) -> &'a Value {
    if *kind == CRON_JOB { &object["spec"]["jobTemplate"]["spec"]["template"] } else { &object["spec"]["template"] }
}

/// Reads an object and what it needs from the member, with the caller's rights there. Services are those
/// named or, if allowed and none is, those that select the pods.
async fn gather(ctx: &Ctx, kind: &Kind, input: &Value, find_services: bool) -> Result<Wanted, Status> {
    let ask = Ask(input);
    let (instance, member) = (ask.segment("instance")?, ask.segment("cluster")?);
    let (namespace, name) = (ask.segment("namespace")?, ask.segment("name")?);
    let endpoint = ctx.endpoint(instance).await?;
    let object = read(&endpoint, member, kind, namespace, name).await?;
    let template = pod_template(kind, &object).clone();
    let mut objects: Vec<(Kind, Value)> = Vec::new();
    if template.is_object() {
        let named: Vec<&str> = input["services"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for service in &named {
            crate::ask::segment("services", service)?;
            objects.push((SERVICE.clone(), read(&endpoint, member, &SERVICE, namespace, service).await?));
        }
        if named.is_empty() && find_services {
            objects.extend(services(&endpoint, member, namespace, &template).await?);
        }
        for (kind, name) in needs(&template["spec"]) {
            match read(&endpoint, member, kind, namespace, &name).await {
                Ok(object) => objects.push((kind.clone(), object)),
                Err(status) if status.code == 404 => {}
                Err(status) => return Err(status),
            }
        }
    }
    objects.push((kind.clone(), object));
    let own = |text: &str| text.to_owned();
    let (instance, member, namespace, name) = (own(instance), own(member), own(namespace), own(name));
    Ok(Wanted { instance, member, namespace, name, kind: kind.clone(), objects })
}

/// Services of the member that select the pods; load balancers stay, their addresses are the member's.
async fn services(
    endpoint: &Endpoint,
    member: &str,
    namespace: &str,
    template: &Value,
) -> Result<Vec<(Kind, Value)>, Status> {
    let labels = template["metadata"]["labels"].as_object().cloned().unwrap_or_default();
    let list = endpoint.get_path(&format!("{}{}", proxy(member), SERVICE.gvr().path(Some(namespace), None))).await?;
    let selects = |service: &Value| {
        service["spec"]["type"] != "LoadBalancer"
            && service["spec"]["selector"].as_object().is_some_and(|selector| {
                !selector.is_empty() && selector.iter().all(|(key, value)| labels.get(key) == Some(value))
            })
    };
    let items = list["items"].as_array().cloned().unwrap_or_default();
    let typed = |mut service: Value| {
        // Items of a list leave out what the list says once.
        service["kind"] = "Service".into();
        service["apiVersion"] = "v1".into();
        (SERVICE.clone(), service)
    };
    Ok(items.into_iter().filter(selects).map(typed).collect())
}

/// Why a promotion cannot be done.
async fn conflicts(ctx: &Ctx, wanted: &Wanted) -> Result<Vec<String>, Status> {
    let endpoint = ctx.endpoint(&wanted.instance).await?;
    let mut found = Vec::new();
    let namespace = &wanted.namespace;
    if endpoint.get_opt(&wanted.kind.gvr(), Some(namespace), &wanted.name).await?.is_some() {
        found.push(format!("{} {namespace}/{} is multicloud already", wanted.kind.kind, wanted.name));
    }
    Ok(found)
}

async fn make(ctx: &Ctx, wanted: &Wanted) -> Result<(), Status> {
    let endpoint = ctx.endpoint(&wanted.instance).await?;
    let namespace = wanted.namespace.as_str();
    // Who works in a namespace need not be allowed to make one that is there.
    if endpoint.get_opt(&NAMESPACE.gvr(), None, namespace).await.is_ok_and(|found| found.is_none()) {
        let object = json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": namespace}});
        endpoint.ensure(&NAMESPACE.gvr(), None, &object).await?;
    }
    // What is multicloud already is used, and is not this promotion's to take back.
    let mut fresh: Vec<(&Kind, &Value)> = Vec::new();
    for (kind, object) in &wanted.objects {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        if endpoint.get_opt(&kind.gvr(), Some(namespace), name).await?.is_none() {
            fresh.push((kind, object));
        }
    }
    let mut policy = policy(wanted);
    let made: Vec<Value> = fresh
        .iter()
        .map(|(kind, object)| json!({"group": kind.group, "version": kind.version, "resource": kind.resource, "kind": kind.kind, "name": object["metadata"]["name"]}))
        .collect();
    policy["metadata"]["annotations"][MADE] = Value::Array(made).to_string().into();
    // The policy first: what follows must not be without a place for a moment.
    endpoint.ensure(&POLICY.gvr(), Some(namespace), &policy).await?;
    for (kind, object) in fresh {
        let made = endpoint.ensure(&kind.gvr(), Some(namespace), &template(kind, object.clone())).await?;
        ctx.settle(&wanted.instance, kind, &made).await;
    }
    Ok(())
}

/// Takes a promotion back: members are told to keep what they have, then what was made goes.
async fn undo(ctx: &Ctx, kind: &Kind, input: &Value) -> Result<Value, Status> {
    let ask = Ask(input);
    let (instance, namespace, name) = (ask.segment("instance")?, ask.segment("namespace")?, ask.segment("name")?);
    let endpoint = ctx.endpoint(instance).await?;
    let own = policy_name(kind, namespace, name);
    let policy = endpoint.get(&POLICY.gvr(), Some(namespace), &own).await?;
    let text = policy["metadata"]["annotations"][MADE].as_str();
    let made: Vec<Value> = text.and_then(|text| serde_json::from_str(text).ok()).ok_or_else(|| {
        precondition(format!("{} {namespace}/{name} was not promoted, or by an earlier version", kind.kind))
    })?;
    let keep = json!({"spec": {"preserveResourcesOnDeletion": true}});
    endpoint.patch(&POLICY.gvr(), Some(namespace), &own, "", atoll_runtime::Patch::Merge, &keep).await?;
    let mut removed = Vec::new();
    for entry in made.iter().rev() {
        let word = |key: &str| entry[key].as_str().unwrap_or_default();
        for key in ["version", "resource", "name"] {
            crate::ask::segment(key, word(key))?;
        }
        let gvr = Gvr::new(word("group"), word("version"), word("resource"));
        if endpoint.get_opt(&gvr, Some(namespace), word("name")).await?.is_none() {
            continue;
        }
        if !ctx.wish.dry_run {
            kept(ctx, instance, namespace, word("kind"), word("name")).await?;
        }
        let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"});
        endpoint.delete(&gvr, Some(namespace), word("name"), &options).await?;
        removed.push(format!("{} {namespace}/{}", word("kind"), word("name")));
    }
    endpoint.delete(&POLICY.gvr(), Some(namespace), &own, &Value::Null).await?;
    removed.push(format!("PropagationPolicy {namespace}/{own}"));
    Ok(json!({"removed": removed}))
}

/// Waits until all works of an object say that members keep it; without a binding nothing is there to lose.
async fn kept(ctx: &Ctx, instance: &str, namespace: &str, kind: &str, name: &str) -> Result<(), Status> {
    let own = ctx.core.own_endpoint(instance);
    let binding = names::binding(kind, name);
    let works = Gvr::new("work.karmada.io", "v1alpha1", "works");
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        let Some(bound) = own.get_opt(&BINDING.gvr(), Some(namespace), &binding).await? else { return Ok(()) };
        let told = |object: &Value| object["spec"]["preserveResourcesOnDeletion"] == true;
        let all = own.list(&works, None, "").await?.items;
        let of_it = |work: &&Value| {
            let annotations = &work["metadata"]["annotations"];
            annotations["resourcebinding.karmada.io/name"] == binding.as_str()
                && annotations["resourcebinding.karmada.io/namespace"] == namespace
        };
        if told(&bound) && all.iter().filter(of_it).all(told) {
            return Ok(());
        }
        if tokio::time::Instant::now() > deadline {
            return Err(precondition(format!(
                "{kind} {namespace}/{name}: members were not told in time to keep it; nothing was removed"
            )));
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

fn proxy(member: &str) -> String {
    format!("/apis/cluster.karmada.io/v1alpha1/clusters/{member}/proxy")
}

/// Reads from a member through the instance, with the caller's rights there.
async fn read(endpoint: &Endpoint, member: &str, kind: &Kind, namespace: &str, name: &str) -> Result<Value, Status> {
    let inner: Gvr = kind.gvr();
    endpoint.get_path(&format!("{}{}", proxy(member), inner.path(Some(namespace), Some(name)))).await
}

/// ConfigMaps and Secrets a pod template names.
fn needs(pod: &Value) -> Vec<(&'static Kind, String)> {
    let mut found: Vec<(&'static Kind, String)> = Vec::new();
    let mut add = |kind: &'static Kind, value: &Value| {
        if let Some(name) = value.as_str().filter(|name| !name.is_empty())
            && !found.iter().any(|(known, own)| *known == kind && own == name)
        {
            found.push((kind, name.to_owned()));
        }
    };
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    for volume in list(&pod["volumes"]) {
        add(&CONFIG_MAP, &volume["configMap"]["name"]);
        add(&SECRET, &volume["secret"]["secretName"]);
    }
    for secret in list(&pod["imagePullSecrets"]) {
        add(&SECRET, &secret["name"]);
    }
    for container in list(&pod["containers"]).into_iter().chain(list(&pod["initContainers"])) {
        for source in list(&container["envFrom"]) {
            add(&CONFIG_MAP, &source["configMapRef"]["name"]);
            add(&SECRET, &source["secretRef"]["name"]);
        }
        for variable in list(&container["env"]) {
            add(&CONFIG_MAP, &variable["valueFrom"]["configMapKeyRef"]["name"]);
            add(&SECRET, &variable["valueFrom"]["secretKeyRef"]["name"]);
        }
    }
    found
}

/// An object without what its member gave it.
fn template(kind: &Kind, mut object: Value) -> Value {
    let keep = |value: &Value| value.as_object().cloned().unwrap_or_default();
    let mut annotations: Map<String, Value> = keep(&object["metadata"]["annotations"]);
    annotations.retain(|key, _| {
        !key.starts_with("deployment.kubernetes.io/") && key != "kubectl.kubernetes.io/last-applied-configuration"
    });
    annotations.insert(TAKE_OVER.into(), "overwrite".into());
    object["metadata"] = json!({
        "name": object["metadata"]["name"], "namespace": object["metadata"]["namespace"],
        "labels": keep(&object["metadata"]["labels"]), "annotations": annotations,
    });
    if let Some(map) = object.as_object_mut() {
        map.remove("status");
    }
    if *kind == JOB && object["spec"]["manualSelector"] != true {
        // The selector and these labels name the uid of the member's own Job.
        if let Some(spec) = object["spec"].as_object_mut() {
            spec.remove("selector");
        }
        if let Some(labels) = object["spec"].pointer_mut("/template/metadata/labels").and_then(Value::as_object_mut) {
            labels.retain(|key, _| !key.ends_with("controller-uid") && !key.ends_with("job-name"));
        }
        if let Some(labels) = object["metadata"]["labels"].as_object_mut() {
            labels.retain(|key, _| !key.ends_with("controller-uid") && !key.ends_with("job-name"));
        }
    }
    if *kind == SERVICE
        && let Some(spec) = object["spec"].as_object_mut()
    {
        for given in ["clusterIP", "clusterIPs", "healthCheckNodePort"] {
            spec.remove(given);
        }
    }
    object
}

fn policy_name(kind: &Kind, namespace: &str, name: &str) -> String {
    names::generated_policy(name, namespace, &format!("{}, Kind={}", kind.api_version(), kind.kind))
}

fn policy(wanted: &Wanted) -> Value {
    let namespace = wanted.namespace.as_str();
    let select = |(kind, object): &(Kind, Value)| json!({"apiVersion": kind.api_version(), "kind": kind.kind, "namespace": namespace, "name": object["metadata"]["name"]});
    json!({
        "kind": "PropagationPolicy", "apiVersion": POLICY.api_version(),
        "metadata": {"name": policy_name(&wanted.kind, namespace, &wanted.name), "namespace": namespace},
        "spec": {
            "resourceSelectors": wanted.objects.iter().map(select).collect::<Vec<_>>(),
            "placement": {"clusterAffinity": {"clusterNames": [wanted.member]}},
            "conflictResolution": "Overwrite",
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_needs_what_it_names() {
        let pod = json!({
            "volumes": [{"configMap": {"name": "a"}}, {"secret": {"secretName": "b"}}], "imagePullSecrets": [{"name": "c"}],
            "containers": [{"envFrom": [{"configMapRef": {"name": "a"}}], "env": [{"valueFrom": {"secretKeyRef": {"name": "d"}}}]}],
        });
        let names: Vec<String> = needs(&pod).into_iter().map(|(kind, name)| format!("{} {name}", kind.kind)).collect();
        assert_eq!(names, ["ConfigMap a", "Secret b", "Secret c", "Secret d"]);
    }

    #[test]
    fn a_template_holds_nothing_of_its_member() {
        let service = json!({"metadata": {"name": "s", "namespace": "n", "uid": "u", "resourceVersion": "1", "managedFields": []},
                             "spec": {"clusterIP": "10.0.0.1", "ports": []}, "status": {"x": 1}});
        let made = template(&SERVICE, service);
        assert_eq!(made["metadata"].get("uid"), None);
        assert_eq!(made["spec"].get("clusterIP"), None);
        assert_eq!(made.get("status"), None);
    }
}
