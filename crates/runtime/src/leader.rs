//! One active process among several: whoever holds a Lease.

use std::time::Duration;

use atoll_meta::{Gvr, Status, time};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::endpoint::Endpoint;

/// Which lease, held how.
#[derive(Clone, Debug)]
pub struct Leadership {
    /// Namespace of the lease.
    pub namespace: String,
    /// Name of the lease.
    pub name: String,
    /// Who we are.
    pub identity: String,
    /// How long a silent holder is respected.
    pub duration: Duration,
}

fn leases() -> Gvr {
    Gvr::new("coordination.k8s.io", "v1", "leases")
}

/// Waits for the lease, runs `work` while it is held, and waits again when it is lost; ends with `stop`.
pub async fn lead<W, F>(endpoint: Endpoint, leadership: Leadership, stop: CancellationToken, work: W)
where
    W: Fn(CancellationToken) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    let retry = leadership.duration / 6;
    loop {
        if stop.is_cancelled() {
            return;
        }
        if !matches!(acquire(&endpoint, &leadership).await, Ok(true)) {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(retry) => continue,
            }
        }
        let lost = stop.child_token();
        let task = tokio::spawn(work(lost.clone()));
        hold(&endpoint, &leadership, retry, &stop).await;
        lost.cancel();
        let _ = task.await;
        if stop.is_cancelled() {
            let _ = release(&endpoint, &leadership).await;
            return;
        }
    }
}

/// Renews until the lease is lost, could not be renewed in time, or `stop`.
async fn hold(endpoint: &Endpoint, leadership: &Leadership, retry: Duration, stop: &CancellationToken) {
    let mut renewed = tokio::time::Instant::now();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(retry) => {}
        }
        match acquire(endpoint, leadership).await {
            Ok(true) => renewed = tokio::time::Instant::now(),
            Ok(false) => return,
            Err(_) if renewed.elapsed() * 3 > leadership.duration * 2 => return,
            Err(_) => {}
        }
    }
}

/// Takes or renews the lease; `false` when somebody else holds it.
async fn acquire(endpoint: &Endpoint, leadership: &Leadership) -> Result<bool, Status> {
    let namespace = Some(leadership.namespace.as_str());
    let now = jiff::Timestamp::now();
    let stamp = time::format_micro(now);
    let Some(mut lease) = endpoint.get_opt(&leases(), namespace, &leadership.name).await? else {
        let lease = json!({
            "kind": "Lease", "apiVersion": "coordination.k8s.io/v1",
            "metadata": {"name": leadership.name, "namespace": leadership.namespace},
            "spec": {"holderIdentity": leadership.identity, "leaseDurationSeconds": leadership.duration.as_secs().max(1),
                     "acquireTime": stamp, "renewTime": stamp, "leaseTransitions": 0},
        });
        return taken(endpoint.create(&leases(), namespace, &lease).await);
    };
    let spec = &lease["spec"];
    let holder = spec["holderIdentity"].as_str().unwrap_or_default();
    let mine = holder == leadership.identity;
    let renewed = spec["renewTime"].as_str().and_then(time::parse);
    let expired = renewed.is_none_or(|then| now.duration_since(then).unsigned_abs() > leadership.duration);
    if !mine && !holder.is_empty() && !expired {
        return Ok(false);
    }
    if !mine {
        let transitions = spec["leaseTransitions"].as_i64().unwrap_or_default() + 1;
        lease["spec"]["leaseTransitions"] = transitions.into();
        lease["spec"]["acquireTime"] = stamp.clone().into();
        lease["spec"]["holderIdentity"] = leadership.identity.clone().into();
    }
    lease["spec"]["renewTime"] = stamp.into();
    taken(endpoint.update(&leases(), namespace, &leadership.name, &lease).await)
}

fn taken(result: Result<Value, Status>) -> Result<bool, Status> {
    match result {
        Ok(_) => Ok(true),
        Err(status) if status.code == 409 => Ok(false),
        Err(status) => Err(status),
    }
}

async fn release(endpoint: &Endpoint, leadership: &Leadership) -> Result<(), Status> {
    let namespace = Some(leadership.namespace.as_str());
    let mut lease = endpoint.get(&leases(), namespace, &leadership.name).await?;
    if lease["spec"]["holderIdentity"] == leadership.identity.as_str() {
        lease["spec"]["holderIdentity"] = "".into();
        endpoint.update(&leases(), namespace, &leadership.name, &lease).await?;
    }
    Ok(())
}
