//! The demonstration: a fleet with simulated members, and a computing cluster that leases nodes.

use std::time::Duration;

use anyhow::Context as _;
use atoll_fleet::JoinOptions;
use atoll_meta::{Gvr, Status};
use atoll_pki::Kubeconfig;
use atoll_runtime::{Endpoint, Patch, WatchEvent};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::Parts;
use super::instances::{self, LEASES, NODES};
use super::progress::Progress;

/// What to try, printed when the demonstration is ready.
pub const HINTS: &str = "
  kubectl --context fleet get clusters
  kubectl --context fleet create deployment web --image=nginx --replicas=6
  atoll get pods
  atoll why deployment/web
  kubectl --context compute get nodes
";

/// The instance the members are joined to.
const FLEET: &str = "fleet";
/// The computing cluster.
const COMPUTE: &str = "compute";
/// How often the age of the lenders' certificates is looked at.
const LOOK: Duration = Duration::from_secs(3600);
/// Regions the members are in, in turn.
const REGIONS: [&str; 3] = ["east", "west", "north"];

/// Makes what is missing of the demonstration; running it again changes nothing.
pub async fn ensure(parts: &Parts, members: usize, nodes: usize, progress: &Progress) -> anyhow::Result<()> {
    let root = parts.endpoint("root", "atoll-demo");
    instance(&root, FLEET, json!({})).await?;
    let names: Vec<String> = (1..=members).map(|number| format!("member{number}")).collect();
    for (at, name) in names.iter().enumerate() {
        let region = REGIONS[at % REGIONS.len()];
        instance(&root, name, json!({NODES: nodes.to_string(), "sim.atoll.io/region": region})).await?;
    }
    instance(&root, COMPUTE, json!({NODES: "1", LEASES: "true"})).await?;
    for (at, name) in names.iter().map(String::as_str).chain([FLEET, COMPUTE]).enumerate() {
        progress.stage(format!("starting {name}, {} of {} instances …", at + 1, members + 2));
        ready(&root, name).await?;
    }
    for (at, name) in names.iter().enumerate() {
        progress.stage(format!("joining {name}, {} of {members} members …", at + 1));
        join(parts, name, REGIONS[at % REGIONS.len()]).await?;
    }
    progress.stage("waiting until all members are well …");
    well(parts, members).await?;
    policy(parts).await?;
    for name in lenders(members) {
        lend(parts, &name).await?;
    }
    Ok(())
}

/// The members that lend nodes.
fn lenders(members: usize) -> impl Iterator<Item = String> {
    (1..=members.min(2)).map(|number| format!("member{number}"))
}

/// Keeps the credentials of the lenders fresh, until `stop`.
pub async fn keep(parts: Parts, members: usize, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(LOOK) => {}
        }
        for name in lenders(members) {
            if let Err(error) = credentials(&parts, &name).await {
                tracing::warn!(%error, "the credentials of {name} were not renewed");
            }
        }
    }
}

async fn instance(root: &Endpoint, name: &str, annotations: Value) -> anyhow::Result<()> {
    let object = json!({
        "apiVersion": "atoll.io/v1alpha1", "kind": "Instance",
        "metadata": {"name": name, "annotations": annotations}, "spec": {"type": "Hosted"},
    });
    made(root.create(&instances::gvr(), None, &object).await).with_context(|| format!("instance {name}"))
}

/// Waits until an instance serves.
async fn ready(root: &Endpoint, name: &str) -> anyhow::Result<()> {
    let query = format!("fieldSelector=metadata.name%3D{name}");
    let waiting = async {
        let mut stream = root.watch(&instances::gvr(), None, &query, "").await?;
        while let Some(event) = stream.next().await {
            if let WatchEvent::Added(object) | WatchEvent::Modified(object) = event?
                && object["status"]["phase"] == "Ready"
            {
                return Ok(());
            }
        }
        Err(Status::unavailable("the watch ended"))
    };
    tokio::time::timeout(Duration::from_secs(60), waiting)
        .await
        .with_context(|| format!("instance {name} is not ready after 60 s"))??;
    Ok(())
}

async fn join(parts: &Parts, name: &str, region: &str) -> anyhow::Result<()> {
    let fleet = parts.endpoint(FLEET, "atoll-demo");
    let Some(member) = parts.hub.instance(name) else { anyhow::bail!("member {name} does not exist") };
    let url = parts.hub.url(&member);
    if let Some(known) = fleet.get_opt(&clusters(), None, name).await? {
        // The hub may have been started on another port than before.
        if known["spec"]["apiEndpoint"] != url {
            let moved = json!({"spec": {"apiEndpoint": url}});
            fleet.patch(&clusters(), None, name, "", Patch::Merge, &moved).await?;
        }
        return Ok(());
    }
    let options = JoinOptions {
        api_endpoint: url,
        ca_bundle: Some(parts.hub.keys().own().serving.cert_pem().into_bytes()),
        insecure: false,
        provider: "sim".to_owned(),
        region: region.to_owned(),
        zones: vec![format!("{region}a")],
        labels: Default::default(),
    };
    let way = parts.endpoint(name, "atoll-demo");
    atoll_fleet::join(&fleet, &way, name, options).await.with_context(|| format!("joining {name}"))
}

fn clusters() -> Gvr {
    Gvr::new("cluster.karmada.io", "v1alpha1", "clusters")
}

/// Waits until all members are known to be well, so that the first template is spread over all of them.
async fn well(parts: &Parts, members: usize) -> anyhow::Result<()> {
    let fleet = parts.endpoint(FLEET, "atoll-demo");
    let waiting = async {
        let mut ready = std::collections::HashSet::new();
        let mut stream = fleet.watch(&clusters(), None, "", "").await?;
        while let Some(event) = stream.next().await {
            if let WatchEvent::Added(object) | WatchEvent::Modified(object) = event? {
                let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
                if conditions.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True") {
                    ready.insert(object["metadata"]["name"].to_string());
                }
            }
            if ready.len() >= members {
                return Ok(());
            }
        }
        Err(Status::unavailable("the watch ended"))
    };
    tokio::time::timeout(Duration::from_secs(60), waiting).await.context("the members are not ready after 60 s")??;
    Ok(())
}

/// One policy that spreads Deployments, Services and what they need, so that the first command shows something.
async fn policy(parts: &Parts) -> anyhow::Result<()> {
    let fleet = parts.endpoint(FLEET, "atoll-demo");
    let policy = json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
        "metadata": {"name": "everywhere", "namespace": "default"},
        "spec": {
            "resourceSelectors": [
                {"apiVersion": "apps/v1", "kind": "Deployment"}, {"apiVersion": "v1", "kind": "Service"},
            ],
            "propagateDeps": true,
            "placement": {
                "clusterAffinity": {"clusterNames": []},
                "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"},
            },
        },
    });
    made(
        fleet.create(&Gvr::new("policy.karmada.io", "v1alpha1", "propagationpolicies"), Some("default"), &policy).await,
    )
    .context("the policy of the demonstration")
}

/// Lends half of a member's nodes to the computing cluster.
async fn lend(parts: &Parts, name: &str) -> anyhow::Result<()> {
    credentials(parts, name).await?;
    let compute = parts.endpoint(COMPUTE, "atoll-demo");
    let binding = json!({
        "apiVersion": "cloud.tencent.com/v1beta1", "kind": "ClusterBinding", "metadata": {"name": name},
        "spec": {"clusterID": name, "mountNamespace": "leased",
                 "secretRef": {"name": format!("{name}-kubeconfig"), "namespace": "kube-system"}},
    });
    made(compute.create(&Gvr::new("cloud.tencent.com", "v1beta1", "clusterbindings"), None, &binding).await)?;
    let way = parts.endpoint(name, "atoll-demo");
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "leased"}});
    made(way.create(&Gvr::new("", "v1", "namespaces"), None, &namespace).await)?;
    let policy = json!({
        "apiVersion": "cloud.tencent.com/v1beta1", "kind": "ResourceLeasingPolicy", "metadata": {"name": "half"},
        "spec": {"cluster": name, "resourceLimits": [
            {"resource": "cpu", "percent": 50}, {"resource": "memory", "percent": 50}]},
    });
    made(way.create(&Gvr::new("cloud.tencent.com", "v1beta1", "resourceleasingpolicies"), None, &policy).await)
}

/// Keeps the kubeconfig of a lender: anew when the hub was started on another port than before, or when
/// the certificate is old.
async fn credentials(parts: &Parts, name: &str) -> anyhow::Result<()> {
    let Some(worker) = parts.hub.instance(name) else { anyhow::bail!("member {name} does not exist") };
    let (compute, secrets) = (parts.endpoint(COMPUTE, "atoll-demo"), Gvr::new("", "v1", "secrets"));
    let secret_name = format!("{name}-kubeconfig");
    let known = compute.get_opt(&secrets, Some("kube-system"), &secret_name).await?;
    let encoded = known.as_ref().and_then(|secret| secret["data"]["kubeconfig"].as_str()).unwrap_or_default();
    let url = parts.hub.url(&worker);
    if known.is_some() && !is_stale(encoded, &url, parts.hub.now()) {
        return Ok(());
    }
    let credentials = parts.hub.credentials(&worker).await?;
    let masters = ["system:masters".to_owned()];
    let config = credentials.kubeconfig("atoll:lessor", &masters, jiff::SignedDuration::from_hours(24 * 365))?;
    let data = json!({"kubeconfig": STANDARD.encode(config.to_yaml()?)});
    if known.is_some() {
        let patch = json!({"data": data});
        compute.patch(&secrets, Some("kube-system"), &secret_name, "", Patch::Merge, &patch).await?;
        return Ok(());
    }
    let secret = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": secret_name, "namespace": "kube-system"}, "data": data});
    made(compute.create(&secrets, Some("kube-system"), &secret).await)
}

/// Whether a kept kubeconfig leads elsewhere, or its certificate needs to be renewed.
fn is_stale(encoded: &str, url: &str, now: jiff::Timestamp) -> bool {
    let text = STANDARD.decode(encoded).unwrap_or_default();
    let access = Kubeconfig::parse(&String::from_utf8_lossy(&text)).and_then(|config| config.access(None));
    access.map_or(true, |access| access.server != url || access.auth.is_old(now))
}

/// What is already there was made by an earlier start.
fn made<T>(result: Result<T, Status>) -> anyhow::Result<()> {
    match result {
        Err(status) if status.code != 409 => Err(status.into()),
        _ => Ok(()),
    }
}
