//! What a container sees of ConfigMaps and Secrets: variables and files.

use atoll_meta::Gvr;
use base64::Engine as _;
use serde_json::Value;

use super::container::Container;
use crate::kubelet::{environment, page_of};
use crate::shell::Files;
use crate::world::{Task, World};

/// Entries of a ConfigMap or Secret; nothing if it does not exist.
async fn entries(world: &World, plural: &str, namespace: &str, name: &str) -> Vec<(String, Vec<u8>)> {
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

/// All variables of a container.
pub async fn variables(world: &World, container: &Container) -> Vec<(String, String)> {
    let namespace = &container.pod.head().namespace;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let mut all = Vec::new();
    for source in container.spec["envFrom"].as_array().into_iter().flatten() {
        let prefix = source["prefix"].as_str().unwrap_or_default();
        for (field, plural) in [("configMapRef", "configmaps"), ("secretRef", "secrets")] {
            if let Some(name) = source[field]["name"].as_str() {
                let found = entries(world, plural, namespace, name).await;
                all.extend(found.into_iter().map(|(key, value)| (format!("{prefix}{key}"), text(value))));
            }
        }
    }
    all.extend(environment(&container.tree, &container.spec));
    for variable in container.spec["env"].as_array().into_iter().flatten() {
        for (field, plural) in [("configMapKeyRef", "configmaps"), ("secretKeyRef", "secrets")] {
            let source = &variable["valueFrom"][field];
            let Some(name) = source["name"].as_str() else { continue };
            let found = entries(world, plural, namespace, name).await;
            let value = found.into_iter().find(|(key, _)| source["key"] == key.as_str()).map(|(_, value)| text(value));
            all.push((variable["name"].as_str().unwrap_or_default().to_owned(), value.unwrap_or_default()));
        }
    }
    all
}

/// The files of a container: those written before, or those it starts with.
pub async fn files(world: &World, container: &Container) -> Files {
    let key = (container.pod.head().uid.clone(), container.name.clone());
    let known = world.files.lock().get(&key).cloned();
    if let Some(files) = known {
        return files;
    }
    let namespace = container.pod.head().namespace.to_string();
    let mut files = Files::of_container(container.pod.name(), &container.pod.ip);
    if let Some((root, page)) = page_of(container.spec["image"].as_str().unwrap_or_default()) {
        files.write(&format!("{root}{page}"), b"<html><body><h1>It works!</h1></body></html>\n", false);
    }
    for mount in container.spec["volumeMounts"].as_array().into_iter().flatten() {
        let path = mount["mountPath"].as_str().unwrap_or_default();
        files.make_directory(path);
        let volumes = container.tree["spec"]["volumes"].as_array().into_iter().flatten();
        let Some(volume) = volumes.into_iter().find(|volume| volume["name"] == mount["name"]) else { continue };
        for (name, content) in mounted(world, &namespace, volume).await {
            files.write(&format!("{path}/{name}"), &content, false);
        }
    }
    files
}

async fn mounted(world: &World, namespace: &str, volume: &Value) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    let mut sources: Vec<&Value> = vec![volume];
    sources.extend(volume["projected"]["sources"].as_array().into_iter().flatten());
    for source in sources {
        for (field, plural) in [("configMap", "configmaps"), ("secret", "secrets")] {
            let place = &source[field];
            let Some(name) = place["name"].as_str().or(place["secretName"].as_str()) else { continue };
            let found = entries(world, plural, namespace, name).await;
            match place["items"].as_array() {
                None => all.extend(found),
                Some(items) => all.extend(found.into_iter().filter_map(|(key, content)| {
                    let item = items.iter().find(|item| item["key"] == key.as_str())?;
                    Some((item["path"].as_str()?.to_owned(), content))
                })),
            }
        }
    }
    all
}

/// Keeps the files of a container.
pub fn keep(world: &World, container: &Container, files: &Files) {
    let key = (container.pod.head().uid.clone(), container.name.clone());
    world.files.lock().insert(key, files.clone());
    // Probes may look at them.
    world.add(Task::Pod, container.pod.item.key());
}
