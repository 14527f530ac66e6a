//! EndpointSlices for Endpoints that somebody wrote by hand, behind a service that selects no pods.

use std::collections::BTreeMap;
use std::net::IpAddr;

use atoll_meta::Status;
use serde_json::{Map, Value, json};

use super::endpointslice::{MANAGED, SERVICE, arrange, carry_out, named, slices};
use super::split;
use crate::child::controller_ref;
use crate::kind::Kind;
use crate::world::{Work, World};

const MANAGER: &str = "endpointslicemirroring-controller.k8s.io";
const SKIP: &str = "endpointslice.kubernetes.io/skip-mirror";
const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";
/// Annotations that are about the Endpoints alone.
const OWN: [&str; 2] =
    ["kubectl.kubernetes.io/last-applied-configuration", "endpoints.kubernetes.io/last-change-trigger-time"];

/// Ports and endpoints.
type Group = (Value, Vec<Value>);

/// Whether somebody wants these Endpoints as slices: not those that say no, nor the locks of old leaders.
fn wanted(endpoints: &Value) -> bool {
    let meta = &endpoints["metadata"];
    meta["deletionTimestamp"].is_null() && meta["labels"][SKIP] != "true" && meta["annotations"][LEADER].is_null()
}

/// The endpoints of all subsets by family of addresses.
fn groups(endpoints: &Value) -> BTreeMap<&'static str, Vec<Group>> {
    let mut families: BTreeMap<&'static str, Vec<Group>> = BTreeMap::new();
    for subset in endpoints["subsets"].as_array().into_iter().flatten() {
        let ports = if subset["ports"].is_array() { subset["ports"].clone() } else { json!([]) };
        for (list, ready) in [("addresses", true), ("notReadyAddresses", false)] {
            for address in subset[list].as_array().into_iter().flatten() {
                let Some(family) = family(&address["ip"]) else { continue };
                let groups = families.entry(family).or_default();
                let place = groups.iter().position(|(known, _)| *known == ports).unwrap_or(groups.len());
                if place == groups.len() {
                    groups.push((ports.clone(), Vec::new()));
                }
                groups[place].1.push(endpoint(address, ready));
            }
        }
    }
    families
}

fn family(ip: &Value) -> Option<&'static str> {
    let ip: IpAddr = ip.as_str()?.parse().ok()?;
    Some(if ip.is_ipv4() { "IPv4" } else { "IPv6" })
}

fn endpoint(address: &Value, ready: bool) -> Value {
    let mut endpoint = json!({"addresses": [address["ip"]], "conditions": {"ready": ready}});
    for field in ["hostname", "nodeName", "targetRef"] {
        if let Some(value) = address.get(field).filter(|value| !value.is_null()) {
            endpoint[field] = value.clone();
        }
    }
    endpoint
}

fn slice(endpoints: &Value, family: &str, ports: &Value, list: &[Value]) -> Value {
    let meta = &endpoints["metadata"];
    let name = meta["name"].as_str().unwrap_or_default();
    let mut labels = meta["labels"].as_object().cloned().unwrap_or_default();
    labels.insert(SERVICE.into(), name.into());
    labels.insert(MANAGED.into(), MANAGER.into());
    let mut annotations: Map<String, Value> = meta["annotations"].as_object().cloned().unwrap_or_default();
    annotations.retain(|key, _| !OWN.contains(&key.as_str()));
    let owner = controller_ref(Kind::Endpoints, endpoints);
    json!({
        "kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1",
        "metadata": {"generateName": format!("{name}-"), "labels": labels, "annotations": annotations, "ownerReferences": [owner]},
        "addressType": family, "ports": named(ports), "endpoints": list,
    })
}

/// Keeps the copies of the Endpoints of a service; without `active` there are none.
pub async fn reconcile(world: &World, work: &Work, active: bool) -> Result<(), Status> {
    let there = slices(world, work, MANAGER);
    let (namespace, name) = split(&work.key);
    let found = world.cache(Kind::Endpoints).get(namespace, name).map(|item| item.tree());
    let source = found.filter(|endpoints| active && wanted(endpoints));
    if source.is_none() && there.is_empty() {
        return Ok(());
    }
    let mut families = source.as_ref().map(groups).unwrap_or_default();
    for family in ["IPv4", "IPv6"] {
        let own: Vec<Value> = there.iter().filter(|slice| slice["addressType"] == family).cloned().collect();
        let plan = arrange(families.remove(family).unwrap_or_default(), &own);
        let make = |ports: &Value, list: &[Value]| slice(source.as_ref().unwrap_or(&Value::Null), family, ports, list);
        carry_out(world, work, plan, make).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subsets_become_groups_of_one_family() {
        let endpoints = json!({"metadata": {"name": "e"}, "subsets": [
            {"addresses": [{"ip": "10.0.0.1", "nodeName": "n"}, {"ip": "fd00::1"}], "ports": [{"port": 80}]},
            {"notReadyAddresses": [{"ip": "10.0.0.2"}], "ports": [{"port": 80}]},
            {"addresses": [{"ip": "10.0.0.3"}], "ports": [{"port": 90}]}]});
        let families = groups(&endpoints);
        let found: Vec<Vec<&str>> = families["IPv4"]
            .iter()
            .map(|(_, list)| list.iter().filter_map(|one| one["addresses"][0].as_str()).collect())
            .collect();
        assert_eq!(found, [vec!["10.0.0.1", "10.0.0.2"], vec!["10.0.0.3"]]);
        assert_eq!(families["IPv4"][0].1[1]["conditions"], json!({"ready": false}));
        assert_eq!(families["IPv6"][0].1[0]["addresses"], json!(["fd00::1"]));
        let copy = slice(&endpoints, "IPv4", &families["IPv4"][0].0, &families["IPv4"][0].1);
        assert_eq!(copy["metadata"]["labels"], json!({SERVICE: "e", MANAGED: MANAGER}));
        assert_eq!(copy["ports"], json!([{"name": "", "port": 80}]));
    }

    #[test]
    fn some_endpoints_are_not_copied() {
        assert!(wanted(&json!({"metadata": {"labels": {"a": "b"}}})));
        assert!(!wanted(&json!({"metadata": {"labels": {SKIP: "true"}}})));
        assert!(!wanted(&json!({"metadata": {"annotations": {LEADER: "x"}}})));
    }
}
