//! What people type, against the demonstration in a process of its own: kubectl in a simulated member,
//! and `atoll` itself. Skipped visibly when kubectl is not there.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod faults;
mod hub;
mod nodes;
mod pods;
mod processes;
mod rollouts;
mod tenants;
mod versions;
