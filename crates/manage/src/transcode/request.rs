//! From path, query and body to the message of a method.

use atoll_meta::Status;
use prost_reflect::{DeserializeOptions, DynamicMessage, FieldDescriptor, Kind, MessageDescriptor};
use serde_json::{Map, Value};

use super::route::Found;
use super::template::decode;

/// The message a REST request stands for.
pub fn message(found: &Found<'_>, query: Option<&str>, body: &[u8]) -> Result<DynamicMessage, Status> {
    let input = found.route.method.input();
    let mut tree = Map::new();
    if !found.route.body.is_empty() && !body.iter().all(u8::is_ascii_whitespace) {
        let value: Value =
            serde_json::from_slice(body).map_err(|error| Status::bad_request(format!("body: {error}")))?;
        match (found.route.body.as_str(), value) {
            ("*", Value::Object(map)) => tree = map,
            ("*", _) => return Err(Status::bad_request("body: not a JSON object")),
            (field, value) => {
                let field = field_named(&input, field).ok_or_else(|| Status::internal(format!("no field {field}")))?;
                tree.insert(field.json_name().to_owned(), value);
            }
        }
    }
    if found.route.body != "*" {
        for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let plus = |text: &str| {
                decode(&text.replace('+', " "))
                    .ok_or_else(|| Status::bad_request(format!("query: cannot decode {text:?}")))
            };
            set(&mut tree, &input, &plus(key)?, &plus(value)?)?;
        }
    }
    for (field, value) in &found.variables {
        set(&mut tree, &input, field, value)?;
    }
    from_tree(input, &Value::Object(tree))
}

/// A message from JSON; fields nobody knows are passed over.
pub fn from_tree(descriptor: MessageDescriptor, tree: &Value) -> Result<DynamicMessage, Status> {
    let options = DeserializeOptions::new().deny_unknown_fields(false);
    DynamicMessage::deserialize_with_options(descriptor, tree, &options)
        .map_err(|error| Status::bad_request(error.to_string()))
}

/// A field by the name in JSON or in the proto file.
pub fn field_named(message: &MessageDescriptor, name: &str) -> Option<FieldDescriptor> {
    message.get_field_by_json_name(name).or_else(|| message.get_field_by_name(name))
}

/// Puts a text where a dotted path points; parameters that are no fields are passed over.
fn set(tree: &mut Map<String, Value>, message: &MessageDescriptor, path: &str, text: &str) -> Result<(), Status> {
    let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
    let Some(field) = field_named(message, name) else { return Ok(()) };
    let key = field.json_name().to_owned();
    if let Some(rest) = rest {
        let Kind::Message(inner) = field.kind() else { return Ok(()) };
        if field.is_map() {
            // `labels.key=value`, as far as values are scalars.
            let value = scalar(&inner.map_entry_value_field(), text)?;
            object(tree, key).insert(rest.to_owned(), value);
            return Ok(());
        }
        return set(object(tree, key), &inner, rest, text);
    }
    if matches!(field.kind(), Kind::Message(_)) {
        return Ok(());
    }
    let value = scalar(&field, text)?;
    if field.is_list() {
        match tree.entry(key).or_insert_with(|| Value::Array(Vec::new())) {
            Value::Array(list) => list.push(value),
            other => *other = Value::Array(vec![value]),
        }
    } else {
        tree.insert(key, value);
    }
    Ok(())
}

fn object(tree: &mut Map<String, Value>, key: String) -> &mut Map<String, Value> {
    let slot = tree.entry(key).or_insert_with(|| Value::Object(Map::new()));
    if !slot.is_object() {
        *slot = Value::Object(Map::new());
    }
    slot.as_object_mut().expect("it was made an object just now")
}

/// A text as the JSON of a field.
fn scalar(field: &FieldDescriptor, text: &str) -> Result<Value, Status> {
    let wrong = || Status::bad_request(format!("{}: cannot understand {text:?}", field.json_name()));
    Ok(match field.kind() {
        Kind::Bool => match text {
            "true" | "1" | "" => true.into(),
            "false" | "0" => false.into(),
            _ => return Err(wrong()),
        },
        Kind::Enum(words) => match text.parse::<i32>() {
            Ok(number) => number.into(),
            Err(_) if text.is_empty() => 0.into(),
            Err(_) => words.get_value_by_name(text).map(|word| Value::from(word.name())).ok_or_else(wrong)?,
        },
        Kind::Int32 | Kind::Int64 | Kind::Uint32 | Kind::Uint64 if text.is_empty() => 0.into(),
        _ => text.into(),
    })
}
