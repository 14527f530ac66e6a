//! MultiClusterService and MultiClusterIngress: traffic over clusters.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kind::kind;
use k8s_openapi::api::core::v1::ServiceStatus;
use k8s_openapi::api::networking::v1::{IngressLoadBalancerStatus, IngressSpec};
kind! {
    /// A Service reachable over clusters.
    MultiClusterService { spec: MultiClusterServiceSpec, status: ServiceStatus, }
    group "networking.karmada.io", version "v1alpha1", plural "multiclusterservices", Namespaced;
    short ["mcs"]; categories ["karmada-io"];
    columns [];
}

kind! {
    /// An Ingress whose backends are in several clusters.
    MultiClusterIngress { optional spec: IngressSpec, status: MultiClusterIngressStatus, }
    group "networking.karmada.io", version "v1alpha1", plural "multiclusteringresses", Namespaced;
    short ["mci"]; categories ["karmada-io"];
    columns [];
}

/// How the Service is reachable, and from where.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MultiClusterServiceSpec {
    /// `CrossCluster` or `LoadBalancer`.
    pub types: Vec<String>,
    /// The ports; all when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<ExposurePort>,
    /// Old form of `providerClusters`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<ExposureRange>,
    /// Old form of `providerClusters`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub service_provision_clusters: Vec<String>,
    /// Old form of `consumerClusters`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub service_consumption_clusters: Vec<String>,
    /// The clusters with backends; all when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub provider_clusters: Vec<ClusterSelector>,
    /// The clusters it is reachable from; all when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub consumer_clusters: Vec<ClusterSelector>,
}

/// A port that is reachable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExposurePort {
    /// Its name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its number.
    pub port: i32,
}

/// Clusters by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExposureRange {
    /// Their names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster_names: Vec<String>,
}

/// A cluster by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSelector {
    /// Its name.
    pub name: String,
}

/// Where traffic goes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MultiClusterIngressStatus {
    /// The load balancer.
    #[serde(default)]
    pub load_balancer: IngressLoadBalancerStatus,
    /// Clusters that get no traffic.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traffic_block_clusters: Vec<String>,
    /// Where the Services are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub service_locations: Vec<ServiceLocation>,
}

/// Where a Service is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceLocation {
    /// The Service.
    pub name: String,
    /// The clusters that have it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<String>,
}
