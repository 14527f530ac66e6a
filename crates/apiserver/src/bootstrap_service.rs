//! The `kubernetes` Service: how programs inside an instance find its API.

use std::net::SocketAddr;

use atoll_meta::Key;
use serde_json::{Value, json};

/// Address of the Service; the first of the default service range.
const CLUSTER_IP: &str = "10.96.0.1";

/// Where Services get their addresses from.
const RANGE: &str = "10.96.0.0/16";

/// The Service, its range and, when the hub knows its own address, its endpoints.
pub fn objects(now: &str, advertise: Option<SocketAddr>) -> Vec<(Key, Value)> {
    let meta = |labels: Value| {
        json!({"name": "kubernetes", "namespace": "default", "uid": uuid::Uuid::new_v4().to_string(),
               "creationTimestamp": now, "labels": labels})
    };
    let port = advertise.map_or(7443, |address| address.port());
    let mut all = vec![(
        Key::new("", "services", "default", "kubernetes"),
        json!({
            "kind": "Service", "apiVersion": "v1",
            "metadata": meta(json!({"component": "apiserver", "provider": "kubernetes"})),
            "spec": {
                "clusterIP": CLUSTER_IP, "clusterIPs": [CLUSTER_IP], "type": "ClusterIP", "sessionAffinity": "None",
                "internalTrafficPolicy": "Cluster", "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
                "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}],
            },
            "status": {"loadBalancer": {}},
        }),
    )];
    all.push((
        Key::new("networking.k8s.io", "servicecidrs", "", "kubernetes"),
        json!({
            "kind": "ServiceCIDR", "apiVersion": "networking.k8s.io/v1",
            "metadata": {"name": "kubernetes", "uid": uuid::Uuid::new_v4().to_string(), "creationTimestamp": now},
            "spec": {"cidrs": [RANGE]},
            "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "", "lastTransitionTime": now,
                                       "message": "Kubernetes default Service CIDR is ready"}]},
        }),
    ));
    let Some(address) = advertise else { return all };
    let ip = address.ip().to_string();
    all.push((
        Key::new("", "endpoints", "default", "kubernetes"),
        json!({
            "kind": "Endpoints", "apiVersion": "v1",
            "metadata": meta(json!({"endpointslice.kubernetes.io/skip-mirror": "true"})),
            "subsets": [{"addresses": [{"ip": ip}], "ports": [{"name": "https", "port": port, "protocol": "TCP"}]}],
        }),
    ));
    let family = if address.is_ipv4() { "IPv4" } else { "IPv6" };
    let mut slice = meta(json!({"kubernetes.io/service-name": "kubernetes"}));
    slice["generation"] = 1.into();
    all.push((
        Key::new("discovery.k8s.io", "endpointslices", "default", "kubernetes"),
        json!({
            "kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1", "metadata": slice, "addressType": family,
            "endpoints": [{"addresses": [ip], "conditions": {"ready": true}}],
            "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
        }),
    ));
    all
}
