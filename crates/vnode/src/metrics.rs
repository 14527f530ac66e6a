//! Series of the manager and its syncers, under the names the original gives them.
//!
//! What can be counted from what is followed anyway is counted when somebody asks; only what
//! happens and is over is kept.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use atoll_api::kubeocean_names::label;
use atoll_lease::{Amounts, read_amounts};
use parking_lot::Mutex;
use serde_json::Value;

use crate::manager::Manager;
use crate::syncer::{Syncer, is_ours, one_by_one};
use crate::tree;

/// Upper ends of the histogram of passes, in seconds.
const BUCKETS: [f64; 8] = [0.005, 0.025, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0];
/// Resources that are shown; devices come on top.
const MILLI: [&str; 2] = ["cpu", "gocrane.io/cpu"];
const MEBI: [&str; 3] = ["memory", "ephemeral-storage", "gocrane.io/memory"];

/// What happened to one binding.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    passes: u64,
    failed_passes: u64,
    pods: u64,
    failed_pods: u64,
}

/// What happened, by binding.
#[derive(Default)]
pub(crate) struct Tallies {
    by_binding: Mutex<BTreeMap<String, Tally>>,
    passes: Mutex<([u64; BUCKETS.len()], u64, f64)>,
}

impl Tallies {
    /// A pass over a binding ended.
    pub(crate) fn pass(&self, binding: &str, took: Duration, failed: bool) {
        let mut all = self.by_binding.lock();
        let tally = all.entry(binding.to_owned()).or_default();
        tally.passes += 1;
        tally.failed_passes += u64::from(failed);
        drop(all);
        let mut passes = self.passes.lock();
        let seconds = took.as_secs_f64();
        for (count, end) in passes.0.iter_mut().zip(BUCKETS) {
            *count += u64::from(seconds <= end);
        }
        passes.1 += 1;
        passes.2 += seconds;
    }

    /// Making a physical pod ended.
    pub(crate) fn pod(&self, binding: &str, failed: bool) {
        let mut all = self.by_binding.lock();
        let tally = all.entry(binding.to_owned()).or_default();
        tally.pods += 1;
        tally.failed_pods += u64::from(failed);
    }

    /// A binding is gone, and its series with it.
    pub(crate) fn forget(&self, binding: &str) {
        self.by_binding.lock().remove(binding);
    }

    fn write(&self, page: &mut Page) {
        let all = self.by_binding.lock().clone();
        type Column = (&'static str, &'static str, fn(&Tally) -> u64);
        let columns: [Column; 6] = [
            ("kubeocean_manager_sync_total", "Passes over bindings.", |tally| tally.passes),
            ("kubeocean_manager_sync_errors_total", "Passes that failed.", |tally| tally.failed_passes),
            ("kubeocean_syncer_create_pod_total", "Attempts to make a physical pod.", |tally| tally.pods),
            ("kubeocean_syncer_create_pod_errors_total", "Attempts that failed.", |tally| tally.failed_pods),
            ("kubeocean_syncer_pod_created_total", "Physical pods made.", |tally| tally.pods - tally.failed_pods),
            ("kubeocean_syncer_pod_created_failed_total", "Physical pods not made.", |tally| tally.failed_pods),
        ];
        for (name, help, value) in columns {
            page.series(name, "counter", help);
            for (binding, tally) in &all {
                page.value(name, &[("clusterbinding", binding)], value(tally));
            }
        }
        let (counts, total, sum) = *self.passes.lock();
        let name = "kubeocean_manager_sync_duration_seconds";
        page.series(name, "histogram", "How long passes took.");
        for (count, end) in counts.iter().zip(BUCKETS) {
            page.value(&format!("{name}_bucket"), &[("le", &end.to_string())], *count);
        }
        page.value(&format!("{name}_bucket"), &[("le", "+Inf")], total);
        page.value(&format!("{name}_sum"), &[], sum);
        page.value(&format!("{name}_count"), &[], total);
    }
}

/// The text that is built.
#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn series(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn value(&mut self, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        let labels: Vec<String> = labels.iter().map(|(key, text)| format!("{key}={text:?}")).collect();
        let braces = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.text, "{name}{braces} {value}");
    }
}

/// A resource in the unit it is shown in.
fn shown(name: &str, amount: &atoll_meta::Quantity) -> i64 {
    match name {
        _ if MILLI.contains(&name) => amount.milli_value(),
        _ if MEBI.contains(&name) => amount.value() / (1024 * 1024),
        _ => amount.value(),
    }
}

/// What a node has, lends, uses itself and uses for us.
struct Ledger {
    node: String,
    columns: [Amounts; 4],
}

const COLUMNS: [(&str, &str); 4] = [
    ("origin_resource", "What leased nodes have."),
    ("available_resource", "What they lend."),
    ("physical_usage", "What pods of the worker cluster itself use of them."),
    ("virtual_usage", "What leased pods use of them."),
];

fn ledgers(syncer: &Syncer) -> Vec<Ledger> {
    let nodes = syncer.computing.nodes_of(&syncer.binding().name);
    nodes.iter().map(|item| ledger(syncer, &item.tree())).collect()
}

fn ledger(syncer: &Syncer, vnode: &Value) -> Ledger {
    let name = tree::label(vnode, label::PHYSICAL_NODE_NAME);
    let has = syncer.nodes.get("", name).map(|node| read_amounts(&node.tree()["status"]["allocatable"]));
    let has = has.unwrap_or_default();
    let pods = syncer.usage.on(name);
    let used = |leased: bool| {
        let mut sum = Amounts::new();
        for (resource, amount) in
            pods.iter().filter(|pod| pod.leased == leased && !pod.over).flat_map(|pod| &pod.requests)
        {
            *sum.entry(resource.clone()).or_default() += *amount;
        }
        sum
    };
    let columns = [has.clone(), read_amounts(&vnode["status"]["allocatable"]), used(false), used(true)];
    Ledger { node: tree::name(vnode).to_owned(), columns }
}

fn write_syncers(page: &mut Page, syncers: &[Arc<Syncer>]) {
    let ledgers: Vec<(String, Vec<Ledger>)> =
        syncers.iter().map(|syncer| (syncer.binding().name.clone(), ledgers(syncer))).collect();
    page.series("kubeocean_syncer_vnode_total", "gauge", "Virtual nodes.");
    for (binding, nodes) in &ledgers {
        page.value("kubeocean_syncer_vnode_total", &[("clusterbinding", binding)], nodes.len());
    }
    for (at, (column, help)) in COLUMNS.into_iter().enumerate() {
        let name = format!("kubeocean_syncer_vnode_{column}");
        page.series(&name, "gauge", help);
        for (binding, nodes) in &ledgers {
            for node in nodes {
                for (resource, amount) in &node.columns[at] {
                    let labels = [("clusterbinding", binding.as_str()), ("node", &node.node), ("resource", resource)];
                    page.value(&name, &labels, shown(resource, amount));
                }
            }
        }
        let name = format!("kubeocean_syncer_cluster_{column}");
        page.series(&name, "gauge", help);
        for (binding, nodes) in &ledgers {
            let mut sums: BTreeMap<&str, i64> = BTreeMap::new();
            for (resource, amount) in nodes.iter().flat_map(|node| &node.columns[at]) {
                *sums.entry(resource).or_default() += shown(resource, amount);
            }
            for (resource, sum) in sums {
                page.value(&name, &[("clusterbinding", binding), ("resource", resource)], sum);
            }
        }
    }
    write_pods(page, syncers);
}

fn write_pods(page: &mut Page, syncers: &[Arc<Syncer>]) {
    type Phases = BTreeMap<String, u64>;
    let above = |syncer: &Syncer| -> Phases {
        let nodes = syncer.computing.nodes_of(&syncer.binding().name);
        let keys = nodes.iter().flat_map(|node| syncer.computing.pods_on(&node.object.head.name));
        phases(keys.filter_map(|key| syncer.computing.pods.get_key(&key)).map(|item| item.tree()))
    };
    let below = |syncer: &Syncer| -> Phases {
        let pods = one_by_one(&syncer.pods).filter(|item| item.object.head.label(label::MANAGED_BY).is_some());
        phases(pods.map(|item| item.tree()).filter(|pod| is_ours(pod, &syncer.computing.owner)))
    };
    for (name, help, count) in [
        ("kubeocean_syncer_virtual_pod_total", "Pods on virtual nodes.", &above as &dyn Fn(&Syncer) -> Phases),
        ("kubeocean_syncer_physical_pod_total", "Pods that run for them.", &below),
    ] {
        page.series(name, "gauge", help);
        for syncer in syncers {
            for (phase, number) in count(syncer) {
                page.value(name, &[("clusterbinding", &syncer.binding().name), ("phase", &phase)], number);
            }
        }
    }
}

fn phases(pods: impl Iterator<Item = Value>) -> BTreeMap<String, u64> {
    let mut out = BTreeMap::new();
    for pod in pods {
        *out.entry(pod["status"]["phase"].as_str().unwrap_or("Pending").to_owned()).or_default() += 1;
    }
    out
}

/// The status a binding is counted under.
fn status(binding: &Value) -> &'static str {
    match binding["status"]["phase"].as_str().unwrap_or_default() {
        _ if tree::is_deleting(binding) => "Deleting",
        "Ready" => "Ready",
        "Failed" => "Failed",
        _ => "Pending",
    }
}

impl Manager {
    /// All series as text, for `/metrics`.
    pub fn metrics(&self) -> String {
        let mut page = Page::default();
        let name = "kubeocean_clusterbindings_total";
        page.series(name, "gauge", "Bindings.");
        let known: Vec<Value> = self.known().iter().map(|item| item.tree()).collect();
        for wanted in ["Deleting", "Pending", "Ready", "Failed"] {
            let count = known.iter().filter(|binding| status(binding) == wanted).count();
            page.value(name, &[("status", wanted)], count);
        }
        self.tallies().write(&mut page);
        let syncers: Vec<Arc<Syncer>> = self.bindings().iter().filter_map(|binding| self.syncer(binding)).collect();
        write_syncers(&mut page, &syncers);
        page.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_binding_that_goes_counts_as_going_whatever_its_phase() {
        for (binding, expected) in [
            (json!({"metadata": {"deletionTimestamp": "x"}, "status": {"phase": "Ready"}}), "Deleting"),
            (json!({"metadata": {}}), "Pending"),
            (json!({"metadata": {}, "status": {"phase": "Ready"}}), "Ready"),
            (json!({"metadata": {}, "status": {"phase": "Failed"}}), "Failed"),
        ] {
            assert_eq!(status(&binding), expected);
        }
    }

    #[test]
    fn passes_fall_into_every_bucket_that_holds_them() {
        let tallies = Tallies::default();
        tallies.pass("a", Duration::from_millis(50), false);
        tallies.pass("a", Duration::from_secs(100), true);
        let mut page = Page::default();
        tallies.write(&mut page);
        for line in [
            "kubeocean_manager_sync_total{clusterbinding=\"a\"} 2",
            "kubeocean_manager_sync_errors_total{clusterbinding=\"a\"} 1",
            "kubeocean_manager_sync_duration_seconds_bucket{le=\"0.025\"} 0",
            "kubeocean_manager_sync_duration_seconds_bucket{le=\"0.1\"} 1",
            "kubeocean_manager_sync_duration_seconds_bucket{le=\"+Inf\"} 2",
            "kubeocean_manager_sync_duration_seconds_count 2",
        ] {
            assert!(page.text.lines().any(|own| own == line), "{line} in\n{}", page.text);
        }
        tallies.forget("a");
        let mut page = Page::default();
        tallies.write(&mut page);
        assert!(!page.text.contains("clusterbinding"), "{}", page.text);
    }
}
