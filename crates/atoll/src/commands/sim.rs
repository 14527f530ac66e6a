//! `atoll sim`: simulated clusters, and faults in them.

use std::collections::BTreeSet;

use anyhow::Context as _;
use atoll_meta::Gvr;
use atoll_runtime::{Endpoint, Patch};
use atoll_sim::Fault;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use super::access::{self, Access, block_on, told};
use super::instance::wait_ready;
use super::output::{self, Format};
use crate::assembly::{EVENTS, FAULTS, NODES};

/// Make, break and repair simulated clusters.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  atoll sim create test --nodes 5\n  atoll sim fail member1\n  atoll sim fail member2 --how slow --delay 3s\n  atoll sim fail member2 --node member2-node-1\n  atoll sim fail member3 --crash app=web\n  atoll sim heal member1"
)]
pub struct Sim {
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
    /// Make a simulated cluster and wait until it serves
    Create {
        /// Its name
        name: String,
        /// How many nodes it has
        #[arg(long, default_value_t = 3)]
        nodes: usize,
        /// The region its nodes say they are in
        #[arg(long, default_value = "sim-1")]
        region: String,
        /// Which events are written
        #[arg(long, value_enum, default_value = "all")]
        events: Events,
    },
    /// Delete a simulated cluster with everything in it
    Delete {
        /// Its name
        name: String,
    },
    /// List simulated clusters and what is broken in them
    List,
    /// Break something; can be used several times
    Fail {
        /// The simulated cluster
        name: String,
        #[command(flatten)]
        what: What,
    },
    /// Repair something, or everything
    Heal {
        /// The simulated cluster
        name: String,
        #[command(flatten)]
        what: What,
    },
}

/// Which events are written.
#[derive(Copy, Clone, Debug, ValueEnum)]
enum Events {
    /// All events of a real cluster
    All,
    /// All but routine events of kubelets
    Controllers,
    /// Warnings only
    Problems,
}

impl Events {
    fn word(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Controllers => "controllers",
            Self::Problems => "problems",
        }
    }
}

/// What breaks. Without any of these, the API server cannot be reached.
#[derive(Args, Clone, Debug, Default)]
struct What {
    /// How the API server fails
    #[arg(long, value_enum)]
    how: Option<How>,
    /// How late a slow API server answers
    #[arg(long, default_value = "2s")]
    delay: String,
    /// This node stops answering
    #[arg(long)]
    node: Vec<String>,
    /// All nodes of this zone stop answering
    #[arg(long)]
    zone: Vec<String>,
    /// Containers of pods with these labels crash
    #[arg(long, value_name = "SELECTOR")]
    crash: Vec<String>,
    /// The clock is wrong by this much, such as `-1h`
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    clock_skew: Option<String>,
}

#[derive(Copy, Clone, Debug, ValueEnum)]
enum How {
    /// No answer at all
    Unreachable,
    /// Late answers
    Slow,
    /// An error as answer to everything
    Refusing,
    /// A certificate that nobody trusts any more
    Expired,
}

impl What {
    /// The faults that were named.
    fn faults(&self) -> anyhow::Result<Vec<Fault>> {
        let mut words: Vec<String> = Vec::new();
        words.extend(self.how.map(|how| match how {
            How::Unreachable => "unreachable".to_owned(),
            How::Slow => format!("slow={}", self.delay),
            How::Refusing => "refusing".to_owned(),
            How::Expired => "expired".to_owned(),
        }));
        words.extend(self.node.iter().map(|name| format!("node={name}")));
        words.extend(self.zone.iter().map(|name| format!("zone={name}")));
        words.extend(self.crash.iter().map(|selector| format!("crash={selector}")));
        words.extend(self.clock_skew.iter().map(|skew| format!("clock-skew={skew}")));
        words.iter().map(|word| word.parse().map_err(|error: String| anyhow::anyhow!(error))).collect()
    }

    /// Refuses names of nodes and zones that the cluster does not have.
    async fn check(&self, root: &Endpoint, name: &str) -> anyhow::Result<()> {
        if self.node.is_empty() && self.zone.is_empty() {
            return Ok(());
        }
        // One whose API server fails already says nothing of its nodes.
        let Ok(list) = root.get_path(&format!("/instances/{name}/api/v1/nodes")).await else { return Ok(()) };
        let nodes = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        let found =
            |path: &str| -> BTreeSet<&str> { nodes.iter().filter_map(|node| node.pointer(path)?.as_str()).collect() };
        let (names, zones) = (found("/metadata/name"), found("/metadata/labels/topology.kubernetes.io~1zone"));
        for (what, wanted, known) in [("node", &self.node, names), ("zone", &self.zone, zones)] {
            if let Some(other) = wanted.iter().find(|one| !known.contains(one.as_str())) {
                let known: Vec<&str> = known.into_iter().collect();
                let text = format!("{name} has no {what} {other:?}; it has {}", known.join(", "));
                return Err(access::Fault::Missing(text).into());
            }
        }
        Ok(())
    }

    /// What is broken afterwards.
    fn added_to(&self, mut present: Vec<Fault>) -> anyhow::Result<Vec<Fault>> {
        let mut more = self.faults()?;
        if more.is_empty() {
            more.push(Fault::Unreachable);
        }
        for fault in more {
            // A clock has one skew, and an API server one way to fail.
            present.retain(|old| std::mem::discriminant(old) != std::mem::discriminant(&fault) || named(old));
            if !present.contains(&fault) {
                present.push(fault);
            }
        }
        Ok(present)
    }

    /// What stays broken; everything is repaired unless something was named.
    fn taken_from(&self, mut present: Vec<Fault>) -> anyhow::Result<Vec<Fault>> {
        let fewer = self.faults()?;
        if fewer.is_empty() {
            return Ok(Vec::new());
        }
        present.retain(|old| {
            !fewer.iter().any(|fault| {
                fault == old || !named(old) && std::mem::discriminant(old) == std::mem::discriminant(fault)
            })
        });
        Ok(present)
    }
}

/// Whether there can be several faults of this sort, told apart by what they are about.
fn named(fault: &Fault) -> bool {
    matches!(fault, Fault::NodeDown(_) | Fault::ZoneDown(_) | Fault::CrashPods(_))
}

fn gvr() -> Gvr {
    Gvr::new("atoll.io", "v1alpha1", "instances")
}

/// The faults that an Instance names.
fn present(object: &Value) -> Vec<Fault> {
    let text = object["metadata"]["annotations"][FAULTS].as_str().unwrap_or("[]");
    let words: Vec<String> = serde_json::from_str(text).unwrap_or_default();
    words.iter().filter_map(|word| word.parse().ok()).collect()
}

impl Sim {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<()> {
        block_on(async move {
            let root = self.access.endpoint("root").await?;
            match &self.action {
                Action::Create { name, nodes, region, events } => {
                    let object = json!({"apiVersion": "atoll.io/v1alpha1", "kind": "Instance",
                        "metadata": {"name": name, "annotations": {
                            NODES: nodes.to_string(), "sim.atoll.io/region": region, EVENTS: events.word()}},
                        "spec": {"type": "Hosted"}});
                    root.create(&gvr(), None, &object).await.map_err(told)?;
                    let ready = wait_ready(&root, name).await?;
                    if !output::tree(self.output, &ready)? {
                        output::line(&format!("{name} runs; `atoll instance kubeconfig {name}` prints a kubeconfig"));
                    }
                    Ok(())
                }
                Action::Delete { name } => {
                    simulated(&root, name).await?;
                    root.delete(&gvr(), None, name, &Value::Null).await.map_err(told)?;
                    output::line(&format!("{name} deleted"));
                    Ok(())
                }
                Action::List => self.list(&root).await,
                Action::Fail { name, what } => {
                    what.check(&root, name).await?;
                    self.change(&root, name, |faults| what.added_to(faults)).await
                }
                Action::Heal { name, what } => self.change(&root, name, |faults| what.taken_from(faults)).await,
            }
        })
    }

    async fn change(
        &self,
        root: &Endpoint,
        name: &str,
        change: impl Fn(Vec<Fault>) -> anyhow::Result<Vec<Fault>>,
    ) -> anyhow::Result<()> {
        let object = simulated(root, name).await?;
        let faults = change(present(&object))?;
        let words: Vec<String> = faults.iter().map(ToString::to_string).collect();
        let value = if words.is_empty() { Value::Null } else { serde_json::to_string(&words)?.into() };
        // The revision keeps two who break things at once from losing one of both.
        let patch = json!({"metadata": {"resourceVersion": object["metadata"]["resourceVersion"], "annotations": {FAULTS: value}}});
        let after = root.patch(&gvr(), None, name, "", Patch::Merge, &patch).await.map_err(told)?;
        if !output::tree(self.output, &after)? {
            output::line(&format!("{name}: {}", summary(&faults)));
        }
        Ok(())
    }

    async fn list(&self, root: &Endpoint) -> anyhow::Result<()> {
        let mut list = root.list(&gvr(), None, "").await.map_err(told)?.items;
        list.retain(|object| object["metadata"]["annotations"].get(NODES).is_some());
        if output::tree(self.output, &json!({"apiVersion": "v1", "kind": "List", "items": list}))? {
            return Ok(());
        }
        let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        let rows: Vec<Vec<String>> = list
            .iter()
            .map(|object| {
                vec![
                    text(&object["metadata"]["name"]),
                    text(&object["metadata"]["annotations"][NODES]),
                    text(&object["status"]["phase"]),
                    summary(&present(object)),
                ]
            })
            .collect();
        output::table(&["NAME", "NODES", "PHASE", "FAULTS"], &rows);
        Ok(())
    }
}

/// An Instance, if it is a simulated cluster.
async fn simulated(root: &Endpoint, name: &str) -> anyhow::Result<Value> {
    let object = root.get(&gvr(), None, name).await.map_err(told)?;
    object["metadata"]["annotations"].get(NODES).with_context(|| format!("{name} is not a simulated cluster"))?;
    Ok(object)
}

fn summary(faults: &[Fault]) -> String {
    let words: Vec<String> = faults.iter().map(ToString::to_string).collect();
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(words: &[&str]) -> Vec<Fault> {
        words.iter().map(|word| word.parse().expect("a fault")).collect()
    }

    #[test]
    fn faults_are_added_and_taken_away() {
        let what = What { node: vec!["b".into()], ..What::default() };
        assert_eq!(What::default().added_to(Vec::new()).expect("valid"), faults(&["unreachable"]));
        assert_eq!(what.added_to(faults(&["node=a"])).expect("valid"), faults(&["node=a", "node=b"]));
        assert_eq!(what.taken_from(faults(&["node=a", "node=b"])).expect("valid"), faults(&["node=a"]));
        assert_eq!(What::default().taken_from(faults(&["node=a", "refusing"])).expect("valid"), []);
        let slow = What { how: Some(How::Slow), delay: "3s".into(), ..What::default() };
        assert_eq!(slow.added_to(faults(&["slow=1s"])).expect("valid"), faults(&["slow=3s"]));
        let wrong = What { clock_skew: Some("soon".into()), ..What::default() };
        assert!(wrong.added_to(Vec::new()).is_err());
    }
}
