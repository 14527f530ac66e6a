//! The table of built-in kinds: what it is made from and how it is written.
//!
//! The format is line based, so that a change of the upstream release reads as a diff:
//!
//! ```text
//! pkg 3 io.k8s.api.apps.v1
//! group apps v1
//! kind apps v1 Deployment DeploymentList deployments deployment ns deploy all create,get @3.Deployment HASH
//! sub scale autoscaling v1 Scale get,patch,update
//! type @3.DeploymentSpec object gvk=apps/v1/Deployment map=atomic required=selector,template
//! f replicas int32 po #1
//! i @4.PodSpec #2
//! ```
//!
//! `f` is a field: name, type (`[]` list of, `{}` map of, `@` named type, trailing `~` the
//! type's zero value is the default), how Go holds it, protobuf number, attributes. `i` is a
//! message whose fields stand in its parent's JSON object.

mod discovery;
mod types;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

/// Reads the description and writes the table.
pub(crate) fn write(from: &Path, fields: &Path, to: &Path) -> Result<()> {
    let packages = Packages::default();
    let mut out = String::from("# The built-in kinds. Written by `cargo run -p xtask -- tables`; do not edit.\n");
    let types = types::Source::read(from, fields)?;
    let mut body = String::new();
    let mut packages = types.write(packages, &mut body)?;
    let mut kinds = String::new();
    discovery::write(from, &types, &mut packages, &mut kinds)?;
    for (name, number) in &packages.numbers {
        writeln!(out, "pkg {number} {name}")?;
    }
    out.push_str(&kinds);
    out.push_str(&body);
    std::fs::write(to, &out).with_context(|| format!("write {}", to.display()))?;
    println!("{}: {} bytes", to.display(), out.len());
    Ok(())
}

/// Short numbers for the packages that prefix type names.
#[derive(Default)]
pub(crate) struct Packages {
    numbers: BTreeMap<String, usize>,
}

impl Packages {
    /// `@3.Pod` for `io.k8s.api.core.v1.Pod`.
    fn short(&mut self, name: &str) -> String {
        let (package, kind) = name.rsplit_once('.').unwrap_or(("", name));
        let next = self.numbers.len();
        let number = *self.numbers.entry(package.to_owned()).or_insert(next);
        format!("@{number}.{kind}")
    }
}

/// Parses one JSON file.
fn read_json(path: &Path) -> Result<Value> {
    let text = std::fs::read(path).with_context(|| format!("read {}", path.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("parse {}", path.display()))
}

/// The string at a key, or "".
fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The strings of a list at a key, joined by commas; `-` for none.
fn joined(value: &Value, key: &str) -> String {
    let list: Vec<&str> =
        value.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    if list.is_empty() { "-".to_owned() } else { list.join(",") }
}
