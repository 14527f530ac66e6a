//! Functions of templates: those of Go, and of sprig those about texts, lists and choices.

use std::cmp::Ordering;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

type Call = fn(&[Value]) -> Result<Value, String>;

/// Whether there is a function of this name.
pub fn is_known(name: &str) -> bool {
    find(name).is_some()
}

/// Calls a function.
pub fn call(name: &str, arguments: &[Value]) -> Result<Value, String> {
    find(name).ok_or("it is not known")?(arguments)
}

fn find(name: &str) -> Option<Call> {
    logic(name).or_else(|| texts(name)).or_else(|| lists(name))
}

fn logic(name: &str) -> Option<Call> {
    Some(match name {
        "and" => |all| Ok(all.iter().find(|value| !truth(value)).or(all.last()).ok_or(NONE)?.clone()),
        "or" => |all| Ok(all.iter().find(|value| truth(value)).or(all.last()).ok_or(NONE)?.clone()),
        "not" => |all| Ok((!truth(one(all)?)).into()),
        "eq" => |all| same(all).map(Into::into),
        "ne" => |all| two(all).and_then(|_| same(all)).map(|same| (!same).into()),
        "lt" => |all| order(all).map(|order| order.is_lt().into()),
        "le" => |all| order(all).map(|order| order.is_le().into()),
        "gt" => |all| order(all).map(|order| order.is_gt().into()),
        "ge" => |all| order(all).map(|order| order.is_ge().into()),
        "empty" => |all| Ok((!truth(one(all)?)).into()),
        "default" => |all| two(all).map(|(other, value)| if truth(value) { value } else { other }.clone()),
        "coalesce" => |all| Ok(all.iter().find(|value| truth(value)).cloned().unwrap_or_default()),
        "ternary" => |all| match all {
            [yes, no, choice] => Ok(if truth(choice) { yes } else { no }.clone()),
            _ => Err("it takes three arguments".to_owned()),
        },
        _ => return None,
    })
}

fn texts(name: &str) -> Option<Call> {
    Some(match name {
        "print" => |all| Ok(all.iter().map(shown).collect::<String>().into()),
        "printf" => printf,
        "toString" => |all| Ok(shown(one(all)?).into()),
        "toJson" => |all| Ok(one(all)?.to_string().into()),
        "quote" => |all| Ok(serde_json::to_string(&shown(one(all)?)).unwrap_or_default().into()),
        "squote" => |all| Ok(format!("'{}'", shown(one(all)?)).into()),
        "lower" => |all| text(one(all)?).map(|text| text.to_lowercase().into()),
        "upper" => |all| text(one(all)?).map(|text| text.to_uppercase().into()),
        "trim" => |all| text(one(all)?).map(|text| text.trim().into()),
        "trimPrefix" => |all| both(all).map(|(part, text)| text.strip_prefix(part).unwrap_or(text).into()),
        "trimSuffix" => |all| both(all).map(|(part, text)| text.strip_suffix(part).unwrap_or(text).into()),
        "trimAll" => |all| both(all).map(|(set, text)| text.trim_matches(|letter| set.contains(letter)).into()),
        "hasPrefix" => |all| both(all).map(|(part, text)| text.starts_with(part).into()),
        "hasSuffix" => |all| both(all).map(|(part, text)| text.ends_with(part).into()),
        "contains" => |all| both(all).map(|(part, text)| text.contains(part).into()),
        "replace" => |all| match all {
            [old, new, whole] => Ok(text(whole)?.replace(text(old)?, text(new)?).into()),
            _ => Err("it takes three arguments".to_owned()),
        },
        "trunc" => |all| {
            let (length, text) = two(all).and_then(|(length, whole)| Ok((length, text(whole)?)))?;
            let length = length.as_u64().and_then(|length| usize::try_from(length).ok()).ok_or("a length is wanted")?;
            Ok(text.chars().take(length).collect::<String>().into())
        },
        "b64enc" => |all| text(one(all)?).map(|text| STANDARD.encode(text).into()),
        "b64dec" => |all| {
            let bytes = STANDARD.decode(text(one(all)?)?).map_err(|error| error.to_string())?;
            String::from_utf8(bytes).map(Into::into).map_err(|error| error.to_string())
        },
        _ => return None,
    })
}

fn lists(name: &str) -> Option<Call> {
    Some(match name {
        "len" => |all| size(one(all)?).map(Into::into),
        "index" => {
            |all| all.iter().skip(1).try_fold(one(&all[..all.len().min(1)])?.clone(), |value, at| entry(&value, at))
        }
        "list" => |all| Ok(all.to_vec().into()),
        "first" => |all| Ok(array(one(all)?)?.first().cloned().unwrap_or_default()),
        "last" => |all| Ok(array(one(all)?)?.last().cloned().unwrap_or_default()),
        "has" => |all| two(all).and_then(|(value, list)| Ok(array(list)?.contains(value).into())),
        "hasKey" => |all| two(all).and_then(|(map, key)| Ok(map.get(text(key)?).is_some().into())),
        "get" => |all| two(all).and_then(|(map, key)| Ok(map.get(text(key)?).cloned().unwrap_or_else(|| "".into()))),
        "join" => |all| {
            let (between, list) = two(all)?;
            Ok(array(list)?.iter().map(shown).collect::<Vec<_>>().join(text(between)?).into())
        },
        "splitList" => |all| both(all).map(|(by, text)| text.split(by).collect::<Vec<_>>().into()),
        _ => return None,
    })
}

const NONE: &str = "it takes an argument";

fn one(all: &[Value]) -> Result<&Value, String> {
    match all {
        [value] => Ok(value),
        _ => Err("it takes one argument".to_owned()),
    }
}

fn two(all: &[Value]) -> Result<(&Value, &Value), String> {
    match all {
        [first, second] => Ok((first, second)),
        _ => Err("it takes two arguments".to_owned()),
    }
}

fn both(all: &[Value]) -> Result<(&str, &str), String> {
    two(all).and_then(|(first, second)| Ok((text(first)?, text(second)?)))
}

fn text(value: &Value) -> Result<&str, String> {
    value.as_str().ok_or_else(|| format!("{} is no text", shown(value)))
}

fn array(value: &Value) -> Result<&[Value], String> {
    match value {
        Value::Array(list) => Ok(list),
        Value::Null => Ok(&[]),
        other => Err(format!("{} is no list", shown(other))),
    }
}

fn size(value: &Value) -> Result<u64, String> {
    match value {
        Value::String(text) => Ok(text.len() as u64),
        Value::Array(list) => Ok(list.len() as u64),
        Value::Object(map) => Ok(map.len() as u64),
        other => Err(format!("{} has no length", shown(other))),
    }
}

fn entry(value: &Value, at: &Value) -> Result<Value, String> {
    match (value, at) {
        (Value::Array(list), Value::Number(_)) => {
            let found = at.as_u64().and_then(|at| list.get(usize::try_from(at).ok()?));
            found.cloned().ok_or_else(|| format!("there is no entry {at}"))
        }
        (Value::Object(map), Value::String(key)) => Ok(map.get(key).cloned().unwrap_or_default()),
        (Value::Null, _) => Ok(Value::Null),
        _ => Err(format!("{} has no entry {at}", shown(value))),
    }
}

/// Whether the first argument equals one of the others.
fn same(all: &[Value]) -> Result<bool, String> {
    let [first, others @ ..] = all else { return Err(NONE.to_owned()) };
    if others.is_empty() {
        return Err("it takes two arguments".to_owned());
    }
    for other in others {
        if std::mem::discriminant(first) == std::mem::discriminant(other) {
            let equal = first == other || (first.is_number() && first.as_f64() == other.as_f64());
            if equal {
                return Ok(true);
            }
        } else if !first.is_null() && !other.is_null() {
            return Err(format!("{first} and {other} cannot be compared"));
        }
    }
    Ok(false)
}

fn order(all: &[Value]) -> Result<Ordering, String> {
    let (first, second) = two(all)?;
    let order = match (first, second) {
        (Value::String(first), Value::String(second)) => Some(first.cmp(second)),
        _ => first.as_f64().zip(second.as_f64()).and_then(|(first, second)| first.partial_cmp(&second)),
    };
    order.ok_or_else(|| format!("{first} and {second} cannot be compared"))
}

fn printf(all: &[Value]) -> Result<Value, String> {
    let [format, rest @ ..] = all else { return Err(NONE.to_owned()) };
    let (mut out, mut rest, mut letters) = (String::new(), rest.iter(), text(format)?.chars());
    while let Some(letter) = letters.next() {
        if letter != '%' {
            out.push(letter);
            continue;
        }
        let verb = letters.next().ok_or("a verb is missing after %")?;
        if verb == '%' {
            out.push('%');
            continue;
        }
        let value = rest.next().ok_or("an argument is missing")?;
        match verb {
            's' | 'v' | 'd' | 't' => out.push_str(&shown(value)),
            'q' => out.push_str(&serde_json::to_string(&shown(value)).unwrap_or_default()),
            other => return Err(format!("%{other} is not understood")),
        }
    }
    Ok(out.into())
}

/// Whether a condition holds: what is empty does not.
pub fn truth(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(yes) => *yes,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
    }
}

/// A value as Go prints it.
pub fn shown(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(list) => format!("[{}]", list.iter().map(shown).collect::<Vec<_>>().join(" ")),
        Value::Object(map) => {
            let mut entries: Vec<String> = map.iter().map(|(key, value)| format!("{key}:{}", shown(value))).collect();
            entries.sort();
            format!("map[{}]", entries.join(" "))
        }
        other => other.to_string(),
    }
}
