//! CustomResourceDefinitions: checked and established in the transaction that writes them.

use atoll_meta::Status;
use serde_json::Value;

use super::{Operation, Review};
use crate::crd;

/// Checks a definition and fills in its status, or marks it as terminating.
pub async fn check(review: &Review<'_>, object: &mut Value) -> Result<(), Status> {
    let call = review.call;
    if let Some(custom) = call.kind.custom()
        && review.operation == Operation::Create
        && custom.terminating
    {
        let why = "create not allowed while custom resource definition is terminating";
        return Err(Status::forbidden(&call.kind.group, &call.kind.plural, &review.name, why));
    }
    if *call.kind.group != *"apiextensions.k8s.io" || *call.kind.plural != *"customresourcedefinitions" {
        return Ok(());
    }
    match review.operation {
        Operation::Create | Operation::Update if review.subresource.is_empty() => {
            crd::accept(call, review.old, object).await
        }
        _ => Ok(()),
    }
}
