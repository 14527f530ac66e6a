//! JSON parsing that notices duplicate keys.
//!
//! The depth limit is the parser's own (128 levels): stored objects are read back with the
//! same limit, so nothing deeper may be let in.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::trail::Trail;

/// Parses one JSON document; the last of several equal keys wins, and the paths of all
/// keys that occur more than once are returned with the value.
pub fn parse_strict(bytes: &[u8]) -> Result<(Value, Vec<String>), serde_json::Error> {
    let mut duplicates = Vec::new();
    let mut parser = serde_json::Deserializer::from_slice(bytes);
    let value = Node { trail: &Trail::Start(""), duplicates: &mut duplicates }.deserialize(&mut parser)?;
    parser.end()?;
    Ok((value, duplicates))
}

/// Writes numbers without a fraction as whole numbers, as the original does for custom
/// resources: `1.0` and `1e3` become `1` and `1000`.
pub fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().unwrap_or(0.5);
            // Whole numbers up to 2^53 are exact in both forms.
            if float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_992.0 {
                *number = Number::from(float as i64);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(map) => map.values_mut().for_each(whole_numbers),
        _ => {}
    }
}

/// Sorts complaints such as `unknown field "a.b"` and `duplicate field "a.b"` by where the JSON text
/// gives rise to them. What is repeated inside an unknown field was never looked at and goes.
pub fn in_order_of(bytes: &[u8], complaints: &mut Vec<String>) {
    let mut keys = Vec::new();
    let mut parser = serde_json::Deserializer::from_slice(bytes);
    // Text that does not parse has no order; it was refused before.
    let _ = Keys { trail: &Trail::Start(""), keys: &mut keys }.deserialize(&mut parser);
    let path = |complaint: &str| complaint.split('"').nth(1).unwrap_or_default().to_owned();
    let unknown: Vec<String> =
        complaints.iter().filter(|own| own.starts_with("unknown")).map(|own| path(own)).collect();
    complaints.retain(|own| {
        let path = path(own);
        !unknown.iter().any(|above| path.strip_prefix(above).is_some_and(|rest| rest.starts_with(['.', '['])))
    });
    complaints.sort_by_cached_key(|own| {
        let path = path(own);
        let nth = usize::from(own.starts_with("duplicate"));
        keys.iter().enumerate().filter(|(_, key)| **key == path).nth(nth).map_or(usize::MAX, |(at, _)| at)
    });
}

/// Notes the path of every key in the order of the text.
struct Keys<'a> {
    trail: &'a Trail<'a>,
    keys: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Keys<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Keys<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        for at in 0.. {
            let trail = Trail::Index(self.trail, at);
            if access.next_element_seed(Keys { trail: &trail, keys: self.keys })?.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        while let Some(key) = access.next_key::<String>()? {
            let trail = Trail::Field(self.trail, &key);
            self.keys.push(trail.dotted());
            access.next_value_seed(Keys { trail: &trail, keys: self.keys })?;
        }
        Ok(())
    }
}

struct Node<'a> {
    trail: &'a Trail<'a>,
    duplicates: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        loop {
            let trail = Trail::Index(self.trail, items.len());
            match access.next_element_seed(Node { trail: &trail, duplicates: self.duplicates })? {
                Some(item) => items.push(item),
                None => return Ok(Value::Array(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            let trail = Trail::Field(self.trail, &key);
            if map.contains_key(&key) {
                let path = trail.dotted();
                if !self.duplicates.contains(&path) {
                    self.duplicates.push(path);
                }
            }
            let value = access.next_value_seed(Node { trail: &trail, duplicates: self.duplicates })?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn duplicate_keys_are_named_by_path_and_the_last_wins() {
        let text = br#"{"a":1,"b":{"c":1,"c":2,"c":3},"l":[{"x":1},{"y":1,"y":2}],"a":"two"}"#;
        let (value, duplicates) = parse_strict(text).unwrap();
        assert_eq!(value, json!({"a": "two", "b": {"c": 3}, "l": [{"x": 1}, {"y": 2}]}));
        assert_eq!(duplicates, ["b.c", "l[1].y", "a"]);
    }

    #[test]
    fn complaints_follow_the_text() {
        let text = br#"{"z":{"u":{"k":1,"k":2},"r":1,"r":2},"a":[{"u":1}]}"#;
        let mut complaints: Vec<String> = [
            "duplicate field \"z.u.k\"",
            "duplicate field \"z.r\"",
            "unknown field \"a[0].u\"",
            "unknown field \"z.u\"",
        ]
        .map(str::to_owned)
        .into();
        in_order_of(text, &mut complaints);
        assert_eq!(complaints, ["unknown field \"z.u\"", "duplicate field \"z.r\"", "unknown field \"a[0].u\""]);
    }

    #[test]
    fn text_behind_the_document_and_deep_nesting_are_refused() {
        assert!(parse_strict(b"{} {}").is_err());
        assert!(parse_strict(b"").is_err());
        let deep = "[".repeat(100_000);
        assert!(parse_strict(deep.as_bytes()).unwrap_err().to_string().contains("recursion limit"));
        assert!(parse_strict(b"1e999").is_err());
    }

    #[test]
    fn numbers_keep_their_kind_until_asked_otherwise() {
        let (mut value, _) = parse_strict(b"[1, -1, 18446744073709551615, 1.0, 1.5, 1e3]").unwrap();
        assert_eq!(value.to_string(), "[1,-1,18446744073709551615,1.0,1.5,1000.0]");
        whole_numbers(&mut value);
        assert_eq!(value.to_string(), "[1,-1,18446744073709551615,1,1.5,1000]");
    }
}
