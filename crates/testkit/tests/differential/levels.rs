//! What Atoll does with objects of each built-in kind, found by trying.

use std::collections::BTreeMap;

use atoll_builtin::strategy::{self, Context};
use atoll_builtin::{KindInfo, kinds, schema_of, storage_kind, types};
use atoll_schema::{Schema, Type};
use serde_json::{Map, Value, json};

/// Deep enough to reach the containers of a CronJob.
const DEPTH: usize = 10;

/// An object of this schema in which every value is odd.
fn odd(schema: &Schema, depth: usize) -> Value {
    if let Some(known) = schema.reference.as_ref().and_then(|name| types().get(name)) {
        return odd(known, depth);
    }
    if depth == 0 {
        return Value::Null;
    }
    match schema.ty {
        Type::Object => {
            let fields = schema.properties.iter().map(|(name, own)| (name.to_string(), odd(own, depth - 1)));
            let mut map: Map<String, Value> = fields.filter(|(_, value)| !value.is_null()).collect();
            if let Some(values) = &schema.additional {
                map.insert("an odd key!".into(), odd(values, depth - 1));
            }
            map.into()
        }
        Type::Array => schema.items.as_ref().map_or(Value::Null, |own| json!([odd(own, depth - 1)])),
        Type::String => "an odd value!".into(),
        Type::Integer | Type::Number => (-7).into(),
        Type::Boolean => true.into(),
        Type::Any => Value::Null,
    }
}

/// Whether anything beside the status is filled in.
fn defaults(ctx: &Context<'_>, info: &KindInfo) -> bool {
    let empty = |value: &Value| value.is_null() || value.as_object().is_some_and(Map::is_empty);
    let given = json!({"apiVersion": info.api_version(), "kind": info.kind, "metadata": {"name": "a"}, "spec": {}});
    let mut object = given.clone();
    strategy::default(ctx, &mut object);
    let map = object.as_object().unwrap();
    map.iter().any(|(key, value)| key != "status" && !empty(value) && given.get(key) != Some(value))
}

/// Whether an object full of odd values is refused for more than its metadata.
fn validates(ctx: &Context<'_>, info: &KindInfo) -> bool {
    let mut object = odd(schema_of(info), DEPTH);
    object["metadata"] = json!({"name": "a"});
    strategy::default(ctx, &mut object);
    !strategy::validate_create(ctx, &object).is_empty()
}

/// A table of what happens to objects of each kind, by group.
pub fn table() -> String {
    let mut rows: BTreeMap<(&str, &str), (Vec<&str>, &str)> = BTreeMap::new();
    for info in kinds().iter().filter(|info| info.verbs.contains(&"create") && !info.list_kind.is_empty()) {
        let stored = storage_kind(info);
        let ctx = Context { group: stored.group, version: stored.version, kind: stored.kind, now: "" };
        // The API server itself looks at definitions.
        let definition = info.kind == "CustomResourceDefinition";
        let level = match (defaults(&ctx, stored), definition || validates(&ctx, stored)) {
            (_, true) => "validated",
            (true, false) => "defaulted",
            (false, false) => "stored",
        };
        rows.entry((info.group, info.kind)).or_insert((Vec::new(), level)).0.push(info.version);
    }
    let mut out = String::from("| group | kind | versions | level |\n| --- | --- | --- | --- |\n");
    for ((group, kind), (versions, level)) in rows {
        let group = if group.is_empty() { "core" } else { group };
        out.push_str(&format!("| {group} | {kind} | {} | {level} |\n", versions.join(", ")));
    }
    out
}
