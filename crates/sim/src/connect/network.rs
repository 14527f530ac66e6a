//! What a simulated container reaches: pods, services and nodes of its cluster. No packet is sent: who would
//! answer is looked up in services, endpoint slices and pods.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use super::web;
use crate::kind::Kind;
use crate::pod::{HostPort, Phase, Pod};
use crate::shell::{Answer, Network, Refusal};
use crate::world::World;

/// Whose turn it is behind a service.
static TURN: AtomicUsize = AtomicUsize::new(0);

/// The network as one pod sees it.
pub struct Reach<'a> {
    world: &'a World,
    pod: Arc<Pod>,
}

/// A pod, and the port of it that is meant.
type Target = (Arc<Pod>, u16);

impl<'a> Reach<'a> {
    /// The network of a pod.
    pub fn new(world: &'a World, pod: &Arc<Pod>) -> Self {
        Self { world, pod: pod.clone() }
    }

    /// The pod that answers at a place, and on which of its ports.
    fn target(&self, host: &str, port: u16, protocol: &str) -> Result<Target, Refusal> {
        if (host == "localhost" || host.starts_with("127.")) && self.pod.item.tree()["spec"]["hostNetwork"] == true {
            return self.on_node(&self.pod.node, "127.0.0.1", port, protocol).ok_or(Refusal::Refused);
        }
        let addresses = self.addresses(host);
        let address = addresses.first().ok_or(Refusal::Name)?;
        if let Some(pod) = self.pod_at(address) {
            return Ok((pod, port));
        }
        let node = self.world.book.read().nodes().into_iter().find(|node| *node.ip == **address);
        let services = self.world.cache(Kind::Service).list();
        for service in services {
            let tree = service.tree();
            for entry in tree["spec"]["ports"].as_array().into_iter().flatten() {
                let own = if node.is_some() { &entry["nodePort"] } else { &entry["port"] };
                let here = node.is_some() || has_address(&tree, address);
                if here && *own == port && entry["protocol"].as_str().unwrap_or("TCP") == protocol {
                    return self.endpoint(&tree, entry);
                }
            }
            if node.is_none() && has_address(&tree, address) {
                return Err(Refusal::Refused);
            }
        }
        let Some(node) = node else { return Err(Refusal::Silent) };
        self.on_node(node.name(), address, port, protocol).ok_or(Refusal::Refused)
    }

    /// A pod that takes a port of its node.
    fn on_node(&self, node: &str, address: &str, port: u16, protocol: &str) -> Option<Target> {
        let pods = self.world.book.read().pods_on(node);
        let fits = |taken: &HostPort| {
            taken.port == port && *taken.protocol == *protocol && ["", "0.0.0.0", address].contains(&&*taken.ip)
        };
        let takes = |pod: &Arc<Pod>| pod.ports.iter().any(fits);
        let pod = pods.into_iter().find(|pod| pod.phase == Phase::Running && takes(pod))?;
        let inner = web::behind(&pod.item.tree(), port, protocol).unwrap_or(port);
        Some((pod, inner))
    }

    /// One of the pods behind a port of a service; by turns, or always the same if the service wants that.
    fn endpoint(&self, service: &Value, entry: &Value) -> Result<Target, Refusal> {
        let text = |field: &str| service["metadata"][field].as_str().unwrap_or_default();
        let (namespace, name) = (text("namespace"), text("name"));
        let wanted = entry["name"].as_str().unwrap_or_default();
        let mut all: Vec<(String, u16)> = Vec::new();
        for slice in self.world.cache(Kind::EndpointSlice).list_in(namespace) {
            let slice = slice.tree();
            if slice["metadata"]["labels"]["kubernetes.io/service-name"] != name {
                continue;
            }
            let ports = slice["ports"].as_array().into_iter().flatten();
            let fits = ports.filter(|port| port["name"].as_str().unwrap_or_default() == wanted);
            for port in fits.filter_map(|port| u16::try_from(port["port"].as_u64()?).ok()) {
                let ready = |one: &&Value| one["conditions"]["ready"] != false;
                let places = slice["endpoints"].as_array().into_iter().flatten().filter(ready);
                let addresses = places.filter_map(|one| one["addresses"][0].as_str());
                all.extend(addresses.map(|address| (address.to_owned(), port)));
            }
        }
        all.sort();
        if all.is_empty() {
            return Err(Refusal::Refused);
        }
        let turn = if service["spec"]["sessionAffinity"] == "ClientIP" {
            self.pod.ip.bytes().map(usize::from).sum()
        } else {
            TURN.fetch_add(1, Ordering::Relaxed)
        };
        let (address, port) = &all[turn % all.len()];
        self.pod_at(address).map(|pod| (pod, *port)).ok_or(Refusal::Silent)
    }

    /// A pod that runs on a node that answers, by its address. Pods in the network of their node have none of their own.
    fn pod_at(&self, address: &str) -> Option<Arc<Pod>> {
        let book = self.world.book.read();
        let found = book.pods().find(|pod| *pod.ip == *address && pod.phase == Phase::Running)?;
        let node = book.node(&found.node)?;
        let cut_off = self.world.faults.is_down(node.name(), node.label("topology.kubernetes.io/zone"));
        (!cut_off && found.item.tree()["spec"]["hostNetwork"] != true).then(|| found.clone())
    }

    /// Addresses a name or address stands for.
    fn addresses(&self, host: &str) -> Vec<String> {
        if host == "localhost" || host.starts_with("127.") {
            return vec![self.pod.ip.to_string()];
        }
        if host.parse::<std::net::IpAddr>().is_ok() {
            return vec![host.to_owned()];
        }
        if host == self.pod.name() {
            return vec![self.pod.ip.to_string()];
        }
        let short = host.trim_end_matches('.').trim_end_matches(".cluster.local").trim_end_matches(".svc");
        let own = self.pod.head().namespace.to_string();
        let parts: Vec<&str> = short.split('.').collect();
        let (member, name, namespace) = match parts.as_slice() {
            [name] => (None, *name, own.as_str()),
            [name, namespace] => (None, *name, *namespace),
            [member, name, namespace] => (Some(*member), *name, *namespace),
            _ => return Vec::new(),
        };
        let Some(service) = self.world.cache(Kind::Service).get(namespace, name) else { return Vec::new() };
        let service = service.tree();
        match (service["spec"]["clusterIP"].as_str().unwrap_or_default(), member) {
            ("None", member) => self.members(namespace, name, member),
            ("", _) | (_, Some(_)) => Vec::new(),
            (ip, None) => vec![ip.to_owned()],
        }
    }

    /// Addresses behind a service that has none of its own; only of the one with this host name, if that is wanted.
    fn members(&self, namespace: &str, name: &str, member: Option<&str>) -> Vec<String> {
        let mut all = Vec::new();
        for slice in self.world.cache(Kind::EndpointSlice).list_in(namespace) {
            let slice = slice.tree();
            if slice["metadata"]["labels"]["kubernetes.io/service-name"] != name {
                continue;
            }
            let places = slice["endpoints"].as_array().into_iter().flatten();
            let fits = places.filter(|one| match member {
                Some(member) => one["hostname"] == member,
                None => one["conditions"]["ready"] != false,
            });
            all.extend(fits.filter_map(|one| Some(one["addresses"][0].as_str()?.to_owned())));
        }
        all.sort();
        all
    }
}

/// Whether a service is reached at an address.
fn has_address(service: &Value, address: &str) -> bool {
    let spec = &service["spec"];
    let balanced = service["status"]["loadBalancer"]["ingress"].as_array().into_iter().flatten();
    spec["clusterIP"] == address
        || ["clusterIPs", "externalIPs"]
            .iter()
            .any(|list| spec[*list].as_array().into_iter().flatten().any(|one| one == address))
        || balanced.into_iter().any(|one| one["ip"] == address)
}

impl Network for Reach<'_> {
    fn connect(&self, host: &str, port: u16, protocol: &str) -> Result<(), Refusal> {
        let (pod, port) = self.target(host, port, protocol)?;
        if web::listens(&pod.item.tree(), port, protocol) { Ok(()) } else { Err(Refusal::Refused) }
    }

    fn request(&self, host: &str, port: u16, method: &str, path: &str) -> Result<Answer, Refusal> {
        let (pod, port) = self.target(host, port, "TCP")?;
        let tree = pod.item.tree();
        if !web::listens(&tree, port, "TCP") {
            return Err(Refusal::Refused);
        }
        if path.trim_start_matches('/').eq_ignore_ascii_case("clientip") {
            return Ok(Answer { code: 200, body: format!("{}:40000", self.pod.ip) });
        }
        Ok(Answer { code: 200, body: web::ask(self.world, &tree, &port.to_string(), method, path) })
    }

    fn say(&self, host: &str, port: u16, word: &str) -> Result<String, Refusal> {
        let (pod, port) = self.target(host, port, "UDP")?;
        if !web::listens(&pod.item.tree(), port, "UDP") {
            return Err(Refusal::Refused);
        }
        Ok(match word.to_lowercase().as_str() {
            "hostname" => pod.name().to_owned(),
            "clientip" => format!("{}:40000", self.pod.ip),
            word => word.strip_prefix("echo ").unwrap_or_default().to_owned(),
        })
    }

    fn resolve(&self, host: &str) -> Vec<String> {
        self.addresses(host)
    }
}
