//! `atoll why` and `atoll plan`: why something is where it is, and what a change would move.

use std::path::PathBuf;

use anyhow::Context as _;
use atoll_runtime::Endpoint;
use clap::Args;
use serde_json::Value;

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
            // Only what is never propagated depends on them: who may not read them is not bothered with that.
            let settings = settings(&self.access).await?.unwrap_or_default();
            let trace =
                atoll_fleet::why::trace_with(&fleet, &settings, kind, &self.namespace, name).await.map_err(told)?;
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
            let settings = settings(&self.access).await?.unwrap_or_else(|why| {
                eprintln!("the usual settings are assumed; {why}");
                Value::Null
            });
            let moves = match (&self.file, &self.without) {
                (_, Some(cluster)) => {
                    let planned = atoll_fleet::plan::plan_without(&fleet, &settings, cluster, now).await;
                    let loss = planned.map_err(told)?;
                    if !output::tree(self.output, &serde_json::to_value(&loss.moves)?)? {
                        output::line(loss.to_string().trim_end());
                    }
                    return Ok(());
                }
                (Some(path), None) => {
                    let text =
                        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
                    let policy: Value = serde_saphyr::from_str(&text)?;
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
}

/// The settings of the instance, or why they cannot be read.
async fn settings(access: &Access) -> anyhow::Result<Result<Value, String>> {
    let mut config = access.config("fleet").await?;
    let url = config.cluster_url.to_string();
    let Some((base, instance)) = url.trim_end_matches('/').split_once("/instances/") else {
        return Ok(Ok(Value::Null));
    };
    config.cluster_url = base.parse()?;
    let root = Endpoint::remote("root", config, "atoll")?;
    let settings = atoll_fleet::plan::settings(&root, instance).await;
    Ok(settings.map_err(|status| format!("those of instance {instance} cannot be read: {}", status.message)))
}
