//! Which kinds an API serves, under which paths.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use atoll_api::cluster::{ApiEnablement, ApiResource};
use atoll_meta::{Gvk, Gvr, Status, split_api_version};
use atoll_runtime::Endpoint;
use parking_lot::RwLock;
use serde_json::Value;
use tokio::time::Instant;

/// A kind that is not found is not asked for again within this time.
const PATIENCE: Duration = Duration::from_secs(2);

/// A served kind.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KindInfo {
    /// Where it is.
    pub gvr: Gvr,
    /// Whether it lives in namespaces.
    pub namespaced: bool,
    /// Whether its status is written apart.
    pub has_status: bool,
}

/// Everything an API serves.
#[derive(Clone, Debug, Default)]
pub struct Discovery {
    kinds: HashMap<Gvk, Arc<KindInfo>>,
    /// Groups, versions and kinds as a Cluster reports them.
    pub enablements: Vec<ApiEnablement>,
    /// Whether some groups did not answer.
    pub partial: bool,
    /// Which versions of them.
    silent: Vec<String>,
}

impl Discovery {
    /// Adds the resources of one group and version.
    pub fn add(&mut self, group_version: &str, list: &Value) {
        let (group, version) = split_api_version(group_version);
        let resources = list["resources"].as_array().map(Vec::as_slice).unwrap_or_default();
        let has = |name: &str| resources.iter().any(|resource| resource["name"] == name);
        let mut enabled = Vec::new();
        for resource in resources {
            let (Some(name), Some(kind)) = (resource["name"].as_str(), resource["kind"].as_str()) else { continue };
            if name.contains('/') {
                continue;
            }
            enabled.push(ApiResource { name: name.to_owned(), kind: kind.to_owned() });
            let verbs = resource["verbs"].as_array();
            if !verbs.is_some_and(|verbs| verbs.iter().any(|verb| verb == "get")) {
                continue;
            }
            let info = KindInfo {
                gvr: Gvr::new(group, version, name),
                namespaced: resource["namespaced"].as_bool().unwrap_or_default(),
                has_status: has(&format!("{name}/status")),
            };
            self.kinds.insert(Gvk::new(group, version, kind), Arc::new(info));
        }
        enabled.sort_by(|a, b| a.name.cmp(&b.name));
        self.enablements.push(ApiEnablement { group_version: group_version.to_owned(), resources: enabled });
    }

    /// A kind by its name or plural in any case; the plainest group first.
    pub fn named(&self, text: &str) -> Option<(Gvk, Arc<KindInfo>)> {
        let (text, group) = text.split_once('.').map_or((text, None), |(text, group)| (text, Some(group)));
        let fits = |gvk: &Gvk, info: &KindInfo| {
            (gvk.kind.eq_ignore_ascii_case(text) || info.gvr.resource.eq_ignore_ascii_case(text))
                && group.is_none_or(|group| gvk.group == group)
        };
        let rank = |gvk: &Gvk| (!gvk.group.is_empty(), gvk.group.contains('.'), gvk.version.len(), gvk.clone());
        let found = self.kinds.iter().filter(|(gvk, info)| fits(gvk, info)).min_by_key(|(gvk, _)| rank(gvk));
        found.map(|(gvk, info)| (gvk.clone(), info.clone()))
    }

    /// A kind.
    pub fn get(&self, gvk: &Gvk) -> Option<Arc<KindInfo>> {
        self.kinds.get(gvk).cloned()
    }
}

/// The list at a field of an answer. Whatever stands between the API and us may say that all is well and answer
/// anything; taken for a list it would mean that nothing is served.
fn listed<'a>(answer: &'a Value, field: &str) -> Result<&'a [Value], Status> {
    match answer.get(field) {
        Some(Value::Array(list)) => Ok(list),
        // Some say so of an empty list.
        Some(Value::Null) if answer["kind"].is_string() => Ok(&[]),
        _ => Err(Status::unavailable(format!("the answer to discovery has no {field}"))),
    }
}

/// Asks an API what it serves. Groups that fail are left out and marked.
pub async fn discover(endpoint: &Endpoint) -> Result<Discovery, Status> {
    let (core, groups) = tokio::try_join!(endpoint.get_path("/api/v1"), endpoint.get_path("/apis"))?;
    let mut found = Discovery::default();
    listed(&core, "resources")?;
    found.add("v1", &core);
    let versions: Vec<String> = listed(&groups, "groups")?
        .iter()
        .flat_map(|group| group["versions"].as_array().into_iter().flatten())
        .filter_map(|version| version["groupVersion"].as_str().map(ToOwned::to_owned))
        .collect();
    let lists = futures::future::join_all(
        versions.iter().map(|version| async move { endpoint.get_path(&format!("/apis/{version}")).await }),
    );
    for (version, list) in versions.iter().zip(lists.await) {
        match list.and_then(|list| listed(&list, "resources").map(drop).map(|()| list)) {
            Ok(list) => found.add(version, &list),
            Err(status) => {
                tracing::debug!(endpoint = endpoint.name(), version, %status, "group not discovered");
                found.partial = true;
                found.silent.push(version.clone());
            }
        }
    }
    found.enablements.sort_by(|a, b| a.group_version.cmp(&b.group_version));
    Ok(found)
}

/// What an API serves, asked for again when an unknown kind comes up.
pub struct Kinds {
    endpoint: Endpoint,
    known: RwLock<Arc<Discovery>>,
    asked: tokio::sync::Mutex<Option<Instant>>,
}

impl Kinds {
    /// Of this API; nothing is asked yet.
    pub fn new(endpoint: Endpoint) -> Self {
        Self { endpoint, known: RwLock::default(), asked: tokio::sync::Mutex::default() }
    }

    /// What is known now.
    pub fn known(&self) -> Arc<Discovery> {
        self.known.read().clone()
    }

    /// Asks again.
    pub async fn refresh(&self) -> Result<Arc<Discovery>, Status> {
        let found = Arc::new(discover(&self.endpoint).await?);
        *self.known.write() = found.clone();
        Ok(found)
    }

    /// A kind; `None` when the API does not serve it.
    pub async fn get(&self, gvk: &Gvk) -> Result<Option<Arc<KindInfo>>, Status> {
        if let Some(info) = self.known().get(gvk) {
            return Ok(Some(info));
        }
        let mut asked = self.asked.lock().await;
        if let Some(info) = self.known().get(gvk) {
            return Ok(Some(info));
        }
        if !asked.is_some_and(|at| at.elapsed() < PATIENCE) {
            self.refresh().await?;
            *asked = Some(Instant::now());
        }
        let known = self.known();
        match known.get(gvk) {
            // What could not be asked for is not known to be absent: nothing may be given up because of it.
            None if known.silent.contains(&gvk.api_version()) => {
                Err(Status::unavailable(format!("not known yet whether {gvk} is served")))
            }
            info => Ok(info),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use atoll_runtime::{BodyStream, Transport};
    use bytes::Bytes;
    use http::{Request, Response};
    use serde_json::json;

    use super::*;

    /// Says these things of itself, and `{}` to all other questions.
    struct Says(Vec<(&'static str, Value)>);

    #[async_trait::async_trait]
    impl Transport for Says {
        async fn send(&self, request: Request<Bytes>) -> Result<Response<BodyStream>, Status> {
            let known = self.0.iter().find(|(path, _)| *path == request.uri().path());
            let text = known.map_or_else(|| json!({}), |(_, answer)| answer.clone()).to_string();
            let body: BodyStream = Box::pin(futures::stream::iter([Ok(Bytes::from(text))]));
            Ok(Response::new(body))
        }
    }

    #[tokio::test]
    async fn what_is_no_discovery_does_not_mean_that_nothing_is_served() {
        let core = json!({"kind": "APIResourceList", "resources": [
            {"name": "pods", "kind": "Pod", "namespaced": true, "verbs": ["get"]}]});
        let groups = |names: &[&str]| {
            let one = |name: &&str| json!({"name": name, "versions": [{"groupVersion": format!("{name}/v1")}]});
            json!({"kind": "APIGroupList", "groups": names.iter().map(one).collect::<Vec<_>>()})
        };
        let kinds = |says| Kinds::new(Endpoint::new("m", Arc::new(Says(says)), "test"));
        let (pod, gear) = (Gvk::new("", "v1", "Pod"), Gvk::new("gears.io", "v1", "Gear"));
        for says in [vec![], vec![("/api/v1", core.clone())], vec![("/apis", groups(&[]))]] {
            assert_eq!(kinds(says).get(&pod).await.unwrap_err().code, 503);
        }
        let silent = kinds(vec![("/api/v1", core.clone()), ("/apis", groups(&["gears.io"]))]);
        assert!(silent.get(&pod).await.unwrap().is_some());
        assert_eq!(silent.get(&gear).await.unwrap_err().code, 503, "its list was no list");
        let empty = json!({"kind": "APIResourceList", "resources": null});
        let says = vec![("/api/v1", core), ("/apis", groups(&["gears.io"])), ("/apis/gears.io/v1", empty)];
        assert_eq!(kinds(says).get(&gear).await, Ok(None), "nothing of it is served");
    }

    #[test]
    fn a_kind_is_found_by_its_name_and_knows_whether_it_has_a_status() {
        let mut found = Discovery::default();
        found.add(
            "apps/v1",
            &json!({"resources": [
                {"name": "deployments", "kind": "Deployment", "namespaced": true, "verbs": ["get", "list"]},
                {"name": "deployments/status", "kind": "Deployment", "namespaced": true, "verbs": ["get"]},
                {"name": "odd", "kind": "Odd", "namespaced": false, "verbs": ["create"]},
            ]}),
        );
        let info = found.get(&Gvk::new("apps", "v1", "Deployment")).unwrap();
        assert_eq!(*info, KindInfo { gvr: Gvr::new("apps", "v1", "deployments"), namespaced: true, has_status: true });
        assert_eq!(found.get(&Gvk::new("apps", "v1", "Odd")), None, "what cannot be read cannot be followed");
        assert_eq!(found.enablements[0].resources.len(), 2);
    }
}
