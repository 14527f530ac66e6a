//! Groups, kinds and subresources from the legacy and aggregated discovery documents.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::types::Source;
use super::{Packages, joined, read_json, text};

/// Writes the `group`, `kind` and `sub` lines.
pub(crate) fn write(from: &Path, types: &Source, packages: &mut Packages, out: &mut String) -> Result<()> {
    let dir = from.join("discovery");
    let listed = read_json(&dir.join("apis.json"))?;
    let mut groups = vec![(String::new(), vec!["v1".to_owned()])];
    for group in listed["groups"].as_array().context("apis.json has no groups")? {
        let versions = group["versions"].as_array().context("a group has no versions")?;
        groups.push((text(group, "name").to_owned(), versions.iter().map(|v| text(v, "version").to_owned()).collect()));
    }
    for (group, versions) in &groups {
        writeln!(out, "group {} {}", dash(group), versions.join(" "))?;
    }
    for (group, versions) in &groups {
        for version in versions {
            let file = if group.is_empty() {
                format!("api__{version}.json")
            } else {
                format!("apis__{group}__{version}.json")
            };
            resources(&read_json(&dir.join(file))?, group, version, types, packages, out)?;
        }
    }
    Ok(())
}

fn resources(
    list: &Value,
    group: &str,
    version: &str,
    types: &Source,
    packages: &mut Packages,
    out: &mut String,
) -> Result<()> {
    let all = list["resources"].as_array().context("no resources")?;
    for resource in all.iter().filter(|r| !text(r, "name").contains('/')) {
        let (plural, kind) = (text(resource, "name"), text(resource, "kind"));
        let type_name =
            types.by_gvk(group, version, kind).with_context(|| format!("no type for {group}/{version} {kind}"))?;
        let list_kind = format!("{kind}List");
        let list_kind = if types.by_gvk(group, version, &list_kind).is_some() { list_kind } else { "-".to_owned() };
        let scope = if resource["namespaced"] == true { "ns" } else { "cluster" };
        writeln!(
            out,
            "kind {} {version} {kind} {list_kind} {plural} {} {scope} {} {} {} {} {}",
            dash(group),
            dash(text(resource, "singularName")),
            joined(resource, "shortNames"),
            joined(resource, "categories"),
            joined(resource, "verbs"),
            packages.short(type_name),
            dash(text(resource, "storageVersionHash")),
        )?;
        let prefix = format!("{plural}/");
        for sub in all {
            let Some(name) = text(sub, "name").strip_prefix(&prefix) else { continue };
            let (sub_group, sub_version) = match text(sub, "version") {
                "" => (group, version),
                given => (text(sub, "group"), given),
            };
            writeln!(
                out,
                "sub {name} {} {sub_version} {} {}",
                dash(sub_group),
                text(sub, "kind"),
                joined(sub, "verbs")
            )?;
        }
    }
    Ok(())
}

fn dash(value: &str) -> &str {
    if value.is_empty() { "-" } else { value }
}
