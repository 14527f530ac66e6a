//! Instances elsewhere: a Karmada or Kubernetes API server reached by the kubeconfig in a Secret of `root`.

use std::collections::HashMap;

use atoll_apiserver::Identity;
use atoll_meta::{Gvr, Status};
use atoll_runtime::Endpoint;
use base64::Engine as _;
use kube::config::{KubeConfigOptions, Kubeconfig};
use parking_lot::Mutex;
use serde_json::Value;

use crate::context::{AGENT, Core};
use crate::kinds::INSTANCE;

/// More ways than this are not remembered.
const REMEMBERED: usize = 256;

/// Ways to external instances, by instance, revision of the Secret and caller.
#[derive(Default)]
pub struct Externals {
    known: Mutex<HashMap<(String, String, String), Endpoint>>,
}

impl Externals {
    /// The way to an external instance, acting as the caller there; `None` when there is no such instance.
    pub async fn endpoint(&self, core: &Core, name: &str, identity: &Identity) -> Result<Option<Endpoint>, Status> {
        let root = core.own_endpoint("root");
        let Some(instance) = root.get_opt(&INSTANCE.gvr(), None, name).await? else { return Ok(None) };
        if instance["spec"]["type"] != "External" {
            return Ok(None);
        }
        let reference = &instance["spec"]["kubeconfigSecretRef"];
        let text = |key: &str| reference[key].as_str().unwrap_or_default();
        let secret = root.get(&Gvr::new("", "v1", "secrets"), Some(text("namespace")), text("name")).await?;
        let revision = secret["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
        let key = (name.to_owned(), revision, format!("{} {}", identity.user, identity.groups.join(" ")));
        if let Some(known) = self.known.lock().get(&key) {
            return Ok(Some(known.clone()));
        }
        let mut config = config(&secret, reference["key"].as_str().unwrap_or("kubeconfig")).await?;
        if !identity.is_master() {
            // The external server decides what the caller may do there.
            config.auth_info.impersonate = Some(identity.user.clone());
            config.auth_info.impersonate_groups = Some(identity.groups.clone());
        }
        let endpoint = Endpoint::remote(name, config, AGENT)?;
        let mut known = self.known.lock();
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(key, endpoint.clone());
        Ok(Some(endpoint))
    }
}

/// What a kubeconfig in a Secret says.
pub async fn config(secret: &Value, key: &str) -> Result<kube::Config, Status> {
    let wrong = |why: String| Status::bad_request(format!("the kubeconfig of the instance cannot be used: {why}"));
    let data = secret["data"][key].as_str().ok_or_else(|| wrong(format!("the Secret has no {key}")))?;
    let bytes = base64::engine::general_purpose::STANDARD.decode(data).map_err(|error| wrong(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|error| wrong(error.to_string()))?;
    let kubeconfig = Kubeconfig::from_yaml(&text).map_err(|error| wrong(error.to_string()))?;
    refuse_programs(&kubeconfig)?;
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    config.map_err(|error| wrong(error.to_string()))
}

/// A kubeconfig may name programs and files; one that somebody stored in the hub must not use those of the hub.
fn refuse_programs(kubeconfig: &Kubeconfig) -> Result<(), Status> {
    let wrong = |what: &str| Err(Status::bad_request(format!("the kubeconfig of the instance must not use {what}")));
    for named in &kubeconfig.auth_infos {
        let Some(info) = &named.auth_info else { continue };
        if info.exec.is_some() || info.auth_provider.is_some() {
            return wrong("programs to get credentials");
        }
        if info.client_certificate.is_some() || info.client_key.is_some() || info.token_file.is_some() {
            return wrong("files");
        }
    }
    let files = kubeconfig
        .clusters
        .iter()
        .any(|named| named.cluster.as_ref().is_some_and(|cluster| cluster.certificate_authority.is_some()));
    if files { wrong("files") } else { Ok(()) }
}
