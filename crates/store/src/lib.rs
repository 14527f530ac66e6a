//! MVCC storage behind one trait: memory, redb, etcd.
//!
//! Start at [`Engine`]. All engines keep the newest state and the recent history of each
//! instance in memory (module `mvcc`); they differ in what makes a write durable.

mod backup;
mod checksum;
mod disk;
mod etcd;
mod memory;
mod model;
mod mvcc;
mod options;

pub use backup::{BackupError, BackupSummary, backup, restore};
pub use disk::RedbEngine;
pub use etcd::{EtcdEngine, EtcdTls};
pub use memory::MemoryEngine;
pub use model::{Commit, Engine, Entry, Event, Expect, Feed, FeedItem, Op, Scope, Snapshot, StoreError, Watch, Write};
pub use options::{Clock, Options, Retention};
