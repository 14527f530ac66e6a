//! The variables of a container as its kubelet works them out when it starts: links to services, entries
//! of ConfigMaps and Secrets, resources, and `$(NAME)` in values and on the command line.

use std::collections::HashMap;

use atoll_meta::{Gvr, Quantity};
use base64::Engine as _;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::program::downward;
use crate::kind::Kind;
use crate::world::World;

/// Lists of containers in a pod's spec.
const LISTS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];

/// Name and value.
pub type Variable = (String, String);

/// What containers were told when they started, by uid of the pod and name of the container.
#[derive(Debug, Default)]
pub struct Variables {
    told: Mutex<HashMap<(String, String), Vec<Variable>>>,
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    LISTS.into_iter().flat_map(|list| pod["spec"][list].as_array().into_iter().flatten())
}

/// Whether more is needed to know what a container does than its spec; most containers do not ask.
fn asks(container: &Value) -> bool {
    const SIGNS: [&str; 4] = ["$(", "env", "_SERVICE_", "_PORT"];
    let words = ["command", "args"].iter().flat_map(|field| container[*field].as_array().into_iter().flatten());
    let mut words = words.filter_map(Value::as_str);
    let mut mounts = container["volumeMounts"].as_array().into_iter().flatten();
    container["envFrom"].is_array()
        || mounts.any(|mount| mount["subPathExpr"].is_string())
        || words.any(|word| SIGNS.iter().any(|sign| word.contains(sign)))
        || container["env"].as_array().into_iter().flatten().any(|one| {
            one["value"].as_str().is_some_and(|value| value.contains('$'))
                || one["valueFrom"].as_object().is_some_and(|from| !from.contains_key("fieldRef"))
        })
}

impl Variables {
    /// Works out the variables of containers that ask for more than their spec says, once for each.
    pub async fn learn(&self, world: &World, pod: &Value) {
        let uid = text(&pod["metadata"]["uid"]);
        for container in containers(pod).filter(|container| asks(container)) {
            let key = (uid.clone(), text(&container["name"]));
            if !self.told.lock().contains_key(&key) {
                let all = all_of(world, pod, container).await;
                self.told.lock().insert(key, all);
            }
        }
    }

    /// A pod with everything in place that its containers were told; `None` if nothing was.
    pub fn fill(&self, pod: &Value) -> Option<Value> {
        let uid = text(&pod["metadata"]["uid"]);
        let known = self.told.lock();
        let known: HashMap<String, Vec<Variable>> = containers(pod)
            .filter_map(|one| {
                let name = text(&one["name"]);
                Some((name.clone(), known.get(&(uid.clone(), name))?.clone()))
            })
            .collect();
        if known.is_empty() {
            return None;
        }
        let mut filled = pod.clone();
        for list in LISTS {
            for container in filled["spec"][list].as_array_mut().into_iter().flatten() {
                if let Some(variables) = known.get(&text(&container["name"])) {
                    put(pod, container, variables);
                }
            }
        }
        Some(filled)
    }

    /// Forgets a pod that is gone.
    pub fn forget(&self, pod: &str) {
        self.told.lock().retain(|(uid, _), _| uid != pod);
    }
}

/// Writes variables into a container, literally. Fields of the pod are those of now: its address came later.
fn put(pod: &Value, container: &mut Value, variables: &[Variable]) {
    let mut variables = variables.to_vec();
    for one in container["env"].as_array().into_iter().flatten() {
        let path = &one["valueFrom"]["fieldRef"]["fieldPath"];
        if path.is_string() {
            variables.push((text(&one["name"]), downward(pod, path)));
        }
    }
    container["env"] = variables.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
    for field in ["command", "args"] {
        for word in container[field].as_array_mut().into_iter().flatten() {
            *word = expand(word.as_str().unwrap_or_default(), &variables).into();
        }
    }
    for mount in container["volumeMounts"].as_array_mut().into_iter().flatten() {
        if let Some(path) = mount["subPathExpr"].as_str().map(|path| expand(path, &variables)) {
            mount["subPath"] = path.into();
        }
    }
}

/// All variables of a container, later ones counting more.
pub async fn all_of(world: &World, pod: &Value, container: &Value) -> Vec<Variable> {
    let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default();
    let string = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let mut all = links(world, namespace, pod["spec"]["enableServiceLinks"] != false);
    for source in container["envFrom"].as_array().into_iter().flatten() {
        let prefix = source["prefix"].as_str().unwrap_or_default();
        for (field, plural) in [("configMapRef", "configmaps"), ("secretRef", "secrets")] {
            if let Some(name) = source[field]["name"].as_str() {
                let found = entries(world, plural, namespace, name).await;
                all.extend(found.into_iter().map(|(key, value)| (format!("{prefix}{key}"), string(value))));
            }
        }
    }
    for variable in container["env"].as_array().into_iter().flatten() {
        let from = &variable["valueFrom"];
        let value = if let Some(value) = variable["value"].as_str() {
            expand(value, &all)
        } else if from["fieldRef"].is_object() {
            downward(pod, &from["fieldRef"]["fieldPath"])
        } else if from["resourceFieldRef"].is_object() {
            resource(world, pod, container, &from["resourceFieldRef"])
        } else {
            let mut value = String::new();
            for (field, plural) in [("configMapKeyRef", "configmaps"), ("secretKeyRef", "secrets")] {
                let Some(name) = from[field]["name"].as_str() else { continue };
                let found = entries(world, plural, namespace, name).await;
                let found = found.into_iter().find(|(key, _)| from[field]["key"] == key.as_str());
                value = found.map(|(_, value)| string(value)).unwrap_or_default();
            }
            value
        };
        all.push((text(&variable["name"]), value));
    }
    all
}

/// Entries of a ConfigMap or Secret; nothing if it does not exist.
pub async fn entries(world: &World, plural: &str, namespace: &str, name: &str) -> Vec<(String, Vec<u8>)> {
    let gvr = Gvr::new("", "v1", plural);
    let Ok(Some(object)) = world.kubelet.get_opt(&gvr, Some(namespace), name).await else { return Vec::new() };
    let decode = |text: &str| base64::engine::general_purpose::STANDARD.decode(text).unwrap_or_default();
    let mut all = Vec::new();
    for (key, value) in object["data"].as_object().into_iter().flatten() {
        let text = value.as_str().unwrap_or_default();
        all.push((key.clone(), if plural == "secrets" { decode(text) } else { text.as_bytes().to_vec() }));
    }
    for (key, value) in object["binaryData"].as_object().into_iter().flatten() {
        all.push((key.clone(), decode(value.as_str().unwrap_or_default())));
    }
    all
}

/// Variables that lead to services: those of the pod's namespace unless it does not want them, and the API.
fn links(world: &World, namespace: &str, wanted: bool) -> Vec<Variable> {
    let services = world.cache(Kind::Service);
    let api = services.get("default", "kubernetes").filter(|_| namespace != "default" || !wanted);
    let own = if wanted { services.list_in(namespace) } else { Vec::new() };
    api.iter().chain(&own).flat_map(|item| link(&item.tree())).collect()
}

/// The variables that lead to one service.
fn link(service: &Value) -> Vec<Variable> {
    let name = text(&service["metadata"]["name"]).to_uppercase().replace('-', "_");
    let ip = service["spec"]["clusterIP"].as_str().unwrap_or_default();
    let ports = service["spec"]["ports"].as_array().cloned().unwrap_or_default();
    let Some(first) = ports.first().filter(|_| !matches!(ip, "" | "None")) else { return Vec::new() };
    let number = |port: &Value| port["port"].as_i64().unwrap_or_default();
    let mut all = vec![
        (format!("{name}_SERVICE_HOST"), ip.to_owned()),
        (format!("{name}_SERVICE_PORT"), number(first).to_string()),
    ];
    for port in &ports {
        if let Some(own) = port["name"].as_str().filter(|own| !own.is_empty()) {
            let own = own.to_uppercase().replace('-', "_");
            all.push((format!("{name}_SERVICE_PORT_{own}"), number(port).to_string()));
        }
    }
    for (at, port) in ports.iter().enumerate() {
        let protocol = port["protocol"].as_str().unwrap_or("TCP");
        let url = format!("{}://{ip}:{}", protocol.to_lowercase(), number(port));
        if at == 0 {
            all.push((format!("{name}_PORT"), url.clone()));
        }
        let prefix = format!("{name}_PORT_{}_{protocol}", number(port));
        all.push((prefix.clone(), url));
        all.push((format!("{prefix}_PROTO"), protocol.to_lowercase()));
        all.push((format!("{prefix}_PORT"), number(port).to_string()));
        all.push((format!("{prefix}_ADDR"), ip.to_owned()));
    }
    all
}

/// What a container asks for or may use; without a limit it may use what its node has.
fn resource(world: &World, pod: &Value, own: &Value, from: &Value) -> String {
    let named = from["containerName"].as_str();
    let container = containers(pod).find(|one| named.is_some_and(|name| one["name"] == name)).unwrap_or(own);
    let path = from["resource"].as_str().unwrap_or_default();
    let Some((part, name)) = path.split_once('.') else { return String::new() };
    let read = |value: &Value| value.as_str().and_then(|text| Quantity::parse(text).ok());
    let resources = &container["resources"];
    let limit = || read(&resources["limits"][name]);
    let of_node = || {
        let node = world.cache(Kind::Node).get_key(pod["spec"]["nodeName"].as_str()?)?;
        read(&node.tree()["status"]["allocatable"][name])
    };
    let amount =
        if part == "requests" { read(&resources["requests"][name]).or_else(limit) } else { limit().or_else(of_node) };
    let divisor =
        read(&from["divisor"]).map(|divisor| divisor.milli_value()).filter(|units| *units > 0).unwrap_or(1000);
    let Some(amount) = amount else { return "0".to_owned() };
    i128::from(amount.milli_value()).unsigned_abs().div_ceil(i128::from(divisor).unsigned_abs()).to_string()
}

/// Replaces `$(NAME)` by what is known; `$$` is a dollar, and what is not known stays.
fn expand(text: &str, variables: &[Variable]) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            out.push('$');
            rest = after;
        } else if let Some((name, after)) = rest.strip_prefix('(').and_then(|inner| inner.split_once(')')) {
            match variables.iter().rev().find(|(own, _)| own == name) {
                Some((_, value)) => out.push_str(value),
                None => out.push_str(&format!("$({name})")),
            }
            rest = after;
        } else {
            out.push('$');
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_values_are_replaced_where_they_are_known() {
        let known = [("A".to_owned(), "1".to_owned()), ("A".to_owned(), "2".to_owned())];
        let table =
            [("x$(A)y", "x2y"), ("$$(A)", "$(A)"), ("$(B) $A", "$(B) $A"), ("$(A", "$(A"), ("cost: 5$", "cost: 5$")];
        for (text, expected) in table {
            assert_eq!(expand(text, &known), expected, "{text}");
        }
    }

    #[test]
    fn a_service_is_found_by_its_variables() {
        let service = json!({"metadata": {"name": "my-db"}, "spec": {"clusterIP": "10.96.0.7",
            "ports": [{"name": "main", "port": 5432}, {"port": 53, "protocol": "UDP"}]}});
        let all = link(&service);
        let get = |name: &str| all.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str());
        assert_eq!(get("MY_DB_SERVICE_HOST"), Some("10.96.0.7"));
        assert_eq!(get("MY_DB_SERVICE_PORT_MAIN"), Some("5432"));
        assert_eq!(get("MY_DB_PORT"), Some("tcp://10.96.0.7:5432"));
        assert_eq!(get("MY_DB_PORT_53_UDP_PROTO"), Some("udp"));
        assert!(
            link(&json!({"metadata": {"name": "h"}, "spec": {"clusterIP": "None", "ports": [{"port": 1}]}})).is_empty()
        );
    }

    #[test]
    fn only_containers_that_need_it_ask() {
        let table = [
            (json!({"command": ["sleep", "1"]}), false),
            (json!({"command": ["sh", "-c", "env"]}), true),
            (json!({"env": [{"name": "A", "value": "b"}]}), false),
            (json!({"env": [{"name": "A", "valueFrom": {"fieldRef": {}}}]}), false),
            (json!({"env": [{"name": "A", "valueFrom": {"secretKeyRef": {}}}]}), true),
            (json!({"args": ["$(A)"]}), true),
        ];
        for (container, expected) in table {
            assert_eq!(asks(&container), expected, "{container}");
        }
    }
}
