//! Where objects are kept.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use anyhow::Context as _;
use atoll_store::{Engine, EtcdEngine, EtcdTls, MemoryEngine, RedbEngine};
use clap::Args;

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

impl StoreChoice {
    /// Whether other hubs may use it at the same time.
    pub fn is_shared(&self) -> bool {
        matches!(self, Self::Etcd(_))
    }
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

/// Files for TLS to etcd.
#[derive(Args, Clone, Debug, Default)]
pub struct EtcdFiles {
    /// Authority of etcd's certificates (PEM)
    #[arg(long, value_name = "FILE", env = "ATOLL_ETCD_CA")]
    pub etcd_ca: Option<PathBuf>,
    /// Client certificate for etcd (PEM)
    #[arg(long, value_name = "FILE", requires = "etcd_key", env = "ATOLL_ETCD_CERT")]
    pub etcd_cert: Option<PathBuf>,
    /// Key of the client certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "etcd_cert", env = "ATOLL_ETCD_KEY")]
    pub etcd_key: Option<PathBuf>,
}

impl EtcdFiles {
    fn read(&self, endpoints: &[String]) -> anyhow::Result<Option<EtcdTls>> {
        for endpoint in endpoints {
            let encrypted = endpoint.starts_with("https://");
            anyhow::ensure!(!encrypted || self.etcd_ca.is_some(), "{endpoint} needs --etcd-ca");
            anyhow::ensure!(encrypted || self.etcd_ca.is_none(), "--etcd-ca needs https:// endpoints, not {endpoint}");
        }
        let file = |path: &PathBuf| std::fs::read(path).with_context(|| format!("cannot read {}", path.display()));
        let identity = match (&self.etcd_cert, &self.etcd_key) {
            (Some(certificate), Some(key)) => Some((file(certificate)?, file(key)?)),
            _ => None,
        };
        let Some(authority) = &self.etcd_ca else {
            anyhow::ensure!(identity.is_none(), "--etcd-cert needs --etcd-ca");
            return Ok(None);
        };
        Ok(Some(EtcdTls { ca: file(authority)?, identity, server_name: None }))
    }
}

/// Opens the store.
pub async fn open(choice: &StoreChoice, files: &EtcdFiles) -> anyhow::Result<Arc<dyn Engine>> {
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
            let engine = EtcdEngine::connect(endpoints, files.read(endpoints)?, "atoll", options).await;
            Arc::new(engine.with_context(|| format!("cannot use etcd at {}", endpoints.join(", ")))?)
        }
    })
}
