//! Endpoints, the old way to list the backends of a Service.

use std::net::IpAddr;

use atoll_meta::FieldPath;
use serde_json::Value;

use crate::strategy::errors::Errors;
use crate::strategy::tree::{at, fill_text, has, int, items, items_mut, same, text};
use crate::strategy::{PLAIN, Rules, name, pod};

pub(super) const ENDPOINTS: Rules = Rules {
    default: |_, object| {
        for subset in items_mut(object, "subsets") {
            for port in items_mut(subset, "ports") {
                fill_text(port, "protocol", "TCP");
            }
        }
    },
    validate: subsets,
    validate_update: |new, old, out| {
        if !same(at(new, "subsets"), at(old, "subsets")) {
            subsets(new, out);
        }
    },
    ..PLAIN
};

fn subsets(object: &Value, out: &mut Errors) {
    for (index, subset) in items(object, "subsets").iter().enumerate() {
        let path = FieldPath::new("subsets").index(index);
        if items(subset, "addresses").is_empty() && items(subset, "notReadyAddresses").is_empty() {
            out.required(&path, "must specify `addresses` or `notReadyAddresses`");
        }
        for list in ["addresses", "notReadyAddresses"] {
            for (index, entry) in items(subset, list).iter().enumerate() {
                let here = path.child(list).index(index);
                let host = text(entry, "hostname");
                if !host.is_empty() {
                    out.each(&here.child("hostname"), host, name::label(host));
                }
                if has(entry, "nodeName") {
                    let node = text(entry, "nodeName");
                    out.each(&here.child("nodeName"), node, name::subdomain(node));
                }
                address(out, text(entry, "ip"), &here.child("ip"));
            }
        }
        let ports = items(subset, "ports");
        for (index, entry) in ports.iter().enumerate() {
            port(out, entry, ports.len() > 1, &path.child("ports").index(index));
        }
    }
}

/// An address traffic may be sent to.
pub(crate) fn address(out: &mut Errors, text: &str, path: &FieldPath) {
    let faults = name::ip(text);
    let Ok(address) = text.parse::<IpAddr>() else {
        out.each(path, text, faults);
        return out.invalid(path, text, "must be a valid IP address");
    };
    let (link_local, link_multicast) = match address {
        IpAddr::V4(four) => (four.is_link_local(), four.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(six) => (six.is_unicast_link_local(), six.segments()[0] & 0xff0f == 0xff02),
    };
    if address.is_unspecified() {
        out.invalid(path, text, format!("may not be unspecified ({text})"));
    }
    if address.is_loopback() {
        out.invalid(path, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)");
    }
    if link_local {
        out.invalid(path, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)");
    }
    if link_multicast {
        out.invalid(path, text, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)");
    }
}

fn port(out: &mut Errors, port: &Value, many: bool, path: &FieldPath) {
    let own = text(port, "name");
    if !own.is_empty() {
        out.each(&path.child("name"), own, name::label(own));
    } else if many {
        out.required(&path.child("name"), "");
    }
    out.port(&path.child("port"), int(port, "port").unwrap_or(0));
    out.one_of(path, port, "protocol", pod::PROTOCOLS);
    if has(port, "appProtocol") {
        let protocol = text(port, "appProtocol");
        out.each(&path.child("appProtocol"), protocol, name::qualified(protocol));
    }
}
