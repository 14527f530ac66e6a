//! The in-memory heart that all engines share: the newest state of each instance as a persistent
//! map, its history as a log of shared events, and watches that are only cursors into the log.

mod change;
mod core;
mod cursor;
mod history;
mod instance;

pub(crate) use change::{Change, effective, stage};
pub(crate) use core::{Core, ROOT};
pub(crate) use cursor::Cursor;
pub(crate) use instance::{Effects, Instance};
