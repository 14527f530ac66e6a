//! Scheduling decisions: which clusters, how many replicas, and why.
//!
//! Pure: [`decide`] takes a [`Snapshot`] of the clusters and a [`Request`] and gives a
//! [`Decision`] that says of every cluster why it was chosen or refused. What would happen
//! without a cluster is the same question about [`Snapshot::without`] it.

mod affinity;
mod assign;
mod capacity;
mod cluster;
mod company;
mod decide;
mod decision;
mod filter;
mod grades;
mod request;
mod rule;
mod spread;
mod trigger;
mod webster;

pub use affinity::{AffinityMiss, Matcher};
pub use capacity::{Capacity, Requirements};
pub use cluster::{Cluster, Snapshot, Taint};
pub use company::{apart, together};
pub use decide::decide;
pub use decision::{ClusterReason, Decision, DecisionError, Skipped, Target};
pub use request::{Component, Mode, Options, Request};
pub use rule::Rule;
pub use trigger::{Trigger, trigger};
pub use webster::{Party, divide};
