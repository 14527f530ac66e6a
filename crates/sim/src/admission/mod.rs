//! What a simulated cluster does to objects before they are stored.

mod service;

pub use service::ServiceAddresses;
