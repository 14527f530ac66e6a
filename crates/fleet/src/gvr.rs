//! Resources the controllers read and write.

use atoll_meta::Gvr;

/// Instances, in the root of a hub.
pub fn instances() -> Gvr {
    Gvr::new("atoll.io", "v1alpha1", "instances")
}

/// Members as the instance sees them.
pub fn clusters() -> Gvr {
    Gvr::new("cluster.karmada.io", "v1alpha1", "clusters")
}

/// Policies of a namespace.
pub fn policies() -> Gvr {
    Gvr::new("policy.karmada.io", "v1alpha1", "propagationpolicies")
}

/// Policies of the instance.
pub fn cluster_policies() -> Gvr {
    Gvr::new("policy.karmada.io", "v1alpha1", "clusterpropagationpolicies")
}

/// Overrides of a namespace.
pub fn overrides() -> Gvr {
    Gvr::new("policy.karmada.io", "v1alpha1", "overridepolicies")
}

/// Overrides of the instance.
pub fn cluster_overrides() -> Gvr {
    Gvr::new("policy.karmada.io", "v1alpha1", "clusteroverridepolicies")
}

/// Taints that follow conditions.
pub fn taint_policies() -> Gvr {
    Gvr::new("policy.karmada.io", "v1alpha1", "clustertaintpolicies")
}

/// Bindings of namespaced (`true`) or cluster-scoped templates.
pub fn bindings(namespaced: bool) -> Gvr {
    let plural = if namespaced { "resourcebindings" } else { "clusterresourcebindings" };
    Gvr::new("work.karmada.io", "v1alpha2", plural)
}

/// What members are to hold.
pub fn works() -> Gvr {
    Gvr::new("work.karmada.io", "v1alpha1", "works")
}

/// Customisations of the interpreter.
pub fn customizations() -> Gvr {
    Gvr::new("config.karmada.io", "v1alpha1", "resourceinterpretercustomizations")
}

/// Requests for new decisions.
pub fn rebalancers() -> Gvr {
    Gvr::new("apps.karmada.io", "v1alpha1", "workloadrebalancers")
}

/// A resource of the core group.
pub fn core(plural: &str) -> Gvr {
    Gvr::new("", "v1", plural)
}

/// Leases.
pub fn leases() -> Gvr {
    Gvr::new("coordination.k8s.io", "v1", "leases")
}

/// A resource of the RBAC group.
pub fn rbac(plural: &str) -> Gvr {
    Gvr::new("rbac.authorization.k8s.io", "v1", plural)
}

/// Priority classes.
pub fn priority_classes() -> Gvr {
    Gvr::new("scheduling.k8s.io", "v1", "priorityclasses")
}
