//! A placeholder on a virtual node that takes the host ports other pods of the leased node use.

use std::collections::BTreeSet;

use atoll_api::kubeocean_names::{FAKE_NAMESPACE, MANAGED_BY, label};
use atoll_meta::Status;
use serde_json::{Value, json};

use crate::resource;
use crate::syncer::Syncer;
use crate::tree;

/// A port of the host: address, protocol, number.
pub(crate) type HostPort = (String, String, i64);

/// The host ports a pod takes.
pub(crate) fn host_ports(pod: &Value) -> impl Iterator<Item = HostPort> {
    let spec = &pod["spec"];
    let containers = tree::list(&spec["containers"]).iter().chain(tree::list(&spec["initContainers"]));
    let ports = containers.flat_map(|container| tree::list(&container["ports"]));
    ports.filter_map(|port| {
        let number = port["hostPort"].as_i64().filter(|number| *number > 0)?;
        let text = |field: &str, default: &str| {
            port[field].as_str().filter(|text| !text.is_empty()).unwrap_or(default).to_owned()
        };
        Some((text("hostIP", "0.0.0.0"), text("protocol", "TCP"), number))
    })
}

/// The pod that takes the ports on a virtual node.
fn placeholder(node: &str, ports: &BTreeSet<HostPort>) -> Value {
    let ports: Vec<Value> = ports
        .iter()
        .enumerate()
        .map(|(index, (ip, protocol, number))| {
            json!({"name": format!("port-{index}"), "containerPort": number, "hostPort": number, "hostIP": ip, "protocol": protocol})
        })
        .collect();
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "generateName": "fake-pod-for-hostport-", "namespace": FAKE_NAMESPACE,
            "labels": {label::HOST_PORT_FAKE_POD: "true", label::MANAGED_BY: MANAGED_BY},
        },
        "spec": {
            "nodeName": node, "priorityClassName": "system-node-critical", "restartPolicy": "Never",
            "automountServiceAccountToken": false,
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "fake-container", "image": "busybox:1.28", "command": ["sleep", "100000000"], "ports": ports}],
        },
    })
}

impl Syncer {
    /// Has exactly one placeholder with exactly these ports, or none.
    pub(crate) async fn keep_host_ports(&self, physical: &str, node: &str) -> Result<(), Status> {
        let pods = self.usage.foreign_on(physical);
        let wanted: BTreeSet<HostPort> = pods
            .iter()
            .filter_map(|key| self.pods.get_key(key))
            .flat_map(|item| host_ports(&item.tree()).collect::<Vec<_>>())
            .collect();
        let mut found = false;
        for placeholder in self.placeholders(node) {
            let own: BTreeSet<HostPort> = host_ports(&placeholder).collect();
            if !found && own == wanted && !own.is_empty() && !tree::is_deleting(&placeholder) {
                found = true;
            } else {
                self.drop_placeholder(&placeholder).await?;
            }
        }
        if found || wanted.is_empty() {
            return Ok(());
        }
        let pod = placeholder(node, &wanted);
        let made = match self.above().create(&resource::pods(), Some(FAKE_NAMESPACE), &pod).await {
            Err(status) if status.code == 404 => {
                let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": FAKE_NAMESPACE, "labels": {label::MANAGED_BY: MANAGED_BY}}});
                self.above().ensure(&resource::namespaces(), None, &namespace).await?;
                self.above().create(&resource::pods(), Some(FAKE_NAMESPACE), &pod).await?
            }
            result => result?,
        };
        let condition = json!({"type": "PodScheduled", "status": "True", "lastTransitionTime": atoll_meta::time::format(self.now())});
        let patch = json!({"status": {"conditions": [condition]}});
        self.above()
            .patch(
                &resource::pods(),
                Some(FAKE_NAMESPACE),
                tree::name(&made),
                "status",
                atoll_runtime::Patch::Merge,
                &patch,
            )
            .await
            .map(drop)
    }

    /// Removes the placeholders of a virtual node.
    pub(crate) async fn drop_host_ports(&self, node: &str) -> Result<(), Status> {
        for placeholder in self.placeholders(node) {
            self.drop_placeholder(&placeholder).await?;
        }
        Ok(())
    }

    async fn drop_placeholder(&self, pod: &Value) -> Result<(), Status> {
        let options = tree::only_within(tree::uid(pod), 0);
        self.above().delete(&resource::pods(), Some(FAKE_NAMESPACE), tree::name(pod), &options).await
    }

    fn placeholders(&self, node: &str) -> Vec<Value> {
        let keys = self.computing.pods_on(node);
        let pods = keys
            .iter()
            .filter(|key| key.starts_with(FAKE_NAMESPACE))
            .filter_map(|key| self.computing.pods.get_key(key));
        pods.map(|item| item.tree()).filter(|pod| tree::label(pod, label::HOST_PORT_FAKE_POD) == "true").collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_found_in_all_containers_and_sorted() {
        let pod = json!({"spec": {
            "containers": [{"ports": [{"containerPort": 1, "hostPort": 8080}, {"containerPort": 2}, {"hostPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1"}]}],
            "initContainers": [{"ports": [{"hostPort": 90}]}],
        }});
        let ports: BTreeSet<HostPort> = host_ports(&pod).collect();
        let text: Vec<String> =
            ports.iter().map(|(ip, protocol, number)| format!("{ip} {protocol} {number}")).collect();
        assert_eq!(text, ["0.0.0.0 TCP 90", "0.0.0.0 TCP 8080", "10.0.0.1 UDP 53"]);
        let made = placeholder("vnode", &ports);
        assert_eq!(host_ports(&made).collect::<BTreeSet<_>>(), ports);
    }
}
