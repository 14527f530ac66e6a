//! Instances elsewhere: a Karmada or Kubernetes API server reached by the kubeconfig in a Secret of `root`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use atoll_apiserver::Identity;
use atoll_meta::{Gvr, Status};
use atoll_runtime::{BodyStream, Denied, Endpoint, Transport};
use base64::Engine as _;
use bytes::Bytes;
use kube::config::{KubeConfigOptions, Kubeconfig};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::context::{AGENT, Core};
use crate::kinds::INSTANCE;
use crate::rules::paused;

/// More ways than this are not remembered.
const REMEMBERED: usize = 256;

/// How long an instance that did not answer is not asked again while somebody waits.
const SILENT: Duration = Duration::from_secs(10);

/// Ways to external instances, by instance, revision of the Secret, entry in it and caller.
pub struct Externals {
    /// Where no way leads, whatever a kubeconfig says.
    pub denied: Denied,
    known: Mutex<HashMap<[String; 4], Endpoint>>,
    /// Instances that did not answer, and when.
    silent: Mutex<HashMap<String, Instant>>,
}

impl Externals {
    /// None is known yet.
    pub fn new(denied: Denied) -> Self {
        Self { denied, known: Mutex::default(), silent: Mutex::default() }
    }

    /// The way to an external instance, acting as the caller there; `None` when there is no such instance.
    pub async fn endpoint(&self, core: &Core, name: &str, identity: &Identity) -> Result<Option<Endpoint>, Status> {
        let Some((secret, entry)) = secret(core, name).await? else { return Ok(None) };
        let revision = secret["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
        // Whoever has all rights here uses the credentials of the Secret as they are.
        let who =
            if identity.is_master() { String::new() } else { json!([identity.user, identity.groups]).to_string() };
        let key = [name.to_owned(), revision, entry.clone(), who];
        if let Some(known) = self.known.lock().get(&key) {
            return Ok(Some(known.clone()));
        }
        let mut config = config(&secret, &entry).await?;
        if !identity.is_master() {
            // The external server decides what the caller may do there.
            config.auth_info.impersonate = Some(identity.user.clone());
            config.auth_info.impersonate_groups = Some(identity.groups.clone());
        }
        let endpoint = Endpoint::guarded(name, config, &self.denied, AGENT)?;
        let mut known = self.known.lock();
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(key, endpoint.clone());
        Ok(Some(endpoint))
    }

    /// The server of an external instance, and what the way there is made of: another one means another way.
    pub async fn print(&self, core: &Core, name: &str) -> Result<(String, String), Status> {
        let found = secret(core, name).await?;
        let (secret, key) = found.ok_or_else(|| Status::not_found("atoll.io", "instances", name))?;
        let server = config(&secret, &key).await?.cluster_url.to_string();
        let text = |field: &str| secret["metadata"][field].as_str().unwrap_or_default();
        Ok((server, format!("{} {} {key}", text("uid"), text("resourceVersion"))))
    }

    /// Whether an instance did not answer a moment ago: who waits does not wait for it again.
    pub fn is_silent(&self, name: &str) -> bool {
        self.silent.lock().get(name).is_some_and(|at| at.elapsed() < SILENT)
    }

    /// Notes that an instance did not answer.
    pub fn was_silent(&self, name: &str) {
        let mut silent = self.silent.lock();
        silent.retain(|_, at| at.elapsed() < SILENT);
        silent.insert(name.to_owned(), Instant::now());
    }

    /// The way to an external instance with the credentials of its Secret, for requests that say themselves
    /// in whose name they are.
    pub async fn client(&self, core: &Core, name: &str) -> Result<Option<kube::Client>, Status> {
        let own = self.endpoint(core, name, &Identity::master(AGENT)).await?;
        Ok(own.and_then(|endpoint| endpoint.transport().remote().cloned()))
    }
}

impl Externals {
    /// Refuses when an external instance is paused.
    pub async fn may_write(&self, core: &Core, name: &str) -> Result<(), Status> {
        let instance = core.own_endpoint("root").get_opt(&INSTANCE.gvr(), None, name).await?;
        if instance.is_some_and(|instance| instance["spec"]["paused"] == true) { Err(paused(name)) } else { Ok(()) }
    }
}

/// Refuses writes to an instance that is paused.
pub struct Resting {
    /// The instance.
    pub name: String,
    /// The way to it.
    pub inner: Arc<dyn Transport>,
}

#[async_trait::async_trait]
impl Transport for Resting {
    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<BodyStream>, Status> {
        match request.method().as_str() {
            "GET" | "HEAD" => self.inner.send(request).await,
            _ => Err(paused(&self.name)),
        }
    }
}

/// The Secret with the kubeconfig of an external instance, and the entry it is in.
async fn secret(core: &Core, name: &str) -> Result<Option<(Value, String)>, Status> {
    if crate::ask::segment("instance", name).is_err() {
        return Ok(None);
    }
    let root = core.own_endpoint("root");
    let Some(instance) = root.get_opt(&INSTANCE.gvr(), None, name).await? else { return Ok(None) };
    if instance["spec"]["type"] != "External" {
        return Ok(None);
    }
    let reference = &instance["spec"]["kubeconfigSecretRef"];
    let text = |key: &str| reference[key].as_str().unwrap_or_default();
    let secret = root.get(&Gvr::new("", "v1", "secrets"), Some(text("namespace")), text("name")).await?;
    Ok(Some((secret, reference["key"].as_str().unwrap_or("kubeconfig").to_owned())))
}

/// What a kubeconfig in a Secret says.
pub async fn config(secret: &Value, key: &str) -> Result<kube::Config, Status> {
    let wrong = |why: String| Status::bad_request(format!("the kubeconfig of the instance cannot be used: {why}"));
    let data = secret["data"][key].as_str().ok_or_else(|| wrong(format!("the Secret has no {key}")))?;
    let bytes = base64::engine::general_purpose::STANDARD.decode(data).map_err(|error| wrong(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|error| wrong(error.to_string()))?;
    // What a parser says of a text may hold parts of it, and credentials must not end up in a status.
    let kubeconfig = Kubeconfig::from_yaml(&text).map_err(|_| wrong("it is not a kubeconfig".to_owned()))?;
    refuse_programs(&kubeconfig)?;
    refuse_unproven(&kubeconfig)?;
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    config.map_err(|_| wrong("its context, address or certificates are not understood".to_owned()))
}

/// The way to a server over a proven connection; `ca` is the authority in base64, `user` as in a kubeconfig.
pub async fn server(url: &str, ca: Option<&str>, user: &Value) -> Result<kube::Config, Status> {
    let cluster = json!({"server": url, "certificate-authority-data": ca});
    let text = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c", "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "c", "user": user}], "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
    });
    let data = base64::engine::general_purpose::STANDARD.encode(text.to_string());
    config(&json!({"data": {"kubeconfig": data}}), "kubeconfig").await
}

/// Whoever stands in the way to a server must not be taken for it: certificates are always checked, with
/// the authority the kubeconfig gives or else with those of the system.
fn refuse_unproven(kubeconfig: &Kubeconfig) -> Result<(), Status> {
    for cluster in kubeconfig.clusters.iter().filter_map(|named| named.cluster.as_ref()) {
        if cluster.insecure_skip_tls_verify == Some(true) {
            return Err(Status::bad_request(
                "the kubeconfig must not skip the check of certificates; give the authority as certificate-authority-data",
            ));
        }
        let server = cluster.server.as_deref().unwrap_or_default();
        if !server.starts_with("https://") {
            return Err(Status::bad_request(format!("the server {server:?} must be reached by https")));
        }
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn secret(cluster: &str, user: &str) -> Value {
        let text = format!(
            "{{apiVersion: v1, kind: Config, current-context: c, clusters: [{{name: c, cluster: {{{cluster}}}}}], \
             users: [{{name: c, user: {{{user}}}}}], contexts: [{{name: c, context: {{cluster: c, user: c}}}}]}}"
        );
        json!({"data": {"kubeconfig": base64::engine::general_purpose::STANDARD.encode(text)}})
    }

    #[tokio::test]
    async fn what_is_said_of_a_kubeconfig_holds_nothing_of_it() {
        let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
        let certificate = "client-certificate-data: canary, client-key-data: canary";
        for secret in [
            json!({"data": {"kubeconfig": encode("canary")}}),
            json!({"data": {"kubeconfig": encode("{clusters: canary, users: [canary]}")}}),
            json!({"data": {"kubeconfig": encode("{users: [{name: c, user: {token: [canary]}}]}")}}),
            json!({"data": {"kubeconfig": encode("{current-context: canary}")}}),
            secret("server: 'https://a', proxy-url: 'canary canary'", "token: t"),
            secret("server: 'https://a', certificate-authority-data: canary", certificate),
        ] {
            let said = config(&secret, "kubeconfig").await.map_or_else(|refusal| refusal.message, |_| String::new());
            assert!(!said.contains("canary"), "{said}");
        }
    }

    #[tokio::test]
    async fn only_kubeconfigs_that_prove_the_server_and_use_nothing_of_the_hub_are_taken() {
        let table = [
            ("server: 'https://a'", "token: t", ""),
            ("server: 'https://a', insecure-skip-tls-verify: false", "token: t", ""),
            ("server: 'https://a', insecure-skip-tls-verify: true", "token: t", "check of certificates"),
            ("server: 'http://a'", "token: t", "by https"),
            ("server: 'https://a', certificate-authority: /etc/ca", "token: t", "files"),
            ("server: 'https://a'", "tokenFile: /etc/token", "files"),
            ("server: 'https://a'", "exec: {apiVersion: v1, command: sh}", "programs"),
        ];
        for (cluster, user, refusal) in table {
            let result = config(&secret(cluster, user), "kubeconfig").await;
            match refusal {
                "" => drop(result.unwrap()),
                _ => assert!(result.unwrap_err().message.contains(refusal), "{cluster} {user}"),
            }
        }
    }
}
