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

fn by_room(request: &Request<'_>, chosen: &[&Candidate<'_>]) -> Result<Vec<Share>, DecisionError> {
    let mut shares: Vec<Share> =
        chosen.iter().map(|candidate| Share { replicas: 0, weight: candidate.available() }).collect();
    let needed = i64::from(request.replicas);
    let mut rest = needed;
    let last = chosen.iter().map(|candidate| candidate.tier).max().unwrap_or(0);
    // Each tier is filled before the next is touched: what goes is taken from the last one first, and what has room
    // again further ahead moves there.
    for tier in 0..=last {
        let members: Vec<usize> = (0..chosen.len()).filter(|at| chosen[*at].tier == tier).collect();
        let room: i64 = members.iter().map(|at| chosen[*at].available()).sum();
        let part = rest.min(room);
        if part > 0 {
            Task::of(request, chosen, members, part).run(request, chosen, &mut shares);
            rest -= part;
        }
    }
    if rest > 0 {
        return Err(DecisionError::TooLittleRoom { clusters: chosen.len(), available: needed - rest, needed });
    }
    Ok(shares)
}

/// One who may take replicas: its place among the chosen, what it has room for, and what it keeps.
struct Member {
    at: usize,
    weight: i64,
    kept: i64,
}

/// What is to be divided now among clusters of one tier, in proportion to what, and what stays as it is.
struct Task {
    replicas: i64,
    members: Vec<Member>,
}

impl Task {
    fn of(request: &Request<'_>, chosen: &[&Candidate<'_>], members: Vec<usize>, replicas: i64) -> Self {
        let assigned: i64 = members.iter().map(|at| chosen[*at].assigned).sum();
        let members = |with: fn(&Candidate<'_>) -> (i64, i64)| {
            let member = |at: usize| {
                let (weight, kept) = with(chosen[at]);
                Member { at, weight, kept }
            };
            members.into_iter().map(member).collect()
        };
        if request.mode == Mode::Fresh {
            Task { replicas, members: members(|it| (it.available(), 0)) }
        } else if assigned > replicas {
            let mut members: Vec<Member> = members(|it| (it.assigned, 0));
            // What goes is not taken by rank: the roomiest of equals is no better than others.
            members.sort_by(|a, b| chosen[a.at].cluster.name.cmp(&chosen[b.at].cluster.name));
            Task { replicas, members }
        } else {
            Task { replicas: replicas - assigned, members: members(|it| (it.room, it.assigned)) }
        }
    }

    fn run(mut self, request: &Request<'_>, chosen: &[&Candidate<'_>], shares: &mut [Share]) {
        for member in &self.members {
            shares[member.at] = Share { replicas: member.kept, weight: member.weight };
        }
        if self.replicas == 0 {
            return;
        }
        if request.strategy() == Strategy::Aggregated {
            self.aggregate();
        }
        let parties = self.members.iter().map(|member| Party {
            name: &chosen[member.at].cluster.name,
            votes: member.weight,
            most: member.weight,
        });
        let parties: Vec<Party<'_>> = parties.collect();
        for (member, share) in self.members.iter().zip(divide(self.replicas, &parties, request.uid)) {
            shares[member.at].replicas += share;
        }
    }

    /// Keeps the fewest clusters with room enough: those that have replicas already, then the roomiest.
    fn aggregate(&mut self) {
        self.members.sort_by_key(|member| (member.kept == 0, -member.weight));
        let (mut room, mut count) = (0, 0);
        for member in &self.members {
            room += member.weight;
            count += 1;
            if room >= self.replicas {
                break;
            }
        }
        self.members.truncate(count);
    }
}
