//! A Kubernetes API server as a tower service, many isolated instances in one process.
//!
//! ```text
//! request → service (who, what, allowed?) → registry (decode, default, admit, validate) → store
//!                                         ↘ list, watch ← snapshots and events of the store
//! ```
//!
//! Start at [`ApiService`] (one request), `registry` (what every resource can do) and
//! [`Kind`] (built-in and custom kinds as one shape). Other parts of Atoll plug in through
//! [`Admission`], [`Connect`] and [`Mount`].

mod admission;
mod body;
mod bootstrap;
mod bootstrap_service;
mod call;
mod compress;
mod convert;
mod crd;
mod decode;
mod discovery;
mod disruption;
mod extend;
mod follow;
mod health;
mod hub;
mod identity;
mod instance;
mod kind;
mod limit;
mod metrics;
mod negotiate;
mod openapi;
mod openapi_proto;
mod openapi_v2;
mod precedence;
mod query;
mod registry;
mod request;
mod respond;
mod server;
mod service;
mod serving;
mod subresource;
mod table;

pub mod auth;

pub use admission::{Admission, Features, Operation, Review, recount};
pub use body::{Body, BodyError};
pub use call::Call;
pub use extend::{Asked, Connect, Incoming, Mount, MountedResource, Visit, Witness};
pub use health::probe;
pub use hub::{Clock, Hub, Options};
pub use identity::Identity;
pub use instance::{Instance, store_status};
pub use kind::{Kind, Kinds, Source, Sub};
pub use limit::Limits;
pub use query::Query;
pub use registry::{DeleteOptions, Stored};
pub use request::{Place, RequestInfo, Target, Verb};
pub use respond::{failure, json, response};
pub use server::{Line, PeerCertificates, Server, ServerError};
pub use service::{ApiService, handle};
pub use serving::Serving;
