//! Propagation: detector, scheduler, bindings, works, status, failover.
//!
//! ```text
//! template + policy → detector → binding (with its decision) → render → one Work per cluster
//!                                                                          ↓ executor of the member
//! template status ← report ← binding status ← Work status ← member's object
//! ```
//!
//! Start at [`Fleet`]. What is decided is decided by pure functions ([`policy`], [`binding`],
//! [`decision`], [`overrides`], [`work`], [`merge`], [`aggregate`]); the controllers around
//! them only gather what those need and write what they say.

mod admission;
mod agent;
pub mod aggregate;
mod apply;
pub mod attach;
pub mod binding;
pub mod claim;
mod clusters;
pub mod company;
pub mod condition;
pub mod core;
pub mod customize;
pub mod decision;
mod dependencies;
mod detector;
pub mod diff;
pub mod discovery;
pub mod enroll;
mod events;
mod everywhere;
pub mod evict;
mod execute;
mod failover;
mod fleet;
mod foreign;
mod gates;
pub mod gvr;
mod health;
mod index;
mod install;
mod join;
pub mod keys;
mod loss;
pub mod member;
pub mod merge;
mod namespaces;
mod options;
mod order;
mod outlook;
pub mod overrides;
mod pace;
pub mod plan;
pub mod policy;
mod probe;
mod progress;
mod proxy;
pub mod prune;
mod rebalance;
mod render;
mod report;
mod scheduler;
mod skip;
mod stray;
mod summary;
pub mod taints;
pub mod templates;
mod unbuilt;
mod unheard;
pub mod unified;
pub mod why;
pub mod work;

pub use admission::admission;
pub use agent::{Agent, AgentOptions};
pub use fleet::Fleet;
pub use install::{definitions, install, native_definitions, objects};
pub use join::{JoinOptions, join, unjoin};
pub use options::{Clock, MemberResolver, NamedMembers, Options, RemoteMembers, settings};
pub use proxy::{Neighbours, cluster_proxy, forward};
pub use skip::Skip;
