//! What a container sees of ConfigMaps and Secrets: variables and files.

use serde_json::Value;

use super::container::Container;
use crate::kubelet::{all_of, entries, environment, page_of};
use crate::shell::Files;
use crate::world::{Task, World};

/// All variables of a container.
pub async fn variables(world: &World, container: &Container) -> Vec<(String, String)> {
    let mut all = environment(&container.tree, &container.spec);
    all.extend(all_of(world, &container.tree, &container.spec).await);
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
    if container.spec["securityContext"]["readOnlyRootFilesystem"] == true {
        files.protect();
    }
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
