//! Virtual nodes: nodes of worker clusters appear in a computing cluster, and pods bound to
//! them run in the worker cluster.
//!
//! ```text
//! ClusterBinding → manager → one syncer per binding (supervised)
//!                              worker nodes, policies → virtual Nodes, leases       (bottom-up)
//!                              pods on virtual nodes  → pods in the mount namespace (top-down)
//!                              status, labels         → back to the pods
//!                              logs, exec, metrics    → kubelet API of the virtual nodes (proxier)
//! ```
//!
//! Start at [`Manager`]. What is decided is in small pure functions (`pod::step`, `node::build`,
//! `pod::rewrite`, and the `atoll-lease` crate); the rest carries it out.

mod admission;
mod behind;
mod binding;
mod caller;
mod connect;
mod copy;
mod feature;
mod grant;
mod manager;
mod metrics;
mod node;
mod passage;
mod pod;
mod policy;
mod preview;
mod proxier;
mod resource;
mod role;
mod service;
mod strict;
mod switchboard;
mod syncer;
mod top;
mod tree;
mod trim;
mod worker;

pub use admission::admission;
pub use behind::left_behind;
pub use binding::FORCE_UNBIND;
pub use caller::Caller;
pub use connect::{STREAMS, connector};
pub use feature::{Feature, Features};
pub use grant::{define, grant};
pub use manager::{Deployed, Manager, Options, Share};
pub use passage::Passage;
pub use preview::preview;
pub use proxier::{ProxierOptions, kubelet_ca};
pub use role::{computing_roles, deploying_roles, proxier_roles, syncer_roles, worker_roles};
pub use top::usage;
pub use worker::{KubeconfigResolver, ShortCut, Worker, WorkerResolver};

/// What tells the time; injected so that tests can turn the hands.
pub type Clock = std::sync::Arc<dyn Fn() -> jiff::Timestamp + Send + Sync>;

/// The CustomResourceDefinitions of bindings and policies.
pub fn definitions() -> Vec<serde_json::Value> {
    atoll_api::crds(atoll_api::CrdSet::Kubeocean)
}
