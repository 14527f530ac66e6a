//! Promotion: an object of one member becomes a multicloud one, where it is and without a restart.

use atoll_api::names;
use atoll_meta::{Gvr, Status};
use atoll_runtime::Endpoint;
use serde_json::{Map, Value, json};

use crate::ask::Ask;
use crate::context::Ctx;
use crate::kinds::{CONFIG_MAP, DEPLOYMENT, INGRESS, Kind, NAMESPACE, POLICY, SECRET, SERVICE};
use crate::transcode::status::precondition;

/// Says that members must take over what they already have.
const TAKE_OVER: &str = "work.karmada.io/conflict-resolution";

/// Promotes a Deployment, Service or Ingress of a member, with what a Deployment needs.
pub async fn promote(ctx: &Ctx, method: &str, input: &Value) -> Result<Value, Status> {
    let ask = Ask(input);
    let (instance, member) = (ask.segment("instance")?, ask.segment("cluster")?);
    let (namespace, name) = (ask.segment("namespace")?, ask.segment("name")?);
    let kind = match method {
        "PromoteMemberClusterDeployment" => &DEPLOYMENT,
        "PromoteMemberClusterService" => &SERVICE,
        _ => &INGRESS,
    };
    let endpoint = ctx.endpoint(instance).await?;
    let object = read(&endpoint, member, kind, namespace, name).await?;
    let mut wanted: Vec<(&Kind, Value)> = Vec::new();
    if *kind == DEPLOYMENT {
        for service in input["services"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            crate::ask::segment("services", service)?;
            wanted.push((&SERVICE, read(&endpoint, member, &SERVICE, namespace, service).await?));
        }
        for (kind, name) in needs(&object["spec"]["template"]["spec"]) {
            match read(&endpoint, member, kind, namespace, &name).await {
                Ok(object) => wanted.push((kind, object)),
                Err(status) if status.code == 404 => {}
                Err(status) => return Err(status),
            }
        }
    }
    wanted.push((kind, object));
    endpoint
        .ensure(
            &NAMESPACE.gvr(),
            None,
            &json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": namespace}}),
        )
        .await?;
    if endpoint.get_opt(&kind.gvr(), Some(namespace), name).await?.is_some() {
        return Err(precondition(format!("{} {namespace}/{name} is multicloud already", kind.kind)));
    }
    // The policy first: what follows must not be without a place for a moment.
    endpoint.ensure(&POLICY.gvr(), Some(namespace), &policy(kind, namespace, name, member, &wanted)).await?;
    for (kind, object) in wanted {
        let made = endpoint.ensure(&kind.gvr(), Some(namespace), &template(kind, object)).await?;
        ctx.settle(instance, kind, &made).await;
    }
    Ok(json!({}))
}

/// Reads from a member through the instance, with the caller's rights there.
async fn read(endpoint: &Endpoint, member: &str, kind: &Kind, namespace: &str, name: &str) -> Result<Value, Status> {
    let inner: Gvr = kind.gvr();
    endpoint
        .get_path(&format!(
            "/apis/cluster.karmada.io/v1alpha1/clusters/{member}/proxy{}",
            inner.path(Some(namespace), Some(name))
        ))
        .await
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
    if *kind == SERVICE
        && let Some(spec) = object["spec"].as_object_mut()
    {
        for given in ["clusterIP", "clusterIPs", "healthCheckNodePort"] {
            spec.remove(given);
        }
    }
    object
}

fn policy(kind: &Kind, namespace: &str, name: &str, member: &str, wanted: &[(&Kind, Value)]) -> Value {
    let gvk = format!("{}, Kind={}", kind.api_version(), kind.kind);
    let select = |(kind, object): &(&Kind, Value)| json!({"apiVersion": kind.api_version(), "kind": kind.kind, "namespace": namespace, "name": object["metadata"]["name"]});
    json!({
        "kind": "PropagationPolicy", "apiVersion": POLICY.api_version(),
        "metadata": {"name": names::generated_policy(name, namespace, &gvk), "namespace": namespace},
        "spec": {
            "resourceSelectors": wanted.iter().map(select).collect::<Vec<_>>(),
            "placement": {"clusterAffinity": {"clusterNames": [member]}},
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
