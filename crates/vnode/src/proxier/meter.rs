//! What pods of a virtual node use, in the forms of a kubelet.
//!
//! The worker cluster's metrics API says how much CPU is used just now; a kubelet says how much
//! was used so far. The difference is summed up here.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use atoll_api::kubeocean_names::annotation;
use atoll_meta::{Quantity, Status, time};
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::switchboard::Switchboard;
use crate::tree;

/// One container's use.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Use {
    pub(crate) namespace: String,
    pub(crate) pod: String,
    uid: String,
    pub(crate) container: String,
    /// Thousandths of a CPU in use.
    pub(crate) milli: i64,
    /// CPU seconds used so far.
    seconds: f64,
    pub(crate) bytes: i64,
    pub(crate) at: Timestamp,
}

/// What pods use, by virtual node.
pub(crate) type Reading = HashMap<String, Vec<Use>>;

/// How long a reading is good for all virtual nodes: whoever asks for one soon asks for the others.
const FRESH: Duration = Duration::from_secs(5);

/// CPU seconds summed up, by pod and container.
#[derive(Default)]
pub(crate) struct Meter {
    sums: Mutex<HashMap<(String, String), (Timestamp, f64)>>,
    /// Held while the worker cluster is asked, so that it is asked once.
    last: tokio::sync::Mutex<Option<(tokio::time::Instant, Arc<Reading>)>>,
}

impl Meter {
    /// Adds a reading; returns the sum. A reading seen before adds nothing.
    fn add(&self, uid: &str, container: &str, milli: i64, at: Timestamp) -> f64 {
        let mut sums = self.sums.lock();
        let sum = sums.entry((uid.to_owned(), container.to_owned())).or_insert((at, 0.0));
        let passed = at.duration_since(sum.0).as_secs_f64();
        if passed > 0.0 {
            *sum = (at, sum.1 + passed * milli as f64 / 1000.0);
        }
        sum.1
    }

    fn forget(&self, known: impl Fn(&str) -> bool) {
        self.sums.lock().retain(|(uid, _), _| known(uid));
    }
}

impl Switchboard {
    /// What the pods of a virtual node use.
    async fn uses(&self, node: &str) -> Result<Vec<Use>, Status> {
        Ok(self.reading().await?.get(node).cloned().unwrap_or_default())
    }

    /// What the pods of all virtual nodes use.
    pub(crate) async fn reading(&self) -> Result<Arc<Reading>, Status> {
        let mut last = self.meter.last.lock().await;
        if let Some((at, known)) = &*last
            && at.elapsed() < FRESH
        {
            return Ok(known.clone());
        }
        let reading = Arc::new(self.read().await?);
        *last = Some((tokio::time::Instant::now(), reading.clone()));
        Ok(reading)
    }

    async fn read(&self) -> Result<Reading, Status> {
        let mount = &self.mount;
        let path = format!("/apis/metrics.k8s.io/v1beta1/namespaces/{mount}/pods");
        let list = self.worker.endpoint.get_path(&path).await?;
        let mut out = Reading::new();
        for item in tree::list(&list["items"]) {
            let Some(below) = self.pods.get(mount, tree::name(item)).map(|item| item.tree()) else { continue };
            if !crate::syncer::is_ours(&below, &self.owner) {
                continue;
            }
            let node = tree::annotation(&below, annotation::VIRTUAL_NODE_NAME);
            let at = item["timestamp"].as_str().and_then(time::parse).unwrap_or_else(|| (self.clock)());
            let uid = tree::annotation(&below, annotation::VIRTUAL_POD_UID);
            for container in tree::list(&item["containers"]) {
                let amount = |name: &str| {
                    container["usage"][name].as_str().and_then(|text| Quantity::parse(text).ok()).unwrap_or_default()
                };
                let name = container["name"].as_str().unwrap_or_default();
                let milli = amount("cpu").milli_value();
                out.entry(node.to_owned()).or_default().push(Use {
                    namespace: tree::annotation(&below, annotation::VIRTUAL_POD_NAMESPACE).to_owned(),
                    pod: tree::annotation(&below, annotation::VIRTUAL_POD_NAME).to_owned(),
                    uid: uid.to_owned(),
                    container: name.to_owned(),
                    milli,
                    seconds: self.meter.add(uid, name, milli, at),
                    bytes: amount("memory").value(),
                    at,
                });
            }
        }
        let known: HashSet<&str> = out.values().flatten().map(|own| own.uid.as_str()).collect();
        self.meter.forget(|uid| known.contains(uid));
        Ok(out)
    }

    /// `/metrics/resource`.
    pub(crate) async fn resource_metrics(&self, node: &str) -> String {
        match self.uses(node).await {
            Ok(uses) => exposition(&uses),
            Err(status) => {
                tracing::debug!(node, %status, "the worker cluster gives no metrics");
                "# TYPE scrape_error gauge\nscrape_error 1\n".to_owned()
            }
        }
    }

    /// `/stats/summary`.
    pub(crate) async fn summary(&self, node: &str) -> Result<Value, Status> {
        Ok(summary(node, &self.uses(node).await?, (self.clock)()))
    }
}

/// Sums over the containers of each pod: key, milli, seconds, bytes, latest reading.
fn by_pod(uses: &[Use]) -> Vec<(&Use, i64, f64, i64)> {
    let mut out: Vec<(&Use, i64, f64, i64)> = Vec::new();
    for own in uses {
        match out.iter_mut().find(|(first, ..)| first.uid == own.uid) {
            Some((_, milli, seconds, bytes)) => {
                *milli += own.milli;
                *seconds += own.seconds;
                *bytes += own.bytes;
            }
            None => out.push((own, own.milli, own.seconds, own.bytes)),
        }
    }
    out
}

fn exposition(uses: &[Use]) -> String {
    let mut out = String::new();
    let pods = by_pod(uses);
    let stamp = |at: Timestamp| at.as_millisecond();
    out.push_str("# TYPE container_cpu_usage_seconds_total counter\n");
    for own in uses {
        out.push_str(&format!(
            "container_cpu_usage_seconds_total{{container={:?},namespace={:?},pod={:?}}} {} {}\n",
            own.container,
            own.namespace,
            own.pod,
            own.seconds,
            stamp(own.at)
        ));
    }
    out.push_str("# TYPE container_memory_working_set_bytes gauge\n");
    for own in uses {
        out.push_str(&format!(
            "container_memory_working_set_bytes{{container={:?},namespace={:?},pod={:?}}} {} {}\n",
            own.container,
            own.namespace,
            own.pod,
            own.bytes,
            stamp(own.at)
        ));
    }
    out.push_str("# TYPE pod_cpu_usage_seconds_total counter\n");
    for (own, _, seconds, _) in &pods {
        out.push_str(&format!(
            "pod_cpu_usage_seconds_total{{namespace={:?},pod={:?}}} {seconds} {}\n",
            own.namespace,
            own.pod,
            stamp(own.at)
        ));
    }
    out.push_str("# TYPE pod_memory_working_set_bytes gauge\n");
    for (own, _, _, bytes) in &pods {
        out.push_str(&format!(
            "pod_memory_working_set_bytes{{namespace={:?},pod={:?}}} {bytes} {}\n",
            own.namespace,
            own.pod,
            stamp(own.at)
        ));
    }
    let (seconds, bytes): (f64, i64) =
        pods.iter().fold((0.0, 0), |(seconds, bytes), (_, _, more, most)| (seconds + more, bytes + most));
    out.push_str(&format!("# TYPE node_cpu_usage_seconds_total counter\nnode_cpu_usage_seconds_total {seconds}\n"));
    out.push_str(&format!("# TYPE node_memory_working_set_bytes gauge\nnode_memory_working_set_bytes {bytes}\n"));
    out.push_str("# TYPE scrape_error gauge\nscrape_error 0\n");
    out
}

fn summary(node: &str, uses: &[Use], now: Timestamp) -> Value {
    let cpu = |at: Timestamp, milli: i64, seconds: f64| json!({"time": time::format(at), "usageNanoCores": milli * 1_000_000, "usageCoreNanoSeconds": (seconds * 1e9) as u64});
    let memory =
        |at: Timestamp, bytes: i64| json!({"time": time::format(at), "usageBytes": bytes, "workingSetBytes": bytes});
    let pods = by_pod(uses);
    let items: Vec<Value> = pods
        .iter()
        .map(|(first, milli, seconds, bytes)| {
            let containers: Vec<Value> = uses
                .iter()
                .filter(|own| own.uid == first.uid)
                .map(|own| json!({"name": own.container, "cpu": cpu(own.at, own.milli, own.seconds), "memory": memory(own.at, own.bytes)}))
                .collect();
            json!({
                "podRef": {"name": first.pod, "namespace": first.namespace, "uid": first.uid},
                "containers": containers, "cpu": cpu(first.at, *milli, *seconds), "memory": memory(first.at, *bytes),
            })
        })
        .collect();
    let (milli, seconds, bytes) =
        pods.iter().fold((0, 0.0, 0), |sum, pod| (sum.0 + pod.1, sum.1 + pod.2, sum.2 + pod.3));
    json!({"node": {"nodeName": node, "cpu": cpu(now, milli, seconds), "memory": memory(now, bytes)}, "pods": items})
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn own(pod: &str, container: &str, milli: i64, bytes: i64) -> Use {
        let at = Timestamp::from_second(100).unwrap();
        Use {
            namespace: "ns".into(),
            pod: pod.into(),
            uid: pod.into(),
            container: container.into(),
            milli,
            seconds: 2.5,
            bytes,
            at,
        }
    }

    #[test]
    fn readings_add_up_and_never_shrink() {
        let meter = Meter::default();
        let at = |second| Timestamp::from_second(second).unwrap();
        assert_eq!(meter.add("u", "c", 500, at(0)), 0.0);
        assert_eq!(meter.add("u", "c", 500, at(10)), 5.0);
        assert_eq!(meter.add("u", "c", 100, at(10)), 5.0, "the same reading again");
        assert_eq!(meter.add("u", "c", 0, at(20)), 5.0);
        assert_eq!(meter.add("u", "c", 1000, at(25)), 10.0);
    }

    #[test]
    fn containers_pods_and_the_node_are_shown_in_both_forms() {
        let uses = [own("a", "x", 100, 10), own("a", "y", 200, 20), own("b", "z", 300, 30)];
        let text = exposition(&uses);
        for line in [
            "container_cpu_usage_seconds_total{container=\"x\",namespace=\"ns\",pod=\"a\"} 2.5 100000",
            "pod_memory_working_set_bytes{namespace=\"ns\",pod=\"a\"} 30 100000",
            "node_memory_working_set_bytes 60",
            "scrape_error 0",
        ] {
            assert!(text.lines().any(|own| own == line), "{line} in\n{text}");
        }
        let summary = summary("vnode", &uses, Timestamp::UNIX_EPOCH);
        assert_eq!(summary["pods"][0]["containers"].as_array().unwrap().len(), 2);
        assert_eq!(summary["pods"][0]["cpu"]["usageNanoCores"], 300_000_000);
        assert_eq!(summary["node"]["memory"]["workingSetBytes"], 60);
    }
}
