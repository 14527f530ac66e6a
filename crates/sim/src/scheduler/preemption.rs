//! Making room: which pods of lower priority leave a node so that a more important one fits.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;

use atoll_meta::selector::LabelSelector;
use atoll_runtime::Item;
use jiff::Timestamp;

use super::filter::{Verdict, View};
use super::message::Attempt;
use super::want::Want;
use crate::book::Book;
use crate::node::Node;
use crate::pod::Pod;

const NOBODY: &str = "No preemption victims found for incoming pod";
const HOPELESS: &str = "Preemption is not helpful for scheduling";

/// A disruption budget, as far as it protects pods here.
pub struct Budget {
    namespace: Box<str>,
    selector: LabelSelector,
    allowed: i64,
    /// Pods that are counted as leaving already.
    leaving: HashSet<String>,
}

impl Budget {
    /// Reads a budget.
    pub fn of(item: &Item) -> Option<Self> {
        let tree = item.tree();
        let leaving = tree["status"]["disruptedPods"].as_object().into_iter().flatten();
        Some(Self {
            namespace: item.object.head.namespace.clone(),
            selector: LabelSelector::from_value(&tree["spec"]["selector"]).ok()?,
            allowed: tree["status"]["disruptionsAllowed"].as_i64().unwrap_or_default(),
            leaving: leaving.map(|(name, _)| name.clone()).collect(),
        })
    }

    fn protects(&self, pod: &Pod) -> bool {
        let head = pod.head();
        *head.namespace == *self.namespace && self.selector.matches_head(head) && !self.leaving.contains(pod.name())
    }
}

/// Who must leave which node.
#[derive(Debug)]
pub struct Room {
    /// The node.
    pub node: String,
    /// The pods that leave it, the most important first.
    pub victims: Vec<Arc<Pod>>,
    /// How many of them a budget protects.
    violations: usize,
}

impl Room {
    /// What makes one choice better than another: the smaller, the better.
    fn cost(&self) -> (usize, i32, i64, usize, Reverse<Timestamp>) {
        let highest = self.victims.iter().map(|pod| pod.priority).max().unwrap_or(i32::MIN);
        let weight = |pod: &Arc<Pod>| i64::from(pod.priority) + i64::from(i32::MAX) + 1;
        let first = self.victims.iter().filter(|pod| pod.priority == highest).map(|pod| pod.created).min();
        (
            self.violations,
            highest,
            self.victims.iter().map(weight).sum(),
            self.victims.len(),
            Reverse(first.unwrap_or(Timestamp::MAX)),
        )
    }
}

/// A pod that found no node.
pub struct Seeker<'a> {
    /// What it asks for.
    pub want: &'a Want,
    /// The pod.
    pub pod: &'a Pod,
    /// All nodes.
    pub nodes: &'a [Arc<Node>],
    /// Finds namespaces by their labels.
    pub namespaces: &'a dyn Fn(&LabelSelector) -> Vec<String>,
    /// Budgets of all namespaces.
    pub budgets: &'a [Budget],
}

impl Seeker<'_> {
    /// Looks for the node whose pods are missed least. `refusals` says of each node why it does not take
    /// the pod as it is.
    pub fn search(&self, book: &mut Book, refusals: &[Verdict]) -> Result<Room, Attempt> {
        if self.want.preemption_policy == "Never" {
            return Err(Attempt::NotAllowed);
        }
        let own = self.pod.priority;
        let going = book.pods_on(&self.pod.nominated);
        if !self.pod.nominated.is_empty() && going.iter().any(|pod| pod.head().deleting && pod.priority < own) {
            return Err(Attempt::UnderWay);
        }
        let crowded = book.lowest_priority().is_some_and(|lowest| lowest < own);
        let mut best: Option<Room> = None;
        let mut reasons = Vec::new();
        for (node, refusal) in self.nodes.iter().zip(refusals) {
            match refusal {
                Verdict::Refused(_) if !crowded => reasons.push(vec![NOBODY.to_owned()]),
                Verdict::Refused(_) => match self.clear(book, node) {
                    Ok(room) if best.as_ref().is_none_or(|known| room.cost() < known.cost()) => best = Some(room),
                    Ok(_) => {}
                    Err(why) => reasons.push(why),
                },
                _ => reasons.push(vec![HOPELESS.to_owned()]),
            }
        }
        best.ok_or(Attempt::Failed(reasons))
    }

    fn judge(&self, book: &Book, node: &Node) -> Verdict {
        View::new(self.want, self.pod, self.nodes, book, self.namespaces).judge(node)
    }

    /// Who must leave a node: all of lower priority go, then as many as possible come back, those first
    /// whom a budget protects and who are more important.
    fn clear(&self, book: &mut Book, node: &Node) -> Result<Room, Vec<String>> {
        let mut lower = book.pods_on(node.name());
        lower.retain(|pod| pod.priority < self.pod.priority);
        if lower.is_empty() {
            return Err(vec![NOBODY.to_owned()]);
        }
        lower.sort_by_key(|pod| (Reverse(pod.priority), pod.created));
        lower.iter().for_each(|pod| book.take_out(pod));
        if let Verdict::Refused(why) | Verdict::Never(why) = self.judge(book, node) {
            lower.iter().for_each(|pod| book.put_back(pod));
            return Err(why);
        }
        let (guarded, others) = self.guarded(lower);
        let mut room = Room { node: node.name().to_owned(), victims: Vec::new(), violations: 0 };
        for (pod, protected) in guarded.iter().map(|pod| (pod, true)).chain(others.iter().map(|pod| (pod, false))) {
            book.put_back(pod);
            if self.judge(book, node) != Verdict::Fits {
                book.take_out(pod);
                room.victims.push(pod.clone());
                room.violations += usize::from(protected);
            }
        }
        room.victims.iter().for_each(|pod| book.put_back(pod));
        room.victims.sort_by_key(|pod| (Reverse(pod.priority), pod.created));
        Ok(room)
    }

    /// Parts pods whose leaving a budget forbids from the others.
    fn guarded(&self, pods: Vec<Arc<Pod>>) -> (Vec<Arc<Pod>>, Vec<Arc<Pod>>) {
        let mut left: Vec<i64> = self.budgets.iter().map(|budget| budget.allowed).collect();
        pods.into_iter().partition(|pod| {
            let mut forbidden = false;
            for (_, left) in self.budgets.iter().zip(&mut left).filter(|(budget, _)| budget.protects(pod)) {
                *left -= 1;
                forbidden |= *left < 0;
            }
            forbidden
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, Builder};
    use atoll_runtime::Change;
    use serde_json::json;

    fn pod(name: &str, node: &str, priority: i32, cpu: &str) -> Builder {
        testing::pod(name)
            .node(node)
            .label("name", name)
            .set(&["spec", "priority"], priority)
            .set(&["spec", "containers"], json!([{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]))
    }

    fn budget(name: &str, allowed: i64) -> Budget {
        let tree = json!({"kind": "PodDisruptionBudget", "apiVersion": "policy/v1",
            "metadata": {"name": name, "namespace": "d", "uid": name, "resourceVersion": "1"},
            "spec": {"selector": {"matchLabels": {"name": name}}}, "status": {"disruptionsAllowed": allowed}});
        Budget::of(&Item::of(&tree).expect("an object")).expect("a budget")
    }

    /// Nodes have four processors each.
    fn search(present: Vec<Builder>, seeker: Builder, budgets: &[Budget]) -> Result<(String, Vec<String>), Attempt> {
        let nodes = [testing::node("n1", json!({}), json!({})), testing::node("n2", json!({}), json!({}))];
        let mut book = Book::default();
        for builder in present {
            book.pod_changed(&Change::Added(builder.build().item.clone()));
        }
        let pod = seeker.build();
        let want = Want::of(&pod.item).expect("a pod");
        let nowhere = |_: &LabelSelector| Vec::new();
        let refusals: Vec<Verdict> = {
            let view = View::new(&want, &pod, &nodes, &book, &nowhere);
            nodes.iter().map(|node| view.judge(node)).collect()
        };
        let seeker = Seeker { want: &want, pod: &pod, nodes: &nodes, namespaces: &nowhere, budgets };
        let before: Vec<usize> = ["n1", "n2"].map(|node| book.pods_on(node).len()).into();
        let found = seeker.search(&mut book, &refusals);
        let after: Vec<usize> = ["n1", "n2"].map(|node| book.pods_on(node).len()).into();
        assert_eq!(before, after, "the book is left as it was");
        found.map(|room| (room.node, room.victims.iter().map(|pod| pod.name().to_owned()).collect()))
    }

    fn names(node: &str, victims: &[&str]) -> (String, Vec<String>) {
        (node.to_owned(), victims.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn the_least_important_pods_leave() {
        let present =
            || vec![pod("a", "n1", 5, "2"), pod("b", "n1", 1, "2"), pod("c", "n2", 3, "2"), pod("d", "n2", 20, "2")];
        assert_eq!(search(present(), pod("new", "", 10, "2"), &[]), Ok(names("n1", &["b"])));
        assert_eq!(search(present(), pod("new", "", 10, "4"), &[]), Ok(names("n1", &["a", "b"])));
        let none = vec![vec![NOBODY.to_owned()]; 2];
        assert_eq!(search(present(), pod("new", "", 1, "2"), &[]), Err(Attempt::Failed(none)));
        let never = pod("new", "", 10, "2").set(&["spec", "preemptionPolicy"], "Never");
        assert_eq!(search(present(), never, &[]), Err(Attempt::NotAllowed));
    }

    #[test]
    fn what_budgets_protect_stays_if_it_can() {
        let present = || vec![pod("a", "n1", 1, "4"), pod("b", "n2", 2, "4")];
        assert_eq!(search(present(), pod("new", "", 10, "4"), &[]), Ok(names("n1", &["a"])));
        assert_eq!(search(present(), pod("new", "", 10, "4"), &[budget("a", 0)]), Ok(names("n2", &["b"])));
        assert_eq!(search(present(), pod("new", "", 10, "4"), &[budget("a", 1)]), Ok(names("n1", &["a"])));
        let both = [budget("a", 0), budget("b", 0)];
        assert_eq!(search(present(), pod("new", "", 10, "4"), &both), Ok(names("n1", &["a"])));
    }

    #[test]
    fn nobody_else_leaves_while_some_are_leaving() {
        let present = vec![pod("a", "n1", 1, "4").deleting(), pod("b", "n2", 1, "4")];
        let waits = pod("new", "", 10, "4").set(&["status", "nominatedNodeName"], "n1");
        assert_eq!(search(present, waits, &[]), Err(Attempt::UnderWay));
    }

    #[test]
    fn room_that_was_made_is_kept_for_whom_it_was_made() {
        let waits = pod("first", "", 10, "4").set(&["status", "nominatedNodeName"], "n1").phase("Pending");
        let present = vec![waits, pod("b", "n2", 20, "4")];
        let none = vec![vec![NOBODY.to_owned()]; 2];
        assert_eq!(search(present, pod("late", "", 10, "4"), &[]), Err(Attempt::Failed(none)));
    }
}
