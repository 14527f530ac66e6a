//! MVCC storage behind one trait: memory, redb, etcd.

mod model;

pub use model::{Commit, Engine, Entry, Event, Expect, Feed, FeedItem, Op, Scope, Snapshot, StoreError, Watch, Write};
