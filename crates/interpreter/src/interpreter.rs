//! What resources mean, asked layer by layer.

use std::sync::Arc;

use atoll_api::config::ResourceInterpreterCustomization;
use atoll_api::work::Component;
use serde_json::Value;

use crate::builtin::{self, Kind};
use crate::layer::Layer;
use crate::lua::{Pool, Script};
use crate::status::Item;
use crate::{Error, Health, MemberStatus, ObjectRef, Operation, Requirements, thirdparty};

/// Knows what resources mean.
///
/// A customisation comes before what is known of other people's kinds, and that before the
/// built-in kinds. The first that has something to say answers, even if it fails.
/// An interpreter never changes; clones share everything.
#[derive(Clone)]
pub struct Interpreter {
    layers: [Arc<Layer>; 2],
}

impl Default for Interpreter {
    fn default() -> Self {
        Interpreter::new()
    }
}

impl Interpreter {
    /// Knows the built-in kinds and those of some well-known projects.
    pub fn new() -> Self {
        Interpreter { layers: [Arc::default(), thirdparty::layer()] }
    }

    /// The same with these customisations instead of earlier ones, and what is wrong with them.
    pub fn with_customizations<C: Customization>(&self, list: &[C]) -> (Self, Vec<(String, Error)>) {
        let (mut good, mut errors) = (Vec::new(), Vec::new());
        for custom in list {
            match custom.read() {
                Ok(custom) => good.push(custom),
                Err(error) => errors.push(error),
            }
        }
        let (layer, more) = Layer::of(good);
        errors.extend(more);
        let [_, known] = &self.layers;
        (Interpreter { layers: [Arc::new(layer), Arc::clone(known)] }, errors)
    }

    /// Whether something special is known for an operation on a kind.
    pub fn handles(&self, api_version: &str, kind: &str, operation: Operation) -> bool {
        self.layers.iter().any(|layer| layer.handles(api_version, kind, operation))
            || Kind::find(api_version, kind).is_some_and(|kind| kind.handles(operation))
    }

    /// The script that answers, if one does.
    fn script(&self, object: &Value, operation: Operation) -> Result<Option<(&Pool, &Script)>, Error> {
        self.layers.iter().find_map(|layer| layer.find(object, operation)).transpose()
    }

    /// How many replicas are wanted and what one needs; `None` for what runs nothing.
    pub fn replicas(&self, object: &Value) -> Result<Option<(i64, Option<Requirements>)>, Error> {
        match self.script(object, Operation::Replicas)? {
            Some((pool, script)) => pool.replicas(script, object).map(Some),
            None => builtin::replicas(object),
        }
    }

    /// The components of a workload with several pod templates; `None` for others.
    pub fn components(&self, object: &Value) -> Result<Option<Vec<Component>>, Error> {
        match self.script(object, Operation::Components)? {
            Some((pool, script)) => pool.components(script, object).map(Some),
            None => Ok(None),
        }
    }

    /// Sets the number of replicas.
    pub fn revise(&self, object: &mut Value, replicas: i64) -> Result<(), Error> {
        match self.script(object, Operation::Revise)? {
            Some((pool, script)) => {
                let count = Value::from(replicas);
                *object = pool.object(script, Operation::Revise, &[object, &count], &[object])?;
            }
            None => builtin::revise(object, replicas),
        }
        Ok(())
    }

    /// Takes over from the member's object what the member decides.
    pub fn retain(&self, desired: &mut Value, observed: &Value) -> Result<(), Error> {
        match self.script(desired, Operation::Retain)? {
            Some((pool, script)) => {
                *desired = pool.object(script, Operation::Retain, &[desired, observed], &[desired, observed])?;
            }
            None => builtin::retain(desired, observed),
        }
        Ok(())
    }

    /// The part of a member's object that says how it is.
    pub fn try_reflect(&self, object: &Value) -> Result<Option<Value>, Error> {
        match self.script(object, Operation::Reflect)? {
            Some((pool, script)) => pool.object(script, Operation::Reflect, &[object], &[&object["status"]]).map(Some),
            None => Ok(builtin::reflect(object)),
        }
    }

    /// As [`Interpreter::try_reflect`]; nothing if a script fails.
    pub fn reflect(&self, object: &Value) -> Option<Value> {
        self.try_reflect(object).ok().flatten()
    }

    /// Sets the template's status from those of the members; whether that changed it.
    pub fn try_aggregate<S: MemberStatus>(&self, template: &mut Value, items: &[(String, S)]) -> Result<bool, Error> {
        match self.script(template, Operation::Aggregate)? {
            Some((pool, script)) => {
                let items = Value::Array(items.iter().map(|(member, status)| status.item(member)).collect());
                let made = pool.object(script, Operation::Aggregate, &[template, &items], &[template])?;
                let changed = made != *template;
                *template = made;
                Ok(changed)
            }
            None => {
                let items: Vec<Item<'_>> =
                    items.iter().map(|(member, status)| (member.as_str(), status.status())).collect();
                Ok(builtin::aggregate(template, &items))
            }
        }
    }

    /// As [`Interpreter::try_aggregate`]; nothing changes if a script fails.
    pub fn aggregate<S: MemberStatus>(&self, template: &mut Value, items: &[(String, S)]) -> bool {
        self.try_aggregate(template, items).unwrap_or(false)
    }

    /// How a member's object is.
    pub fn try_health(&self, object: &Value) -> Result<Health, Error> {
        match self.script(object, Operation::Health)? {
            Some((pool, script)) => pool.health(script, object).map(Health::from),
            None => Ok(builtin::health(object)),
        }
    }

    /// As [`Interpreter::try_health`]; unknown if a script fails.
    pub fn health(&self, object: &Value) -> Health {
        self.try_health(object).unwrap_or(Health::Unknown)
    }

    /// The objects a template refers to, in order.
    pub fn try_dependencies(&self, object: &Value) -> Result<Vec<ObjectRef>, Error> {
        match self.layers.iter().find_map(|layer| layer.dependencies(object)) {
            Some(found) => Ok(found?.into_iter().collect()),
            None => Ok(builtin::dependencies(object)),
        }
    }

    /// As [`Interpreter::try_dependencies`]; nothing if a script fails.
    pub fn dependencies(&self, object: &Value) -> Vec<ObjectRef> {
        self.try_dependencies(object).unwrap_or_default()
    }
}

/// A customisation, as callers hold it.
pub trait Customization {
    /// The customisation, or its name and what is wrong with it.
    fn read(&self) -> Result<ResourceInterpreterCustomization, (String, Error)>;
}

impl Customization for ResourceInterpreterCustomization {
    fn read(&self) -> Result<ResourceInterpreterCustomization, (String, Error)> {
        Ok(self.clone())
    }
}

impl Customization for Value {
    fn read(&self) -> Result<ResourceInterpreterCustomization, (String, Error)> {
        serde::Deserialize::deserialize(self).map_err(|error: serde_json::Error| {
            let name = self["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            (name, Error::Shape(error.to_string()))
        })
    }
}

/// What is wrong with the scripts of a customisation, by operation.
pub fn check(custom: &ResourceInterpreterCustomization) -> Vec<(Operation, Error)> {
    let pool = Pool::default();
    let scripts = Operation::ALL.into_iter().filter_map(|operation| {
        let source = operation.script(&custom.spec.customizations)?;
        Some((operation, pool.check(source).err()?))
    });
    scripts.collect()
}
