//! The resources that are followed or written.

use atoll_meta::Gvr;

macro_rules! resources {
    ($($name:ident = $group:literal $version:literal $plural:literal;)*) => {
        $(pub(crate) fn $name() -> Gvr { Gvr::new($group, $version, $plural) })*
    };
}

resources! {
    bindings = "cloud.tencent.com" "v1beta1" "clusterbindings";
    policies = "cloud.tencent.com" "v1beta1" "resourceleasingpolicies";
    nodes = "" "v1" "nodes";
    pods = "" "v1" "pods";
    namespaces = "" "v1" "namespaces";
    secrets = "" "v1" "secrets";
    leases = "coordination.k8s.io" "v1" "leases";
    priority_classes = "scheduling.k8s.io" "v1" "priorityclasses";
    replica_sets = "apps" "v1" "replicasets";
    services = "" "v1" "services";
}
