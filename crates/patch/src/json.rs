//! JSON patch (RFC 6902), with bounds on what one patch may cost.

use serde_json::Value;

use crate::error::PatchError;
use crate::show;

/// How many operations one patch may have.
pub const MAX_OPERATIONS: usize = 10_000;

/// How many bytes all `copy` operations of one patch may copy together.
const MAX_COPIED: usize = 3 * 1024 * 1024;

/// How many list elements all operations together may shift; inserting at the front of a
/// huge list ten thousand times would otherwise occupy a processor for minutes.
const MAX_SHIFTED: usize = 100_000_000;

/// Applies a JSON patch to a copy of `target`.
pub fn json_patch(target: &Value, patch: &Value) -> Result<Value, PatchError> {
    let operations = decode(patch)?;
    let mut run = Run { doc: target.clone(), copied: 0, shifted: 0 };
    for operation in operations {
        run.apply(operation)?;
    }
    Ok(run.doc)
}

/// Checks the shape the original's decoder checks before it looks at the object.
fn decode(patch: &Value) -> Result<&[Value], PatchError> {
    let malformed =
        |what: String| PatchError::Malformed(format!("error decoding patch: json: cannot unmarshal {what}"));
    let Value::Array(operations) = patch else {
        let kind = show::json_kind(patch);
        return Err(malformed(format!("{kind} into Go value of type []handlers.jsonPatchOp")));
    };
    for operation in operations {
        let Some(fields) = operation.as_object() else {
            let kind = show::json_kind(operation);
            return Err(malformed(format!("{kind} into Go value of type handlers.jsonPatchOp")));
        };
        for name in ["op", "path", "from"] {
            match fields.get(name) {
                None | Some(Value::String(_) | Value::Null) => {}
                Some(other) => {
                    let kind = show::json_kind(other);
                    return Err(malformed(format!("{kind} into Go struct field jsonPatchOp.{name} of type string")));
                }
            }
        }
    }
    if operations.len() > MAX_OPERATIONS {
        return Err(PatchError::TooManyOperations(operations.len()));
    }
    Ok(operations)
}

fn failed(message: impl Into<String>) -> PatchError {
    PatchError::Failed(message.into())
}

/// A patch being applied.
struct Run {
    doc: Value,
    copied: usize,
    shifted: usize,
}

impl Run {
    fn apply(&mut self, operation: &Value) -> Result<(), PatchError> {
        let text = |name: &str| operation.get(name).and_then(Value::as_str);
        let path = Pointer::parse(text("path").ok_or_else(|| failed("operation has no path"))?)?;
        let from = || Pointer::parse(text("from").ok_or_else(|| failed("operation has no from"))?);
        let value = || operation.get("value").cloned().unwrap_or_default();
        match text("op").unwrap_or_default() {
            "add" => self.add(&path, value()),
            "remove" => self.remove(&path).map(drop),
            "replace" => self.replace(&path, value()),
            "move" => self.relocate(&from()?, &path),
            "copy" => self.copy(&from()?, &path),
            "test" => self.test(&path, operation.get("value").unwrap_or(&Value::Null)),
            other => Err(failed(format!("Unexpected kind: {other}"))),
        }
    }

    fn add(&mut self, path: &Pointer, value: Value) -> Result<(), PatchError> {
        let Some((last, parents)) = path.0.split_last() else {
            self.doc = value;
            return Ok(());
        };
        match walk(&mut self.doc, parents)? {
            Value::Object(map) => {
                map.insert(last.clone(), value);
                Ok(())
            }
            Value::Array(list) => {
                let at = if last == "-" { list.len() } else { position(last, list.len() + 1)? };
                let shifted = list.len() - at;
                list.insert(at, value);
                self.charge(shifted)
            }
            _ => Err(missing(path)),
        }
    }

    fn remove(&mut self, path: &Pointer) -> Result<Value, PatchError> {
        let (last, parents) = path.0.split_last().ok_or_else(|| failed("the whole object cannot be removed"))?;
        match walk(&mut self.doc, parents)? {
            Value::Object(map) => map.remove(last).ok_or_else(|| missing(path)),
            Value::Array(list) => {
                let at = position(last, list.len())?;
                let shifted = list.len() - at;
                let value = list.remove(at);
                self.charge(shifted)?;
                Ok(value)
            }
            _ => Err(missing(path)),
        }
    }

    fn replace(&mut self, path: &Pointer, value: Value) -> Result<(), PatchError> {
        let place = walk(&mut self.doc, &path.0)?;
        *place = value;
        Ok(())
    }

    fn relocate(&mut self, from: &Pointer, path: &Pointer) -> Result<(), PatchError> {
        let value = self.remove(from)?;
        self.add(path, value)
    }

    fn copy(&mut self, from: &Pointer, path: &Pointer) -> Result<(), PatchError> {
        let value = walk(&mut self.doc, &from.0)?;
        self.copied = self.copied.saturating_add(size(value, MAX_COPIED));
        if self.copied > MAX_COPIED {
            return Err(failed(format!("copy operations exceed {MAX_COPIED} bytes")));
        }
        let value = value.clone();
        self.add(path, value)
    }

    fn test(&mut self, path: &Pointer, expected: &Value) -> Result<(), PatchError> {
        let found = walk(&mut self.doc, &path.0)?;
        if found == expected { Ok(()) } else { Err(failed(format!("testing value {path} failed"))) }
    }

    fn charge(&mut self, shifted: usize) -> Result<(), PatchError> {
        self.shifted = self.shifted.saturating_add(shifted);
        if self.shifted > MAX_SHIFTED { Err(failed("the patch shifts too many list elements")) } else { Ok(()) }
    }
}

fn missing(path: &Pointer) -> PatchError {
    failed(format!("doc is missing path: {path}"))
}

fn walk<'v>(mut at: &'v mut Value, path: &[String]) -> Result<&'v mut Value, PatchError> {
    for step in path {
        let next = match at {
            Value::Object(map) => map.get_mut(step),
            Value::Array(list) => {
                let index = position(step, list.len())?;
                list.get_mut(index)
            }
            _ => None,
        };
        at = next.ok_or_else(|| failed(format!("doc is missing key: {step}")))?;
    }
    Ok(at)
}

/// An index below `end`; negative ones count from the end, as the original allows.
fn position(step: &str, end: usize) -> Result<usize, PatchError> {
    let wrong = || failed(format!("Unable to access invalid index: {step}"));
    let index: i64 = step.parse().map_err(|_| wrong())?;
    let end = i64::try_from(end).map_err(|_| wrong())?;
    let index = if index < 0 { index + end } else { index };
    if (0..end).contains(&index) { usize::try_from(index).map_err(|_| wrong()) } else { Err(wrong()) }
}

/// About how long the value is as text; stops counting behind `limit`.
fn size(value: &Value, limit: usize) -> usize {
    let mut sum: usize = match value {
        Value::Null | Value::Bool(_) => 5,
        Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(_) | Value::Object(_) => 2,
    };
    match value {
        Value::Array(list) => {
            for item in list {
                if sum > limit {
                    break;
                }
                sum += 1 + size(item, limit - sum);
            }
        }
        Value::Object(map) => {
            for (name, item) in map {
                if sum > limit {
                    break;
                }
                sum += name.len() + 4;
                sum += size(item, limit.saturating_sub(sum));
            }
        }
        _ => {}
    }
    sum
}

/// A JSON pointer (RFC 6901), decoded.
struct Pointer(Vec<String>);

impl Pointer {
    fn parse(text: &str) -> Result<Self, PatchError> {
        if text.is_empty() {
            return Ok(Self(Vec::new()));
        }
        let Some(rest) = text.strip_prefix('/') else {
            return Err(failed(format!("doc is missing path: {text}")));
        };
        Ok(Self(rest.split('/').map(|step| step.replace("~1", "/").replace("~0", "~")).collect()))
    }
}

impl std::fmt::Display for Pointer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|step| write!(f, "/{}", step.replace('~', "~0").replace('/', "~1")))
    }
}
