//! The module `kube` that scripts require.

use std::sync::Arc;

use atoll_api::work::ReplicaRequirements;
use atoll_meta::quantity::Quantity;
use mlua::{Error, Lua, MultiValue, Result, Table, Value as LuaValue};
use serde_json::Value;

use super::convert::Marks;
use crate::builtin::{pod_dependencies, try_requirements};

/// Makes the module.
pub fn module(lua: &Lua, marks: &Arc<Marks>) -> Result<Table> {
    let kube = lua.create_table()?;
    kube.raw_set("resourceAdd", lua.create_function(add)?)?;
    kube.raw_set("getResourceQuantity", lua.create_function(quantity)?)?;
    let own = Arc::clone(marks);
    let needs = lua.create_function(move |lua, args| pod_requirements(lua, &own, args))?;
    kube.raw_set("accuratePodRequirements", needs)?;
    let own = Arc::clone(marks);
    let refs = lua.create_function(move |lua, args| pod_references(lua, &own, args))?;
    kube.raw_set("getPodDependencies", refs)?;
    Ok(kube)
}

fn read_quantity(lua: &Lua, value: &LuaValue) -> Result<Quantity> {
    if value.is_nil() {
        return Ok(Quantity::ZERO);
    }
    let Some(text) = lua.coerce_string(value.clone())? else {
        return Err(Error::runtime(format!("quantity expected, got {}", value.type_name())));
    };
    let text = text.to_string_lossy();
    Quantity::parse(&text).map_err(|error| Error::runtime(format!("{text}: {error}")))
}

fn add(lua: &Lua, amounts: MultiValue) -> Result<String> {
    let mut sum = Quantity::ZERO;
    for amount in &amounts {
        let next = sum.checked_add(read_quantity(lua, amount)?);
        sum = next.ok_or_else(|| Error::runtime("quantity too large"))?;
    }
    Ok(sum.to_string())
}

fn quantity(lua: &Lua, amount: LuaValue) -> Result<f64> {
    let amount = read_quantity(lua, &amount)?;
    match amount.is_negative() {
        true => Err(Error::runtime(format!("{amount} is negative"))),
        false => Ok(amount.as_f64()),
    }
}

fn read_template(marks: &Marks, template: &LuaValue) -> Result<Value> {
    match template {
        LuaValue::Table(_) => {
            let read = marks.read(template, &[]).map_err(Error::runtime)?;
            Ok(read.unwrap_or(Value::Null))
        }
        other => Err(Error::runtime(format!("pod template expected, got {}", other.type_name()))),
    }
}

fn pod_requirements(lua: &Lua, marks: &Marks, template: LuaValue) -> Result<LuaValue> {
    let template = read_template(marks, &template)?;
    let needs = try_requirements(&template).map_err(|error| Error::runtime(error.to_string()))?;
    if needs.is_nothing() {
        return Ok(LuaValue::Nil);
    }
    write(lua, marks, &ReplicaRequirements::from(needs))
}

fn pod_references(lua: &Lua, marks: &Marks, args: (LuaValue, Option<String>)) -> Result<LuaValue> {
    let template = read_template(marks, &args.0)?;
    write(lua, marks, &pod_dependencies(&template, args.1.as_deref().unwrap_or("default")))
}

fn write(lua: &Lua, marks: &Marks, value: &impl serde::Serialize) -> Result<LuaValue> {
    let value = serde_json::to_value(value).map_err(|error| Error::runtime(error.to_string()))?;
    marks.write(lua, &value)
}
