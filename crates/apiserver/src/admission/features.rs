//! Which parts of admission an instance wants.

use std::sync::{Arc, LazyLock};

/// Switches of in-process admission.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub struct Features {
    /// Pods get a service account, which must exist, and its token.
    pub service_accounts: bool,
    /// Pods and claims get the defaults, and keep the limits, of LimitRanges.
    pub limits: bool,
    /// Pods get the number of their priority class.
    pub priority: bool,
    /// Pods stay a while on nodes that are not ready.
    pub tolerations: bool,
    /// What is made is charged to ResourceQuotas.
    pub quota: bool,
}

impl Features {
    /// A control plane: workloads are templates for other clusters, so service accounts are not demanded.
    pub fn control_plane() -> Arc<Self> {
        static SHARED: LazyLock<Arc<Features>> = LazyLock::new(|| {
            Arc::new(Features { service_accounts: false, limits: true, priority: true, tolerations: true, quota: true })
        });
        SHARED.clone()
    }

    /// A member that runs pods.
    pub fn member() -> Arc<Self> {
        static SHARED: LazyLock<Arc<Features>> =
            LazyLock::new(|| Arc::new(Features { service_accounts: true, ..*Features::control_plane() }));
        SHARED.clone()
    }
}
