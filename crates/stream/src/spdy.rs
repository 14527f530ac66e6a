//! SPDY/3.1 as Kubernetes' clients speak it: no flow control windows, no priorities.

mod block;
mod connection;
mod frame;

pub(crate) use connection::{Connection, NewStream, Role};
