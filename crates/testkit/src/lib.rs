//! Shared fixtures for tests: a whole hub behind TLS, real Kubernetes programs, a real control plane.
//!
//! Start at [`TestServer`] (Atoll in this process), [`peers::find`] (a real program by name) and
//! [`Cluster`] (a real kube-apiserver); [`ask_original`] asks Karmada's own code. All of them end what they started
//! when they are dropped.

mod cluster;
mod oracle;
mod server;

pub mod peers;

pub use cluster::{Cluster, Parts, SAME_CONTROLLERS, compact_etcd, remote};
pub use oracle::ask_original;
pub use server::{EngineChoice, Options, TestServer};
