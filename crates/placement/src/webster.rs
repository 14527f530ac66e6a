//! Division in proportion by Webster's method (Sainte-Laguë).

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use atoll_api::names::fnv1a_32;

/// One who gets a share.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Party<'a> {
    /// Its name.
    pub name: &'a str,
    /// In proportion to what.
    pub votes: i64,
    /// At most so much.
    pub most: i64,
}

/// A claim to the next seat. The greatest gets it.
struct Claim<'p, 'a> {
    priority: f64,
    seats: i64,
    party: usize,
    of: &'p Party<'a>,
    names_descend: bool,
}

impl Ord for Claim<'_, '_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let names = self.of.name.cmp(other.of.name);
        let names = if self.names_descend { names } else { names.reverse() };
        self.priority.total_cmp(&other.priority).then(other.seats.cmp(&self.seats)).then(names)
    }
}

impl PartialOrd for Claim<'_, '_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Claim<'_, '_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Claim<'_, '_> {}

fn priority(votes: i64, seats: i64) -> f64 {
    votes as f64 / (2 * seats + 1) as f64
}

/// Shares `seats` out: each in turn to the party with most votes for twice its seats plus one.
///
/// Among equals the one with fewer seats goes first, then by name, whose order depends on `uid`
/// so that the same cluster is not favoured by all workloads. Shares are in the order of the parties.
pub fn divide(seats: i64, parties: &[Party<'_>], uid: &str) -> Vec<i64> {
    let mut shares = certain_shares(seats, parties);
    let names_descend = !uid.is_empty() && fnv1a_32(uid.as_bytes()) % 2 == 1;
    let claims = parties.iter().enumerate().map(|(party, of)| {
        let seats = shares[party];
        Claim { priority: priority(of.votes, seats), seats, party, of, names_descend }
    });
    let mut claims: BinaryHeap<Claim<'_, '_>> =
        claims.filter(|claim| claim.of.votes > 0 && claim.seats < claim.of.most).collect();
    let mut rest = seats - shares.iter().sum::<i64>();
    while rest > 0
        && let Some(mut claim) = claims.peek_mut()
    {
        shares[claim.party] += 1;
        rest -= 1;
        claim.seats += 1;
        claim.priority = priority(claim.of.votes, claim.seats);
        if claim.seats >= claim.of.most {
            PeekMut::pop(claim);
        }
    }
    shares
}

/// Seats each party is sure to get, so that the work does not grow with the number of seats.
///
/// All claims above `total / (2 * seats - parties)` together are at most `seats` many, so each is
/// granted. One less is taken for each party, which makes up for rounding many times over.
fn certain_shares(seats: i64, parties: &[Party<'_>]) -> Vec<i64> {
    let total: i128 = parties.iter().map(|party| i128::from(party.votes.max(0))).sum();
    let twice = 2 * i128::from(seats) - parties.len() as i128;
    if total == 0 || twice <= 0 {
        return vec![0; parties.len()];
    }
    let share = |party: &Party<'_>| {
        let claims = i128::from(party.votes.max(0)) * twice / total / 2 - 1;
        i64::try_from(claims.max(0)).unwrap_or(0).min(party.most.max(0))
    };
    parties.iter().map(share).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parties(votes: &[(&'static str, i64)]) -> Vec<Party<'static>> {
        votes.iter().map(|(name, votes)| Party { name, votes: *votes, most: i64::MAX }).collect()
    }

    #[test]
    fn seats_go_out_as_in_the_textbook() {
        let parties = parties(&[("a", 100_000), ("b", 80_000), ("c", 30_000), ("d", 20_000)]);
        for (seats, shares) in [
            (1, [1, 0, 0, 0]),
            (2, [1, 1, 0, 0]),
            (3, [2, 1, 0, 0]),
            (4, [2, 1, 1, 0]),
            (5, [2, 2, 1, 0]),
            (6, [2, 2, 1, 1]),
            (7, [3, 2, 1, 1]),
            (8, [3, 3, 1, 1]),
        ] {
            assert_eq!(divide(seats, &parties, ""), shares, "{seats} seats");
        }
    }

    #[test]
    fn ties_go_by_name_in_the_order_the_uid_gives() {
        let parties = parties(&[("m1", 1), ("m2", 1)]);
        let odd = ["a", "b", "c", "d", "e"].into_iter().find(|uid| fnv1a_32(uid.as_bytes()) % 2 == 1);
        let even = ["a", "b", "c", "d", "e"].into_iter().find(|uid| fnv1a_32(uid.as_bytes()).is_multiple_of(2));
        assert_eq!(divide(5, &parties, ""), [3, 2]);
        assert_eq!(divide(5, &parties, even.expect("one of five is even")), [3, 2]);
        assert_eq!(divide(5, &parties, odd.expect("one of five is odd")), [2, 3]);
    }

    #[test]
    fn huge_numbers_of_seats_cost_no_more() {
        let parties = parties(&[("a", 3), ("b", 2), ("c", 1)]);
        assert_eq!(divide(600_000_000, &parties, ""), [300_000_000, 200_000_000, 100_000_000]);
    }

    /// One seat at a time, without the short cut.
    fn slow(seats: i64, parties: &[Party<'_>]) -> Vec<i64> {
        let mut shares = vec![0; parties.len()];
        for _ in 0..seats {
            let open = (0..parties.len()).filter(|at| parties[*at].votes > 0 && shares[*at] < parties[*at].most);
            let best = open.max_by(|left, right| {
                let (a, b) = (&parties[*left], &parties[*right]);
                let (p, q) = (priority(a.votes, shares[*left]), priority(b.votes, shares[*right]));
                p.total_cmp(&q).then(shares[*right].cmp(&shares[*left])).then(b.name.cmp(a.name))
            });
            match best {
                Some(at) => shares[at] += 1,
                None => break,
            }
        }
        shares
    }

    const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

    proptest! {
        #[test]
        fn the_short_cut_changes_nothing(
            seats in 0_i64..300,
            votes in prop::collection::vec((0_i64..1000, 1_i64..400), 1..8),
        ) {
            let parties: Vec<Party<'_>> = votes
                .iter()
                .zip(NAMES)
                .map(|((votes, most), name)| Party { name, votes: *votes, most: *most })
                .collect();
            prop_assert_eq!(divide(seats, &parties, ""), slow(seats, &parties));
        }

        #[test]
        fn one_seat_more_takes_none_away(seats in 0_i64..500, votes in prop::collection::vec(1_i64..1000, 1..8)) {
            let parties: Vec<Party<'_>> =
                votes.iter().zip(NAMES).map(|(votes, name)| Party { name, votes: *votes, most: i64::MAX }).collect();
            let (before, after) = (divide(seats, &parties, "u"), divide(seats + 1, &parties, "u"));
            prop_assert_eq!(before.iter().sum::<i64>(), seats);
            prop_assert!(before.iter().zip(&after).all(|(before, after)| before <= after));
        }
    }
}
