//! What a resource means: replicas, health, status, dependencies.
//!
//! Start at [`Interpreter`]. It asks the scripts of `ResourceInterpreterCustomization`s first,
//! then scripts for kinds of well-known projects, then [`builtin`], which knows the kinds of
//! Kubernetes. Scripts are Lua 5.1 in a sandbox with a limit on time and memory.

pub mod builtin;

mod error;
mod health;
mod interpreter;
mod layer;
mod lua;
mod operation;
mod reference;
mod requirements;
mod status;
mod thirdparty;

pub use error::Error;
pub use health::Health;
pub use interpreter::{Customization, Interpreter, check};
pub use operation::Operation;
pub use reference::{LabelRequirement, LabelSelector, ObjectRef};
pub use requirements::Requirements;
pub use status::MemberStatus;
