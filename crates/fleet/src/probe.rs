//! Asks members in intervals how they are, and tells it in the status of their Clusters.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use atoll_api::cluster::{Cluster, ClusterStatus};
use atoll_api::words::condition as types;
use atoll_meta::Status;
use atoll_runtime::{Change, Endpoint, Informer, Patch, Selection};
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::condition::{self, Wanted};
use crate::health::{Answer, Steady, ask};
use crate::member::Member;
use crate::options::Clock;
use crate::summary::Summary;
use crate::{diff, gvr};

/// At least this long between two writes that only concern resources.
const PACE: Duration = Duration::from_secs(1);
/// How often a member is asked what it serves, in probes.
const DISCOVERY: u32 = 3;

/// Watches over one member.
pub struct Prober {
    /// The instance.
    pub instance: Endpoint,
    /// The member.
    pub member: Arc<Member>,
    /// What tells the time.
    pub clock: Clock,
    /// How often it is asked.
    pub interval: Duration,
    /// How long a new state must last.
    pub threshold: Duration,
    /// Told whenever the member becomes reachable again.
    pub back: Arc<dyn Fn() + Send + Sync>,
}

impl Prober {
    /// Runs until the member is gone.
    pub async fn run(self) {
        let stop = self.member.stopped();
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.watch_over() => {}
        }
    }

    async fn watch_over(&self) {
        let (summary, changed) = (self.member.summary.clone(), Arc::new(Notify::new()));
        let followers = follow(&self.member.endpoint, &summary, &changed);
        let mut steady = Steady::default();
        let (mut turn, mut well) = (0_u32, false);
        loop {
            let heard = ask(&self.member.endpoint).await;
            let returns = heard.is_well() && !well;
            well = heard.is_well();
            let asks = returns || (well && turn.is_multiple_of(DISCOVERY));
            if asks && let Err(status) = self.member.kinds.refresh().await {
                tracing::debug!(member = %self.member.name, %status, "not discovered");
            }
            // Works go on at once; only what is told of the member waits until it is sure.
            if returns {
                (self.back)();
            }
            let answer = steady.take(heard, self.threshold, Instant::now());
            if let Err(status) = self.tell(&answer, &summary, &followers).await {
                tracing::debug!(member = %self.member.name, %status, "status not written");
            }
            turn = turn.wrapping_add(1);
            self.rest(&answer, &summary, &changed, &followers).await;
        }
    }

    /// Waits for the next turn and meanwhile tells of changes in resources.
    async fn rest(&self, answer: &Answer, summary: &Mutex<Summary>, changed: &Notify, followers: &[Informer; 2]) {
        let next = Instant::now() + self.interval;
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(next) => return,
                () = self.member.rediscover.notified() => {
                    tokio::time::sleep(PACE.min(self.interval) / 10).await;
                    let _ = self.member.kinds.refresh().await;
                    let _ = self.tell(answer, summary, followers).await;
                }
                () = changed.notified() => {
                    tokio::time::sleep(PACE.min(self.interval)).await;
                    if let Err(status) = self.tell(answer, summary, followers).await {
                        tracing::debug!(member = %self.member.name, %status, "status not written");
                    }
                }
            }
        }
    }

    async fn tell(&self, answer: &Answer, summary: &Mutex<Summary>, followers: &[Informer; 2]) -> Result<(), Status> {
        let name = &*self.member.name;
        let Some(tree) = self.instance.get_opt(&gvr::clusters(), None, name).await? else { return Ok(()) };
        let cluster: Cluster = serde_json::from_value(tree).map_err(Status::internal)?;
        let old = cluster.status.clone().unwrap_or_default();
        let mut new = old.clone();
        if let Answer::Well(version) = answer {
            if !version.is_empty() {
                new.kubernetes_version.clone_from(version);
            }
            enablements(&mut new, &self.member, (self.clock)());
            if followers.iter().all(Informer::is_synced) {
                self.member.counted.store(true, Ordering::Release);
                let summary = summary.lock();
                new.node_summary = Some(summary.nodes());
                new.resource_summary = Some(summary.resources(&cluster.spec.resource_models));
            }
        }
        let (status, reason, message) = answer.tell(&cluster.spec);
        let wanted = Wanted { type_: types::READY, status, reason, message, generation: 0 };
        condition::set(&mut new.conditions, wanted, (self.clock)());
        if old == new {
            return Ok(());
        }
        let trees = (serde_json::to_value(&old).unwrap_or_default(), serde_json::to_value(&new).unwrap_or_default());
        if let Some(patch) = diff::merge_patch(&trees.0, &trees.1) {
            self.instance
                .patch(&gvr::clusters(), None, name, "status", Patch::Merge, &json!({"status": patch}))
                .await?;
        }
        Ok(())
    }
}

fn enablements(status: &mut ClusterStatus, member: &Member, now: Timestamp) {
    let found = member.kinds.known();
    let (value, why, message) = if found.enablements.is_empty() {
        ("False", "Empty", "the member has not told what it serves")
    } else if found.partial {
        ("False", "Partial", "some groups of the member did not answer")
    } else {
        ("True", "Complete", "all groups of the member are known")
    };
    if found.partial {
        // What did not answer now was there before: it stays.
        for known in &found.enablements {
            match status.api_enablements.iter_mut().find(|old| old.group_version == known.group_version) {
                Some(old) => *old = known.clone(),
                None => status.api_enablements.push(known.clone()),
            }
        }
        status.api_enablements.sort_by(|a, b| a.group_version.cmp(&b.group_version));
    } else if !found.enablements.is_empty() {
        status.api_enablements.clone_from(&found.enablements);
    }
    let wanted = Wanted {
        type_: types::COMPLETE_API_ENABLEMENTS,
        status: value,
        reason: why,
        message: message.to_owned(),
        generation: 0,
    };
    condition::set(&mut status.conditions, wanted, now);
}

/// Follows nodes and pods of a member.
fn follow(endpoint: &Endpoint, summary: &Arc<Mutex<Summary>>, changed: &Arc<Notify>) -> [Informer; 2] {
    let (sum, notify) = (summary.clone(), changed.clone());
    let nodes = Informer::start_light(endpoint.clone(), gvr::core("nodes"), Selection::default(), move |change| {
        let counts = match &change {
            Change::Added(item) | Change::Updated(_, item) => sum.lock().put_node(&item.tree()),
            Change::Deleted(item) => sum.lock().remove_node(&item.object.head.name),
        };
        if counts {
            notify.notify_one();
        }
    });
    let (sum, notify) = (summary.clone(), changed.clone());
    let query = "fieldSelector=status.phase!%3DSucceeded%2Cstatus.phase!%3DFailed".to_owned();
    let pods = Informer::start_light(
        endpoint.clone(),
        gvr::core("pods"),
        Selection { namespace: None, query },
        move |change| {
            let counts = match &change {
                Change::Added(item) | Change::Updated(_, item) => sum.lock().put_pod(&item.key(), &item.tree()),
                Change::Deleted(item) => sum.lock().remove_pod(&item.key()),
            };
            if counts {
                notify.notify_one();
            }
        },
    );
    [nodes, pods]
}
