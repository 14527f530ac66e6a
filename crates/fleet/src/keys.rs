//! Names of the things that wait in queues.

use std::fmt;
use std::sync::Arc;

use atoll_api::{names, work::ObjectReference};
use atoll_meta::{Gvk, Gvr};

use crate::gvr;

/// A template in the instance.
#[derive(Clone, Eq, PartialEq, Hash, Ord, PartialOrd)]
pub struct TemplateKey {
    /// Its kind.
    pub gvk: Arc<Gvk>,
    /// Its namespace, or empty.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
}

impl TemplateKey {
    /// The template a binding is for.
    pub fn of(reference: &ObjectReference) -> Self {
        Self {
            gvk: Arc::new(Gvk::of(&reference.api_version, &reference.kind)),
            namespace: reference.namespace.as_str().into(),
            name: reference.name.as_str().into(),
        }
    }

    /// The binding of the template.
    pub fn binding(&self) -> BindingKey {
        BindingKey { namespace: self.namespace.clone(), name: names::binding(&self.gvk.kind, &self.name).into() }
    }

    /// Its namespace, if it has one.
    pub fn in_namespace(&self) -> Option<&str> {
        Some(&*self.namespace).filter(|namespace| !namespace.is_empty())
    }
}

impl fmt::Debug for TemplateKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}/{}", self.gvk.kind, self.namespace, self.name)
    }
}

/// A ResourceBinding or, without a namespace, a ClusterResourceBinding.
#[derive(Clone, Eq, PartialEq, Hash, Ord, PartialOrd)]
pub struct BindingKey {
    /// Its namespace, or empty.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
}

impl BindingKey {
    /// Whether the template has a namespace.
    pub fn is_namespaced(&self) -> bool {
        !self.namespace.is_empty()
    }

    /// Where the binding is.
    pub fn gvr(&self) -> Gvr {
        gvr::bindings(self.is_namespaced())
    }

    /// Its namespace, if it has one.
    pub fn in_namespace(&self) -> Option<&str> {
        Some(&*self.namespace).filter(|namespace| !namespace.is_empty())
    }
}

impl fmt::Debug for BindingKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.namespace, self.name)
    }
}

/// A PropagationPolicy or, without a namespace, a ClusterPropagationPolicy.
pub type PolicyKey = BindingKey;
