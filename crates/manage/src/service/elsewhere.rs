//! Methods that only make sense with other products; they say so.

use atoll_meta::Status;
use serde_json::{Value, json};

use crate::transcode::status::unimplemented;

/// Answers methods of services that are not part of a hub.
pub fn call(service: &str, method: &str) -> Result<Value, Status> {
    match (service, method) {
        // Asked before anything else of these products is shown.
        ("Insight", "DetectInsight") | ("Image", "DetectKangaroo") => Ok(json!({"enabled": false})),
        ("Insight", _) => Err(unimplemented("metrics are kept by a monitoring product beside the hub, not by the hub")),
        ("Image", _) => {
            Err(unimplemented("image registries belong to a registry product beside the hub; name images directly"))
        }
        ("CloudShell", _) => Err(unimplemented(
            "terminals are pods of a separate product; use exec through the instance's own API instead",
        )),
        _ => Err(unimplemented("this method is not served")),
    }
}
