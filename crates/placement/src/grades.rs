//! Nodes of which only the grade is known: how many there are and what each has at least.

use atoll_api::cluster::{AllocatableModeling, ResourceModel};
use atoll_meta::quantity::Quantity;

use crate::capacity::{Amounts, amount, find};

/// How many pods a node takes at most, when all that is known of it is its grade.
const PODS_PER_NODE: i64 = 110;
/// More nodes of a cluster nobody looks at one by one, whatever it reports.
const MOST_NODES: i64 = 100_000;
/// More sets nobody counts: the one that comes next finds room.
const MOST_SETS: i64 = 100_000;

/// A grade of nodes.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Grade {
    count: i64,
    least: Amounts,
}

/// The nodes of a cluster by grade, the least first.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Grades(Vec<Grade>);

impl Grades {
    /// `None` when a cluster has no grades or has not counted its nodes.
    pub(crate) fn of(models: &[ResourceModel], counts: &[AllocatableModeling]) -> Option<Self> {
        if models.is_empty() || counts.is_empty() {
            return None;
        }
        let grade = |model: &ResourceModel| {
            let nodes = counts.iter().filter(|count| count.grade == model.grade).map(|count| count.count.max(0));
            let nodes = nodes.fold(0, i64::saturating_add);
            let least = model.ranges.iter().filter_map(|range| {
                Some((range.name.as_str().into(), amount(&range.name, Quantity::parse(&range.min.0).ok()?)))
            });
            let mut least: Amounts = least.collect();
            least.sort();
            (model.grade, Grade { count: nodes, least })
        };
        let mut grades: Vec<_> = models.iter().map(grade).collect();
        grades.sort_by_key(|(number, _)| *number);
        Some(Grades(grades.into_iter().map(|(_, grade)| grade).collect()))
    }

    /// How many replicas the nodes have room for. Of what a grade does not name, its nodes have none.
    pub(crate) fn replicas(&self, requests: &Amounts) -> i64 {
        let on_one = |grade: &Grade| {
            let fits = requests.iter().map(|(resource, request)| find(&grade.least, resource).unwrap_or(0) / request);
            fits.fold(PODS_PER_NODE, i64::min).max(0)
        };
        let fits = self.0.iter().map(|grade| grade.count.saturating_mul(on_one(grade)));
        fits.fold(0, i64::saturating_add)
    }

    /// How many whole sets of components the nodes have room for, up to `most`: each replica goes to the first node
    /// that has room for it.
    pub(crate) fn sets(&self, components: &[(i64, &Amounts)], most: i64) -> i64 {
        let most = most.min(MOST_SETS);
        let replicas = components.iter().fold(0_i64, |sum, (replicas, _)| sum.saturating_add(*replicas));
        let mut nodes = Vec::new();
        let mut rest = MOST_NODES;
        for grade in &self.0 {
            // No more nodes of a grade are used than there are replicas.
            let count = grade.count.min(replicas.saturating_mul(most)).min(rest);
            rest -= count;
            nodes.extend((0..count).map(|_| Node { pods: PODS_PER_NODE, left: grade.least.clone() }));
        }
        // A node that has no room for a component will never have: each is searched from where the last one went.
        let mut first = vec![0; components.len()];
        for set in 0..most {
            for ((replicas, requests), first) in components.iter().zip(&mut first) {
                let mut rest = *replicas;
                while rest > 0 {
                    let Some(node) = nodes.get_mut(*first) else {
                        return set;
                    };
                    let part = node.fits(requests).min(rest);
                    node.take(requests, part);
                    rest -= part;
                    *first += usize::from(part == 0);
                }
            }
        }
        most
    }
}

/// A node while it is filled.
struct Node {
    pods: i64,
    left: Amounts,
}

impl Node {
    fn fits(&self, requests: &Amounts) -> i64 {
        let fits = requests.iter().map(|(resource, request)| find(&self.left, resource).unwrap_or(0) / request);
        fits.fold(self.pods, i64::min).max(0)
    }

    fn take(&mut self, requests: &Amounts, replicas: i64) {
        self.pods -= replicas;
        for (resource, left) in &mut self.left {
            *left -= find(requests, resource).unwrap_or(0) * replicas;
        }
    }
}
