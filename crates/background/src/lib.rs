//! The controllers every instance has: namespaces, garbage collection, definitions, accounts.
//!
//! One event-driven scheduler serves all instances: changes of the whole hub arrive on one feed,
//! become [`Task`]s keyed by instance, and a few workers carry them out through the ordinary API.
//! An idle instance has no task, no informer and no timer here.
//!
//! ```text
//! feed → react (what does this change ask for?) → Queue<Task> → one module per kind of task
//! ```

mod account;
mod collect;
mod definition;
mod hands;
mod namespace;
mod owners;
mod react;
mod task;

pub use react::Background;
pub use task::Task;
