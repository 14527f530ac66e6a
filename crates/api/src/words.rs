//! Labels, annotations, finalizers, taints and reasons that Karmada's programs know by name.

/// The scheduler that decides when a policy names none.
pub const DEFAULT_SCHEDULER: &str = "default-scheduler";

/// Labels.
pub mod label {
    /// Permanent id of a PropagationPolicy, on it and on what it claims.
    pub const POLICY_ID: &str = "propagationpolicy.karmada.io/permanent-id";
    /// Permanent id of a ClusterPropagationPolicy, on it and on what it claims.
    pub const CLUSTER_POLICY_ID: &str = "clusterpropagationpolicy.karmada.io/permanent-id";
    /// Permanent id of a ResourceBinding, on it and on its works.
    pub const BINDING_ID: &str = "resourcebinding.karmada.io/permanent-id";
    /// Permanent id of a ClusterResourceBinding, on it and on its works.
    pub const CLUSTER_BINDING_ID: &str = "clusterresourcebinding.karmada.io/permanent-id";
    /// Permanent id of a Work, on it and on what it puts into the member.
    pub const WORK_ID: &str = "work.karmada.io/permanent-id";
    /// Permanent id of a MultiClusterService.
    pub const MULTICLUSTER_SERVICE_ID: &str = "multiclusterservice.karmada.io/permanent-id";
    /// Namespace of the MultiClusterService something is for.
    pub const MULTICLUSTER_SERVICE_NAMESPACE: &str = "multiclusterservice.karmada.io/namespace";
    /// Name of the MultiClusterService something is for.
    pub const MULTICLUSTER_SERVICE_NAME: &str = "multiclusterservice.karmada.io/name";
    /// On objects in members that are ours, with value [`super::TRUE`].
    pub const MANAGED: &str = "karmada.io/managed";
    /// On objects of the system itself, with value [`super::TRUE`].
    pub const SYSTEM: &str = "karmada.io/system";
    /// The member decides on the number of replicas, with value [`super::TRUE`].
    pub const RETAIN_REPLICAS: &str = "resourcetemplate.karmada.io/retain-replicas";
    /// The kind that took charge of a template; the detector leaves it alone.
    pub const CLAIMED_BY: &str = "resourcetemplate.karmada.io/claimed-by";
    /// The object cannot be deleted while the value is [`super::ALWAYS`].
    pub const DELETION_PROTECTED: &str = "resourcetemplate.karmada.io/deletion-protected";
    /// The controller a binding belongs to when no policy made it.
    pub const BINDING_MANAGED_BY: &str = "binding.karmada.io/managed-by";
    /// The namespace is not made in members, with value [`super::TRUE`].
    pub const SKIP_AUTO_PROPAGATION: &str = "namespace.karmada.io/skip-auto-propagation";
    /// Namespace of the object an EndpointSlice is for.
    pub const ENDPOINT_SLICE_NAMESPACE: &str = "endpointslice.karmada.io/namespace";
    /// Name of the object an EndpointSlice is for.
    pub const ENDPOINT_SLICE_NAME: &str = "endpointslice.karmada.io/name";
    /// The controller an EndpointSlice belongs to.
    pub const ENDPOINT_SLICE_MANAGED_BY: &str = "endpointslice.karmada.io/managed-by";
    /// Namespace of the FederatedResourceQuota something is for.
    pub const QUOTA_NAMESPACE: &str = "federatedresourcequota.karmada.io/namespace";
    /// Name of the FederatedResourceQuota something is for.
    pub const QUOTA_NAME: &str = "federatedresourcequota.karmada.io/name";
    /// Start of the label that says which binding another goes along with.
    pub const DEPENDED_BY_PREFIX: &str = "resourcebinding.karmada.io/depended-by-";
}

/// Annotations.
pub mod annotation {
    /// Namespace of the PropagationPolicy that claimed the object.
    pub const POLICY_NAMESPACE: &str = "propagationpolicy.karmada.io/namespace";
    /// Name of the PropagationPolicy that claimed the object.
    pub const POLICY_NAME: &str = "propagationpolicy.karmada.io/name";
    /// Name of the ClusterPropagationPolicy that claimed the object.
    pub const CLUSTER_POLICY_NAME: &str = "clusterpropagationpolicy.karmada.io/name";
    /// Namespace of the ResourceBinding of the object.
    pub const BINDING_NAMESPACE: &str = "resourcebinding.karmada.io/namespace";
    /// Name of the ResourceBinding of the object.
    pub const BINDING_NAME: &str = "resourcebinding.karmada.io/name";
    /// Name of the ClusterResourceBinding of the object.
    pub const CLUSTER_BINDING_NAME: &str = "clusterresourcebinding.karmada.io/name";
    /// Namespace of the Work of the object.
    pub const WORK_NAMESPACE: &str = "work.karmada.io/namespace";
    /// Name of the Work of the object.
    pub const WORK_NAME: &str = "work.karmada.io/name";
    /// `overwrite` or `abort`.
    pub const CONFLICT_RESOLUTION: &str = "work.karmada.io/conflict-resolution";
    /// Uid of the template.
    pub const TEMPLATE_UID: &str = "resourcetemplate.karmada.io/uid";
    /// Generation of the template.
    pub const TEMPLATE_GENERATION: &str = "resourcetemplate.karmada.io/generation";
    /// Labels of the object that are ours, with commas between.
    pub const MANAGED_LABELS: &str = "resourcetemplate.karmada.io/managed-labels";
    /// Annotations of the object that are ours, with commas between.
    pub const MANAGED_ANNOTATIONS: &str = "resourcetemplate.karmada.io/managed-annotations";
    /// The placement of the last decision, as JSON.
    pub const APPLIED_PLACEMENT: &str = "policy.karmada.io/applied-placement";
    /// The OverridePolicies that changed the copy, as JSON.
    pub const APPLIED_OVERRIDES: &str = "policy.karmada.io/applied-overrides";
    /// The ClusterOverridePolicies that changed the copy, as JSON.
    pub const APPLIED_CLUSTER_OVERRIDES: &str = "policy.karmada.io/applied-cluster-overrides";
    /// What the template refers to, as JSON.
    pub const DEPENDENCIES: &str = "resourcebinding.karmada.io/dependencies";
    /// The cluster an EndpointSlice comes from.
    pub const PROVISION_CLUSTER: &str = "endpointslice.karmada.io/provision-cluster";
    /// The cluster a cached object comes from.
    pub const CACHED_FROM_CLUSTER: &str = "resource.karmada.io/cached-from-cluster";
    /// The cluster a metric comes from.
    pub const QUERY_FROM_CLUSTER: &str = "resource.karmada.io/query-from-cluster";
}

/// Finalizers.
pub mod finalizer {
    /// On Clusters.
    pub const CLUSTER: &str = "karmada.io/cluster-controller";
    /// On Works.
    pub const EXECUTION: &str = "karmada.io/execution-controller";
    /// On ResourceBindings.
    pub const BINDING: &str = "karmada.io/binding-controller";
    /// On ClusterResourceBindings.
    pub const CLUSTER_BINDING: &str = "karmada.io/cluster-resource-binding-controller";
    /// On bindings that take dependencies along.
    pub const DEPENDENCIES: &str = "karmada.io/binding-dependencies-distributor";
    /// On works of EndpointSlices.
    pub const ENDPOINT_SLICE: &str = "karmada.io/endpointslice-controller";
    /// On what collects EndpointSlices.
    pub const ENDPOINT_SLICE_COLLECT: &str = "karmada.io/mcs-endpointslice-collect-controller";
    /// On what dispatches EndpointSlices.
    pub const ENDPOINT_SLICE_DISPATCH: &str = "karmada.io/mcs-endpointslice-dispatch-controller";
    /// On MultiClusterServices.
    pub const MULTICLUSTER_SERVICE: &str = "karmada.io/multiclusterservice-controller";
    /// On PropagationPolicies.
    pub const POLICY: &str = "karmada.io/propagation-policy-controller";
    /// On ClusterPropagationPolicies.
    pub const CLUSTER_POLICY: &str = "karmada.io/cluster-propagation-policy-controller";
}

/// Taints of clusters.
pub mod taint {
    /// The cluster says it is not ready.
    pub const NOT_READY: &str = "cluster.karmada.io/not-ready";
    /// The cluster does not answer.
    pub const UNREACHABLE: &str = "cluster.karmada.io/unreachable";
    /// The cluster is cordoned.
    pub const UNSCHEDULABLE: &str = "cluster.karmada.io/unschedulable";
}

/// Condition types.
pub mod condition {
    /// Of a binding: a decision stands.
    pub const SCHEDULED: &str = "Scheduled";
    /// Of a binding: all clusters have accepted it.
    pub const FULLY_APPLIED: &str = "FullyApplied";
    /// Of a work: the member has accepted it.
    pub const APPLIED: &str = "Applied";
    /// Of a work: it is being sent.
    pub const DISPATCHING: &str = "Dispatching";
    /// Of a cluster: it can be used.
    pub const READY: &str = "Ready";
    /// Of a cluster: all its APIs are known.
    pub const COMPLETE_API_ENABLEMENTS: &str = "CompleteAPIEnablements";
}

/// Condition reasons.
pub mod reason {
    /// Scheduled: a decision stands.
    pub const SUCCESS: &str = "Success";
    /// Scheduled: something else went wrong.
    pub const SCHEDULER_ERROR: &str = "SchedulerError";
    /// Scheduled: no cluster fits.
    pub const NO_CLUSTER_FIT: &str = "NoClusterFit";
    /// Scheduled: the clusters that fit have no room.
    pub const UNSCHEDULABLE: &str = "Unschedulable";
    /// Scheduled: the quota of the namespace is used up.
    pub const QUOTA_EXCEEDED: &str = "QuotaExceeded";
    /// FullyApplied: all have accepted.
    pub const FULLY_APPLIED_SUCCESS: &str = "FullyAppliedSuccess";
    /// FullyApplied: not all have accepted.
    pub const FULLY_APPLIED_FAILED: &str = "FullyAppliedFailed";
    /// Applied: the member has accepted.
    pub const APPLIED_SUCCESSFUL: &str = "AppliedSuccessful";
    /// Applied: the member has not accepted.
    pub const APPLIED_FAILED: &str = "AppliedFailed";
    /// Dispatching: held back.
    pub const SUSPEND_DISPATCHING: &str = "SuspendDispatching";
    /// Ready: it is.
    pub const CLUSTER_READY: &str = "ClusterReady";
    /// Ready: it says it is not.
    pub const CLUSTER_NOT_READY: &str = "ClusterNotReady";
    /// Ready: it does not answer.
    pub const CLUSTER_NOT_REACHABLE: &str = "ClusterNotReachable";
    /// Ready: its state could not be read.
    pub const STATUS_COLLECTION_FAILED: &str = "StatusCollectionFailed";
    /// Ready is unknown: never heard of.
    pub const CLUSTER_STATUS_NEVER_UPDATED: &str = "ClusterStatusNeverUpdated";
    /// Ready is unknown: not heard of for long.
    pub const CLUSTER_STATUS_UNKNOWN: &str = "ClusterStatusUnknown";
    /// Eviction: a taint is not tolerated.
    pub const TAINT_UNTOLERATED: &str = "TaintUntolerated";
    /// Eviction: the application is unhealthy.
    pub const APPLICATION_FAILURE: &str = "ApplicationFailure";
}

/// Who asks for evictions.
pub mod producer {
    /// The taint manager.
    pub const TAINT_MANAGER: &str = "TaintManager";
    /// Application failover of a ResourceBinding.
    pub const APPLICATION_FAILOVER: &str = "resource-binding-application-failover-controller";
    /// Application failover of a ClusterResourceBinding.
    pub const CLUSTER_APPLICATION_FAILOVER: &str = "cluster-resource-binding-application-failover-controller";
}

/// Value of labels that are either there or not.
pub const TRUE: &str = "true";
/// Value of [`label::DELETION_PROTECTED`] that protects.
pub const ALWAYS: &str = "Always";
/// Value of [`annotation::CONFLICT_RESOLUTION`] that takes objects over.
pub const OVERWRITE: &str = "overwrite";
/// Value of [`annotation::CONFLICT_RESOLUTION`] that leaves objects alone.
pub const ABORT: &str = "abort";
/// Value of [`label::CLAIMED_BY`] for MultiClusterServices.
pub const CLAIMED_BY_MULTICLUSTER_SERVICE: &str = "MultiClusterService";
