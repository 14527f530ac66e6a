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
    /// Count what the quotas of a namespace charge.
    CountUsage(InstanceId, String),
    /// Fill or delete the token Secrets of an account, by namespace and name.
    SettleTokens(InstanceId, String, String),
    /// Sign the map for joiners.
    SignInfo(InstanceId),
    /// Delete a bootstrap token when it is over.
    ExpireToken(InstanceId, String),
    /// Delete events that are over.
    ExpireEvents(InstanceId),
    /// Delete a finished job when it is over.
    ExpireJob(InstanceId, Key),
    /// Grant a kubelet its certificate.
    ApproveRequest(InstanceId, String),
    /// Delete a certificate signing request when it is over.
    ExpireRequest(InstanceId, String),
}

impl Task {
    /// The instance it is for.
    pub fn instance(&self) -> InstanceId {
        match self {
            Self::EmptyNamespace(id, _)
            | Self::FurnishNamespace(id, _)
            | Self::EmptyDefinition(id, _)
            | Self::FinishOwner(id, _)
            | Self::CheckDependent(id, _)
            | Self::CountUsage(id, _)
            | Self::SettleTokens(id, ..)
            | Self::SignInfo(id)
            | Self::ExpireToken(id, _)
            | Self::ExpireEvents(id)
            | Self::ExpireJob(id, _)
            | Self::ApproveRequest(id, _)
            | Self::ExpireRequest(id, _) => *id,
        }
    }

    /// The name under which it is done, as in the original's controllers.
    pub fn agent(&self) -> &'static str {
        match self {
            Self::EmptyNamespace(..) => "namespace-controller",
            Self::FurnishNamespace(..) => "service-account-controller",
            Self::EmptyDefinition(..) => "crd-finalizer",
            Self::FinishOwner(..) | Self::CheckDependent(..) => "generic-garbage-collector",
            Self::CountUsage(..) => "resourcequota-controller",
            Self::SettleTokens(..) => "tokens-controller",
            Self::SignInfo(..) => "bootstrap-signer",
            Self::ExpireToken(..) => "token-cleaner",
            Self::ExpireEvents(..) => "event-expiry",
            Self::ExpireJob(..) => "ttl-after-finished-controller",
            Self::ApproveRequest(..) | Self::ExpireRequest(..) => "certificate-controller",
        }
    }
}
