//! Checks and changes every write passes before it is stored.

use std::sync::Arc;

use atoll_meta::Status;
use atoll_store::Write;
use serde_json::Value;

use crate::call::Call;

mod account_token;
mod aggregation;
mod certificate;
mod definition;
mod escalation;
mod features;
mod limits;
mod namespace;
mod pod;
mod priority;
mod quota;
mod runtime_class;
mod service_account;
mod tolerations;

pub use features::Features;
pub use quota::recount;

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
        let features = self.instance.features();
        namespace::mutate(review, object)?;
        if features.limits {
            limits::mutate(review, object).await?;
        }
        if features.service_accounts {
            service_account::mutate(review, object).await?;
        }
        if features.priority {
            priority::mutate(review, object).await?;
        }
        runtime_class::mutate(review, object).await?;
        if features.tolerations {
            tolerations::mutate(review, object);
        }
        certificate::mutate(review, object);
        account_token::mutate(review, object).await?;
        for plugin in self.plugins() {
            plugin.mutate(review, object).await?;
        }
        // After everything that may still change the object, before it is validated.
        escalation::check(review, object).await
    }

    /// Runs the final checks; what they return becomes part of the transaction.
    pub async fn admit_finally(&self, review: &Review<'_>, object: &mut Value) -> Result<Vec<Write>, Status> {
        let features = self.instance.features();
        definition::check(review, object).await?;
        if features.limits {
            limits::check(review, object).await?;
        }
        certificate::check(review, object).await?;
        let mut writes = aggregation::follow(review, object).await?;
        for plugin in self.plugins() {
            writes.extend(plugin.validate(review, object).await?);
        }
        // Last: nothing is charged for what others refuse.
        if features.quota {
            writes.extend(quota::charge(review, object).await?);
        }
        Ok(writes)
    }

    fn plugins(&self) -> Vec<Arc<dyn Admission>> {
        self.hub.admission.read().clone()
    }
}
