//! `atoll lease list`, `policies` and `preview`: what is lent, to whom, and when.

use std::path::PathBuf;

use anyhow::Context as _;
use atoll_api::kubeocean::ResourceLeasingPolicy;
use atoll_lease::{Decision, Preview};
use atoll_meta::{Gvr, Quantity};
use atoll_runtime::Endpoint;
use clap::Args;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use crate::commands::access::told;
use crate::commands::output::{self, Format};

/// Which policy.
#[derive(Args)]
pub struct Wanted {
    /// Name of a policy in the worker cluster
    #[arg(required_unless_present = "file")]
    name: Option<String>,
    /// A file with a policy that need not be in the cluster yet
    #[arg(short, long, conflicts_with = "name")]
    file: Option<PathBuf>,
    /// The moment to look at instead of now, such as 2026-01-05T20:00:00Z
    #[arg(long)]
    at: Option<Timestamp>,
}

fn nodes() -> Gvr {
    Gvr::new("", "v1", "nodes")
}

fn pods() -> Gvr {
    Gvr::new("", "v1", "pods")
}

/// The nodes and pods of a worker cluster.
struct Worker {
    nodes: Vec<Value>,
    pods: Vec<Value>,
}

impl Worker {
    async fn read(cluster: &Endpoint) -> anyhow::Result<Self> {
        let nodes = cluster.list(&nodes(), None, "").await.map_err(told)?.items;
        let pods = cluster.list(&pods(), None, "").await.map_err(told)?.items;
        Ok(Self { nodes, pods })
    }

    fn preview(&self, policy: &Value, now: Timestamp) -> anyhow::Result<Preview> {
        let policy: ResourceLeasingPolicy =
            serde_json::from_value(policy.clone()).context("this is no ResourceLeasingPolicy")?;
        Ok(atoll_vnode::preview(&policy, None, &self.nodes, &self.pods, now, &TimeZone::system()))
    }
}

impl Wanted {
    /// Prints what the policy lends.
    pub async fn run(&self, cluster: &Endpoint, format: Format) -> anyhow::Result<()> {
        let policy = match (&self.file, &self.name) {
            (Some(path), _) => {
                let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
                serde_saphyr::from_str(&text).with_context(|| format!("{} is no YAML", path.display()))?
            }
            (None, Some(name)) => cluster.get(&super::policies(), None, name).await.map_err(told)?,
            (None, None) => anyhow::bail!("name a policy, or give one with --file"),
        };
        let preview = Worker::read(cluster).await?.preview(&policy, self.at.unwrap_or_else(Timestamp::now))?;
        if output::tree(format, &tree(&preview))? {
            return Ok(());
        }
        output::line(&preview.to_string());
        let rows: Vec<Vec<String>> = preview.nodes.iter().map(row).collect();
        output::table(&["NODE", "CPU", "MEMORY", "WHY NOT"], &rows);
        Ok(())
    }
}

fn row(node: &atoll_lease::PreviewNode) -> Vec<String> {
    let of = |name: &str| match &node.decision {
        Decision::Lent(loan) => match (loan.amounts.get(name), node.has.get(name)) {
            (Some(lends), Some(has)) => format!("{lends} of {has}"),
            _ => String::new(),
        },
        Decision::Withheld(_) => String::new(),
    };
    let why = match &node.decision {
        Decision::Lent(_) => String::new(),
        Decision::Withheld(why) => why.to_string(),
    };
    vec![node.name.clone(), of("cpu"), of("memory"), why]
}

fn tree(preview: &Preview) -> Value {
    let amounts = |amounts: &atoll_lease::Amounts| -> Value {
        amounts
            .iter()
            .map(|(name, amount)| (name.clone(), Value::from(amount.to_string())))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    let nodes: Vec<Value> = preview
        .nodes
        .iter()
        .map(|node| match &node.decision {
            Decision::Lent(loan) => json!({"name": node.name, "lends": amounts(&loan.amounts)}),
            Decision::Withheld(why) => json!({"name": node.name, "withheld": why.to_string()}),
        })
        .collect();
    json!({
        "sentence": preview.to_string(), "lends": amounts(&preview.lends), "has": amounts(&preview.has), "nodes": nodes,
        "nextChange": preview.next_edge.map(|at| at.to_string()),
    })
}

/// Prints the policies of a worker cluster.
pub async fn policies(cluster: &Endpoint, format: Format) -> anyhow::Result<()> {
    let policies = cluster.list(&super::policies(), None, "").await.map_err(told)?.items;
    if output::tree(format, &Value::Array(policies.clone()))? {
        return Ok(());
    }
    let (worker, now) = (Worker::read(cluster).await?, Timestamp::now());
    let mut rows = Vec::new();
    for policy in &policies {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let sentence = worker.preview(policy, now).map_or_else(|error| error.to_string(), |lent| lent.to_string());
        let sentence = sentence.strip_prefix("this policy ").unwrap_or(&sentence).to_owned();
        rows.push(vec![
            text(&policy["metadata"]["name"]),
            text(&policy["spec"]["cluster"]),
            text(&policy["status"]["phase"]),
            sentence,
        ]);
    }
    output::table(&["POLICY", "BINDING", "PHASE", "EFFECT"], &rows);
    Ok(())
}

/// Prints roles, ready to apply.
pub fn roles(roles: &[Value]) -> anyhow::Result<()> {
    for role in roles {
        output::line("---");
        output::line(serde_saphyr::to_string(role)?.trim_end());
    }
    Ok(())
}

/// Prints the bindings of a computing cluster with what they lease.
pub async fn bindings(cluster: &Endpoint, format: Format) -> anyhow::Result<()> {
    let bindings = cluster.list(&super::bindings(), None, "").await.map_err(told)?.items;
    if output::tree(format, &Value::Array(bindings.clone()))? {
        return Ok(());
    }
    let query = "labelSelector=kubeocean.io%2Fmanaged-by%3Dkubeocean";
    let nodes = cluster.list(&nodes(), None, query).await.map_err(told)?.items;
    let pods = cluster.list(&pods(), None, "").await.map_err(told)?.items;
    let rows: Vec<Vec<String>> = bindings.iter().map(|binding| leased(binding, &nodes, &pods)).collect();
    output::table(&["BINDING", "CLUSTER ID", "PHASE", "NODES", "CPU", "MEMORY", "PODS", "WHY NOT"], &rows);
    Ok(())
}

fn leased(binding: &Value, nodes: &[Value], pods: &[Value]) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let name = &binding["metadata"]["name"];
    let own: Vec<&Value> =
        nodes.iter().filter(|node| node["metadata"]["labels"]["kubeocean.io/cluster-binding"] == *name).collect();
    let sum = |resource: &str| {
        let amounts =
            own.iter().filter_map(|node| Quantity::parse(node["status"]["allocatable"][resource].as_str()?).ok());
        amounts.reduce(|sum, one| sum.checked_add(one).unwrap_or(sum)).map(|sum| sum.to_string()).unwrap_or_default()
    };
    let count =
        pods.iter().filter(|pod| own.iter().any(|node| node["metadata"]["name"] == pod["spec"]["nodeName"])).count();
    let conditions = binding["status"]["conditions"].as_array().into_iter().flatten();
    let trouble =
        conditions.filter(|own| own["type"] == "Ready" && own["status"] != "True").map(|own| text(&own["message"]));
    vec![
        text(name),
        text(&binding["spec"]["clusterID"]),
        text(&binding["status"]["phase"]),
        own.len().to_string(),
        sum("cpu"),
        sum("memory"),
        count.to_string(),
        trouble.collect(),
    ]
}
