//! Kinds the contract names.

use std::borrow::Cow;

use atoll_meta::{Gvr, api_version};

/// A kind of objects.
#[derive(Clone, Debug, PartialEq)]
pub struct Kind {
    /// API group.
    pub group: Cow<'static, str>,
    /// API version.
    pub version: Cow<'static, str>,
    /// Plural resource.
    pub resource: Cow<'static, str>,
    /// Kind; empty when only the resource is known.
    pub kind: Cow<'static, str>,
    /// Whether objects have a namespace.
    pub namespaced: bool,
}

pub(crate) const fn kind(
    group: &'static str,
    version: &'static str,
    resource: &'static str,
    kind: &'static str,
    namespaced: bool,
) -> Kind {
    Kind {
        group: Cow::Borrowed(group),
        version: Cow::Borrowed(version),
        resource: Cow::Borrowed(resource),
        kind: Cow::Borrowed(kind),
        namespaced,
    }
}

#[allow(missing_docs, reason = "the names say it")]
pub static POD: Kind = kind("", "v1", "pods", "Pod", true);
#[allow(missing_docs, reason = "the names say it")]
pub static EVENT: Kind = kind("", "v1", "events", "Event", true);
#[allow(missing_docs, reason = "the names say it")]
pub static NAMESPACE: Kind = kind("", "v1", "namespaces", "Namespace", false);
#[allow(missing_docs, reason = "the names say it")]
pub static CONFIG_MAP: Kind = kind("", "v1", "configmaps", "ConfigMap", true);
#[allow(missing_docs, reason = "the names say it")]
pub static SECRET: Kind = kind("", "v1", "secrets", "Secret", true);
#[allow(missing_docs, reason = "the names say it")]
pub static SERVICE: Kind = kind("", "v1", "services", "Service", true);
#[allow(missing_docs, reason = "the names say it")]
pub static DEPLOYMENT: Kind = kind("apps", "v1", "deployments", "Deployment", true);
#[allow(missing_docs, reason = "the names say it")]
pub static STATEFUL_SET: Kind = kind("apps", "v1", "statefulsets", "StatefulSet", true);
#[allow(missing_docs, reason = "the names say it")]
pub static DAEMON_SET: Kind = kind("apps", "v1", "daemonsets", "DaemonSet", true);
#[allow(missing_docs, reason = "the names say it")]
pub static JOB: Kind = kind("batch", "v1", "jobs", "Job", true);
#[allow(missing_docs, reason = "the names say it")]
pub static CRON_JOB: Kind = kind("batch", "v1", "cronjobs", "CronJob", true);
#[allow(missing_docs, reason = "the names say it")]
pub static INGRESS: Kind = kind("networking.k8s.io", "v1", "ingresses", "Ingress", true);
#[allow(missing_docs, reason = "the names say it")]
pub static INGRESS_CLASS: Kind = kind("networking.k8s.io", "v1", "ingressclasses", "IngressClass", false);
#[allow(missing_docs, reason = "the names say it")]
pub static DEFINITION: Kind =
    kind("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", false);
#[allow(missing_docs, reason = "the names say it")]
pub static POLICY: Kind = kind("policy.karmada.io", "v1alpha1", "propagationpolicies", "PropagationPolicy", true);
#[allow(missing_docs, reason = "the names say it")]
pub static CLUSTER_POLICY: Kind =
    kind("policy.karmada.io", "v1alpha1", "clusterpropagationpolicies", "ClusterPropagationPolicy", false);
#[allow(missing_docs, reason = "the names say it")]
pub static OVERRIDE: Kind = kind("policy.karmada.io", "v1alpha1", "overridepolicies", "OverridePolicy", true);
#[allow(missing_docs, reason = "the names say it")]
pub static CLUSTER_OVERRIDE: Kind =
    kind("policy.karmada.io", "v1alpha1", "clusteroverridepolicies", "ClusterOverridePolicy", false);
#[allow(missing_docs, reason = "the names say it")]
pub static FEDERATED_HPA: Kind = kind("autoscaling.karmada.io", "v1alpha1", "federatedhpas", "FederatedHPA", true);
#[allow(missing_docs, reason = "the names say it")]
pub static CLUSTER: Kind = kind("cluster.karmada.io", "v1alpha1", "clusters", "Cluster", false);
#[allow(missing_docs, reason = "the names say it")]
pub static BINDING: Kind = kind("work.karmada.io", "v1alpha2", "resourcebindings", "ResourceBinding", true);
#[allow(missing_docs, reason = "the names say it")]
pub static CLUSTER_BINDING: Kind =
    kind("work.karmada.io", "v1alpha2", "clusterresourcebindings", "ClusterResourceBinding", false);
#[allow(missing_docs, reason = "the names say it")]
pub static INSTANCE: Kind = kind("atoll.io", "v1alpha1", "instances", "Instance", false);

/// Kinds by the name that methods use.
static NAMED: [(&str, &str, &Kind); 15] = [
    ("StatefulSet", "StatefulSets", &STATEFUL_SET),
    ("DaemonSet", "DaemonSets", &DAEMON_SET),
    ("Deployment", "Deployments", &DEPLOYMENT),
    ("Job", "Jobs", &JOB),
    ("CronJob", "CronJobs", &CRON_JOB),
    ("ConfigMap", "ConfigMaps", &CONFIG_MAP),
    ("Secret", "Secrets", &SECRET),
    ("Service", "Services", &SERVICE),
    ("Ingress", "Ingresses", &INGRESS),
    ("Namespace", "Namespaces", &NAMESPACE),
    ("PropagationPolicy", "PropagationPolicies", &POLICY),
    ("ClusterPropagationPolicy", "ClusterPropagationPolicies", &CLUSTER_POLICY),
    ("OverridePolicy", "OverridePolicies", &OVERRIDE),
    ("ClusterOverridePolicy", "ClusterOverridePolicies", &CLUSTER_OVERRIDE),
    ("FederatedHPA", "FederatedHPAs", &FEDERATED_HPA),
];

impl Kind {
    /// The kind a method is about, by its name in singular or plural.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "CustomResourceDefinition" | "CustomResourceDefinitions" => return Some(DEFINITION.clone()),
            "Pods" => return Some(POD.clone()),
            _ => {}
        }
        NAMED.iter().find(|(one, many, _)| *one == name || *many == name).map(|(.., kind)| (*kind).clone())
    }

    /// A kind known only by its resource.
    pub fn of(group: &str, version: &str, resource: &str, namespaced: bool) -> Self {
        let own = |text: &str| Cow::Owned(text.to_owned());
        Self { group: own(group), version: own(version), resource: own(resource), kind: Cow::Borrowed(""), namespaced }
    }

    /// Group, version and resource.
    pub fn gvr(&self) -> Gvr {
        Gvr::new(&self.group, &self.version, &self.resource)
    }

    /// The `apiVersion` spelling.
    pub fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }
}
