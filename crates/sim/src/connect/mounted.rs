//! What a container sees of ConfigMaps and Secrets: variables and files.

use serde_json::Value;

use super::container::Container;
use crate::kubelet::{Mount, all_of, entries, environment, mounts, page_of};
use crate::shell::Files;
use crate::world::{Task, World};

/// All variables of a container.
pub async fn variables(world: &World, container: &Container) -> Vec<(String, String)> {
    let mut all = environment(&container.tree, &container.spec);
    all.extend(all_of(world, &container.tree, &container.spec).await);
    all
}

/// What a container has of files, and what of it is on volumes.
pub struct Disk {
    /// The files somebody works with.
    pub files: Files,
    before: Files,
    volumes: Vec<Mount>,
}

/// The files of a container: those written before, or those it starts with, and what is on its volumes.
pub async fn files(world: &World, container: &Container) -> Disk {
    let key = (container.pod.head().uid.clone(), container.name.clone());
    let known = world.files.lock().get(&key).cloned();
    let filled = world.variables.fill(&container.tree);
    let tree = filled.as_ref().unwrap_or(&container.tree);
    let lists = ["containers", "initContainers", "ephemeralContainers"].into_iter();
    let mut specs = lists.flat_map(|list| tree["spec"][list].as_array().into_iter().flatten());
    let spec = specs.find(|spec| spec["name"] == container.name.as_str()).unwrap_or(&container.spec);
    let mut files = match known {
        Some(files) => files,
        None => first(world, container, spec).await,
    };
    let volumes = mounts(tree, spec);
    world.memory.load(&volumes, &mut files);
    Disk { before: files.clone(), files, volumes }
}

/// The files a container starts with.
async fn first(world: &World, container: &Container, spec: &Value) -> Files {
    let namespace = container.pod.head().namespace.to_string();
    let mut files = Files::of_container(container.pod.name(), &container.pod.ip);
    if spec["securityContext"]["readOnlyRootFilesystem"] == true {
        files.protect();
    }
    if let Some((root, page)) = page_of(spec["image"].as_str().unwrap_or_default()) {
        files.write(&format!("{root}{page}"), b"<html><body><h1>It works!</h1></body></html>\n", false);
    }
    for mount in spec["volumeMounts"].as_array().into_iter().flatten() {
        let path = mount["mountPath"].as_str().unwrap_or_default();
        let volumes = container.tree["spec"]["volumes"].as_array().into_iter().flatten();
        let Some(volume) = volumes.into_iter().find(|volume| volume["name"] == mount["name"]) else { continue };
        let part = mount["subPath"].as_str().unwrap_or_default().trim_matches('/');
        let found = mounted(world, &namespace, volume).await;
        // A part may be a single file, which is then in the place of the directory.
        match found.iter().find(|(name, _)| name == part) {
            Some((_, content)) => files.write(path, content, false),
            None => files.make_directory(path),
        }
        for (name, content) in &found {
            let inner = if part.is_empty() { Some(name.as_str()) } else { name.strip_prefix(&format!("{part}/")) };
            if let Some(inner) = inner {
                files.write(&format!("{path}/{inner}"), content, false);
            }
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

/// Keeps the files of a container, and what is new on its volumes for all who share them.
pub fn keep(world: &World, container: &Container, disk: Disk) {
    let key = (container.pod.head().uid.clone(), container.name.clone());
    world.memory.store(&disk.volumes, &disk.before, &disk.files);
    world.files.lock().insert(key, disk.files);
    // Probes may look at them.
    world.add(Task::Pod, container.pod.item.key());
}
