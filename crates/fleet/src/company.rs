//! Decisions on workloads of groups, known to those that are decided on before the informer tells of them.

use std::time::Duration;

use atoll_api::work::{TargetCluster, WorkloadAffinityGroups};
use atoll_runtime::Item;
use serde::Deserialize;
use tokio::time::Instant;

use crate::binding::Binding;
use crate::keys::BindingKey;

/// How long to wait for news of what was written. What others delete before that is never heard of.
const UNHEARD: Duration = Duration::from_secs(5);
/// How long to wait for the end of a write.
const UNWRITTEN: Duration = Duration::from_secs(60);

/// What was decided on workloads of groups and is not in the cache of their informer yet.
///
/// Whoever decides on such a workload holds the lock of this from the look at the others until its own decision is
/// noted here: two that must not meet would else both see an empty place, and stay there.
#[derive(Default)]
pub struct Company(Vec<Pending>);

struct Pending {
    key: BindingKey,
    /// The generation of the binding that was decided on; 0 of one that is to be made.
    base: i64,
    after: Binding,
    written: bool,
    at: Instant,
}

impl Pending {
    fn is_awaited(&self, known: &[Binding]) -> bool {
        let limit = if self.written { UNHEARD } else { UNWRITTEN };
        let known = known.iter().find(|binding| binding.metadata.name.as_deref() == Some(&*self.key.name));
        self.at.elapsed() < limit && known.map_or(self.base == 0, |known| known.generation() <= self.base)
    }
}

impl Company {
    /// The bindings of a namespace as they will be, out of those in the cache.
    pub fn expected(&mut self, namespace: &str, mut known: Vec<Binding>) -> Vec<Binding> {
        self.0.retain(|it| *it.key.namespace != *namespace || it.is_awaited(&known));
        let here = || self.0.iter().filter(|it| *it.key.namespace == *namespace);
        known.retain(|binding| !here().any(|it| binding.metadata.name.as_deref() == Some(&*it.key.name)));
        known.extend(here().map(|it| it.after.clone()));
        known
    }

    /// Notes a decision that is to be written.
    pub fn note(&mut self, after: &Binding) {
        let (key, base) = (after.key(), after.generation());
        self.0.push(Pending { key, base, after: after.clone(), written: false, at: Instant::now() });
    }

    /// The write of a decision ended; one that failed never was. Whether a decision was taken back that way.
    pub fn wrote(&mut self, after: &Binding, done: bool) -> bool {
        let (key, base) = (after.key(), after.generation());
        let same = |it: &Pending| {
            !it.written && it.key == key && it.base == base && it.after.spec.clusters == after.spec.clusters
        };
        let Some(at) = self.0.iter().position(same) else { return false };
        if done {
            (self.0[at].written, self.0[at].at) = (true, Instant::now());
        } else {
            self.0.swap_remove(at);
        }
        !done
    }

    /// A binding is gone.
    pub fn forget(&mut self, key: &BindingKey) {
        // One that is still being made takes the name of the one that is gone.
        self.0.retain(|it| it.key != *key || (it.base == 0 && !it.written));
    }
}

/// A binding as an informer has it, with no more than others heed of it. Also one that is in no group: it may be about to
/// join one.
///
/// All of a namespace are read for each decision on one of a group, so that the rest is better left unread.
pub fn read(item: &Item) -> Option<Binding> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Spec {
        #[serde(default)]
        clusters: Vec<TargetCluster>,
        workload_affinity_groups: Option<WorkloadAffinityGroups>,
    }
    #[derive(Deserialize)]
    struct Only {
        spec: Spec,
    }
    let Spec { clusters, workload_affinity_groups } = item.decode::<Only>().ok()?.spec;
    let mut binding = Binding::default();
    let head = &item.object.head;
    binding.metadata.name = Some(head.name.to_string());
    binding.metadata.namespace = (!head.namespace.is_empty()).then(|| head.namespace.to_string());
    binding.metadata.generation = Some(head.generation);
    binding.spec.clusters = clusters;
    binding.spec.workload_affinity_groups = workload_affinity_groups;
    Some(binding)
}

/// The groups of a binding, if it is in any.
pub fn groups(binding: &Binding) -> Option<&WorkloadAffinityGroups> {
    binding.spec.workload_affinity_groups.as_ref().filter(|groups| is_any(groups))
}

/// Whether a workload is in a group at all.
pub fn is_any(groups: &WorkloadAffinityGroups) -> bool {
    !groups.affinity_group.is_empty() || !groups.anti_affinity_group.is_empty()
}

/// Whether one heeds where the other is.
pub fn is_shared(one: &WorkloadAffinityGroups, other: &WorkloadAffinityGroups) -> bool {
    let same = |one: &str, other: &str| !one.is_empty() && one == other;
    same(&one.affinity_group, &other.affinity_group) || same(&one.anti_affinity_group, &other.anti_affinity_group)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn binding(name: &str, generation: i64, cluster: &str) -> Binding {
        serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": "default", "generation": generation},
            "spec": {"resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "namespace": "default"},
                     "clusters": [{"name": cluster, "replicas": 1}]},
        }))
        .unwrap()
    }

    fn places(company: &mut Company, known: &[Binding]) -> Vec<String> {
        let expected = company.expected("default", known.to_vec());
        let mut places: Vec<String> = expected
            .iter()
            .map(|it| format!("{} {}", it.metadata.name.as_ref().unwrap(), it.spec.clusters[0].name))
            .collect();
        places.sort();
        places
    }

    #[test]
    fn what_others_heed_of_a_binding_is_read_as_it_is_there() {
        let mut whole = binding("a", 3, "m1");
        let alone = read(&Item::of(&whole.to_value()).unwrap()).unwrap();
        assert_eq!((groups(&alone), &alone.spec.clusters), (None, &whole.spec.clusters));
        whole.spec.workload_affinity_groups = serde_json::from_value(json!({"antiAffinityGroup": "team=a"})).unwrap();
        let part = read(&Item::of(&whole.to_value()).unwrap()).unwrap();
        assert_eq!((part.key(), part.generation()), (whole.key(), 3));
        assert_eq!((&part.spec.clusters, groups(&part)), (&whole.spec.clusters, groups(&whole)));
    }

    #[tokio::test]
    async fn what_is_decided_counts_until_it_is_known() {
        let (mut company, old) = (Company::default(), [binding("b", 3, "m1")]);
        company.note(&binding("a", 0, "m1"));
        company.note(&binding("b", 3, "m2"));
        assert_eq!(places(&mut company, &old), ["a m1", "b m2"], "both are on their way");
        assert!(company.expected("other", Vec::new()).is_empty(), "in their namespace");
        assert!(!company.wrote(&binding("a", 0, "m1"), true));
        assert!(!company.wrote(&binding("b", 3, "m2"), true));
        assert_eq!(places(&mut company, &old), ["a m1", "b m2"], "nobody has told of them yet");
        let new = [binding("a", 1, "m1"), binding("b", 4, "m2")];
        assert_eq!(places(&mut company, &new), ["a m1", "b m2"]);
        assert_eq!(places(&mut company, &[]), Vec::<String>::new(), "what is known is not remembered");
    }

    #[tokio::test]
    async fn one_that_joins_a_group_counts_before_that_is_known() {
        let (mut company, old) = (Company::default(), binding("a", 3, "m1"));
        let mut joined = old.clone();
        joined.spec.workload_affinity_groups = serde_json::from_value(json!({"antiAffinityGroup": "team=a"})).unwrap();
        company.note(&joined);
        let known: Vec<Binding> = read(&Item::of(&old.to_value()).unwrap()).into_iter().collect();
        let expected = company.expected("default", known);
        assert_eq!(expected.len(), 1);
        assert_eq!(groups(&expected[0]), groups(&joined));
    }

    #[tokio::test]
    async fn what_was_not_written_or_is_gone_counts_no_more() {
        let mut company = Company::default();
        company.note(&binding("a", 0, "m1"));
        assert!(company.wrote(&binding("a", 0, "m1"), false), "it is taken back");
        assert!(!company.wrote(&binding("a", 0, "m1"), false), "but once");
        assert!(places(&mut company, &[]).is_empty(), "its write failed");
        company.note(&binding("a", 0, "m1"));
        company.forget(&binding("a", 0, "m1").key());
        assert_eq!(places(&mut company, &[]), ["a m1"], "a former one of its name is gone");
        assert!(!company.wrote(&binding("a", 0, "m1"), true));
        company.forget(&binding("a", 0, "m1").key());
        assert!(places(&mut company, &[]).is_empty(), "it is gone itself");
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_ever_tells_of_is_not_waited_for_for_ever() {
        let mut company = Company::default();
        company.note(&binding("a", 0, "m1"));
        tokio::time::advance(UNHEARD).await;
        assert_eq!(places(&mut company, &[]), ["a m1"], "its write may last");
        assert!(!company.wrote(&binding("a", 0, "m1"), true));
        tokio::time::advance(UNHEARD).await;
        assert!(places(&mut company, &[]).is_empty());
    }
}
