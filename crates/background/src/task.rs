//! What there is to do, and for which instance.

use atoll_meta::{InstanceId, Key};

/// A piece of background work.
#[derive(Clone, Debug, Eq, PartialEq, Hash)]
pub enum Task {
    /// Empty and finish a namespace that is being deleted.
    EmptyNamespace(InstanceId, String),
    /// Give a namespace what every namespace has.
    FurnishNamespace(InstanceId, String),
    /// Delete objects whose definition is being deleted, then the definition.
    EmptyDefinition(InstanceId, String),
    /// Look at an object being deleted whose dependents matter.
    FinishOwner(InstanceId, Key),
    /// Look at an object whose owner changed or is gone.
    CheckDependent(InstanceId, Key),
}

impl Task {
    /// The instance it is for.
    pub fn instance(&self) -> InstanceId {
        match self {
            Self::EmptyNamespace(id, _)
            | Self::FurnishNamespace(id, _)
            | Self::EmptyDefinition(id, _)
            | Self::FinishOwner(id, _)
            | Self::CheckDependent(id, _) => *id,
        }
    }
}
