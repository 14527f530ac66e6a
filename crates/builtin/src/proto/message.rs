//! Messages: the table's types with references turned into indexes and special types named.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use crate::table::{self, Field, Presence, Shape};

/// Index of a message.
pub(crate) type MessageId = usize;

/// Types whose JSON form is not that of their message.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) enum Special {
    Time,
    MicroTime,
    Quantity,
    IntOrString,
    /// JSON text, or an enveloped object.
    RawExtension,
    /// JSON text in field 1.
    Json,
    SchemaOrBool,
    SchemaOrArray,
    SchemaOrStrings,
}

/// What one value is.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    String,
    Bytes,
    Int32,
    Int64,
    Double,
    Bool,
    Message(MessageId),
    Special(Special),
    /// A list of strings in a message of its own.
    BoxedStrings,
}

/// How many values.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) enum Count {
    One,
    List,
    Map,
}

/// One field of a message.
#[derive(Clone, Debug)]
pub(crate) struct WireField {
    pub(crate) number: u32,
    /// JSON name; empty when the message's fields stand in the parent's object.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) count: Count,
    pub(crate) presence: Presence,
}

/// One message; fields are in the order of their numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message {
    pub(crate) fields: Vec<WireField>,
}

impl Message {
    /// The field of that number.
    pub(crate) fn field(&self, number: u32) -> Option<&WireField> {
        self.fields.binary_search_by_key(&number, |field| field.number).ok().map(|at| &self.fields[at])
    }
}

/// All messages.
pub(crate) struct Messages {
    all: Vec<Message>,
    by_name: HashMap<Arc<str>, MessageId>,
    /// Package of the types of a group-version.
    packages: HashMap<(&'static str, &'static str), Arc<str>>,
}

/// The package of types that belong to every group.
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
/// Kinds of [`META`] that are registered in every group-version.
const SHARED: [&str; 10] = [
    "CreateOptions",
    "DeleteOptions",
    "GetOptions",
    "ListOptions",
    "PatchOptions",
    "UpdateOptions",
    "WatchEvent",
    "Status",
    "PartialObjectMetadata",
    "PartialObjectMetadataList",
];

impl Messages {
    /// The messages of the table, built on first use.
    pub(crate) fn get() -> &'static Self {
        static MESSAGES: LazyLock<Messages> = LazyLock::new(Messages::build);
        &MESSAGES
    }

    /// A message by index.
    pub(crate) fn message(&self, id: MessageId) -> &Message {
        &self.all[id]
    }

    /// A message by the name of its type.
    pub(crate) fn by_name(&self, name: &str) -> Option<MessageId> {
        self.by_name.get(name).copied()
    }

    /// The type name of a kind.
    pub(crate) fn type_of(&self, group: &str, version: &str, kind: &str) -> Option<&Arc<str>> {
        let name = if SHARED.contains(&kind) || group == "meta.k8s.io" || (group, kind) == ("", "List") {
            format!("{META}.{kind}")
        } else {
            format!("{}.{kind}", self.packages.get(&(group, version))?)
        };
        let (name, id) = self.by_name.get_key_value(name.as_str())?;
        (!self.all[*id].fields.is_empty()).then_some(name)
    }

    fn build() -> Self {
        let table = table::types();
        let by_name: HashMap<Arc<str>, MessageId> =
            table.extras.keys().cloned().enumerate().map(|(id, name)| (name, id)).collect();
        let mut all = vec![Message::default(); by_name.len()];
        for (name, id) in &by_name {
            let mut fields: Vec<WireField> =
                table.extras[name].fields.iter().filter_map(|field| wire_field(field, &by_name)).collect();
            fields.sort_by_key(|field| field.number);
            all[*id] = Message { fields };
        }
        let mut packages = HashMap::new();
        for (name, extra) in &table.extras {
            // A type of one kind only lies in the package of its group-version, except for the
            // discovery types, which call themselves `v1`.
            if let ([[group, version, _]], Some((package, _))) = (extra.gvks.as_slice(), name.rsplit_once('.'))
                && package != META
            {
                packages.insert((*group, *version), Arc::from(package));
            }
        }
        Self { all, by_name, packages }
    }
}

fn wire_field(field: &Field, ids: &HashMap<Arc<str>, MessageId>) -> Option<WireField> {
    let number = field.number?;
    let (count, element) = match &field.shape {
        Shape::List(_) if field.boxed => (Count::One, &Shape::Any),
        Shape::Map(_) if field.boxed => (Count::Map, &Shape::Any),
        Shape::List(element) => (Count::List, element.as_ref()),
        Shape::Map(element) => (Count::Map, element.as_ref()),
        shape => (Count::One, shape),
    };
    let kind = match element {
        Shape::String => Kind::String,
        Shape::Bytes => Kind::Bytes,
        Shape::Int32 => Kind::Int32,
        Shape::Int64 => Kind::Int64,
        Shape::Double => Kind::Double,
        Shape::Bool => Kind::Bool,
        Shape::Named(name) => special(name).map_or_else(|| Kind::Message(ids[name]), Kind::Special),
        Shape::Any => Kind::BoxedStrings,
        // Lists of lists and free objects have no protobuf form.
        Shape::Object | Shape::List(_) | Shape::Map(_) => return None,
    };
    Some(WireField { number, name: field.name, kind, count, presence: field.presence })
}

/// The special type of that name.
pub(crate) fn special(name: &str) -> Option<Special> {
    Some(match name.strip_prefix("io.k8s.")? {
        "apimachinery.pkg.apis.meta.v1.Time" => Special::Time,
        "apimachinery.pkg.apis.meta.v1.MicroTime" => Special::MicroTime,
        "apimachinery.pkg.api.resource.Quantity" => Special::Quantity,
        "apimachinery.pkg.util.intstr.IntOrString" => Special::IntOrString,
        "apimachinery.pkg.runtime.RawExtension" => Special::RawExtension,
        "apimachinery.pkg.apis.meta.v1.FieldsV1" => Special::Json,
        rest => match rest.strip_prefix("apiextensions-apiserver.pkg.apis.apiextensions.v1.")? {
            "JSON" => Special::Json,
            "JSONSchemaPropsOrBool" => Special::SchemaOrBool,
            "JSONSchemaPropsOrArray" => Special::SchemaOrArray,
            "JSONSchemaPropsOrStringArray" => Special::SchemaOrStrings,
            _ => return None,
        },
    })
}
