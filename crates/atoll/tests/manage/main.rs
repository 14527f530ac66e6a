//! The management plane on the port of a running hub: REST, gRPC by reflection, streams, tenants, and who may ask.
#![allow(clippy::unwrap_used)]

mod contract;
mod entry;
mod exec;
mod failover;
mod hub;
mod kubectl;
mod reflect;
mod streams;
mod tenants;
