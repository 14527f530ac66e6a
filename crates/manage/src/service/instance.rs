//! Instances: isolated control planes, here or elsewhere.

use std::time::Duration;

use atoll_apiserver::Verb;
use atoll_index::{Everything, Query};
use atoll_meta::{Gvr, Status};
use atoll_pki::{Access, Auth, Kubeconfig};
use atoll_runtime::Patch;
use prost_reflect::MethodDescriptor;
use serde_json::{Map, Value, json};

use super::list::{self, Paging};
use super::{settings, wrap};
use crate::ask::{self, Ask};
use crate::context::Ctx;
use crate::kinds::{
    CLUSTER, CLUSTER_OVERRIDE, CLUSTER_POLICY, CONFIG_MAP, DEPLOYMENT, INSTANCE, NAMESPACE, OVERRIDE, POLICY, SECRET,
    SERVICE,
};
use crate::transcode::status::precondition;

/// Where people read and write another name for an instance.
const ALIAS: &str = "kairship.io/alias";
/// Deletes an instance although clusters are joined to it.
const FORCE: &str = "atoll.io/force-delete";

/// Runs a method of the instance service.
pub async fn call(ctx: &Ctx, name: &str, method: &MethodDescriptor, input: &Value) -> Result<Value, Status> {
    match name {
        "ListInstances" => list(ctx, method, input).await,
        "CreateInstance" => create(ctx, method, input).await,
        "GetInstance" => {
            let object = read(ctx, input).await?;
            Ok(wrap(method, &shaped(ctx, object).await?))
        }
        "GetInstanceJSON" => Ok(json!({"data": read(ctx, input).await?.to_string()})),
        "UpdateInstance" => update(ctx, input).await,
        "DeleteInstance" => delete(ctx, input).await,
        "GetInstanceKarmadaConfig" => Ok(json!({"version": env!("CARGO_PKG_VERSION")})),
        "CreateInstanceAdminKubeConfig" => kubeconfig(ctx, input).await,
        _ => settings::call(ctx, name, input).await,
    }
}

/// Instances the caller may see: by a right in `root`, or by any right inside.
pub async fn visible_instances(ctx: &Ctx) -> Result<Vec<Value>, Status> {
    let all = ctx.core.own_endpoint("root").list(&INSTANCE.gvr(), None, "").await?.items;
    let mut seen = Vec::new();
    for object in all {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        if sees(ctx, &name).await? {
            seen.push(object);
        }
    }
    Ok(seen)
}

/// Whether the caller may see an instance, or anything of it.
pub async fn sees(ctx: &Ctx, name: &str) -> Result<bool, Status> {
    if ctx.may_in_root(Verb::Get, "instances", name).await.is_ok() {
        return Ok(true);
    }
    if ctx.may_in(name, Verb::List, &DEPLOYMENT.gvr(), "").await? {
        return Ok(true);
    }
    let namespaces = ctx.core.index.query(&Query::of(name, &NAMESPACE.group, &NAMESPACE.resource), &Everything).await?;
    for namespace in namespaces.items {
        if ctx.may_in(name, Verb::List, &DEPLOYMENT.gvr(), &namespace.name).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn list(ctx: &Ctx, method: &MethodDescriptor, input: &Value) -> Result<Value, Status> {
    let ask = Ask(input);
    let part = ask.text("name");
    let mut found = visible_instances(ctx).await?;
    found.retain(|object| {
        ["/metadata/name", "/spec/alias"]
            .iter()
            .any(|path| object.pointer(path).and_then(Value::as_str).is_some_and(|text| text.contains(part)))
    });
    let key = |object: &Value| match ask.text("sortBy") {
        "field_name" => object["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
        _ => object["metadata"]["creationTimestamp"].as_str().unwrap_or_default().to_owned(),
    };
    found.sort_by_key(|object| key(object));
    if ask.text("sortDir") != "asc" {
        found.reverse();
    }
    let (page, pagination) = Paging::of(input).cut(found);
    let mut items = Vec::with_capacity(page.len());
    for object in page {
        items.push(shaped(ctx, object).await?);
    }
    Ok(list::answer(method, items, pagination))
}

/// The object of an instance the caller may see.
async fn read(ctx: &Ctx, input: &Value) -> Result<Value, Status> {
    let name = Ask(input).segment("name")?;
    if !sees(ctx, name).await? {
        ctx.may_in_root(Verb::Get, "instances", name).await?;
    }
    ctx.core.own_endpoint("root").get(&INSTANCE.gvr(), None, name).await
}

async fn create(ctx: &Ctx, method: &MethodDescriptor, input: &Value) -> Result<Value, Status> {
    let data = &input["data"];
    let name = data["metadata"]["name"].as_str().unwrap_or_default();
    if let Some(why) = atoll_meta::name::is_dns1123_label(name).first() {
        return Err(Status::bad_request(format!("name {name:?}: {why}")));
    }
    let secret = &data["spec"]["hostCluster"]["secretRef"];
    let mut spec =
        json!({"type": "Hosted", "alias": data["metadata"]["annotations"][ALIAS].as_str().unwrap_or_default()});
    if secret["name"].as_str().is_some_and(|name| !name.is_empty()) {
        spec["type"] = "External".into();
        spec["kubeconfigSecretRef"] =
            json!({"namespace": secret["namespace"], "name": secret["name"], "key": "kubeconfig"});
    }
    let object = json!({
        "kind": "Instance", "apiVersion": INSTANCE.api_version(), "spec": spec,
        "metadata": {"name": name, "labels": data["metadata"]["labels"], "annotations": data["metadata"]["annotations"]},
    });
    let made = ctx.root().create(&INSTANCE.gvr(), None, &object).await?;
    if spec["type"] == "Hosted" {
        ready(ctx, name).await;
    }
    Ok(wrap(method, &shaped(ctx, made).await?))
}

/// Waits a little until a new instance answers; it may also take longer.
async fn ready(ctx: &Ctx, name: &str) {
    let mut roster = ctx.core.hub.roster();
    let served = async { while ctx.core.hub.instance(name).is_none() && roster.changed().await.is_ok() {} };
    let _ = tokio::time::timeout(Duration::from_secs(2), served).await;
}

async fn update(ctx: &Ctx, input: &Value) -> Result<Value, Status> {
    let name = Ask(input).segment("name")?;
    let data = ask::object(Ask(input).text("data"))?;
    let mut change = json!({"metadata": {}});
    for key in ["labels", "annotations"] {
        if let Some(map) = data["metadata"][key].as_object() {
            change["metadata"][key] = map.clone().into();
        }
    }
    if let Some(version) = data["metadata"]["resourceVersion"].as_str().filter(|text| !text.is_empty()) {
        change["metadata"]["resourceVersion"] = version.into();
    }
    let own: Map<String, Value> = ["alias", "limits", "deletionProtection", "paused"]
        .iter()
        .filter_map(|key| Some(((*key).to_owned(), data["spec"].get(key)?.clone())))
        .collect();
    change["spec"] = own.into();
    if let Some(alias) = data["metadata"]["annotations"][ALIAS].as_str() {
        change["spec"]["alias"] = alias.into();
    }
    let done = ctx.root().patch(&INSTANCE.gvr(), None, name, "", Patch::Merge, &change).await?;
    Ok(json!({"data": done.to_string()}))
}

async fn delete(ctx: &Ctx, input: &Value) -> Result<Value, Status> {
    let name = Ask(input).segment("name")?;
    ctx.may_in_root(Verb::Delete, "instances", name).await?;
    let object = read(ctx, input).await?;
    if object["spec"]["deletionProtection"] == true {
        return Err(precondition(format!("instance {name} is protected against deletion")));
    }
    let forced = object["metadata"]["annotations"][FORCE] == "true";
    let joined = list::count(ctx, &CLUSTER, name).await?;
    if joined > 0 && !forced {
        return Err(precondition(format!(
            "{joined} clusters are joined to instance {name}; remove them first, or set the annotation {FORCE}"
        )));
    }
    ctx.root()
        .delete(&INSTANCE.gvr(), None, name, &json!({"preconditions": {"uid": object["metadata"]["uid"]}}))
        .await?;
    Ok(json!({}))
}

/// Adds what the message shows beyond the object.
async fn shaped(ctx: &Ctx, mut object: Value) -> Result<Value, Status> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let state = match object["status"]["phase"].as_str().unwrap_or("Pending") {
        _ if !object["metadata"]["deletionTimestamp"].is_null() => "INSTANCE_STATE_TERMINAL",
        "Ready" | "Paused" => "INSTANCE_STATE_RUNNING",
        "Pending" => "INSTANCE_STATE_INPROCESS",
        "Terminating" => "INSTANCE_STATE_TERMINAL",
        "Failed" => "INSTANCE_STATE_UNAVAILABLE",
        _ => "INSTANCE_STATE_UNKNOWN",
    };
    let statistics = object["status"]["statistics"].clone();
    let kubernetes = object["status"]["version"].clone();
    if let Some(alias) = object["spec"]["alias"].as_str().map(ToOwned::to_owned) {
        object["metadata"]["annotations"][ALIAS] = alias.into();
    }
    let secret = &object["spec"]["kubeconfigSecretRef"];
    object["spec"] = json!({"hostCluster": {"secretRef": {"name": secret["name"], "namespace": secret["namespace"]}}});
    object["status"] = json!({
        "karmadaVersion": env!("CARGO_PKG_VERSION"), "kubernetesVersion": kubernetes, "state": state,
        "summary": summary(ctx, &name, &statistics).await?,
    });
    Ok(object)
}

async fn summary(ctx: &Ctx, name: &str, statistics: &Value) -> Result<Value, Status> {
    let mut resources = Map::new();
    for kind in [&DEPLOYMENT, &SERVICE, &CONFIG_MAP, &SECRET, &NAMESPACE] {
        resources.insert(kind.resource.to_string(), list::count(ctx, kind, name).await?.into());
    }
    let mut policies = Map::new();
    for kind in [&POLICY, &OVERRIDE, &CLUSTER_POLICY, &CLUSTER_OVERRIDE] {
        policies.insert(kind.resource.to_string(), list::count(ctx, kind, name).await?.into());
    }
    let page = ctx.core.index.query(&Query::of(name, &DEPLOYMENT.group, &DEPLOYMENT.resource), &Everything).await?;
    let ready = page.items.iter().filter(|item| {
        let mut tree = item.tree();
        crate::shape::shape(&DEPLOYMENT, &mut tree);
        tree["status"]["state"] == "WORKLOAD_STATE_RUNNING"
    });
    Ok(json!({
        "resourceTotalNum": resources, "policyTotalNum": policies,
        "clusterSummary": {"totalNum": statistics["clusters"], "readyNum": statistics["readyClusters"]},
        "nodeSummary": {"totalNum": statistics["nodes"], "readyNum": statistics["readyNodes"]},
        "resourceSummary": {
            "allocatable": present([("cpu", &statistics["cpuCapacity"]), ("memory", &statistics["memoryCapacity"])]),
            "allocated": present([("cpu", &statistics["cpuAllocated"]), ("memory", &statistics["memoryAllocated"])]),
        },
        "workLoadSummary": {"deployments": {"totalNum": page.items.len(), "readyNum": ready.count()}},
    }))
}

fn present(entries: [(&str, &Value); 2]) -> Value {
    entries
        .into_iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(key, value)| (key.to_owned(), value.clone()))
        .collect()
}

/// A kubeconfig for an administrator of an instance, for a while. Only who may make such an account gets one.
async fn kubeconfig(ctx: &Ctx, input: &Value) -> Result<Value, Status> {
    const ACCOUNT: &str = "atoll-admin";
    let name = Ask(input).segment("instance")?;
    let hub = &ctx.core.hub;
    let instance = hub
        .instance(name)
        .ok_or_else(|| precondition("the kubeconfig of an external instance is given out by its owner"))?;
    let endpoint = ctx.endpoint(name).await?;
    let namespace = "kube-system";
    let account = json!({"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": ACCOUNT}});
    endpoint.ensure(&Gvr::new("", "v1", "serviceaccounts"), Some(namespace), &account).await?;
    let binding = json!({
        "kind": "ClusterRoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": ACCOUNT},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}],
    });
    endpoint.ensure(&Gvr::new("rbac.authorization.k8s.io", "v1", "clusterrolebindings"), None, &binding).await?;
    let seconds = Ask(input).number("expirationSeconds").clamp(600, 365 * 24 * 3600);
    let request = json!({"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": {"expirationSeconds": seconds}});
    let answer = endpoint
        .create_sub(&Gvr::new("", "v1", "serviceaccounts"), Some(namespace), ACCOUNT, "token", &request)
        .await?;
    let token = answer["status"]["token"].as_str().unwrap_or_default().to_owned();
    let mut config = Kubeconfig::new();
    let ca_pem = Some(hub.keys().own().serving.cert_pem());
    config.add(
        name,
        &Access {
            server: hub.url(&instance),
            ca_pem,
            insecure: false,
            tls_server_name: None,
            auth: Auth::Token(token),
            namespace: None,
        },
    );
    config.set_current(name);
    Ok(json!({"kubeConfigString": config.to_yaml().map_err(Status::internal)?, "instance": name}))
}
