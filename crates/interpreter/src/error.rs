//! Why an object could not be understood.

use std::sync::Arc;

/// Why an object could not be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A script does not compile.
    #[error("script does not compile: {0}")]
    Compile(Arc<str>),
    /// A script has no function for the operation.
    #[error("script has no function {0}")]
    NoFunction(&'static str),
    /// A script raised an error.
    #[error("script failed in {function}: {message}")]
    Script {
        /// The function that was called.
        function: &'static str,
        /// What the script said.
        message: Arc<str>,
    },
    /// A script ran too long and was stopped.
    #[error("script stopped in {0}: it ran longer than the time limit")]
    Time(&'static str),
    /// A script took too much memory and was stopped.
    #[error("script stopped in {0}: it needs more memory than the limit")]
    Memory(&'static str),
    /// A function answered with something else than is expected of it.
    #[error("{function} gave {got}, wanted {wanted}")]
    Answer {
        /// The function that was called.
        function: &'static str,
        /// What it should give.
        wanted: &'static str,
        /// What it gave.
        got: String,
    },
    /// An object is not shaped as its kind demands.
    #[error("{0}")]
    Shape(String),
}
