//! What commands print: data on stdout, in the form that was asked for.

use std::io::{IsTerminal as _, Write as _};

use clap::ValueEnum;
use serde_json::Value;

use super::access::Fault;

/// The form of the output.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum Format {
    /// A table.
    #[default]
    Table,
    /// A table with more columns.
    Wide,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// Names only, a line each.
    Name,
}

/// Prints a tree as JSON, YAML or names; `false` when a table is wanted.
pub fn tree(format: Format, value: &Value) -> anyhow::Result<bool> {
    match format {
        Format::Json => line(&serde_json::to_string_pretty(value)?),
        Format::Yaml => line(serde_saphyr::to_string(value)?.trim_end()),
        Format::Name => {
            for name in names(value)? {
                line(&name);
            }
        }
        Format::Table | Format::Wide => return Ok(false),
    }
    Ok(true)
}

/// The names in a tree: of a list, of what it is a list of.
fn names(value: &Value) -> anyhow::Result<Vec<String>> {
    let items = value.as_array().or_else(|| value["items"].as_array());
    let items = items.map_or_else(|| std::slice::from_ref(value), Vec::as_slice);
    let found = items.iter().map(name).collect::<Option<Vec<String>>>();
    found.ok_or_else(|| Fault::Usage("there are no names in this; say -o json or yaml".into()).into())
}

/// `CLUSTER/KIND/NAME`, as much of it as there is.
fn name(item: &Value) -> Option<String> {
    let object = item.get("object").unwrap_or(item);
    let known = [&object["metadata"]["name"], &item["name"], &item["check"], &item["cluster"]];
    let name = known.into_iter().find_map(Value::as_str)?;
    let cluster = item["cluster"].as_str().filter(|cluster| *cluster != name);
    let kind = object["kind"].as_str().map(str::to_lowercase);
    let parts = [cluster, kind.as_deref(), Some(name)];
    Some(parts.into_iter().flatten().collect::<Vec<_>>().join("/"))
}

/// Prints one line; a closed pipe (`| head`) is not an error.
pub fn line(text: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

/// Prints rows under headers, as wide as they need.
pub fn table(headers: &[&str], rows: &[Vec<String>]) {
    let mut widths: Vec<usize> = headers.iter().map(|header| header.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let coloured = is_coloured();
    let print = |cells: Vec<&str>| {
        let mut text = String::new();
        for (at, cell) in cells.iter().enumerate() {
            match colour(cell).filter(|_| coloured) {
                Some(code) => text.push_str(&format!("\x1b[{code}m{cell}\x1b[0m")),
                None => text.push_str(cell),
            }
            if at + 1 < cells.len() {
                text.push_str(&" ".repeat(widths[at] - cell.chars().count() + 3));
            }
        }
        line(text.trim_end());
    };
    print(headers.to_vec());
    for row in rows {
        print(row.iter().map(String::as_str).collect());
    }
}

/// Colours are for terminals, and for who did not forbid them.
fn is_coloured() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// The colour of a word that says how something is.
fn colour(word: &str) -> Option<u8> {
    match word {
        "Ready" | "Running" | "True" | "Active" | "Succeeded" | "Completed" | "Bound" | "ok" => Some(32),
        "Pending" | "ContainerCreating" | "Terminating" | "Unknown" => Some(33),
        "NotReady" | "Failed" | "Error" | "CrashLoopBackOff" | "ImagePullBackOff" | "ErrImagePull" | "OOMKilled"
        | "Evicted" | "False" | "FAIL" => Some(31),
        _ => None,
    }
}

/// A server's Table, printed like kubectl does; `wide` adds the columns of lower priority.
pub fn server_table(tables: &[(Option<&str>, &Value)], wide: bool) {
    let Some((_, first)) = tables.iter().find(|(_, table)| table["columnDefinitions"].is_array()) else { return };
    let columns: Vec<(usize, String)> = first["columnDefinitions"]
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
        .filter(|(_, column)| wide || column["priority"].as_i64().unwrap_or_default() == 0)
        .map(|(at, column)| (at, column["name"].as_str().unwrap_or_default().to_uppercase()))
        .collect();
    let named = tables.iter().any(|(name, _)| name.is_some());
    let mut headers: Vec<&str> = columns.iter().map(|(_, name)| name.as_str()).collect();
    let namespaced = tables.iter().any(|(_, table)| {
        table["rows"].as_array().into_iter().flatten().any(|row| row["object"]["metadata"]["namespace"].is_string())
    });
    if namespaced {
        headers.insert(0, "NAMESPACE");
    }
    if named {
        headers.insert(0, "CLUSTER");
    }
    let mut rows = Vec::new();
    for (name, answer) in tables {
        for row in answer["rows"].as_array().into_iter().flatten() {
            let mut cells: Vec<String> = columns.iter().map(|(at, _)| cell(&row["cells"][*at])).collect();
            if namespaced {
                cells.insert(0, cell(&row["object"]["metadata"]["namespace"]));
            }
            if named {
                cells.insert(0, name.unwrap_or_default().to_owned());
            }
            rows.push(cells);
        }
    }
    table(&headers, &rows);
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn names_say_as_much_as_is_known() {
        let pod = json!({"kind": "Pod", "metadata": {"name": "web-1"}});
        for (tree, expected) in [
            (json!([{"cluster": "a", "object": pod}]), vec!["a/pod/web-1"]),
            (json!({"kind": "List", "items": [pod]}), vec!["pod/web-1"]),
            (pod.clone(), vec!["pod/web-1"]),
            (json!([{"cluster": "a", "name": "node-1"}, {"cluster": "b"}]), vec!["a/node-1", "b"]),
            (json!([]), vec![]),
        ] {
            assert_eq!(names(&tree).unwrap(), expected, "{tree}");
        }
        assert!(names(&json!({"subject": "x"})).is_err());
    }
}
