//! How kinds are understood: customisations in Lua and by webhook.

use k8s_openapi::ByteString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kind::kind;
kind! {
    /// Lua scripts that say what objects of a kind mean.
    ResourceInterpreterCustomization { spec: ResourceInterpreterCustomizationSpec, }
    group "config.karmada.io", version "v1alpha1", plural "resourceinterpretercustomizations", Cluster;
    short ["ric"]; categories ["karmada-io"];
    columns [
        "TARGET-API-VERSION": "string" = ".spec.target.apiVersion",
        "TARGET-KIND": "string" = ".spec.target.kind",
        "AGE": "date" = ".metadata.creationTimestamp",
    ];
}

kind! {
    /// Webhooks that say what objects of some kinds mean.
    ResourceInterpreterWebhookConfiguration { webhooks: Vec<ResourceInterpreterWebhook>, }
    group "config.karmada.io", version "v1alpha1", plural "resourceinterpreterwebhookconfigurations", Cluster;
    short []; categories ["karmada-io"];
    columns [];
}

/// The kind and the scripts for it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceInterpreterCustomizationSpec {
    /// The kind.
    pub target: CustomizationTarget,
    /// The scripts.
    pub customizations: CustomizationRules,
}

/// A kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomizationTarget {
    /// Its group and version.
    pub api_version: String,
    /// Its name.
    pub kind: String,
}

/// Scripts by purpose.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomizationRules {
    /// What of the member's object is kept on update.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<LuaScript>,
    /// How many replicas there are and what one needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica_resource: Option<LuaScript>,
    /// The components and what each needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component_resource: Option<LuaScript>,
    /// How the number of replicas is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica_revision: Option<LuaScript>,
    /// Which part of the status is collected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_reflection: Option<LuaScript>,
    /// How the status of members becomes that of the template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_aggregation: Option<LuaScript>,
    /// Whether the object is healthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_interpretation: Option<LuaScript>,
    /// What the object refers to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dependency_interpretation: Option<LuaScript>,
}

/// A script.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LuaScript {
    /// Its text.
    pub lua_script: String,
}

/// One webhook.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceInterpreterWebhook {
    /// Its name, a domain name.
    pub name: String,
    /// How it is called.
    pub client_config: WebhookClientConfig,
    /// When it is called.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleWithOperations>,
    /// How long it may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<i32>,
    /// The versions it understands.
    pub interpreter_context_versions: Vec<String>,
}

/// How a webhook is called.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookClientConfig {
    /// By URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// By Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<WebhookServiceReference>,
    /// The CA of its certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::structural::byte_string")]
    pub ca_bundle: Option<ByteString>,
}

/// A Service that answers a webhook.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookServiceReference {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The path of requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Its port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<i32>,
}

/// Operations on kinds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuleWithOperations {
    /// The operations; `*` is all.
    pub operations: Vec<String>,
    /// The groups; `*` is all.
    pub api_groups: Vec<String>,
    /// The versions; `*` is all.
    pub api_versions: Vec<String>,
    /// The kinds; `*` is all.
    pub kinds: Vec<String>,
}
