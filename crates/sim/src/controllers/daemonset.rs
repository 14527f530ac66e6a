//! Not yet.

use super::Again;
use crate::world::{Work, World};

/// Looks after one object.
pub async fn reconcile(_world: &World, _work: &Work) -> Again {
    Ok(None)
}
