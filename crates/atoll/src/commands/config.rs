//! `atoll config`: which hub and instance commands talk to.

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::access::Access;
use super::output::{self, Format};

/// Show and choose which hub and instance commands talk to.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  atoll config list\n  atoll config use fleet\n  atoll config view -o json\n  atoll config path"
)]
pub struct Config {
    #[command(subcommand)]
    action: Action,
    /// Form of the output
    #[arg(short, long, value_enum, default_value_t, global = true)]
    output: Format,
    #[command(flatten)]
    access: Access,
}

#[derive(Subcommand)]
enum Action {
    /// List contexts and where they lead; the current one has a star
    List,
    /// Make a context the current one
    Use {
        /// Its name
        name: String,
    },
    /// Print the kubeconfig without its secrets
    View,
    /// Print where the kubeconfig is
    Path,
}

/// What is never shown.
const SECRETS: [&str; 5] =
    ["token", "password", "client-key-data", "client-certificate-data", "certificate-authority-data"];

impl Config {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<()> {
        match &self.action {
            Action::List => self.list(),
            Action::Use { name } => self.choose(name),
            Action::View => {
                let mut tree = serde_json::to_value(self.access.read()?)?;
                hide(&mut tree);
                let format = if self.output == Format::Json { Format::Json } else { Format::Yaml };
                output::tree(format, &tree).map(drop)
            }
            Action::Path => {
                output::line(&self.access.path()?.display().to_string());
                Ok(())
            }
        }
    }

    fn list(&self) -> anyhow::Result<()> {
        let config = self.access.read()?;
        let current = config.current_context.clone().unwrap_or_default();
        let server = |cluster: &str| {
            let named = config.clusters.iter().find(|named| named.name == cluster);
            named.and_then(|named| named.cluster.as_ref()).and_then(|found| found.server.clone()).unwrap_or_default()
        };
        let known: Vec<(String, String, String)> = config
            .contexts
            .iter()
            .filter_map(|named| {
                let context = named.context.as_ref()?;
                Some((named.name.clone(), server(&context.cluster), context.user.clone().unwrap_or_default()))
            })
            .collect();
        let tree = known.iter().map(
            |(name, server, user)| json!({"name": name, "server": server, "user": user, "current": *name == current}),
        );
        if output::tree(self.output, &Value::Array(tree.collect()))? {
            return Ok(());
        }
        let rows: Vec<Vec<String>> = known
            .into_iter()
            .map(|(name, server, user)| vec![if name == current { "*" } else { "" }.to_owned(), name, server, user])
            .collect();
        output::table(&["CURRENT", "NAME", "SERVER", "USER"], &rows);
        Ok(())
    }

    /// Changes one line of the file; everything else in it stays as it is.
    fn choose(&self, name: &str) -> anyhow::Result<()> {
        self.access.known(&self.access.read()?, name)?;
        let path = self.access.path()?;
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let changed = with_current(&text, name);
        std::fs::write(&path, changed).with_context(|| format!("cannot write {}", path.display()))?;
        output::line(&format!("context/{name} is current"));
        Ok(())
    }
}

/// The file with another current context.
fn with_current(text: &str, name: &str) -> String {
    let line = format!("current-context: {}", Value::from(name));
    let mut lines: Vec<&str> = text.lines().collect();
    match lines.iter().position(|line| line.starts_with("current-context:")) {
        Some(at) => lines[at] = &line,
        None => lines.push(&line),
    }
    lines.join("\n") + "\n"
}

fn hide(tree: &mut Value) {
    match tree {
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                if SECRETS.contains(&key.as_str()) && !value.is_null() {
                    *value = "(hidden)".into();
                } else {
                    hide(value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(hide),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_line_of_the_current_context_changes() {
        let text = "apiVersion: v1\n# mine\ncurrent-context: root\nkind: Config\n";
        assert_eq!(with_current(text, "fleet"), "apiVersion: v1\n# mine\ncurrent-context: \"fleet\"\nkind: Config\n");
        assert_eq!(with_current("kind: Config\n", "a"), "kind: Config\ncurrent-context: \"a\"\n");
    }

    #[test]
    fn secrets_are_hidden_at_any_depth() {
        let mut tree = json!({"users": [{"name": "a", "user": {"token": "canary", "client-key-data": "canary"}}]});
        hide(&mut tree);
        assert!(!tree.to_string().contains("canary"));
        assert_eq!(tree["users"][0]["name"], "a");
    }
}
