//! How many replicas each chosen cluster takes.

use crate::affinity::Matcher;
use crate::decision::DecisionError;
use crate::request::{Mode, Request, Strategy};
use crate::spread::Candidate;
use crate::webster::{Party, divide};

/// The share of a cluster.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Share {
    /// How many replicas it takes.
    pub replicas: i64,
    /// The weight by which they were divided.
    pub weight: i64,
}

/// Shares replicas out among the chosen clusters; in the order of these.
pub(crate) fn assign(request: &Request<'_>, chosen: &[&Candidate<'_>]) -> Result<Vec<Share>, DecisionError> {
    let replicas = i64::from(request.replicas);
    match request.strategy() {
        Strategy::Duplicated => Ok(chosen.iter().map(|_| Share { replicas, weight: 1 }).collect()),
        Strategy::Static => Ok(by_static_weight(request, chosen)),
        Strategy::Dynamic | Strategy::Aggregated => by_room(request, chosen),
    }
}

/// Static weights divide all replicas anew each time; the last decision does not count.
fn by_static_weight(request: &Request<'_>, chosen: &[&Candidate<'_>]) -> Vec<Share> {
    let preference = request.placement.replica_scheduling.as_ref().and_then(|it| it.weight_preference.as_ref());
    let entries = preference.into_iter().flat_map(|preference| &preference.static_weight_list);
    let entries: Vec<_> = entries.map(|entry| (Matcher::new(&entry.target_cluster), entry.weight)).collect();
    let weight = |candidate: &&Candidate<'_>| {
        let matching = entries.iter().filter(|(matcher, _)| matcher.matches(candidate.cluster));
        matching.map(|(_, weight)| *weight).max().unwrap_or(0).max(0)
    };
    let mut weights: Vec<i64> = chosen.iter().map(weight).collect();
    if weights.iter().all(|weight| *weight == 0) {
        weights.fill(1);
    }
    let parties = chosen.iter().zip(&weights);
    let parties: Vec<Party<'_>> = parties
        .map(|(candidate, votes)| Party { name: &candidate.cluster.name, votes: *votes, most: i64::MAX })
        .collect();
    let shares = divide(i64::from(request.replicas), &parties, request.uid);
    shares.into_iter().zip(weights).map(|(replicas, weight)| Share { replicas, weight }).collect()
}

/// What is to be divided now, in proportion to what, and what stays as it is.
struct Task {
    replicas: i64,
    weights: Vec<i64>,
    kept: Vec<i64>,
}

impl Task {
    fn of(request: &Request<'_>, chosen: &[&Candidate<'_>]) -> Option<Self> {
        let replicas = i64::from(request.replicas);
        let assigned: Vec<i64> = chosen.iter().map(|candidate| candidate.assigned).collect();
        let nothing = vec![0; chosen.len()];
        let sum: i64 = assigned.iter().sum();
        if request.mode == Mode::Fresh {
            let weights = chosen.iter().map(|candidate| candidate.available()).collect();
            Some(Task { replicas, weights, kept: nothing })
        } else if sum > replicas {
            Some(Task { replicas, weights: assigned, kept: nothing })
        } else if sum < replicas {
            let weights = chosen.iter().map(|candidate| candidate.room).collect();
            Some(Task { replicas: replicas - sum, weights, kept: assigned })
        } else {
            None
        }
    }
}

fn by_room(request: &Request<'_>, chosen: &[&Candidate<'_>]) -> Result<Vec<Share>, DecisionError> {
    let Some(task) = Task::of(request, chosen) else {
        let as_before = chosen.iter().map(|it| Share { replicas: it.assigned, weight: it.available() });
        return Ok(as_before.collect());
    };
    let available: i64 = task.weights.iter().sum();
    if available < task.replicas {
        return Err(DecisionError::TooLittleRoom { clusters: chosen.len(), available, needed: task.replicas });
    }
    let mut shares: Vec<Share> =
        task.weights.iter().zip(&task.kept).map(|(weight, kept)| Share { replicas: *kept, weight: *weight }).collect();
    let mut rest = task.replicas;
    let last = chosen.iter().map(|candidate| candidate.tier).max().unwrap_or(0);
    // Each tier is filled before the next is touched; what goes is thus taken from the last one first.
    for tier in 0..=last {
        let members: Vec<usize> = (0..chosen.len()).filter(|at| chosen[*at].tier == tier).collect();
        let room: i64 = members.iter().map(|at| task.weights[*at]).sum();
        let part = rest.min(room);
        if part > 0 {
            divide_tier(request, chosen, &task, members, part, &mut shares);
            rest -= part;
        }
    }
    Ok(shares)
}

fn divide_tier(
    request: &Request<'_>,
    chosen: &[&Candidate<'_>],
    task: &Task,
    mut members: Vec<usize>,
    replicas: i64,
    shares: &mut [Share],
) {
    if request.strategy() == Strategy::Aggregated {
        aggregate(task, &mut members, replicas);
    }
    let parties = members.iter().map(|at| {
        let weight = task.weights[*at];
        Party { name: &chosen[*at].cluster.name, votes: weight, most: weight }
    });
    let parties: Vec<Party<'_>> = parties.collect();
    for (at, share) in members.iter().zip(divide(replicas, &parties, request.uid)) {
        shares[*at].replicas += share;
    }
}

/// Keeps the fewest clusters with room enough: those that have replicas already, then the roomiest.
fn aggregate(task: &Task, members: &mut Vec<usize>, replicas: i64) {
    members.sort_by_key(|at| (task.kept[*at] == 0, -task.weights[*at]));
    let (mut room, mut count) = (0, 0);
    for at in members.iter() {
        room += task.weights[*at];
        count += 1;
        if room >= replicas {
            break;
        }
    }
    members.truncate(count);
}
