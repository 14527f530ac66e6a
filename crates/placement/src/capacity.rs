//! How many replicas a cluster has room for, judged by what it reports.

use std::collections::BTreeMap;

use atoll_api::cluster::{AllocatableModeling, Cluster, ResourceModel, ResourceSummary};
use atoll_api::work::{ComponentReplicaRequirements, ReplicaRequirements};
use atoll_meta::quantity::Quantity;

const CPU: &str = "cpu";
const PODS: &str = "pods";
/// How many pods a node takes at most, when all that is known of it is its grade.
const PODS_PER_NODE: i64 = 110;

/// Amounts by resource: thousandths of a core for CPU, whole units for the rest. Sorted by name.
type Amounts = Vec<(Box<str>, i64)>;

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

/// A grade of nodes: how many there are and what each has at least.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Grade {
    count: i64,
    least: Amounts,
}

/// What a cluster has room for.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Capacity {
    /// Pods it can still take; 0 when it reports nothing.
    pods: i64,
    left: Amounts,
    grades: Vec<Grade>,
}

impl Capacity {
    /// Room for so many pods and these amounts.
    pub fn new<'a>(pods: i64, left: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let left = left.into_iter().filter_map(|(resource, quantity)| {
            Some((resource.into(), amount(resource, Quantity::parse(quantity).ok()?)))
        });
        let mut left: Amounts = left.collect();
        left.sort();
        Capacity { pods, left, grades: Vec::new() }
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
        let grades = grades(&cluster.spec.resource_models, &summary.allocatable_modelings);
        Capacity { pods, left, grades }
    }

    /// How many replicas there is room for; no requirements means that only pods count.
    pub fn replicas(&self, requirements: Option<&Requirements>) -> i64 {
        if self.pods <= 0 {
            return 0;
        }
        let Some(requirements) = requirements.filter(|requirements| !requirements.requests.is_empty()) else {
            return self.pods;
        };
        self.by_grades(requirements).unwrap_or_else(|| self.by_summary(requirements)).min(self.pods)
    }

    /// How many sets of several components there is room for, each given with its replicas.
    pub fn sets<'a>(&self, components: impl IntoIterator<Item = (i64, Option<&'a Requirements>)>) -> i64 {
        let (mut pods, mut total) = (0_i64, BTreeMap::<&str, i64>::new());
        for (replicas, requirements) in components {
            pods = pods.saturating_add(replicas);
            for (resource, request) in requirements.into_iter().flat_map(|requirements| &requirements.requests) {
                let sum = total.entry(resource).or_default();
                *sum = sum.saturating_add(request.saturating_mul(replicas));
            }
        }
        if pods <= 0 {
            return self.pods.max(0);
        }
        let by_resource = total.into_iter().filter(|(_, request)| *request > 0);
        let least = by_resource.map(|(resource, request)| self.left_of(resource) / request).min();
        least.unwrap_or(i64::MAX).min(self.pods / pods).max(0)
    }

    fn left_of(&self, resource: &str) -> i64 {
        find(&self.left, resource).unwrap_or(0)
    }

    fn by_summary(&self, requirements: &Requirements) -> i64 {
        let fits = requirements.requests.iter().map(|(resource, request)| self.left_of(resource).max(0) / request);
        fits.min().unwrap_or(i64::MAX)
    }

    /// `None` when there are no grades, or when they say nothing of a resource that is asked for.
    fn by_grades(&self, requirements: &Requirements) -> Option<i64> {
        if self.grades.is_empty() {
            return None;
        }
        let mut total = 0_i64;
        for grade in &self.grades {
            let mut node = PODS_PER_NODE;
            for (resource, request) in &requirements.requests {
                node = node.min(find(&grade.least, resource)? / request);
            }
            total = total.saturating_add(grade.count.saturating_mul(node.max(0)));
        }
        Some(total)
    }
}

fn find(amounts: &Amounts, resource: &str) -> Option<i64> {
    let at = amounts.binary_search_by(|(name, _)| (**name).cmp(resource)).ok()?;
    amounts.get(at).map(|(_, amount)| *amount)
}

fn amount(resource: &str, quantity: Quantity) -> i64 {
    if resource == CPU { quantity.milli_value() } else { quantity.value() }
}

fn remaining(summary: &ResourceSummary, resource: &str) -> Quantity {
    let read = |amounts: &BTreeMap<String, atoll_api::Quantity>| {
        amounts.get(resource).and_then(|quantity| Quantity::parse(&quantity.0).ok()).unwrap_or(Quantity::ZERO)
    };
    read(&summary.allocatable) - read(&summary.allocated) - read(&summary.allocating)
}

fn grades(models: &[ResourceModel], counts: &[AllocatableModeling]) -> Vec<Grade> {
    if counts.is_empty() {
        return Vec::new();
    }
    let grade = |model: &ResourceModel| {
        let count = counts.iter().find(|count| count.grade == model.grade).map_or(0, |count| count.count);
        let least = model.ranges.iter().filter_map(|range| {
            Some((range.name.as_str().into(), amount(&range.name, Quantity::parse(&range.min.0).ok()?)))
        });
        let mut least: Amounts = least.collect();
        least.sort();
        Grade { count, least }
    };
    models.iter().map(grade).collect()
}
