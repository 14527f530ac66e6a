//! Follows the ConfigMaps of a namespace with kube-rs' watcher and reflector, one JSON line per event.
//!
//!     reflector --kubeconfig FILE --namespace NS
//!
//! Lines have `event` (added, updated, deleted, synced, watch-error), `name` and `resourceVersion`, as those of
//! `informer` do. It never gives up.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::watcher::{Config, Event};
use kube::runtime::{WatchStreamExt as _, reflector, watcher};
use kube::{Api, Client, ResourceExt as _};

type Failure = Box<dyn std::error::Error>;

/// What was told of, by name.
#[derive(Default)]
struct Told {
    versions: BTreeMap<String, String>,
    /// What the list that is just coming holds.
    listed: BTreeSet<String>,
}

impl Told {
    fn seen(&mut self, object: &ConfigMap) {
        let (name, version) = (object.name_any(), object.resource_version().unwrap_or_default());
        match self.versions.insert(name.clone(), version.clone()) {
            None => print("added", &name, &version),
            Some(before) if before != version => print("updated", &name, &version),
            Some(_) => {}
        }
    }

    fn gone(&mut self, name: &str) {
        if let Some(version) = self.versions.remove(name) {
            print("deleted", name, &version);
        }
    }

    fn take(&mut self, event: Event<ConfigMap>, kept: usize) {
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(object) => {
                self.listed.insert(object.name_any());
                self.seen(&object);
            }
            Event::InitDone => {
                // What went while nobody looked is what a new list lacks.
                let lost: Vec<String> =
                    self.versions.keys().filter(|name| !self.listed.contains(*name)).cloned().collect();
                lost.iter().for_each(|name| self.gone(name));
                println!("{}", serde_json::json!({"event": "synced", "objects": kept}));
            }
            Event::Apply(object) => self.seen(&object),
            Event::Delete(object) => self.gone(&object.name_any()),
        }
    }
}

fn print(event: &str, name: &str, version: &str) {
    println!(
        "{}",
        serde_json::json!({"event": event, "resource": "configmaps", "name": name, "resourceVersion": version})
    );
}

fn argument(name: &str) -> Result<String, Failure> {
    let mut all = std::env::args();
    all.find(|own| own == name).and_then(|_| all.next()).ok_or_else(|| format!("{name} is missing").into())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let file = Kubeconfig::read_from(argument("--kubeconfig")?)?;
    let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    let api: Api<ConfigMap> = Api::namespaced(Client::try_from(config)?, &argument("--namespace")?);
    let (store, writer) = reflector::store();
    let events = watcher(api, Config::default()).default_backoff().reflect(writer);
    let mut events = pin!(events);
    let mut told = Told::default();
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => told.take(event, store.state().len()),
            Err(error) => println!("{}", serde_json::json!({"event": "watch-error", "error": error.to_string()})),
        }
    }
    Ok(())
}
