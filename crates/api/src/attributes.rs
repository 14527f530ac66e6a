//! What definitions say of Kubernetes' own types beyond what `k8s_openapi` describes.

use serde_json::{Value, json};

/// Name under which quantities are described.
pub(crate) const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";

const QUANTITY_PATTERN: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";
const QUALIFIED_PATTERN: &str =
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";
const REASON_PATTERN: &str = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$";

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";
const CORE: &str = "io.k8s.api.core.v1.";
const INGRESS: &str = "io.k8s.api.networking.v1.";
const SCALING: &str = "io.k8s.api.autoscaling.v2.";

/// Adds the attributes of a named type to its schema.
pub(crate) fn add(name: &str, schema: &mut Value) {
    let more = if name == QUANTITY {
        json!({
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": QUANTITY_PATTERN,
            "x-kubernetes-int-or-string": true,
        })
    } else if let Some(name) = name.strip_prefix(META) {
        meta(name)
    } else if let Some(name) = name.strip_prefix(CORE) {
        core(name)
    } else if let Some(name) = name.strip_prefix(INGRESS) {
        ingress(name)
    } else if let Some(name) = name.strip_prefix(SCALING) {
        scaling(name)
    } else {
        Value::Null
    };
    merge(schema, more);
}

fn meta(name: &str) -> Value {
    match name {
        "LabelSelector" => json!({
            "x-kubernetes-map-type": "atomic",
            "properties": {"matchExpressions": atomic()},
        }),
        "LabelSelectorRequirement" => json!({"properties": {"values": atomic()}}),
        "Condition" => json!({"properties": {
            "message": {"maxLength": 32768},
            "observedGeneration": {"minimum": 0},
            "reason": {"minLength": 1, "maxLength": 1024, "pattern": REASON_PATTERN},
            "status": {"enum": ["True", "False", "Unknown"]},
            "type": {"maxLength": 316, "pattern": QUALIFIED_PATTERN},
        }}),
        _ => Value::Null,
    }
}

fn core(name: &str) -> Value {
    match name {
        "NodeSelector" => json!({
            "x-kubernetes-map-type": "atomic",
            "properties": {"nodeSelectorTerms": atomic()},
        }),
        "NodeSelectorTerm" => json!({
            "x-kubernetes-map-type": "atomic",
            "properties": {"matchExpressions": atomic(), "matchFields": atomic()},
        }),
        "NodeSelectorRequirement" => json!({"properties": {"values": atomic()}}),
        "SecretReference" | "TypedLocalObjectReference" => {
            json!({"x-kubernetes-map-type": "atomic"})
        }
        "ServiceStatus" => json!({"properties": {"conditions": map_by("type")}}),
        "LoadBalancerStatus" => json!({"properties": {"ingress": atomic()}}),
        "LoadBalancerIngress" => json!({"properties": {"ports": atomic()}}),
        "PortStatus" => port_status(),
        _ => Value::Null,
    }
}

fn ingress(name: &str) -> Value {
    match name {
        "IngressSpec" => json!({"properties": {"rules": atomic(), "tls": atomic()}}),
        "IngressTLS" => json!({"properties": {"hosts": atomic()}}),
        "HTTPIngressRuleValue" => json!({"properties": {"paths": atomic()}}),
        "ServiceBackendPort" => json!({"x-kubernetes-map-type": "atomic"}),
        "IngressLoadBalancerStatus" => json!({"properties": {"ingress": atomic()}}),
        "IngressLoadBalancerIngress" => json!({"properties": {"ports": atomic()}}),
        "IngressPortStatus" => port_status(),
        _ => Value::Null,
    }
}

fn scaling(name: &str) -> Value {
    match name {
        "HPAScalingRules" => json!({"properties": {"policies": atomic()}}),
        "HorizontalPodAutoscalerStatus" => json!({"properties": {
            "conditions": map_by("type"),
            "currentMetrics": atomic(),
        }}),
        _ => Value::Null,
    }
}

fn port_status() -> Value {
    json!({
        "required": ["error", "port", "protocol"],
        "properties": {"error": {"maxLength": 316, "pattern": QUALIFIED_PATTERN}},
    })
}

fn atomic() -> Value {
    json!({"x-kubernetes-list-type": "atomic"})
}

fn map_by(key: &str) -> Value {
    json!({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]})
}

fn merge(into: &mut Value, more: Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (_, Value::Null) => {}
        (into, more) => *into = more,
    }
}
