//! Simulated clusters: workload controllers, a scheduler and fake kubelets.
//!
//! ```text
//! log of the store → World (caches, Book of pods and nodes) → Queue → controllers, scheduler, kubelets → writes
//! ```
//!
//! A simulated cluster is an instance of a hub with all of this running over its API, as in a
//! real cluster. Start at [`Sim`]; decisions are pure functions in `controllers`, `scheduler`
//! and `kubelet`. How a pod behaves can be asked for by annotations, see [`Wishes`].

mod admission;
mod book;
mod child;
mod condition;
mod connect;
mod controllers;
mod correlator;
mod diff;
mod engine;
mod fault;
mod follow;
mod gate;
mod interest;
mod kind;
mod kubelet;
mod node;
mod pod;
mod recorder;
mod registry;
mod resources;
mod route;
mod scheduler;
mod share;
mod shell;
mod spec;
mod teller;
#[cfg(test)]
mod testing;
mod time;
mod world;
mod write;

pub use admission::ServiceAddresses;
pub use connect::{POD_STREAMS, connector, install};
pub use engine::Sim;
pub use fault::{Fault, Faults};
pub use gate::{Gate, GuardedTransport};
pub use kubelet::Wishes;
pub use spec::Spec;
