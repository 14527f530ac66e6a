//! Kinds of work.karmada.io.

mod binding;
mod binding_v1alpha1;
mod convert;
#[expect(clippy::module_inception, reason = "the group has the name of its first kind")]
mod work;

pub use binding::*;
pub use binding_v1alpha1::*;
pub use convert::conversions;
pub use work::*;
