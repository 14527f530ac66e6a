//! What sort of value stands at a place, for the purposes of apply.

use std::sync::OnceLock;

use atoll_schema::{ListType, Schema, Type, Typed, Types};
use serde_json::Value;

use crate::fields::PathElement;

/// The type of a place.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Kind<'a> {
    /// The schema says it.
    Typed(Described<'a>),
    /// The value says it: maps are granular, lists are atomic.
    Deduced {
        /// The whole object, whose metadata is always known.
        root: bool,
    },
    /// The value says it, and maps and lists are atomic.
    Untyped,
}

/// A described place.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Described<'a> {
    typed: Typed<'a>,
    /// Fields without description are kept here, or somewhere above.
    preserve: bool,
    /// A struct of a built-in kind, whose plain struct fields are always present.
    structure: bool,
    root: bool,
}

/// What a value at a place is.
#[derive(Copy, Clone)]
pub(crate) enum Shape<'a> {
    Scalar,
    List(List<'a>),
    Map(Fields<'a>),
}

/// A list and how its elements are told apart.
#[derive(Copy, Clone)]
pub(crate) struct List<'a> {
    pub(crate) relation: Relation<'a>,
    pub(crate) items: Kind<'a>,
}

/// How the elements of a list are told apart.
#[derive(Copy, Clone)]
pub(crate) enum Relation<'a> {
    Atomic,
    Set,
    Keyed(&'a [Box<str>]),
}

/// A map or struct.
#[derive(Copy, Clone)]
pub(crate) struct Fields<'a> {
    pub(crate) atomic: bool,
    kind: Kind<'a>,
}

/// What a missing field of a built-in struct counts as.
pub(crate) enum Missing<'a> {
    /// It is missing.
    Absent,
    /// An empty struct is there all the same.
    Struct,
    /// A null list or map is there all the same.
    Null,
    /// This zero value is there all the same.
    Scalar(&'a Value),
}

impl<'a> Kind<'a> {
    /// The kind of a whole object.
    pub(crate) fn root(schema: Option<Typed<'a>>) -> Self {
        match schema {
            None => Self::Deduced { root: true },
            Some(typed) => Self::Typed(Described {
                typed,
                preserve: typed.keeps_unknown(),
                structure: is_built_in(typed),
                root: true,
            }),
        }
    }

    /// Whether the place is a struct of a built-in kind.
    pub(crate) fn is_built_in(&self) -> bool {
        matches!(self, Self::Typed(node) if node.structure)
    }

    fn below(typed: Typed<'a>, preserve: bool) -> Self {
        // A raw extension holds a foreign object: it has one owner, whatever is inside.
        let node = Described {
            typed,
            preserve: preserve || typed.schema.preserve_unknown || typed.field.preserve_unknown,
            structure: typed.field.reference.is_some(),
            root: false,
        };
        if node.refers_to("runtime.RawExtension") { Self::Untyped } else { Self::Typed(node) }
    }

    /// The shape of a value here; places without type take the value's, null counts as a map.
    pub(crate) fn shape(&self, value: Option<&Value>) -> Shape<'a> {
        let declared = match self {
            // A quantity has no declared type, because it may be written as text or as a number.
            Self::Typed(node) if node.refers_to("resource.Quantity") => return Shape::Scalar,
            Self::Typed(node) => node.typed.schema.ty,
            _ => Type::Any,
        };
        match (declared, value) {
            (Type::Object, _) | (Type::Any, None | Some(Value::Null | Value::Object(_))) => Shape::Map(self.fields()),
            (Type::Array, _) | (Type::Any, Some(Value::Array(_))) => Shape::List(self.list()),
            _ => Shape::Scalar,
        }
    }

    /// The place as a map, whatever it holds.
    pub(crate) fn fields(&self) -> Fields<'a> {
        let atomic = match self {
            Self::Typed(node) => node.typed.is_atomic_map(),
            Self::Deduced { .. } => false,
            Self::Untyped => true,
        };
        Fields { atomic, kind: *self }
    }

    /// The place as a list, whatever it holds.
    pub(crate) fn list(&self) -> List<'a> {
        let Self::Typed(node) = self else {
            return List { relation: Relation::Atomic, items: Kind::Untyped };
        };
        let items = node.typed.items().map_or(Kind::Untyped, |items| Self::below(items, node.preserve));
        List { relation: node.relation(), items }
    }

    /// Declared scalar type, for validation.
    pub(crate) fn scalar(&self) -> (Type, &'a str) {
        match self {
            Self::Typed(node) => (node.typed.schema.ty, &node.typed.schema.format),
            _ => (Type::Any, ""),
        }
    }
}

impl<'a> Described<'a> {
    fn refers_to(&self, name: &str) -> bool {
        self.typed.field.reference.as_deref().is_some_and(|reference| reference.ends_with(name))
    }

    fn relation(&self) -> Relation<'a> {
        let (field, schema) = (self.typed.field, self.typed.schema);
        match field.list_type.or(schema.list_type) {
            Some(ListType::Atomic) => Relation::Atomic,
            Some(ListType::Set) => Relation::Set,
            Some(ListType::Map) => Relation::Keyed(self.typed.list_map_keys()),
            // Older types only say how strategic merge patch treats them.
            None if field.patch_strategy.merge => match &field.patch_merge_key {
                Some(key) => Relation::Keyed(std::slice::from_ref(key)),
                None => Relation::Set,
            },
            None => Relation::Atomic,
        }
    }
}

impl<'a> Fields<'a> {
    /// The kind of a field; `None` if the schema has no place for it.
    pub(crate) fn field(&self, name: &str) -> Option<Kind<'a>> {
        let node = match self.kind {
            Kind::Untyped => return Some(Kind::Untyped),
            Kind::Deduced { root: true } if name == "metadata" => return Some(metadata()),
            Kind::Deduced { .. } => return Some(Kind::Deduced { root: false }),
            Kind::Typed(node) => node,
        };
        if let Some(field) = node.typed.property(name) {
            let silent = field.schema.properties.is_empty() && field.schema.additional.is_none();
            // Custom resources rarely describe their metadata, but it has the same type for all.
            let described = !(node.root && name == "metadata" && silent);
            return Some(if described { Kind::below(field, node.preserve) } else { metadata() });
        }
        match name {
            "metadata" if node.root => Some(metadata()),
            "apiVersion" | "kind" if node.root => Some(Kind::Untyped),
            _ if self.is_open() => Some(Kind::Deduced { root: false }),
            _ => None,
        }
    }

    /// The kind of a field; what the schema has no place for is deduced.
    pub(crate) fn field_or_deduced(&self, name: &str) -> Kind<'a> {
        self.field(name).unwrap_or(Kind::Deduced { root: false })
    }

    fn is_open(&self) -> bool {
        match self.kind {
            Kind::Typed(node) => node.preserve || node.typed.keeps_unknown() || node.typed.schema.properties.is_empty(),
            _ => true,
        }
    }

    /// Whether the field is declared by name, like those of a struct.
    pub(crate) fn declares(&self, name: &str) -> bool {
        let (root, declared) = match self.kind {
            Kind::Typed(node) => (node.root, node.typed.declares(name)),
            Kind::Deduced { root } => (root, false),
            Kind::Untyped => (false, false),
        };
        declared || (root && matches!(name, "apiVersion" | "kind" | "metadata"))
    }

    /// Whether the map is wholly without description.
    pub(crate) fn is_deduced(&self) -> bool {
        match self.kind {
            Kind::Typed(node) => node.typed.schema.properties.is_empty() && node.typed.schema.additional.is_none(),
            _ => true,
        }
    }

    /// What the field counts as while it is missing.
    pub(crate) fn missing(&self, name: &str) -> Missing<'a> {
        let Kind::Typed(node) = self.kind else { return Missing::Absent };
        let Some(field) = node.typed.schema.properties.get(name) else { return Missing::Absent };
        match &field.default {
            Some(Value::Object(map)) if map.is_empty() && field.reference.is_some() => Missing::Struct,
            _ if !node.structure => Missing::Absent,
            Some(zero) if is_zero(zero) => Missing::Scalar(zero),
            None if node.typed.schema.required.iter().any(|required| &**required == name) => Missing::Null,
            _ => Missing::Absent,
        }
    }
}

/// Built-in kinds are made of named types, and their metadata is a struct that is always there.
fn is_built_in(typed: Typed) -> bool {
    let metadata = typed.schema.properties.get("metadata");
    typed.field.reference.is_some()
        || metadata.is_some_and(|field| field.reference.is_some() && field.default.is_some())
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        _ => false,
    }
}

impl List<'_> {
    /// The path element of a list element.
    pub(crate) fn element(&self, item: &Value) -> Result<PathElement, String> {
        match self.relation {
            Relation::Atomic => Err("invalid indexing of non-associative list".into()),
            Relation::Set => match item {
                Value::Object(_) => Err("associative list without keys has an element that's a map type".into()),
                Value::Array(_) => Err("not supported: associative list with lists as elements".into()),
                Value::Null => Err("associative list without keys has an element that's an explicit null".into()),
                scalar => Ok(PathElement::Value(scalar.clone())),
            },
            Relation::Keyed(keys) => self.keyed_element(keys, item),
        }
    }

    fn keyed_element(&self, keys: &[Box<str>], item: &Value) -> Result<PathElement, String> {
        let map = match item {
            Value::Object(map) => map,
            Value::Null => return Err("associative list with keys may not have a null element".into()),
            _ => return Err("associative list with keys may not have non-map elements".into()),
        };
        let default = |key: &str| match &self.items {
            Kind::Typed(node) => node.typed.schema.properties.get(key).and_then(|field| field.default.as_ref()),
            _ => None,
        };
        let found = keys.iter().filter_map(|key| {
            let value = map.get(&**key).or_else(|| default(key))?;
            Some((key.clone(), value.clone()))
        });
        let element = PathElement::key(found);
        match &element {
            PathElement::Key(fields) if fields.is_empty() => {
                let quoted: Vec<String> = keys.iter().map(|key| format!("{key:?}")).collect();
                Err(format!(
                    "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any key fields)",
                    quoted.join(" ")
                ))
            }
            _ => Ok(element),
        }
    }

    /// Whether the list is one value.
    pub(crate) fn is_atomic(&self) -> bool {
        matches!(self.relation, Relation::Atomic)
    }
}

/// The type of every object's metadata, as far as ownership cares.
fn metadata() -> Kind<'static> {
    static TYPES: OnceLock<Types> = OnceLock::new();
    static METADATA: OnceLock<Schema> = OnceLock::new();
    let types = TYPES.get_or_init(Types::default);
    let schema = METADATA.get_or_init(|| {
        let of = |ty| Schema { ty, ..Schema::default() };
        let text = || of(Type::String);
        let map = || Schema { additional: Some(Box::new(text())), ..of(Type::Object) };
        let list =
            |list_type, items| Schema { list_type: Some(list_type), items: Some(Box::new(items)), ..of(Type::Array) };
        let mut owner = of(Type::Object);
        owner.map_atomic = true;
        for name in ["apiVersion", "kind", "name", "uid"] {
            owner.properties.insert(name.into(), text());
        }
        for name in ["blockOwnerDeletion", "controller"] {
            owner.properties.insert(name.into(), of(Type::Boolean));
        }
        let mut owners = list(ListType::Map, owner);
        owners.list_map_keys = vec!["uid".into()];
        let mut meta = of(Type::Object);
        for name in ["name", "namespace", "generateName", "uid", "resourceVersion", "selfLink", "clusterName"] {
            meta.properties.insert(name.into(), text());
        }
        for name in ["creationTimestamp", "deletionTimestamp"] {
            meta.properties.insert(name.into(), of(Type::Any));
        }
        for name in ["generation", "deletionGracePeriodSeconds"] {
            meta.properties.insert(name.into(), of(Type::Integer));
        }
        meta.properties.insert("labels".into(), map());
        meta.properties.insert("annotations".into(), map());
        meta.properties.insert("finalizers".into(), list(ListType::Set, text()));
        meta.properties.insert("managedFields".into(), list(ListType::Atomic, of(Type::Any)));
        meta.properties.insert("ownerReferences".into(), owners);
        meta
    });
    Kind::below(Typed::new(types, schema), false)
}
