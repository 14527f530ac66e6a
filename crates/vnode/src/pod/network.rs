//! How a pod in the worker cluster finds the API server and the DNS of the computing cluster.

use serde_json::{Value, json};

use crate::tree::{list, list_mut};

/// The addresses pods use; what is `None` is not offered and left as the worker cluster has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Intranet {
    /// Address and port of the API server.
    pub(crate) api: Option<(String, i64)>,
    /// Address of the DNS server.
    pub(crate) dns: Option<String>,
    /// `cluster.local`.
    pub(crate) domain: String,
}

/// The address and first port of a Service that is offered through a load balancer.
pub(crate) fn offered(service: &Value) -> Result<(String, i64), String> {
    let name = format!("{}/{}", crate::tree::namespace(service), crate::tree::name(service));
    let ingress = list(&service["status"]["loadBalancer"]["ingress"]);
    let first = ingress.first().ok_or_else(|| format!("service {name} has no load balancer ingress"))?;
    let ip = first["ip"]
        .as_str()
        .filter(|ip| !ip.is_empty())
        .ok_or_else(|| format!("service {name} has no load balancer IP"))?;
    let port = list(&service["spec"]["ports"]).first().and_then(|port| port["port"].as_i64());
    Ok((ip.to_owned(), port.ok_or_else(|| format!("service {name} has no port"))?))
}

/// Puts the addresses into a spec.
pub(crate) fn apply(spec: &mut Value, namespace: &str, hostname: &str, intranet: &Intranet) -> Result<(), String> {
    let mut variables = vec![("HOSTNAME", hostname.to_owned())];
    if let Some((address, port)) = &intranet.api {
        variables.push(("KUBERNETES_SERVICE_HOST", address.clone()));
        variables.push(("KUBERNETES_SERVICE_PORT", port.to_string()));
        let domain = format!("kubernetes.default.svc.{}", intranet.domain);
        let alias =
            json!({"ip": address, "hostnames": ["kubernetes.default.svc", "kubernetes.default", "kubernetes", domain]});
        push(spec, "hostAliases", alias);
    }
    for group in ["/containers", "/initContainers"] {
        for container in list_mut(spec, group) {
            for (name, value) in &variables {
                set_variable(container, name, value);
            }
        }
    }
    if let Some(server) = &intranet.dns {
        dns(spec, namespace, server, &intranet.domain);
    }
    Ok(())
}

fn push(object: &mut Value, field: &str, element: Value) {
    match object.get_mut(field).and_then(Value::as_array_mut) {
        Some(list) => list.push(element),
        None => object[field] = json!([element]),
    }
}

fn set_variable(container: &mut Value, name: &str, value: &str) {
    let wanted = json!({"name": name, "value": value});
    let known = list_mut(container, "/env").find(|own| own["name"] == name);
    match known {
        Some(own) => *own = wanted,
        None => push(container, "env", wanted),
    }
}

/// Pods that want the cluster's DNS get that of the computing cluster, beside what they asked for.
fn dns(spec: &mut Value, namespace: &str, server: &str, domain: &str) {
    let policy = spec["dnsPolicy"].as_str().unwrap_or("ClusterFirst");
    let on_host = spec["hostNetwork"] == true;
    if !(policy == "ClusterFirstWithHostNet" || policy == "ClusterFirst" && !on_host) {
        return;
    }
    let own = spec["dnsConfig"].clone();
    let mut servers = vec![json!(server)];
    servers.extend(list(&own["nameservers"]).iter().cloned());
    let mut searches = vec![json!(format!("{namespace}.svc.{domain}")), json!(format!("svc.{domain}")), json!(domain)];
    searches.extend(list(&own["searches"]).iter().cloned());
    let mut options = list(&own["options"]).to_vec();
    if !options.iter().any(|option| option["name"] == "ndots") {
        options.insert(0, json!({"name": "ndots", "value": "5"}));
    }
    spec["dnsPolicy"] = "None".into();
    spec["dnsConfig"] = json!({"nameservers": servers, "searches": searches, "options": options});
}
