//! The virtual Node for a leased node.

use atoll_api::kubeocean_names::{MANAGED_BY, annotation, finalizer, label};
use atoll_lease::{Amounts, Loan, Policy};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::address::Address;
use super::expected::{Expected, keep, keep_taints, taints};
use super::taint;
use crate::binding::Binding;
use crate::tree::{self, list};

/// Reason of the Ready condition while the worker cluster does not answer.
pub(crate) const UNREACHABLE: &str = "WorkerUnreachable";
/// Port of the plain metrics, as the original announces it.
const METRICS_PORT: u16 = 9006;

/// Everything a virtual Node follows from.
pub(crate) struct Draft<'a> {
    pub(crate) name: &'a str,
    pub(crate) binding: &'a Binding,
    pub(crate) physical: &'a Value,
    pub(crate) loan: &'a Loan,
    pub(crate) policy: Option<&'a Policy>,
    pub(crate) existing: Option<&'a Value>,
    /// Where the kubelet API is served.
    pub(crate) address: Address,
    pub(crate) port: u16,
    pub(crate) reachable: bool,
    pub(crate) now: Timestamp,
}

impl Draft<'_> {
    /// The Node as it should be; equal to the existing one if nothing is to be done.
    pub(crate) fn node(&self) -> Value {
        let nothing = json!({});
        let existing = self.existing.unwrap_or(&nothing);
        let expected = self.expected(existing);
        // A damaged annotation only means that nothing can be told from it.
        let before = Expected::decode(tree::annotation(existing, annotation::EXPECTED_METADATA)).unwrap_or_default();
        let mut annotations = keep(&tree::annotations(existing), &before.annotations, &expected.annotations);
        annotations.insert(annotation::EXPECTED_METADATA.to_owned(), expected.encode());
        let mut node = existing.clone();
        node["apiVersion"] = "v1".into();
        node["kind"] = "Node".into();
        node["metadata"]["name"] = self.name.into();
        node["metadata"]["labels"] = json!(keep(&tree::labels(existing), &before.labels, &expected.labels));
        node["metadata"]["annotations"] = json!(annotations);
        if !tree::has_finalizer(existing, finalizer::VIRTUAL_NODE) {
            let mut finalizers = list(&existing["metadata"]["finalizers"]).to_vec();
            finalizers.push(finalizer::VIRTUAL_NODE.into());
            node["metadata"]["finalizers"] = finalizers.into();
        }
        set_taints(&mut node, keep_taints(taints(existing), &before.taints, &expected.taints));
        // Cordoned only by a withdrawal that did not come about; what people cordon stays so.
        if !tree::annotation(existing, annotation::DELETION_TAINT_TIME).is_empty()
            && let Some(spec) = node["spec"].as_object_mut()
        {
            spec.remove("unschedulable");
        }
        node["status"] = self.status(existing);
        self.stamp(existing, node)
    }

    /// The time of the last change; nothing is written only because time passed.
    fn stamp(&self, existing: &Value, mut node: Value) -> Value {
        let known = tree::annotation(existing, annotation::LAST_SYNC_TIME).to_owned();
        node["metadata"]["annotations"][annotation::LAST_SYNC_TIME] = known.into();
        if node != *existing {
            node["metadata"]["annotations"][annotation::LAST_SYNC_TIME] = atoll_meta::time::format(self.now).into();
        }
        node
    }

    fn expected(&self, existing: &Value) -> Expected {
        let physical = self.physical;
        let (name, uid) = (tree::name(physical), tree::uid(physical));
        let mut labels = tree::labels(physical);
        let port = self.port.to_string();
        for (key, value) in [
            (label::CLUSTER_BINDING, self.binding.name.as_str()),
            (label::PHYSICAL_CLUSTER_ID, &self.binding.cluster_id),
            (label::PHYSICAL_NODE_NAME, name),
            (label::PHYSICAL_NODE_UID, uid),
            (label::MANAGED_BY, MANAGED_BY),
            (label::POLICY_APPLIED, &self.loan.policy),
            ("type", "virtual-kubelet"),
            ("node.kubernetes.io/instance-type", "vnode"),
            ("beta.kubernetes.io/instance-type", "vnode"),
            ("kubernetes.io/hostname", self.name),
            (label::PROXIER_PORT, &port),
        ] {
            labels.insert(key.to_owned(), value.to_owned());
        }
        if let Some(ip) = internal_ip(physical) {
            labels.insert(label::PHYSICAL_NODE_INNER_IP.to_owned(), ip.to_owned());
        }
        let mut annotations = tree::annotations(physical);
        let address = match self.address {
            Address::Is(address) => address.to_string(),
            Address::OfNode | Address::Pending => "<pending>".to_owned(),
        };
        for (key, value) in [
            (annotation::PHYSICAL_NODE_NAME, name.to_owned()),
            (annotation::PHYSICAL_NODE_UID, uid.to_owned()),
            (annotation::POLICIES_APPLIED, self.loan.policy.clone()),
            (annotation::POLICY_DETAILS, self.policy.map(details).unwrap_or_default()),
            (annotation::PROMETHEUS_URL, format!("{address}:{METRICS_PORT}/{}", self.name)),
        ] {
            annotations.insert(key.to_owned(), value);
        }
        let taints =
            taint::wanted(taints(physical), self.binding.default_taint, &self.loan.state, taints(existing), self.now);
        Expected { labels, annotations, taints }
    }

    fn status(&self, existing: &Value) -> Value {
        let physical = &self.physical["status"];
        let mut status = existing["status"].clone();
        if !status.is_object() {
            status = json!({});
        }
        for field in ["nodeInfo", "phase"] {
            if !physical[field].is_null() {
                status[field] = physical[field].clone();
            }
        }
        status["conditions"] = if self.reachable {
            physical["conditions"].as_array().map_or(json!([]), |list| list.clone().into())
        } else {
            silent(list(&existing["status"]["conditions"]), list(&physical["conditions"]), self.now)
        };
        let amounts = written(&self.loan.amounts);
        status["capacity"] = amounts.clone();
        status["allocatable"] = amounts;
        let address = match self.address {
            Address::Is(address) => Some(address.to_string()),
            Address::OfNode => internal_ip(self.physical).map(ToOwned::to_owned),
            Address::Pending => None,
        };
        let mut addresses: Vec<Value> =
            address.into_iter().map(|ip| json!({"type": "InternalIP", "address": ip})).collect();
        addresses.push(json!({"type": "Hostname", "address": self.name}));
        status["addresses"] = addresses.into();
        if self.address != Address::OfNode {
            status["daemonEndpoints"] = json!({"kubeletEndpoint": {"Port": self.port}});
        }
        status
    }
}

fn set_taints(node: &mut Value, taints: Vec<Value>) {
    if !node["spec"].is_object() {
        node["spec"] = json!({});
    }
    if taints.is_empty() {
        node["spec"].as_object_mut().map(|spec| spec.remove("taints"));
    } else {
        node["spec"]["taints"] = taints.into();
    }
}

fn written(amounts: &Amounts) -> Value {
    amounts
        .iter()
        .map(|(name, amount)| (name.clone(), Value::from(amount.to_string())))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// The conditions of a node whose cluster does not answer: as last known, but not Ready.
pub(crate) fn silent(existing: &[Value], physical: &[Value], now: Timestamp) -> Value {
    let known = if existing.is_empty() { physical } else { existing };
    let mut out: Vec<Value> = known.iter().filter(|condition| condition["type"] != "Ready").cloned().collect();
    let before = known.iter().find(|condition| condition["type"] == "Ready" && condition["reason"] == UNREACHABLE);
    let now: Value = atoll_meta::time::format(now).into();
    let since = before.map_or(now.clone(), |condition| condition["lastTransitionTime"].clone());
    let heartbeat = before.map_or(now, |condition| condition["lastHeartbeatTime"].clone());
    out.push(json!({
        "type": "Ready", "status": "Unknown", "reason": UNREACHABLE, "message": "the worker cluster does not answer",
        "lastHeartbeatTime": heartbeat, "lastTransitionTime": since,
    }));
    out.into()
}

pub(crate) fn internal_ip(node: &Value) -> Option<&str> {
    let addresses = list(&node["status"]["addresses"]);
    addresses.iter().find(|address| address["type"] == "InternalIP")?["address"].as_str()
}

/// Whether a node says it is ready.
pub(crate) fn is_ready(node: &Value) -> bool {
    list(&node["status"]["conditions"])
        .iter()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// `name(resource=quantity/percent%,…)`.
fn details(policy: &Policy) -> String {
    let limits = policy.spec.resource_limits.iter().map(|limit| {
        let quantity = limit.quantity.as_ref().map(|quantity| quantity.0.clone()).unwrap_or_default();
        let percent = limit.percent.map(|percent| format!("{percent}%")).unwrap_or_default();
        format!("{}={quantity}/{percent}", limit.resource)
    });
    format!("{}({})", policy.name, limits.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
#[path = "build_tests.rs"]
mod tests;
