//! Enrolment of members that pull: a token lets one in, a certificate with few rights keeps it.
//!
//! ```text
//! token → cluster-info (signed with it) → certificate request → judge → rights of the agent → certificate
//! ```

pub mod ask;
mod identity;
mod info;
mod judge;
pub mod rights;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use atoll_meta::{Gvr, Status};
use atoll_runtime::{Cache, Change, Endpoint, Informer, Patch, Queue, Selection, work};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

pub use self::identity::Identity;
use self::judge::Judgement;
use crate::gvr;
use crate::options::Clock;

type Again = Result<Option<Duration>, Status>;

/// Lets members enrol in one instance. It ends when dropped or with its stop token.
///
/// What newcomers read first, `cluster-info` and its signatures, is kept by the background work of every instance.
pub struct Enrolment {
    _requests: Informer,
}

struct Core {
    instance: Endpoint,
    clock: Clock,
    requests: OnceLock<Cache>,
}

impl Enrolment {
    /// Makes what is missing in the instance and starts to answer newcomers.
    pub async fn start(instance: Endpoint, clock: Clock, stop: CancellationToken) -> Result<Self, Status> {
        for (resource, object) in rights::standing() {
            put(&instance, &resource, &object).await?;
        }
        let core = Arc::new(Core { instance: instance.clone(), clock, requests: OnceLock::new() });
        let queue = Queue::<String>::default();
        let added = queue.clone();
        let requests = Informer::start(instance, requests(), Selection::default(), move |change: Change| {
            if !matches!(change, Change::Deleted(_)) {
                added.add(change.item().object.head.name.to_string());
            }
        });
        // Nobody else sets it.
        let _ = core.requests.set(requests.cache.clone());
        tokio::spawn(work(queue, 1, stop, move |name| approve(core.clone(), name)));
        Ok(Self { _requests: requests })
    }
}

fn requests() -> Gvr {
    Gvr::new("certificates.k8s.io", "v1", "certificatesigningrequests")
}

/// Grants a request if it may be granted without a person.
async fn approve(core: Arc<Core>, name: String) -> Again {
    let Some(item) = core.requests.get().and_then(|cache| cache.get("", &name)) else { return Ok(None) };
    let mut request = item.tree();
    let clusters = core.instance.list(&gvr::clusters(), None, "").await?.items;
    let exists = |wanted: &str| clusters.iter().any(|cluster| cluster["metadata"]["name"] == wanted);
    let (member, refusal) = match judge::judge(&request, exists) {
        Judgement::NotOurs => return Ok(None),
        Judgement::Ask(why) => (None, Some(why)),
        Judgement::Grant(member, part) if core.instance.may_be_certified(&request["spec"], part).await? => {
            (member, None)
        }
        Judgement::Grant(_, part) => {
            (None, Some(format!("the asker may not create certificatesigningrequests/{part}")))
        }
    };
    if let Some(why) = refusal {
        core.instance.event(&request, "Warning", "NotApproved", &why, (core.clock)()).await;
        return Ok(None);
    }
    // The rights first: a certificate is used as soon as it is there.
    for (resource, object) in member.iter().flat_map(|member| rights::of_agent(member)) {
        put(&core.instance, &resource, &object).await?;
    }
    request["status"]["conditions"] = json!([{"type": "Approved", "status": "True", "reason": "AutoApproved",
        "message": "Auto approving karmada agent certificate after SubjectAccessReview."}]);
    match core.instance.update_sub(&requests(), None, &name, "approval", &request).await {
        Err(status) if status.code != 404 => Err(status),
        _ => Ok(None),
    }
}

async fn put(instance: &Endpoint, resource: &Gvr, object: &Value) -> Result<(), Status> {
    let namespace = object["metadata"]["namespace"].as_str();
    let present = instance.ensure(resource, namespace, object).await?;
    if !object["rules"].is_null() && present["rules"] != object["rules"] {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        instance.patch(resource, namespace, name, "", Patch::Merge, &json!({"rules": object["rules"]})).await?;
    }
    Ok(())
}
