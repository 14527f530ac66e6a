//! The type model: one description of a field for built-in kinds and custom resources alike.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

/// The JSON type a schema asks for.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq, Hash)]
pub enum Type {
    /// No type given: anything goes (or int-or-string, see [`Schema::int_or_string`]).
    #[default]
    Any,
    /// A map or a struct.
    Object,
    /// A list.
    Array,
    /// A string.
    String,
    /// A whole number.
    Integer,
    /// Any number.
    Number,
    /// true or false.
    Boolean,
}

impl Type {
    /// The name in a schema; empty for [`Type::Any`].
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Any => "",
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }

    /// The type of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "" => Self::Any,
            "object" => Self::Object,
            "array" => Self::Array,
            "string" => Self::String,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            _ => return None,
        })
    }
}

/// How the elements of a list are told apart.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq, Hash)]
pub enum ListType {
    /// The list is one value.
    #[default]
    Atomic,
    /// Elements are scalars and unique.
    Set,
    /// Elements are objects identified by [`Schema::list_map_keys`].
    Map,
}

/// How strategic merge patch treats a field.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq, Hash)]
pub struct PatchStrategy {
    /// Lists are merged by key (or as sets) instead of replaced.
    pub merge: bool,
    /// Maps are replaced instead of merged.
    pub replace: bool,
    /// `$retainKeys` decides which keys stay.
    pub retain_keys: bool,
}

/// A rule in CEL (`x-kubernetes-validations`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rule {
    /// The expression over `self` and `oldSelf`.
    pub rule: String,
    /// What to say when it is false.
    pub message: String,
    /// An expression for what to say.
    pub message_expression: String,
    /// Cause type; FieldValueInvalid when empty.
    pub reason: String,
    /// Path of the field to blame, relative to the schema.
    pub field_path: String,
    /// Whether the rule also runs when there is no old value.
    pub optional_old_self: bool,
}

/// Value validations; only allocated where a schema has any.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the names are OpenAPI's own")]
pub struct Limits {
    pub enumeration: Vec<Value>,
    pub pattern: Option<String>,
    /// Compiled form of `pattern`, filled on first use and shared between equal patterns.
    pub regex: crate::pattern::Cell,
    pub minimum: Option<f64>,
    pub maximum: Option<f64>,
    pub exclusive_minimum: bool,
    pub exclusive_maximum: bool,
    pub multiple_of: Option<f64>,
    pub min_length: Option<u64>,
    pub max_length: Option<u64>,
    pub min_items: Option<u64>,
    pub max_items: Option<u64>,
    pub min_properties: Option<u64>,
    pub max_properties: Option<u64>,
    pub unique_items: bool,
    pub all_of: Vec<Schema>,
    pub any_of: Vec<Schema>,
    pub one_of: Vec<Schema>,
    pub not: Option<Box<Schema>>,
    pub rules: Vec<Rule>,
}

/// One node of a schema.
///
/// A node with a `reference` is only a pointer to a named type of [`Types`] (built-in kinds use
/// these, because their types are shared and some are recursive), but may carry its own
/// `default`, `nullable`, list and patch attributes, which belong to the field, not the type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schema {
    /// Named type this node points to.
    pub reference: Option<Arc<str>>,
    /// Asked-for JSON type.
    pub ty: Type,
    /// OpenAPI format (`int32`, `date-time`, `byte`, `quantity`, `micro-time`, ...); empty for none.
    pub format: Box<str>,
    /// Known fields of an object.
    pub properties: BTreeMap<Box<str>, Schema>,
    /// Schema of the values of a map with free keys.
    pub additional: Option<Box<Schema>>,
    /// `additionalProperties: true`, or an object without any description.
    pub free_form: bool,
    /// Schema of list elements.
    pub items: Option<Box<Schema>>,
    /// Fields that must be there.
    pub required: Vec<Box<str>>,
    /// Value to fill in when the field is missing.
    pub default: Option<Value>,
    /// Whether null is a value.
    pub nullable: bool,
    /// `x-kubernetes-int-or-string`.
    pub int_or_string: bool,
    /// `x-kubernetes-preserve-unknown-fields`.
    pub preserve_unknown: bool,
    /// `x-kubernetes-embedded-resource`.
    pub embedded_resource: bool,
    /// `x-kubernetes-list-type`; `None` when not declared (treated as atomic by apply).
    pub list_type: Option<ListType>,
    /// `x-kubernetes-list-map-keys`.
    pub list_map_keys: Vec<Box<str>>,
    /// `x-kubernetes-map-type: atomic` (or struct-type atomic).
    pub map_atomic: bool,
    /// `x-kubernetes-patch-strategy`.
    pub patch_strategy: PatchStrategy,
    /// `x-kubernetes-patch-merge-key`.
    pub patch_merge_key: Option<Box<str>>,
    /// Value validations, if any.
    pub limits: Option<Box<Limits>>,
    /// Prose for `kubectl explain`; only kept where a document is published from it.
    pub description: Option<Box<str>>,
    /// Keywords the model has no word for (`title`, `example`, `externalDocs`, unsupported ones):
    /// kept for publication and so that a bad schema can be refused by name.
    pub extra: Option<Box<serde_json::Map<String, Value>>>,
}

/// Named types that references point to.
#[derive(Clone, Debug, Default)]
pub struct Types {
    by_name: std::collections::HashMap<Arc<str>, Schema>,
}

impl Types {
    /// A table from its entries.
    pub fn new(entries: impl IntoIterator<Item = (Arc<str>, Schema)>) -> Self {
        Self { by_name: entries.into_iter().collect() }
    }

    /// The named type.
    pub fn get(&self, name: &str) -> Option<&Schema> {
        self.by_name.get(name)
    }

    /// All names and types.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Schema)> {
        self.by_name.iter()
    }
}

/// A schema node together with the table its references point into.
///
/// Walkers (patch, apply, strict decoding) use this, so that they need not care whether a
/// kind is built in (with references) or custom (without).
#[derive(Copy, Clone, Debug)]
pub struct Typed<'a> {
    /// The named types.
    pub types: &'a Types,
    /// The node as it stands in its parent: list and patch attributes of the field are here.
    pub field: &'a Schema,
    /// The node with references followed: type, properties and items are here.
    pub schema: &'a Schema,
}

impl<'a> Typed<'a> {
    /// Starts at a node.
    pub fn new(types: &'a Types, field: &'a Schema) -> Self {
        let mut schema = field;
        // A chain of references is short; the bound keeps a broken table from looping.
        for _ in 0..8 {
            match schema.reference.as_deref().and_then(|name| types.get(name)) {
                Some(target) => schema = target,
                None => break,
            }
        }
        Self { types, field, schema }
    }

    /// The schema of a field: declared, or that of all values of a map.
    pub fn property(&self, name: &str) -> Option<Typed<'a>> {
        let child = self.schema.properties.get(name).or(self.schema.additional.as_deref())?;
        Some(Self::new(self.types, child))
    }

    /// Whether the field is declared by name.
    pub fn declares(&self, name: &str) -> bool {
        self.schema.properties.contains_key(name)
    }

    /// The schema of list elements.
    pub fn items(&self) -> Option<Typed<'a>> {
        Some(Self::new(self.types, self.schema.items.as_deref()?))
    }

    /// How list elements are told apart.
    pub fn list_type(&self) -> ListType {
        self.field.list_type.or(self.schema.list_type).unwrap_or_default()
    }

    /// The keys of a map list.
    pub fn list_map_keys(&self) -> &'a [Box<str>] {
        if self.field.list_map_keys.is_empty() { &self.schema.list_map_keys } else { &self.field.list_map_keys }
    }

    /// Whether a map or struct is one value.
    pub fn is_atomic_map(&self) -> bool {
        self.field.map_atomic || self.schema.map_atomic
    }

    /// Whether fields without description are kept.
    pub fn keeps_unknown(&self) -> bool {
        self.schema.preserve_unknown || self.field.preserve_unknown || self.schema.free_form
    }
}
