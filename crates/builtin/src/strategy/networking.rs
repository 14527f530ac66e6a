//! Ingresses, network policies and endpoint slices.

use std::collections::BTreeSet;
use std::net::IpAddr;

use atoll_meta::FieldPath;
use serde_json::{Value, json};

use super::errors::Errors;
use super::tree::{at, at_mut, fill, fill_map, fill_text, has, int, items, items_mut, same, set, text};
use super::{PLAIN, Rules, core, metadata, name, pod};

pub(super) fn rules(kind: &str) -> &'static Rules {
    match kind {
        "Ingress" => &INGRESS,
        "IngressClass" => &CLASS,
        "NetworkPolicy" => &POLICY,
        "IPAddress" => &ADDRESS,
        "ServiceCIDR" => &SERVICE_CIDR,
        _ => &PLAIN,
    }
}

pub(super) fn discovery_rules(kind: &str) -> &'static Rules {
    if kind == "EndpointSlice" { &SLICE } else { &PLAIN }
}

const INGRESS: Rules = Rules {
    default: |_, object| {
        fill_map(object, "spec");
        fill_map(object, "status.loadBalancer");
    },
    validate: |object, out| {
        ingress(object, out);
        let class = text(object, "spec.ingressClassName");
        let key = "kubernetes.io/ingress.class";
        let old = at(object, "metadata.annotations").get(key).and_then(Value::as_str);
        if let Some(old) = old.filter(|old| has(object, "spec.ingressClassName") && *old != class) {
            let path = FieldPath::new("annotations").child(key);
            out.invalid(&path, old, "must match `ingressClassName` when both are specified");
        }
    },
    validate_update: |new, _, out| ingress(new, out),
    validate_status: |new, _, out| {
        let path = FieldPath::new("status.loadBalancer.ingress");
        for (index, entry) in items(new, "status.loadBalancer.ingress").iter().enumerate() {
            let (address, host) = (text(entry, "ip"), text(entry, "hostname"));
            if !address.is_empty() {
                out.each(&path.index(index).child("ip"), address, name::ip(address));
            }
            if !host.is_empty() {
                host_name(out, host, &path.index(index).child("hostname"));
            }
        }
    },
    ..PLAIN
};

fn host_name(out: &mut Errors, host: &str, path: &FieldPath) {
    if name::ip(host).is_empty() {
        out.invalid(path, host, "must be a DNS name, not an IP address");
    }
    out.each(path, host, if host.contains('*') { name::wildcard(host) } else { name::subdomain(host) });
}

fn ingress(object: &Value, out: &mut Errors) {
    let (spec, path) = (at(object, "spec"), FieldPath::new("spec"));
    let rules = items(spec, "rules");
    if rules.is_empty() && !has(spec, "defaultBackend") {
        out.invalid(&path, at(spec, "rules").clone(), "either `defaultBackend` or `rules` must be specified");
    }
    if has(spec, "defaultBackend") {
        backend(out, at(spec, "defaultBackend"), &path.child("defaultBackend"));
    }
    for (index, rule) in rules.iter().enumerate() {
        let here = path.child("rules").index(index);
        let host = text(rule, "host");
        if !host.is_empty() {
            host_name(out, host, &here.child("host"));
        }
        if has(rule, "http") {
            http_paths(out, at(rule, "http"), &here.child("http").child("paths"));
        }
    }
    for (index, tls) in items(spec, "tls").iter().enumerate() {
        let here = path.child("tls").index(index);
        for (index, host) in items(tls, "hosts").iter().enumerate() {
            let host = host.as_str().unwrap_or_default();
            let faults = if host.contains('*') { name::wildcard(host) } else { name::subdomain(host) };
            out.each(&here.child("hosts").index(index), host, faults);
        }
        let secret = text(tls, "secretName");
        if !secret.is_empty() {
            out.each(&here.child("secretName"), secret, name::subdomain(secret));
        }
    }
    if has(spec, "ingressClassName") {
        let class = text(spec, "ingressClassName");
        out.each(&path.child("ingressClassName"), class, name::subdomain(class));
    }
}

fn http_paths(out: &mut Errors, http: &Value, path: &FieldPath) {
    let paths = items(http, "paths");
    if paths.is_empty() {
        out.required(path, "");
    }
    for (index, entry) in paths.iter().enumerate() {
        let here = path.index(index);
        let target = text(entry, "path");
        match at(entry, "pathType").as_str() {
            None => {
                out.required(&here.child("pathType"), "pathType must be specified");
                continue;
            }
            Some("Exact" | "Prefix") => {
                if !target.starts_with('/') {
                    out.invalid(&here.child("path"), target, "must be an absolute path");
                }
                for bad in ["//", "/./", "/../", "%2f", "%2F"].into_iter().filter(|bad| target.contains(bad)) {
                    out.invalid(&here.child("path"), target, format!("must not contain '{bad}'"));
                }
                for bad in ["/..", "/."].into_iter().filter(|bad| target.ends_with(bad)) {
                    out.invalid(&here.child("path"), target, format!("cannot end with '{bad}'"));
                }
            }
            Some("ImplementationSpecific") => {
                if !target.is_empty() && !target.starts_with('/') {
                    out.invalid(&here.child("path"), target, "must be an absolute path");
                }
            }
            Some(other) => {
                out.not_supported(&here.child("pathType"), other, &["Exact", "ImplementationSpecific", "Prefix"]);
            }
        }
        backend(out, at(entry, "backend"), &here.child("backend"));
    }
}

fn backend(out: &mut Errors, backend: &Value, path: &FieldPath) {
    match (has(backend, "resource"), has(backend, "service")) {
        (true, true) => out.invalid(path, "", "cannot set both resource and service backends"),
        (true, false) => typed_reference(out, at(backend, "resource"), &path.child("resource")),
        (false, false) => out.invalid(path, "", "resource or service backend is required"),
        (false, true) => {
            let (service, here) = (at(backend, "service"), path.child("service"));
            let own = text(service, "name");
            if own.is_empty() {
                out.required(&here.child("name"), "");
            } else {
                out.each(&here.child("name"), own, name::label_1035(own));
            }
            let (port, number) = (text(service, "port.name"), int(service, "port.number").unwrap_or(0));
            match (port.is_empty(), number) {
                (true, 0) => out.required(path, "port name or number is required"),
                (true, number) => out.port(&here.child("port").child("number"), number),
                (false, 0) => out.each(&here.child("port").child("name"), port, name::port_name(port)),
                (false, _) => out.invalid(path, "", "cannot set both port name & port number"),
            }
        }
    }
}

fn typed_reference(out: &mut Errors, reference: &Value, path: &FieldPath) {
    if has(reference, "apiGroup") {
        let group = text(reference, "apiGroup");
        out.each(&path.child("apiGroup"), group, name::subdomain(group));
    }
    for field in ["kind", "name"] {
        let value = text(reference, field);
        if value.is_empty() {
            out.required(&path.child(field), "");
        } else {
            out.each(&path.child(field), value, atoll_meta::name::is_path_segment(value));
        }
    }
}

const CLASS: Rules = Rules {
    default: |_, object| {
        fill_map(object, "spec");
        if let Some(parameters) = at_mut(object, "spec.parameters") {
            fill(parameters, "scope", "Cluster");
        }
    },
    validate: class,
    validate_update: |new, old, out| {
        out.immutable(&FieldPath::new("spec"), at(new, "spec"), at(old, "spec"), "controller");
        class(new, out);
    },
    ..PLAIN
};

fn class(object: &Value, out: &mut Errors) {
    let path = FieldPath::new("spec");
    let controller = text(object, "spec.controller");
    if controller.len() > 250 {
        out.too_long(&path.child("controller"), 250);
    }
    if controller.is_empty() {
        out.required(&path.child("controller"), "");
    } else {
        out.each(&path.child("controller"), controller, name::domain_path(controller));
    }
    let parameters = at(object, "spec.parameters");
    if parameters.is_null() {
        return;
    }
    let here = path.child("parameters");
    typed_reference(out, parameters, &here);
    match (text(parameters, "scope"), has(parameters, "namespace")) {
        ("Namespace", false) => out.required(&here.child("namespace"), "`parameters.scope` is set to 'Namespace'"),
        ("Cluster", true) => out.forbidden(&here.child("namespace"), "`parameters.scope` is set to 'Cluster'"),
        ("Namespace" | "Cluster", _) => {}
        (other, _) => out.not_supported(&here.child("scope"), other, &["Cluster", "Namespace"]),
    }
}

const POLICY: Rules = Rules {
    default: |_, object| {
        fill_map(object, "spec.podSelector");
        if items(object, "spec.policyTypes").is_empty() {
            let outwards = !items(object, "spec.egress").is_empty();
            set(object, "spec.policyTypes", if outwards { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) });
        }
        for list in ["spec.ingress", "spec.egress"] {
            for rule in items_mut(object, list) {
                for port in items_mut(rule, "ports") {
                    fill(port, "protocol", "TCP");
                }
            }
        }
    },
    validate: policy,
    validate_update: |new, _, out| policy(new, out),
    ..PLAIN
};

fn policy(object: &Value, out: &mut Errors) {
    let (spec, path) = (at(object, "spec"), FieldPath::new("spec"));
    metadata::selector(out, at(spec, "podSelector"), &path.child("podSelector"));
    for (list, peers) in [("ingress", "from"), ("egress", "to")] {
        for (index, rule) in items(spec, list).iter().enumerate() {
            let here = path.child(list).index(index);
            for (index, port) in items(rule, "ports").iter().enumerate() {
                policy_port(out, port, &here.child("ports").index(index));
            }
            for (index, peer) in items(rule, peers).iter().enumerate() {
                policy_peer(out, peer, &here.child(peers).index(index));
            }
        }
    }
    let kinds = items(spec, "policyTypes");
    let here = path.child("policyTypes");
    if kinds.len() > 2 {
        return out.invalid(&here, Value::from(kinds), "may not specify more than two policyTypes");
    }
    for (index, kind) in kinds.iter().enumerate() {
        if kind != "Ingress" && kind != "Egress" {
            out.not_supported(&here.index(index), kind.clone(), &["Ingress", "Egress"]);
        }
    }
}

fn policy_port(out: &mut Errors, port: &Value, path: &FieldPath) {
    out.one_of(path, port, "protocol", &["TCP", "UDP", "SCTP"]);
    let last = int(port, "endPort");
    let here = path.child("endPort");
    match at(port, "port") {
        Value::Null => {
            if let Some(last) = last {
                out.invalid(&here, last, "may not be specified when `port` is not specified");
            }
        }
        Value::String(named) => {
            if let Some(last) = last {
                out.invalid(&here, last, "may not be specified when `port` is non-numeric");
            }
            out.each(&path.child("port"), named, name::port_name(named));
        }
        number => {
            let first = number.as_i64().unwrap_or(0);
            out.port(&path.child("port"), first);
            if let Some(last) = last {
                if last < first {
                    out.invalid(&here, first, "must be greater than or equal to `port`");
                }
                out.port(&here, last);
            }
        }
    }
}

fn policy_peer(out: &mut Errors, peer: &Value, path: &FieldPath) {
    let mut found = 0;
    for field in ["podSelector", "namespaceSelector"] {
        if has(peer, field) {
            found += 1;
            metadata::selector(out, at(peer, field), &path.child(field));
        }
    }
    if has(peer, "ipBlock") {
        found += 1;
        ip_block(out, at(peer, "ipBlock"), &path.child("ipBlock"));
    }
    if found == 0 {
        out.required(path, "must specify a peer");
    } else if found > 1 && has(peer, "ipBlock") {
        out.forbidden(path, "may not specify both ipBlock and another peer");
    }
}

fn ip_block(out: &mut Errors, block: &Value, path: &FieldPath) {
    let whole = text(block, "cidr");
    if whole.is_empty() {
        return out.required(&path.child("cidr"), "");
    }
    let Some((base, bits)) = name::cidr(whole) else {
        return out.invalid(&path.child("cidr"), whole, name::NOT_A_NETWORK);
    };
    for (index, part) in items(block, "except").iter().enumerate() {
        let (part, here) = (part.as_str().unwrap_or_default(), path.child("except").index(index));
        match name::cidr(part) {
            None => out.invalid(&here, part, name::NOT_A_NETWORK),
            Some((inner, inner_bits)) if inner_bits <= bits || !covers(base, bits, inner) => {
                out.invalid(&here, part, "must be a strict subset of `cidr`");
            }
            Some(_) => {}
        }
    }
}

fn covers(base: IpAddr, bits: u8, inner: IpAddr) -> bool {
    let shift = |width: u8| u32::from(width - bits);
    match (base, inner) {
        (IpAddr::V4(base), IpAddr::V4(inner)) => {
            u32::from(base).checked_shr(shift(32)) == u32::from(inner).checked_shr(shift(32))
        }
        (IpAddr::V6(base), IpAddr::V6(inner)) => {
            u128::from(base).checked_shr(shift(128)) == u128::from(inner).checked_shr(shift(128))
        }
        _ => false,
    }
}

const ADDRESS: Rules = Rules {
    validate: |object, out| {
        let own = text(object, "metadata.name");
        out.each(&FieldPath::new("metadata.name"), own, name::ip(own));
        if !has(object, "spec.parentRef") {
            out.required(&FieldPath::new("spec.parentRef"), "");
        }
    },
    validate_update: |new, old, out| {
        out.immutable(&FieldPath::new("spec"), at(new, "spec"), at(old, "spec"), "parentRef")
    },
    ..PLAIN
};

const SERVICE_CIDR: Rules = Rules {
    validate: |object, out| {
        let networks = items(object, "spec.cidrs");
        let path = FieldPath::new("spec.cidrs");
        if networks.is_empty() {
            out.required(&path, "at least one CIDR required");
        }
        if networks.len() > 2 {
            out.invalid(&path, Value::from(networks), "may only hold up to 2 values");
        }
        for (index, network) in networks.iter().enumerate() {
            let network = network.as_str().unwrap_or_default();
            if name::cidr(network).is_none() {
                out.invalid(&path.index(index), network, name::NOT_A_NETWORK);
            }
        }
    },
    ..PLAIN
};

const SLICE: Rules = Rules {
    default: |_, object| {
        for port in items_mut(object, "ports") {
            fill(port, "name", "");
            fill_text(port, "protocol", "TCP");
        }
        for endpoint in items_mut(object, "endpoints") {
            fill_map(endpoint, "conditions");
        }
        fill(object, "endpoints", Value::Null);
        fill(object, "ports", Value::Null);
    },
    validate: |object, out| {
        slice(object, out);
        endpoints(object, out);
    },
    validate_update: |new, old, out| {
        slice(new, out);
        if !same(at(new, "endpoints"), at(old, "endpoints")) {
            endpoints(new, out);
        }
        out.immutable(&FieldPath::root(), new, old, "addressType");
    },
    ..PLAIN
};

fn slice(object: &Value, out: &mut Errors) {
    match text(object, "addressType") {
        "" => out.required(&FieldPath::new("addressType"), ""),
        "IPv4" | "IPv6" | "FQDN" => {}
        other => out.not_supported(&FieldPath::new("addressType"), other, &["FQDN", "IPv4", "IPv6"]),
    }
    let mut names = BTreeSet::new();
    for (index, port) in items(object, "ports").iter().enumerate() {
        let path = FieldPath::new("ports").index(index);
        let own = text(port, "name");
        if !own.is_empty() {
            out.each(&path.child("name"), own, name::label(own));
        }
        if !names.insert(own) {
            out.duplicate(&path.child("name"), own);
        }
        out.one_of(&path, port, "protocol", pod::PROTOCOLS);
        if has(port, "appProtocol") {
            let protocol = text(port, "appProtocol");
            out.each(&path.child("appProtocol"), protocol, name::qualified(protocol));
        }
    }
}

fn full_name(out: &mut Errors, name: &str, path: &FieldPath) {
    let name = name.strip_suffix('.').unwrap_or(name);
    let faults = name::subdomain(name);
    if name.is_empty() {
        out.required(path, "");
    } else if !faults.is_empty() {
        out.invalid(path, name, faults.join(","));
    } else if !name.contains('.') {
        out.invalid(path, name, "should be a domain with at least two segments separated by dots");
    }
}

fn endpoints(object: &Value, out: &mut Errors) {
    let list = items(object, "endpoints");
    let path = FieldPath::new("endpoints");
    if list.len() > 1000 {
        return out.too_many(&path, list.len(), 1000);
    }
    let kind = text(object, "addressType");
    for (index, endpoint) in list.iter().enumerate() {
        let here = path.index(index);
        let addresses = items(endpoint, "addresses");
        let place = here.child("addresses");
        match addresses.len() {
            0 => out.required(&place, "must contain at least 1 address"),
            1..=100 => {}
            many => out.too_many(&place, many, 100),
        }
        for (index, address) in addresses.iter().enumerate() {
            let address = address.as_str().unwrap_or_default();
            match (kind, address.parse::<IpAddr>()) {
                ("IPv4", Ok(IpAddr::V6(_))) => out.invalid(&place, address, "must be an IPv4 address"),
                ("IPv6", Ok(IpAddr::V4(_))) => out.invalid(&place, address, "must be an IPv6 address"),
                ("FQDN", _) => full_name(out, address, &place.index(index)),
                (_, Err(_)) => out.each(&place.index(index), address, name::ip(address)),
                _ => {}
            }
            if kind != "FQDN" && name::ip(address).is_empty() {
                core::endpoint_address(out, address, &place.index(index));
            }
        }
        if has(endpoint, "nodeName") {
            let node = text(endpoint, "nodeName");
            out.each(&here.child("nodeName"), node, name::subdomain(node));
        }
        if has(endpoint, "hostname") {
            let host = text(endpoint, "hostname");
            out.each(&here.child("hostname"), host, name::label(host));
        }
        let zones = items(endpoint, "hints.forZones");
        if zones.len() > 8 {
            out.too_many(&here.child("hints").child("forZones"), zones.len(), 8);
        }
    }
}
