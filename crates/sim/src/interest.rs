//! Which services and disruption budgets care for which pods.

use std::collections::{BTreeMap, HashMap};

use atoll_meta::Head;
use atoll_meta::selector::LabelSelector;
use atoll_runtime::Change;
use serde_json::Value;

type Selectors = HashMap<Box<str>, BTreeMap<Box<str>, LabelSelector>>;

/// Selectors by namespace and name, so that an event of a pod finds them without a search.
#[derive(Default)]
pub struct Interests {
    services: Selectors,
    budgets: Selectors,
}

impl Interests {
    /// Takes note of a change of a service.
    pub fn service_changed(&mut self, change: &Change) {
        update(&mut self.services, change, |tree| {
            let labels = tree["spec"]["selector"].as_object().filter(|labels| !labels.is_empty())?;
            LabelSelector::from_labels(labels).ok()
        });
    }

    /// Takes note of a change of a budget.
    pub fn budget_changed(&mut self, change: &Change) {
        update(&mut self.budgets, change, |tree| LabelSelector::from_value(&tree["spec"]["selector"]).ok());
    }

    /// Services that select a pod.
    pub fn services<'a>(&'a self, pod: &'a Head) -> impl Iterator<Item = &'a str> {
        matching(&self.services, pod)
    }

    /// Budgets that select a pod.
    pub fn budgets<'a>(&'a self, pod: &'a Head) -> impl Iterator<Item = &'a str> {
        matching(&self.budgets, pod)
    }
}

fn update(all: &mut Selectors, change: &Change, read: impl Fn(&Value) -> Option<LabelSelector>) {
    let item = change.item();
    let head = &item.object.head;
    let selector = if matches!(change, Change::Deleted(_)) { None } else { read(&item.tree()) };
    match selector {
        Some(selector) => drop(all.entry(head.namespace.clone()).or_default().insert(head.name.clone(), selector)),
        None => {
            if let Some(names) = all.get_mut(&head.namespace) {
                names.remove(&head.name);
                if names.is_empty() {
                    all.remove(&head.namespace);
                }
            }
        }
    }
}

fn matching<'a>(all: &'a Selectors, pod: &'a Head) -> impl Iterator<Item = &'a str> {
    let names = all.get(&pod.namespace).into_iter().flatten();
    names.filter(|(_, selector)| selector.matches_head(pod)).map(|(name, _)| &**name)
}
