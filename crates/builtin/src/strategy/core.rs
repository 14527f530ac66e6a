//! Kinds of the core group.

mod config;
mod endpoints;
mod event;
mod namespace;
mod node;
mod quota;
mod service;
mod storage;

use super::{PLAIN, Rules, apps, pod};

pub(super) use endpoints::address as endpoint_address;
pub(super) use event::{EVENT, NEW_EVENT};
pub(super) use storage::{claim_spec, default_claim};

pub(super) fn rules(kind: &str) -> &'static Rules {
    match kind {
        "Pod" => &pod::POD,
        "PodTemplate" => &pod::POD_TEMPLATE,
        "ReplicationController" => &CONTROLLER,
        "Service" => &service::SERVICE,
        "ConfigMap" => &config::CONFIG_MAP,
        "Secret" => &config::SECRET,
        "Namespace" => &namespace::NAMESPACE,
        "Node" => &node::NODE,
        "PersistentVolume" => &storage::VOLUME,
        "PersistentVolumeClaim" => &storage::CLAIM,
        "Endpoints" => &endpoints::ENDPOINTS,
        "Event" => &EVENT,
        "LimitRange" => &quota::LIMIT_RANGE,
        "ResourceQuota" => &quota::QUOTA,
        _ => &PLAIN,
    }
}

const CONTROLLER: Rules = Rules {
    default: |_, object| apps::default_controller(object),
    validate: apps::controller,
    validate_update: |new, _, out| apps::controller(new, out),
    validate_status: |new, _, out| apps::controller_status(new, out),
    ..PLAIN
};

#[cfg(test)]
mod tests;
