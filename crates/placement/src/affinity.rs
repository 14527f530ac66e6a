//! Whether a cluster is in the set an affinity describes.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::fmt;

use atoll_api::policy::{ClusterAffinity, FieldSelectorRequirement};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::cluster::Cluster;

/// Lists up to this length are searched one by one.
const SHORT: usize = 8;

/// Which condition of an affinity a cluster does not meet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum AffinityMiss {
    /// It is named in `exclude`.
    Excluded,
    /// It is not named in `clusterNames`.
    Name,
    /// Its labels do not match; the key of the first requirement that fails.
    Label(Box<str>),
    /// A field does not match; the field.
    Field(Box<str>),
}

impl fmt::Display for AffinityMiss {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AffinityMiss::Excluded => out.write_str("named in exclude"),
            AffinityMiss::Name => out.write_str("not named in clusterNames"),
            AffinityMiss::Label(key) => write!(out, "label {key} does not match labelSelector"),
            AffinityMiss::Field(field) => write!(out, "{field} does not match fieldSelector"),
        }
    }
}

/// A set of names that is quick to search.
#[derive(Clone, Debug)]
enum Names<'a> {
    Few(&'a [String]),
    Many(HashSet<&'a str>),
}

impl<'a> Names<'a> {
    fn new(names: &'a [String]) -> Self {
        if names.len() <= SHORT { Names::Few(names) } else { Names::Many(names.iter().map(String::as_str).collect()) }
    }

    fn contains(&self, name: &str) -> bool {
        match self {
            Names::Few(names) => names.iter().any(|known| known == name),
            Names::Many(names) => names.contains(name),
        }
    }
}

/// An affinity made ready to be asked about many clusters.
#[derive(Clone, Debug)]
pub struct Matcher<'a> {
    affinity: Cow<'a, ClusterAffinity>,
    names: Option<Names<'a>>,
    exclude: Names<'a>,
}

impl<'a> Matcher<'a> {
    /// For an affinity.
    pub fn new(affinity: &'a ClusterAffinity) -> Self {
        Matcher {
            affinity: Cow::Borrowed(affinity),
            names: (!affinity.cluster_names.is_empty()).then(|| Names::new(&affinity.cluster_names)),
            exclude: Names::new(&affinity.exclude),
        }
    }

    /// For the affinity that all clusters meet.
    pub fn any() -> Self {
        Matcher { affinity: Cow::Owned(ClusterAffinity::default()), names: None, exclude: Names::Few(&[]) }
    }

    /// Whether a cluster meets all conditions.
    pub fn matches(&self, cluster: &Cluster) -> bool {
        self.miss(cluster).is_none()
    }

    /// The first condition a cluster does not meet.
    pub fn miss(&self, cluster: &Cluster) -> Option<AffinityMiss> {
        if self.exclude.contains(&cluster.name) {
            return Some(AffinityMiss::Excluded);
        }
        if self.names.as_ref().is_some_and(|names| !names.contains(&cluster.name)) {
            return Some(AffinityMiss::Name);
        }
        if let Some(selector) = &self.affinity.label_selector
            && let Some(key) = label_miss(selector, &cluster.labels)
        {
            return Some(AffinityMiss::Label(key.into()));
        }
        let fields = self.affinity.field_selector.iter().flat_map(|selector| &selector.match_expressions);
        let mut missed = fields.filter(|requirement| !field_matches(requirement, cluster));
        missed.next().map(|requirement| AffinityMiss::Field(requirement.key.as_str().into()))
    }
}

/// The key of the first requirement of a selector that labels do not meet.
fn label_miss<'s>(selector: &'s LabelSelector, labels: &BTreeMap<String, String>) -> Option<&'s str> {
    for (key, value) in selector.match_labels.iter().flatten() {
        if labels.get(key) != Some(value) {
            return Some(key);
        }
    }
    for requirement in selector.match_expressions.iter().flatten() {
        let label = labels.get(&requirement.key);
        let among = |label: &String| requirement.values.as_ref().is_some_and(|values| values.contains(label));
        // A requirement that says nothing valid is met by none.
        let has_values = requirement.values.as_ref().is_some_and(|values| !values.is_empty());
        let holds = match (requirement.operator.as_str(), has_values) {
            ("In", true) => label.is_some_and(among),
            ("NotIn", true) => !label.is_some_and(among),
            ("Exists", false) => label.is_some(),
            ("DoesNotExist", false) => label.is_none(),
            _ => false,
        };
        if !holds {
            return Some(&requirement.key);
        }
    }
    None
}

/// A cluster in several zones is in a set of zones already with one of them.
fn field_matches(requirement: &FieldSelectorRequirement, cluster: &Cluster) -> bool {
    let one = |field: &str| {
        if field.is_empty() { Vec::new() } else { vec![field.to_owned()] }
    };
    let values: Cow<'_, [String]> = match requirement.key.as_str() {
        "provider" => Cow::Owned(one(&cluster.provider)),
        "region" => Cow::Owned(one(&cluster.region)),
        "zone" => Cow::Borrowed(&cluster.zones),
        _ => return false,
    };
    let among = |value: &String| requirement.values.contains(value);
    // As with labels, a requirement that names nothing is met by none; only zones may be in none of no zones.
    let names_nothing = requirement.values.is_empty() && requirement.key != "zone";
    match requirement.operator.as_str() {
        "In" => values.iter().any(among),
        "NotIn" => !names_nothing && !values.iter().any(among),
        "Exists" => !values.is_empty(),
        "DoesNotExist" => values.is_empty(),
        _ => false,
    }
}
