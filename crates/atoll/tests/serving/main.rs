//! `atoll serve` as a process of its own: its ports, names and files, a full disk, its end, and backups of its data.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod backup;
mod disk;
mod end;
mod hub;
mod ports;
