//! Named types from the OpenAPI documents, joined with the protobuf numbers and the Go facts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::{Packages, joined, read_json, text};

/// Types whose JSON form is not that of their message; the codec treats them by name.
const SPECIAL: [&str; 11] = [
    "io.k8s.apimachinery.pkg.api.resource.Quantity",
    "io.k8s.apimachinery.pkg.api.resource.QuantityValue",
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time",
    "io.k8s.apimachinery.pkg.runtime.RawExtension",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray",
];

/// One field of a protobuf message.
struct ProtoField {
    number: u64,
    name: String,
    ty: String,
}

/// Everything known about the named types.
pub(crate) struct Source {
    schemas: BTreeMap<String, Value>,
    messages: BTreeMap<String, Vec<ProtoField>>,
    /// Type name → field → flags.
    go: BTreeMap<String, BTreeMap<String, String>>,
    gvks: BTreeMap<(String, String, String), String>,
}

impl Source {
    /// Reads the OpenAPI documents, the protobuf fields and the Go facts.
    pub(crate) fn read(from: &Path, fields: &Path) -> Result<Self> {
        let schemas = read_schemas(&from.join("openapi-v3"))?;
        let served: BTreeSet<&str> = schemas.keys().filter_map(|n| n.rsplit_once('.')).map(|(p, _)| p).collect();
        let messages = read_messages(&from.join("protobuf-fields.json"), &served)?;
        let mut gvks = BTreeMap::new();
        for (name, schema) in &schemas {
            for gvk in gvks_of(schema) {
                // Shared types (options, Status) claim many kinds; a kind's own type claims one.
                gvks.entry((text(gvk, "group").into(), text(gvk, "version").into(), text(gvk, "kind").into()))
                    .or_insert_with(|| name.clone());
            }
        }
        Ok(Self { schemas, messages, go: read_go(fields)?, gvks })
    }

    /// The type of a kind.
    pub(crate) fn by_gvk(&self, group: &str, version: &str, kind: &str) -> Option<&str> {
        self.gvks.get(&(group.into(), version.into(), kind.into())).map(String::as_str)
    }

    /// Writes the `type`, `f` and `i` lines.
    pub(crate) fn write(&self, mut packages: Packages, out: &mut String) -> Result<Packages> {
        let names: BTreeSet<&String> = self.schemas.keys().chain(self.messages.keys()).collect();
        for name in names {
            match self.schemas.get(name) {
                Some(schema) => self.write_schema(name, schema, &mut packages, out)?,
                None => self.write_message(name, &mut packages, out)?,
            }
        }
        Ok(packages)
    }

    fn write_schema(&self, name: &str, schema: &Value, packages: &mut Packages, out: &mut String) -> Result<()> {
        let base = if SPECIAL.contains(&name) { "special" } else { leaf(schema, packages)?.0 };
        write!(out, "type {} {}", packages.short(name), if base.is_empty() { "any" } else { base })?;
        if schema["x-kubernetes-map-type"] == "atomic" {
            out.push_str(" map=atomic");
        }
        for gvk in gvks_of(schema) {
            write!(out, " gvk={}/{}/{}", text(gvk, "group"), text(gvk, "version"), text(gvk, "kind"))?;
        }
        if let Some(unions) = schema.get("x-kubernetes-unions") {
            write!(out, " unions={unions}")?;
        }
        match joined(schema, "required") {
            none if none == "-" => {}
            names => write!(out, " required={names}")?,
        }
        out.push('\n');
        if SPECIAL.contains(&name) {
            return Ok(());
        }
        let mut numbers = self.numbers(name, schema, packages, out)?;
        for (field, property) in schema["properties"].as_object().into_iter().flatten() {
            write!(out, "f {field} {} {}", expression(property, packages)?, self.flags(name, field))?;
            if let Some(proto) = numbers.remove(field.as_str()) {
                write!(out, " #{}", proto.number)?;
                check(name, field, property, &proto.ty, out)?;
            }
            write_attributes(property, out)?;
            out.push('\n');
        }
        ensure!(numbers.is_empty(), "{name}: protobuf fields without a place: {:?}", numbers.keys());
        Ok(())
    }

    /// Protobuf fields by JSON name; fields that are inlined are written out as `i` lines.
    fn numbers<'a>(
        &'a self,
        name: &str,
        schema: &'a Value,
        packages: &mut Packages,
        out: &mut String,
    ) -> Result<BTreeMap<&'a str, &'a ProtoField>> {
        let mut numbers = BTreeMap::new();
        let properties = schema["properties"].as_object();
        for proto in self.messages.get(name).into_iter().flatten() {
            let property = properties.and_then(|all| all.keys().find(|key| same_field(key, &proto.name)));
            match property {
                Some(property) => {
                    numbers.insert(property.as_str(), proto);
                }
                None if self.messages.contains_key(&proto.ty) => {
                    writeln!(out, "i {} #{}", packages.short(&proto.ty), proto.number)?
                }
                None => bail!("{name}: no JSON field for {}", proto.name),
            }
        }
        Ok(numbers)
    }

    /// A message that no document describes: options, partial objects, inlined parts.
    fn write_message(&self, name: &str, packages: &mut Packages, out: &mut String) -> Result<()> {
        let base = if SPECIAL.contains(&name) { "special" } else { "object" };
        writeln!(out, "type {} {base}", packages.short(name))?;
        if SPECIAL.contains(&name) {
            return Ok(());
        }
        let go = self.go.get(name);
        for proto in &self.messages[name] {
            let json = go.and_then(|all| all.keys().find(|key| same_field(key, &proto.name)));
            let Some(json) = json else {
                if go.is_some() && self.messages.contains_key(&proto.ty) {
                    writeln!(out, "i {} #{}", packages.short(&proto.ty), proto.number)?;
                    continue;
                }
                writeln!(out, "f {} {} - #{}", proto.name, proto_expression(&proto.ty, packages)?, proto.number)?;
                continue;
            };
            writeln!(
                out,
                "f {json} {} {} #{}",
                proto_expression(&proto.ty, packages)?,
                self.flags(name, json),
                proto.number
            )?;
        }
        Ok(())
    }

    fn flags(&self, name: &str, field: &str) -> &str {
        self.go.get(name).and_then(|fields| fields.get(field)).map_or("-", String::as_str)
    }
}

/// Whether a JSON field and a protobuf field are the same: generated protobuf names lower the
/// first letter of the Go name and cannot hold dashes or a dollar sign.
fn same_field(json: &str, proto: &str) -> bool {
    let plain =
        |text: &str| text.chars().filter(|c| c.is_ascii_alphanumeric()).collect::<String>().to_ascii_lowercase();
    plain(json) == plain(proto)
}

fn gvks_of(schema: &Value) -> impl Iterator<Item = &Value> {
    schema["x-kubernetes-group-version-kind"].as_array().into_iter().flatten()
}

fn read_schemas(dir: &Path) -> Result<BTreeMap<String, Value>> {
    let mut schemas = BTreeMap::new();
    for entry in std::fs::read_dir(dir).with_context(|| format!("read {}", dir.display()))? {
        let mut document = read_json(&entry?.path())?;
        if let Some(all) = document.pointer_mut("/components/schemas").and_then(Value::as_object_mut) {
            schemas.extend(std::mem::take(all));
        }
    }
    Ok(schemas)
}

fn read_messages(path: &Path, served: &BTreeSet<&str>) -> Result<BTreeMap<String, Vec<ProtoField>>> {
    let mut messages = BTreeMap::new();
    for (name, fields) in read_json(path)?.as_object().context("protobuf-fields.json is not an object")? {
        let name = open_api_name(name);
        let package = name.rsplit_once('.').map_or("", |(package, _)| package);
        if !served.contains(package) {
            continue;
        }
        let fields: Result<Vec<ProtoField>> = fields.as_array().into_iter().flatten().map(proto_field).collect();
        messages.insert(name, fields?);
    }
    Ok(messages)
}

fn proto_field(field: &Value) -> Result<ProtoField> {
    let (Some(number), Some(name), Some(ty)) = (field[0].as_u64(), field[1].as_str(), field[2].as_str()) else {
        bail!("odd protobuf field {field}");
    };
    Ok(ProtoField { number, name: name.to_owned(), ty: open_api_name(ty) })
}

/// `k8s.io.api.core.v1.Pod` is `io.k8s.api.core.v1.Pod` in OpenAPI, also inside `repeated` and `map<>`.
fn open_api_name(name: &str) -> String {
    name.replace("k8s.io.", "io.k8s.")
        .replace("apiextensions_apiserver", "apiextensions-apiserver")
        .replace("kube_aggregator", "kube-aggregator")
}

fn read_go(path: &Path) -> Result<BTreeMap<String, BTreeMap<String, String>>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    let mut go = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.split(' ');
        let name = words.next().unwrap_or_default();
        let fields =
            words.filter_map(|word| word.rsplit_once(':')).map(|(field, flags)| (field.to_owned(), flags.to_owned()));
        go.insert(name.to_owned(), fields.collect());
    }
    Ok(go)
}

/// The named type a node points to.
fn reference(schema: &Value) -> Option<&str> {
    let target = schema.get("$ref").or_else(|| schema.pointer("/allOf/0/$ref"))?;
    target.as_str()?.rsplit('/').next()
}

/// The word for a node that is neither list, map nor reference, and its zero value.
fn leaf(schema: &Value, _packages: &mut Packages) -> Result<(&'static str, &'static str)> {
    Ok(match (text(schema, "type"), text(schema, "format")) {
        ("object", _) => ("object", "{}"),
        ("string", "") => ("string", "\"\""),
        ("string", "byte") => ("byte", "\"\""),
        ("string", "date-time") => ("special", ""),
        ("integer", "int32") => ("int32", "0"),
        ("integer", "int64") => ("int64", "0"),
        ("number", "double") => ("double", "0"),
        ("boolean", "") => ("bool", "false"),
        ("", _) => ("any", ""),
        (ty, format) => bail!("a type the table has no word for: {ty} {format}"),
    })
}

/// The type word of a field.
fn expression(schema: &Value, packages: &mut Packages) -> Result<String> {
    if let Some(name) = reference(schema) {
        let tilde =
            if schema.get("default").is_some_and(|default| *default == serde_json::json!({})) { "~" } else { "" };
        return Ok(format!("{}{tilde}", packages.short(name)));
    }
    if let Some(items) = schema.get("items") {
        return Ok(format!("[]{}", expression(items, packages)?));
    }
    if let Some(values) = schema.get("additionalProperties") {
        return Ok(format!("{{}}{}", expression(values, packages)?));
    }
    let (word, zero) = leaf(schema, packages)?;
    let tilde =
        if schema.get("default").is_some_and(|default| default.to_string().as_str() == zero) { "~" } else { "" };
    Ok(format!("{word}{tilde}"))
}

/// Attributes that belong to the field and not to its type.
fn write_attributes(property: &Value, out: &mut String) -> Result<()> {
    if let Some(default) = property.get("default").map(Value::to_string)
        && !["{}", "\"\"", "0", "false"].contains(&default.as_str())
    {
        write!(out, " default={default}")?;
    }
    for (key, word) in [
        ("x-kubernetes-list-type", "list"),
        ("x-kubernetes-patch-merge-key", "merge"),
        ("x-kubernetes-map-type", "map"),
    ] {
        match text(property, key) {
            "" => {}
            value => write!(out, " {word}={value}")?,
        }
    }
    match text(property, "x-kubernetes-patch-strategy") {
        "" => {}
        value => write!(out, " patch={value}")?,
    }
    match joined(property, "x-kubernetes-list-map-keys") {
        none if none == "-" => {}
        keys => write!(out, " keys={keys}")?,
    }
    Ok(())
}

/// The type word of a protobuf type.
fn proto_expression(ty: &str, packages: &mut Packages) -> Result<String> {
    if let Some(element) = ty.strip_prefix("repeated ") {
        return Ok(format!("[]{}", proto_expression(element, packages)?));
    }
    if let Some(value) = ty.strip_prefix("map<string,").and_then(|rest| rest.strip_suffix('>')) {
        return Ok(format!("{{}}{}", proto_expression(value, packages)?));
    }
    Ok(match ty {
        "string" | "int32" | "int64" | "bool" | "double" => ty.to_owned(),
        "bytes" => "byte".to_owned(),
        name if name.contains('.') => packages.short(name),
        other => bail!("a protobuf type the table has no word for: {other}"),
    })
}

/// Compares what the document and the message say of a field; the one known difference, a list
/// that travels in a message of its own, becomes an attribute.
fn check(name: &str, field: &str, property: &Value, proto: &str, out: &mut String) -> Result<()> {
    if proto_of(property) == proto {
        return Ok(());
    }
    let element = proto.strip_prefix("map<string,").and_then(|rest| rest.strip_suffix('>')).unwrap_or(proto);
    let kind = element.rsplit('.').next().unwrap_or_default();
    ensure!(
        ["ExtraValue", "Verbs"].contains(&kind),
        "{name}.{field}: document says {}, message says {proto}",
        proto_of(property)
    );
    out.push_str(" boxed");
    Ok(())
}

fn proto_of(schema: &Value) -> String {
    if let Some(name) = reference(schema) {
        return name.to_owned();
    }
    if let Some(items) = schema.get("items") {
        return format!("repeated {}", proto_of(items));
    }
    if let Some(values) = schema.get("additionalProperties") {
        return format!("map<string,{}>", proto_of(values));
    }
    match (text(schema, "type"), text(schema, "format")) {
        ("string", "byte") => "bytes".to_owned(),
        ("string", _) => "string".to_owned(),
        ("integer", format) => format.to_owned(),
        ("number", format) => format.to_owned(),
        ("boolean", _) => "bool".to_owned(),
        (ty, _) => ty.to_owned(),
    }
}
