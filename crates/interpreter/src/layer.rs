//! Customisations of kinds, ready to be asked.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use atoll_api::config::ResourceInterpreterCustomization;
use serde_json::Value;

use crate::lua::{Pool, Script};
use crate::{Error, ObjectRef, Operation};

/// A script, or why it cannot be one. The error is kept: a broken script must not let the
/// next layer answer instead.
pub type Hook = Result<Script, Error>;

/// The scripts of one kind.
#[derive(Default)]
struct Hooks {
    /// The first script for each operation.
    single: HashMap<Operation, Hook>,
    /// All scripts that name dependencies.
    dependencies: Vec<Hook>,
}

/// Customisations of one origin; never changed once made.
#[derive(Default)]
pub struct Layer {
    /// By group and version, then by kind.
    kinds: HashMap<String, HashMap<String, Hooks>>,
    pool: Pool,
    scripts: usize,
}

impl Layer {
    /// Adds a script.
    pub fn add(&mut self, api_version: &str, kind: &str, operation: Operation, source: &str) -> Result<(), Error> {
        let checked = self.pool.check(source);
        let script = Script { id: self.scripts, source: Arc::from(source) };
        self.scripts += 1;
        let hook = checked.clone().map(|()| script);
        let kinds = self.kinds.entry(api_version.to_owned()).or_default();
        let hooks = kinds.entry(kind.to_owned()).or_default();
        if operation == Operation::Dependencies {
            hooks.dependencies.push(hook);
        } else {
            hooks.single.entry(operation).or_insert(hook);
        }
        checked
    }

    /// The layer of these customisations. Of two for one thing the first by name counts.
    pub fn of(mut list: Vec<ResourceInterpreterCustomization>) -> (Layer, Vec<(String, Error)>) {
        let name = |custom: &ResourceInterpreterCustomization| custom.metadata.name.clone().unwrap_or_default();
        list.sort_by_key(name);
        let (mut layer, mut errors) = (Layer::default(), Vec::new());
        for custom in &list {
            let target = &custom.spec.target;
            for operation in Operation::ALL {
                let Some(source) = operation.script(&custom.spec.customizations) else { continue };
                if let Err(error) = layer.add(&target.api_version, &target.kind, operation, source) {
                    errors.push((name(custom), error));
                }
            }
        }
        (layer, errors)
    }

    fn hooks(&self, api_version: &str, kind: &str) -> Option<&Hooks> {
        self.kinds.get(api_version)?.get(kind)
    }

    /// Whether there is a script for it.
    pub fn handles(&self, api_version: &str, kind: &str, operation: Operation) -> bool {
        self.hooks(api_version, kind).is_some_and(|hooks| match operation {
            Operation::Dependencies => !hooks.dependencies.is_empty(),
            other => hooks.single.contains_key(&other),
        })
    }

    /// The script for an operation on an object, and the machines to run it.
    pub fn find(&self, object: &Value, operation: Operation) -> Option<Result<(&Pool, &Script), Error>> {
        let hooks = self.hooks(object["apiVersion"].as_str()?, object["kind"].as_str()?)?;
        let hook = hooks.single.get(&operation)?;
        Some(hook.as_ref().map(|script| (&self.pool, script)).map_err(Clone::clone))
    }

    /// What all scripts together name as dependencies; `None` if there is no script.
    pub fn dependencies(&self, object: &Value) -> Option<Result<BTreeSet<ObjectRef>, Error>> {
        let hooks = self.hooks(object["apiVersion"].as_str()?, object["kind"].as_str()?)?;
        if hooks.dependencies.is_empty() {
            return None;
        }
        let mut all = BTreeSet::new();
        for hook in &hooks.dependencies {
            let found = hook.as_ref().map_err(Clone::clone).and_then(|script| self.pool.dependencies(script, object));
            match found {
                Ok(found) => all.extend(found),
                Err(error) => return Some(Err(error)),
            }
        }
        Some(Ok(all))
    }
}
