//! `atoll lease unbind`: the end of a binding.

use std::time::Duration;

use anyhow::Context as _;
use atoll_meta::Status;
use atoll_runtime::{Endpoint, Patch, WatchEvent};
use clap::Args;
use serde_json::json;

use super::bindings;
use crate::commands::access::told;
use crate::commands::output;

/// What to unbind, and how.
#[derive(Args)]
pub struct Unbind {
    /// Name of the binding
    name: String,
    /// Do not ask the worker cluster, which may be gone for good, and list what is left behind there
    #[arg(long)]
    force: bool,
    /// Seconds to wait until everything is given back
    #[arg(long, default_value_t = 300)]
    timeout: u64,
}

impl Unbind {
    /// Unbinds and waits until the binding is gone.
    pub async fn run(&self, computing: &Endpoint) -> anyhow::Result<()> {
        let binding = computing.get(&bindings(), None, &self.name).await.map_err(told)?;
        let mut left = Vec::new();
        if self.force {
            // Asked before anything goes: afterwards nobody knows.
            left = atoll_vnode::left_behind(computing, &self.name).await.map_err(told)?;
            let patch = json!({"metadata": {"annotations": {atoll_vnode::FORCE_UNBIND: "true"}}});
            computing.patch(&bindings(), None, &self.name, "", Patch::Merge, &patch).await.map_err(told)?;
        }
        let since = binding["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
        computing.delete(&bindings(), None, &self.name, &json!({})).await.map_err(told)?;
        tokio::time::timeout(Duration::from_secs(self.timeout), self.gone(computing, &since)).await.with_context(
            || {
                let name = &self.name;
                format!("not given back after {} s; `kubectl describe clusterbinding {name}` says why, and --force leaves everything behind", self.timeout)
            },
        )?.map_err(told)?;
        output::line(&format!("clusterbinding/{} unbound", self.name));
        if self.force {
            self.tell(&left);
        }
        Ok(())
    }

    async fn gone(&self, computing: &Endpoint, since: &str) -> Result<(), Status> {
        let query = format!("fieldSelector=metadata.name%3D{}", self.name);
        let mut stream = computing.watch(&bindings(), None, &query, since).await?;
        if computing.get_opt(&bindings(), None, &self.name).await?.is_none() {
            return Ok(());
        }
        while let Some(event) = stream.next().await {
            if let WatchEvent::Deleted(_) = event? {
                return Ok(());
            }
        }
        Err(Status::unavailable("the watch ended"))
    }

    fn tell(&self, left: &[String]) {
        if left.is_empty() {
            output::line("nothing is left behind in the worker cluster");
            return;
        }
        output::line("left behind in the worker cluster:");
        left.iter().for_each(|line| output::line(&format!("  {line}")));
    }
}
