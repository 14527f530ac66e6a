//! The cases of the original, A to E, over clusters in one process; where the original has a
//! bug the test says so and asks for the better behaviour.
#![allow(clippy::unwrap_used)]

mod apart;
mod chaos;
mod copies;
mod corners;
mod kubelet;
mod manager;
mod nodes;
mod pods;
mod proxier;
mod reclaim;
mod rights;
mod security;
mod silence;
mod stage;
mod stale;
mod steps;
mod story;
mod table;
mod unbind;
