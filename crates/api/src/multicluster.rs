//! ServiceExport and ServiceImport of the multi-cluster services API.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kind::kind;
kind! {
    /// Offers a Service to other clusters.
    ServiceExport { status: ServiceExportStatus, }
    group "multicluster.x-k8s.io", version "v1alpha1", plural "serviceexports", Namespaced;
    short ["svcex"]; categories [];
    columns ["Age": "date" = ".metadata.creationTimestamp"];
}

kind! {
    /// A Service of other clusters.
    ServiceImport { optional spec: ServiceImportSpec, status: ServiceImportStatus, }
    group "multicluster.x-k8s.io", version "v1alpha1", plural "serviceimports", Namespaced;
    short ["svcim"]; categories [];
    columns [
        "Type": "string" = ".spec.type",
        "IP": "string" = ".spec.ips",
        "Age": "date" = ".metadata.creationTimestamp",
    ];
}

/// What became of the offer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceExportStatus {
    /// Conditions by type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// How the Service is reached.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceImportSpec {
    /// Its ports.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub ports: Vec<ServicePort>,
    /// Its address.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 1))]
    pub ips: Vec<String>,
    /// How it is addressed.
    pub r#type: ServiceImportType,
    /// Whether a caller stays with a backend.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub session_affinity: String,
    /// How long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_affinity_config: Option<SessionAffinityConfig>,
}

/// How an imported Service is addressed.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq, Ord, PartialOrd, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ServiceImportType {
    /// By one address.
    #[default]
    ClusterSetIP,
    /// By the addresses of its pods.
    Headless,
}

/// A port of an imported Service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServicePort {
    /// Its name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its protocol.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub protocol: String,
    /// What is spoken on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_protocol: Option<String>,
    /// Its number.
    pub port: i32,
}

/// How long a caller stays with a backend.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionAffinityConfig {
    /// When told apart by address.
    #[serde(rename = "clientIP", default, skip_serializing_if = "Option::is_none")]
    pub client_ip: Option<ClientIPConfig>,
}

/// How long a caller with one address stays with a backend.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientIPConfig {
    /// Seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<i32>,
}

/// Where the Service is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceImportStatus {
    /// The clusters that offer it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["cluster"]))]
    pub clusters: Vec<ImportedCluster>,
}

/// A cluster that offers the Service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImportedCluster {
    /// Its name.
    pub cluster: String,
}
