//! Services, their backends, ingresses and network policies.

use std::collections::BTreeSet;

use serde_json::Value;

use super::view::{NONE, UNSET, View, first_three};
use super::{AGE, NAME, Printer, SELECTOR, text};
use crate::strategy as tree;

pub(super) fn printer(kind: &str) -> Option<&'static Printer> {
    Some(match kind {
        "Service" => &SERVICE,
        "Endpoints" => &ENDPOINTS,
        "EndpointSlice" => &SLICE,
        "Ingress" => &INGRESS,
        "IngressClass" => &CLASS,
        "NetworkPolicy" => &POLICY,
        "ServiceCIDR" => &SERVICE_CIDR,
        "IPAddress" => &ADDRESS,
        _ => return None,
    })
}

const SERVICE: Printer = Printer {
    columns: &[
        NAME,
        text("Type", "How the service is reached."),
        text("Cluster-IP", "Address inside the cluster."),
        text("External-IP", "Addresses outside the cluster."),
        text("Port(s)", "Ports and protocols."),
        AGE,
        SELECTOR,
    ],
    cells: |view| {
        let inside = view.items("spec.clusterIPs").first().and_then(Value::as_str).unwrap_or(NONE);
        let ports: Vec<String> = view.items("spec.ports").iter().map(service_port).collect();
        vec![
            view.name(),
            view.text("spec.type").into(),
            inside.into(),
            outside(view).into(),
            if ports.is_empty() { NONE.into() } else { ports.join(",").into() },
            view.age(),
            view.labels("spec.selector").into(),
        ]
    },
};

fn service_port(port: &Value) -> String {
    let (number, protocol) = (tree::int(port, "port").unwrap_or(0), tree::text(port, "protocol"));
    match tree::int(port, "nodePort").unwrap_or(0) {
        0 => format!("{number}/{protocol}"),
        node => format!("{number}:{node}/{protocol}"),
    }
}

fn balancer(view: &View) -> BTreeSet<String> {
    let entries = view.items("status.loadBalancer.ingress").iter();
    let shown = entries.map(|entry| match tree::text(entry, "ip") {
        "" => tree::text(entry, "hostname").to_owned(),
        ip => ip.to_owned(),
    });
    shown.filter(|text| !text.is_empty()).collect()
}

fn outside(view: &View) -> String {
    let own: Vec<String> = view.items("spec.externalIPs").iter().filter_map(Value::as_str).map(str::to_owned).collect();
    match view.text("spec.type") {
        "ClusterIP" | "NodePort" if own.is_empty() => NONE.to_owned(),
        "ClusterIP" | "NodePort" => own.join(","),
        "LoadBalancer" => {
            let all: Vec<String> = balancer(view).into_iter().chain(own).collect();
            if all.is_empty() { "<pending>".to_owned() } else { all.join(",") }
        }
        "ExternalName" => view.text("spec.externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

const ENDPOINTS: Printer =
    Printer {
        columns: &[NAME, text("Endpoints", "Addresses and ports of the backends."), AGE],
        cells: |view| {
            let mut all = Vec::new();
            for subset in view.items("subsets") {
                let addresses = tree::items(subset, "addresses").iter().map(|address| tree::text(address, "ip"));
                let ports = tree::items(subset, "ports");
                if ports.is_empty() {
                    all.extend(addresses.clone().map(str::to_owned));
                }
                for port in ports {
                    let number = tree::int(port, "port").unwrap_or(0);
                    all.extend(addresses.clone().map(|ip| {
                        if ip.contains(':') { format!("[{ip}]:{number}") } else { format!("{ip}:{number}") }
                    }));
                }
            }
            let empty = if view.items("subsets").is_empty() { NONE } else { "" };
            vec![view.name(), first_three(&all, empty).into(), view.age()]
        },
    };

const SLICE: Printer = Printer {
    columns: &[
        NAME,
        text("AddressType", "Sort of the addresses."),
        text("Ports", "Ports of the backends."),
        text("Endpoints", "Addresses of the backends."),
        AGE,
    ],
    cells: |view| {
        let ports: Vec<String> = view
            .items("ports")
            .iter()
            .map(|port| match (tree::int(port, "port"), tree::at(port, "name").as_str()) {
                (Some(number), _) => number.to_string(),
                (None, Some(name)) => name.to_owned(),
                (None, None) => "*".to_owned(),
            })
            .collect();
        let addresses: Vec<String> = view
            .items("endpoints")
            .iter()
            .flat_map(|endpoint| tree::items(endpoint, "addresses"))
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
        vec![
            view.name(),
            view.text("addressType").into(),
            first_three(&ports, UNSET).into(),
            first_three(&addresses, UNSET).into(),
            view.age(),
        ]
    },
};

const INGRESS: Printer = Printer {
    columns: &[
        NAME,
        text("Class", "Class whose controller serves the ingress."),
        text("Hosts", "Host names it answers for."),
        text("Address", "Addresses it is reached at."),
        text("Ports", "Ports that are open."),
        AGE,
    ],
    cells: |view| {
        let rules = view.items("spec.rules");
        let named: Vec<&str> =
            rules.iter().map(|rule| tree::text(rule, "host")).filter(|host| !host.is_empty()).collect();
        let hosts = match named.as_slice() {
            [] => "*".to_owned(),
            [one, two, three, ..] if rules.len() > 3 => format!("{one},{two},{three} + {} more...", rules.len() - 3),
            few => few.join(","),
        };
        let class = view.at("spec.ingressClassName").as_str().unwrap_or(NONE);
        vec![
            view.name(),
            class.into(),
            hosts.into(),
            balancer(view).into_iter().collect::<Vec<_>>().join(",").into(),
            if view.items("spec.tls").is_empty() { "80".into() } else { "80, 443".into() },
            view.age(),
        ]
    },
};

const CLASS: Printer = Printer {
    columns: &[
        NAME,
        text("Controller", "Controller that serves the class."),
        text("Parameters", "Object with further settings."),
        AGE,
    ],
    cells: |view| {
        let parameters = if view.has("spec.parameters") {
            let group =
                view.at("spec.parameters.apiGroup").as_str().map(|group| format!(".{group}")).unwrap_or_default();
            format!("{}{group}/{}", view.text("spec.parameters.kind"), view.text("spec.parameters.name"))
        } else {
            NONE.to_owned()
        };
        vec![view.name(), view.text("spec.controller").into(), parameters.into(), view.age()]
    },
};

const POLICY: Printer = Printer {
    columns: &[NAME, text("Pod-Selector", "Labels of the pods it guards."), AGE],
    cells: |view| vec![view.name(), view.selector("spec.podSelector").into(), view.age()],
};

const SERVICE_CIDR: Printer = Printer {
    columns: &[NAME, text("CIDRs", "Networks that addresses of services come from."), AGE],
    cells: |view| {
        let networks: Vec<&str> = view.items("spec.cidrs").iter().filter_map(Value::as_str).collect();
        vec![view.name(), networks.join(",").into(), view.age()]
    },
};

const ADDRESS: Printer = Printer {
    columns: &[NAME, text("ParentRef", "Object that uses the address.")],
    cells: |view| {
        if !view.has("spec.parentRef") {
            return vec![view.name(), NONE.into()];
        }
        let part = |field: &str| view.text(&format!("spec.parentRef.{field}"));
        let mut parent = part("resource").to_lowercase();
        if !part("group").is_empty() {
            parent = format!("{parent}.{}", part("group"));
        }
        if !part("namespace").is_empty() {
            parent = format!("{parent}/{}", part("namespace"));
        }
        vec![view.name(), format!("{parent}/{}", part("name")).into()]
    },
};
