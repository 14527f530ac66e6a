//! Scripts that say what objects of a kind mean.

mod clock;
mod convert;
mod kube;
mod os;
mod pattern;
mod pool;
mod sandbox;
mod text;

use std::sync::Arc;

pub use pool::Pool;

/// The text of a script that compiles.
#[derive(Clone, Debug)]
pub struct Script {
    /// Tells it from the others of its pool.
    pub id: usize,
    /// Its text.
    pub source: Arc<str>,
}
