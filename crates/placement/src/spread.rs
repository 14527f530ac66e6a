//! Which of the clusters that can take the template do: spread constraints.

mod cover;
mod groups;

use std::collections::BTreeMap;
use std::sync::Arc;

use atoll_api::policy::{Placement, SpreadConstraint, SpreadField};

use crate::cluster::Cluster;
use crate::decision::DecisionError;
use crate::request::{Request, Strategy};
use crate::rule::Rule;

/// How much a met demand counts against a score of a cluster, which is at most 100.
const UNIT: i64 = 1000;

/// A cluster that passed all filters.
#[derive(Clone, Debug)]
pub(crate) struct Candidate<'s> {
    /// The cluster.
    pub cluster: &'s Cluster,
    /// Its place in the snapshot.
    pub at: usize,
    /// 0, or the overflow it belongs to.
    pub tier: usize,
    /// 100 if it already is a target.
    pub score: i64,
    /// How many more replicas it has room for.
    pub room: i64,
    /// How many replicas it has.
    pub assigned: i64,
}

impl Candidate<'_> {
    /// How many replicas it has room for, with those it has.
    pub(crate) fn available(&self) -> i64 {
        self.room + self.assigned
    }
}

/// Best first: tier, score, room, name.
pub(crate) fn rank(candidates: &mut [Candidate<'_>]) {
    candidates.sort_by(|a, b| {
        let order = a.tier.cmp(&b.tier).then(b.score.cmp(&a.score)).then(b.available().cmp(&a.available()));
        order.then_with(|| a.cluster.name.cmp(&b.cluster.name))
    });
}

/// What makes clusters a group.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) enum GroupBy<'a> {
    Provider,
    Region,
    Zone,
    Label(&'a str),
}

impl GroupBy<'_> {
    /// The group of a cluster. One in several zones belongs to the first of them only, so that
    /// it cannot stand for a spread over zones alone.
    pub(crate) fn group<'c>(&self, cluster: &'c Cluster) -> Option<&'c str> {
        let group = match self {
            GroupBy::Provider => Some(cluster.provider.as_str()),
            GroupBy::Region => Some(cluster.region.as_str()),
            GroupBy::Zone => cluster.zones.first().map(String::as_str),
            GroupBy::Label(key) => cluster.labels.get(*key).map(String::as_str),
        };
        group.filter(|group| !group.is_empty())
    }

    /// What it is called.
    pub(crate) fn name(&self) -> Arc<str> {
        match self {
            GroupBy::Provider => "provider".into(),
            GroupBy::Region => "region".into(),
            GroupBy::Zone => "zone".into(),
            GroupBy::Label(key) => format!("label {key}").into(),
        }
    }
}

/// How many groups there must and may be.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Constraint<'a> {
    pub by: GroupBy<'a>,
    pub least: usize,
    pub most: usize,
}

/// The spread constraints of a placement.
#[derive(Clone, Debug)]
pub(crate) struct Spread<'a> {
    /// How many clusters there must be.
    pub least: usize,
    /// How many clusters there may be.
    pub most: usize,
    /// Constraints on groups of clusters.
    pub groups: Vec<Constraint<'a>>,
}

impl<'a> Spread<'a> {
    /// Reads the constraints; of several on the same field the last one counts.
    pub(crate) fn of(placement: &'a Placement) -> Self {
        let mut spread = Spread { least: 0, most: usize::MAX, groups: Vec::new() };
        for constraint in &placement.spread_constraints {
            let (least, most) = bounds(constraint);
            let by = match constraint.spread_by_field {
                Some(SpreadField::Provider) => GroupBy::Provider,
                Some(SpreadField::Region) => GroupBy::Region,
                Some(SpreadField::Zone) => GroupBy::Zone,
                None if !constraint.spread_by_label.is_empty() => GroupBy::Label(&constraint.spread_by_label),
                Some(SpreadField::Cluster) | None => {
                    (spread.least, spread.most) = (least, most);
                    continue;
                }
            };
            spread.groups.retain(|known| known.by != by);
            spread.groups.push(Constraint { by, least, most });
        }
        spread
    }

    fn is_open(&self) -> bool {
        self.least == 0 && self.most == usize::MAX && self.groups.is_empty()
    }
}

fn bounds(constraint: &SpreadConstraint) -> (usize, usize) {
    let least = usize::try_from(constraint.min_groups).unwrap_or(0).max(1);
    match usize::try_from(constraint.max_groups) {
        Ok(0) | Err(_) => (least, usize::MAX),
        Ok(most) => (least, most),
    }
}

/// Places in the list of candidates that are taken, best first, and why others are not.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    pub taken: Vec<usize>,
    pub refused: Vec<(usize, Rule)>,
}

/// Chooses among ranked candidates.
pub(crate) fn select(
    candidates: &[Candidate<'_>],
    spread: &Spread<'_>,
    request: &Request<'_>,
) -> Result<Selection, DecisionError> {
    if spread.is_open() || request.ignores_spread() {
        return Ok(Selection { taken: (0..candidates.len()).collect(), refused: Vec::new() });
    }
    match spread.groups.as_slice() {
        [] => by_cluster(candidates, spread, needed(request)),
        [constraint] => by_group(candidates, spread, constraint, request),
        _ => {
            let taken = cover::choose(candidates, spread)?;
            Ok(with_ranks(candidates.len(), taken, spread.most))
        }
    }
}

/// How many replicas the chosen clusters must have room for; `None` when room does not matter.
fn needed(request: &Request<'_>) -> Option<i64> {
    match request.strategy() {
        Strategy::Duplicated => None,
        _ if request.is_set() => Some(1),
        Strategy::Static | Strategy::Dynamic | Strategy::Aggregated => Some(i64::from(request.replicas)),
    }
}

fn with_ranks(of: usize, taken: Vec<usize>, most: usize) -> Selection {
    let mut is_taken = vec![false; of];
    taken.iter().for_each(|at| is_taken[*at] = true);
    let left = (0..of).filter(|at| !is_taken[*at]);
    let most = most.min(taken.len());
    let refused = left.map(|at| (at, Rule::Rank { place: at + 1, of, most })).collect();
    Selection { taken, refused }
}

fn by_cluster(
    candidates: &[Candidate<'_>],
    spread: &Spread<'_>,
    needed: Option<i64>,
) -> Result<Selection, DecisionError> {
    let found = candidates.len();
    if found < spread.least {
        return Err(DecisionError::TooFewGroups { by: "cluster".to_owned(), found, least: spread.least });
    }
    let count = spread.most.min(found);
    let mut order: Vec<usize> = (0..found).collect();
    if let Some(needed) = needed {
        make_room(candidates, &mut order, count, needed)?;
    }
    order.truncate(count);
    Ok(with_ranks(found, order, count))
}

/// While the first `count` have too little room, changes the last of them for the roomiest of the rest.
fn make_room(
    candidates: &[Candidate<'_>],
    order: &mut [usize],
    count: usize,
    needed: i64,
) -> Result<(), DecisionError> {
    let room = |at: usize| candidates[at].available();
    let mut total: i64 = order[..count].iter().map(|at| room(*at)).sum();
    for last in (0..count).rev() {
        if total >= needed {
            break;
        }
        let (mut best, mut most) = (None, room(order[last]));
        for (place, at) in order.iter().enumerate().skip(count) {
            if room(*at) > most {
                (best, most) = (Some(place), room(*at));
            }
        }
        if let Some(best) = best {
            total += most - room(order[last]);
            order.swap(last, best);
        }
    }
    if total < needed {
        return Err(DecisionError::TooLittleRoom { clusters: count, available: total, needed });
    }
    Ok(())
}

fn by_group(
    candidates: &[Candidate<'_>],
    spread: &Spread<'_>,
    constraint: &Constraint<'_>,
    request: &Request<'_>,
) -> Result<Selection, DecisionError> {
    let mut members: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, candidate) in candidates.iter().enumerate() {
        if let Some(group) = constraint.by.group(candidate.cluster) {
            members.entry(group).or_default().push(at);
        }
    }
    let by = constraint.by.name();
    if members.len() < constraint.least {
        let (by, found) = (by.to_string(), members.len());
        return Err(DecisionError::TooFewGroups { by, found, least: constraint.least });
    }
    let weigh = |(name, members): (&&'_ str, &Vec<usize>)| groups::Group {
        name: (*name).to_owned(),
        value: members.len() as i64,
        weight: score(candidates, members, request, (constraint.least, spread.least)),
    };
    let found: Vec<groups::Group> = members.iter().map(weigh).collect();
    let most = constraint.most.min(spread.most);
    let chosen = groups::choose(&found, constraint.least, most, spread.least as i64);
    let Some(chosen) = chosen else {
        return Err(DecisionError::NoChoice { by: by.to_string() });
    };
    let (mut taken, mut rest) = (Vec::new(), Vec::new());
    for group in chosen {
        if let Some((best, others)) = members.get(found[group].name.as_str()).and_then(|list| list.split_first()) {
            taken.push(*best);
            rest.extend_from_slice(others);
        }
    }
    rest.sort_unstable();
    taken.extend(rest.into_iter().take(spread.most.saturating_sub(taken.len())));
    Ok(with_groups(candidates, taken, constraint, spread.most))
}

/// Says of those not taken whether their group or their place in it is the cause.
fn with_groups(candidates: &[Candidate<'_>], taken: Vec<usize>, constraint: &Constraint<'_>, most: usize) -> Selection {
    let by = constraint.by.name();
    let group = |at: usize| constraint.by.group(candidates[at].cluster).unwrap_or_default();
    let groups: std::collections::BTreeSet<&str> = taken.iter().map(|at| group(*at)).collect();
    let mut selection = with_ranks(candidates.len(), taken, most);
    for (at, rule) in &mut selection.refused {
        if !groups.contains(group(*at)) {
            *rule = Rule::Group { by: by.clone(), name: group(*at).into(), most: constraint.most };
        }
    }
    selection
}

/// What a group is worth: first how much of the demand it can meet, then the scores of its clusters.
///
/// `least` is how many groups and how many clusters there must be; each group is to meet its part of the demand with
/// the best of its clusters.
fn score(candidates: &[Candidate<'_>], members: &[usize], request: &Request<'_>, least: (usize, usize)) -> i64 {
    let replicas = i64::from(request.replicas);
    let members = members.iter().map(|at| &candidates[*at]);
    if request.strategy() == Strategy::Duplicated {
        let able = members.filter(|candidate| candidate.available() >= replicas);
        let (count, sum) = able.fold((0, 0), |(count, sum), candidate| (count + 1, sum + candidate.score));
        return if count == 0 { 0 } else { count * UNIT + sum / count };
    }
    let (groups, clusters) = (least.0.max(1) as i64, least.0.max(least.1).max(1) as i64);
    let target = (replicas + groups - 1) / groups;
    let (mut room, mut sum, mut count) = (0, 0, 0);
    for candidate in members {
        room += candidate.available();
        sum += candidate.score;
        count += 1;
        if count >= clusters && room >= target {
            break;
        }
    }
    room.min(target) * UNIT + sum / count.max(1)
}
