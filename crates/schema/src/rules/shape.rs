//! What an expression yields, as far as it can be told before there is a value.

use std::fmt;

use super::escape::escape;
use crate::{Schema, Type};

/// The type of an expression; [`Shape::Dyn`] when only a value will tell.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape<'a> {
    Dyn,
    Null,
    Bool,
    Int,
    UInt,
    Double,
    Text,
    Bytes,
    Time,
    Span,
    Type,
    List(Box<Shape<'a>>),
    Map(Box<Shape<'a>>),
    Object(&'a Schema, bool),
    /// apiVersion, kind and name of an object, which expressions always see.
    Metadata,
}

impl<'a> Shape<'a> {
    /// The shape of values of a schema, or `None` when expressions cannot see them.
    pub(crate) fn of(schema: &'a Schema, resource: bool) -> Option<Self> {
        if schema.int_or_string {
            return Some(Self::Dyn);
        }
        Some(match schema.ty {
            Type::Any => return None,
            Type::Boolean => Self::Bool,
            Type::Integer => Self::Int,
            Type::Number => Self::Double,
            Type::String => match &*schema.format {
                "byte" => Self::Bytes,
                "duration" => Self::Span,
                "date" | "date-time" => Self::Time,
                _ => Self::Text,
            },
            Type::Array => {
                let items = schema.items.as_deref()?;
                Self::List(Box::new(Self::of(items, items.embedded_resource)?))
            }
            Type::Object => match schema.additional.as_deref() {
                Some(values) => Self::Map(Box::new(Self::of(values, values.embedded_resource)?)),
                None => Self::Object(schema, resource),
            },
        })
    }

    /// The shape of a field named as in an expression, or `None` if there is none.
    pub(crate) fn field(&self, name: &str) -> Option<Self> {
        match self {
            Self::Dyn => Some(Self::Dyn),
            Self::Map(values) => Some((**values).clone()),
            Self::Metadata => matches!(name, "name" | "generateName").then_some(Self::Text),
            Self::Object(schema, resource) => {
                match name {
                    "apiVersion" | "kind" if *resource => return Some(Self::Text),
                    "metadata" if *resource => return Some(Self::Metadata),
                    _ => {}
                }
                let direct = schema.properties.get(name).filter(|_| escape(name).as_deref() == Some(name));
                let property = direct.or_else(|| {
                    schema
                        .properties
                        .iter()
                        .find(|(own, _)| escape(own).as_deref() == Some(name))
                        .map(|(_, schema)| schema)
                })?;
                Self::of(property, property.embedded_resource)
            }
            _ => None,
        }
    }

    /// Whether fields can be asked for at all.
    pub(crate) fn has_fields(&self) -> bool {
        matches!(self, Self::Dyn | Self::Map(_) | Self::Object(..) | Self::Metadata)
    }

    pub(crate) fn is_number(&self) -> bool {
        matches!(self, Self::Int | Self::UInt | Self::Double)
    }

    /// Whether a value could be of both shapes.
    pub(crate) fn agrees(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Dyn, _) | (_, Self::Dyn) => true,
            (Self::Null, other) | (other, Self::Null) => {
                matches!(other, Self::Null | Self::Object(..) | Self::Metadata | Self::Time | Self::Span)
            }
            (Self::List(one), Self::List(other)) | (Self::Map(one), Self::Map(other)) => one.agrees(other),
            (Self::Map(_) | Self::Object(..) | Self::Metadata, Self::Map(_) | Self::Object(..) | Self::Metadata) => {
                true
            }
            _ => self == other,
        }
    }
}

impl fmt::Display for Shape<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dyn => "dyn",
            Self::Null => "null",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::UInt => "uint",
            Self::Double => "double",
            Self::Text => "string",
            Self::Bytes => "bytes",
            Self::Time => "timestamp",
            Self::Span => "duration",
            Self::Type => "type",
            Self::Object(..) | Self::Metadata => "object",
            Self::List(items) => return write!(f, "list({items})"),
            Self::Map(values) => return write!(f, "map(string, {values})"),
        })
    }
}
