//! What a simulated container answers over HTTP.

use atoll_apiserver::{Body, Visit, response};
use atoll_meta::Status;
use http::Response;
use serde_json::Value;

use super::container;
use crate::kind::Kind;
use crate::world::World;

/// The page a simulated server shows: the name of its pod if that is its purpose, else who was asked for what.
pub fn page(tree: &Value, port: &str, method: &str, path: &str) -> String {
    let text = |field: &str| tree["metadata"][field].as_str().unwrap_or_default();
    let (namespace, pod) = (text("namespace"), text("name"));
    let containers = tree["spec"]["containers"].as_array().into_iter().flatten();
    let mut words = containers.flat_map(|one| one["args"].as_array().into_iter().flatten());
    if words.any(|word| word == "serve-hostname") {
        return pod.to_owned();
    }
    format!("Simulated container of pod {namespace}/{pod}, port {port}\n{method} {path}\n")
}

/// Ports the containers of a pod declare.
pub fn ports(tree: &Value) -> Vec<(Option<String>, u16)> {
    let containers =
        ["containers", "initContainers"].iter().flat_map(|list| tree["spec"][*list].as_array().into_iter().flatten());
    let all = containers.flat_map(|one| one["ports"].as_array().into_iter().flatten());
    all.filter_map(|port| {
        let number = u16::try_from(port["containerPort"].as_u64()?).ok()?;
        Some((port["name"].as_str().map(ToOwned::to_owned), number))
    })
    .collect()
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
    Ok(answer(visit, &pod.item.tree(), &port))
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
    Ok(answer(visit, &pod.item.tree(), &port))
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

fn answer(visit: &Visit, tree: &Value, port: &str) -> Response<Body> {
    let path = if visit.target.rest.is_empty() { "/" } else { &visit.target.rest };
    response(200, "text/plain", page(tree, port, visit.request.method().as_str(), path))
}
