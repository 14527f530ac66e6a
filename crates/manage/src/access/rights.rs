//! What a caller may see of the index.

use std::sync::Arc;

use atoll_apiserver::Identity;
use atoll_index::{ByRoles, Place, Rights};
use atoll_meta::{Gvr, Status};
use serde_json::json;

use crate::context::Core;

/// The rights of a caller in instances of this hub and elsewhere.
pub struct CallerRights {
    core: Arc<Core>,
    identity: Identity,
    hosted: ByRoles,
}

impl CallerRights {
    /// For a caller.
    pub fn new(core: Arc<Core>, identity: Identity) -> Self {
        Self { hosted: ByRoles::new(core.hub.clone(), identity.clone()), core, identity }
    }
}

#[async_trait::async_trait]
impl Rights for CallerRights {
    async fn may_see(&self, place: Place<'_>) -> Result<bool, Status> {
        if self.identity.is_master() || self.core.hub.instance(place.instance()).is_some() {
            return self.hosted.may_see(place).await;
        }
        // An instance elsewhere is asked itself, as the caller.
        let way = self.core.externals.endpoint(&self.core, place.instance(), &self.identity).await;
        let Ok(Some(endpoint)) = way else { return Ok(false) };
        let attributes = json!({
            "verb": if place.name.is_some() { "get" } else { "list" }, "group": place.group, "version": place.version, "resource": place.resource,
            "namespace": place.namespace.unwrap_or_default(), "name": place.name.unwrap_or_default(),
        });
        let review = json!({"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "spec": {"resourceAttributes": attributes}});
        match endpoint.create(&Gvr::new("authorization.k8s.io", "v1", "selfsubjectaccessreviews"), None, &review).await
        {
            Ok(answer) => Ok(answer["status"]["allowed"] == true),
            // One that cannot be asked shows nothing, and what others show is shown nevertheless.
            Err(status) => {
                tracing::debug!(instance = place.instance(), %status, "rights could not be asked for");
                Ok(false)
            }
        }
    }

    fn changes(&self) -> Option<tokio::sync::watch::Receiver<u64>> {
        Some(self.core.epoch.subscribe())
    }
}
