//! What a template refers to.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::{Deserialize, Serialize};

use crate::Error;

/// An object, or the objects with some labels, that a template refers to.
#[derive(Clone, Debug, Default, Eq, PartialEq, Ord, PartialOrd, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectRef {
    /// Group and version.
    #[serde(default)]
    pub api_version: String,
    /// Kind.
    #[serde(default)]
    pub kind: String,
    /// Namespace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The labels of several objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
}

/// Chooses objects by their labels.
#[derive(Clone, Debug, Default, Eq, PartialEq, Ord, PartialOrd, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LabelSelector {
    /// Labels with their values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    /// Conditions on labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<LabelRequirement>,
}

/// A condition on one label.
#[derive(Clone, Debug, Default, Eq, PartialEq, Ord, PartialOrd, Hash, Serialize, Deserialize)]
pub struct LabelRequirement {
    /// The label.
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: String,
    /// Its values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

impl LabelSelector {
    /// The selector as requests write it: `app=web,tier in (a,b)`.
    pub fn to_text(&self) -> String {
        let labels = self.match_labels.iter().map(|(key, value)| format!("{key}={value}"));
        let conditions = self.match_expressions.iter().map(LabelRequirement::to_text);
        labels.chain(conditions).collect::<Vec<_>>().join(",")
    }
}

impl LabelRequirement {
    fn to_text(&self) -> String {
        let LabelRequirement { key, operator, values } = self;
        let mut text = match operator.as_str() {
            "Exists" => return key.clone(),
            "DoesNotExist" => return format!("!{key}"),
            "NotIn" => format!("{key} notin ("),
            _ => format!("{key} in ("),
        };
        write!(text, "{})", values.join(",")).expect("writing to a string cannot fail");
        text
    }
}

impl ObjectRef {
    /// A named object.
    pub fn named(api_version: &str, kind: &str, namespace: &str, name: &str) -> Self {
        ObjectRef {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            label_selector: None,
        }
    }

    /// Whether it says enough to find something.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let missing = if self.api_version.is_empty() {
            "apiVersion"
        } else if self.kind.is_empty() {
            "kind"
        } else if self.name.is_empty() && self.label_selector.is_none() {
            "name or labelSelector"
        } else {
            return self.check_labels();
        };
        Err(Error::Shape(format!("a dependency lacks {missing}")))
    }

    /// Whether its labels, if it has any, can be asked for.
    fn check_labels(&self) -> Result<(), Error> {
        let Some(selector) = &self.label_selector else { return Ok(()) };
        let value = serde_json::to_value(selector).expect("a selector is plain data");
        let read = atoll_meta::selector::LabelSelector::from_value(&value);
        read.map(|_| ()).map_err(|error| Error::Shape(format!("the labels of a dependency: {error}")))
    }
}
