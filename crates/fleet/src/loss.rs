//! What the loss of a cluster would move.

use std::fmt;

use atoll_api::cluster::{Cluster, ClusterSyncMode};
use atoll_api::policy::ClusterTaintPolicy;
use atoll_api::words::condition as types;
use atoll_meta::Status;
use atoll_runtime::Endpoint;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Taint;
use serde_json::Value;

use crate::binding::Binding;
use crate::condition::{self, Wanted};
use crate::options::Options;
use crate::outlook::Outlook;
use crate::plan::{self, Move};
use crate::{decision, evict, gvr, taints};

/// What the loss of a cluster would do.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Loss {
    /// What is shown, in a sentence that the moves go on.
    pub heading: String,
    /// What would become of the templates that are there.
    pub moves: Vec<Move>,
}

impl fmt::Display for Loss {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moving: Vec<&Move> = self.moves.iter().filter(|step| !step.is_nothing()).collect();
        if moving.is_empty() {
            return writeln!(out, "{} nothing moves.", self.heading);
        }
        writeln!(out, "{} this moves:", self.heading)?;
        moving.iter().try_for_each(|step| writeln!(out, "{step}"))
    }
}

/// How a cluster is lost.
#[derive(Debug)]
enum Way {
    /// Somebody takes it out; why nothing moves before that.
    Unjoined(String),
    /// It does not answer any more, and gets these taints for it.
    Silent(Vec<Taint>),
}

/// What the loss of a cluster would move, with the `settings` of the instance. While nothing leaves a cluster that is
/// merely silent, what is shown is what happens when it is unjoined.
pub async fn plan_without(
    instance: &Endpoint,
    settings: &Value,
    cluster: &str,
    now: Timestamp,
) -> Result<Loss, Status> {
    let options = plan::options(instance, settings);
    let outlook = Outlook::of(instance, now).await?.with_components(options.components).without(cluster)?;
    let mut policies = Vec::new();
    if options.failover && options.evict_on_taints {
        let trees = instance.list(&gvr::taint_policies(), None, "").await?.items;
        policies.extend(trees.into_iter().filter_map(|tree| serde_json::from_value::<ClusterTaintPolicy>(tree).ok()));
    }
    let subject = instance.get(&gvr::clusters(), None, cluster).await?;
    let subject: Cluster = serde_json::from_value(subject).map_err(Status::internal)?;
    let way = way(&options, &subject, policies, now);
    let mut moves = Vec::new();
    for before in outlook.bindings() {
        if !before.spec.clusters.iter().any(|target| target.name == cluster) {
            continue;
        }
        let Some(delay) = leaves(before, &way, now) else { continue };
        let mut after = before.clone();
        after.spec.clusters.retain(|target| target.name != cluster);
        let resource = &before.spec.resource;
        let place = if resource.namespace.is_empty() { String::new() } else { format!("{}/", resource.namespace) };
        let subject = format!("{} {place}{}", resource.kind, resource.name);
        let mut step = plan::compare(&outlook, subject, Some(before), after, None).await;
        step.when = Some(if matches!(way, Way::Unjoined(_)) { "Unjoined" } else { "ContactLost" });
        step.after_seconds = (delay > 0).then_some(delay);
        moves.push(step);
    }
    Ok(Loss { heading: heading(&way, cluster), moves })
}

fn way(options: &Options, cluster: &Cluster, policies: Vec<ClusterTaintPolicy>, now: Timestamp) -> Way {
    if !options.failover {
        return Way::Unjoined("Failover is off in this instance".to_owned());
    }
    if !options.evict_on_taints {
        let setting = "fleet.atoll.io/no-execute-taint-eviction is not true";
        return Way::Unjoined(format!("Taints evict nothing in this instance ({setting})"));
    }
    let taints = when_silent(cluster, policies, now);
    if taints.is_empty() {
        return Way::Unjoined("No ClusterTaintPolicy gives it a NoExecute taint for being silent".to_owned());
    }
    Way::Silent(taints)
}

/// The NoExecute taints of a cluster once it does not answer any more.
fn when_silent(cluster: &Cluster, mut policies: Vec<ClusterTaintPolicy>, now: Timestamp) -> Vec<Taint> {
    let mut conditions = cluster.status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default();
    // We see that a cluster does not answer; of one with an agent nothing is known.
    let status = if cluster.spec.sync_mode == ClusterSyncMode::Pull { "Unknown" } else { "False" };
    let wanted = Wanted { type_: types::READY, status, reason: "Lost", message: String::new(), generation: 0 };
    condition::set(&mut conditions, wanted, now);
    policies.sort_by(|a, b| {
        a.metadata.creation_timestamp.cmp(&b.metadata.creation_timestamp).then(a.metadata.name.cmp(&b.metadata.name))
    });
    let mut all = taints::by_readiness(&conditions, &cluster.spec.taints);
    let subject = cluster.into();
    for policy in &policies {
        all = taints::by_policy(&policy.spec, &subject, &conditions, all, now);
    }
    all.retain(|taint| taint.effect == "NoExecute");
    all
}

/// After how many seconds a binding leaves the cluster; `None` if it stays.
fn leaves(binding: &Binding, way: &Way, now: Timestamp) -> Option<i64> {
    let Way::Silent(taints) = way else { return Some(0) };
    // As the controllers do: only what we decide on, by what was agreed at the last decision.
    let placement = binding.applied_placement().filter(|_| decision::is_ours(binding))?;
    let at = evict::leave_at(taints, &placement.cluster_tolerations, now)?;
    Some(at.duration_since(now).as_secs().max(0))
}

fn heading(way: &Way, cluster: &str) -> String {
    match way {
        Way::Unjoined(why) => {
            format!("{why}: losing contact with {cluster} moves nothing. If {cluster} is unjoined,")
        }
        Way::Silent(taints) => {
            let keys: Vec<&str> = taints.iter().map(|taint| taint.key.as_str()).collect();
            let word = if keys.len() == 1 { "taint" } else { "taints" };
            format!("If contact with {cluster} is lost, it gets the NoExecute {word} {}, and", keys.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;
    use crate::options::tests::fresh;

    fn cluster(mode: &str) -> Cluster {
        serde_json::from_value(json!({"metadata": {"name": "m1"}, "spec": {"syncMode": mode}})).unwrap()
    }

    fn policy(statuses: &[&str], effect: &str) -> ClusterTaintPolicy {
        serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": {
            "addOnConditions": [{"conditionType": "Ready", "operator": "In", "statusValues": statuses}],
            "taints": [{"key": "away", "effect": effect}]}}))
        .unwrap()
    }

    #[test]
    fn what_is_shown_follows_from_the_settings() {
        for (failover, evicts, mode, statuses, effect, expected) in [
            (false, true, "Push", ["False"], "NoExecute", "Failover is off in this instance: losing contact with m1"),
            (true, false, "Push", ["False"], "NoExecute", "Taints evict nothing in this instance (fleet.atoll.io/"),
            (true, true, "Push", ["False"], "NoSchedule", "No ClusterTaintPolicy gives it a NoExecute taint"),
            (true, true, "Push", ["Unknown"], "NoExecute", "No ClusterTaintPolicy gives it a NoExecute taint"),
            (
                true,
                true,
                "Push",
                ["False"],
                "NoExecute",
                "If contact with m1 is lost, it gets the NoExecute taint away,",
            ),
            (true, true, "Pull", ["Unknown"], "NoExecute", "If contact with m1 is lost, it gets the NoExecute taint"),
        ] {
            let mut options = fresh();
            (options.failover, options.evict_on_taints) = (failover, evicts);
            let way = way(&options, &cluster(mode), vec![policy(&statuses, effect)], Timestamp::UNIX_EPOCH);
            let heading = heading(&way, "m1");
            assert!(heading.starts_with(expected), "{heading} / {expected}");
            assert_eq!(heading.ends_with("If m1 is unjoined,"), matches!(way, Way::Unjoined(_)), "{heading}");
        }
    }

    #[test]
    fn what_bears_the_taint_stays_and_what_bears_it_for_a_while_leaves_later() {
        let taint = Taint { key: "away".into(), effect: "NoExecute".into(), ..Taint::default() };
        let (silent, unjoined) = (Way::Silent(vec![taint]), Way::Unjoined(String::new()));
        let bears = |seconds: Value| json!([{"key": "away", "operator": "Exists", "tolerationSeconds": seconds}]);
        for (tolerations, expected) in
            [(json!([]), Some(0)), (bears(json!(300)), Some(300)), (bears(json!(null)), None)]
        {
            let placement = json!({"clusterTolerations": tolerations});
            let mut binding: Binding = serde_json::from_value(json!({"metadata": {"name": "b", "namespace": "d",
                "labels": {"propagationpolicy.karmada.io/permanent-id": "x"}},
                "spec": {"resource": {"apiVersion": "v1", "kind": "X", "name": "x"}, "placement": placement}}))
            .unwrap();
            assert_eq!(leaves(&binding, &silent, Timestamp::UNIX_EPOCH), None, "nothing was agreed yet");
            binding.annotate(atoll_api::words::annotation::APPLIED_PLACEMENT, placement.to_string());
            assert_eq!(leaves(&binding, &silent, Timestamp::UNIX_EPOCH), expected, "{placement}");
            assert_eq!(leaves(&binding, &unjoined, Timestamp::UNIX_EPOCH), Some(0));
        }
    }

    #[test]
    fn the_heading_says_what_moves_or_that_nothing_does() {
        let step = Move { subject: "X d/x".into(), before: [("m1".into(), 1)].into(), ..Move::default() };
        let mut loss = Loss { heading: "If m1 is unjoined,".into(), moves: vec![step] };
        assert_eq!(loss.to_string(), "If m1 is unjoined, this moves:\nX d/x: m1 1→gone\n");
        loss.moves[0].after_seconds = Some(30);
        assert!(loss.to_string().ends_with("m1 1→gone (after 30 s)\n"));
        loss.moves.clear();
        assert_eq!(loss.to_string(), "If m1 is unjoined, nothing moves.\n");
    }
}
