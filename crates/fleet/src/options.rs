//! What a fleet is started with, and how members are reached.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use atoll_meta::Status;
use atoll_runtime::{Denied, Endpoint, RemoteTransport, guarded_client};
use base64::Engine as _;
use jiff::Timestamp;
use serde_json::Value;

use crate::gates;
use crate::skip::Skip;

/// What tells the time.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The name under which members and the instance see our writes.
pub const AGENT: &str = "atoll-fleet";

/// Makes the way to a member.
#[async_trait::async_trait]
pub trait MemberResolver: Send + Sync {
    /// From the Cluster object and the Secret it names.
    async fn resolve(&self, cluster: &Value, secret: Option<&Value>) -> Result<Endpoint, Status>;
}

/// Settings of a fleet.
#[derive(Clone)]
pub struct Options {
    /// The instance, as someone who may do everything there.
    pub instance: Endpoint,
    /// How members are reached.
    pub members: Arc<dyn MemberResolver>,
    /// What tells the time.
    pub clock: Clock,
    /// How many objects of a kind of task are worked on at once.
    pub workers: usize,
    /// Whether workloads leave clusters and members that fail.
    pub failover: bool,
    /// Whether NoExecute taints evict.
    pub evict_on_taints: bool,
    /// Whether policies may take over what others have claimed.
    pub preemption: bool,
    /// Whether kinds with components and no replicas are placed as whole sets.
    pub components: bool,
    /// How often members are asked how they are.
    pub probe_interval: Duration,
    /// How long a member must be seen well or ill before its condition changes.
    pub probe_threshold: Duration,
    /// How long an agent may be silent before its member counts as unknown.
    pub lease_grace: Duration,
    /// How long a copy may stay that is being evicted.
    pub eviction_timeout: Duration,
    /// At least so long between two evictions because of taints.
    pub eviction_interval: Duration,
    /// What is never spread, whatever policies say.
    pub skip: Skip,
}

impl Options {
    /// Usual settings for an instance.
    pub fn new(instance: Endpoint, members: Arc<dyn MemberResolver>) -> Self {
        Self {
            instance: instance.with_agent(AGENT),
            members,
            clock: Arc::new(Timestamp::now),
            workers: 16,
            failover: false,
            evict_on_taints: false,
            preemption: true,
            components: false,
            probe_interval: Duration::from_secs(10),
            probe_threshold: Duration::from_secs(30),
            lease_grace: Duration::from_secs(40),
            eviction_timeout: Duration::from_secs(600),
            eviction_interval: Duration::from_secs(2),
            skip: Skip::default(),
        }
    }
}

/// What the keys of settings begin with, as annotations of whatever describes an instance.
const SETTINGS: &str = "fleet.atoll.io/";

/// The settings among annotations.
pub fn settings(annotations: &Value) -> BTreeMap<String, String> {
    let given = annotations.as_object().into_iter().flatten();
    let own = given.filter(|(key, _)| key.starts_with(SETTINGS));
    own.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// The setting that lets ClusterTaintPolicies evict. It is asked for when such a policy is stored.
pub const EVICTING_TAINTS: &str = "fleet.atoll.io/allow-no-execute-taint-policy";

/// Whether annotations allow ClusterTaintPolicies to evict.
pub fn allows_evicting_taints(annotations: &Value) -> bool {
    annotations[EVICTING_TAINTS] == "true"
}

impl Options {
    /// Takes settings from annotations, such as `fleet.atoll.io/failover: "true"`. What is not understood is told, and
    /// then nothing changes.
    pub fn configure(&mut self, annotations: &Value) -> Result<(), String> {
        let mut wanted = self.clone();
        wanted.take(annotations)?;
        *self = wanted;
        Ok(())
    }

    fn take(&mut self, annotations: &Value) -> Result<(), String> {
        let given = annotations.as_object().into_iter().flatten();
        let own = given.filter_map(|(key, value)| Some((key.strip_prefix(SETTINGS)?, value.as_str()?)));
        let (mut namespaces, mut apis) = (vec!["kube-.*".to_owned()], String::new());
        // First, for a setting of its own says more than a gate.
        if let Some(gates) = annotations[format!("{SETTINGS}feature-gates")].as_str() {
            gates::switch(self, gates)?;
        }
        for (key, value) in own {
            match key {
                "failover" => self.failover = read(key, value)?,
                "no-execute-taint-eviction" => self.evict_on_taints = read(key, value)?,
                "allow-no-execute-taint-policy" => drop(read::<bool>(key, value)?),
                "preemption" => self.preemption = read(key, value)?,
                "feature-gates" => {}
                "graceful-eviction-timeout-seconds" => self.eviction_timeout = seconds(key, value)?,
                "eviction-interval-seconds" => self.eviction_interval = seconds(key, value)?,
                "cluster-status-update-seconds" => {
                    self.probe_interval = seconds(key, value)?.max(Duration::from_secs(1))
                }
                "cluster-failure-threshold-seconds" => self.probe_threshold = seconds(key, value)?,
                "cluster-lease-grace-seconds" => self.lease_grace = seconds(key, value)?.max(Duration::from_secs(2)),
                "skipped-propagating-namespaces" => {
                    namespaces = value.split(',').map(|one| one.trim().to_owned()).collect()
                }
                "skipped-propagating-apis" => apis = value.to_owned(),
                _ => return Err(format!("{SETTINGS}{key} is not a setting of a fleet")),
            }
        }
        self.skip = Skip::new(&namespaces, &apis)?;
        Ok(())
    }
}

fn read<T: std::str::FromStr<Err: std::fmt::Display>>(key: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|error| format!("{SETTINGS}{key}: {value:?}: {error}"))
}

fn seconds(key: &str, value: &str) -> Result<Duration, String> {
    read(key, value).map(Duration::from_secs)
}

/// Reaches members over HTTPS with the token of their Secret.
#[derive(Clone, Debug, Default)]
pub struct RemoteMembers {
    /// Where no way leads, whatever a Cluster says.
    pub denied: Denied,
}

#[async_trait::async_trait]
impl MemberResolver for RemoteMembers {
    async fn resolve(&self, cluster: &Value, secret: Option<&Value>) -> Result<Endpoint, Status> {
        let name = cluster["metadata"]["name"].as_str().unwrap_or_default();
        let secret = secret.ok_or_else(|| Status::unavailable(format!("cluster {name} has no secret")))?;
        let client = client(cluster, secret, &self.denied)?;
        Ok(Endpoint::new(name, Arc::new(RemoteTransport::new(client)), AGENT))
    }
}

/// A client for a member as its Cluster and Secret describe it.
pub fn client(cluster: &Value, secret: &Value, denied: &Denied) -> Result<kube::Client, Status> {
    let mut headers = http::HeaderMap::new();
    for (name, value) in cluster["spec"]["proxyHeader"].as_object().into_iter().flatten() {
        let wrong = || Status::bad_request(format!("proxyHeader {name:?} cannot be sent"));
        let name = http::HeaderName::try_from(name).map_err(|_| wrong())?;
        headers.append(name, value.as_str().and_then(|value| value.parse().ok()).ok_or_else(wrong)?);
    }
    guarded_client(config(cluster, secret)?, denied, headers)
}

/// The way to a member as its Cluster and Secret describe it.
fn config(cluster: &Value, secret: &Value) -> Result<kube::Config, Status> {
    let spec = &cluster["spec"];
    let text = spec["apiEndpoint"].as_str().unwrap_or_default();
    let url = text.parse().map_err(|error| Status::bad_request(format!("apiEndpoint {text:?}: {error}")))?;
    let mut config = kube::Config::new(url);
    let token = secret_text(secret, "token").ok_or_else(|| Status::bad_request("the secret has no token"))?;
    config.auth_info.token = Some(token.into());
    config.accept_invalid_certs = spec["insecureSkipTLSVerification"].as_bool().unwrap_or_default();
    if let Some(bundle) =
        secret_bytes(secret, "caBundle").filter(|bundle| !bundle.is_empty() && !config.accept_invalid_certs)
    {
        config.root_cert = Some(certificates(&bundle)?);
    }
    if let Some(proxy) = spec["proxyURL"].as_str().filter(|proxy| !proxy.is_empty()) {
        config.proxy_url =
            Some(proxy.parse().map_err(|error| Status::bad_request(format!("proxyURL {proxy:?}: {error}")))?);
    }
    config.connect_timeout = Some(Duration::from_secs(5));
    // What a member refuses is passed on, not tried again for minutes.
    config.default_retry = false;
    Ok(config)
}

fn certificates(pem: &[u8]) -> Result<Vec<Vec<u8>>, Status> {
    let text = String::from_utf8_lossy(pem);
    let (mut all, mut inside) = (Vec::new(), None::<String>);
    for line in text.lines().map(str::trim) {
        if line == "-----BEGIN CERTIFICATE-----" {
            inside = Some(String::new());
        } else if line == "-----END CERTIFICATE-----" {
            let body = inside.take().unwrap_or_default();
            let decoded = base64::engine::general_purpose::STANDARD.decode(body);
            all.push(decoded.map_err(|error| Status::bad_request(format!("caBundle: {error}")))?);
        } else if let Some(body) = &mut inside {
            body.push_str(line);
        }
    }
    if all.is_empty() { Err(Status::bad_request("caBundle holds no certificate")) } else { Ok(all) }
}

/// The bytes of an entry of a Secret.
pub fn secret_bytes(secret: &Value, key: &str) -> Option<Vec<u8>> {
    if let Some(text) = secret["stringData"][key].as_str() {
        return Some(text.as_bytes().to_vec());
    }
    base64::engine::general_purpose::STANDARD.decode(secret["data"][key].as_str()?).ok()
}

/// The text of an entry of a Secret.
pub fn secret_text(secret: &Value, key: &str) -> Option<String> {
    String::from_utf8(secret_bytes(secret, key)?).ok().map(|text| text.trim().to_owned())
}

/// Members that are found by name, for those in the same process and for tests.
pub struct NamedMembers {
    members: BTreeMap<String, Endpoint>,
}

impl NamedMembers {
    /// These members.
    pub fn new(members: impl IntoIterator<Item = (String, Endpoint)>) -> Self {
        Self { members: members.into_iter().collect() }
    }
}

#[async_trait::async_trait]
impl MemberResolver for NamedMembers {
    async fn resolve(&self, cluster: &Value, _secret: Option<&Value>) -> Result<Endpoint, Status> {
        let name = cluster["metadata"]["name"].as_str().unwrap_or_default();
        let found = self.members.get(name).cloned();
        found.ok_or_else(|| Status::unavailable(format!("there is no way to cluster {name}")))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;

    struct Nowhere;

    #[async_trait::async_trait]
    impl atoll_runtime::Transport for Nowhere {
        async fn send(
            &self,
            _: http::Request<bytes::Bytes>,
        ) -> Result<http::Response<atoll_runtime::BodyStream>, Status> {
            Err(Status::unavailable("nowhere"))
        }
    }

    /// The usual settings, of an instance that nobody reaches.
    pub(crate) fn fresh() -> Options {
        Options::new(Endpoint::new("i", Arc::new(Nowhere), "t"), Arc::new(RemoteMembers::default()))
    }

    #[test]
    fn settings_are_off_unless_asked_for_and_mistakes_are_told() -> Result<(), String> {
        let mut options = fresh();
        options.configure(&json!({"other": "x"}))?;
        assert!(!options.failover && !options.evict_on_taints && options.preemption);
        options.configure(&json!({
            "fleet.atoll.io/failover": "true", "fleet.atoll.io/no-execute-taint-eviction": "true",
            "fleet.atoll.io/graceful-eviction-timeout-seconds": "5", "fleet.atoll.io/skipped-propagating-apis": "a.io"}))?;
        assert!(options.failover && options.evict_on_taints && options.eviction_timeout == Duration::from_secs(5));
        assert!(options.skip.kind(&atoll_meta::Gvk::new("a.io", "v1", "X")));
        options.configure(&json!({"fleet.atoll.io/feature-gates": "Failover=false, PropagateDeps=true"}))?;
        assert!(!options.failover);
        options.configure(&json!({
            "fleet.atoll.io/failover": "true", "fleet.atoll.io/preemption": "true",
            "fleet.atoll.io/feature-gates": "Failover=false,PropagationPolicyPreemption=false"}))?;
        assert!(options.failover && options.preemption, "a setting of its own says more than a gate");
        for (key, value) in [
            ("no-execute-taint-eviction", "perhaps"),
            ("unknown", "x"),
            ("skipped-propagating-namespaces", "("),
            ("allow-no-execute-taint-policy", "yes"),
            ("feature-gates", "Failover"),
        ] {
            let mut options = fresh();
            let given = json!({"fleet.atoll.io/failover": "true", format!("fleet.atoll.io/{key}"): value});
            assert!(options.configure(&given).is_err(), "{key}");
            assert!(!options.failover, "{key}: half of the settings were taken");
        }
        Ok(())
    }
}
