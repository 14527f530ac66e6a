//! How the original prints JSON values inside its messages.

use std::fmt::Write as _;

use serde_json::{Number, Value};

/// The value as Go's `%v` shows it: `map[a:1 b:[x y]]`.
pub(crate) fn go(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

/// A list of lists, as the original shows mismatching lists.
pub(crate) fn go_lists(lists: &[&[Value]]) -> String {
    let texts: Vec<String> = lists.iter().map(|list| go_list(list)).collect();
    format!("[{}]", texts.join(" "))
}

/// A list as Go's `%v` shows it.
pub(crate) fn go_list(list: &[Value]) -> String {
    let texts: Vec<String> = list.iter().map(go).collect();
    format!("[{}]", texts.join(" "))
}

/// The name Go's JSON decoder has for the sort of a value.
pub(crate) fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The Go type a decoded value has.
pub(crate) fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("<nil>"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&go_number(number)),
        Value::String(text) => out.push_str(text),
        Value::Array(items) => out.push_str(&go_list(items)),
        Value::Object(map) => {
            let mut names: Vec<&String> = map.keys().collect();
            names.sort();
            out.push_str("map[");
            for (at, name) in names.into_iter().enumerate() {
                let space = if at == 0 { "" } else { " " };
                // Writing to a string cannot fail.
                let _ = write!(out, "{space}{name}:");
                write(&map[name], out);
            }
            out.push(']');
        }
    }
}

/// Whole numbers as they are; fractions in the shortest form, with an exponent where Go uses one.
pub(crate) fn go_number(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() && float != 0.0 && (float.abs() >= 1e21 || float.abs() < 1e-4) => {
            let text = format!("{float:e}");
            let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
            let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
            format!("{mantissa}e{sign}{digits:0>2}")
        }
        Some(float) if number.is_f64() => float.to_string(),
        _ => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_print_as_go_prints_them() {
        let table = [
            (json!({"b": [1, "x"], "a": {"c": null}}), "map[a:map[c:<nil>] b:[1 x]]"),
            (json!(1.5), "1.5"),
            (json!(2.0), "2"),
            (json!(1e22), "1e+22"),
            (json!(0.00001), "1e-05"),
            (json!(true), "true"),
        ];
        for (value, text) in table {
            assert_eq!(go(&value), text);
        }
    }
}
