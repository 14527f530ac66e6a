//! Endpoints: the old list of addresses behind a service.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::backend::{Backend, backends, selector};
use super::{Again, parent, split};
use crate::kind::Kind;
use crate::world::{Work, World};
use crate::write;

const MANAGED: &str = "endpoints.kubernetes.io/managed-by";
const HEADLESS: &str = "service.kubernetes.io/headless";
/// Addresses beyond this are left out, as readers expect.
const MOST: usize = 1000;

fn address(backend: &Backend) -> Value {
    let mut address = json!({"ip": backend.ip, "nodeName": backend.node, "targetRef": backend.target});
    if let Some(name) = &backend.hostname {
        address["hostname"] = name.clone().into();
    }
    address
}

/// The subsets: addresses that share their ports.
pub fn subsets(backends: &[Backend]) -> Value {
    let mut groups: BTreeMap<String, (Value, Vec<Value>, Vec<Value>)> = BTreeMap::new();
    for backend in backends.iter().filter(|backend| !backend.terminating || backend.ready).take(MOST) {
        let group =
            groups.entry(backend.ports.to_string()).or_insert_with(|| (backend.ports.clone(), Vec::new(), Vec::new()));
        if backend.ready { &mut group.1 } else { &mut group.2 }.push(address(backend));
    }
    let list = groups.into_values().map(|(ports, ready, unready)| {
        let mut subset = json!({});
        for (field, addresses) in [("addresses", ready), ("notReadyAddresses", unready)] {
            if !addresses.is_empty() {
                subset[field] = addresses.into();
            }
        }
        if ports.as_array().is_some_and(|ports| !ports.is_empty()) {
            subset["ports"] = ports;
        }
        subset
    });
    Value::Array(list.collect())
}

/// The labels of endpoints: those of the service, and who made them.
fn labels(service: &Value) -> Value {
    let mut labels = service["metadata"]["labels"].clone();
    if service["spec"]["clusterIP"] == "None" {
        labels[HEADLESS] = "".into();
    }
    labels[MANAGED] = "endpoint-controller".into();
    labels
}

/// Looks after the Endpoints of one service.
pub async fn reconcile(world: &World, work: &Work) -> Again {
    let (namespace, name) = split(&work.key);
    let there = world.cache(Kind::Endpoints).get_key(&work.key);
    let Some(service) = parent(world, Kind::Service, work) else {
        if let Some(item) = there.filter(|item| item.object.head.label(MANAGED).is_some()) {
            write::delete(&world.manager, Kind::Endpoints, (namespace, name), &item.object.head.uid, None).await?;
        }
        return Ok(None);
    };
    let Some(selector) = selector(&service) else { return Ok(None) };
    let subsets = subsets(&backends(world, &service, &selector));
    let labels = labels(&service);
    let written = match there.map(|item| item.tree()) {
        None => {
            let object = json!({"kind": "Endpoints", "apiVersion": "v1", "metadata": {"name": name, "labels": labels}, "subsets": subsets});
            write::create(&world.manager, Kind::Endpoints, namespace, &object).await?
        }
        Some(old)
            if old["subsets"].as_array().unwrap_or(&Vec::new()) == subsets.as_array().unwrap_or(&Vec::new())
                && old["metadata"]["labels"] == labels =>
        {
            return Ok(None);
        }
        Some(old) => {
            let labels = crate::diff::merge(&old["metadata"]["labels"], &labels).unwrap_or_else(|| json!({}));
            let patch = json!({"metadata": {"labels": labels}, "subsets": subsets});
            write::merge(&world.manager, Kind::Endpoints, (namespace, name), "", &patch).await?
        }
    };
    world.expect(work, written.revision());
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_grouped_by_ports_and_readiness() {
        let backend = |ip: &str, ready: bool, port: i64| Backend {
            ip: ip.into(),
            node: "n".into(),
            zone: None,
            hostname: None,
            target: json!({}),
            ready,
            serving: ready,
            terminating: false,
            ports: json!([{"port": port, "protocol": "TCP"}]),
        };
        let all = subsets(&[backend("1", true, 80), backend("2", false, 80), backend("3", true, 90)]);
        assert_eq!(all.as_array().map(Vec::len), Some(2));
        assert_eq!(all[0]["addresses"][0]["ip"], "1");
        assert_eq!(all[0]["notReadyAddresses"][0]["ip"], "2");
        assert_eq!(all[1]["addresses"][0]["ip"], "3");
    }
}
