//! Kinds of well-known projects.

use std::sync::{Arc, LazyLock};

use crate::Operation::{self, Aggregate, Components, Dependencies, Health, Reflect, Replicas, Retain, Revise};
use crate::layer::Layer;

/// A kind, the operations it has scripts for, and the script with all their functions.
struct Known {
    api_version: &'static str,
    kind: &'static str,
    operations: &'static [Operation],
    script: &'static str,
}

const WORKLOAD: &[Operation] = &[Replicas, Revise, Reflect, Aggregate, Health, Dependencies];
const DAEMON: &[Operation] = &[Reflect, Aggregate, Health, Dependencies];
const FLUX: &[Operation] = &[Retain, Reflect, Aggregate, Health, Dependencies];
const KYVERNO: &[Operation] = &[Reflect, Aggregate, Health];
const PARTS: &[Operation] = &[Components, Aggregate, Health, Dependencies];

const fn known(
    api_version: &'static str,
    kind: &'static str,
    operations: &'static [Operation],
    script: &'static str,
) -> Known {
    Known { api_version, kind, operations, script }
}

/// A script behind what those that add states up share.
macro_rules! summing {
    ($script:literal) => {
        concat!(include_str!("../lua/sums.lua"), include_str!($script))
    };
}

const WORKLOAD_SCRIPT: &str = summing!("../lua/workload.lua");
const BROADCAST_SCRIPT: &str = summing!("../lua/broadcast.lua");
const READY_SCRIPT: &str = summing!("../lua/ready.lua");
const PARTS_SCRIPT: &str =
    concat!(include_str!("../lua/sums.lua"), include_str!("../lua/parts.lua"), include_str!("../lua/together.lua"));

const KNOWN: [Known; 29] = [
    known("apps.kruise.io/v1alpha1", "CloneSet", WORKLOAD, WORKLOAD_SCRIPT),
    known("apps.kruise.io/v1beta1", "StatefulSet", WORKLOAD, WORKLOAD_SCRIPT),
    known("apps.kruise.io/v1alpha1", "UnitedDeployment", WORKLOAD, WORKLOAD_SCRIPT),
    known("apps.kruise.io/v1alpha1", "AdvancedCronJob", &[Aggregate, Dependencies], BROADCAST_SCRIPT),
    known(
        "apps.kruise.io/v1alpha1",
        "BroadcastJob",
        &[Replicas, Revise, Retain, Reflect, Aggregate, Health, Dependencies],
        BROADCAST_SCRIPT,
    ),
    known(
        "apps.kruise.io/v1alpha1",
        "SidecarSet",
        &[Replicas, Retain, Reflect, Aggregate, Health, Dependencies],
        summing!("../lua/sidecar.lua"),
    ),
    known("apps.kruise.io/v1alpha1", "DaemonSet", DAEMON, summing!("../lua/daemon.lua")),
    known("argoproj.io/v1alpha1", "Rollout", WORKLOAD, summing!("../lua/rollout.lua")),
    known(
        "flink.apache.org/v1beta1",
        "FlinkDeployment",
        &[Replicas, Components, Reflect, Aggregate, Health],
        include_str!("../lua/flink.lua"),
    ),
    known("helm.toolkit.fluxcd.io/v2", "HelmRelease", FLUX, READY_SCRIPT),
    known("helm.toolkit.fluxcd.io/v2beta1", "HelmRelease", FLUX, READY_SCRIPT),
    known("kustomize.toolkit.fluxcd.io/v1", "Kustomization", FLUX, READY_SCRIPT),
    known("source.toolkit.fluxcd.io/v1", "GitRepository", FLUX, READY_SCRIPT),
    known("source.toolkit.fluxcd.io/v1beta2", "Bucket", FLUX, READY_SCRIPT),
    known("source.toolkit.fluxcd.io/v1beta2", "HelmChart", FLUX, READY_SCRIPT),
    known("source.toolkit.fluxcd.io/v1beta2", "HelmRepository", FLUX, READY_SCRIPT),
    known("source.toolkit.fluxcd.io/v1beta2", "OCIRepository", FLUX, READY_SCRIPT),
    known("kyverno.io/v1", "ClusterPolicy", KYVERNO, READY_SCRIPT),
    known("kyverno.io/v1", "Policy", KYVERNO, READY_SCRIPT),
    known("kubeflow.org/v1", "PyTorchJob", PARTS, PARTS_SCRIPT),
    known("kubeflow.org/v1", "TFJob", PARTS, PARTS_SCRIPT),
    known("kubeflow.org/v2beta1", "MPIJob", PARTS, PARTS_SCRIPT),
    known("batch.volcano.sh/v1alpha1", "Job", PARTS, PARTS_SCRIPT),
    known("ray.io/v1", "RayCluster", PARTS, PARTS_SCRIPT),
    known("ray.io/v1", "RayJob", PARTS, PARTS_SCRIPT),
    known("ray.io/v1", "RayService", &[Replicas, Revise, Aggregate, Health, Dependencies], PARTS_SCRIPT),
    known("sparkoperator.k8s.io/v1beta2", "SparkApplication", &[Components, Aggregate, Health], PARTS_SCRIPT),
    known(
        "argoproj.io/v1alpha1",
        "Workflow",
        &[Replicas, Revise, Retain, Health, Dependencies],
        include_str!("../lua/workflow.lua"),
    ),
    known("kubeflow.org/v1", "Notebook", &[Replicas, Reflect, Aggregate, Health], summing!("../lua/notebook.lua")),
];

/// The scripts for these kinds.
pub fn layer() -> Arc<Layer> {
    static LAYER: LazyLock<Arc<Layer>> = LazyLock::new(|| {
        let mut layer = Layer::default();
        for known in &KNOWN {
            for operation in known.operations {
                layer.add(known.api_version, known.kind, *operation, known.script).expect("shipped scripts compile");
            }
        }
        Arc::new(layer)
    });
    Arc::clone(&LAYER)
}
