//! A hub on a port: names it is reached by, health, metrics, outages of its store, and its end.
#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod away;
mod health;
mod metrics;
mod names;
mod outage;
mod port;
mod shutdown;
