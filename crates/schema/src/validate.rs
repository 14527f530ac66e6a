//! Validation against a schema, with the words and paths of the original.

use std::cell::OnceCell;
use std::collections::HashMap;

use atoll_meta::{FieldError, FieldErrorKind, FieldPath};
use serde_json::{Number, Value};

use crate::format::Format;
use crate::json::float;
use crate::trail::Trail;
use crate::{Limits, ListType, Schema, Type, list, objectmeta};

/// No more complaints than this are written down; a hostile object could have millions.
const MAX_ERRORS: usize = 1000;

/// Checks a value against a schema: types and limits, embedded objects, sets and map lists.
///
/// With an `old` value, faults of parts that did not change are forgiven: values are
/// compared where they can be told to be the same thing (fields, and elements of map lists),
/// and duplicates are forgiven when the old object had any.
pub fn validate(value: &Value, schema: &Schema, old: Option<&Value>, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = openapi(value, schema, old, path);
    let start = Trail::Start(path.as_str());
    objectmeta::embedded(value, schema, &start, &mut errors);
    let mut twice = Vec::new();
    list::duplicates(value, schema, &start, &mut twice);
    if !twice.is_empty() {
        let mut before = Vec::new();
        if let Some(old) = old {
            list::duplicates(old, schema, &start, &mut before);
        }
        if before.is_empty() {
            errors.append(&mut twice);
        }
    }
    errors
}

/// Types and limits only.
pub(crate) fn openapi(value: &Value, schema: &Schema, old: Option<&Value>, path: &FieldPath) -> Vec<FieldError> {
    let start = Trail::Start("");
    let mut report = Report { base: path, quiet: true, count: 0, errors: Vec::new() };
    // Nearly all objects are valid: find that out first, without forgiveness and words.
    report.node(value, schema, None, &start);
    if report.count > 0 {
        report.quiet = false;
        report.count = 0;
        report.node(value, schema, old, &start);
    }
    report.errors
}

/// Whether two values are the same thing unchanged, as far as the schema lets them be compared.
pub(crate) fn unchanged(new: &Value, old: &Value, schema: &Schema) -> bool {
    match (new, old) {
        (Value::Array(new), Value::Array(old)) if new.len() == old.len() => {
            let (Some(ListType::Map), Some(element)) = (schema.list_type, schema.items.as_deref()) else {
                return new == old;
            };
            let by_key: HashMap<String, &Value> = old.iter().map(|item| (list::key_text(item, schema), item)).collect();
            new.iter().all(|item| {
                let old = by_key.get(&list::key_text(item, schema)).filter(|_| item.is_object());
                old.is_some_and(|old| unchanged(item, old, element))
            })
        }
        (Value::Object(new), Value::Object(old)) if new.len() == old.len() => new.iter().all(|(key, value)| {
            let child = schema.properties.get(key.as_str()).or(schema.additional.as_deref());
            match (child, old.get(key)) {
                (Some(child), Some(old)) => unchanged(value, old, child),
                _ => false,
            }
        }),
        (Value::Array(_) | Value::Object(_), _) | (_, Value::Array(_) | Value::Object(_)) => false,
        _ => new == old,
    }
}

/// The old elements of a map list by key, looked up only when something is wrong.
pub(crate) struct OldItems<'a> {
    old: Option<&'a Value>,
    schema: &'a Schema,
    by_key: OnceCell<HashMap<String, &'a Value>>,
}

impl<'a> OldItems<'a> {
    pub(crate) fn new(old: Option<&'a Value>, schema: &'a Schema) -> Self {
        Self { old, schema, by_key: OnceCell::new() }
    }

    /// The old element with the key of this one; only map lists have such.
    pub(crate) fn of(&self, item: &Value) -> Option<&'a Value> {
        if self.schema.list_type != Some(ListType::Map) || !item.is_object() {
            return None;
        }
        let old = self.old?.as_array()?;
        let by_key = self.by_key.get_or_init(|| {
            old.iter().filter(|item| item.is_object()).map(|item| (list::key_text(item, self.schema), item)).collect()
        });
        by_key.get(&list::key_text(item, self.schema)).copied()
    }
}

struct Report<'a> {
    base: &'a FieldPath,
    /// Only count, write nothing.
    quiet: bool,
    count: usize,
    errors: Vec<FieldError>,
}

impl Report<'_> {
    fn fail(&mut self, error: impl FnOnce(&FieldPath) -> FieldError) {
        self.count += 1;
        if !self.quiet && self.errors.len() < MAX_ERRORS {
            self.errors.push(error(self.base));
        }
    }

    fn invalid(&mut self, trail: &Trail<'_>, value: impl FnOnce() -> Value, what: impl FnOnce() -> String) {
        self.fail(|base| {
            let name = trail.dotted();
            FieldError::invalid(below(base, &name), value(), format!("{name} in body {}", what()))
        });
    }

    fn wrong_type(&mut self, trail: &Trail<'_>, wanted: &str, got: &str) {
        self.fail(|base| {
            let name = trail.dotted();
            FieldError::wrong_type(below(base, &name), got, format!("{name} in body must be of type {wanted}: {got:?}"))
        });
    }

    /// Complaints about combined schemas name the field in the text only.
    fn combined(&mut self, trail: &Trail<'_>, what: &str) {
        self.fail(|base| FieldError::invalid(base.clone(), "", format!("{:?} {what}", trail.dotted())));
    }

    /// Checks a value and forgives all faults if it did not change.
    ///
    /// Returns how many checks were made that say the schema is meant for the value.
    fn node(&mut self, value: &Value, schema: &Schema, old: Option<&Value>, trail: &Trail<'_>) -> usize {
        let (count, length) = (self.count, self.errors.len());
        let score = self.plain(value, schema, old, trail);
        if self.count > count && old.is_some_and(|old| unchanged(value, old, schema)) {
            self.count = count;
            self.errors.truncate(length);
        }
        score
    }

    fn plain(&mut self, value: &Value, schema: &Schema, old: Option<&Value>, trail: &Trail<'_>) -> usize {
        let limits = schema.limits.as_deref();
        let format = Format::of(&schema.format);
        let mut score = self.type_of(value, schema, format, trail);
        if value.is_null() {
            self.enumeration(value, limits, trail);
            return score;
        }
        if let Some(limits) = limits {
            score += self.combinations(value, limits, trail);
        }
        match value {
            Value::String(text) => {
                if let Some(limits) = limits {
                    self.text(text, limits, trail);
                }
                if format.is_some_and(|format| !format.accepts(text)) {
                    self.wrong_type(trail, &schema.format, text);
                }
            }
            Value::Number(number) => {
                if let Some(limits) = limits {
                    self.number(number, limits, trail);
                }
                score += 1;
            }
            Value::Array(items) => score += self.list(items, schema, old, trail),
            Value::Object(_) => score += self.object(value, schema, old, trail),
            _ => {}
        }
        self.enumeration(value, limits, trail);
        // One for each kind of check that applied, whatever its outcome.
        let applied =
            3 + usize::from(schema.ty != Type::Any || schema.int_or_string) + usize::from(!value.is_boolean());
        score + applied
    }

    fn type_of(&mut self, value: &Value, schema: &Schema, format: Option<Format>, trail: &Trail<'_>) -> usize {
        let wanted = schema.ty;
        let typed = wanted != Type::Any || schema.int_or_string;
        if !typed && format.is_none() {
            return 0;
        }
        let names = if schema.int_or_string { "integer,string" } else { wanted.as_str() };
        let (got, number_format) = match value {
            Value::Null => {
                if typed && !schema.nullable {
                    self.wrong_type(trail, names, "null");
                    return 0;
                }
                return 1;
            }
            Value::Bool(_) => ("boolean", ""),
            Value::String(_) => ("string", ""),
            Value::Array(_) => ("array", ""),
            Value::Object(_) => ("object", ""),
            Value::Number(number) if number.is_f64() => ("number", "float64"),
            Value::Number(_) => ("integer", "int64"),
        };
        let whole = matches!(value, Value::Number(number) if is_whole(number));
        let fits = match wanted {
            _ if schema.int_or_string => got == "string" || whole,
            Type::Integer => whole,
            Type::Number => value.is_number(),
            other => other.as_str() == got,
        };
        if fits {
            return 1;
        }
        if format.is_some() {
            let sequence = matches!(value, Value::String(_) | Value::Array(_));
            let numeric = matches!(wanted, Type::Integer | Type::Number) || schema.int_or_string;
            if !sequence {
                self.wrong_type(trail, &schema.format, number_format);
                return 0;
            }
            // The original leaves lists to the format, which only looks at strings.
            if !numeric {
                return 1;
            }
        }
        self.wrong_type(trail, names, got);
        0
    }

    fn enumeration(&mut self, value: &Value, limits: Option<&Limits>, trail: &Trail<'_>) {
        let Some(limits) = limits else { return };
        if limits.enumeration.is_empty() || (!value.is_null() && limits.enumeration.iter().any(|one| equal(one, value)))
        {
            return;
        }
        self.fail(|base| {
            let quoted: Vec<String> = limits
                .enumeration
                .iter()
                .map(|one| match one {
                    Value::String(text) => format!("{text:?}"),
                    other => format!("{:?}", other.to_string()),
                })
                .collect();
            FieldError {
                path: below(base, &trail.dotted()),
                kind: FieldErrorKind::NotSupported,
                value: Some(if let Value::Number(number) = value { shown(number) } else { value.clone() }),
                detail: format!("supported values: {}", quoted.join(", ")),
            }
        });
    }

    fn text(&mut self, text: &str, limits: &Limits, trail: &Trail<'_>) {
        if limits.max_length.is_some() || limits.min_length.is_some() {
            let length = text.chars().count() as u64;
            if let Some(most) = limits.max_length.filter(|most| length > *most) {
                let unit = if most == 1 { "byte" } else { "bytes" };
                return self.fail(|base| FieldError {
                    path: below(base, &trail.dotted()),
                    kind: FieldErrorKind::TooLong,
                    value: None,
                    detail: format!("may not be more than {most} {unit}"),
                });
            }
            if let Some(least) = limits.min_length.filter(|least| length < *least) {
                return self.invalid(trail, || text.into(), || format!("should be at least {least} chars long"));
            }
        }
        let Some(pattern) = limits.pattern.as_deref().filter(|pattern| !pattern.is_empty()) else { return };
        match limits.regex.get(pattern) {
            Ok(regex) if regex.is_match(text) => {}
            Ok(_) => self.invalid(trail, || text.into(), || format!("should match '{pattern}'")),
            Err(why) => {
                self.invalid(
                    trail,
                    || text.into(),
                    || format!("should match '{pattern}, but pattern is invalid: {why}'"),
                );
            }
        }
    }

    fn number(&mut self, number: &Number, limits: &Limits, trail: &Trail<'_>) {
        let float = number.as_f64().unwrap_or(f64::NAN);
        // Whole numbers are compared with the whole part of a bound, as the original does.
        let whole = number.as_i64();
        let bound = |bound: f64| if whole.is_some() { bound.trunc() } else { bound };
        let show = |bound: f64| if whole.is_some() { (bound as i64).to_string() } else { go_float(bound) };
        if let Some(factor) = limits.multiple_of {
            let factor = bound(factor);
            let multiple = match whole {
                Some(whole) if factor >= 1.0 => whole % (factor as i64) == 0,
                _ if factor < 1.0 => is_whole_float(1.0 / factor * float),
                _ => is_whole_float(float / factor),
            };
            if factor <= 0.0 {
                self.fail(|base| {
                    let name = trail.dotted();
                    let what = format!("factor MultipleOf declared for {name} must be positive: {}", show(factor));
                    FieldError::invalid(below(base, &name), crate::json::float(factor), what)
                });
            } else if !multiple {
                self.invalid(trail, || shown(number), || format!("should be a multiple of {}", show(factor)));
            }
        }
        if let Some(least) = limits.minimum {
            let low = below_bound(whole, float, bound(least), limits.exclusive_minimum);
            let than = if limits.exclusive_minimum { "greater than" } else { "greater than or equal to" };
            if low {
                self.invalid(trail, || shown(number), || format!("should be {than} {}", show(least)));
            }
        }
        if let Some(most) = limits.maximum {
            let high = below_bound(whole.map(i64::wrapping_neg), -float, -bound(most), limits.exclusive_maximum);
            let than = if limits.exclusive_maximum { "less than" } else { "less than or equal to" };
            if high {
                self.invalid(trail, || shown(number), || format!("should be {than} {}", show(most)));
            }
        }
    }

    fn list(&mut self, items: &[Value], schema: &Schema, old: Option<&Value>, trail: &Trail<'_>) -> usize {
        let mut score = 1;
        if let Some(element) = schema.items.as_deref() {
            let olds = OldItems::new(old, schema);
            for (at, item) in items.iter().enumerate() {
                let trail = Trail::Index(trail, at);
                score += self.node(item, element, olds.of(item), &trail);
            }
        }
        let Some(limits) = schema.limits.as_deref() else { return score };
        let length = items.len() as u64;
        if let Some(least) = limits.min_items.filter(|least| length < *least) {
            self.invalid(trail, || length.into(), || format!("should have at least {least} items"));
        }
        if let Some(most) = limits.max_items.filter(|most| length > *most) {
            self.too_many(trail, length, most);
        }
        if limits.unique_items {
            let mut seen = std::collections::HashSet::new();
            if !items.iter().all(|item| seen.insert(item.to_string())) {
                self.invalid(trail, || "".into(), || "shouldn't contain duplicates".to_owned());
            }
        }
        score
    }

    fn too_many(&mut self, trail: &Trail<'_>, actual: u64, most: u64) {
        let unit = if most == 1 { "item" } else { "items" };
        self.fail(|base| FieldError {
            path: below(base, &trail.dotted()),
            kind: FieldErrorKind::TooMany,
            value: Some(actual.into()),
            detail: format!("must have at most {most} {unit}"),
        });
    }

    fn object(&mut self, value: &Value, schema: &Schema, old: Option<&Value>, trail: &Trail<'_>) -> usize {
        let Value::Object(map) = value else { return 0 };
        let mut score = 0;
        if let Some(limits) = schema.limits.as_deref() {
            let length = map.len() as u64;
            if let Some(least) = limits.min_properties.filter(|least| length < *least) {
                self.invalid(trail, || length.into(), || format!("should have at least {least} properties"));
            }
            if let Some(most) = limits.max_properties.filter(|most| length > *most) {
                self.too_many(trail, length, most);
            }
        }
        if !schema.properties.is_empty() || schema.additional.is_some() {
            for (key, child) in map {
                let Some(property) = schema.properties.get(key.as_str()).or(schema.additional.as_deref()) else {
                    continue;
                };
                let old = old.and_then(|old| old.get(key));
                score += self.node(child, property, old, &Trail::Field(trail, key));
            }
        }
        for name in &schema.required {
            if !map.contains_key(&**name) {
                let trail = Trail::Field(trail, name);
                self.fail(|base| FieldError::required(below(base, &trail.dotted()), ""));
            }
        }
        score
    }

    /// anyOf, oneOf, allOf and not. Of failed alternatives the one that fits best explains itself.
    /// Nothing is forgiven inside of them.
    fn combinations(&mut self, value: &Value, limits: &Limits, trail: &Trail<'_>) -> usize {
        let mut score = 0;
        if !limits.any_of.is_empty() {
            let (matches, best, points) = self.alternatives(value, &limits.any_of, trail, 1);
            if matches == 0 {
                self.combined(trail, "must validate at least one schema (anyOf)");
                self.explain(value, &limits.any_of[best], trail);
            }
            score += points;
        }
        if !limits.one_of.is_empty() {
            let (matches, best, points) = self.alternatives(value, &limits.one_of, trail, usize::MAX);
            match matches {
                0 => {
                    self.combined(trail, "must validate one and only one schema (oneOf). Found none valid");
                    self.explain(value, &limits.one_of[best], trail);
                    score += points;
                }
                1 => score += points,
                more => {
                    let what =
                        format!("must validate one and only one schema (oneOf). Found {more} valid alternatives");
                    self.combined(trail, &what);
                }
            }
        }
        if !limits.all_of.is_empty() {
            let mut good = 0;
            for schema in &limits.all_of {
                let count = self.count;
                score += self.explain(value, schema, trail);
                good += usize::from(self.count == count);
            }
            if good != limits.all_of.len() {
                let none = if good == 0 { ". None validated" } else { "" };
                self.combined(trail, &format!("must validate all the schemas (allOf){none}"));
            }
        }
        if let Some(not) = &limits.not {
            let (matches, ..) = self.alternatives(value, std::slice::from_ref(not), trail, 1);
            if matches > 0 {
                self.combined(trail, "must not validate the schema (not)");
            }
        }
        score + 1
    }

    /// How many alternatives the value fits (up to `enough`), the best one and its points.
    fn alternatives(
        &self,
        value: &Value,
        schemas: &[Schema],
        trail: &Trail<'_>,
        enough: usize,
    ) -> (usize, usize, usize) {
        let (mut matches, mut best, mut points) = (0, 0, None);
        for (at, schema) in schemas.iter().enumerate() {
            let mut quiet = Report { base: self.base, quiet: true, count: 0, errors: Vec::new() };
            let score = quiet.plain(value, schema, None, trail);
            if quiet.count == 0 {
                matches += 1;
                if matches == 1 {
                    (best, points) = (at, Some(score));
                }
                if matches >= enough {
                    break;
                }
            } else if matches == 0 && points.is_none_or(|points| score > points) {
                (best, points) = (at, Some(score));
            }
        }
        (matches, best, points.unwrap_or_default())
    }

    /// Adds the complaints of a nested schema, but none twice.
    fn explain(&mut self, value: &Value, schema: &Schema, trail: &Trail<'_>) -> usize {
        let start = self.errors.len();
        let score = self.plain(value, schema, None, trail);
        let mut at = start;
        while at < self.errors.len() {
            if self.errors[..start].contains(&self.errors[at]) { drop(self.errors.remove(at)) } else { at += 1 }
        }
        score
    }
}

fn below(base: &FieldPath, name: &str) -> FieldPath {
    if name.is_empty() { base.clone() } else { base.child(name) }
}

fn below_bound(whole: Option<i64>, float: f64, bound: f64, exclusive: bool) -> bool {
    match whole {
        // Both exact: as numbers with a fraction large ones would run together.
        Some(whole) if bound.abs() < 9.0e18 => {
            let bound = bound as i64;
            whole < bound || (exclusive && whole == bound)
        }
        _ => float < bound || (exclusive && float == bound),
    }
}

fn is_whole(number: &Number) -> bool {
    !number.is_f64() || number.as_f64().is_some_and(is_whole_float)
}

/// Whether a number is whole, within what a number can tell apart; beyond 2^53 nothing is.
fn is_whole_float(float: f64) -> bool {
    if !float.is_finite() || float.abs() > 9_007_199_254_740_991.0 {
        return false;
    }
    let whole = float.trunc();
    float == whole || (float - whole).abs() / (float.abs() + whole.abs()) < 1e-9
}

/// Numbers without a fraction are shown without one.
fn shown(number: &Number) -> Value {
    match number.as_f64() {
        Some(value) if number.is_f64() && value.abs() < 1e6 => float(value),
        _ => number.clone().into(),
    }
}

fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        // The original turns the value into the type of the enumerated one, which cuts fractions off.
        (Value::Number(one), Value::Number(other)) => match (one.as_i64(), other.as_f64()) {
            (Some(one), Some(float)) if other.is_f64() => one == float as i64,
            _ => one == other || one.as_f64() == other.as_f64(),
        },
        _ => one == other,
    }
}

/// A number as Go prints it: large and small ones with an exponent of at least two digits.
fn go_float(value: f64) -> String {
    let exponent = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
    if (-4..21).contains(&exponent) && exponent < 6 || value == 0.0 {
        return float(value).to_string();
    }
    let text = format!("{value:e}");
    match text.split_once('e') {
        Some((mantissa, exponent)) => {
            let exponent: i32 = exponent.parse().unwrap_or_default();
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{mantissa}e{sign}{:02}", exponent.abs())
        }
        None => text,
    }
}
