//! The embedded web console
