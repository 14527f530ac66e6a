//! ReplicationControllers: what ReplicaSets were before.

use atoll_meta::selector::LabelSelector;

use super::{Again, parent, replicaset};
use crate::kind::Kind;
use crate::world::{Work, World};

/// Looks after one ReplicationController.
pub async fn reconcile(world: &World, work: &Work) -> Again {
    let Some(controller) = parent(world, Kind::ReplicationController, work) else { return Ok(None) };
    let labels = controller["spec"]["selector"].as_object().cloned().unwrap_or_default();
    let selector = LabelSelector::from_labels(&labels).unwrap_or_else(|_| LabelSelector::nothing());
    replicaset::run(world, work, Kind::ReplicationController, &controller, &selector).await
}
