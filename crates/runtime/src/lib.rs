//! Access to many clusters: endpoints, informers, queues, leader election.
//!
//! ```text
//! Endpoint (in process or HTTPS) → Informer (list, then watch) → Cache + changes → Queue → reconcile
//! ```
//!
//! Start at [`Endpoint`] (one Kubernetes API, wherever it runs) and [`Informer`].

mod brief;
mod cache;
mod client;
mod endpoint;
mod informer;
mod leader;
mod queue;
mod route;
mod transport;
mod watch;

pub use brief::{Brief, Written};
pub use cache::{Cache, Item, key};
pub use endpoint::{Endpoint, List, Patch, collect};
pub use informer::{Change, Informer, Selection};
pub use leader::{Leadership, lead};
pub use queue::{Queue, Ticket, work};
pub use route::{Denied, guarded_client};
pub use transport::{BodyStream, RemoteTransport, ReplaceableTransport, ServiceTransport, Transport};
pub use watch::{Seen, WatchEvent, WatchStream};
