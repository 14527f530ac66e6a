//! The rules of a whole schema, and running them over an object.

use std::collections::BTreeMap;

use atoll_meta::{FieldError, FieldErrorKind, FieldPath};
use serde_json::{Value, json};

use super::{Answer, Cel, Expected, Failure, Program, Rules};
use crate::trail::Trail;
use crate::validate::{OldItems, unchanged};
use crate::{ListType, Rule, Schema, Type, fieldpath, statics};

/// What all rules of one object may cost together.
const PER_OBJECT: i64 = 10_000_000;
/// Messages made by expressions may not be longer.
const MAX_MESSAGE: usize = 5 * 1024;

/// The rules at and below one node; nodes without any have no tree.
#[derive(Debug, Default)]
pub(crate) struct RuleTree {
    pub(super) rules: Vec<Ready>,
    pub(super) properties: BTreeMap<Box<str>, RuleTree>,
    pub(super) additional: Option<Box<RuleTree>>,
    pub(super) items: Option<Box<RuleTree>>,
}

/// A rule ready to run.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) program: Program,
    pub(super) message: Option<Program>,
    uses_old: bool,
    field_path: String,
}

/// Compiles all rules of a CRD version, adding a complaint for each that makes no sense.
pub(crate) fn compile(schema: &Schema, path: &FieldPath, errors: &mut Vec<FieldError>) -> Option<RuleTree> {
    compile_node(schema, true, None, path, errors)
}

fn compile_node(
    schema: &Schema,
    resource: bool,
    lost: Option<&FieldPath>,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) -> Option<RuleTree> {
    let mut tree = RuleTree::default();
    for (at, rule) in schema.limits.iter().flat_map(|limits| &limits.rules).enumerate() {
        let path = path.child("x-kubernetes-validations").index(at);
        tree.rules.extend(compile_rule(rule, schema, resource, lost, &path, errors));
    }
    for (name, property) in &schema.properties {
        let path = path.child("properties").key(name);
        if let Some(child) = compile_node(property, property.embedded_resource, lost, &path, errors) {
            tree.properties.insert(name.clone(), child);
        }
    }
    if let Some(values) = schema.additional.as_deref() {
        let path = path.child("additionalProperties");
        tree.additional = compile_node(values, values.embedded_resource, lost, &path, errors).map(Box::new);
    }
    if let Some(items) = schema.items.as_deref() {
        // In a list without keys nobody can tell what became of an old element.
        let below = if schema.list_type == Some(ListType::Map) { lost } else { lost.or(Some(path)) };
        tree.items = compile_node(items, items.embedded_resource, below, &path.child("items"), errors).map(Box::new);
    }
    let empty =
        tree.rules.is_empty() && tree.properties.is_empty() && tree.additional.is_none() && tree.items.is_none();
    (!empty).then_some(tree)
}

fn compile_rule(
    rule: &Rule,
    schema: &Schema,
    resource: bool,
    lost: Option<&FieldPath>,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) -> Option<Ready> {
    let shown = || json!({"Rule": rule.rule, "Message": rule.message, "MessageExpression": rule.message_expression});
    let optional = rule.optional_old_self;
    let program = match Cel.compile(&rule.rule, schema, resource, optional, Expected::Bool) {
        Ok(program) => program,
        Err(why) => {
            errors.push(FieldError::invalid(path.child("rule"), shown(), why));
            return None;
        }
    };
    let mut message = None;
    if !rule.message_expression.is_empty() {
        match Cel.compile(&rule.message_expression, schema, resource, optional, Expected::Text) {
            Ok(program) => message = Some(program),
            Err(why) => {
                let why = why.replacen("compilation failed", "messageExpression compilation failed", 1);
                errors.push(FieldError::invalid(path.child("messageExpression"), shown(), why));
            }
        }
    }
    let uses_old = Cel.uses_old(&program);
    if let Some(lost) = lost.filter(|_| uses_old) {
        let what = format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {lost}");
        errors.push(FieldError::invalid(path.child("rule"), rule.rule.as_str(), what));
    }
    if optional && !uses_old {
        let what = "may not be set if oldSelf is not used in rule";
        errors.push(FieldError::invalid(path.child("optionalOldSelf"), true, what));
    }
    let field_path = fieldpath::normalise(&rule.field_path, schema).unwrap_or_default();
    Some(Ready { program, message, uses_old, field_path })
}

/// Defaults must pass the rules of their own node, as a new value and as an unchanged one.
pub(crate) fn check_defaults(tree: &RuleTree, schema: &Schema, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let resource = schema.embedded_resource;
    if let Some(default) = &schema.default {
        let at = path.child("default");
        let mut found = walk_all(tree, schema, default, Some(default), resource, &at, false).errors;
        if found.is_empty() {
            found = walk_all(tree, schema, default, None, resource, &at, false).errors;
        }
        errors.append(&mut found);
    }
    for (name, child) in &tree.properties {
        if let Some(property) = schema.properties.get(name) {
            check_defaults(child, property, &path.child("properties").key(name), errors);
        }
    }
    if let (Some(child), Some(items)) = (&tree.items, schema.items.as_deref()) {
        check_defaults(child, items, &path.child("items"), errors);
    }
}

/// Runs all rules over an object: what is wrong, and what is forgiven because it was so before.
pub(crate) fn run(tree: &RuleTree, schema: &Schema, value: &Value, old: Option<&Value>) -> [Vec<FieldError>; 2] {
    let walk = walk_all(tree, schema, value, old, true, &FieldPath::root(), true);
    [walk.errors, walk.forgiven]
}

fn walk_all(
    tree: &RuleTree,
    schema: &Schema,
    value: &Value,
    old: Option<&Value>,
    resource: bool,
    path: &FieldPath,
    forgives: bool,
) -> Walk {
    let mut walk = Walk { errors: Vec::new(), forgiven: Vec::new(), budget: PER_OBJECT };
    let start = Trail::Start(path.as_str());
    let before = Before { old, same: old.filter(|_| forgives), parent: None, root: true };
    walk.node(tree, schema, value, before, resource, &start);
    walk
}

/// What was there before.
#[derive(Copy, Clone)]
struct Before<'a> {
    /// For `oldSelf`.
    old: Option<&'a Value>,
    /// For forgiving what did not change.
    same: Option<&'a Value>,
    /// The next value above that can be compared: new, old and its schema.
    parent: Option<(&'a Value, &'a Value, &'a Schema)>,
    root: bool,
}

impl<'a> Before<'a> {
    fn below(self, value: &'a Value, schema: &'a Schema, old: Option<&'a Value>, same: Option<&'a Value>) -> Self {
        let parent = self.same.map(|same| (value, same, schema)).or(self.parent);
        Self { old, same: self.same.and(same), parent, root: false }
    }

    fn is_unchanged(&self, value: &Value, schema: &Schema) -> bool {
        match (self.same, self.parent) {
            (Some(same), _) => unchanged(value, same, schema),
            (None, Some((value, old, schema))) => unchanged(value, old, schema),
            (None, None) => false,
        }
    }
}

/// Evaluation has cost too much: no more rules are run.
struct Stop;

struct Walk {
    errors: Vec<FieldError>,
    forgiven: Vec<FieldError>,
    budget: i64,
}

impl Walk {
    fn node<'a>(
        &mut self,
        tree: &RuleTree,
        schema: &'a Schema,
        value: &'a Value,
        before: Before<'a>,
        resource: bool,
        trail: &Trail<'_>,
    ) -> Option<Stop> {
        if value.is_null() {
            return None;
        }
        if !tree.rules.is_empty() && self.rules(tree, schema, value, before, resource, trail).is_some() {
            return Some(Stop);
        }
        match value {
            Value::Array(items) => {
                let (child, element) = (tree.items.as_deref()?, schema.items.as_deref()?);
                let (olds, sames) = (OldItems::new(before.old, schema), OldItems::new(before.same, schema));
                for (at, item) in items.iter().enumerate() {
                    let below = before.below(value, schema, olds.of(item), sames.of(item));
                    let trail = Trail::Index(trail, at);
                    if self.node(child, element, item, below, element.embedded_resource, &trail).is_some() {
                        return Some(Stop);
                    }
                }
            }
            Value::Object(map) => {
                for (key, item) in map {
                    let old = before.old.and_then(|old| old.get(key));
                    let hidden = before.root && matches!(key.as_str(), "apiVersion" | "kind");
                    let same = before.same.filter(|_| !hidden).and_then(|same| same.get(key));
                    let below = before.below(value, schema, old, same);
                    let found = if let (Some(child), Some(values)) =
                        (tree.additional.as_deref(), schema.additional.as_deref())
                    {
                        Some((child, values, Trail::Key(trail, key)))
                    } else {
                        let child = tree.properties.get(key.as_str()).zip(schema.properties.get(key.as_str()));
                        child.map(|(child, property)| (child, property, Trail::Field(trail, key)))
                    };
                    if let Some((child, property, trail)) = found
                        && self.node(child, property, item, below, property.embedded_resource, &trail).is_some()
                    {
                        return Some(Stop);
                    }
                }
            }
            _ => {}
        }
        None
    }

    fn rules(
        &mut self,
        tree: &RuleTree,
        schema: &Schema,
        value: &Value,
        before: Before<'_>,
        resource: bool,
        trail: &Trail<'_>,
    ) -> Option<Stop> {
        let wants_old = tree.rules.iter().any(|ready| ready.uses_old);
        let bound = Cel.bind(value, before.old, wants_old, schema, resource);
        let kind = statics::type_name(schema);
        let rules = schema.limits.iter().flat_map(|limits| &limits.rules);
        for (ready, rule) in tree.rules.iter().zip(rules) {
            if ready.uses_old && before.old.is_none() && !rule.optional_old_self {
                continue;
            }
            let fail = |what: String| FieldError::invalid(trail.bracketed(), kind, what);
            match Cel.eval(&ready.program, &bound, rule.optional_old_self, &mut self.budget) {
                Ok(Answer::Bool(true)) => {}
                Ok(Answer::Bool(false)) => {
                    let error = self.complaint(ready, rule, schema, value, &bound, trail);
                    let forgiven = !ready.uses_old && before.is_unchanged(value, schema);
                    if forgiven { &mut self.forgiven } else { &mut self.errors }.push(error);
                }
                Ok(_) => self.errors.push(fail(format!("rule did not yield a bool evaluating rule: {}", name(rule)))),
                Err(Failure::Error(why)) if why == "no such overload" => self.errors.push(fail(format!(
                    "'{why}': call arguments did not match a supported operator, function or macro signature for rule: {}",
                    name(rule)
                ))),
                Err(Failure::Error(why)) => self.errors.push(fail(format!("{why} evaluating rule: {}", name(rule)))),
                Err(Failure::Cost) => {
                    self.errors.push(fail(format!(
                        "'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: {}",
                        name(rule)
                    )));
                    return Some(Stop);
                }
                Err(Failure::Budget) => {
                    let what = "validation failed due to running out of cost budget, no further validation rules will be run";
                    self.errors.push(fail(what.to_owned()));
                    return Some(Stop);
                }
            }
        }
        None
    }

    fn complaint(
        &mut self,
        ready: &Ready,
        rule: &Rule,
        schema: &Schema,
        value: &Value,
        bound: &super::Bound,
        trail: &Trail<'_>,
    ) -> FieldError {
        let made = ready.message.as_ref().and_then(|program| {
            match Cel.eval(program, bound, rule.optional_old_self, &mut self.budget) {
                Ok(Answer::Text(text)) => Some(text.trim().to_owned()),
                _ => None,
            }
        });
        // A message that cannot be shown is as good as none.
        let made = made.filter(|text| !text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n'));
        let detail = made.unwrap_or_else(|| {
            if rule.message.is_empty() {
                format!("failed rule: {}", name(rule))
            } else {
                rule.message.trim().to_owned()
            }
        });
        let mut path = trail.bracketed();
        if !ready.field_path.is_empty() {
            path = path.child(&ready.field_path);
        }
        let shown = (!matches!(schema.ty, Type::Object | Type::Array)).then(|| value.clone());
        match rule.reason.as_str() {
            "FieldValueForbidden" => FieldError::forbidden(path, detail),
            "FieldValueRequired" => FieldError::required(path, detail),
            "FieldValueDuplicate" => {
                FieldError { path, kind: FieldErrorKind::Duplicate, value: shown, detail: String::new() }
            }
            _ => FieldError { path, kind: FieldErrorKind::Invalid, value: shown, detail },
        }
    }
}

/// What to call a rule: its message, or itself.
fn name(rule: &Rule) -> &str {
    if rule.message.is_empty() { rule.rule.trim() } else { rule.message.trim() }
}
