//! The whole decision: filter, rank, select, share out.

use std::collections::BTreeMap;

use crate::assign::{Share, assign};
use crate::cluster::{Cluster, Snapshot};
use crate::decision::{ClusterReason, Decision, DecisionError, Skipped, Target};
use crate::filter::{Previous, Tiers, check};
use crate::request::{Mode, Request, Strategy};
use crate::rule::Rule;
use crate::spread::{Candidate, Spread, rank, select};

/// The score of a cluster that already is a target.
const IS_TARGET: i64 = 100;
/// More room than this nobody counts.
const UNBOUNDED: i64 = i32::MAX as i64;

/// Decides on the clusters and replicas for a request.
///
/// Affinity terms are tried in their order, from the one of the last decision on, or from the
/// first when all is decided anew. If none does, the error of the first that was tried stands.
pub fn decide(snapshot: &Snapshot, request: &Request<'_>) -> Decision {
    let spread = Spread::of(request.placement);
    let previous = Previous::of(request);
    let terms = &request.placement.cluster_affinities;
    if terms.is_empty() {
        let tiers = Tiers::of_placement(request.placement);
        return Attempt { snapshot, request, spread: &spread, previous: &previous }.run(&tiers);
    }
    let start = match request.mode {
        Mode::Fresh => 0,
        Mode::Steady => terms.iter().position(|term| term.affinity_name == request.observed_affinity).unwrap_or(0),
    };
    let mut failed: Option<Decision> = None;
    let mut skipped = Vec::new();
    for term in terms.iter().skip(start) {
        let tiers = Tiers::of_term(term, request.is_workload());
        let attempt = Attempt { snapshot, request, spread: &spread, previous: &previous };
        let mut decision = attempt.run(&tiers);
        decision.affinity.clone_from(&term.affinity_name);
        let Some(error) = &decision.error else {
            decision.skipped = skipped;
            return decision;
        };
        skipped.push(Skipped { affinity: term.affinity_name.clone(), error: error.clone() });
        failed.get_or_insert(decision);
    }
    let mut decision = failed.unwrap_or_default();
    decision.skipped = skipped;
    decision
}

/// A decision with one affinity term.
struct Attempt<'a> {
    snapshot: &'a Snapshot,
    request: &'a Request<'a>,
    spread: &'a Spread<'a>,
    previous: &'a Previous<'a>,
}

impl Attempt<'_> {
    fn run(&self, tiers: &Tiers<'_>) -> Decision {
        let mut reasons = Vec::with_capacity(self.snapshot.clusters().len());
        let mut candidates = Vec::new();
        for (at, cluster) in self.snapshot.clusters().iter().enumerate() {
            let replicas = self.previous.replicas(&cluster.name);
            let score = if replicas.is_some() { IS_TARGET } else { 0 };
            let checked = check(self.request, tiers, self.spread, cluster, replicas.is_some());
            let mut reason =
                ClusterReason { cluster: cluster.name.clone(), chosen: None, score, available: None, refused_by: None };
            match checked {
                Err(rule) => reason.refused_by = Some(rule),
                Ok(tier) => {
                    let (room, assigned) = (self.room(cluster), replicas.unwrap_or(0));
                    let candidate = Candidate { cluster, at, tier, score, room, assigned };
                    reason.available = Some(candidate.available()).filter(|_| self.request.is_workload());
                    candidates.push(candidate);
                }
            }
            reasons.push(reason);
        }
        rank(&mut candidates);
        match self.place(&candidates, &mut reasons) {
            Ok(clusters) => Decision { clusters, reasons, ..Decision::default() },
            Err(error) => Decision { reasons, error: Some(error), ..Decision::default() },
        }
    }

    /// How many more replicas, or sets of components, a cluster has room for.
    fn room(&self, cluster: &Cluster) -> i64 {
        let request = self.request;
        if !request.is_workload() {
            return UNBOUNDED;
        }
        let components = request.components.iter();
        let reported = if request.is_set() {
            cluster.capacity.sets(components.map(|it| (i64::from(it.replicas), it.requirements.as_ref())))
        } else {
            cluster.capacity.replicas(request.requirements.as_ref())
        };
        let counted = request.estimates.and_then(|estimates| estimates.get(&cluster.name)).filter(|it| **it >= 0);
        let room = counted.map_or(reported, |counted| reported.min(i64::from(*counted)));
        if room >= UNBOUNDED { i64::from(request.replicas.max(1)) } else { room }
    }

    fn place(&self, candidates: &[Candidate<'_>], reasons: &mut [ClusterReason]) -> Result<Vec<Target>, DecisionError> {
        if candidates.is_empty() {
            return Err(no_cluster_fits(reasons));
        }
        let selection = select(candidates, self.spread, self.request)?;
        for (at, rule) in selection.refused {
            reasons[candidates[at].at].refused_by = Some(rule);
        }
        let chosen: Vec<&Candidate<'_>> = selection.taken.iter().map(|at| &candidates[*at]).collect();
        let shares = if self.request.replicas > 0 {
            assign(self.request, &chosen)?
        } else {
            vec![Share::default(); chosen.len()]
        };
        let mut targets = Vec::with_capacity(chosen.len());
        for (candidate, share) in chosen.iter().zip(shares) {
            let reason = &mut reasons[candidate.at];
            if share.replicas > 0 || self.request.replicas <= 0 || self.request.options.empty_workloads {
                let replicas = i32::try_from(share.replicas).unwrap_or(i32::MAX);
                reason.chosen = Some(replicas);
                targets.push(Target { name: candidate.cluster.name.clone(), replicas });
            } else {
                reason.refused_by = Some(self.no_share(share));
            }
        }
        targets.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(targets)
    }

    fn no_share(&self, share: Share) -> Rule {
        if self.request.strategy() == Strategy::Static && share.weight == 0 {
            Rule::NoWeight
        } else {
            Rule::NoShare { weight: share.weight, replicas: self.request.replicas }
        }
    }
}

fn no_cluster_fits(reasons: &[ClusterReason]) -> DecisionError {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for rule in reasons.iter().filter_map(|reason| reason.refused_by.as_ref()) {
        *counts.entry(rule.summary()).or_default() += 1;
    }
    let refusals = counts.into_iter().map(|(what, count)| (count, what)).collect();
    DecisionError::NoClusterFits { total: reasons.len(), refusals }
}
