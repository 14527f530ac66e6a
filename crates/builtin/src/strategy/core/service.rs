//! Services. Addresses and node ports are handed out elsewhere.

use std::collections::BTreeSet;

use atoll_meta::FieldPath;
use serde_json::{Value, json};

use crate::strategy::errors::Errors;
use crate::strategy::tree::{at, fill, fill_map, fill_text, has, int, items, items_mut, keep, remove, same, set, text};
use crate::strategy::{PLAIN, Rules, metadata, name, pod};

const MAX_AFFINITY: i64 = 86_400;
const BALANCER_ONLY: &str = "may only be used when `type` is 'LoadBalancer'";

pub(super) const SERVICE: Rules = Rules {
    default: |_, object| default(object),
    create: |_, object| {
        normalize_addresses(object);
        default_families(object);
    },
    update: |_, new, old| update(new, old),
    validate,
    validate_update: |new, old, out| {
        addresses_kept(new, old, out);
        if is(new, "LoadBalancer")
            && is(old, "LoadBalancer")
            && !same(at(new, "spec.loadBalancerClass"), at(old, "spec.loadBalancerClass"))
        {
            let value = at(new, "spec.loadBalancerClass").clone();
            out.invalid(&FieldPath::new("spec.loadBalancerClass"), value, "may not change once set");
        }
        if needs_health_check(new)
            && needs_health_check(old)
            && !same(at(new, "spec.healthCheckNodePort"), at(old, "spec.healthCheckNodePort"))
        {
            out.forbidden(&FieldPath::new("spec.healthCheckNodePort"), "field is immutable");
        }
        validate(new, out);
    },
    validate_status: |new, _, out| balancer_status(new, out),
    ..PLAIN
};

fn is(object: &Value, kind: &str) -> bool {
    text(object, "spec.type") == kind
}

fn headless(object: &Value) -> bool {
    text(object, "spec.clusterIP") == "None" || items(object, "spec.clusterIPs").first().is_some_and(|ip| ip == "None")
}

fn external(object: &Value) -> bool {
    is(object, "LoadBalancer")
        || is(object, "NodePort")
        || (is(object, "ClusterIP") && !items(object, "spec.externalIPs").is_empty())
}

fn needs_cluster_ip(object: &Value) -> bool {
    !is(object, "ExternalName")
}

fn needs_node_port(object: &Value) -> bool {
    is(object, "NodePort")
        || (is(object, "LoadBalancer") && at(object, "spec.allocateLoadBalancerNodePorts").as_bool().unwrap_or(true))
}

fn needs_health_check(object: &Value) -> bool {
    is(object, "LoadBalancer") && text(object, "spec.externalTrafficPolicy") == "Local"
}

fn default(object: &mut Value) {
    fill_map(object, "spec");
    fill_text(object, "spec.sessionAffinity", "None");
    match text(object, "spec.sessionAffinity") {
        "None" => remove(object, "spec.sessionAffinityConfig"),
        "ClientIP" => fill(object, "spec.sessionAffinityConfig.clientIP.timeoutSeconds", 10_800),
        _ => {}
    }
    fill_text(object, "spec.type", "ClusterIP");
    for port in items_mut(object, "spec.ports") {
        fill_text(port, "protocol", "TCP");
        let unset = match at(port, "targetPort") {
            Value::Null => true,
            Value::String(name) => name.is_empty(),
            other => other.as_i64() == Some(0),
        };
        if unset {
            let number = at(port, "port").clone();
            set(port, "targetPort", number);
        }
        if int(port, "nodePort") == Some(0) {
            remove(port, "nodePort");
        }
    }
    if external(object) {
        fill_text(object, "spec.externalTrafficPolicy", "Cluster");
    }
    if matches!(text(object, "spec.type"), "NodePort" | "LoadBalancer" | "ClusterIP") {
        fill(object, "spec.internalTrafficPolicy", "Cluster");
    }
    if is(object, "LoadBalancer") {
        fill(object, "spec.allocateLoadBalancerNodePorts", true);
        for entry in items_mut(object, "status.loadBalancer.ingress") {
            if !text(entry, "ip").is_empty() {
                fill(entry, "ipMode", "VIP");
            }
        }
    }
    fill_map(object, "status.loadBalancer");
}

/// The single address and the first of the list are one field under two names.
fn normalize_addresses(object: &mut Value) {
    let single = text(object, "spec.clusterIP").to_owned();
    if !single.is_empty() && items(object, "spec.clusterIPs").is_empty() {
        set(object, "spec.clusterIPs", vec![single]);
    }
}

fn default_families(object: &mut Value) {
    if is(object, "ExternalName") {
        return;
    }
    let open = headless(object) && crate::strategy::count(object, "spec.selector") == 0;
    fill(object, "spec.ipFamilyPolicy", if open { "RequireDualStack" } else { "SingleStack" });
    if items(object, "spec.ipFamilies").is_empty() {
        let address = items(object, "spec.clusterIPs").first().and_then(Value::as_str).unwrap_or_default();
        let six = address.parse::<std::net::Ipv6Addr>().is_ok();
        let families = match (open, six) {
            (true, _) => json!(["IPv4", "IPv6"]),
            (false, true) => json!(["IPv6"]),
            (false, false) => json!(["IPv4"]),
        };
        set(object, "spec.ipFamilies", families);
    }
}

fn update(new: &mut Value, old: &Value) {
    keep_allocated(new, old);
    if needs_cluster_ip(old) && !needs_cluster_ip(new) {
        for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            let path = format!("spec.{field}");
            if same(at(new, &path), at(old, &path)) {
                remove(new, &path);
                if field == "clusterIPs" {
                    remove(new, "spec.clusterIP");
                }
            }
        }
    }
    let ports = |object: &Value| -> Vec<i64> {
        items(object, "spec.ports").iter().map(|port| int(port, "nodePort").unwrap_or(0)).collect()
    };
    if needs_node_port(old) && !needs_node_port(new) && ports(old) == ports(new) {
        for port in items_mut(new, "spec.ports") {
            remove(port, "nodePort");
        }
    }
    let dropped = [
        ("spec.healthCheckNodePort", needs_health_check(old) && !needs_health_check(new)),
        ("spec.allocateLoadBalancerNodePorts", is(old, "LoadBalancer") && !is(new, "LoadBalancer")),
        ("spec.loadBalancerClass", is(old, "LoadBalancer") && !is(new, "LoadBalancer")),
        ("spec.externalTrafficPolicy", external(old) && !external(new)),
    ];
    for (field, gone) in dropped {
        if gone && same(at(new, field), at(old, field)) {
            remove(new, field);
        }
    }
    if !is(new, "LoadBalancer") {
        set(new, "status.loadBalancer", serde_json::Map::new());
    }
}

/// What was handed out stays unless the user names something else.
fn keep_allocated(new: &mut Value, old: &Value) {
    if needs_cluster_ip(old) && needs_cluster_ip(new) {
        if text(new, "spec.clusterIP").is_empty() {
            keep(new, old, "spec.clusterIP");
        }
        let named = text(new, "spec.clusterIP") != text(old, "spec.clusterIP");
        if named && same(at(new, "spec.clusterIPs"), at(old, "spec.clusterIPs")) {
            // Who changes the one address means the first of the list.
            remove(new, "spec.clusterIPs");
        }
        if items(new, "spec.clusterIPs").is_empty() {
            if text(new, "spec.clusterIP") == text(old, "spec.clusterIP") {
                keep(new, old, "spec.clusterIPs");
            } else {
                normalize_addresses(new);
            }
        }
        for field in ["spec.ipFamilies", "spec.ipFamilyPolicy"] {
            if !has(new, field) {
                keep(new, old, field);
            }
        }
    } else if needs_cluster_ip(new) {
        normalize_addresses(new);
        default_families(new);
    }
    if needs_node_port(old) && needs_node_port(new) {
        let named: BTreeSet<i64> = items(new, "spec.ports").iter().filter_map(|port| int(port, "nodePort")).collect();
        for port in items_mut(new, "spec.ports") {
            let same_name = items(old, "spec.ports").iter().find(|before| text(before, "name") == text(port, "name"));
            let before = same_name.and_then(|before| int(before, "nodePort")).filter(|number| !named.contains(number));
            if let Some(number) = before.filter(|_| !has(port, "nodePort")) {
                set(port, "nodePort", number);
            }
        }
    }
    if needs_health_check(old) && needs_health_check(new) && !has(new, "spec.healthCheckNodePort") {
        keep(new, old, "spec.healthCheckNodePort");
    }
}

fn addresses_kept(new: &Value, old: &Value, out: &mut Errors) {
    if is(new, "ExternalName") || is(old, "ExternalName") || (headless(new) && headless(old)) {
        return;
    }
    let (now, before) = (items(new, "spec.clusterIPs"), items(old, "spec.clusterIPs"));
    let path = FieldPath::new("spec.clusterIPs");
    if now.is_empty() && !before.is_empty() {
        return out.invalid(&path.index(0), Value::from(now), "primary clusterIP can not be unset");
    }
    for (index, (one, other)) in now.iter().zip(before).enumerate() {
        if one != other && (index == 0 || now.len() == before.len()) {
            out.invalid(&path.index(index), Value::from(now), "may not change once set");
        }
    }
}

fn validate(object: &Value, out: &mut Errors) {
    let (spec, path) = (at(object, "spec"), FieldPath::new("spec"));
    let ports = items(spec, "ports");
    if ports.is_empty() && !headless(object) && !is(object, "ExternalName") {
        out.required(&path.child("ports"), "");
    }
    if headless(object) && (is(object, "LoadBalancer") || is(object, "NodePort")) {
        let detail = format!("may not be set to 'None' for {} services", text(spec, "type"));
        out.invalid(&path.child("clusterIPs").index(0), "None", detail);
    }
    if is(object, "ExternalName") {
        external_name(out, spec, &path);
    }
    let mut names = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        service_port(out, port, ports.len() > 1, &mut names, &path.child("ports").index(index));
    }
    metadata::labels(out, at(spec, "selector"), &path.child("selector"));
    affinity(out, spec, &path);
    if !is(object, "ExternalName") {
        families(out, object, &path);
    }
    for (index, address) in items(spec, "externalIPs").iter().enumerate() {
        let address = address.as_str().unwrap_or_default();
        let here = path.child("externalIPs").index(index);
        let faults = name::ip(address);
        if faults.is_empty() {
            super::endpoint_address(out, address, &here);
        }
        out.each(&here, address, faults);
    }
    out.one_of(&path, spec, "type", &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]);
    port_numbers(out, object, &path.child("ports"));
    balancer(out, object, &path);
    traffic(out, object, &path);
}

fn external_name(out: &mut Errors, spec: &Value, path: &FieldPath) {
    for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        if has(spec, field) && !crate::strategy::tree::is_empty(at(spec, field)) {
            out.forbidden(&path.child(field), "may not be set for ExternalName services");
        }
    }
    let alias = text(spec, "externalName").trim_end_matches('.');
    if alias.is_empty() {
        out.required(&path.child("externalName"), "");
    } else {
        out.each(&path.child("externalName"), alias, name::subdomain(alias));
    }
}

fn service_port<'a>(out: &mut Errors, port: &'a Value, many: bool, names: &mut BTreeSet<&'a str>, path: &FieldPath) {
    let own = text(port, "name");
    if own.is_empty() {
        if many {
            out.required(&path.child("name"), "");
        }
    } else {
        out.each(&path.child("name"), own, name::label(own));
        if !names.insert(own) {
            out.duplicate(&path.child("name"), own);
        }
    }
    out.port(&path.child("port"), int(port, "port").unwrap_or(0));
    out.one_of(path, port, "protocol", pod::PROTOCOLS);
    out.port_or_name(&path.child("targetPort"), at(port, "targetPort"));
    if has(port, "appProtocol") {
        let protocol = text(port, "appProtocol");
        out.each(&path.child("appProtocol"), protocol, name::qualified(protocol));
    }
}

fn affinity(out: &mut Errors, spec: &Value, path: &FieldPath) {
    out.one_of(path, spec, "sessionAffinity", &["ClientIP", "None"]);
    let seconds = int(spec, "sessionAffinityConfig.clientIP.timeoutSeconds");
    if text(spec, "sessionAffinity") == "ClientIP"
        && let Some(seconds) = seconds.filter(|seconds| !(1..=MAX_AFFINITY).contains(seconds))
    {
        let here = path.child("sessionAffinityConfig").child("clientIP").child("timeoutSeconds");
        out.invalid(&here, seconds, format!("must be greater than 0 and less than {MAX_AFFINITY}"));
    }
}

fn families(out: &mut Errors, object: &Value, path: &FieldPath) {
    let spec = at(object, "spec");
    let (single, many) = (text(spec, "clusterIP"), items(spec, "clusterIPs"));
    let here = path.child("clusterIPs");
    match (single.is_empty(), many.first().and_then(Value::as_str)) {
        (false, None) => out.required(&here, ""),
        (false, Some(first)) if first != single => {
            out.invalid(&here, Value::from(many), "first value must match `clusterIP`");
        }
        (true, Some(_)) => out.invalid(&here, Value::from(many), "must be empty when `clusterIP` is not specified"),
        _ => {}
    }
    let mut seen = BTreeSet::new();
    for (index, family) in items(spec, "ipFamilies").iter().enumerate() {
        let family = family.as_str().unwrap_or_default();
        let place = path.child("ipFamilies").index(index);
        if !matches!(family, "IPv4" | "IPv6") {
            out.not_supported(&place, family, &["IPv4", "IPv6"]);
        }
        if !seen.insert(family) {
            out.duplicate(&place, family);
        }
    }
    out.one_of(path, spec, "ipFamilyPolicy", &["PreferDualStack", "RequireDualStack", "SingleStack"]);
    for (index, address) in many.iter().enumerate() {
        let address = address.as_str().unwrap_or_default();
        if address == "None" && index == 0 {
            if many.len() > 1 {
                out.invalid(&here, Value::from(many), "'None' must be the first and only value");
            }
            continue;
        }
        out.each(&here.index(index), address, name::ip(address));
    }
    if many.len() > 2 {
        out.invalid(&here, Value::from(many), "may only hold up to 2 values");
    }
}

fn port_numbers(out: &mut Errors, object: &Value, path: &FieldPath) {
    let (mut node_ports, mut ports) = (BTreeSet::new(), BTreeSet::new());
    let list = items(object, "spec.ports");
    if is(object, "ClusterIP") {
        for (index, port) in list.iter().enumerate() {
            if int(port, "nodePort").unwrap_or(0) != 0 {
                out.forbidden(&path.index(index).child("nodePort"), "may not be used when `type` is 'ClusterIP'");
            }
        }
    }
    for (index, port) in list.iter().enumerate() {
        if let Some(number) = int(port, "nodePort").filter(|number| *number != 0)
            && !node_ports.insert((text(port, "protocol"), number))
        {
            out.duplicate(&path.index(index).child("nodePort"), number);
        }
    }
    for (index, port) in list.iter().enumerate() {
        let number = int(port, "port").unwrap_or(0);
        if !ports.insert((text(port, "protocol"), number)) {
            out.duplicate(&path.index(index), json!({"protocol": text(port, "protocol"), "port": number}));
        }
    }
}

fn balancer(out: &mut Errors, object: &Value, path: &FieldPath) {
    let spec = at(object, "spec");
    let balanced = is(object, "LoadBalancer");
    let ranges = items(spec, "loadBalancerSourceRanges");
    let here = path.child("LoadBalancerSourceRanges");
    if !ranges.is_empty() && !balanced {
        out.forbidden(&here, BALANCER_ONLY);
    }
    for (index, range) in ranges.iter().enumerate() {
        let range = range.as_str().unwrap_or_default().trim();
        if name::cidr(range).is_none() {
            out.invalid(&here.index(index), range, name::NOT_A_NETWORK);
        }
    }
    if has(spec, "allocateLoadBalancerNodePorts") && !balanced {
        out.forbidden(&path.child("allocateLoadBalancerNodePorts"), BALANCER_ONLY);
    }
    if has(spec, "loadBalancerClass") {
        let class = text(spec, "loadBalancerClass");
        if balanced {
            out.each(&path.child("loadBalancerClass"), class, name::qualified(class));
        } else {
            out.forbidden(&path.child("loadBalancerClass"), BALANCER_ONLY);
        }
    }
}

fn traffic(out: &mut Errors, object: &Value, path: &FieldPath) {
    let spec = at(object, "spec");
    let policy = text(spec, "externalTrafficPolicy");
    let here = path.child("externalTrafficPolicy");
    if !external(object) {
        if !policy.is_empty() {
            out.invalid(&here, policy, "may only be set for externally-accessible services");
        }
    } else if !matches!(policy, "Cluster" | "Local") {
        out.not_supported(&here, policy, &["Cluster", "Local"]);
    }
    if let Some(number) = int(spec, "healthCheckNodePort").filter(|number| *number != 0) {
        let here = path.child("healthCheckNodePort");
        if needs_health_check(object) {
            out.port(&here, number);
        } else {
            let detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
            out.invalid(&here, number, detail);
        }
    }
    out.one_of(path, spec, "internalTrafficPolicy", &["Cluster", "Local"]);
    out.one_of(path, spec, "trafficDistribution", &["PreferClose", "PreferSameZone", "PreferSameNode"]);
}

fn balancer_status(object: &Value, out: &mut Errors) {
    let path = FieldPath::new("status.loadBalancer.ingress");
    let list = items(object, "status.loadBalancer.ingress");
    if !is(object, "LoadBalancer") && !list.is_empty() {
        return out.forbidden(&path, "may only be used when `spec.type` is 'LoadBalancer'");
    }
    for (index, entry) in list.iter().enumerate() {
        let here = path.index(index);
        let (address, host) = (text(entry, "ip"), text(entry, "hostname"));
        if !address.is_empty() {
            out.each(&here.child("ip"), address, name::ip(address));
        }
        if has(entry, "ipMode") && address.is_empty() {
            out.forbidden(&here.child("ipMode"), "may not be specified when `ip` is not set");
        }
        if !host.is_empty() {
            out.each(&here.child("hostname"), host, name::subdomain(host));
            if name::ip(host).is_empty() {
                out.invalid(&here.child("hostname"), host, "must be a DNS name, not an IP address");
            }
        }
    }
}
