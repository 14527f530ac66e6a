//! Services of chosen namespaces, and where their traffic goes, copied into the mount namespace.
//!
//! The original has a field for this and nothing behind it. Copies have no selector: their
//! endpoints are those the computing cluster found.

use std::sync::Arc;
use std::time::Duration;

use atoll_api::kubeocean_names::{annotation, label, physical};
use atoll_meta::{Gvr, Status};
use atoll_runtime::{Cache, Informer, Selection};
use serde_json::{Value, json};

use crate::binding::{Binding, OWNER};
use crate::feature::Feature;
use crate::pod::marks;
use crate::resource;
use crate::syncer::{Computing, Queues, Syncer, is_ours};
use crate::tree;
use crate::worker::Worker;

const SERVICE_NAME: &str = "kubernetes.io/service-name";
const SLICE_MANAGER: &str = "endpointslice.kubernetes.io/managed-by";

/// What is looked at: a Service or an EndpointSlice, by namespace and name above.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Traffic {
    slice: bool,
    key: String,
}

impl Traffic {
    fn gvr(&self) -> Gvr {
        if self.slice { slices() } else { resource::services() }
    }
}

fn slices() -> Gvr {
    Gvr::new("discovery.k8s.io", "v1", "endpointslices")
}

/// Services and slices of both sides.
#[derive(Default)]
pub(crate) struct Traffics {
    originals: Vec<(String, [Cache; 2])>,
    copies: Option<[Cache; 2]>,
}

impl Traffics {
    pub(crate) fn follow(
        computing: &Computing,
        worker: &Worker,
        binding: &Binding,
        queues: &Queues,
    ) -> (Self, Vec<Informer>) {
        let (above, below, owner) = (&computing.endpoint, &worker.endpoint, &computing.owner);
        let mut out = Self::default();
        let mut informers = Vec::new();
        if worker.withheld.contains(&Feature::Services) {
            return (out, informers);
        }
        for namespace in &binding.service_namespaces {
            let caches = [false, true].map(|slice| {
                let gvr = if slice { slices() } else { resource::services() };
                let sink = queues.clone();
                let selection = Selection { namespace: Some(namespace.clone()), query: String::new() };
                let informer = Informer::start(above.clone(), gvr, selection, move |change| {
                    sink.traffic.add(Traffic { slice, key: change.item().key() });
                });
                let cache = informer.cache.clone();
                informers.push(informer);
                cache
            });
            out.originals.push((namespace.clone(), caches));
        }
        // Also without namespaces: what an earlier list left must go.
        out.copies = Some([false, true].map(|slice| {
            let gvr = if slice { slices() } else { resource::services() };
            let sink = queues.clone();
            let selection = Selection {
                namespace: Some(binding.mount_namespace.clone()),
                query: format!("labelSelector={OWNER}%3D{owner}"),
            };
            let informer = Informer::start(below.clone(), gvr, selection, move |change| {
                original_of(&change.item().tree()).into_iter().for_each(|key| sink.traffic.add(Traffic { slice, key }));
            });
            let cache = informer.cache.clone();
            informers.push(informer);
            cache
        }));
        (out, informers)
    }

    fn original(&self, traffic: &Traffic) -> Option<Value> {
        let (namespace, name) = tree::split(&traffic.key);
        let (_, caches) = self.originals.iter().find(|(own, _)| own == namespace)?;
        caches[usize::from(traffic.slice)].get(namespace, name).map(|item| item.tree())
    }

    fn copies(&self) -> impl Iterator<Item = (bool, atoll_runtime::Item)> {
        let caches = self.copies.iter().flatten().enumerate();
        caches.flat_map(|(index, cache)| cache.list().into_iter().map(move |item| (index == 1, item)))
    }
}

fn original_of(copy: &Value) -> Option<String> {
    let name = tree::annotation(copy, annotation::VIRTUAL_NAME);
    (!name.is_empty()).then(|| tree::key(tree::annotation(copy, annotation::VIRTUAL_NAMESPACE), name))
}

/// The copy of a Service: its ports and nothing that only the computing cluster can honour.
fn service(original: &Value, binding: &Binding, owner: &str) -> Value {
    let mut out = skeleton(original, binding, owner, "v1", "Service");
    let ports: Vec<Value> = tree::list(&original["spec"]["ports"])
        .iter()
        .map(|port| {
            let mut port = port.clone();
            port.as_object_mut().map(|map| map.remove("nodePort"));
            port
        })
        .collect();
    out["spec"] = json!({"type": "ClusterIP", "ports": ports});
    if original["spec"]["clusterIP"] == "None" {
        out["spec"]["clusterIP"] = "None".into();
    }
    for field in ["sessionAffinity", "sessionAffinityConfig", "publishNotReadyAddresses"] {
        if !original["spec"][field].is_null() {
            out["spec"][field] = original["spec"][field].clone();
        }
    }
    out
}

/// The copy of an EndpointSlice: the same addresses, for the copy of its Service.
fn slice(original: &Value, binding: &Binding, owner: &str) -> Value {
    let mut out = skeleton(original, binding, owner, "discovery.k8s.io/v1", "EndpointSlice");
    out["addressType"] = original["addressType"].clone();
    out["ports"] = original["ports"].clone();
    let endpoints: Vec<Value> = tree::list(&original["endpoints"])
        .iter()
        .map(|endpoint| {
            let mut endpoint = endpoint.clone();
            // Nodes and pods of these names mean nothing below.
            for field in ["nodeName", "targetRef"] {
                endpoint.as_object_mut().map(|map| map.remove(field));
            }
            endpoint
        })
        .collect();
    out["endpoints"] = endpoints.into();
    let service = tree::label(original, SERVICE_NAME);
    out["metadata"]["labels"][SERVICE_NAME] = physical(tree::namespace(original), service).into();
    out["metadata"]["labels"][SLICE_MANAGER] = "kubeocean".into();
    out
}

fn skeleton(original: &Value, binding: &Binding, owner: &str, api_version: &str, kind: &str) -> Value {
    let (namespace, name) = (tree::namespace(original), tree::name(original));
    let labels: tree::Strings = marks(binding, owner).into();
    json!({
        "apiVersion": api_version, "kind": kind,
        "metadata": {
            "name": physical(namespace, name), "namespace": binding.mount_namespace, "labels": labels,
            "annotations": {annotation::VIRTUAL_NAME: name, annotation::VIRTUAL_NAMESPACE: namespace},
        },
    })
}

/// What of a copy is ours to say.
fn said(object: &Value, slice: bool) -> Value {
    if slice {
        return json!([object["endpoints"], object["ports"], object["metadata"]["labels"]]);
    }
    json!([object["spec"]["ports"], object["spec"]["sessionAffinity"], object["spec"]["publishNotReadyAddresses"]])
}

impl Syncer {
    /// Brings one Service or slice and its copy in line.
    pub(crate) async fn traffic(self: Arc<Self>, traffic: Traffic) -> Result<Option<Duration>, Status> {
        let binding = self.binding();
        let (namespace, name) = tree::split(&traffic.key);
        let (gvr, mount, below) = (traffic.gvr(), Some(binding.mount_namespace.as_str()), physical(namespace, name));
        let original = self.traffics.original(&traffic).filter(|original| {
            // The API server of a computing cluster is reached otherwise.
            let own = if traffic.slice { tree::label(original, SERVICE_NAME) } else { tree::name(original) };
            !tree::is_deleting(original)
                && !binding.deleting
                && !own.is_empty()
                && tree::key(namespace, own) != "default/kubernetes"
        });
        let there = self.below().get_opt(&gvr, mount, &below).await?;
        let ours = there.as_ref().is_none_or(|there| {
            is_ours(there, &self.computing.owner) && original_of(there).as_ref() == Some(&traffic.key)
        });
        match (original, there) {
            (_, Some(_)) if !ours => {
                Err(Status::internal(format!("{} {below} in the worker cluster is not ours", gvr.resource)))
            }
            (None, None) => Ok(None),
            // Another binding to the same namespace has it.
            (None, Some(there)) if tree::label(&there, label::CLUSTER_BINDING) != binding.name => Ok(None),
            (None, Some(there)) => {
                self.below().delete(&gvr, mount, &below, &tree::only(tree::uid(&there))).await?;
                Ok(None)
            }
            (Some(original), there) => {
                let make = if traffic.slice { slice } else { service };
                let wanted = make(&original, &binding, &self.computing.owner);
                self.write_traffic(&traffic, wanted, there).await.map(|()| None)
            }
        }
    }

    async fn write_traffic(&self, traffic: &Traffic, mut wanted: Value, there: Option<Value>) -> Result<(), Status> {
        let (gvr, mount, name) = (traffic.gvr(), tree::namespace(&wanted).to_owned(), tree::name(&wanted).to_owned());
        let Some(there) = there else {
            return self.below().create(&gvr, Some(&mount), &wanted).await.map(drop);
        };
        let mut complete = there.clone();
        if traffic.slice {
            complete["endpoints"] = wanted["endpoints"].take();
            complete["ports"] = wanted["ports"].take();
            // It stays the binding's that made it.
            wanted["metadata"]["labels"][label::CLUSTER_BINDING] =
                there["metadata"]["labels"][label::CLUSTER_BINDING].clone();
            complete["metadata"]["labels"] = wanted["metadata"]["labels"].take();
        } else {
            for (key, value) in wanted["spec"].as_object().into_iter().flatten() {
                complete["spec"][key] = value.clone();
            }
        }
        if said(&complete, traffic.slice) == said(&there, traffic.slice) {
            return Ok(());
        }
        self.below().update(&gvr, Some(&mount), &name, &complete).await.map(drop)
    }

    /// Looks at all of them: at the beginning, and when leaving.
    pub(crate) fn seed_traffic(&self) {
        for (_, caches) in &self.traffics.originals {
            for (index, cache) in caches.iter().enumerate() {
                cache.keys().into_iter().for_each(|key| self.queues.traffic.add(Traffic { slice: index == 1, key }));
            }
        }
        for (slice, item) in self.traffics.copies() {
            original_of(&item.tree()).into_iter().for_each(|key| self.queues.traffic.add(Traffic { slice, key }));
        }
    }

    pub(crate) fn leave_services(&self, left: &mut Vec<String>) {
        let binding = self.binding();
        for (slice, item) in self.traffics.copies() {
            if item.object.head.label(label::CLUSTER_BINDING) == Some(&binding.name) && !item.object.head.deleting {
                left.push(format!(
                    "{} {} in the worker cluster",
                    if slice { "EndpointSlice" } else { "Service" },
                    item.key()
                ));
            }
        }
        self.seed_traffic();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_have_no_selector_and_the_addresses_of_the_original() {
        let binding = Binding { name: "b".into(), mount_namespace: "mount".into(), ..Binding::default() };
        let original = json!({
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"type": "NodePort", "clusterIP": "10.0.0.9", "selector": {"app": "web"}, "ports": [{"port": 80, "nodePort": 30080}]},
        });
        let copy = service(&original, &binding, "me");
        assert_eq!(copy["spec"], json!({"type": "ClusterIP", "ports": [{"port": 80}]}));
        assert_eq!(original_of(&copy).as_deref(), Some("shop/web"));
        let endpoints = json!({
            "metadata": {"name": "web-x", "namespace": "shop", "labels": {SERVICE_NAME: "web"}}, "addressType": "IPv4", "ports": [{"port": 80}],
            "endpoints": [{"addresses": ["10.2.0.7"], "nodeName": "vnode", "targetRef": {"kind": "Pod"}, "conditions": {"ready": true}}],
        });
        let copy = slice(&endpoints, &binding, "me");
        assert_eq!(tree::label(&copy, SERVICE_NAME), physical("shop", "web"));
        assert_eq!(copy["endpoints"], json!([{"addresses": ["10.2.0.7"], "conditions": {"ready": true}}]));
        let headless =
            json!({"metadata": {"name": "db", "namespace": "shop"}, "spec": {"clusterIP": "None", "ports": []}});
        assert_eq!(service(&headless, &binding, "me")["spec"]["clusterIP"], "None");
    }
}
