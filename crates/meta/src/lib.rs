//! Words of the system, shared by every other crate: keys, revisions, selectors,
//! quantities, object heads and API errors. Pure: no I/O, no clock, no async.
//!
//! Start at [`Object`] (how an object travels), [`Status`] (how a request fails)
//! and [`selector`] (how a client asks for some objects and not others).

mod conversion;
mod error;
mod field;
mod head;
mod id;
mod object;

pub mod name;
pub mod path;
pub mod quantity;
pub mod selector;
pub mod time;

pub use conversion::Conversion;
pub use error::{Cause, Details, Reason, Status};
pub use field::{FieldError, FieldErrorKind, FieldPath, quote};
pub use head::{Head, Owner};
pub use id::{Gvk, Gvr, InstanceId, Revision, api_version, split_api_version};
pub use object::{Key, Object, ObjectError};
pub use quantity::Quantity;

/// The header of requests that can wait while others run; its value does not matter.
pub const PATIENT: &str = "atoll-patient";

/// The header of the first of several writes that come one after the other and should share a commit; its value is how
/// many they are.
pub const COMPANY: &str = "atoll-company";
