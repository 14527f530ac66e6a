//! Copies that arrive in a member after their work has gone: requests the member took its time for.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use atoll_api::names;
use atoll_api::words::label;
use atoll_meta::{Gvr, Status};
use atoll_runtime::Endpoint;
use parking_lot::Mutex;
use serde_json::json;

use crate::member::Member;
use crate::{foreign, gvr, merge};

/// So many works are remembered after their end.
const MEMORY: usize = 10_000;

/// Where an object of a member is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Place {
    /// Its resource.
    pub gvr: Gvr,
    /// Its namespace, or empty.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
}

/// Ids of works whose copies we removed, oldest first.
#[derive(Default)]
struct Ended {
    ids: HashSet<Box<str>>,
    order: VecDeque<Box<str>>,
}

/// What a member knows of works that have gone. Only what was removed once may be removed again: an object with a mark
/// nobody knows is left alone.
#[derive(Default)]
pub struct Strays {
    ended: Mutex<Ended>,
    found: Mutex<HashMap<Arc<str>, Place>>,
}

impl Strays {
    /// Remembers that the copy of a work was removed.
    pub fn bury(&self, id: &str) {
        let mut ended = self.ended.lock();
        if ended.ids.insert(id.into()) {
            ended.order.push_back(id.into());
        }
        while ended.order.len() > MEMORY {
            let oldest = ended.order.pop_front().unwrap_or_default();
            ended.ids.remove(&oldest);
        }
    }

    /// Whether the copy of a work was removed.
    pub fn is_buried(&self, id: &str) -> bool {
        self.ended.lock().ids.contains(id)
    }

    /// Notes a copy that came late, under the name its work had.
    pub fn notice(&self, work: &Arc<str>, place: Place) {
        self.found.lock().insert(work.clone(), place);
    }

    /// Forgets a stray.
    pub fn forget(&self, work: &str) {
        self.found.lock().remove(work);
    }
}

/// Removes the copy of a work that is gone, if one was seen and the work is gone indeed.
pub async fn remove(instance: &Endpoint, member: &Member, work: &str) -> Result<Option<Duration>, Status> {
    let Some(place) = member.strays.found.lock().get(work).cloned() else { return Ok(None) };
    let works = names::execution_namespace(&member.name);
    if instance.get_opt(&gvr::works(), Some(&works), work).await?.is_none() {
        let namespace = Some(&*place.namespace).filter(|namespace| !namespace.is_empty());
        if let Some(object) = member.endpoint.get_opt(&place.gvr, namespace, &place.name).await? {
            let meta = &object["metadata"];
            let id = meta["labels"][label::WORK_ID].as_str().unwrap_or_default();
            let stays = place.gvr == gvr::core("namespaces") && foreign::may_be_shared(&object);
            if merge::is_ours(&object) && member.strays.is_buried(id) && !stays {
                tracing::info!(member = %member.name, work, "removed a copy that came after its work had gone");
                let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background",
                    "preconditions": {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}});
                member.endpoint.delete(&place.gvr, namespace, &place.name, &options).await?;
            }
        }
    }
    member.strays.forget(work);
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn works_that_ended_are_remembered_and_the_oldest_are_forgotten() {
        let strays = Strays::default();
        for number in 0..=MEMORY {
            strays.bury(&number.to_string());
            strays.bury(&number.to_string());
        }
        assert_eq!(["0", "1", "never-known"].map(|id| strays.is_buried(id)), [false, true, false]);
        assert_eq!(strays.ended.lock().ids.len(), MEMORY);
    }
}
