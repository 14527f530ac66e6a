//! Kinds of well-known projects.

use std::sync::{Arc, LazyLock};

use crate::Operation::{self, Aggregate, Components, Dependencies, Health, Reflect, Replicas, Revise};
use crate::layer::Layer;

/// A kind, the operations it has scripts for, and the script with all their functions.
struct Known {
    api_version: &'static str,
    kind: &'static str,
    operations: &'static [Operation],
    script: &'static str,
}

const WORKLOAD: &[Operation] = &[Replicas, Revise, Reflect, Aggregate, Health, Dependencies];

const KNOWN: [Known; 4] = [
    Known {
        api_version: "apps.kruise.io/v1alpha1",
        kind: "CloneSet",
        operations: WORKLOAD,
        script: include_str!("../lua/workload.lua"),
    },
    Known {
        api_version: "apps.kruise.io/v1beta1",
        kind: "StatefulSet",
        operations: WORKLOAD,
        script: include_str!("../lua/workload.lua"),
    },
    Known {
        api_version: "argoproj.io/v1alpha1",
        kind: "Rollout",
        operations: WORKLOAD,
        script: include_str!("../lua/rollout.lua"),
    },
    Known {
        api_version: "flink.apache.org/v1beta1",
        kind: "FlinkDeployment",
        operations: &[Replicas, Components, Reflect, Aggregate, Health],
        script: include_str!("../lua/flink.lua"),
    },
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
