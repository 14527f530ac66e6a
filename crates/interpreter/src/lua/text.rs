//! The functions on strings that need bounds: searching, replacing, repeating.

use std::sync::Arc;

use mlua::{Error, Function, Lua, LuaString, MultiValue, Result, Table, Value};

use super::clock::Clock;
use super::pattern::{Capture, Fault, Matcher};

/// The longest string a function makes.
const LONGEST: usize = 1 << 20;

/// Puts the bounded functions into the table that also serves `text:method()`.
pub fn install(lua: &Lua, string: &Table, clock: &Arc<Clock>) -> Result<()> {
    string.raw_set("dump", Value::Nil)?;
    string.raw_set("rep", lua.create_function(repeat)?)?;
    let own = Arc::clone(clock);
    string.raw_set("find", lua.create_function(move |lua, args| search(lua, &own, args, true))?)?;
    let own = Arc::clone(clock);
    string.raw_set("match", lua.create_function(move |lua, args| search(lua, &own, args, false))?)?;
    let own = Arc::clone(clock);
    let gmatch = lua.create_function(move |lua, args| each(lua, &own, args))?;
    string.raw_set("gfind", &gmatch)?;
    string.raw_set("gmatch", gmatch)?;
    let plain: Function = string.raw_get("format")?;
    let name: Function = lua.globals().raw_get("tostring")?;
    string.raw_set("format", lua.create_function(move |_, args| format(&plain, &name, args))?)?;
    let own = Arc::clone(clock);
    string.raw_set("gsub", lua.create_function(move |lua, args| replace(lua, &own, args))?)
}

fn fault(fault: Fault) -> Error {
    match fault {
        Fault::Malformed(why) => Error::runtime(why),
        Fault::Time => Error::runtime("time limit exceeded"),
    }
}

/// As the library's own, but anything can stand for `%s`.
fn format(plain: &Function, name: &Function, (text, args): (LuaString, MultiValue)) -> Result<MultiValue> {
    let mut args = args.into_vec();
    for (at, letter) in conversions(&text.as_bytes()).into_iter().enumerate() {
        if let (b's', Some(arg)) = (letter, args.get_mut(at))
            && !matches!(arg, Value::String(_) | Value::Number(_) | Value::Integer(_))
        {
            *arg = name.call(arg.clone())?;
        }
    }
    args.insert(0, Value::String(text));
    plain.call(MultiValue::from_vec(args))
}

/// The letters of a format that take an argument each.
fn conversions(text: &[u8]) -> Vec<u8> {
    let mut found = Vec::new();
    let mut rest = text.iter().copied();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            continue;
        }
        let letter = rest.find(|byte| !matches!(byte, b'-' | b'+' | b' ' | b'#' | b'.' | b'0'..=b'9'));
        found.extend(letter.filter(|letter| *letter != b'%'));
    }
    found
}

fn repeat(lua: &Lua, (text, count): (LuaString, i64)) -> Result<LuaString> {
    let text = text.as_bytes();
    let count = usize::try_from(count).unwrap_or(0);
    match text.len().checked_mul(count) {
        Some(length) if length <= LONGEST => lua.create_string(text.repeat(count)),
        _ => Err(Error::runtime("resulting string too large")),
    }
}

/// Where a search begins: from 1, from the end if negative.
fn begin(init: Option<i64>, length: usize) -> usize {
    let init = init.unwrap_or(1);
    let length_i64 = i64::try_from(length).unwrap_or(i64::MAX);
    let from = if init < 0 { length_i64.saturating_add(init) } else { init.saturating_sub(1) };
    usize::try_from(from.max(0)).unwrap_or(length).min(length)
}

fn place(at: usize) -> Value {
    Value::Number(at as f64)
}

type SearchArgs = (LuaString, LuaString, Option<i64>, Option<bool>);

fn search(lua: &Lua, clock: &Clock, args: SearchArgs, find: bool) -> Result<MultiValue> {
    let (text, pattern, init, plain) = (args.0.as_bytes(), args.1.as_bytes(), args.2, args.3);
    let start = begin(init, text.len());
    let special = |byte: &u8| b"^$*+?.([%-".contains(byte);
    if find && (plain == Some(true) || !pattern.iter().any(special)) {
        let found = find_plain(clock, &text[start..], &pattern).map_err(fault)?;
        let Some(at) = found.map(|at| at + start) else { return Ok(MultiValue::from_vec(vec![Value::Nil])) };
        return Ok(MultiValue::from_vec(vec![place(at + 1), place(at + pattern.len())]));
    }
    let (anchored, body) = anchor(&pattern);
    let mut matcher = Matcher::new(&text, body, clock);
    for at in start..=text.len() {
        if let Some(end) = matcher.at(at).map_err(fault)? {
            let mut answer = if find { vec![place(at + 1), place(end)] } else { Vec::new() };
            // The whole match is no capture to `find`.
            if !find || matcher.has_captures() {
                for capture in matcher.captures(at, end) {
                    answer.push(captured(lua, &text, capture)?);
                }
            }
            return Ok(MultiValue::from_vec(answer));
        }
        if anchored {
            break;
        }
    }
    Ok(MultiValue::from_vec(vec![Value::Nil]))
}

fn anchor(pattern: &[u8]) -> (bool, &[u8]) {
    match pattern {
        [b'^', body @ ..] => (true, body),
        body => (false, body),
    }
}

fn find_plain(clock: &Clock, text: &[u8], wanted: &[u8]) -> std::result::Result<Option<usize>, Fault> {
    if wanted.is_empty() {
        return Ok(Some(0));
    }
    for (at, window) in text.windows(wanted.len()).enumerate() {
        if at.is_multiple_of(1024) && clock.is_over() {
            return Err(Fault::Time);
        }
        if window == wanted {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

fn captured(lua: &Lua, text: &[u8], capture: Capture) -> Result<Value> {
    match capture {
        Capture::Position(at) => Ok(place(at + 1)),
        Capture::Span(start, Some(end)) => Ok(Value::String(lua.create_string(&text[start..end])?)),
        Capture::Span(_, None) => Err(Error::runtime("unfinished capture")),
    }
}

fn each(lua: &Lua, clock: &Arc<Clock>, (text, pattern): (LuaString, LuaString)) -> Result<Function> {
    let clock = Arc::clone(clock);
    let mut next = 0;
    lua.create_function_mut(move |lua, ()| {
        let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
        let mut matcher = Matcher::new(&text, &pattern, &clock);
        while next <= text.len() {
            let at = next;
            let Some(end) = matcher.at(at).map_err(fault)? else {
                next += 1;
                continue;
            };
            next = if end == at { end + 1 } else { end };
            let captures = matcher.captures(at, end);
            let values = captures.into_iter().map(|capture| captured(lua, &text, capture));
            return Ok(MultiValue::from_vec(values.collect::<Result<_>>()?));
        }
        Ok(MultiValue::from_vec(vec![Value::Nil]))
    })
}

type ReplaceArgs = (LuaString, LuaString, Value, Option<i64>);

fn replace(lua: &Lua, clock: &Clock, args: ReplaceArgs) -> Result<(LuaString, f64)> {
    let (text, pattern, with) = (args.0.as_bytes(), args.1.as_bytes(), args.2);
    let most = args.3.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(0));
    let (anchored, body) = anchor(&pattern);
    let mut matcher = Matcher::new(&text, body, clock);
    let (mut out, mut at, mut count) = (Vec::new(), 0, 0usize);
    while count < most {
        let found = matcher.at(at).map_err(fault)?;
        if let Some(end) = found {
            count += 1;
            let captures = matcher.captures(at, end);
            replacement(lua, &mut out, &with, &text, (at, end), &captures)?;
        }
        match found {
            Some(end) if end > at => at = end,
            _ if at < text.len() => {
                out.push(text[at]);
                at += 1;
            }
            _ => break,
        }
        if out.len() > LONGEST {
            return Err(Error::runtime("resulting string too large"));
        }
        if anchored {
            break;
        }
    }
    out.extend_from_slice(&text[at.min(text.len())..]);
    Ok((lua.create_string(&out)?, count as f64))
}

/// Writes what stands for one match; what is not replaced stays.
fn replacement(
    lua: &Lua,
    out: &mut Vec<u8>,
    with: &Value,
    text: &[u8],
    (start, end): (usize, usize),
    captures: &[Capture],
) -> Result<()> {
    let first = || captured(lua, text, captures[0]);
    let value = match with {
        Value::Table(table) => table.raw_get::<Value>(first()?)?,
        Value::Function(function) => {
            let all = captures.iter().map(|capture| captured(lua, text, *capture));
            function.call::<Value>(MultiValue::from_vec(all.collect::<Result<_>>()?))?
        }
        other => {
            let Some(form) = lua.coerce_string(other.clone())? else {
                return Err(Error::runtime("bad argument #3 to 'gsub' (string/function/table expected)"));
            };
            return fill(lua, out, &form.as_bytes(), text, (start, end), captures);
        }
    };
    match value {
        Value::Nil | Value::Boolean(false) => out.extend_from_slice(&text[start..end]),
        other => match lua.coerce_string(other.clone())? {
            Some(made) => out.extend_from_slice(&made.as_bytes()),
            None => return Err(Error::runtime(format!("invalid replacement value (a {})", other.type_name()))),
        },
    }
    Ok(())
}

/// Writes a form in which `%1` stands for the first capture, `%0` for the whole match.
fn fill(
    lua: &Lua,
    out: &mut Vec<u8>,
    form: &[u8],
    text: &[u8],
    (start, end): (usize, usize),
    captures: &[Capture],
) -> Result<()> {
    let mut bytes = form.iter();
    while let Some(byte) = bytes.next() {
        if *byte != b'%' {
            out.push(*byte);
            continue;
        }
        match bytes.next() {
            Some(b'0') => out.extend_from_slice(&text[start..end]),
            Some(digit @ b'1'..=b'9') => {
                let index = usize::from(digit - b'1');
                let capture = captures.get(index).ok_or_else(|| Error::runtime("invalid capture index"))?;
                if let Some(made) = lua.coerce_string(captured(lua, text, *capture)?)? {
                    out.extend_from_slice(&made.as_bytes());
                }
            }
            Some(other) => out.push(*other),
            None => out.push(b'%'),
        }
    }
    Ok(())
}
