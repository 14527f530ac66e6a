//! The Secrets with the kubeconfigs of bindings: a change is noticed when it happens.

use std::collections::HashMap;

use atoll_api::kubeocean::ClusterBinding;
use atoll_runtime::{Endpoint, Informer, Queue, Selection};
use parking_lot::Mutex;
use serde_json::Value;

use crate::resource;

/// The Secrets that are followed, by binding, with namespace and name.
#[derive(Default)]
pub(crate) struct Secrets {
    followed: Mutex<HashMap<String, ((String, String), Informer)>>,
}

impl Secrets {
    /// Follows the Secret of a binding, which is looked at again when that changes, comes or goes.
    pub(crate) fn follow(&self, computing: &Endpoint, binding: &ClusterBinding, queue: &Queue<String>) {
        let reference = &binding.spec.secret_ref;
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        let (name, place) = (text(&binding.metadata.name), (text(&reference.namespace), text(&reference.name)));
        let mut followed = self.followed.lock();
        if followed.get(&name).is_some_and(|(known, _)| *known == place) {
            return;
        }
        let selection =
            Selection { namespace: Some(place.0.clone()), query: format!("fieldSelector=metadata.name%3D{}", place.1) };
        let (sink, key) = (queue.clone(), name.clone());
        let look = move |_| sink.add(key.clone());
        let informer = Informer::start_slim(computing.clone(), resource::secrets(), selection, without_data, look);
        followed.insert(name, (place, informer));
    }

    /// Stops following the Secret of a binding that is gone.
    pub(super) fn forget(&self, binding: &str) {
        self.followed.lock().remove(binding);
    }

    /// Stops following all of them.
    pub(super) fn clear(&self) {
        self.followed.lock().clear();
    }
}

/// Only that it changed is of interest; what it holds is read when it is needed.
fn without_data(secret: &mut Value) {
    if let Some(map) = secret.as_object_mut() {
        map.retain(|field, _| ["apiVersion", "kind", "metadata"].contains(&field.as_str()));
    }
    crate::trim::bare(secret);
}
