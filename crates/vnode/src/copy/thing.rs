//! An object of the computing cluster that is copied into the worker cluster.

use atoll_api::kubeocean_names::{annotation, physical};
use atoll_meta::Gvr;
use serde_json::Value;

use crate::feature::Feature;
use crate::tree;

/// The kinds that are copied.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) enum Kind {
    ConfigMap,
    Secret,
    Claim,
    Volume,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::ConfigMap, Self::Secret, Self::Claim, Self::Volume];

    pub(crate) fn gvr(self) -> Gvr {
        Gvr::new(
            "",
            "v1",
            match self {
                Self::ConfigMap => "configmaps",
                Self::Secret => "secrets",
                Self::Claim => "persistentvolumeclaims",
                Self::Volume => "persistentvolumes",
            },
        )
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ConfigMap => "ConfigMap",
            Self::Secret => "Secret",
            Self::Claim => "PersistentVolumeClaim",
            Self::Volume => "PersistentVolume",
        }
    }

    /// What copies of this kind are part of, if they can be left out.
    pub(crate) fn feature(self) -> Option<Feature> {
        matches!(self, Self::Claim | Self::Volume).then_some(Feature::Volumes)
    }

    /// The namespace of a copy.
    pub(crate) fn below(self, mount: &str) -> Option<&str> {
        (self != Self::Volume).then_some(mount)
    }
}

/// An original.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct Thing {
    pub(crate) kind: Kind,
    /// Empty for volumes.
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Thing {
    pub(crate) fn new(kind: Kind, namespace: &str, name: &str) -> Self {
        let namespace = if kind == Kind::Volume { "" } else { namespace };
        Self { kind, namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// The original a copy is of.
    pub(crate) fn of_copy(kind: Kind, copy: &Value) -> Option<Self> {
        let name = tree::annotation(copy, annotation::VIRTUAL_NAME);
        (!name.is_empty()).then(|| Self::new(kind, tree::annotation(copy, annotation::VIRTUAL_NAMESPACE), name))
    }

    pub(crate) fn above(&self) -> Option<&str> {
        (self.kind != Kind::Volume).then_some(&self.namespace)
    }

    /// The name of its copy.
    pub(crate) fn physical(&self) -> String {
        physical(&self.namespace, &self.name)
    }

    pub(crate) fn key(&self) -> String {
        tree::key(&self.namespace, &self.name)
    }

    /// How it is named to people.
    pub(crate) fn title(&self) -> String {
        format!("{} {}", self.kind.name(), self.key())
    }
}
