//! Which clusters can take the template at all.

use atoll_api::policy::{ClusterAffinityTerm, Placement};
use k8s_openapi::api::core::v1::Toleration;

use crate::affinity::Matcher;
use crate::cluster::{Cluster, Taint};
use crate::request::Request;
use crate::rule::Rule;
use crate::spread::Spread;

/// The clusters of an affinity term, and those that take what it cannot.
pub(crate) struct Tiers<'a> {
    primary: Matcher<'a>,
    overflow: Vec<Matcher<'a>>,
}

impl<'a> Tiers<'a> {
    /// Of a placement without named terms.
    pub(crate) fn of_placement(placement: &'a Placement) -> Self {
        let primary = placement.cluster_affinity.as_ref().map_or_else(Matcher::any, Matcher::new);
        Tiers { primary, overflow: Vec::new() }
    }

    /// Of a named term; only workloads overflow.
    pub(crate) fn of_term(term: &'a ClusterAffinityTerm, is_workload: bool) -> Self {
        let overflow = term.overflow_affinities.iter().filter(|_| is_workload);
        Tiers {
            primary: Matcher::new(&term.affinity),
            overflow: overflow.map(|term| Matcher::new(&term.affinity)).collect(),
        }
    }

    /// The first tier a cluster belongs to; 0 is the term itself.
    fn of(&self, cluster: &Cluster) -> Result<usize, Rule> {
        let Some(miss) = self.primary.miss(cluster) else {
            return Ok(0);
        };
        let tier = self.overflow.iter().position(|matcher| matcher.matches(cluster));
        tier.map(|tier| tier + 1).ok_or(Rule::Affinity(miss))
    }
}

/// The last decision, quick to ask for one cluster.
pub(crate) struct Previous<'a>(Vec<(&'a str, i64)>);

impl<'a> Previous<'a> {
    pub(crate) fn of(request: &Request<'a>) -> Self {
        let targets = request.previous.iter().map(|target| (target.name.as_str(), i64::from(target.replicas.max(0))));
        let mut targets: Vec<_> = targets.collect();
        targets.sort_unstable();
        Previous(targets)
    }

    /// How many replicas a cluster has, if it is a target.
    pub(crate) fn replicas(&self, cluster: &str) -> Option<i64> {
        let at = self.0.binary_search_by(|(name, _)| (*name).cmp(cluster)).ok()?;
        self.0.get(at).map(|(_, replicas)| *replicas)
    }
}

/// The tier of a cluster, or the rule that refuses it.
///
/// A cluster that already is a target is not asked for its APIs, its taints and who else is there: only an eviction
/// takes a workload away from where it runs.
pub(crate) fn check(
    request: &Request<'_>,
    tiers: &Tiers<'_>,
    spread: &Spread<'_>,
    cluster: &Cluster,
    is_target: bool,
) -> Result<usize, Rule> {
    if cluster.deleting {
        return Err(Rule::Deleting);
    }
    let tier = tiers.of(cluster)?;
    if !is_target {
        if !cluster.serves(&request.api) {
            return Err(Rule::ApiMissing(request.api.clone()));
        }
        let tolerations = &request.placement.cluster_tolerations;
        if let Some(taint) = cluster.taints.iter().find(|taint| taint.is_hard() && !is_tolerated(tolerations, taint)) {
            return Err(Rule::Taint(taint.clone()));
        }
    }
    if let Some(constraint) = spread.groups.iter().find(|constraint| constraint.by.group(cluster).is_none()) {
        return Err(Rule::NoGroup(constraint.by.name()));
    }
    if request.evicting.iter().any(|name| *name == &*cluster.name) {
        return Err(Rule::Evicting);
    }
    if is_target {
        return Ok(tier);
    }
    if let Some(hosts) = request.affinity_hosts.filter(|hosts| !hosts.contains(&*cluster.name)) {
        return Err(Rule::NotWithGroup(hosts.len()));
    }
    if request.anti_affinity_hosts.is_some_and(|hosts| hosts.contains(&*cluster.name)) {
        return Err(Rule::WithGroup);
    }
    Ok(tier)
}

fn is_tolerated(tolerations: &[Toleration], taint: &Taint) -> bool {
    let same =
        |given: &Option<String>, own: &str| given.as_deref().is_none_or(|given| given.is_empty() || given == own);
    tolerations.iter().any(|toleration| {
        same(&toleration.effect, &taint.effect)
            && same(&toleration.key, &taint.key)
            && match toleration.operator.as_deref() {
                None | Some("" | "Equal") => toleration.value.as_deref().unwrap_or_default() == taint.value,
                Some("Exists") => true,
                Some(_) => false,
            }
    })
}
