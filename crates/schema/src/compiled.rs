//! A CRD version's schema, checked and ready, shared by all who have the same.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use atoll_meta::{FieldError, FieldErrorKind, FieldPath};
use parking_lot::Mutex;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::rules::{self, RuleTree};
use crate::{Schema, apply_defaults, check_structural, prune, validate};

/// The content of a schema in 32 bytes.
pub type Hash = [u8; 32];

/// A schema with all its rules compiled. Prose is left out: it is published from the CRD itself.
#[derive(Debug)]
pub struct Compiled {
    schema: Schema,
    rules: Option<RuleTree>,
    hash: Hash,
}

impl Compiled {
    /// Checks and compiles the schema of a CRD version; complaints are relative to the schema.
    pub fn new(schema_json: &Value) -> Result<Arc<Self>, Vec<FieldError>> {
        Self::at(schema_json, &FieldPath::root())
    }

    /// Like [`Compiled::new`] for a schema that stands at a path of a CRD.
    pub fn at(schema_json: &Value, path: &FieldPath) -> Result<Arc<Self>, Vec<FieldError>> {
        let mut schema =
            Schema::from_json(schema_json).map_err(|why| vec![FieldError::invalid(path.clone(), "", why)])?;
        let mut errors = check_structural(&schema, path);
        if !errors.is_empty() {
            return Err(errors);
        }
        let rules = rules::compile(&schema, path, &mut errors);
        if let Some(rules) = rules.as_ref().filter(|_| errors.is_empty()) {
            rules::check_defaults(rules, &schema, path, &mut errors);
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        drop_prose(&mut schema);
        Ok(Arc::new(Self { schema, rules, hash: hash(schema_json) }))
    }

    /// Complaints about rules that could cost too much, relative to `path`. Asked when a CRD is written only: one
    /// that was accepted once is served.
    pub fn check_costs(&self, path: &FieldPath) -> Vec<FieldError> {
        self.rules.as_ref().map(|rules| rules::check_costs(rules, &self.schema, path)).unwrap_or_default()
    }

    /// What the schema says, in 32 bytes.
    pub fn hash(&self) -> &Hash {
        &self.hash
    }

    /// The schema without prose.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Whether any rules are to be run.
    pub fn has_rules(&self) -> bool {
        self.rules.is_some()
    }

    /// Removes what the schema does not know from an object and returns the paths.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        prune(object, &self.schema, true)
    }

    /// Fills in defaults and removes nulls that are no values.
    pub fn default(&self, object: &mut Value) {
        apply_defaults(object, &self.schema);
    }

    /// Checks an object, on update with its old state: schema, embedded objects, lists, rules.
    pub fn validate(&self, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
        self.check(new, old, |_| {})
    }

    /// Like [`Compiled::validate`]; also tells which rules are broken by what did not change.
    pub fn check(&self, new: &Value, old: Option<&Value>, mut forgiven: impl FnMut(&FieldError)) -> Vec<FieldError> {
        let mut errors = validate(new, &self.schema, old, &FieldPath::root());
        let Some(rules) = &self.rules else { return errors };
        // Rules may rely on the schema; they are not asked about objects that break it.
        let blocking = |error: &FieldError| {
            use FieldErrorKind::{NotSupported, Required, TooLong, TooMany, TypeInvalid};
            matches!(error.kind, NotSupported | Required | TooLong | TooMany | TypeInvalid)
        };
        if errors.iter().any(blocking) {
            let what = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
            errors.push(FieldError::invalid(FieldPath::root(), Value::Null, what));
        } else {
            let [wrong, before] = rules::run(rules, &self.schema, new, old);
            errors.extend(wrong);
            before.iter().for_each(&mut forgiven);
        }
        errors
    }
}

fn hash(schema_json: &Value) -> Hash {
    Sha256::digest(schema_json.to_string().as_bytes()).into()
}

fn drop_prose(schema: &mut Schema) {
    schema.description = None;
    schema.extra = None;
    let limits = schema.limits.as_deref_mut();
    let combined = limits.into_iter().flat_map(|limits| {
        let own = limits.all_of.iter_mut().chain(&mut limits.any_of).chain(&mut limits.one_of);
        own.chain(limits.not.as_deref_mut())
    });
    let own = schema.properties.values_mut().chain(schema.additional.as_deref_mut()).chain(schema.items.as_deref_mut());
    own.chain(combined).for_each(drop_prose);
}

/// Gives out the same compiled schema for the same content.
///
/// It holds no schema itself: one that no CRD uses any more is gone.
#[derive(Debug, Default)]
pub struct Interner {
    by_hash: Mutex<HashMap<Hash, Weak<Compiled>>>,
}

impl Interner {
    /// The compiled schema, compiled only if nobody has it yet.
    pub fn compile(&self, schema_json: &Value, path: &FieldPath) -> Result<Arc<Compiled>, Vec<FieldError>> {
        let hash = hash(schema_json);
        if let Some(known) = self.by_hash.lock().get(&hash).and_then(Weak::upgrade) {
            return Ok(known);
        }
        let fresh = Compiled::at(schema_json, path)?;
        let mut by_hash = self.by_hash.lock();
        // Somebody else may have been faster; then theirs is the one.
        if let Some(known) = by_hash.get(&hash).and_then(Weak::upgrade) {
            return Ok(known);
        }
        if by_hash.len() >= 64 && by_hash.len().is_power_of_two() {
            by_hash.retain(|_, weak| weak.strong_count() > 0);
        }
        by_hash.insert(hash, Arc::downgrade(&fresh));
        Ok(fresh)
    }

    /// How many schemas are in use.
    pub fn live(&self) -> usize {
        self.by_hash.lock().values().filter(|weak| weak.strong_count() > 0).count()
    }
}
