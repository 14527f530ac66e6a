//! Whether a member's object works.

use serde_json::Value;

use super::Kind;
use super::field::{list, number, text};
use crate::Health;

/// How a member's object is; kinds that nothing is known of count as healthy.
pub fn health(object: &Value) -> Health {
    let Some(kind) = Kind::of(object) else { return Health::Healthy };
    let status = &object["status"];
    let count = |field| number(status, field);
    let observed = count("observedGeneration") == number(&object["metadata"], "generation");
    let wanted = number(&object["spec"], "replicas");
    let healthy = match kind {
        Kind::Deployment | Kind::StatefulSet => {
            observed && count("updatedReplicas") >= wanted && count("availableReplicas") >= count("updatedReplicas")
        }
        Kind::ReplicaSet => observed && count("availableReplicas") >= wanted,
        Kind::DaemonSet => {
            observed
                && count("updatedNumberScheduled") >= count("desiredNumberScheduled")
                && count("numberAvailable") >= count("updatedNumberScheduled")
        }
        Kind::Service => object["spec"]["type"] != "LoadBalancer" || has_address(status),
        Kind::Ingress => has_address(status),
        Kind::PersistentVolumeClaim => status["phase"] == "Bound",
        Kind::Pod => status["phase"] == "Succeeded" || (status["phase"] == "Running" && is_ready(status)),
        Kind::PodDisruptionBudget => count("currentHealthy") >= count("desiredHealthy"),
        _ => true,
    };
    healthy.into()
}

fn is_ready(status: &Value) -> bool {
    list(status, "conditions").any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

fn has_address(status: &Value) -> bool {
    list(&status["loadBalancer"], "ingress")
        .any(|entry| text(entry, "ip").is_some() || text(entry, "hostname").is_some())
}
