//! EndpointSlices: the addresses behind a service in handy pieces.

use std::collections::BTreeMap;

use atoll_meta::Status;
use serde_json::{Value, json};

use super::backend::{Backend, backends, selector};
use super::{Again, mirror, parent, split};
use crate::child::controller_ref;
use crate::kind::Kind;
use crate::world::{Work, World};
use crate::write;

/// Label that names the service of a slice.
pub const SERVICE: &str = "kubernetes.io/service-name";
/// Label that names who looks after a slice.
pub const MANAGED: &str = "endpointslice.kubernetes.io/managed-by";
const MANAGER: &str = "endpointslice-controller.k8s.io";
/// Addresses in one slice.
const MOST: usize = 100;

/// What is to be done for the slices of a service.
#[derive(Debug, Default, PartialEq)]
pub struct Plan {
    /// Slices to make: ports and endpoints.
    pub create: Vec<(Value, Vec<Value>)>,
    /// Slices to change: name and endpoints.
    pub change: Vec<(String, Vec<Value>)>,
    /// Names and uids of slices to delete.
    pub delete: Vec<(String, String)>,
}

fn endpoint(backend: &Backend) -> Value {
    let mut endpoint = json!({
        "addresses": [backend.ip], "targetRef": backend.target, "nodeName": backend.node,
        "conditions": {"ready": backend.ready, "serving": backend.serving, "terminating": backend.terminating},
    });
    if let Some(zone) = &backend.zone {
        endpoint["zone"] = zone.clone().into();
    }
    if let Some(name) = &backend.hostname {
        endpoint["hostname"] = name.clone().into();
    }
    endpoint
}

/// Spreads backends over slices; what is in a slice stays there as long as it can.
pub fn decide(backends: &[Backend], slices: &[Value]) -> Plan {
    let mut groups: BTreeMap<String, (Value, Vec<Value>)> = BTreeMap::new();
    for backend in backends {
        let group = groups.entry(backend.ports.to_string()).or_insert_with(|| (backend.ports.clone(), Vec::new()));
        group.1.push(endpoint(backend));
    }
    if let ([], [first, rest @ ..]) = (backends, slices) {
        // An empty slice says that the service is looked after.
        let full = first["endpoints"].as_array().is_some_and(|list| !list.is_empty());
        let change = full.then(|| (name(first), Vec::new())).into_iter().collect();
        return Plan { change, delete: rest.iter().map(key).collect(), ..Plan::default() };
    }
    if backends.is_empty() {
        return Plan { create: vec![(json!([]), Vec::new())], ..Plan::default() };
    }
    arrange(groups.into_values().collect(), slices)
}

/// Spreads endpoints, grouped by their ports, over slices.
pub fn arrange(groups: Vec<(Value, Vec<Value>)>, slices: &[Value]) -> Plan {
    let mut plan = Plan::default();
    let mut left: Vec<&Value> = slices.iter().collect();
    for (ports, endpoints) in groups {
        let (own, others): (Vec<&Value>, Vec<&Value>) =
            left.into_iter().partition(|slice| same_ports(&slice["ports"], &ports));
        left = others;
        pack(ports, endpoints, &own, &mut plan);
    }
    plan.delete.extend(left.into_iter().map(key));
    plan
}

fn key(slice: &Value) -> (String, String) {
    (name(slice), slice["metadata"]["uid"].as_str().unwrap_or_default().to_owned())
}

fn name(slice: &Value) -> String {
    slice["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

fn same_ports(own: &Value, wanted: &Value) -> bool {
    let read = |ports: &Value| -> Vec<(String, i64, String)> {
        let mut list: Vec<_> = ports
            .as_array()
            .into_iter()
            .flatten()
            .map(|port| {
                let text = |field: &str| port[field].as_str().unwrap_or_default().to_owned();
                (text("name"), port["port"].as_i64().unwrap_or_default(), text("protocol"))
            })
            .collect();
        list.sort();
        list
    };
    read(own) == read(wanted)
}

fn pack(ports: Value, endpoints: Vec<Value>, slices: &[&Value], plan: &mut Plan) {
    let who = |endpoint: &Value| {
        let known = endpoint["targetRef"]["uid"].as_str().or(endpoint["addresses"][0].as_str());
        known.unwrap_or_default().to_owned()
    };
    let mut wanted: BTreeMap<String, Value> = endpoints.into_iter().map(|one| (who(&one), one)).collect();
    let mut filled: Vec<(&Value, Vec<Value>)> = Vec::new();
    for slice in slices {
        let kept = slice["endpoints"].as_array().into_iter().flatten().filter_map(|old| wanted.remove(&who(old)));
        filled.push((slice, kept.collect()));
    }
    let mut rest = wanted.into_values();
    for (_, list) in &mut filled {
        let room = MOST.saturating_sub(list.len());
        list.extend(rest.by_ref().take(room));
    }
    for (slice, list) in filled {
        if list.is_empty() {
            plan.delete.push(key(slice));
        } else if *slice["endpoints"].as_array().unwrap_or(&Vec::new()) != list {
            plan.change.push((name(slice), list));
        }
    }
    let rest: Vec<Value> = rest.collect();
    for chunk in rest.chunks(MOST) {
        plan.create.push((ports.clone(), chunk.to_vec()));
    }
}

/// Looks after the slices of one service.
pub async fn reconcile(world: &World, work: &Work) -> Again {
    let service = parent(world, Kind::Service, work);
    if service.as_ref().is_some_and(|service| !service["metadata"]["deletionTimestamp"].is_null()) {
        return Ok(None);
    }
    let chosen = service.as_ref().and_then(selector);
    mirror::reconcile(world, work, service.is_some() && chosen.is_none()).await?;
    if let (Some(service), Some(selector)) = (service, chosen) {
        let plan = decide(&backends(world, &service, &selector), &slices(world, work, MANAGER));
        carry_out(world, work, plan, |ports, endpoints| slice(&service, ports, endpoints)).await?;
    }
    Ok(None)
}

/// Makes, changes and deletes slices.
pub async fn carry_out(
    world: &World,
    work: &Work,
    plan: Plan,
    make: impl Fn(&Value, &[Value]) -> Value,
) -> Result<(), Status> {
    let (namespace, _) = split(&work.key);
    for (ports, endpoints) in &plan.create {
        let slice = make(ports, endpoints);
        let written = write::create(&world.manager, Kind::EndpointSlice, namespace, &slice).await?;
        world.expect(work, written.revision());
    }
    for (name, endpoints) in &plan.change {
        let patch = json!({"endpoints": endpoints});
        let written = write::merge(&world.manager, Kind::EndpointSlice, (namespace, name), "", &patch).await?;
        world.expect(work, written.revision());
    }
    for (name, uid) in &plan.delete {
        write::delete(&world.manager, Kind::EndpointSlice, (namespace, name), uid, None).await?;
    }
    Ok(())
}

/// The slices of a service that a manager looks after.
pub fn slices(world: &World, work: &Work, manager: &str) -> Vec<Value> {
    let (namespace, own) = split(&work.key);
    let all = world.cache(Kind::EndpointSlice).list_in(namespace);
    let ours = all.iter().filter(|item| {
        let head = &item.object.head;
        head.label(SERVICE) == Some(own) && head.label(MANAGED) == Some(manager) && !head.deleting
    });
    ours.map(atoll_runtime::Item::tree).collect()
}

/// Ports as slices have them: every one with a name, be it empty.
pub fn named(ports: &Value) -> Value {
    let mut ports = ports.clone();
    for port in ports.as_array_mut().into_iter().flatten() {
        if port.get("name").is_none() {
            port["name"] = "".into();
        }
    }
    ports
}

fn slice(service: &Value, ports: &Value, endpoints: &[Value]) -> Value {
    let name = service["metadata"]["name"].as_str().unwrap_or_default();
    let mut labels = service["metadata"]["labels"].clone();
    if service["spec"]["clusterIP"] == "None" {
        labels["service.kubernetes.io/headless"] = "".into();
    }
    labels[SERVICE] = name.into();
    labels[MANAGED] = MANAGER.into();
    json!({
        "kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1",
        "metadata": {"generateName": format!("{name}-"), "labels": labels, "ownerReferences": [controller_ref(Kind::Service, service)]},
        "addressType": "IPv4", "ports": named(ports), "endpoints": endpoints,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backend(n: usize) -> Backend {
        Backend {
            ip: format!("10.0.0.{n}"),
            node: "n".into(),
            zone: None,
            hostname: None,
            target: json!({"uid": format!("u{n:03}")}),
            ready: true,
            serving: true,
            terminating: false,
            ports: json!([{"port": 80, "protocol": "TCP"}]),
        }
    }

    fn stored(name: &str, list: &[Value]) -> Value {
        json!({"metadata": {"name": name, "uid": name}, "ports": [{"name": "", "port": 80, "protocol": "TCP"}], "endpoints": list})
    }

    #[test]
    fn a_hundred_addresses_fit_into_a_slice() {
        let many: Vec<Backend> = (0..150).map(backend).collect();
        let plan = decide(&many, &[]);
        assert_eq!(plan.create.iter().map(|(_, list)| list.len()).collect::<Vec<_>>(), [100, 50]);
        assert_eq!(decide(&[], &[]).create, [(json!([]), vec![])]);
    }

    #[test]
    fn only_slices_that_differ_are_written() {
        let two: Vec<Backend> = (0..2).map(backend).collect();
        let made = decide(&two, &[]).create.remove(0).1;
        assert_eq!(decide(&two, &[stored("a", &made)]), Plan::default());
        let three: Vec<Backend> = (0..3).map(backend).collect();
        let plan = decide(&three, &[stored("a", &made)]);
        assert_eq!((plan.change.len(), plan.create.len(), plan.delete.len()), (1, 0, 0));
        assert_eq!(plan.change[0].1.len(), 3);
        let plan = decide(&[], &[stored("a", &made)]);
        assert_eq!(plan.change, [("a".to_owned(), vec![])]);
    }
}
