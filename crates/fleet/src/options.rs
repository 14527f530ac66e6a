//! What a fleet is started with, and how members are reached.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use atoll_meta::Status;
use atoll_runtime::Endpoint;
use base64::Engine as _;
use jiff::Timestamp;
use serde_json::Value;

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
            probe_interval: Duration::from_secs(10),
            probe_threshold: Duration::from_secs(30),
            lease_grace: Duration::from_secs(40),
            eviction_timeout: Duration::from_secs(600),
            eviction_interval: Duration::from_secs(2),
            skip: Skip::default(),
        }
    }
}

/// Reaches members over HTTPS with the token of their Secret.
pub struct RemoteMembers;

#[async_trait::async_trait]
impl MemberResolver for RemoteMembers {
    async fn resolve(&self, cluster: &Value, secret: Option<&Value>) -> Result<Endpoint, Status> {
        let name = cluster["metadata"]["name"].as_str().unwrap_or_default();
        let secret = secret.ok_or_else(|| Status::unavailable(format!("cluster {name} has no secret")))?;
        Endpoint::remote(name, config(cluster, secret)?, AGENT)
    }
}

/// The way to a member as its Cluster and Secret describe it.
pub fn config(cluster: &Value, secret: &Value) -> Result<kube::Config, Status> {
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
