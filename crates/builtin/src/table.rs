//! Reads the generated table. Its format is described where it is written (`xtask/src/tables`).

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use atoll_schema::{ListType, PatchStrategy, Schema, Type, Types};
use serde_json::Value;

use crate::kinds::{GroupInfo, KindInfo, SubInfo};

/// The table itself.
static TEXT: &str = include_str!("../data/kubernetes.table");

/// How the original holds a field, which decides what its JSON and protobuf forms leave out.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Presence {
    /// Held by pointer: zero and absent are different values.
    pub(crate) pointer: bool,
    /// A struct held by value: written out even when empty.
    pub(crate) by_value: bool,
    /// Left out of JSON when zero (`omitempty`).
    pub(crate) omit_empty: bool,
    /// Left out of JSON when zero, structs too (`omitzero`).
    pub(crate) omit_zero: bool,
    /// Whether anything is known; not so for messages that only the .proto files have.
    pub(crate) known: bool,
}

/// One field of a type, as the wire sees it.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    /// JSON name; empty for a message whose fields stand in the parent's object.
    pub(crate) name: &'static str,
    /// Protobuf number, if the field is in the message.
    pub(crate) number: Option<u32>,
    /// Shape, with references.
    pub(crate) shape: Shape,
    /// What is left out.
    pub(crate) presence: Presence,
    /// Whether the innermost list travels in a message of its own.
    pub(crate) boxed: bool,
    /// Whether OpenAPI requires it.
    pub(crate) required: bool,
    /// Declared as merged field by field, whatever its type says.
    pub(crate) granular: bool,
}

/// The shape of a field.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    Any,
    Object,
    String,
    Bytes,
    Int32,
    Int64,
    Double,
    Bool,
    Named(Arc<str>),
    List(Box<Shape>),
    Map(Box<Shape>),
}

/// What a type has besides its schema.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extra {
    /// Kinds that have this type.
    pub(crate) gvks: Vec<[&'static str; 3]>,
    /// `x-kubernetes-unions`.
    pub(crate) unions: Option<Value>,
    /// Fields in the table's order.
    pub(crate) fields: Vec<Field>,
}

/// Schemas and wire facts of all named types.
pub(crate) struct TypeTable {
    pub(crate) types: Types,
    pub(crate) extras: HashMap<Arc<str>, Extra>,
}

/// The type table, read on first use.
pub(crate) fn types() -> &'static TypeTable {
    static TYPES: LazyLock<TypeTable> = LazyLock::new(|| Reader::new().read_types());
    &TYPES
}

/// Groups and kinds, without storage versions.
pub(crate) fn served() -> (Vec<GroupInfo>, Vec<KindInfo>) {
    let mut reader = Reader::new();
    let (mut groups, mut kinds): (Vec<GroupInfo>, Vec<KindInfo>) = Default::default();
    for line in TEXT.lines() {
        let words: Vec<&'static str> = line.split(' ').collect();
        match words.as_slice() {
            ["group", name, versions @ ..] => {
                groups.push(GroupInfo {
                    name: undash(name),
                    versions: versions.iter().map(ToString::to_string).collect(),
                });
            }
            ["kind", rest @ ..] => kinds.push(kind(rest, &mut reader)),
            ["sub", name, group, version, kind, verbs] => {
                let parent = kinds.last_mut().expect("a sub line follows its kind");
                parent.subresources.push(SubInfo {
                    name,
                    verbs: list(verbs),
                    group: undash(group),
                    version,
                    kind,
                    namespaced: parent.namespaced,
                    accepted: Vec::new(),
                });
            }
            ["type", ..] => break,
            _ => {}
        }
    }
    (groups, kinds)
}

fn kind(words: &[&'static str], reader: &mut Reader) -> KindInfo {
    let &[group, version, kind, list_kind, plural, singular, scope, short, categories, verbs, ty, hash] = words else {
        unreachable!("a kind line of the generated table has twelve words: {words:?}")
    };
    KindInfo {
        group: undash(group),
        version,
        kind,
        list_kind: undash(list_kind),
        plural,
        singular: undash(singular),
        short_names: list(short),
        categories: list(categories),
        namespaced: scope == "ns",
        verbs: list(verbs),
        subresources: Vec::new(),
        type_name: reader.full_name(ty).to_string(),
        storage_version_hash: Some(undash(hash)).filter(|hash| !hash.is_empty()),
        storage: false,
    }
}

fn undash(word: &'static str) -> &'static str {
    if word == "-" { "" } else { word }
}

fn list(word: &'static str) -> Vec<&'static str> {
    if word == "-" { Vec::new() } else { word.split(',').collect() }
}

/// Reading state: package names and type names seen so far.
struct Reader {
    packages: HashMap<&'static str, &'static str>,
    names: HashMap<&'static str, Arc<str>>,
}

/// A type under construction.
struct Draft {
    name: Arc<str>,
    schema: Schema,
    extra: Extra,
}

impl Reader {
    fn new() -> Self {
        let packages = TEXT.lines().skip(1).map_while(|line| line.strip_prefix("pkg ")?.split_once(' ')).collect();
        Self { packages, names: HashMap::new() }
    }

    /// The full name of `@3.Pod`.
    fn full_name(&mut self, short: &'static str) -> Arc<str> {
        if let Some(name) = self.names.get(short) {
            return name.clone();
        }
        let (number, kind) =
            short.trim_start_matches('@').split_once('.').expect("type words are written as @package.Name");
        let name: Arc<str> = format!("{}.{kind}", self.packages[number]).into();
        self.names.insert(short, name.clone());
        name
    }

    fn read_types(&mut self) -> TypeTable {
        let (mut schemas, mut extras) = (Vec::new(), HashMap::new());
        let mut draft: Option<Draft> = None;
        let mut finish = |draft: Option<Draft>| {
            if let Some(Draft { name, schema, extra }) = draft {
                schemas.push((name.clone(), schema));
                extras.insert(name, extra);
            }
        };
        for line in TEXT.lines() {
            let mut words = line.split(' ');
            match words.next() {
                Some("type") => finish(draft.replace(self.read_type(words))),
                Some("f") => self.read_field(words, draft.as_mut().expect("a field follows its type")),
                Some("i") => {
                    let inline = self.read_inline(words);
                    draft.as_mut().expect("an inlined message follows its type").extra.fields.push(inline);
                }
                _ => {}
            }
        }
        finish(draft);
        TypeTable { types: Types::new(schemas), extras }
    }

    fn read_type(&mut self, mut words: std::str::Split<'static, char>) -> Draft {
        let name = self.full_name(words.next().unwrap_or_default());
        let mut schema = match words.next().unwrap_or_default() {
            "special" => special(&name),
            _ => Schema { ty: Type::Object, preserve_unknown: name.ends_with(".meta.v1.Patch"), ..Schema::default() },
        };
        let mut extra = Extra::default();
        for word in words {
            match word.split_once('=') {
                Some(("map", "atomic")) => schema.map_atomic = true,
                Some(("gvk", gvk)) => {
                    let mut parts = gvk.splitn(3, '/');
                    extra.gvks.push(std::array::from_fn(|_| parts.next().unwrap_or_default()));
                }
                Some(("required", names)) => schema.required = names.split(',').map(Into::into).collect(),
                Some(("unions", json)) => extra.unions = serde_json::from_str(json).ok(),
                _ => {}
            }
        }
        Draft { name, schema, extra }
    }

    fn read_inline(&mut self, mut words: std::str::Split<'static, char>) -> Field {
        let name = self.full_name(words.next().unwrap_or_default());
        let number = words.next().and_then(|word| word.strip_prefix('#')).and_then(|word| word.parse().ok());
        Field {
            name: "",
            number,
            shape: Shape::Named(name),
            presence: Presence::default(),
            boxed: false,
            required: false,
            granular: false,
        }
    }

    fn read_field(&mut self, mut words: std::str::Split<'static, char>, draft: &mut Draft) {
        let name = words.next().unwrap_or_default();
        let (shape, mut schema) = self.read_shape(words.next().unwrap_or_default());
        let presence = presence(words.next().unwrap_or_default());
        let required = draft.schema.required.iter().any(|required| **required == *name);
        let mut field = Field { name, number: None, shape, presence, boxed: false, required, granular: false };
        for word in words {
            match word {
                "boxed" => field.boxed = true,
                "map=granular" => field.granular = true,
                _ => match (word.strip_prefix('#'), word.split_once('=')) {
                    (Some(number), _) => field.number = number.parse().ok(),
                    (_, Some((key, value))) => attribute(&mut schema, key, value),
                    _ => {}
                },
            }
        }
        draft.schema.properties.insert(name.into(), schema);
        draft.extra.fields.push(field);
    }

    fn read_shape(&mut self, word: &'static str) -> (Shape, Schema) {
        if let Some(rest) = word.strip_prefix("[]") {
            let (shape, items) = self.read_shape(rest);
            let schema = Schema { ty: Type::Array, items: Some(Box::new(items)), ..Schema::default() };
            return (Shape::List(Box::new(shape)), schema);
        }
        if let Some(rest) = word.strip_prefix("{}") {
            let (shape, values) = self.read_shape(rest);
            let schema = Schema { ty: Type::Object, additional: Some(Box::new(values)), ..Schema::default() };
            return (Shape::Map(Box::new(shape)), schema);
        }
        let (word, zero) = word.strip_suffix('~').map_or((word, false), |word| (word, true));
        let (shape, ty, format, default) = match word {
            "string" => (Shape::String, Type::String, "", Value::from("")),
            "byte" => (Shape::Bytes, Type::String, "byte", Value::from("")),
            "int32" => (Shape::Int32, Type::Integer, "int32", Value::from(0)),
            "int64" => (Shape::Int64, Type::Integer, "int64", Value::from(0)),
            "double" => (Shape::Double, Type::Number, "double", Value::from(0)),
            "bool" => (Shape::Bool, Type::Boolean, "", Value::from(false)),
            "object" => (Shape::Object, Type::Object, "", Value::Object(Default::default())),
            "any" => (Shape::Any, Type::Any, "", Value::Null),
            _ => return self.read_reference(word, zero),
        };
        (shape, Schema { ty, format: format.into(), default: zero.then_some(default), ..Schema::default() })
    }

    fn read_reference(&mut self, word: &'static str, zero: bool) -> (Shape, Schema) {
        let name = self.full_name(word);
        let default = zero.then(|| Value::Object(Default::default()));
        (Shape::Named(name.clone()), Schema { reference: Some(name), default, ..Schema::default() })
    }
}

fn presence(word: &str) -> Presence {
    Presence {
        pointer: word.contains('p'),
        by_value: word.contains('v'),
        // Nothing is known about messages that only the .proto files have: leave out what is empty.
        omit_empty: word.contains('o') || word == "-",
        omit_zero: word.contains('z'),
        known: word != "-",
    }
}

fn attribute(schema: &mut Schema, key: &str, value: &str) {
    match key {
        "list" => {
            schema.list_type = Some(match value {
                "map" => ListType::Map,
                "set" => ListType::Set,
                _ => ListType::Atomic,
            });
        }
        "keys" => schema.list_map_keys = value.split(',').map(Into::into).collect(),
        "merge" => schema.patch_merge_key = Some(value.into()),
        "map" => schema.map_atomic = value == "atomic",
        "patch" => {
            let has = |word: &str| value.split(',').any(|strategy| strategy == word);
            schema.patch_strategy =
                PatchStrategy { merge: has("merge"), replace: has("replace"), retain_keys: has("retainKeys") };
        }
        "default" => schema.default = serde_json::from_str(value).ok(),
        _ => {}
    }
}

/// Schemas of the types whose JSON form is not that of their fields.
fn special(name: &str) -> Schema {
    let base = Schema::default();
    match name.rsplit('.').next().unwrap_or_default() {
        "Quantity" | "QuantityValue" => Schema { format: "quantity".into(), ..base },
        "IntOrString" => Schema { format: "int-or-string".into(), int_or_string: true, ..base },
        "Time" => Schema { ty: Type::String, format: "date-time".into(), nullable: true, ..base },
        "MicroTime" => Schema { ty: Type::String, format: "micro-time".into(), nullable: true, ..base },
        "RawExtension" | "FieldsV1" => Schema { ty: Type::Object, preserve_unknown: true, ..base },
        _ => Schema { preserve_unknown: true, ..base },
    }
}
