//! Sets of field paths as a trie.

use std::cmp::Ordering;

use super::{Path, PathElement};

/// A set of fields.
///
/// A node can be a member itself, have members below, or both; a struct whose fields are
/// owned is usually not a member, an element of a keyed list is.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct FieldSet {
    /// Sorted by element; every node is a member or has children.
    nodes: Vec<Node>,
}

/// One step of the trie.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Node {
    pub(crate) element: PathElement,
    pub(crate) member: bool,
    pub(crate) children: FieldSet,
}

impl Node {
    fn is_empty(&self) -> bool {
        !self.member && self.children.is_empty()
    }
}

impl FieldSet {
    /// The set of nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// The set of these paths; the empty path names no field and is left out.
    pub fn of_paths<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Self {
        let mut set = Self::new();
        for path in paths {
            set.insert(&path.0);
        }
        set
    }

    /// From nodes in any order; empty ones are dropped, equal ones united.
    pub(crate) fn from_nodes(mut nodes: Vec<Node>) -> Self {
        if nodes.iter().any(Node::is_empty) {
            nodes.retain(|node| !node.is_empty());
        }
        if nodes.is_sorted_by(|left, right| left.element < right.element) {
            return Self { nodes };
        }
        nodes.sort_by(|left, right| left.element.cmp(&right.element));
        let mut out: Vec<Node> = Vec::with_capacity(nodes.len());
        for node in nodes {
            match out.last_mut() {
                Some(last) if last.element == node.element => {
                    last.member |= node.member;
                    last.children = std::mem::take(&mut last.children).union(node.children);
                }
                _ => out.push(node),
            }
        }
        Self { nodes: out }
    }

    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub(crate) fn into_nodes(self) -> Vec<Node> {
        self.nodes
    }

    fn find(&self, element: &PathElement) -> Result<usize, usize> {
        self.nodes.binary_search_by(|node| node.element.cmp(element))
    }

    /// The node of a first step.
    pub(crate) fn get(&self, element: &PathElement) -> Option<&Node> {
        self.find(element).ok().map(|at| &self.nodes[at])
    }

    /// Adds one path.
    pub fn insert(&mut self, path: &[PathElement]) {
        let Some((first, rest)) = path.split_first() else { return };
        let at = self.find(first).unwrap_or_else(|at| {
            self.nodes.insert(at, Node { element: first.clone(), member: false, children: Self::new() });
            at
        });
        if rest.is_empty() {
            self.nodes[at].member = true;
        } else {
            self.nodes[at].children.insert(rest);
        }
    }

    /// Whether no field is in the set.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Whether the field is in the set.
    pub fn contains(&self, path: &[PathElement]) -> bool {
        match path {
            [] => false,
            [last] => self.get(last).is_some_and(|node| node.member),
            [first, rest @ ..] => self.get(first).is_some_and(|node| node.children.contains(rest)),
        }
    }

    /// What is in either set.
    #[must_use]
    pub fn union(mut self, mut other: Self) -> Self {
        if other.nodes.is_empty() {
            return self;
        }
        if self.nodes.is_empty() {
            return other;
        }
        self.nodes.append(&mut other.nodes);
        Self::from_nodes(self.nodes)
    }

    /// What is in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let nodes = pairs(&self.nodes, &other.nodes).filter_map(|(left, right)| {
            let member = left.member && right.member;
            let children = left.children.intersection(&right.children);
            (member || !children.is_empty()).then(|| Node { element: left.element.clone(), member, children })
        });
        Self { nodes: nodes.collect() }
    }

    /// Whether any field is in both sets.
    pub(crate) fn intersects(&self, other: &Self) -> bool {
        pairs(&self.nodes, &other.nodes)
            .any(|(left, right)| (left.member && right.member) || left.children.intersects(&right.children))
    }

    /// What is in this set but not in the other; fields below a field of the other stay.
    #[must_use]
    pub fn difference(self, other: &Self) -> Self {
        self.without(other, false)
    }

    /// What is in this set and neither in the other nor below a field of the other.
    #[must_use]
    pub fn recursive_difference(self, other: &Self) -> Self {
        self.without(other, true)
    }

    fn without(mut self, other: &Self, recursive: bool) -> Self {
        if other.nodes.is_empty() || self.nodes.is_empty() {
            return self;
        }
        let mut theirs = other.nodes.iter().peekable();
        self.nodes.retain_mut(|node| {
            while theirs.next_if(|their| their.element < node.element).is_some() {}
            let Some(their) = theirs.next_if(|their| their.element == node.element) else { return true };
            if recursive && their.member {
                return false;
            }
            node.member &= !their.member;
            node.children = std::mem::take(&mut node.children).without(&their.children, recursive);
            !node.is_empty()
        });
        self
    }

    /// The fields that have no field of the set below them.
    #[must_use]
    pub fn leaves(&self) -> Self {
        let nodes = self.nodes.iter().map(|node| Node {
            element: node.element.clone(),
            member: node.member && node.children.is_empty(),
            children: node.children.leaves(),
        });
        Self::from_nodes(nodes.collect())
    }

    /// All paths: at every level the fields themselves first, then those below them.
    pub fn paths(&self) -> Vec<Path> {
        let mut out = Vec::new();
        self.collect(&mut Vec::new(), &mut out);
        out
    }

    fn collect(&self, prefix: &mut Vec<PathElement>, out: &mut Vec<Path>) {
        for node in self.nodes.iter().filter(|node| node.member) {
            let mut path = prefix.clone();
            path.push(node.element.clone());
            out.push(Path(path));
        }
        for node in &self.nodes {
            prefix.push(node.element.clone());
            node.children.collect(prefix, out);
            prefix.pop();
        }
    }
}

/// Nodes with equal elements of two sorted lists.
fn pairs<'n>(left: &'n [Node], right: &'n [Node]) -> impl Iterator<Item = (&'n Node, &'n Node)> {
    let (mut at, mut to) = (0, 0);
    std::iter::from_fn(move || {
        while let (Some(l), Some(r)) = (left.get(at), right.get(to)) {
            match l.element.cmp(&r.element) {
                Ordering::Less => at += 1,
                Ordering::Greater => to += 1,
                Ordering::Equal => {
                    at += 1;
                    to += 1;
                    return Some((l, r));
                }
            }
        }
        None
    })
}
