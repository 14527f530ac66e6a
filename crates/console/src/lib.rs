//! The embedded web console.
//!
//! The sources are in `console/` at the root of the repository. The build script turns them into
//! compressed files that become part of the program; [`answer`] serves them below `/console/`.
//! Nothing here knows users or objects: the console is an ordinary caller of the public API.

mod answer;
mod file;
mod page;

pub use answer::{answer, wants_console};
