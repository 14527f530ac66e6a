//! Machines that wait for calls, and the calls.

use std::collections::{BTreeMap, BTreeSet};

use atoll_api::Quantity;
use atoll_api::work::{Component, ReplicaRequirements};
use atoll_meta::quantity::Quantity as Amount;
use mlua::Value as LuaValue;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::Script;
use super::sandbox::Vm;
use crate::{Error, ObjectRef, Operation, Requirements};

/// How many machines wait at most.
const WAITING: usize = 8;

/// Machines that wait for calls.
#[derive(Default)]
pub struct Pool {
    waiting: Mutex<Vec<Vm>>,
}

impl Pool {
    /// Whether a text is a script.
    pub fn check(&self, source: &str) -> Result<(), Error> {
        self.with(|vm| vm.compile(source).map(|_| ()))
    }

    fn with<T>(&self, body: impl FnOnce(&mut Vm) -> Result<T, Error>) -> Result<T, Error> {
        let waiting = self.waiting.lock().pop();
        let mut vm = match waiting {
            Some(vm) => vm,
            None => Vm::new().map_err(|error| Error::Shape(format!("cannot run scripts: {error}")))?,
        };
        let answer = body(&mut vm);
        // One that failed may be in any state; a new one costs little.
        let mut waiting = self.waiting.lock();
        if answer.is_ok() && vm.is_light() && waiting.len() < WAITING {
            waiting.push(vm);
        }
        answer
    }

    /// How many replicas are wanted and what one needs.
    pub fn replicas(&self, script: &Script, object: &Value) -> Result<(i64, Option<Requirements>), Error> {
        let function = Operation::Replicas.function();
        self.with(|vm| {
            let answers = vm.call(script, function, &[object])?;
            let replicas = match answers.first() {
                Some(LuaValue::Integer(count)) => *count,
                // Whole, as everywhere; what no replica count can be is none.
                Some(LuaValue::Number(count)) if count.abs() <= f64::from(i32::MAX) => *count as i64,
                other => return Err(answer(function, "a number", other)),
            };
            let needs = match answers.get(1) {
                None | Some(LuaValue::Nil) => None,
                Some(table @ LuaValue::Table(_)) => {
                    let mut needs: ReplicaRequirements = parse(vm, function, table)?;
                    amounts(function, &mut needs.resource_request)?;
                    Some(needs.into())
                }
                other => return Err(answer(function, "a table", other)),
            };
            Ok((replicas, needs))
        })
    }

    /// The components and what each needs.
    pub fn components(&self, script: &Script, object: &Value) -> Result<Vec<Component>, Error> {
        let function = Operation::Components.function();
        self.with(|vm| {
            let answers = vm.call(script, function, &[object])?;
            if let None | Some(LuaValue::Nil) = answers.first() {
                return Ok(Vec::new());
            }
            let mut found: Vec<Value> = list(vm, function, &answers)?;
            for component in found.iter_mut().filter_map(Value::as_object_mut) {
                component.entry("name").or_insert_with(|| "".into());
                component.entry("replicas").or_insert_with(|| 0.into());
            }
            let mut found: Vec<Component> = typed(function, Value::Array(found))?;
            for needs in found.iter_mut().filter_map(|component| component.replica_requirements.as_mut()) {
                amounts(function, &mut needs.resource_request)?;
            }
            Ok(found)
        })
    }

    /// The object that a function of a script makes of one.
    pub fn object(
        &self,
        script: &Script,
        operation: Operation,
        args: &[&Value],
        like: &[&Value],
    ) -> Result<Value, Error> {
        let function = operation.function();
        self.with(|vm| {
            let answers = vm.call(script, function, args)?;
            let Some(table @ LuaValue::Table(_)) = answers.first() else {
                return Err(answer(function, "a table", answers.first()));
            };
            match vm.read(function, table, like)?.unwrap_or_else(|| Value::Object(Map::new())) {
                // A status is no object, all else is.
                made @ Value::Object(_) if operation == Operation::Reflect || is_object(&made) => Ok(made),
                Value::Object(_) => {
                    let got = "one without a kind or with wrong metadata".to_owned();
                    Err(Error::Answer { function, wanted: "an object", got })
                }
                _ => Err(Error::Answer { function, wanted: "an object", got: "a list".to_owned() }),
            }
        })
    }

    /// Whether an object works.
    pub fn health(&self, script: &Script, object: &Value) -> Result<bool, Error> {
        let function = Operation::Health.function();
        self.with(|vm| match vm.call(script, function, &[object])?.first() {
            Some(LuaValue::Boolean(healthy)) => Ok(*healthy),
            other => Err(answer(function, "true or false", other)),
        })
    }

    /// The objects a template refers to.
    pub fn dependencies(&self, script: &Script, object: &Value) -> Result<BTreeSet<ObjectRef>, Error> {
        let function = Operation::Dependencies.function();
        let found: Vec<ObjectRef> = self.with(|vm| {
            let answers = vm.call(script, function, &[object])?;
            list(vm, function, &answers)
        })?;
        found.iter().try_for_each(ObjectRef::check)?;
        Ok(found.into_iter().collect())
    }
}

fn list<T: DeserializeOwned>(vm: &Vm, function: &'static str, answers: &[LuaValue]) -> Result<Vec<T>, Error> {
    match answers.first() {
        Some(LuaValue::Table(table)) if table.is_empty() => Ok(Vec::new()),
        Some(table @ LuaValue::Table(_)) => parse(vm, function, table),
        other => Err(answer(function, "a table", other)),
    }
}

fn parse<T: DeserializeOwned>(vm: &Vm, function: &'static str, table: &LuaValue) -> Result<T, Error> {
    let value = vm.read(function, table, &[])?.unwrap_or_else(|| Value::Object(Map::new()));
    typed(function, value)
}

fn typed<T: DeserializeOwned>(function: &'static str, value: Value) -> Result<T, Error> {
    T::deserialize(value).map_err(|error| Error::Script { function, message: format!("its answer: {error}").into() })
}

/// Writes each amount in one way, so that equal needs give equal bindings.
fn amounts(function: &'static str, requests: &mut BTreeMap<String, Quantity>) -> Result<(), Error> {
    for (name, amount) in requests {
        let wrong =
            |error| Error::Script { function, message: format!("its answer: amount of {name}: {error}").into() };
        amount.0 = Amount::parse(&amount.0).map_err(wrong)?.to_string();
    }
    Ok(())
}

/// Whether something can be an object of Kubernetes, as far as what is done with it next needs it.
fn is_object(made: &Value) -> bool {
    made["kind"].is_string() && (made["metadata"].is_object() || made["metadata"].is_null())
}

fn answer(function: &'static str, wanted: &'static str, got: Option<&LuaValue>) -> Error {
    Error::Answer { function, wanted, got: got.map_or("nothing", LuaValue::type_name).to_owned() }
}
