//! How a member is: asked in intervals, told in the status of its Cluster.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use atoll_api::cluster::{Cluster, ClusterStatus};
use atoll_api::words::{condition as types, reason};
use atoll_meta::Status;
use atoll_runtime::{Change, Endpoint, Informer, Patch, Selection};
use bytes::Bytes;
use http::Method;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::condition::{self, Wanted};
use crate::member::Member;
use crate::options::Clock;
use crate::summary::Summary;
use crate::{diff, gvr};

/// At least this long between two writes that only concern resources.
const PACE: Duration = Duration::from_secs(1);
/// How long a member may think about how it is.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often a member is asked what it serves, in probes.
const DISCOVERY: u32 = 3;

/// What a member answers when asked how it is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Answer {
    /// It is well.
    Well,
    /// It says it is not.
    Ill(String),
    /// It does not answer.
    Silent(String),
}

/// Asks a member how it is.
pub async fn ask(endpoint: &Endpoint) -> Answer {
    let mut last = Answer::Silent("no answer in time".to_owned());
    for path in ["/readyz", "/healthz"] {
        let sent = endpoint.open(Method::GET, path, "application/json", Bytes::new());
        match tokio::time::timeout(PATIENCE, sent).await {
            Err(_) => return last,
            Ok(Err(status)) => return Answer::Silent(status.message),
            Ok(Ok(answer)) if answer.status().is_success() => return Answer::Well,
            Ok(Ok(answer)) => last = Answer::Ill(format!("{path} answers {}", answer.status().as_u16())),
        }
    }
    last
}

/// The state of a member that changes only when an answer persists.
#[derive(Clone, Debug, Default)]
pub struct Steady {
    told: Option<Answer>,
    other_since: Option<Instant>,
}

impl Steady {
    /// Takes an answer and gives the one that counts: the last one told, until another has lasted for `threshold`.
    pub fn take(&mut self, answer: Answer, threshold: Duration, now: Instant) -> Answer {
        let same = |a: &Answer, b: &Answer| (*a == Answer::Well) == (*b == Answer::Well);
        match &self.told {
            Some(told) if !same(told, &answer) => {
                let since = *self.other_since.get_or_insert(now);
                if now.duration_since(since) < threshold {
                    return told.clone();
                }
            }
            _ => {}
        }
        self.other_since = None;
        self.told = Some(answer.clone());
        answer
    }
}

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
            let returns = heard == Answer::Well && !well;
            well = heard == Answer::Well;
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
        if *answer == Answer::Well {
            let version = self.member.endpoint.get_path("/version").await;
            if let Some(version) =
                version.ok().and_then(|version| version["gitVersion"].as_str().map(ToOwned::to_owned))
            {
                new.kubernetes_version = version;
            }
            enablements(&mut new, &self.member, (self.clock)());
            if followers.iter().all(Informer::is_synced) {
                self.member.counted.store(true, Ordering::Release);
                let summary = summary.lock();
                new.node_summary = Some(summary.nodes());
                new.resource_summary = Some(summary.resources(&cluster.spec.resource_models));
            }
        }
        ready(&mut new, answer, (self.clock)());
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

fn ready(status: &mut ClusterStatus, answer: &Answer, now: Timestamp) {
    let (value, why, message) = match answer {
        Answer::Well => ("True", reason::CLUSTER_READY, "cluster is healthy and ready to accept workloads".to_owned()),
        Answer::Ill(why) => ("False", reason::CLUSTER_NOT_READY, format!("cluster is reachable but unhealthy: {why}")),
        Answer::Silent(why) => ("False", reason::CLUSTER_NOT_REACHABLE, format!("cluster is not reachable: {why}")),
    };
    condition::set(
        &mut status.conditions,
        Wanted { type_: types::READY, status: value, reason: why, message, generation: 0 },
        now,
    );
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_state_changes_only_when_it_lasts() {
        let (start, threshold) = (Instant::now(), Duration::from_secs(30));
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut steady = Steady::default();
        let silent = || Answer::Silent("x".to_owned());
        assert_eq!(steady.take(Answer::Well, threshold, at(0)), Answer::Well, "the first answer counts at once");
        assert_eq!(steady.take(silent(), threshold, at(10)), Answer::Well);
        assert_eq!(steady.take(Answer::Well, threshold, at(20)), Answer::Well);
        assert_eq!(steady.take(silent(), threshold, at(30)), Answer::Well, "an interruption starts anew");
        assert_eq!(steady.take(silent(), threshold, at(60)), silent());
        assert_eq!(steady.take(Answer::Ill("y".to_owned()), threshold, at(61)), Answer::Ill("y".to_owned()));
    }
}
