//! The management plane: gRPC and REST over one set of descriptors.
//!
//! ```text
//! gRPC frame ┐                                     ┌ lists   ← index, within the caller's rights
//!            ├→ message → method → service (as JSON) ┤
//! REST path  ┘   (descriptors: `api`)              └ objects → the instance, as the caller
//! ```
//!
//! Start at [`Manage`]; `gate` finds out who asks, `guard` holds what lasts to the rights it began with. `api` holds the descriptors of `proto/`, `transcode` makes messages of
//! REST requests, `service` does the work, `pour` puts objects into messages. [`access`] is what
//! people may do, [`controllers`] what runs without being asked.

mod api;
mod ask;
mod audit;
mod context;
mod exec;
mod external;
mod gate;
mod grpc;
mod guard;
mod kinds;
mod manage;
mod openapi;
mod pour;
mod render;
mod rules;
mod service;
mod shape;
mod terminal;
mod transcode;

pub mod access;
pub mod controllers;

pub use audit::Audit;
pub use context::Core;
pub use manage::Manage;
