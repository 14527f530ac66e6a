//! Machines that wait for calls, and the calls.

use std::collections::BTreeSet;

use atoll_api::work::{Component, ReplicaRequirements};
use mlua::Value as LuaValue;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::Script;
use super::sandbox::Vm;
use crate::status::Item;
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
                Some(LuaValue::Number(count)) if count.is_finite() => *count as i64,
                other => return Err(answer(function, "a number", other)),
            };
            let needs = match answers.get(1) {
                None | Some(LuaValue::Nil) => None,
                Some(table @ LuaValue::Table(_)) => {
                    let needs: ReplicaRequirements = parse(vm, function, table)?;
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
            list(vm, function, &answers)
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
            match vm.read(function, table, like)? {
                Some(made @ Value::Object(_)) => Ok(made),
                None => Ok(Value::Object(Map::new())),
                Some(_) => Err(Error::Answer { function, wanted: "an object", got: "a list".to_owned() }),
            }
        })
    }

    /// The template with the status that follows from those of members.
    pub fn aggregate(&self, script: &Script, template: &Value, items: &[Item<'_>]) -> Result<Value, Error> {
        let items = items.iter().map(|(member, status)| match status {
            Some(status) => json!({"clusterName": member, "status": status}),
            None => json!({"clusterName": member}),
        });
        let items = Value::Array(items.collect());
        self.object(script, Operation::Aggregate, &[template, &items], &[template])
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
    T::deserialize(value).map_err(|error| Error::Script { function, message: format!("its answer: {error}").into() })
}

fn answer(function: &'static str, wanted: &'static str, got: Option<&LuaValue>) -> Error {
    Error::Answer { function, wanted, got: got.map_or("nothing", LuaValue::type_name).to_owned() }
}
