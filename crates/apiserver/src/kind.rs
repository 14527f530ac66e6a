//! Kinds as the server sees them: built in or defined by a CustomResourceDefinition, one shape for both.

use std::sync::{Arc, LazyLock};

use atoll_builtin::KindInfo;
use atoll_builtin::strategy::{self, NameRule};
use atoll_meta::{FieldError, FieldPath, Revision, Status, api_version};
use atoll_schema::Typed;
use atoll_store::Entry;
use hashbrown::{Equivalent, HashMap};
use serde_json::Value;

use crate::crd::Custom;

/// Where the knowledge about a kind comes from.
#[derive(Clone)]
pub enum Source {
    /// From the tables of built-in kinds.
    Builtin(&'static KindInfo),
    /// From a definition in the instance.
    Custom(Arc<Custom>),
}

/// A subresource of a kind.
#[derive(Clone, Debug)]
pub struct Sub {
    /// Its name in URLs.
    pub name: Box<str>,
    /// Verbs it answers.
    pub verbs: Vec<Box<str>>,
    /// Group of the objects it speaks.
    pub group: Box<str>,
    /// Version of the objects it speaks.
    pub version: Box<str>,
    /// Kind of the objects it speaks.
    pub kind: Box<str>,
}

/// One resource at one version.
#[derive(Clone)]
pub struct Kind {
    /// API group; empty for core.
    pub group: Box<str>,
    /// Version it is served at.
    pub version: Box<str>,
    /// Kind of its objects.
    pub kind: Box<str>,
    /// Kind of its lists.
    pub list_kind: Box<str>,
    /// Plural name in URLs.
    pub plural: Box<str>,
    /// Singular name.
    pub singular: Box<str>,
    /// Short names for kubectl.
    pub short_names: Vec<Box<str>>,
    /// Categories such as `all`.
    pub categories: Vec<Box<str>>,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Verbs it answers.
    pub verbs: Vec<Box<str>>,
    /// Its subresources.
    pub subresources: Vec<Sub>,
    /// The group under which objects are stored: not the own one where two groups show the same objects.
    pub storage_group: Box<str>,
    /// The version in which objects are stored.
    pub storage_version: Box<str>,
    /// What JSON of an object begins with in this version.
    pub prefix: Box<str>,
    /// Where the knowledge comes from.
    pub source: Source,
}

impl Kind {
    fn builtin(info: &'static KindInfo) -> Self {
        let storage = stored(info);
        let boxed = |list: &[&str]| list.iter().map(|text| (*text).into()).collect();
        Self {
            group: info.group.into(),
            version: info.version.into(),
            kind: info.kind.into(),
            list_kind: info.list_kind.into(),
            plural: info.plural.into(),
            singular: info.singular.into(),
            short_names: boxed(&info.short_names),
            categories: boxed(&info.categories),
            namespaced: info.namespaced,
            verbs: boxed(&info.verbs),
            subresources: info
                .subresources
                .iter()
                .map(|sub| Sub {
                    name: sub.name.into(),
                    verbs: boxed(&sub.verbs),
                    group: sub.group.into(),
                    version: sub.version.into(),
                    kind: sub.kind.into(),
                })
                .collect(),
            storage_group: storage.group.into(),
            storage_version: storage.version.into(),
            prefix: prefix(info.group, info.version, info.kind),
            source: Source::Builtin(info),
        }
    }

    /// `apiVersion` of objects in this version.
    pub fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }

    /// `apiVersion` of stored objects.
    pub fn storage_api_version(&self) -> String {
        api_version(&self.storage_group, &self.storage_version)
    }

    /// Whether a verb is answered.
    pub fn has_verb(&self, verb: &str) -> bool {
        self.verbs.iter().any(|known| known.as_ref() == verb)
    }

    /// A subresource by name.
    pub fn sub(&self, name: &str) -> Option<&Sub> {
        self.subresources.iter().find(|sub| sub.name.as_ref() == name)
    }

    /// Whether the kind is custom.
    pub fn custom(&self) -> Option<&Arc<Custom>> {
        match &self.source {
            Source::Custom(custom) => Some(custom),
            Source::Builtin(_) => None,
        }
    }

    /// The schema walker of the kind, if it has a schema.
    pub fn typed(&self) -> Option<Typed<'_>> {
        match &self.source {
            Source::Builtin(info) => Some(Typed::new(atoll_builtin::types(), atoll_builtin::schema_of(info))),
            Source::Custom(custom) => custom.typed(),
        }
    }

    /// The rule for names of objects.
    pub fn name_rule(&self) -> NameRule {
        match self.source {
            Source::Builtin(_) => strategy::name_rule(&self.group, &self.kind),
            Source::Custom(_) => NameRule::Subdomain,
        }
    }

    /// Whether `metadata.generation` counts changes of the desired state.
    pub fn tracks_generation(&self) -> bool {
        match self.source {
            Source::Builtin(_) => strategy::tracks_generation(&self.group, &self.kind),
            Source::Custom(_) => true,
        }
    }

    /// Whether status is written through its own subresource.
    pub fn has_status(&self) -> bool {
        self.sub("status").is_some()
    }

    /// The names of fields a field selector may use besides name and namespace.
    pub fn field(&self, object: &Value, path: &str) -> Option<String> {
        match &self.source {
            Source::Builtin(_) => strategy::field(&self.group, &self.kind, object, path).map(Option::unwrap_or_default),
            Source::Custom(custom) => custom.field(object, path),
        }
    }

    /// Whether a field selector may use this field.
    pub fn selectable(&self, path: &str) -> bool {
        matches!(path, "metadata.name" | "metadata.namespace")
            || match &self.source {
                Source::Builtin(_) => strategy::selectable(&self.group, &self.kind).contains(&path),
                Source::Custom(custom) => custom.selectable(path),
            }
    }

    /// What to say of a field that is not selectable: kinds without fields of their own say it in other words.
    pub fn not_selectable(&self, path: &str) -> String {
        match &self.source {
            Source::Builtin(_)
                if strategy::selectable(&self.group, &self.kind)
                    .iter()
                    .all(|path| matches!(*path, "metadata.name" | "metadata.namespace")) =>
            {
                format!("{path:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
            }
            _ => format!("field label not supported: {path}"),
        }
    }

    /// Whether objects must be converted by code to go from the stored to this version.
    pub fn converts(&self) -> bool {
        match &self.source {
            Source::Builtin(_) => {
                (self.version != self.storage_version || self.group != self.storage_group)
                    && crate::convert::changes_shape(&self.group, &self.kind)
            }
            Source::Custom(custom) => custom.converts(),
        }
    }

    /// Whether an object was stored under an older definition and may lack its defaults.
    fn outdates(&self, entry: &Entry) -> bool {
        self.custom().is_some_and(|custom| custom.outdates(entry.modified))
    }

    /// Whether [`Kind::tree`] shows an object as it is stored, defaults of its definition aside.
    pub fn is_stored_form(&self, entry: &Entry) -> bool {
        !self.converts()
            && self.custom().is_none_or(|custom| !custom.is_stored_elsewhere())
            && entry.object.body.starts_with(self.prefix.as_bytes())
    }

    /// Appends an object's JSON in this version.
    pub fn write(&self, entry: &Entry, revision: Revision, out: &mut Vec<u8>) {
        let elsewhere = self.custom().is_some_and(|custom| custom.is_stored_elsewhere());
        if self.converts() || elsewhere || self.outdates(entry) {
            let tree = self.tree(entry, revision);
            // A tree serialises; writing to a vector cannot fail.
            let _ = serde_json::to_writer(out, &tree);
        } else {
            entry.object.write_as(&self.prefix, revision, out);
        }
    }

    /// The tree of an object in this version.
    pub fn tree(&self, entry: &Entry, revision: Revision) -> Value {
        let mut tree = entry.object.tree(revision);
        let outdated = self.custom().filter(|custom| custom.outdates(entry.modified));
        if let Some(custom) = outdated {
            custom.default_stored(&mut tree);
        }
        let converts = self.converts();
        if converts {
            tree = crate::convert::to(self, tree);
        }
        if let Some(custom) = outdated {
            custom.default(&mut tree);
        }
        if let Some(custom) = self.custom().filter(|custom| custom.is_stored_elsewhere() && !converts) {
            custom.prune(&mut tree);
        }
        tree["apiVersion"] = self.api_version().into();
        tree["kind"] = (*self.kind).into();
        tree
    }

    /// 404 of an object of this kind.
    pub fn not_found(&self, name: &str) -> Status {
        Status::not_found(&self.group, &self.plural, name)
    }

    /// 422 of an object of this kind.
    pub fn invalid(&self, name: &str, errors: &[FieldError]) -> Status {
        Status::invalid(&self.group, &self.kind, name, errors)
    }

    /// 422 about one field.
    pub fn invalid_field(&self, name: &str, path: &str, value: impl Into<Value>, detail: &str) -> Status {
        self.invalid(name, &[FieldError::invalid(FieldPath::new(path), value, detail)])
    }
}

/// The kind as which objects are stored. The two groups of events show the same objects.
pub fn stored(info: &'static KindInfo) -> &'static KindInfo {
    match (info.group, info.kind) {
        ("events.k8s.io", "Event") => atoll_builtin::find_kind("", "v1", "Event").unwrap_or(info),
        _ => atoll_builtin::storage_kind(info),
    }
}

/// What JSON of an object begins with, up to its metadata.
pub fn prefix(group: &str, version: &str, kind: &str) -> Box<str> {
    format!("{{\"kind\":{kind:?},\"apiVersion\":{:?},", api_version(group, version)).into()
}

#[derive(Clone, Eq, PartialEq, Hash)]
struct Name(Box<str>, Box<str>, Box<str>);

#[derive(Hash)]
struct NameRef<'a>(&'a str, &'a str, &'a str);

impl Equivalent<Name> for NameRef<'_> {
    fn equivalent(&self, key: &Name) -> bool {
        *self.0 == *key.0 && *self.1 == *key.1 && *self.2 == *key.2
    }
}

/// A set of kinds, found by group, version and plural.
#[derive(Clone, Default)]
pub struct Kinds {
    by_plural: HashMap<Name, Arc<Kind>>,
    ordered: Vec<Arc<Kind>>,
}

impl Kinds {
    /// A set from its members; their order is kept for discovery.
    pub fn new(kinds: impl IntoIterator<Item = Arc<Kind>>) -> Self {
        let ordered: Vec<Arc<Kind>> = kinds.into_iter().collect();
        let by_plural = ordered
            .iter()
            .map(|kind| (Name(kind.group.clone(), kind.version.clone(), kind.plural.clone()), kind.clone()))
            .collect();
        Self { by_plural, ordered }
    }

    /// A kind by its place in the URL.
    pub fn get(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Kind>> {
        self.by_plural.get(&NameRef(group, version, plural))
    }

    /// All kinds.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.ordered.iter()
    }
}

/// The built-in kinds, shared by all instances.
pub fn builtin() -> &'static Kinds {
    static KINDS: LazyLock<Kinds> =
        LazyLock::new(|| Kinds::new(atoll_builtin::kinds().iter().map(|info| Arc::new(Kind::builtin(info)))));
    &KINDS
}
