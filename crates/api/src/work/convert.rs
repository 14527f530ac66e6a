//! Between the two versions of the bindings. The older one knows the template, replicas, their
//! resources, clusters and status; what else the newer one has does not survive the way through it.

use super::{
    AggregatedStatusItem, AggregatedStatusItemV1Alpha1, ClusterResourceBinding, ClusterResourceBindingV1Alpha1,
    ObjectReference, ObjectReferenceV1Alpha1, ReplicaRequirements, ResourceBinding, ResourceBindingSpec,
    ResourceBindingSpecV1Alpha1, ResourceBindingStatus, ResourceBindingStatusV1Alpha1, ResourceBindingV1Alpha1,
    TargetCluster, TargetClusterV1Alpha1,
};

impl From<ResourceBindingSpecV1Alpha1> for ResourceBindingSpec {
    fn from(spec: ResourceBindingSpecV1Alpha1) -> Self {
        let resource = spec.resource;
        let requests = resource.resource_per_replicas;
        let cluster = |target: TargetClusterV1Alpha1| TargetCluster {
            name: target.name,
            replicas: target.replicas,
            components: Vec::new(),
        };
        ResourceBindingSpec {
            resource: ObjectReference {
                api_version: resource.api_version,
                kind: resource.kind,
                namespace: resource.namespace,
                name: resource.name,
                uid: String::new(),
                resource_version: resource.resource_version,
            },
            replicas: resource.replicas,
            replica_requirements: (!requests.is_empty())
                .then(|| ReplicaRequirements { resource_request: requests, ..Default::default() }),
            clusters: spec.clusters.into_iter().map(cluster).collect(),
            ..Default::default()
        }
    }
}

impl From<ResourceBindingSpec> for ResourceBindingSpecV1Alpha1 {
    fn from(spec: ResourceBindingSpec) -> Self {
        let resource = spec.resource;
        let cluster = |target: TargetCluster| TargetClusterV1Alpha1 { name: target.name, replicas: target.replicas };
        ResourceBindingSpecV1Alpha1 {
            resource: ObjectReferenceV1Alpha1 {
                api_version: resource.api_version,
                kind: resource.kind,
                namespace: resource.namespace,
                name: resource.name,
                resource_version: resource.resource_version,
                resource_per_replicas: spec
                    .replica_requirements
                    .map(|requirements| requirements.resource_request)
                    .unwrap_or_default(),
                replicas: spec.replicas,
            },
            clusters: spec.clusters.into_iter().map(cluster).collect(),
        }
    }
}

impl From<ResourceBindingStatusV1Alpha1> for ResourceBindingStatus {
    fn from(status: ResourceBindingStatusV1Alpha1) -> Self {
        let item = |item: AggregatedStatusItemV1Alpha1| AggregatedStatusItem {
            cluster_name: item.cluster_name,
            status: item.status,
            applied: item.applied,
            applied_message: item.applied_message,
            health: None,
        };
        ResourceBindingStatus {
            conditions: status.conditions,
            aggregated_status: status.aggregated_status.into_iter().map(item).collect(),
            ..Default::default()
        }
    }
}

impl From<ResourceBindingStatus> for ResourceBindingStatusV1Alpha1 {
    fn from(status: ResourceBindingStatus) -> Self {
        let item = |item: AggregatedStatusItem| AggregatedStatusItemV1Alpha1 {
            cluster_name: item.cluster_name,
            status: item.status,
            applied: item.applied,
            applied_message: item.applied_message,
        };
        ResourceBindingStatusV1Alpha1 {
            conditions: status.conditions,
            aggregated_status: status.aggregated_status.into_iter().map(item).collect(),
        }
    }
}

/// Both kinds of binding convert part by part.
macro_rules! convert {
    ($from:ident, $to:ident) => {
        impl From<$from> for $to {
            fn from(binding: $from) -> Self {
                $to { metadata: binding.metadata, spec: binding.spec.into(), status: binding.status.map(Into::into) }
            }
        }
    };
}

convert!(ResourceBindingV1Alpha1, ResourceBinding);
convert!(ResourceBinding, ResourceBindingV1Alpha1);
convert!(ClusterResourceBindingV1Alpha1, ClusterResourceBinding);
convert!(ClusterResourceBinding, ClusterResourceBindingV1Alpha1);
