//! karmadactl and kubectl-karmada, unmodified, against the demonstration; and members that pull.
#![allow(clippy::unwrap_used)]

#[path = "../demo/mod.rs"]
mod demo;

mod agent;
mod commands;
mod fleet;
mod killed;
mod killed_real;
mod plan;
mod register;
