//! Which clusters workloads of a group are in, for those that go along with them or keep away.

use std::collections::BTreeSet;

use atoll_api::work::TargetCluster;

/// The clusters where every placed workload of a group is, by where each of them is; `None` when none is placed, and
/// all clusters will do.
pub fn together(group: impl IntoIterator<Item = impl AsRef<[TargetCluster]>>) -> Option<BTreeSet<String>> {
    let placed = group.into_iter().map(|clusters| names(clusters.as_ref())).filter(|clusters| !clusters.is_empty());
    placed.reduce(|all, one| all.intersection(&one).cloned().collect())
}

/// The clusters where any workload of a group is, by where each of them is.
pub fn apart(group: impl IntoIterator<Item = impl AsRef<[TargetCluster]>>) -> BTreeSet<String> {
    group.into_iter().flat_map(|clusters| names(clusters.as_ref())).collect()
}

fn names(clusters: &[TargetCluster]) -> BTreeSet<String> {
    clusters.iter().map(|cluster| cluster.name.clone()).collect()
}
