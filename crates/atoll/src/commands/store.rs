//! `atoll store`: backup and restore of the embedded or etcd store.

use std::fs::File;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Subcommand};

use super::access::block_on;
use super::output;
use crate::assembly::{EtcdFiles, StoreChoice, open_store};

/// Back up or restore everything a hub holds.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  atoll store backup --store redb:atoll-data hub.backup\n  atoll store restore --store redb:new-data hub.backup"
)]
pub struct Store {
    #[command(subcommand)]
    action: Action,
    /// Where objects are kept: `redb:DIR` or `etcd:ENDPOINT[,ENDPOINT…]`; a redb store must not be in use
    #[arg(long, global = true, default_value = "redb:atoll-data")]
    store: StoreChoice,
    #[command(flatten)]
    etcd: EtcdFiles,
}

#[derive(Subcommand)]
enum Action {
    /// Write all instances into a file
    Backup {
        /// The file
        file: PathBuf,
    },
    /// Read all instances from a file into an empty store
    Restore {
        /// The file
        file: PathBuf,
    },
}

impl Store {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<()> {
        block_on(async move {
            let engine = open_store(&self.store, &self.etcd).await?;
            let summary = match &self.action {
                Action::Backup { file } => {
                    let mut out = File::create(file).with_context(|| format!("cannot write {}", file.display()))?;
                    let summary = atoll_store::backup(&*engine, &mut out).await?;
                    out.sync_all()?;
                    summary
                }
                Action::Restore { file } => {
                    let mut input = File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
                    atoll_store::restore(&*engine, &mut input).await?
                }
            };
            output::line(&format!("{summary:?}"));
            Ok(())
        })
    }
}
