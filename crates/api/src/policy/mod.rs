//! Kinds of policy.karmada.io.

mod overrides;
mod placement;
mod propagation;
mod quota;
mod taint;

pub use overrides::*;
pub use placement::*;
pub use propagation::*;
pub use quota::*;
pub use taint::*;
