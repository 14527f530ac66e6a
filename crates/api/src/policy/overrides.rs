//! OverridePolicy and ClusterOverridePolicy: how copies differ between clusters.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::placement::ClusterAffinity;
use super::propagation::ResourceSelector;
use crate::kind::kind;
kind! {
    /// Changes copies of objects of its namespace for some clusters.
    OverridePolicy { spec: OverrideSpec, }
    group "policy.karmada.io", version "v1alpha1", plural "overridepolicies", Namespaced;
    short ["op"]; categories ["karmada-io"];
    columns [];
}

kind! {
    /// Changes copies of any object for some clusters.
    ClusterOverridePolicy { spec: OverrideSpec, }
    group "policy.karmada.io", version "v1alpha1", plural "clusteroverridepolicies", Cluster;
    short ["cop"]; categories ["karmada-io"];
    columns [];
}

/// What an override policy changes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OverrideSpec {
    /// The objects it is for; all when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resource_selectors: Vec<ResourceSelector>,
    /// The changes, by cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub override_rules: Vec<RuleWithCluster>,
    /// Old form: the clusters of `overriders`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_cluster: Option<ClusterAffinity>,
    /// Old form: one set of changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overriders: Option<Overriders>,
}

/// Changes for some clusters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuleWithCluster {
    /// The clusters; all when missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_cluster: Option<ClusterAffinity>,
    /// The changes.
    pub overriders: Overriders,
}

/// Changes of a copy, in the order in which they are made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Overriders {
    /// Parts of image names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub image_overrider: Vec<ImageOverrider>,
    /// Commands of containers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command_overrider: Vec<CommandArgsOverrider>,
    /// Arguments of containers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args_overrider: Vec<CommandArgsOverrider>,
    /// Labels of the object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels_overrider: Vec<LabelAnnotationOverrider>,
    /// Annotations of the object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub annotations_overrider: Vec<LabelAnnotationOverrider>,
    /// JSON or YAML held in a string field.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub field_overrider: Vec<FieldOverrider>,
    /// Anything, by JSON pointer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plaintext: Vec<PlaintextOverrider>,
}

/// One change by JSON pointer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlaintextOverrider {
    /// The JSON pointer.
    pub path: String,
    /// What to do there.
    pub operator: OverriderOperator,
    /// With what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::structural::any_value")]
    pub value: Option<Value>,
}

/// What an overrider does.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq, Ord, PartialOrd, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OverriderOperator {
    /// Add a value.
    #[default]
    Add,
    /// Remove it.
    Remove,
    /// Put another in its place.
    Replace,
}

/// One change of a part of an image name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageOverrider {
    /// Which images; those of all containers when missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicate: Option<ImagePredicate>,
    /// The part.
    pub component: ImageComponent,
    /// What to do with it.
    pub operator: OverriderOperator,
    /// With what.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
}

/// Which image is meant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImagePredicate {
    /// JSON pointer to the image.
    pub path: String,
}

/// A part of an image name.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq, Ord, PartialOrd, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ImageComponent {
    /// The host.
    #[default]
    Registry,
    /// The path.
    Repository,
    /// The tag or digest.
    Tag,
}

/// One change of a command or argument list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandArgsOverrider {
    /// The container.
    pub container_name: String,
    /// What to do.
    pub operator: ListOperator,
    /// With which values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub value: Vec<String>,
}

/// What is done with a list.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq, Ord, PartialOrd, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ListOperator {
    /// Append the values.
    #[default]
    Add,
    /// Remove the values.
    Remove,
}

/// One change of labels or annotations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LabelAnnotationOverrider {
    /// What to do.
    pub operator: OverriderOperator,
    /// With which keys and values.
    pub value: BTreeMap<String, String>,
}

/// Changes inside a document held in a string field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FieldOverrider {
    /// JSON pointer to the field.
    pub field_path: String,
    /// Changes of a JSON document.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub json: Vec<DocumentPatch>,
    /// Changes of a YAML document.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub yaml: Vec<DocumentPatch>,
}

/// One change inside a document.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DocumentPatch {
    /// JSON pointer within the document.
    pub sub_path: String,
    /// What to do there.
    pub operator: OverriderOperator,
    /// With what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::structural::any_value")]
    pub value: Option<Value>,
}
