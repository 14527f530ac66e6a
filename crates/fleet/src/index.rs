//! Who belongs to whom.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

use atoll_api::words::label;
use atoll_runtime::Change;
use parking_lot::RwLock;

use crate::keys::{BindingKey, TemplateKey};

/// Links in both directions, so that changing one costs as much as it has links and no more.
struct Links<A, B> {
    there: HashMap<A, HashSet<B>>,
    back: HashMap<B, HashSet<A>>,
}

impl<A, B> Default for Links<A, B> {
    fn default() -> Self {
        Self { there: HashMap::new(), back: HashMap::new() }
    }
}

impl<A: Clone + Eq + Hash, B: Clone + Eq + Hash> Links<A, B> {
    /// Replaces the links of one side.
    fn put(&mut self, from: &A, to: HashSet<B>) {
        let old = self.there.remove(from).unwrap_or_default();
        for gone in old.difference(&to) {
            if let Some(sources) = self.back.get_mut(gone) {
                sources.remove(from);
                if sources.is_empty() {
                    self.back.remove(gone);
                }
            }
        }
        for new in to.difference(&old) {
            self.back.entry(new.clone()).or_default().insert(from.clone());
        }
        if !to.is_empty() {
            self.there.insert(from.clone(), to);
        }
    }

    /// Who links to this.
    fn sources(&self, to: &B) -> Vec<A> {
        self.back.get(to).into_iter().flatten().cloned().collect()
    }
}

/// Who belongs to whom, mostly by permanent id.
#[derive(Default)]
pub struct Index {
    bindings: RwLock<HashMap<Box<str>, BindingKey>>,
    works: RwLock<HashMap<Box<str>, (Arc<str>, Arc<str>)>>,
    /// Bindings that go along with others, linked to the ids of those.
    attached: RwLock<Links<BindingKey, Box<str>>>,
    /// Ids by binding, also of those that are gone.
    ids: RwLock<HashMap<BindingKey, Box<str>>>,
    /// Bindings, linked to the templates they need.
    needs: RwLock<Links<BindingKey, TemplateKey>>,
}

impl Index {
    /// Notes the id of a binding.
    pub fn put_binding(&self, id: &str, key: BindingKey) {
        self.ids.write().insert(key.clone(), id.into());
        self.bindings.write().insert(id.into(), key);
    }

    /// Forgets the id of a binding.
    pub fn remove_binding(&self, id: &str) {
        self.bindings.write().remove(id);
    }

    /// Notes which bindings, by id, a binding goes along with.
    pub fn put_parents(&self, child: &BindingKey, parents: &BTreeSet<&str>) {
        self.attached.write().put(child, parents.iter().map(|id| (*id).into()).collect());
    }

    /// The bindings that go along with one.
    pub fn attached_to(&self, parent: &BindingKey) -> Vec<BindingKey> {
        let ids = self.ids.read();
        let Some(id) = ids.get(parent) else { return Vec::new() };
        self.attached.read().sources(id)
    }

    /// Notes which templates a binding needs; one without a name stands for all of its kind and namespace.
    pub fn put_needs(&self, binding: &BindingKey, templates: HashSet<TemplateKey>) {
        self.needs.write().put(binding, templates);
    }

    /// The bindings that need a template.
    pub fn dependents(&self, key: &TemplateKey) -> HashSet<BindingKey> {
        let any = TemplateKey { name: "".into(), ..key.clone() };
        let needs = self.needs.read();
        [key, &any].into_iter().flat_map(|key| needs.sources(key)).collect()
    }

    /// The binding with an id.
    pub fn binding(&self, id: &str) -> Option<BindingKey> {
        self.bindings.read().get(id).cloned()
    }

    /// Notes the id of a work: its namespace and name.
    pub fn put_work(&self, id: &str, namespace: &str, name: &str) {
        let mut works = self.works.write();
        if !works.contains_key(id) {
            works.insert(id.into(), (namespace.into(), name.into()));
        }
    }

    /// Forgets the id of a work.
    pub fn remove_work(&self, id: &str) {
        self.works.write().remove(id);
    }

    /// Follows the works: notes and forgets their ids. Whether more changed than the status; a work is carried out only
    /// once it has our finalizer, which others do not give it.
    pub fn take_work(&self, change: &Change) -> bool {
        let head = &change.item().object.head;
        let id = head.label(label::WORK_ID);
        match (change, id) {
            (Change::Deleted(_), Some(id)) => self.remove_work(id),
            (_, Some(id)) => self.put_work(id, &head.namespace, &head.name),
            (_, None) => {}
        }
        let Change::Updated(old, _) = change else { return true };
        let old = &old.object.head;
        if let Some(former) = old.label(label::WORK_ID).filter(|former| Some(*former) != id) {
            self.remove_work(former);
        }
        // Another work of the same name may take the place of one that was not seen to go.
        old.uid != head.uid
            || old.generation != head.generation
            || old.deleting != head.deleting
            || old.finalizers != head.finalizers
    }

    /// Namespace and name of the work with an id.
    pub fn work(&self, id: &str) -> Option<(Arc<str>, Arc<str>)> {
        self.works.read().get(id).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_work_of_the_same_name_is_no_change_of_status() {
        let work = |uid: &str, id: &str, revision: &str| {
            let tree = serde_json::json!({"metadata": {"name": "w", "namespace": "karmada-es-m1", "uid": uid, "generation": 1,
                "labels": {label::WORK_ID: id}, "resourceVersion": revision}});
            atoll_runtime::Item::of(&tree).expect("a small object")
        };
        let index = Index::default();
        assert!(index.take_work(&Change::Added(work("u1", "i1", "1"))));
        assert!(!index.take_work(&Change::Updated(work("u1", "i1", "1"), work("u1", "i1", "2"))));
        assert!(index.take_work(&Change::Updated(work("u1", "i1", "2"), work("u2", "i2", "3"))));
        assert_eq!((index.work("i1"), index.work("i2").map(|(_, name)| name)), (None, Some("w".into())));
        assert!(index.take_work(&Change::Deleted(work("u2", "i2", "4"))));
        assert_eq!(index.work("i2"), None);
    }

    #[test]
    fn a_work_that_gets_a_finalizer_is_looked_at_again() {
        let work = |finalizers: &[&str]| {
            let tree = serde_json::json!({"metadata": {"name": "w", "namespace": "karmada-es-m1", "uid": "u", "generation": 1,
                "finalizers": finalizers, "resourceVersion": "1"}});
            atoll_runtime::Item::of(&tree).expect("a small object")
        };
        let index = Index::default();
        assert!(index.take_work(&Change::Updated(work(&[]), work(&["f"]))));
        assert!(!index.take_work(&Change::Updated(work(&["f"]), work(&["f"]))));
    }

    #[test]
    fn links_are_found_from_both_ends_and_leave_nothing_behind() {
        let mut links: Links<&str, u8> = Links::default();
        links.put(&"a", HashSet::from([1, 2]));
        links.put(&"b", HashSet::from([2]));
        let sorted = |mut list: Vec<&'static str>| {
            list.sort_unstable();
            list
        };
        assert_eq!(sorted(links.sources(&2)), ["a", "b"]);
        links.put(&"a", HashSet::from([1]));
        assert_eq!((links.sources(&1), links.sources(&2)), (vec!["a"], vec!["b"]));
        links.put(&"a", HashSet::new());
        links.put(&"b", HashSet::new());
        assert!(links.there.is_empty() && links.back.is_empty());
    }
}
