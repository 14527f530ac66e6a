//! `atoll why` and `atoll plan`: why something is where it is, and what a change would move.

use std::path::PathBuf;

use anyhow::Context as _;
use atoll_runtime::Endpoint;
use clap::Args;

use super::access::{Access, Fault, block_on, told};
use super::output::{self, Format};

/// Say why a template is, or is not, where it is.
#[derive(Args)]
#[command(after_help = "Example:\n  atoll why deployment/web")]
pub struct Why {
    /// `KIND/NAME` of the template
    target: String,
    /// Namespace
    #[arg(short, long, default_value = "default")]
    namespace: String,
    /// Form of the output
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    access: Access,
}

/// Show what would move before anything moves.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  atoll plan -f policy.yaml\n  atoll plan --without member2",
    group = clap::ArgGroup::new("what").required(true).args(["file", "without"])
)]
pub struct Plan {
    /// A policy that is not applied yet
    #[arg(short, long)]
    file: Option<PathBuf>,
    /// What the loss of this cluster would do
    #[arg(long, value_name = "CLUSTER")]
    without: Option<String>,
    /// Form of the output
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    access: Access,
}

impl Why {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<()> {
        block_on(async move {
            let usage = || Fault::Usage(format!("give the template as KIND/NAME, such as deployment/{}", self.target));
            let (kind, name) = self.target.split_once('/').ok_or_else(usage)?;
            let fleet = self.access.endpoint("fleet").await?;
            let trace = atoll_fleet::why::trace(&fleet, kind, &self.namespace, name).await.map_err(told)?;
            if trace.template.is_none() && trace.binding.is_none() {
                return Err(Fault::Missing(format!("there is no {}", trace.subject)).into());
            }
            if !output::tree(self.output, &serde_json::to_value(&trace)?)? {
                output::line(trace.to_string().trim_end());
            }
            Ok(())
        })
    }
}

impl Plan {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<()> {
        block_on(async move {
            let fleet = self.access.endpoint("fleet").await?;
            let now = jiff::Timestamp::now();
            let moves = match (&self.file, &self.without) {
                (_, Some(cluster)) => atoll_fleet::plan::plan_without(&fleet, cluster, now).await.map_err(told)?,
                (Some(path), None) => {
                    let text =
                        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
                    let policy: serde_json::Value = serde_saphyr::from_str(&text)?;
                    let settings = self.settings().await?;
                    atoll_fleet::plan::plan(&fleet, &settings, &policy, now).await.map_err(told)?
                }
                (None, None) => anyhow::bail!("give a policy with -f or a cluster with --without"),
            };
            if output::tree(self.output, &serde_json::to_value(&moves)?)? {
                return Ok(());
            }
            let moving: Vec<_> = moves.iter().filter(|step| !step.is_nothing()).collect();
            if moving.is_empty() {
                output::line("nothing would move");
            }
            for step in moving {
                output::line(&step.to_string());
            }
            Ok(())
        })
    }

    /// The settings of the instance. Who may not read them plans with the usual ones, and is told.
    async fn settings(&self) -> anyhow::Result<serde_json::Value> {
        let mut config = self.access.config("fleet").await?;
        let url = config.cluster_url.to_string();
        let Some((base, instance)) = url.trim_end_matches('/').split_once("/instances/") else {
            return Ok(serde_json::Value::Null);
        };
        config.cluster_url = base.parse()?;
        let root = Endpoint::remote("root", config, "atoll")?;
        Ok(atoll_fleet::plan::settings(&root, instance).await.unwrap_or_else(|status| {
            eprintln!(
                "the usual settings are assumed; those of instance {instance} cannot be read: {}",
                status.message
            );
            serde_json::Value::Null
        }))
    }
}
