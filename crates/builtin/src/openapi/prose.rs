//! Descriptions of types and fields, taken at run time from the k8s-openapi crate.

use serde_json::{Map, Value};

/// Registers the schemas of the kinds of one group-version with a generator.
macro_rules! register {
    ($generator:ident, $wanted:expr, $(($group:literal, $version:literal) => $($module:ident)::+ { $($kind:ident),+ },)+) => {
        match $wanted {
            $(($group, $version) => {
                use $($module)::+ as module;
                $($generator.subschema_for::<module::$kind>();)+
            })+
            _ => {}
        }
    };
}

/// Descriptions of all types that the kinds of one group-version reach.
pub(crate) struct Prose {
    definitions: Map<String, Value>,
}

impl Prose {
    /// Collects them; a group-version that is not built in has only the shared types.
    pub(crate) fn of(group: &str, version: &str) -> Self {
        let mut generator = schemars::SchemaGenerator::default();
        shared(&mut generator);
        kinds(&mut generator, group, version);
        Self { definitions: generator.take_definitions(false) }
    }

    /// What a type is.
    pub(crate) fn of_type(&self, name: &str) -> Option<&str> {
        self.definitions.get(name)?.get("description")?.as_str()
    }

    /// What a field is.
    pub(crate) fn of_field(&self, name: &str, field: &str) -> Option<&str> {
        self.definitions.get(name)?.get("properties")?.get(field)?.get("description")?.as_str()
    }
}

/// Types that every document has.
fn shared(generator: &mut schemars::SchemaGenerator) {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
    generator.subschema_for::<meta::ObjectMeta>();
    generator.subschema_for::<meta::ListMeta>();
    generator.subschema_for::<meta::DeleteOptions>();
    generator.subschema_for::<meta::Status>();
    generator.subschema_for::<meta::APIResourceList>();
    generator.subschema_for::<meta::APIGroupList>();
    generator.subschema_for::<meta::APIVersions>();
}

fn kinds(generator: &mut schemars::SchemaGenerator, group: &str, version: &str) {
    register! { generator, (group, version),
        ("", "v1") => k8s_openapi::api::core::v1 {
            Binding, ComponentStatus, ConfigMap, Endpoints, Event, LimitRange, Namespace, Node,
            PersistentVolumeClaim, PersistentVolume, Pod, PodTemplate, ReplicationController, ResourceQuota, Secret,
            ServiceAccount, Service
        },
        ("apiregistration.k8s.io", "v1") => k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1 { APIService },
        ("apps", "v1") => k8s_openapi::api::apps::v1 {
            ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet
        },
        ("events.k8s.io", "v1") => k8s_openapi::api::events::v1 { Event },
        ("authentication.k8s.io", "v1") => k8s_openapi::api::authentication::v1 { SelfSubjectReview, TokenReview },
        ("authorization.k8s.io", "v1") => k8s_openapi::api::authorization::v1 {
            LocalSubjectAccessReview, SelfSubjectAccessReview, SelfSubjectRulesReview, SubjectAccessReview
        },
        ("autoscaling", "v2") => k8s_openapi::api::autoscaling::v2 { HorizontalPodAutoscaler },
        ("autoscaling", "v1") => k8s_openapi::api::autoscaling::v1 { HorizontalPodAutoscaler },
        ("batch", "v1") => k8s_openapi::api::batch::v1 { CronJob, Job },
        ("certificates.k8s.io", "v1") => k8s_openapi::api::certificates::v1 { CertificateSigningRequest },
        ("certificates.k8s.io", "v1beta1") => k8s_openapi::api::certificates::v1beta1 {
            ClusterTrustBundle, PodCertificateRequest
        },
        ("certificates.k8s.io", "v1alpha1") => k8s_openapi::api::certificates::v1alpha1 { ClusterTrustBundle },
        ("networking.k8s.io", "v1") => k8s_openapi::api::networking::v1 {
            IngressClass, Ingress, IPAddress, NetworkPolicy, ServiceCIDR
        },
        ("networking.k8s.io", "v1beta1") => k8s_openapi::api::networking::v1beta1 { IPAddress, ServiceCIDR },
        ("policy", "v1") => k8s_openapi::api::policy::v1 { PodDisruptionBudget },
        ("rbac.authorization.k8s.io", "v1") => k8s_openapi::api::rbac::v1 {
            ClusterRoleBinding, ClusterRole, RoleBinding, Role
        },
        ("storage.k8s.io", "v1") => k8s_openapi::api::storage::v1 {
            CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment, VolumeAttributesClass
        },
        ("storage.k8s.io", "v1beta1") => k8s_openapi::api::storage::v1beta1 { VolumeAttributesClass },
        ("admissionregistration.k8s.io", "v1") => k8s_openapi::api::admissionregistration::v1 {
            MutatingWebhookConfiguration, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
            ValidatingWebhookConfiguration
        },
        ("admissionregistration.k8s.io", "v1beta1") => k8s_openapi::api::admissionregistration::v1beta1 {
            MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding
        },
        ("admissionregistration.k8s.io", "v1alpha1") => k8s_openapi::api::admissionregistration::v1alpha1 {
            MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding
        },
        ("apiextensions.k8s.io", "v1") => k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 {
            CustomResourceDefinition
        },
        ("scheduling.k8s.io", "v1") => k8s_openapi::api::scheduling::v1 { PriorityClass },
        ("scheduling.k8s.io", "v1alpha1") => k8s_openapi::api::scheduling::v1alpha1 { Workload },
        ("coordination.k8s.io", "v1") => k8s_openapi::api::coordination::v1 { Lease },
        ("coordination.k8s.io", "v1beta1") => k8s_openapi::api::coordination::v1beta1 { LeaseCandidate },
        ("coordination.k8s.io", "v1alpha2") => k8s_openapi::api::coordination::v1alpha2 { LeaseCandidate },
        ("node.k8s.io", "v1") => k8s_openapi::api::node::v1 { RuntimeClass },
        ("discovery.k8s.io", "v1") => k8s_openapi::api::discovery::v1 { EndpointSlice },
        ("resource.k8s.io", "v1") => k8s_openapi::api::resource::v1 {
            DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
        },
        ("resource.k8s.io", "v1beta2") => k8s_openapi::api::resource::v1beta2 {
            DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
        },
        ("resource.k8s.io", "v1beta1") => k8s_openapi::api::resource::v1beta1 {
            DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
        },
        ("resource.k8s.io", "v1alpha3") => k8s_openapi::api::resource::v1alpha3 { DeviceTaintRule },
        ("flowcontrol.apiserver.k8s.io", "v1") => k8s_openapi::api::flowcontrol::v1 {
            FlowSchema, PriorityLevelConfiguration
        },
        ("internal.apiserver.k8s.io", "v1alpha1") => k8s_openapi::api::apiserverinternal::v1alpha1 { StorageVersion },
        ("storagemigration.k8s.io", "v1beta1") => k8s_openapi::api::storagemigration::v1beta1 {
            StorageVersionMigration
        },
    }
    if (group, version) == ("", "v1") {
        generator.subschema_for::<k8s_openapi::api::policy::v1::Eviction>();
        generator.subschema_for::<k8s_openapi::api::authentication::v1::TokenRequest>();
    }
    if ["", "apps"].contains(&group) {
        generator.subschema_for::<k8s_openapi::api::autoscaling::v1::Scale>();
    }
}
