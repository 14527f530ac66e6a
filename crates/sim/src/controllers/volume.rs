//! Not yet.

use super::Again;
use crate::world::{Work, World};

/// Makes the storage class.
pub async fn ensure_class(_world: &World) -> Result<(), atoll_meta::Status> {
    Ok(())
}

/// Looks after one claim.
pub async fn reconcile_claim(_world: &World, _work: &Work) -> Again {
    Ok(None)
}

/// Looks after one volume.
pub async fn reconcile_volume(_world: &World, _work: &Work) -> Again {
    Ok(None)
}
