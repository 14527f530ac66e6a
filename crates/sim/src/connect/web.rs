//! What a simulated container answers over HTTP.

use atoll_apiserver::{Body, Visit, response};
use atoll_meta::Status;
use http::Response;
use serde_json::Value;

use super::{container, guestbook};
use crate::kind::Kind;
use crate::kubelet::{agnhost_ports, agnhost_program};
use crate::world::World;

/// The page a simulated server shows: what its program is known to say, else who was asked for what.
pub fn page(tree: &Value, port: &str, method: &str, path: &str) -> String {
    let text = |field: &str| tree["metadata"][field].as_str().unwrap_or_default();
    let (namespace, pod) = (text("namespace"), text("name"));
    let number: u16 = port.parse().unwrap_or_default();
    let containers = || tree["spec"]["containers"].as_array().into_iter().flatten();
    let listening = |one: &&Value| agnhost_ports(one).is_some_and(|list| list.iter().any(|(own, _)| *own == number));
    let server = containers().find(listening).or_else(|| containers().next()).unwrap_or(&Value::Null);
    let (plain, query) = path.split_once('?').unwrap_or((path, ""));
    let plain = plain.trim_matches('/').to_lowercase();
    match (agnhost_program(server).as_deref(), plain.as_str()) {
        (Some("serve-hostname"), _) | (Some("netexec"), "hostname") => return pod.to_owned(),
        (Some("netexec"), "healthz") => return "ok".to_owned(),
        (Some("netexec"), "echo") => return query.strip_prefix("msg=").unwrap_or_default().to_owned(),
        _ => {}
    }
    if plain == "data.json" && server["image"].as_str().unwrap_or_default().contains("nautilus") {
        return "{\n\"image\": \"nautilus.jpg\"\n}".to_owned();
    }
    format!("Simulated container of pod {namespace}/{pod}, port {port}\n{method} {path}\n")
}

/// Whether a container of a pod listens on a port: where its program is known to, else where it declares,
/// and without a declaration anywhere.
pub fn listens(tree: &Value, port: u16, protocol: &str) -> bool {
    let containers = tree["spec"]["containers"].as_array().into_iter().flatten();
    containers.into_iter().any(|one| match agnhost_ports(one) {
        Some(known) => known.contains(&(port, protocol)),
        None => {
            let declared = one["ports"].as_array().map(Vec::as_slice).unwrap_or_default();
            let fits =
                |own: &Value| own["containerPort"] == port && own["protocol"].as_str().unwrap_or("TCP") == protocol;
            declared.is_empty() || declared.iter().any(fits)
        }
    })
}

/// The port of a pod behind one of its node.
pub fn behind(tree: &Value, port: u16, protocol: &str) -> Option<u16> {
    let containers = tree["spec"]["containers"].as_array().into_iter().flatten();
    let mut all = containers.flat_map(|one| one["ports"].as_array().into_iter().flatten());
    let found = all.find(|own| own["hostPort"] == port && own["protocol"].as_str().unwrap_or("TCP") == protocol)?;
    u16::try_from(found["containerPort"].as_u64()?).ok()
}

/// `pods/proxy`: a request passed to a pod; `name:port` names the port.
pub fn serve_pod(world: &World, visit: &Visit) -> Result<Response<Body>, Status> {
    let mut target = visit.target.clone();
    let (name, port) = split(&visit.target.name);
    target.name = name;
    let pod = container::pod(world, &target)?;
    if pod.ready.is_none() && pod.ip.is_empty() {
        return Err(Status::unavailable(format!("pod {} has no address", target.name)));
    }
    Ok(answer(world, visit, &pod.item.tree(), &port))
}

/// `services/proxy`: a request passed to one of the pods behind a service.
pub fn serve_service(world: &World, visit: &Visit) -> Result<Response<Body>, Status> {
    let (name, port) = split(&visit.target.name);
    let namespace = &visit.target.namespace;
    let item =
        world.cache(Kind::Service).get(namespace, &name).ok_or_else(|| Status::not_found("", "services", &name))?;
    let interests = world.interests.read();
    let book = world.book.read();
    let mut ready = book.pods().filter(|pod| {
        pod.ready.is_some()
            && !pod.head().deleting
            && *pod.head().namespace == **namespace
            && interests.services(pod.head()).any(|own| own == name)
    });
    let Some(pod) = ready.next() else {
        return Err(Status::unavailable(format!("no endpoints available for service {:?}", item.object.head.name)));
    };
    Ok(answer(world, visit, &pod.item.tree(), &port))
}

/// `scheme:name:port`, `name:port` or `name`.
fn split(text: &str) -> (String, String) {
    let parts: Vec<&str> = text.split(':').collect();
    match parts.as_slice() {
        [name] => ((*name).to_owned(), "80".to_owned()),
        [name, port] => ((*name).to_owned(), (*port).to_owned()),
        [_, name, port, ..] => ((*name).to_owned(), if port.is_empty() { "80".to_owned() } else { (*port).to_owned() }),
        [] => (String::new(), String::new()),
    }
}

fn answer(world: &World, visit: &Visit, tree: &Value, port: &str) -> Response<Body> {
    let path = if visit.target.rest.is_empty() { "/" } else { &visit.target.rest };
    let query = visit.request.uri().query().unwrap_or_default();
    let path = if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") };
    response(200, "text/plain", ask(world, tree, port, visit.request.method().as_str(), &path))
}

/// What a pod says to a request: what it was told before, if that is what it is for, or its page.
pub fn ask(world: &World, tree: &Value, port: &str, method: &str, path: &str) -> String {
    let (plain, query) = path.split_once('?').unwrap_or((path, ""));
    let namespace = tree["metadata"]["namespace"].as_str().unwrap_or_default();
    let mut containers = tree["spec"]["containers"].as_array().into_iter().flatten();
    let keeps = |one: &Value| agnhost_program(one).as_deref() == Some("guestbook");
    if plain.trim_matches('/') == "guestbook" && containers.any(keeps) {
        return guestbook::answer(world, namespace, query);
    }
    page(tree, port, method, path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(containers: Value) -> Value {
        json!({"metadata": {"namespace": "d", "name": "p"}, "spec": {"containers": containers}})
    }

    #[test]
    fn containers_listen_where_they_are_known_or_say_to() {
        let test = json!({"image": "x/agnhost:2", "args": ["netexec", "--http-port=8090", "--udp-port=-1"]});
        let declared = json!({"image": "web", "ports": [{"containerPort": 8080}]});
        let table = [
            (test.clone(), 8090, true),
            (test, 80, false),
            (declared.clone(), 8080, true),
            (declared, 80, false),
            (json!({"image": "web"}), 1234, true),
        ];
        for (container, port, expected) in table {
            assert_eq!(listens(&pod(json!([container])), port, "TCP"), expected, "{container} {port}");
        }
    }

    #[test]
    fn known_programs_say_what_they_are_for() {
        let test = pod(json!([{"image": "web"}, {"image": "x/agnhost:2", "args": ["netexec", "--http-port=8090"]}]));
        assert_eq!(page(&test, "8090", "GET", "/hostname"), "p");
        assert_eq!(page(&test, "8090", "GET", "/echo?msg=hi"), "hi");
        assert!(page(&test, "80", "GET", "/hostname").contains("pod d/p, port 80"));
        let picture = pod(json!([{"image": "x/nautilus:1.7"}]));
        assert!(page(&picture, "80", "GET", "/data.json").contains("nautilus.jpg"));
    }
}
