//! `atoll top`: what is used, in all members.

use atoll_meta::{Gvr, Quantity};
use atoll_runtime::Endpoint;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::access::{Access, block_on, told};
use super::get::members;
use super::output::{self, Format};
use super::pods::member_path;

/// Show usage and capacity of all members.
#[derive(Args)]
#[command(
    after_help = "Clusters show requests; nodes and pods show usage (metrics.k8s.io of the member).\n\nExamples:\n  atoll top\n  atoll top nodes --clusters member1\n  atoll top pods -A --sort memory"
)]
pub struct Top {
    /// What to show
    #[arg(value_enum, default_value_t)]
    what: What,
    /// Namespace of pods
    #[arg(short, long, default_value = "default")]
    namespace: String,
    /// Pods of all namespaces
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// Only these members, separated by commas
    #[arg(long, value_delimiter = ',')]
    clusters: Vec<String>,
    /// Sort by this, highest first
    #[arg(long, value_enum, default_value_t)]
    sort: Sort,
    /// Form of the output
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    access: Access,
}

#[derive(Copy, Clone, Debug, Default, Eq, PartialEq, ValueEnum)]
enum What {
    #[default]
    Clusters,
    Nodes,
    Pods,
}

#[derive(Copy, Clone, Debug, Default, Eq, PartialEq, ValueEnum)]
enum Sort {
    #[default]
    Cpu,
    Memory,
}

/// One line: who, how many thousandths of a core, how many bytes, and of how much.
struct Use {
    cluster: String,
    namespace: String,
    name: String,
    cpu: i64,
    memory: i64,
    cpu_of: i64,
    memory_of: i64,
}

impl Top {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<()> {
        block_on(async move {
            let fleet = self.access.endpoint("fleet").await?;
            let (mut lines, failed) = match self.what {
                What::Clusters => (self.clusters(&fleet).await?, false),
                What::Nodes | What::Pods => self.measured(&fleet).await?,
            };
            match self.sort {
                Sort::Cpu => lines.sort_by_key(|line| std::cmp::Reverse(line.cpu)),
                Sort::Memory => lines.sort_by_key(|line| std::cmp::Reverse(line.memory)),
            }
            self.print(&lines)?;
            if failed { anyhow::bail!("some members did not answer") } else { Ok(()) }
        })
    }

    fn wants(&self, cluster: &str) -> bool {
        self.clusters.is_empty() || self.clusters.iter().any(|name| name == cluster)
    }

    async fn clusters(&self, fleet: &Endpoint) -> anyhow::Result<Vec<Use>> {
        members(fleet, &self.clusters).await?;
        let gvr = Gvr::new("cluster.karmada.io", "v1alpha1", "clusters");
        let list = fleet.list(&gvr, None, "").await.map_err(told)?;
        let told = list.items.iter().map(|item| {
            let (used, all) =
                (&item["status"]["resourceSummary"]["allocated"], &item["status"]["resourceSummary"]["allocatable"]);
            Use {
                cluster: text(&item["metadata"]["name"]),
                namespace: String::new(),
                name: String::new(),
                cpu: milli(&used["cpu"]),
                memory: whole(&used["memory"]),
                cpu_of: milli(&all["cpu"]),
                memory_of: whole(&all["memory"]),
            }
        });
        Ok(told.filter(|line| self.wants(&line.cluster)).collect())
    }

    /// What members measure; whether some did not answer.
    async fn measured(&self, fleet: &Endpoint) -> anyhow::Result<(Vec<Use>, bool)> {
        let names = members(fleet, &self.clusters).await?;
        let answers = futures::future::join_all(names.iter().map(|name| self.of_member(fleet, name))).await;
        let (mut lines, mut failed) = (Vec::new(), false);
        for (name, answer) in names.iter().zip(answers) {
            match answer {
                Ok(found) => lines.extend(found),
                Err(status) => {
                    failed = true;
                    eprintln!("{name}: {status}");
                }
            }
        }
        Ok((lines, failed))
    }

    async fn of_member(&self, fleet: &Endpoint, member: &str) -> Result<Vec<Use>, atoll_meta::Status> {
        let way = member_path(member);
        let nodes = self.what == What::Nodes;
        let namespace = (!nodes && !self.all_namespaces).then_some(self.namespace.as_str());
        let gvr = Gvr::new("metrics.k8s.io", "v1beta1", if nodes { "nodes" } else { "pods" });
        let measured = fleet.get_path(&format!("{way}{}", gvr.path(namespace, None))).await?;
        let sizes = match nodes {
            true => fleet.get_path(&format!("{way}/api/v1/nodes")).await?,
            false => Value::Null,
        };
        let size = |name: &Value| {
            let mut known = sizes["items"].as_array().into_iter().flatten();
            known.find(|node| node["metadata"]["name"] == *name).map(|node| &node["status"]["allocatable"])
        };
        let items = measured["items"].as_array().into_iter().flatten();
        Ok(items.map(|item| one(member, item, size(&item["metadata"]["name"]))).collect())
    }

    fn print(&self, lines: &[Use]) -> anyhow::Result<()> {
        let tree = lines.iter().map(|line| {
            let mut tree = json!({"cluster": line.cluster, "cpuMillis": line.cpu, "memoryBytes": line.memory});
            for (key, value) in [("namespace", &line.namespace), ("name", &line.name)] {
                if !value.is_empty() {
                    tree[key] = value.as_str().into();
                }
            }
            if self.what != What::Pods {
                tree["cpuMillisOf"] = line.cpu_of.into();
                tree["memoryBytesOf"] = line.memory_of.into();
            }
            tree
        });
        if output::tree(self.output, &Value::Array(tree.collect()))? {
            return Ok(());
        }
        let figures = ["CPU", "CPU%", "MEMORY", "MEMORY%"];
        let headers: Vec<&str> = match self.what {
            What::Clusters => vec!["CLUSTER", "CPU REQUESTED", "CPU%", "MEMORY REQUESTED", "MEMORY%"],
            What::Nodes => [&["CLUSTER", "NODE"][..], &figures].concat(),
            What::Pods => vec!["CLUSTER", "NAMESPACE", "POD", "CPU", "MEMORY"],
        };
        let rows: Vec<Vec<String>> = lines.iter().map(|line| self.row(line)).collect();
        output::table(&headers, &rows);
        Ok(())
    }

    fn row(&self, line: &Use) -> Vec<String> {
        let (cpu, memory) = (format!("{}m", line.cpu), format!("{}Mi", line.memory >> 20));
        let (cpu_share, memory_share) = (share(line.cpu, line.cpu_of), share(line.memory, line.memory_of));
        match self.what {
            What::Clusters => vec![line.cluster.clone(), cpu, cpu_share, memory, memory_share],
            What::Nodes => vec![line.cluster.clone(), line.name.clone(), cpu, cpu_share, memory, memory_share],
            What::Pods => vec![line.cluster.clone(), line.namespace.clone(), line.name.clone(), cpu, memory],
        }
    }
}

/// A measured node, or a pod by the sum of its containers.
fn one(member: &str, item: &Value, size: Option<&Value>) -> Use {
    let sum = |resource: &str, of: fn(&Value) -> i64| match item["containers"].as_array() {
        Some(containers) => containers.iter().map(|container| of(&container["usage"][resource])).sum(),
        None => of(&item["usage"][resource]),
    };
    Use {
        cluster: member.to_owned(),
        namespace: text(&item["metadata"]["namespace"]),
        name: text(&item["metadata"]["name"]),
        cpu: sum("cpu", milli),
        memory: sum("memory", whole),
        cpu_of: size.map_or(0, |size| milli(&size["cpu"])),
        memory_of: size.map_or(0, |size| whole(&size["memory"])),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn quantity(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => Quantity::parse(text).ok(),
        Value::Number(number) => number.as_i64().map(Quantity::from_value),
        _ => None,
    }
}

fn milli(value: &Value) -> i64 {
    quantity(value).map_or(0, Quantity::milli_value)
}

fn whole(value: &Value) -> i64 {
    quantity(value).map_or(0, Quantity::value)
}

fn share(used: i64, of: i64) -> String {
    match of {
        0 => "-".to_owned(),
        _ => format!("{}%", used.saturating_mul(100) / of),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_are_told_by_the_sum_of_their_containers_and_nodes_with_their_share() {
        let pod = json!({"metadata": {"name": "web", "namespace": "shop"}, "containers": [
            {"usage": {"cpu": "250m", "memory": "64Mi"}}, {"usage": {"cpu": "1", "memory": "1Gi"}}]});
        let line = one("member1", &pod, None);
        assert_eq!((line.cpu, line.memory >> 20, line.namespace.as_str()), (1250, 1088, "shop"));
        let node = json!({"metadata": {"name": "n"}, "usage": {"cpu": "500000000n", "memory": "1Gi"}});
        let line = one("member1", &node, Some(&json!({"cpu": "4", "memory": "8Gi"})));
        assert_eq!((share(line.cpu, line.cpu_of), share(line.memory, line.memory_of)), ("12%".into(), "12%".into()));
        assert_eq!(share(1, 0), "-");
    }
}
