//! Rules for instances that hold at every entry: protection and pauses. Limits are the API's own.

use std::collections::HashSet;
use std::sync::Arc;

use atoll_apiserver::{Admission, Identity, Operation, Review};
use atoll_meta::{Reason, Status};
use atoll_runtime::{Change, Informer, Selection};
use atoll_store::Write;
use parking_lot::RwLock;
use serde_json::Value;

use crate::context::Core;
use crate::kinds::INSTANCE;

/// Deletes an instance although clusters are joined to it.
const FORCE: &str = "atoll.io/force-delete";
/// What keys of clusters begin with.
const CLUSTERS: &str = "clusters.cluster.karmada.io/";

/// Names of the instances that are paused, kept up to date.
#[derive(Default)]
pub struct Rules {
    paused: RwLock<HashSet<String>>,
}

impl Rules {
    /// Applies them to every write from now on. The informer must be kept.
    pub fn start(core: &Core) -> Informer {
        let rules = Arc::new(Self::default());
        core.hub.add_admission(rules.clone());
        Informer::start(core.own_endpoint("root"), INSTANCE.gvr(), Selection::default(), move |change: Change| {
            let item = change.item();
            let name = item.object.head.name.to_string();
            let rests = !matches!(change, Change::Deleted(_)) && item.tree()["spec"]["paused"] == true;
            let mut paused = rules.paused.write();
            if rests {
                paused.insert(name)
            } else {
                paused.remove(&name)
            };
        })
    }

    /// Refuses writes in paused instances. The hub's own parts go on: what runs is looked after.
    fn check(&self, review: &Review<'_>) -> Result<(), Status> {
        let name = &review.call.instance.name;
        if self.paused.read().contains(&**name) && !is_own(&review.call.identity) {
            return Err(paused(name));
        }
        Ok(())
    }
}

fn is_own(identity: &Identity) -> bool {
    identity.is_master() && identity.user.starts_with("system:atoll:")
}

/// What is said to who would change a paused instance.
pub fn paused(name: &str) -> Status {
    refused(format!("instance {name} is paused: nothing is changed in it"))
}

fn refused(why: String) -> Status {
    Status::new(403, Reason::Forbidden, why)
}

/// Refuses to delete instances that are protected, or that clusters are joined to.
async fn may_go(review: &Review<'_>) -> Result<(), Status> {
    let Some(old) = review.old else { return Ok(()) };
    let name = old["metadata"]["name"].as_str().unwrap_or_default();
    if old["spec"]["deletionProtection"] == true {
        return Err(refused(format!("instance {name} is protected against deletion")));
    }
    let forced = old["metadata"]["annotations"][FORCE] == "true";
    if let Some(instance) = review.call.hub.instance(name).filter(|_| !forced) {
        let joined = review.call.hub.snapshot(&instance).await?.range(CLUSTERS, None).count();
        if joined > 0 {
            return Err(refused(format!(
                "{joined} clusters are joined to instance {name}; remove them first, or set the annotation {FORCE}"
            )));
        }
    }
    Ok(())
}

#[async_trait::async_trait]
impl Admission for Rules {
    async fn validate(&self, review: &Review<'_>, _object: &Value) -> Result<Vec<Write>, Status> {
        let in_root = &*review.call.instance.name == "root";
        if in_root && review.operation == Operation::Delete && review.is("atoll.io", "instances") {
            may_go(review).await?;
        }
        if !in_root && review.subresource.is_empty() {
            self.check(review)?;
        }
        Ok(Vec::new())
    }
}
