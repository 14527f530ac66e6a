//! The best set of groups that together have enough clusters.

/// A group of clusters.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// Its name.
    pub name: String,
    /// How many clusters it has; at least one.
    pub value: i64,
    /// What it is worth.
    pub weight: i64,
}

/// A set of groups with enough clusters.
#[derive(Clone, Debug)]
struct Path {
    /// Most weight first, then by name.
    groups: Vec<usize>,
    weight: i64,
    value: i64,
}

/// More sets than this are not compared one by one.
const SETS: usize = 20_000;

/// Chooses `least` to `most` groups with together at least `target` clusters.
///
/// Sets grow only until they are large enough. Of those the one with most weight is taken, then
/// with most clusters, then the first found; but rather one that begins like it and is smaller.
pub(super) fn choose(groups: &[Group], least: usize, most: usize, target: i64) -> Option<Vec<usize>> {
    if groups.len() < least || most < least || most == 0 {
        return None;
    }
    // Every group has a cluster, so any `least` groups are enough and the worthiest are the answer.
    if target <= least as i64 {
        let mut chosen = worthiest(groups);
        chosen.truncate(least);
        return Some(in_order(groups, chosen));
    }
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by(|a, b| {
        let (a, b) = (&groups[*a], &groups[*b]);
        a.value.cmp(&b.value).then(b.weight.cmp(&a.weight)).then_with(|| a.name.cmp(&b.name))
    });
    let mut search = Search { groups, order: &order, least, most, target, found: Vec::new(), path: Vec::new() };
    if search.run(0, 0) { best(search.found) } else { greedy(groups, least, most, target) }
}

fn worthiest(groups: &[Group]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by(|a, b| {
        let (a, b) = (&groups[*a], &groups[*b]);
        b.weight.cmp(&a.weight).then(b.value.cmp(&a.value)).then_with(|| a.name.cmp(&b.name))
    });
    order
}

/// A set in the order in which its groups are used: most weight first, then by name.
fn in_order(groups: &[Group], mut chosen: Vec<usize>) -> Vec<usize> {
    chosen.sort_by(|a, b| {
        let (a, b) = (&groups[*a], &groups[*b]);
        b.weight.cmp(&a.weight).then_with(|| a.name.cmp(&b.name))
    });
    chosen
}

struct Search<'g> {
    groups: &'g [Group],
    order: &'g [usize],
    least: usize,
    most: usize,
    target: i64,
    found: Vec<Path>,
    path: Vec<usize>,
}

impl Search<'_> {
    /// Collects all sets; false when there are too many.
    fn run(&mut self, value: i64, begin: usize) -> bool {
        if value >= self.target && self.path.len() >= self.least {
            self.keep(value);
            return self.found.len() <= SETS;
        }
        if self.path.len() >= self.most {
            return true;
        }
        let needed = self.least.saturating_sub(self.path.len()).max(1);
        for at in begin..(self.order.len() + 1).saturating_sub(needed) {
            let group = self.order[at];
            self.path.push(group);
            let in_bounds = self.run(value + self.groups[group].value, at + 1);
            self.path.pop();
            if !in_bounds {
                return false;
            }
        }
        true
    }

    fn keep(&mut self, value: i64) {
        let weight = self.path.iter().map(|group| self.groups[*group].weight).sum();
        let groups = in_order(self.groups, self.path.clone());
        self.found.push(Path { groups, weight, value });
    }
}

fn best(mut paths: Vec<Path>) -> Option<Vec<usize>> {
    // Stable, so sets that are equal stay in the order in which they were found.
    paths.sort_by(|a, b| b.weight.cmp(&a.weight).then(b.value.cmp(&a.value)));
    let mut paths = paths.into_iter();
    let mut chosen = paths.next()?.groups;
    for path in paths {
        if path.groups.len() < chosen.len() && chosen.starts_with(&path.groups) {
            chosen = path.groups;
        }
    }
    Some(chosen)
}

/// For very many groups: the worthiest, changed for larger ones where that is needed.
fn greedy(groups: &[Group], least: usize, most: usize, target: i64) -> Option<Vec<usize>> {
    let order = worthiest(groups);
    let value = |chosen: &[usize]| chosen.iter().map(|group| groups[*group].value).sum::<i64>();
    let mut count = least;
    while count < most.min(order.len()) && value(&order[..count]) < target {
        count += 1;
    }
    let (mut chosen, mut rest) = (order[..count].to_vec(), order[count..].to_vec());
    for last in (0..chosen.len()).rev() {
        if value(&chosen) >= target {
            break;
        }
        let largest = rest.iter().enumerate().max_by_key(|(place, group)| (groups[**group].value, usize::MAX - place));
        if let Some((place, group)) = largest.map(|(place, group)| (place, *group))
            && groups[group].value > groups[chosen[last]].value
        {
            rest[place] = std::mem::replace(&mut chosen[last], group);
        }
    }
    (value(&chosen) >= target).then(|| in_order(groups, chosen))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(list: &[(&str, i64, i64)]) -> Vec<Group> {
        list.iter()
            .map(|(name, value, weight)| Group { name: (*name).to_owned(), value: *value, weight: *weight })
            .collect()
    }

    fn names(groups: &[Group], least: usize, most: usize, target: i64) -> Option<Vec<&str>> {
        Some(choose(groups, least, most, target)?.into_iter().map(|group| groups[group].name.as_str()).collect())
    }

    #[test]
    fn the_worthiest_groups_are_taken_when_any_would_do() {
        let groups = groups(&[("r1", 1, 10), ("r2", 2, 30), ("r3", 1, 20)]);
        assert_eq!(names(&groups, 2, 3, 2), Some(vec!["r2", "r3"]));
        assert_eq!(names(&groups, 1, 3, 1), Some(vec!["r2"]));
    }

    #[test]
    fn groups_of_equal_weight_are_used_by_name_however_large() {
        let groups = groups(&[("south", 2, 10), ("west", 1, 10), ("east", 1, 10)]);
        assert_eq!(names(&groups, 3, 3, 3), Some(vec!["east", "south", "west"]));
        assert_eq!(names(&groups, 2, 2, 2), Some(vec!["east", "south"]));
    }

    #[test]
    fn larger_groups_are_taken_when_clusters_would_be_too_few() {
        let groups = groups(&[("r1", 2, 60), ("r2", 3, 50), ("r3", 6, 40), ("r4", 7, 30)]);
        assert_eq!(names(&groups, 2, 2, 7), Some(vec!["r1", "r3"]));
        assert_eq!(names(&groups, 2, 2, 10), Some(vec!["r2", "r4"]));
        assert_eq!(names(&groups, 1, 1, 8), None);
    }

    #[test]
    fn a_smaller_set_that_begins_alike_is_preferred() {
        // r1+r2 has 5 clusters and is enough; so is the worthier r1+r2+r3, found by way of r1+r3.
        let groups = groups(&[("r1", 1, 50), ("r2", 4, 40), ("r3", 1, 30)]);
        assert_eq!(names(&groups, 2, 3, 5), Some(vec!["r1", "r2"]));
    }

    #[test]
    fn many_groups_are_chosen_in_bounded_time() {
        let many: Vec<Group> =
            (0..60).map(|at| Group { name: format!("r{at:02}"), value: 1 + at % 3, weight: 100 - at }).collect();
        let chosen = choose(&many, 10, 20, 25)
            .map(|chosen| (chosen.len(), chosen.iter().map(|group| many[*group].value).sum::<i64>()));
        let (count, value) = chosen.unwrap_or_default();
        assert!((10..=20).contains(&count) && value >= 25, "{count} groups with {value} clusters");
    }
}
