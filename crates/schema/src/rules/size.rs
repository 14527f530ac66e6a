//! How large values can be: what a schema allows, or what fits into a request.

use crate::{Schema, Type};

/// The largest request.
const REQUEST: u64 = 3 * 1024 * 1024;
/// The longest texts of some formats, with quotes.
const DATE: u64 = 12;
const TIME: u64 = 37;
const SPAN: u64 = 32;

/// How many elements, entries or bytes a value can have; 0 for what has no size.
pub(crate) fn most(schema: &Schema) -> u64 {
    if schema.int_or_string {
        return REQUEST - 2;
    }
    let limits = schema.limits.as_deref();
    match schema.ty {
        Type::Array => limits.and_then(|limits| limits.max_items).unwrap_or_else(|| {
            let least = schema.items.as_deref().map_or(1, least);
            (REQUEST - 2) / (least + 1)
        }),
        Type::Object => match schema.additional.as_deref() {
            Some(values) => limits
                .and_then(|limits| limits.max_properties)
                // With a comma, a colon and the quotes of a key.
                .unwrap_or_else(|| (REQUEST - 2) / (least(values) + 6)),
            None => 0,
        },
        Type::String => text(schema),
        Type::Any | Type::Integer | Type::Number | Type::Boolean => 0,
    }
}

fn text(schema: &Schema) -> u64 {
    let limits = schema.limits.as_deref();
    let said = limits.and_then(|limits| limits.max_length);
    match &*schema.format {
        "byte" => said.unwrap_or(REQUEST - 2),
        "date" => DATE,
        "date-time" => TIME,
        "duration" => SPAN,
        _ => match (said, limits.map(|limits| limits.enumeration.as_slice())) {
            // Lengths are said in characters; one has up to four bytes.
            (Some(said), _) => said.saturating_mul(4),
            (None, Some(list)) if !list.is_empty() => {
                list.iter().filter_map(|one| one.as_str()).map(|one| one.len() as u64).max().unwrap_or_default()
            }
            _ => REQUEST - 2,
        },
    }
}

/// The fewest bytes a value takes in a request.
fn least(schema: &Schema) -> u64 {
    if schema.int_or_string {
        return 1;
    }
    match schema.ty {
        Type::Boolean => 4,
        Type::Integer | Type::Number | Type::Any => 1,
        Type::Array => 2,
        Type::String => match &*schema.format {
            "date" => DATE,
            "date-time" => 22,
            "duration" => 4,
            _ => 2,
        },
        Type::Object if schema.additional.is_some() => 2,
        Type::Object => {
            let required = schema.required.iter().filter_map(|name| Some((name, schema.properties.get(name)?)));
            let must = required.filter(|(_, property)| property.default.is_none());
            2 + must.map(|(name, property)| name.len() as u64 + least(property) + 4).sum::<u64>()
        }
    }
}

/// How many values of a schema one request can hold.
pub(crate) fn in_a_request(schema: &Schema) -> u64 {
    REQUEST / (least(schema) + 1)
}

/// How many children a value can have for each time it occurs; `None` if the schema sets no bound.
pub(crate) fn children(schema: &Schema) -> Option<u64> {
    let limits = schema.limits.as_deref();
    match schema.ty {
        Type::Array => limits?.max_items,
        Type::Object if schema.additional.is_some() => limits?.max_properties,
        _ => Some(1),
    }
}
