//! Logs, metrics and health endpoints
