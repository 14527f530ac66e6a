//! Groups and kinds: what discovery shows and the registry serves.

use std::collections::HashMap;
use std::sync::LazyLock;

use atoll_meta::{Gvk, Gvr};
use atoll_schema::{Schema, Types};

use crate::table;

/// One resource in one version of one group.
#[derive(Clone, Debug)]
pub struct KindInfo {
    /// API group; empty for the core.
    pub group: &'static str,
    /// Version this entry is about.
    pub version: &'static str,
    /// Kind of one object.
    pub kind: &'static str,
    /// Kind of a list; empty for kinds that cannot be listed.
    pub list_kind: &'static str,
    /// Plural name in paths.
    pub plural: &'static str,
    /// Singular name.
    pub singular: &'static str,
    /// Short names, such as `po`.
    pub short_names: Vec<&'static str>,
    /// Categories, such as `all`.
    pub categories: Vec<&'static str>,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// What may be done.
    pub verbs: Vec<&'static str>,
    /// Subresources in the original's order.
    pub subresources: Vec<SubInfo>,
    /// Key into [`types`].
    pub type_name: String,
    /// What discovery says about how it is stored.
    pub storage_version_hash: Option<&'static str>,
    /// Whether objects of this resource are stored in this version (see [`storage_kind`]).
    pub storage: bool,
}

/// One subresource.
#[derive(Clone, Debug)]
pub struct SubInfo {
    /// Name, such as `status`.
    pub name: &'static str,
    /// What may be done.
    pub verbs: Vec<&'static str>,
    /// Group of the kind it speaks.
    pub group: &'static str,
    /// Version of the kind it speaks.
    pub version: &'static str,
    /// Kind it speaks, such as `Scale`.
    pub kind: &'static str,
    /// Whether the parent lives in namespaces.
    pub namespaced: bool,
    /// Other kinds it accepts in requests.
    pub accepted: Vec<Gvk>,
}

/// One API group.
#[derive(Clone, Debug)]
pub struct GroupInfo {
    /// Name; empty for the core.
    pub name: &'static str,
    /// Versions, preferred first.
    pub versions: Vec<String>,
}

impl KindInfo {
    /// Group, version and kind.
    pub fn gvk(&self) -> Gvk {
        Gvk::new(self.group, self.version, self.kind)
    }

    /// Group, version and plural name.
    pub fn gvr(&self) -> Gvr {
        Gvr::new(self.group, self.version, self.plural)
    }

    /// The `apiVersion` of its objects.
    pub fn api_version(&self) -> String {
        atoll_meta::api_version(self.group, self.version)
    }

    /// Whether a verb is offered.
    pub fn allows(&self, verb: &str) -> bool {
        self.verbs.contains(&verb)
    }

    /// The subresource of that name.
    pub fn subresource(&self, name: &str) -> Option<&SubInfo> {
        self.subresources.iter().find(|sub| sub.name == name)
    }

    /// Whether objects are kept at all; reviews and bindings are only answered.
    pub fn is_stored(&self) -> bool {
        self.allows("get") && self.allows("create")
    }
}

/// What [`kinds`] and [`groups`] hand out, with the indexes for the `find` functions.
struct Served {
    groups: Vec<GroupInfo>,
    kinds: Vec<KindInfo>,
    by_plural: HashMap<(&'static str, &'static str, &'static str), usize>,
    by_kind: HashMap<(&'static str, &'static str, &'static str), usize>,
}

static SERVED: LazyLock<Served> = LazyLock::new(|| {
    let (groups, mut kinds) = table::served();
    mark_storage(&groups, &mut kinds);
    let by_plural = kinds.iter().enumerate().map(|(at, kind)| ((kind.group, kind.version, kind.plural), at)).collect();
    let by_kind = kinds.iter().enumerate().map(|(at, kind)| ((kind.group, kind.version, kind.kind), at)).collect();
    Served { groups, kinds, by_plural, by_kind }
});

/// Marks the version each resource is stored in: the most preferred one that has it.
fn mark_storage(groups: &[GroupInfo], kinds: &mut [KindInfo]) {
    for group in groups {
        // Events of both groups are the same objects, kept in the core's form.
        if group.name == "events.k8s.io" {
            continue;
        }
        let mut seen: Vec<&str> = Vec::new();
        for version in &group.versions {
            for kind in kinds.iter_mut().filter(|kind| kind.group == group.name && kind.version == version) {
                if !seen.contains(&kind.plural) {
                    seen.push(kind.plural);
                    kind.storage = true;
                }
            }
        }
    }
}

/// All served resources, also those that are only answered and never stored.
pub fn kinds() -> &'static [KindInfo] {
    &SERVED.kinds
}

/// All groups, the core first, then as the original's discovery orders them.
pub fn groups() -> &'static [GroupInfo] {
    &SERVED.groups
}

/// The resource of that plural name.
pub fn find(group: &str, version: &str, plural: &str) -> Option<&'static KindInfo> {
    SERVED.by_plural.get(&(group, version, plural)).map(|at| &SERVED.kinds[*at])
}

/// The resource whose objects are of that kind.
pub fn find_kind(group: &str, version: &str, kind: &str) -> Option<&'static KindInfo> {
    SERVED.by_kind.get(&(group, version, kind)).map(|at| &SERVED.kinds[*at])
}

/// The version in which objects of this resource are stored; events.k8s.io answers the core's Event.
pub fn storage_kind(kind: &KindInfo) -> &'static KindInfo {
    let group = if (kind.group, kind.plural) == ("events.k8s.io", "events") { "" } else { kind.group };
    let stored = kinds().iter().find(|other| other.storage && other.group == group && other.plural == kind.plural);
    stored.expect("every resource of the table is stored in one of its versions")
}

/// The named types of all kinds.
///
/// Zero defaults (`""`, `0`, `{}`) mark fields that the original always writes out.
pub fn types() -> &'static Types {
    &table::types().types
}

/// The type of a kind's objects.
pub fn schema_of(kind: &KindInfo) -> &'static Schema {
    types().get(&kind.type_name).expect("the table names the type of every kind")
}
