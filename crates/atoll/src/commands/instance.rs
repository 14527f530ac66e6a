//! `atoll instance`: control planes inside the hub.

use atoll_meta::Gvr;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::access::{Access, block_on, told};
use super::output::{self, Format};
use crate::assembly::progress::Progress;

/// Work with instances.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  atoll instance create team-a\n  atoll instance list -o wide\n  atoll instance kubeconfig team-a > team-a.kubeconfig"
)]
pub struct Instance {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    access: Access,
    /// Form of the output
    #[arg(short, long, global = true, value_enum, default_value_t)]
    output: Format,
}

#[derive(Subcommand)]
enum Action {
    /// Make an instance and wait until it serves
    Create {
        /// Its name
        name: String,
        /// A name for people
        #[arg(long, default_value = "")]
        alias: String,
    },
    /// List instances
    List,
    /// Show one instance
    Get {
        /// Its name
        name: String,
    },
    /// Delete an instance with everything in it
    Delete {
        /// Its name
        name: String,
        /// Also when clusters are joined to it
        #[arg(long)]
        force: bool,
    },
    /// Print a kubeconfig for an instance, with the credentials of the present context
    Kubeconfig {
        /// Its name
        name: String,
    },
}

fn gvr() -> Gvr {
    Gvr::new("atoll.io", "v1alpha1", "instances")
}

impl Instance {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<()> {
        block_on(async move {
            let root = self.access.endpoint("root").await?;
            match &self.action {
                Action::Create { name, alias } => {
                    let object = json!({"apiVersion": "atoll.io/v1alpha1", "kind": "Instance", "metadata": {"name": name},
                                        "spec": {"type": "Hosted", "alias": alias}});
                    root.create(&gvr(), None, &object).await.map_err(told)?;
                    let ready = wait_ready(&root, name).await?;
                    if !output::tree(self.output, &ready)? {
                        output::line(&format!("instance/{name} is ready"));
                    }
                }
                Action::List => self.list(&root).await?,
                Action::Get { name } => {
                    let object = root.get(&gvr(), None, name).await.map_err(told)?;
                    if !output::tree(self.output, &object)? {
                        show(&[object]);
                    }
                }
                Action::Delete { name, force } => {
                    if *force {
                        let patch = json!({"metadata": {"annotations": {"atoll.io/force-delete": "true"}}});
                        root.patch(&gvr(), None, name, "", atoll_runtime::Patch::Merge, &patch).await.map_err(told)?;
                    }
                    root.get(&gvr(), None, name).await.map_err(told)?;
                    root.delete(&gvr(), None, name, &Value::Null).await.map_err(told)?;
                    output::line(&format!("instance/{name} deleted"));
                }
                Action::Kubeconfig { name } => output::line(&self.access.kubeconfig_for(name)?),
            }
            Ok(())
        })
    }

    async fn list(&self, root: &atoll_runtime::Endpoint) -> anyhow::Result<()> {
        let list = root.list(&gvr(), None, "").await.map_err(told)?;
        let value = json!({"apiVersion": "v1", "kind": "List", "items": list.items});
        if !output::tree(self.output, &value)? {
            show(&list.items);
        }
        Ok(())
    }
}

fn show(items: &[Value]) {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    };
    let rows: Vec<Vec<String>> = items
        .iter()
        .map(|item| {
            let statistics = &item["status"]["statistics"];
            vec![
                text(&item["metadata"]["name"]),
                text(&item["spec"]["type"]),
                text(&item["status"]["phase"]),
                text(&statistics["clusters"]),
                text(&statistics["nodes"]),
                text(&statistics["pods"]),
            ]
        })
        .collect();
    output::table(&["NAME", "TYPE", "PHASE", "CLUSTERS", "NODES", "PODS"], &rows);
}

/// Follows the object until it is ready; the server is told to give up after half a minute.
pub async fn wait_ready(root: &atoll_runtime::Endpoint, name: &str) -> anyhow::Result<Value> {
    let progress = Progress::start();
    progress.stage(format!("waiting until instance {name} is ready …"));
    let query = format!("fieldSelector=metadata.name%3D{name}");
    let waiting = async {
        let mut stream = root.watch(&gvr(), None, &query, "").await.map_err(told)?;
        while let Some(event) = stream.next().await {
            use atoll_runtime::WatchEvent::{Added, Modified};
            if let Added(object) | Modified(object) = event.map_err(told)?
                && object["status"]["phase"] == "Ready"
            {
                return Ok(object);
            }
        }
        anyhow::bail!("the hub ended the watch before instance {name} was ready")
    };
    match tokio::time::timeout(std::time::Duration::from_secs(30), waiting).await {
        Ok(result) => result,
        Err(_) => anyhow::bail!("instance {name} is not ready after 30 s; see `atoll instance get {name} -o yaml`"),
    }
}
