//! REST from the same descriptors as gRPC: `template` understands paths, `route` finds the method,
//! `request` makes its message, `status` tells failures in both worlds.

pub mod request;
pub mod route;
pub mod status;
pub mod template;
