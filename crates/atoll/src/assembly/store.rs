//! Where objects are kept.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use anyhow::Context as _;
use atoll_store::{Engine, EtcdEngine, MemoryEngine, RedbEngine};

/// Where objects are kept.
#[derive(Clone, Debug)]
pub enum StoreChoice {
    /// Nowhere: gone when the process ends.
    Memory,
    /// In a directory.
    Redb(PathBuf),
    /// In an etcd cluster.
    Etcd(Vec<String>),
}

impl FromStr for StoreChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "memory" => Ok(Self::Memory),
            Some(("redb", directory)) if !directory.is_empty() => Ok(Self::Redb(directory.into())),
            Some(("etcd", endpoints)) if !endpoints.is_empty() => {
                Ok(Self::Etcd(endpoints.split(',').map(ToOwned::to_owned).collect()))
            }
            _ => Err("expected memory, redb:DIR or etcd:ENDPOINT[,ENDPOINT…]".into()),
        }
    }
}

/// Opens the store.
pub async fn open(choice: &StoreChoice) -> anyhow::Result<Arc<dyn Engine>> {
    let options = atoll_store::Options::default();
    Ok(match choice {
        StoreChoice::Memory => Arc::new(MemoryEngine::with(options)),
        StoreChoice::Redb(directory) => {
            std::fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
            Arc::new(
                RedbEngine::open(directory, options)
                    .with_context(|| format!("cannot use the data in {}", directory.display()))?,
            )
        }
        StoreChoice::Etcd(endpoints) => {
            let engine = EtcdEngine::connect(endpoints, None, "atoll", options).await;
            Arc::new(engine.with_context(|| format!("cannot use etcd at {}", endpoints.join(", ")))?)
        }
    })
}
