//! Checks and changes every write passes before it is stored.

use std::sync::Arc;

use atoll_meta::Status;
use atoll_store::Write;
use serde_json::Value;

use crate::call::Call;

mod definition;
mod namespace;

/// What a write does.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
#[allow(missing_docs, reason = "the names are Kubernetes' own")]
pub enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

/// A write under review.
pub struct Review<'a> {
    /// The request.
    pub call: &'a Call,
    /// What it does.
    pub operation: Operation,
    /// Through which subresource.
    pub subresource: &'a str,
    /// The object before, for updates and deletions.
    pub old: Option<&'a Value>,
    /// Whether nothing will be stored.
    pub dry_run: bool,
    /// Name of the object.
    pub name: String,
}

impl Review<'_> {
    /// Whether the write concerns this resource itself (not a subresource).
    pub fn is(&self, group: &str, plural: &str) -> bool {
        self.subresource.is_empty() && *self.call.kind.group == *group && *self.call.kind.plural == *plural
    }
}

/// A check or change. For deletions the object is null.
#[async_trait::async_trait]
pub trait Admission: Send + Sync {
    /// May change the object, or refuse.
    async fn mutate(&self, _review: &Review<'_>, _object: &mut Value) -> Result<(), Status> {
        Ok(())
    }

    /// May refuse the final object, or add writes to the transaction.
    async fn validate(&self, _review: &Review<'_>, _object: &Value) -> Result<Vec<Write>, Status> {
        Ok(Vec::new())
    }
}

impl Call {
    /// Runs the changes.
    pub async fn admit(&self, review: &Review<'_>, object: &mut Value) -> Result<(), Status> {
        namespace::mutate(review, object)?;
        for plugin in self.plugins() {
            plugin.mutate(review, object).await?;
        }
        Ok(())
    }

    /// Runs the final checks; what they return becomes part of the transaction.
    pub async fn admit_finally(&self, review: &Review<'_>, object: &mut Value) -> Result<Vec<Write>, Status> {
        definition::check(review, object).await?;
        let mut writes = Vec::new();
        for plugin in self.plugins() {
            writes.extend(plugin.validate(review, object).await?);
        }
        Ok(writes)
    }

    fn plugins(&self) -> Vec<Arc<dyn Admission>> {
        self.hub.admission.read().clone()
    }
}
