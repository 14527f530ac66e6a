//! Kinds of work.karmada.io.

mod binding;
mod binding_v1alpha1;
mod convert;
mod work;

pub use binding::*;
pub use binding_v1alpha1::*;
pub use work::*;
