//! Logs, metrics and health endpoints.
//!
//! [`Metrics`] is the registry every part adds its series to; [`Plain`] serves it, and health
//! checks, over plain HTTP for scrapers and probes on the same machine; [`logs`] sets up logging.

mod logs;
mod metrics;
mod plain;
mod process;

pub use logs::logs;
pub use metrics::{CONTENT_TYPE, Metrics};
pub use plain::{Answer, Plain};
