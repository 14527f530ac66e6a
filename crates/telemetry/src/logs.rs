//! Where log lines go.

use tracing_subscriber::EnvFilter;

/// Logs to standard error what the environment variable `ATOLL_LOG` asks for (warnings and errors
/// without it); as JSON when `ATOLL_LOG_FORMAT` is `json`.
pub fn logs() {
    let filter = EnvFilter::try_from_env("ATOLL_LOG").unwrap_or_else(|_| "warn".into());
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A second call, as tests make it, changes nothing.
    let _ = match std::env::var("ATOLL_LOG_FORMAT").as_deref() {
        Ok("json") => lines.json().try_init(),
        _ => lines.try_init(),
    };
}
