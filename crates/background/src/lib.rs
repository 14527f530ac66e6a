//! The controllers every instance has: namespaces, garbage collection, definitions, accounts and tokens,
//! quotas, and the end of whatever has one.
//!
//! One event-driven scheduler serves all instances: changes of the whole hub arrive on one feed,
//! become [`Task`]s keyed by instance, and a few workers carry them out through the ordinary API.
//! An idle instance has no task, no informer and no timer here. (Aggregated roles and the signing of
//! certificates need no work in the background: the request that changes or approves does it.)
//!
//! ```text
//! feed → react, ask (what does this change ask for?) → Queue<Task> → one module per kind of task
//! ```

mod account;
mod approve;
mod ask;
mod bootstrap;
mod collect;
mod definition;
mod due;
mod event;
mod hands;
mod job;
mod namespace;
mod owners;
mod quotas;
mod react;
mod request;
mod task;
mod token;

pub use react::Background;
pub use task::Task;
