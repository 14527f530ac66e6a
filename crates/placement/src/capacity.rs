//! How many replicas a cluster has room for, judged by what it reports.

use std::collections::BTreeMap;

use atoll_api::cluster::{Cluster, ResourceSummary};
use atoll_api::work::{ComponentReplicaRequirements, ReplicaRequirements};
use atoll_meta::quantity::Quantity;

use crate::grades::Grades;

const CPU: &str = "cpu";
const PODS: &str = "pods";
/// Amounts by resource: thousandths of a core for CPU, whole units for the rest. Sorted by name.
pub(crate) type Amounts = Vec<(Box<str>, i64)>;

/// What one replica asks for.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Requirements {
    requests: Amounts,
}

impl Requirements {
    /// Reads requests; one that cannot be read counts as more than any cluster has.
    pub fn new<'a>(requests: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let amounts = requests.into_iter().filter_map(|(resource, quantity)| {
            let request = Quantity::parse(quantity).map_or(i64::MAX, |quantity| amount(resource, quantity));
            (request > 0).then(|| (resource.into(), request))
        });
        let mut requests: Amounts = amounts.collect();
        requests.sort();
        Requirements { requests }
    }
}

impl From<&ReplicaRequirements> for Requirements {
    fn from(requirements: &ReplicaRequirements) -> Self {
        Self::new(requirements.resource_request.iter().map(|(name, quantity)| (name.as_str(), quantity.0.as_str())))
    }
}

impl From<&ComponentReplicaRequirements> for Requirements {
    fn from(requirements: &ComponentReplicaRequirements) -> Self {
        Self::new(requirements.resource_request.iter().map(|(name, quantity)| (name.as_str(), quantity.0.as_str())))
    }
}

/// What a cluster has room for.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Capacity {
    /// Pods it can still take; 0 when it reports nothing.
    pods: i64,
    left: Amounts,
    /// What is known of its nodes; says more than the sums.
    grades: Option<Grades>,
}

impl Capacity {
    /// Room for so many pods and these amounts.
    pub fn new<'a>(pods: i64, left: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let left = left.into_iter().filter_map(|(resource, quantity)| {
            Some((resource.into(), amount(resource, Quantity::parse(quantity).ok()?)))
        });
        let mut left: Amounts = left.collect();
        left.sort();
        Capacity { pods, left, grades: None }
    }

    /// What a cluster reports; without a report there is no room.
    pub fn of(cluster: &Cluster) -> Self {
        let Some(summary) = cluster.status.as_ref().and_then(|status| status.resource_summary.as_ref()) else {
            return Capacity::default();
        };
        let mut left = Amounts::new();
        for resource in summary.allocatable.keys() {
            left.push((resource.as_str().into(), amount(resource, remaining(summary, resource))));
        }
        let pods = left.iter().find(|(resource, _)| &**resource == PODS).map_or(0, |(_, pods)| *pods);
        let grades = Grades::of(&cluster.spec.resource_models, &summary.allocatable_modelings);
        Capacity { pods, left, grades }
    }

    /// How many replicas there is room for; no requirements means that only pods count.
    pub fn replicas(&self, requirements: Option<&Requirements>) -> i64 {
        if self.pods <= 0 {
            return 0;
        }
        let Some(requirements) = requirements else {
            return self.pods;
        };
        let room = match &self.grades {
            Some(grades) => grades.replicas(&requirements.requests),
            None => self.by_summary(requirements),
        };
        room.min(self.pods)
    }

    /// How many sets of several components there is room for, each given with its replicas.
    pub fn sets<'a>(&self, components: impl IntoIterator<Item = (i64, Option<&'a Requirements>)>) -> i64 {
        let none = Amounts::new();
        let list: Vec<(i64, &Amounts)> = components
            .into_iter()
            .map(|(replicas, requirements)| (replicas.max(0), requirements.map_or(&none, |it| &it.requests)))
            .collect();
        let (mut pods, mut total) = (0_i64, BTreeMap::<&str, i64>::new());
        for (replicas, requests) in &list {
            pods = pods.saturating_add(*replicas);
            for (resource, request) in *requests {
                let sum = total.entry(resource).or_default();
                *sum = sum.saturating_add(request.saturating_mul(*replicas));
            }
        }
        if pods <= 0 {
            return self.pods.max(0);
        }
        let by_resource = total.into_iter().filter(|(_, request)| *request > 0);
        let least = by_resource.map(|(resource, request)| self.left_of(resource) / request).min();
        let most = least.unwrap_or(i64::MAX).min(self.pods / pods).max(0);
        self.grades.as_ref().map_or(most, |grades| grades.sets(&list, most))
    }

    fn left_of(&self, resource: &str) -> i64 {
        find(&self.left, resource).unwrap_or(0)
    }

    fn by_summary(&self, requirements: &Requirements) -> i64 {
        let fits = requirements.requests.iter().map(|(resource, request)| self.left_of(resource).max(0) / request);
        fits.min().unwrap_or(i64::MAX)
    }
}

/// The amount of a resource, if it is named.
pub(crate) fn find(amounts: &Amounts, resource: &str) -> Option<i64> {
    let at = amounts.binary_search_by(|(name, _)| (**name).cmp(resource)).ok()?;
    amounts.get(at).map(|(_, amount)| *amount)
}

/// A quantity as an amount.
pub(crate) fn amount(resource: &str, quantity: Quantity) -> i64 {
    if resource == CPU { quantity.milli_value() } else { quantity.value() }
}

fn remaining(summary: &ResourceSummary, resource: &str) -> Quantity {
    let read = |amounts: &BTreeMap<String, atoll_api::Quantity>| {
        amounts.get(resource).and_then(|quantity| Quantity::parse(&quantity.0).ok()).unwrap_or(Quantity::ZERO)
    };
    read(&summary.allocatable) - read(&summary.allocated) - read(&summary.allocating)
}
