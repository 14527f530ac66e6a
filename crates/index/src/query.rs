//! What can be asked.

use atoll_meta::Status;
use atoll_meta::selector::{FieldSelector, LabelSelector};
use jiff::Timestamp;

use crate::field;
use crate::row::Row;
use crate::shelf::Shelf;

/// A resource by name; without a group, in any group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ResourceName {
    /// API group.
    pub group: Option<String>,
    /// API version; any when absent.
    pub version: Option<String>,
    /// Plural resource; `*` is all of the group.
    pub resource: String,
}

impl ResourceName {
    /// A resource of a group.
    pub fn new(group: &str, resource: &str) -> Self {
        Self { group: Some(group.into()), version: None, resource: resource.into() }
    }

    fn fits(&self, shelf: &Shelf) -> bool {
        self.group.as_ref().is_none_or(|group| *group == shelf.key.group)
            && self.version.as_ref().is_none_or(|version| *version == shelf.version)
            && (self.resource == "*" || self.resource == shelf.key.resource)
    }
}

/// Asks for what an object owns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct OwnerOf {
    /// The owner's uid; wins over the name.
    pub uid: Option<String>,
    /// The owner's name.
    pub name: Option<String>,
    /// The owner's resource, when it is given by name.
    pub resource: Option<ResourceName>,
    /// How many generations lie between: 0 asks for children, 1 for grandchildren.
    pub generations: u32,
}

/// What results can be sorted by; nothing else reaches a statement.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Column {
    Source,
    Resource,
    Namespace,
    Name,
    Created,
}

impl Column {
    /// By the name a caller uses.
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "cluster" | "source" => Self::Source,
            "resource" | "kind" => Self::Resource,
            "namespace" => Self::Namespace,
            "name" | "field_name" => Self::Name,
            "created_at" | "created" | "creationTimestamp" => Self::Created,
            _ => return None,
        })
    }
}

/// A sort order.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sort {
    /// By what.
    pub column: Column,
    /// Greatest first.
    pub descending: bool,
}

/// What to count by.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Facet {
    Source,
    Resource,
    Namespace,
    Label(String),
    /// One of the indexed fields, such as `status.phase`.
    Field(String),
}

/// A question. Empty lists and `None` mean: any.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// Sources: `fleet`, `fleet/member1`, or `fleet/*` for all members of `fleet`.
    pub sources: Vec<String>,
    /// Whether hidden sources are asked too when `sources` does not name them.
    pub hidden: bool,
    /// Resources.
    pub resources: Vec<ResourceName>,
    /// Kinds.
    pub kinds: Vec<String>,
    /// Namespaces.
    pub namespaces: Vec<String>,
    /// Names.
    pub names: Vec<String>,
    /// Parts of the name; all must occur.
    pub fuzzy: Vec<String>,
    /// Labels.
    pub labels: LabelSelector,
    /// Fields.
    pub fields: FieldSelector,
    /// Owner.
    pub owner: Option<OwnerOf>,
    /// Made at or after.
    pub since: Option<Timestamp>,
    /// Made before.
    pub before: Option<Timestamp>,
    /// Order; by source, group, resource, namespace and name when empty.
    pub sort: Vec<Sort>,
    /// At most so many.
    pub limit: Option<usize>,
    /// Leave out so many first: for callers that count pages. Tokens are better.
    pub offset: usize,
    /// Where the last page ended.
    pub token: Option<String>,
    /// Whether to count what follows.
    pub remaining: bool,
}

impl Query {
    /// Everything of one resource of a source.
    pub fn of(source: &str, group: &str, resource: &str) -> Self {
        Self { sources: vec![source.into()], resources: vec![ResourceName::new(group, resource)], ..Self::default() }
    }

    /// Whether a shelf is asked for; `hidden` tells whether its source is hidden.
    pub fn wants(&self, shelf: &Shelf, hidden: bool) -> bool {
        let source = &shelf.key.source;
        let named = self.sources.iter().any(|pattern| match pattern.strip_suffix("/*") {
            Some(instance) => source.strip_prefix(instance).is_some_and(|rest| rest.starts_with('/')),
            None => pattern == source,
        });
        let source_fits = if self.sources.is_empty() { self.hidden || !hidden } else { named };
        source_fits
            && (self.resources.is_empty() || self.resources.iter().any(|resource| resource.fits(shelf)))
            && (self.kinds.is_empty() || self.kinds.contains(&shelf.kind))
    }

    /// Whether a row of a wanted shelf is asked for; owners further than the parent are not looked at.
    pub fn matches(&self, row: &Row) -> Result<bool, Status> {
        let any = |list: &[String], text: &String| list.is_empty() || list.contains(text);
        let plain = any(&self.namespaces, &row.namespace)
            && any(&self.names, &row.name)
            && self.fuzzy.iter().all(|part| row.name.contains(&part.to_lowercase()))
            && self.since.is_none_or(|since| row.created >= since.as_millisecond())
            && self.before.is_none_or(|before| row.created < before.as_millisecond())
            && self.labels.matches(|key| row.label(key))
            && self.owner.as_ref().and_then(|owner| owner.uid.as_ref()).is_none_or(|uid| row.owners.contains(uid));
        if !plain || self.fields.is_everything() {
            return Ok(plain);
        }
        let tree = row.tree();
        for term in self.fields.terms() {
            if (field::text(&tree, &field::steps(&term.path)?) == term.value) != term.equal {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What makes two questions the same, apart from the page.
    pub(crate) fn fingerprint(&self) -> u64 {
        use std::hash::{Hash as _, Hasher as _};
        // Tokens are short-lived and only ever compared within one version of this program.
        let mut hasher = std::hash::DefaultHasher::new();
        (&self.sources, self.hidden, &self.resources, &self.kinds, &self.namespaces, &self.names, &self.fuzzy)
            .hash(&mut hasher);
        (self.labels.to_string(), self.fields.to_string(), &self.owner, self.since, self.before, &self.sort)
            .hash(&mut hasher);
        hasher.finish()
    }
}
