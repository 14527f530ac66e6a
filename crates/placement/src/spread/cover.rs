//! A choice of clusters that meets constraints on several kinds of groups at once.

use std::collections::BTreeMap;

use super::{Candidate, Spread};
use crate::decision::DecisionError;

/// How many choices are tried before giving up.
const TRIES: usize = 10_000;

/// Chooses clusters so that every constraint holds; first to meet the lower bounds, then the
/// best of the rest as far as upper bounds allow.
pub(super) fn choose(candidates: &[Candidate<'_>], spread: &Spread<'_>) -> Result<Vec<usize>, DecisionError> {
    let mut choice = Choice::new(candidates, spread);
    for (constraint, groups) in spread.groups.iter().zip(&choice.sizes) {
        if groups.len() < constraint.least {
            let (by, found) = (constraint.by.name().to_string(), groups.len());
            return Err(DecisionError::TooFewGroups { by, found, least: constraint.least });
        }
    }
    let mut tries = TRIES;
    if !choice.meet_lower_bounds(&mut tries) {
        let by: Vec<String> = spread.groups.iter().map(|constraint| constraint.by.name().to_string()).collect();
        return Err(DecisionError::NoChoice { by: by.join(", ") });
    }
    for at in 0..candidates.len() {
        if choice.fits(at) {
            choice.take(at);
        }
    }
    if choice.taken.len() < spread.least {
        let found = choice.taken.len();
        return Err(DecisionError::TooFewGroups { by: "cluster".to_owned(), found, least: spread.least });
    }
    Ok(choice.taken)
}

/// Clusters taken so far, and what that means for each constraint.
struct Choice<'s> {
    spread: &'s Spread<'s>,
    /// For each candidate its group of each constraint, as a number.
    groups: Vec<Vec<usize>>,
    /// For each constraint how many taken clusters each group has.
    sizes: Vec<Vec<usize>>,
    /// For each constraint how many groups have a taken cluster.
    open: Vec<usize>,
    taken: Vec<usize>,
    is_taken: Vec<bool>,
}

impl<'s> Choice<'s> {
    fn new(candidates: &[Candidate<'_>], spread: &'s Spread<'s>) -> Self {
        let mut numbers: Vec<BTreeMap<&str, usize>> = vec![BTreeMap::new(); spread.groups.len()];
        let mut groups = Vec::with_capacity(candidates.len());
        for candidate in candidates {
            let of_one = spread.groups.iter().zip(&mut numbers).map(|(constraint, numbers)| {
                let next = numbers.len();
                *numbers.entry(constraint.by.group(candidate.cluster).unwrap_or_default()).or_insert(next)
            });
            groups.push(of_one.collect());
        }
        Choice {
            spread,
            groups,
            sizes: numbers.iter().map(|numbers| vec![0; numbers.len()]).collect(),
            open: vec![0; spread.groups.len()],
            taken: Vec::new(),
            is_taken: vec![false; candidates.len()],
        }
    }

    fn opens(&self, at: usize, constraint: usize) -> bool {
        self.sizes[constraint][self.groups[at][constraint]] == 0
    }

    /// Whether a cluster can be taken without breaking an upper bound.
    fn fits(&self, at: usize) -> bool {
        !self.is_taken[at]
            && self.taken.len() < self.spread.most
            && self
                .spread
                .groups
                .iter()
                .enumerate()
                .all(|(constraint, bounds)| self.open[constraint] < bounds.most || !self.opens(at, constraint))
    }

    fn take(&mut self, at: usize) {
        for constraint in 0..self.open.len() {
            self.open[constraint] += usize::from(self.opens(at, constraint));
            self.sizes[constraint][self.groups[at][constraint]] += 1;
        }
        self.is_taken[at] = true;
        self.taken.push(at);
    }

    fn give_back(&mut self, at: usize) {
        self.taken.pop();
        self.is_taken[at] = false;
        for constraint in 0..self.open.len() {
            self.sizes[constraint][self.groups[at][constraint]] -= 1;
            self.open[constraint] -= usize::from(self.opens(at, constraint));
        }
    }

    fn is_short(&self, constraint: usize) -> bool {
        self.open[constraint] < self.spread.groups[constraint].least
    }

    /// How many lower bounds a cluster would bring nearer.
    fn use_of(&self, at: usize) -> usize {
        (0..self.open.len()).filter(|constraint| self.is_short(*constraint) && self.opens(at, *constraint)).count()
    }

    fn meet_lower_bounds(&mut self, tries: &mut usize) -> bool {
        let Some(short) = (0..self.open.len()).find(|constraint| self.is_short(*constraint)) else {
            return true;
        };
        let able = (0..self.is_taken.len()).filter(|at| self.fits(*at) && self.opens(*at, short));
        let mut able: Vec<(usize, usize)> = able.map(|at| (self.use_of(at), at)).collect();
        able.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        for (_, at) in able {
            if *tries == 0 {
                return false;
            }
            *tries -= 1;
            self.take(at);
            if self.meet_lower_bounds(tries) {
                return true;
            }
            self.give_back(at);
        }
        false
    }
}
