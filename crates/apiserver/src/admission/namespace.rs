//! Life of namespaces: some cannot be deleted, all carry their name as a label.

use atoll_meta::Status;
use serde_json::Value;

use super::{Operation, Review};

const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

/// Sets and protects what every namespace has.
pub fn mutate(review: &Review<'_>, object: &mut Value) -> Result<(), Status> {
    if !review.is("", "namespaces") {
        return Ok(());
    }
    match review.operation {
        Operation::Delete if IMMORTAL.contains(&review.name.as_str()) => {
            Err(Status::forbidden("", "namespaces", &review.name, "this namespace may not be deleted"))
        }
        Operation::Create | Operation::Update => {
            if !object["metadata"]["labels"].is_object() {
                object["metadata"]["labels"] = serde_json::json!({});
            }
            let name = object["metadata"]["name"].clone();
            object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
            Ok(())
        }
        Operation::Delete | Operation::Connect => Ok(()),
    }
}
