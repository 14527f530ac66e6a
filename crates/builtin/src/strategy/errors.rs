//! Collecting complaints while walking an object, and the checks many kinds share.

use atoll_meta::{FieldError, FieldErrorKind, FieldPath};
use serde_json::Value;

use super::name;
use super::tree::{at, has, int, same, text};

pub(crate) const IMMUTABLE: &str = "field is immutable";
pub(crate) const NOT_POSITIVE: &str = "must be greater than zero";
pub(crate) const NOT_NEGATIVE: &str = "must be greater than or equal to 0";

/// Complaints found so far, in the order found.
#[derive(Default)]
pub(crate) struct Errors(pub Vec<FieldError>);

impl Errors {
    pub fn required(&mut self, path: &FieldPath, detail: &str) {
        self.0.push(FieldError::required(path.clone(), detail));
    }

    pub fn invalid(&mut self, path: &FieldPath, value: impl Into<Value>, detail: impl Into<String>) {
        self.0.push(FieldError::invalid(path.clone(), value, detail));
    }

    /// A complaint about a value that is shown in words of its own.
    pub fn shown(&mut self, path: &FieldPath, kind: FieldErrorKind, shown: &str, detail: &str) {
        self.0.push(FieldError::shown(path.clone(), kind, shown, detail));
    }

    pub fn forbidden(&mut self, path: &FieldPath, detail: impl Into<String>) {
        self.0.push(FieldError::forbidden(path.clone(), detail));
    }

    pub fn duplicate(&mut self, path: &FieldPath, value: impl Into<Value>) {
        self.0.push(FieldError::duplicate(path.clone(), value));
    }

    pub fn too_long(&mut self, path: &FieldPath, limit: usize) {
        self.0.push(FieldError::too_long(path.clone(), limit));
    }

    pub fn too_many(&mut self, path: &FieldPath, actual: usize, limit: usize) {
        self.0.push(FieldError::too_many(path.clone(), actual, limit));
    }

    pub fn not_found(&mut self, path: &FieldPath, value: impl Into<Value>) {
        self.0.push(FieldError::not_found(path.clone(), value));
    }

    /// Lists the supported values in the order given, which is the order users know.
    pub fn not_supported(&mut self, path: &FieldPath, value: impl Into<Value>, supported: &[&str]) {
        let quoted: Vec<String> = supported.iter().map(|item| format!("\"{item}\"")).collect();
        let detail = if quoted.is_empty() { String::new() } else { format!("supported values: {}", quoted.join(", ")) };
        self.0.push(FieldError {
            path: path.clone(),
            kind: FieldErrorKind::NotSupported,
            value: Some(value.into()),
            detail,
        });
    }

    /// One complaint per message about one value.
    pub fn each(&mut self, path: &FieldPath, value: &str, messages: Vec<String>) {
        for message in messages {
            self.invalid(path, value, message);
        }
    }

    /// A child may not be negative; absent is fine.
    pub fn not_negative(&mut self, path: &FieldPath, parent: &Value, field: &str) {
        if let Some(number) = int(parent, field)
            && number < 0
        {
            self.invalid(&path.child(field), number, NOT_NEGATIVE);
        }
    }

    /// A child must be above zero; absent is fine.
    pub fn positive(&mut self, path: &FieldPath, parent: &Value, field: &str) {
        if let Some(number) = int(parent, field)
            && number <= 0
        {
            self.invalid(&path.child(field), number, "must be greater than 0");
        }
    }

    /// A child text, when given, must be one of a set.
    pub fn one_of(&mut self, path: &FieldPath, parent: &Value, field: &str, supported: &[&str]) {
        if has(parent, field) && !supported.contains(&text(parent, field)) {
            self.not_supported(&path.child(field), text(parent, field), supported);
        }
    }

    /// A child may not differ from what it was.
    pub fn immutable(&mut self, path: &FieldPath, new: &Value, old: &Value, field: &str) {
        if !same(at(new, field), at(old, field)) {
            self.invalid(&path.child(field), at(new, field).clone(), IMMUTABLE);
        }
    }

    /// A number that must be a port.
    pub fn port(&mut self, path: &FieldPath, number: i64) {
        if !(1..=65535).contains(&number) {
            self.invalid(path, number, name::range(1, 65535));
        }
    }

    /// A port given as number or name.
    pub fn port_or_name(&mut self, path: &FieldPath, port: &Value) {
        match port {
            Value::Number(_) => self.port(path, port.as_i64().unwrap_or(-1)),
            Value::String(label) => self.each(path, label, name::port_name(label)),
            _ => self.required(path, ""),
        }
    }
}
