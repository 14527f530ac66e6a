//! PediaClusters: clusters that are only searched. Each is followed as `root/{name}`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use atoll_index::{ResourceName, Resources, Source};
use atoll_meta::{Status, time};
use atoll_runtime::{Change, Endpoint, Informer, Patch, Queue, Selection, work};
use base64::Engine as _;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::context::{AGENT, Core};
use crate::external;
use crate::kinds::{Kind, kind};

static CLUSTER: Kind = kind("cluster.clusterpedia.io", "v1alpha2", "pediaclusters", "PediaCluster", false);
static SHARED: Kind =
    kind("cluster.clusterpedia.io", "v1alpha2", "clustersyncresources", "ClusterSyncResources", false);

/// How often a cluster is asked whether it is well.
const PERIOD: Duration = Duration::from_secs(30);

/// Follows all PediaClusters of `root` until `stop`.
pub async fn run(core: Arc<Core>, stop: CancellationToken) {
    let queue: Queue<String> = Queue::default();
    let root = core.own_endpoint("root");
    let keys = queue.clone();
    let clusters = Informer::start(root.clone(), CLUSTER.gvr(), Selection::default(), move |change: Change| {
        // Our own writes of the status are no reason to look again.
        if !change.keeps_generation() {
            keys.add(change.item().object.head.name.to_string());
        }
    });
    let (keys, cache) = (queue.clone(), clusters.cache.clone());
    let shared = Informer::start(root, SHARED.gvr(), Selection::default(), move |_: Change| {
        cache.list().iter().for_each(|item| keys.add(item.key()));
    });
    let known: Arc<Mutex<HashMap<String, Value>>> = Arc::default();
    work(queue, 4, stop, move |name: String| {
        let (core, known) = (core.clone(), known.clone());
        async move { tend(&core, &known, &name).await }
    })
    .await;
    drop((clusters, shared));
}

async fn tend(core: &Core, known: &Mutex<HashMap<String, Value>>, name: &str) -> Result<Option<Duration>, Status> {
    let root = core.own_endpoint("root");
    let source = format!("root/{name}");
    let Some(object) = root.get_opt(&CLUSTER.gvr(), None, name).await? else {
        known.lock().remove(name);
        core.index.unfollow(&source).await;
        return Ok(None);
    };
    let shared = match object["spec"]["syncResourcesRefName"].as_str().filter(|name| !name.is_empty()) {
        Some(reference) => root.get_opt(&SHARED.gvr(), None, reference).await?.unwrap_or_default(),
        None => Value::Null,
    };
    let way = way(core, &object).await;
    let server = way.as_ref().map(|(_, server)| server.clone()).unwrap_or_default();
    let answer = match way {
        Ok((endpoint, _)) => {
            endpoint.get_path("/version").await.map(|version| (endpoint, version["gitVersion"].clone()))
        }
        Err(status) => Err(status),
    };
    let place = json!([server, object["metadata"]["uid"]]);
    let print = json!({"place": place, "spec": [object["spec"], shared["spec"]]});
    let old = known.lock().get(name).cloned();
    if let Ok((endpoint, _)) = &answer
        && old.as_ref() != Some(&print)
    {
        // Another server has other objects and other revisions.
        if old.is_some_and(|old| old["place"] != place) {
            core.index.unfollow(&source).await;
        }
        core.index.follow(
            Source { name: source, endpoint: endpoint.clone(), hidden: false },
            wanted(&object["spec"], &shared["spec"]),
        );
        known.lock().insert(name.to_owned(), print);
    }
    tell(core, name, &object, &answer).await?;
    Ok(Some(PERIOD))
}

/// The way to the cluster, by kubeconfig or by its single credentials, and its server.
async fn way(core: &Core, object: &Value) -> Result<(Endpoint, String), Status> {
    let config = config(&object["spec"]).await?;
    let server = config.cluster_url.to_string();
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    Ok((Endpoint::guarded(name, config, &core.externals.denied, AGENT)?, server))
}

async fn config(spec: &Value) -> Result<kube::Config, Status> {
    if spec["kubeconfig"].as_str().is_some_and(|text| !text.is_empty()) {
        return external::config(&json!({"data": {"kubeconfig": spec["kubeconfig"]}}), "kubeconfig").await;
    }
    let text = |key: &str| {
        let bytes = base64::engine::general_purpose::STANDARD.decode(spec[key].as_str()?).ok()?;
        String::from_utf8(bytes).ok()
    };
    let encoded = |key: &str| spec[key].as_str().filter(|text| !text.is_empty()).map(ToOwned::to_owned);
    // Without an authority of its own, the certificate of the server must be one the system trusts.
    let user = json!({"token": text("tokenData"), "client-certificate-data": encoded("certData"), "client-key-data": encoded("keyData")});
    let url = spec["apiserver"].as_str().unwrap_or_default();
    external::server(url, encoded("caData").as_deref(), &user).await
}

/// The resources a cluster and the list it refers to ask for.
fn wanted(spec: &Value, shared: &Value) -> Resources {
    let lists = [&spec["syncResources"], &shared["syncResources"]];
    let mut names = Vec::new();
    for entry in lists.into_iter().filter_map(Value::as_array).flatten() {
        let group = entry["group"].as_str().unwrap_or_default();
        for resource in entry["resources"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            let any = ResourceName { resource: "*".into(), ..ResourceName::default() };
            names.push(if group == "*" { any } else { ResourceName::new(group, resource) });
        }
    }
    if spec["syncAllCustomResources"] == true { Resources::All } else { Resources::Only(names) }
}

async fn tell(
    core: &Core,
    name: &str,
    object: &Value,
    answer: &Result<(Endpoint, Value), Status>,
) -> Result<(), Status> {
    let (word, valid, message, version) = match answer {
        Ok((_, version)) => ("True", "True", String::new(), version.clone()),
        Err(status) => {
            let valid = if status.code == 400 { "False" } else { "True" };
            ("False", valid, status.message.clone(), object["status"]["version"].clone())
        }
    };
    let old = object["status"]["conditions"]
        .as_array()
        .and_then(|list| list.iter().find(|condition| condition["type"] == "Ready"));
    if old.is_some_and(|old| old["status"] == word && old["message"] == message.as_str()) {
        return Ok(());
    }
    let now = time::format(core.hub.now());
    let condition = |ty: &str, word: &str, good: &str, bad: &str| json!({"type": ty, "status": word, "reason": if word == "True" { good } else { bad }, "message": message, "lastTransitionTime": now});
    let conditions = [
        condition("Validated", valid, "Validated", "InvalidConfig"),
        condition("SynchroRunning", word, "Running", "Pending"),
        condition("ClusterHealthy", word, "Healthy", "NotReachable"),
        condition("Ready", word, "Ready", "NotReady"),
    ];
    let status =
        json!({"status": {"apiserver": object["spec"]["apiserver"], "version": version, "conditions": conditions}});
    match core.own_endpoint("root").patch(&CLUSTER.gvr(), None, name, "status", Patch::Merge, &status).await {
        Err(status) if status.code != 404 => Err(status),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_and_shared_resources_are_collected() {
        let spec = json!({"syncResources": [{"group": "apps", "resources": ["deployments", "daemonsets"]}]});
        let shared = json!({"syncResources": [{"group": "", "resources": ["pods"]}]});
        let Resources::Only(names) = wanted(&spec, &shared) else { panic!("a list") };
        let shown: Vec<String> =
            names.iter().map(|name| format!("{}/{}", name.group.as_deref().unwrap_or("*"), name.resource)).collect();
        assert_eq!(shown, ["apps/deployments", "apps/daemonsets", "/pods"]);
        assert!(matches!(wanted(&json!({"syncAllCustomResources": true}), &Value::Null), Resources::All));
    }
}
