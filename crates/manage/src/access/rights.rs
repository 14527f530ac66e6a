//! What a caller may see of the index.

use std::sync::Arc;
use std::time::Duration;

use atoll_apiserver::Identity;
use atoll_index::{ByRoles, Place, Rights};
use atoll_meta::{Gvr, Status};
use serde_json::json;

use crate::context::Core;

/// How long an instance elsewhere may take to say what a caller may see: searches wait for it.
const PATIENCE: Duration = Duration::from_secs(2);

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
        // An instance elsewhere is asked itself, as the caller. It is not named: who asks may not know of it.
        let unknown = || Status::unavailable("an instance cannot say now what may be seen of it; begin anew");
        let externals = &self.core.externals;
        if externals.is_silent(place.instance()) {
            return Err(unknown());
        }
        let way = externals.endpoint(&self.core, place.instance(), &self.identity).await;
        let Some(endpoint) = way.map_err(|_| unknown())? else { return Ok(false) };
        let attributes = json!({
            "verb": if place.name.is_some() { "get" } else { "list" }, "group": place.group, "version": place.version, "resource": place.resource,
            "namespace": place.namespace.unwrap_or_default(), "name": place.name.unwrap_or_default(),
        });
        let review = json!({"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "spec": {"resourceAttributes": attributes}});
        let reviews = Gvr::new("authorization.k8s.io", "v1", "selfsubjectaccessreviews");
        let answer = tokio::time::timeout(PATIENCE, endpoint.create(&reviews, None, &review)).await;
        match answer.unwrap_or_else(|_| Err(Status::timeout("no answer", 1))) {
            Ok(answer) => Ok(answer["status"]["allowed"] == true),
            // It answers, and does not even let the caller ask, or knows no such question.
            Err(status) if matches!(status.code, 401 | 403 | 404) => Ok(false),
            Err(status) => {
                tracing::debug!(instance = place.instance(), %status, "rights could not be asked for");
                externals.was_silent(place.instance());
                Err(unknown())
            }
        }
    }

    fn changes(&self) -> Option<tokio::sync::watch::Receiver<u64>> {
        Some(self.core.epoch.subscribe())
    }
}
