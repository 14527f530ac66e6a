//! ClusterImportPolicies: objects of `root` that stand for clusters become PediaClusters.
//!
//! Each source object gets a `PediaClusterLifecycle` and, once its condition holds, a `PediaCluster`, both
//! named by the policy. What was made goes with the source or the policy; a `PediaCluster` that was there
//! before is kept up to date, and stays.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use atoll_meta::{Gvr, Status, time};
use atoll_runtime::{Change, Endpoint, Informer, Patch, Queue, Selection, work};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::context::Core;
use crate::kinds::{Kind, kind};
use crate::render::{MISSING, Template};

static POLICY: Kind = kind("policy.clusterpedia.io", "v1alpha1", "clusterimportpolicies", "ClusterImportPolicy", false);
static LIFECYCLE: Kind =
    kind("policy.clusterpedia.io", "v1alpha1", "pediaclusterlifecycles", "PediaClusterLifecycle", false);
static CLUSTER: Kind = kind("cluster.clusterpedia.io", "v1alpha2", "pediaclusters", "PediaCluster", false);

/// Marks what a policy made.
const MADE: &str = "policy.clusterpedia.io/import-policy";
/// The fields that follow the source; the others are what they were made with.
const WAY: [&str; 6] = ["kubeconfig", "apiserver", "caData", "tokenData", "certData", "keyData"];
/// Changes come in groups.
const GATHER: Duration = Duration::from_millis(100);
/// How often a policy whose kinds are not served is looked at again.
const LOOK_AGAIN: Duration = Duration::from_secs(15);

/// What a policy watches, and what for.
struct Watched {
    print: Value,
    source: Gvr,
    references: Vec<Gvr>,
    _informers: Vec<Informer>,
}

type Watching = Mutex<HashMap<String, Arc<Watched>>>;

/// Follows all policies until `stop`.
pub async fn run(core: Arc<Core>, stop: CancellationToken) {
    let queue: Queue<String> = Queue::default();
    let root = core.own_endpoint("root");
    let keys = queue.clone();
    let policies = Informer::start(root, POLICY.gvr(), Selection::default(), move |change: Change| {
        // Our own writes of the status are no reason to look again.
        if !change.keeps_generation() {
            keys.add(change.item().object.head.name.to_string());
        }
    });
    let watching: Arc<Watching> = Arc::default();
    let again = queue.clone();
    work(queue, 1, stop, move |name: String| {
        let (core, watching, queue) = (core.clone(), watching.clone(), again.clone());
        async move { tend(&core, &watching, &queue, &name).await }
    })
    .await;
    drop(policies);
}

async fn tend(core: &Core, watching: &Watching, queue: &Queue<String>, name: &str) -> Result<Option<Duration>, Status> {
    let root = core.own_endpoint("root");
    let Some(policy) = root.get_opt(&POLICY.gvr(), None, name).await? else {
        watching.lock().remove(name);
        return clear(&root, name, &BTreeSet::new()).await.map(|()| None);
    };
    let plan = match Plan::read(&policy["spec"]) {
        Ok(plan) => plan,
        Err(why) => {
            tell(core, &POLICY, &policy, &[("Validated", "False", "InvalidTemplate", &why)]).await?;
            return Ok(None);
        }
    };
    let watched = match watch(&root, watching, queue, name, &policy["spec"]).await {
        Ok(watched) => watched,
        Err(status) => {
            let conditions = [
                ("Validated", "True", "Validated", ""),
                ("Reconciling", "False", "NotServed", status.message.as_str()),
            ];
            tell(core, &POLICY, &policy, &conditions).await?;
            return Ok(Some(LOOK_AGAIN));
        }
    };
    let mut wanted = BTreeSet::new();
    let mut failed = None;
    for source in root.list(&watched.source, None, "").await?.items {
        match bring(core, &policy, &plan, &watched, &source).await {
            Ok(made) => drop(wanted.insert(made)),
            Err(status) => failed = Some(status),
        }
    }
    // Names that could not be made may be those of clusters that are there.
    if failed.is_none() {
        clear(&root, name, &wanted).await?;
    }
    let why = failed.map(|status| status.message).unwrap_or_default();
    let (word, reason) = if why.is_empty() { ("True", "Reconciling") } else { ("False", "Failed") };
    tell(core, &POLICY, &policy, &[("Validated", "True", "Validated", ""), ("Reconciling", word, reason, &why)])
        .await?;
    Ok(None)
}

/// The templates of a policy.
struct Plan {
    name: Template,
    template: Template,
    condition: Template,
    /// Key, namespace and name of each reference.
    references: Vec<(String, Template, Template)>,
}

impl Plan {
    fn read(spec: &Value) -> Result<Self, String> {
        let template = |at: &Value, what: &str| {
            Template::parse(at.as_str().unwrap_or_default()).map_err(|why| format!("{what}: {why}"))
        };
        let references = spec["references"].as_array().into_iter().flatten().map(|one| {
            let key = one["key"].as_str().unwrap_or_default().to_owned();
            let namespace = template(&one["namespaceTemplate"], &format!("namespaceTemplate of {key}"))?;
            Ok((key.clone(), namespace, template(&one["nameTemplate"], &format!("nameTemplate of {key}"))?))
        });
        if !spec["source"]["selectorTemplate"].as_str().unwrap_or_default().is_empty() {
            return Err("selectorTemplate is not understood: use creationCondition".to_owned());
        }
        Ok(Self {
            name: template(&spec["nameTemplate"], "nameTemplate")?,
            template: template(&spec["template"], "template")?,
            condition: template(&spec["creationCondition"], "creationCondition")?,
            references: references.collect::<Result<_, String>>()?,
        })
    }
}

/// Watches the kinds of a policy; the same ones as before are kept.
async fn watch(
    root: &Endpoint,
    watching: &Watching,
    queue: &Queue<String>,
    name: &str,
    spec: &Value,
) -> Result<Arc<Watched>, Status> {
    let print = json!([spec["source"], spec["references"]]);
    if let Some(known) = watching.lock().get(name).filter(|known| known.print == print) {
        return Ok(known.clone());
    }
    let source = served(root, &spec["source"]).await?;
    let mut references = Vec::new();
    for one in spec["references"].as_array().into_iter().flatten() {
        references.push(served(root, one).await?);
    }
    let mut kinds: Vec<&Gvr> = vec![&source];
    kinds.extend(references.iter().filter(|gvr| **gvr != source));
    kinds.dedup();
    let informers = kinds.into_iter().map(|gvr| {
        let (queue, name) = (queue.clone(), name.to_owned());
        Informer::start(root.clone(), gvr.clone(), Selection::default(), move |_: Change| {
            queue.add_after(name.clone(), GATHER);
        })
    });
    let watched = Arc::new(Watched { print, _informers: informers.collect(), source, references });
    watching.lock().insert(name.to_owned(), watched.clone());
    Ok(watched)
}

/// The version of a kind that is served and wanted.
async fn served(root: &Endpoint, wanted: &Value) -> Result<Gvr, Status> {
    let (group, resource) =
        (wanted["group"].as_str().unwrap_or_default(), wanted["resource"].as_str().unwrap_or_default());
    let missing = || Status::unavailable(format!("{resource} of group {group:?} are not served in root"));
    if group.is_empty() {
        return Ok(Gvr::new("", "v1", resource));
    }
    crate::ask::segment("group", group)?;
    let found = root.get_path(&format!("/apis/{group}")).await.map_err(|_| missing())?;
    let chosen: Vec<&str> = wanted["versions"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let served = found["versions"].as_array().into_iter().flatten().filter_map(|one| one["version"].as_str());
    for version in served.filter(|version| chosen.is_empty() || chosen.contains(version)) {
        let list = root.get_path(&format!("/apis/{group}/{version}")).await?;
        if list["resources"].as_array().is_some_and(|all| all.iter().any(|one| one["name"] == resource)) {
            return Ok(Gvr::new(group, version, resource));
        }
    }
    Err(missing())
}

/// Brings what a source object stands for up to date; the name of it.
async fn bring(core: &Core, policy: &Value, plan: &Plan, watched: &Watched, source: &Value) -> Result<String, Status> {
    let root = core.own_endpoint("root");
    let mut data = json!({"source": source, "references": {}});
    let name = rendered(&plan.name, "nameTemplate", &data)?;
    let made_by = policy["metadata"]["name"].as_str().unwrap_or_default();
    let lifecycle = ensure_lifecycle(&root, policy, made_by, &name, watched, source).await?;
    for ((key, namespace, named), gvr) in plan.references.iter().zip(&watched.references) {
        let namespace = rendered(namespace, "namespaceTemplate", &data)?;
        let named = rendered(named, "nameTemplate", &data)?;
        let place = Some(namespace.as_str()).filter(|namespace| !namespace.is_empty());
        let found = if named.is_empty() { None } else { root.get_opt(gvr, place, &named).await? };
        data["references"][key] = found.unwrap_or_default();
    }
    let told = import(&root, plan, &lifecycle, &name, &data).await;
    let (word, reason, why) = match &told {
        Ok(true) => ("True", "Created", String::new()),
        Ok(false) => ("False", "ConditionNotMet", "the creation condition does not hold yet".to_owned()),
        Err(status) => ("False", "Failed", status.message.clone()),
    };
    tell(core, &LIFECYCLE, &lifecycle, &[("Created", word, reason, &why)]).await?;
    told.map(|_| name)
}

/// A text that names nothing that is not there.
fn rendered(template: &Template, what: &str, data: &Value) -> Result<String, Status> {
    let text = template.render(data).map_err(|why| Status::bad_request(format!("{what}: {why}")))?;
    if text.contains(MISSING) {
        return Err(Status::bad_request(format!("{what} names a field that is not there")));
    }
    Ok(text)
}

async fn ensure_lifecycle(
    root: &Endpoint,
    policy: &Value,
    made_by: &str,
    name: &str,
    watched: &Watched,
    source: &Value,
) -> Result<Value, Status> {
    let meta = &source["metadata"];
    let gvr = &watched.source;
    let references = policy["spec"]["references"].as_array().into_iter().flatten().zip(&watched.references);
    let references: Vec<Value> = references
        .map(|(one, gvr)| {
            let mut one = one.clone();
            one.as_object_mut().map(|map| map.remove("versions"));
            one["version"] = gvr.version.clone().into();
            one
        })
        .collect();
    let spec = json!({
        "source": {"group": gvr.group, "version": gvr.version, "resource": gvr.resource, "namespace": meta["namespace"].as_str().unwrap_or_default(), "name": meta["name"]},
        "references": references, "template": policy["spec"]["template"], "creationCondition": policy["spec"]["creationCondition"],
    });
    let wanted = json!({
        "apiVersion": "policy.clusterpedia.io/v1alpha1", "kind": "PediaClusterLifecycle", "spec": spec,
        "metadata": {"name": name, "labels": {MADE: made_by}, "ownerReferences": [owner(policy, &POLICY)]},
    });
    let Some(mut present) = root.get_opt(&LIFECYCLE.gvr(), None, name).await? else {
        return root.create(&LIFECYCLE.gvr(), None, &wanted).await;
    };
    if present["metadata"]["labels"][MADE] != made_by || present["spec"]["source"]["name"] != meta["name"] {
        return Err(Status::bad_request(format!("the name {name} is taken by another source or policy")));
    }
    if present["spec"] != spec {
        present["spec"] = spec;
        return root.update(&LIFECYCLE.gvr(), None, name, &present).await;
    }
    Ok(present)
}

fn owner(object: &Value, kind: &Kind) -> Value {
    let meta = &object["metadata"];
    json!({"apiVersion": format!("{}/{}", kind.group, kind.version), "kind": kind.kind, "name": meta["name"], "uid": meta["uid"]})
}

/// Makes the cluster when its condition holds, or brings its address and credentials up to date; whether it is there.
async fn import(root: &Endpoint, plan: &Plan, lifecycle: &Value, name: &str, data: &Value) -> Result<bool, Status> {
    let present = root.get_opt(&CLUSTER.gvr(), None, name).await?;
    if present.is_none() {
        let condition =
            plan.condition.render(data).map_err(|why| Status::bad_request(format!("creationCondition: {why}")))?;
        if !condition.trim().eq_ignore_ascii_case("true") {
            return Ok(false);
        }
    }
    let text = rendered(&plan.template, "template", data)?;
    let mut wanted: Value = serde_saphyr::from_str(&text)
        .map_err(|error| Status::bad_request(format!("the template makes no object: {error}")))?;
    let parts = [&wanted["metadata"], &wanted["metadata"]["labels"], &wanted["spec"]];
    if !wanted.is_object() || !parts.iter().all(|part| part.is_null() || part.is_object()) {
        return Err(Status::bad_request("the template makes no object: metadata, labels and spec must be maps"));
    }
    let Some(present) = present else {
        wanted["apiVersion"] = format!("{}/{}", CLUSTER.group, CLUSTER.version).into();
        wanted["kind"] = CLUSTER.kind.as_ref().into();
        wanted["metadata"]["name"] = name.into();
        wanted["metadata"]["labels"][MADE] = lifecycle["metadata"]["labels"][MADE].clone();
        wanted["metadata"]["ownerReferences"] = json!([owner(lifecycle, &LIFECYCLE)]);
        if wanted["spec"]["syncResources"].is_null() {
            wanted["spec"]["syncResources"] = json!([]);
        }
        root.create(&CLUSTER.gvr(), None, &wanted).await?;
        return Ok(true);
    };
    let given =
        |object: &Value, key: &str| object["spec"][key].as_str().filter(|text| !text.is_empty()).map(ToOwned::to_owned);
    let mut change = Map::new();
    for key in WAY.into_iter().filter(|key| given(&wanted, key) != given(&present, key)) {
        change.insert(key.to_owned(), given(&wanted, key).map_or(Value::Null, Value::from));
    }
    if !change.is_empty() {
        root.patch(&CLUSTER.gvr(), None, name, "", Patch::Merge, &json!({"spec": change})).await?;
    }
    Ok(true)
}

/// Removes what a policy made and no longer wants; what was there before it stays.
async fn clear(root: &Endpoint, policy: &str, wanted: &BTreeSet<String>) -> Result<(), Status> {
    let query = format!("labelSelector={}%3D{policy}", MADE.replace('/', "%2F"));
    for kind in [&CLUSTER, &LIFECYCLE] {
        for object in root.list(&kind.gvr(), None, &query).await?.items {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            if wanted.contains(name) {
                continue;
            }
            match root.delete(&kind.gvr(), None, name, &Value::Null).await {
                Err(status) if status.code != 404 => return Err(status),
                _ => {}
            }
        }
    }
    Ok(())
}

/// Writes conditions, when they say something new.
async fn tell(core: &Core, kind: &Kind, object: &Value, conditions: &[(&str, &str, &str, &str)]) -> Result<(), Status> {
    let old = |ty: &str| {
        object["status"]["conditions"].as_array().into_iter().flatten().find(|condition| condition["type"] == ty)
    };
    let says = |(ty, word, reason, message): &(&str, &str, &str, &str)| {
        old(ty).is_some_and(|old| old["status"] == *word && old["reason"] == *reason && old["message"] == *message)
    };
    if conditions.iter().all(says) {
        return Ok(());
    }
    let now = time::format(core.hub.now());
    let conditions: Vec<Value> = conditions
        .iter()
        .map(|(ty, word, reason, message)| {
            let since = old(ty)
                .filter(|old| old["status"] == *word)
                .map_or(json!(now), |old| old["lastTransitionTime"].clone());
            json!({"type": ty, "status": word, "reason": reason, "message": message, "lastTransitionTime": since})
        })
        .collect();
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let change = json!({"status": {"conditions": conditions}});
    match core.own_endpoint("root").patch(&kind.gvr(), None, name, "status", Patch::Merge, &change).await {
        Err(status) if status.code != 404 => Err(status),
        _ => Ok(()),
    }
}
