//! `atoll doctor`: is the hub well, and what to do if not.

use clap::Args;
use serde_json::{Value, json};

use super::access::{Access, block_on};
use super::checks::{self, Finding};
use super::output::{self, Format};

/// Check a hub and its members; each finding comes with its remedy.
#[derive(Args)]
#[command(after_help = "Examples:\n  atoll doctor\n  atoll doctor -o json")]
pub struct Doctor {
    #[command(flatten)]
    access: Access,
    /// Form of the output
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

impl Doctor {
    /// Runs it; findings that are not well make the exit code 1.
    pub fn run(self) -> anyhow::Result<()> {
        block_on(async move {
            let root = self.access.endpoint("root").await?;
            let mut findings = checks::health(&root).await;
            findings.extend(checks::certificates(&self.access, jiff::Timestamp::now()));
            findings.extend(checks::clock(&root).await);
            findings.extend(checks::disk(&self.access));
            findings.extend(checks::rights(&root).await);
            findings.extend(checks::instances(&root).await?);
            if let Ok(fleet) = self.access.endpoint("fleet").await {
                // An instance without members has none of these to be asked about.
                findings.extend(checks::members(&fleet).await.unwrap_or_default());
                findings.extend(checks::lag(&fleet).await.unwrap_or_default());
            }
            self.print(&findings)?;
            let bad = findings.iter().filter(|finding| !finding.well).count();
            if bad > 0 { anyhow::bail!("{bad} findings need attention") } else { Ok(()) }
        })
    }

    fn print(&self, findings: &[Finding]) -> anyhow::Result<()> {
        let remedy = |finding: &Finding| if finding.well { "" } else { finding.remedy };
        let tree = findings.iter().map(|finding| {
            json!({"check": finding.what, "ok": finding.well, "detail": finding.detail, "remedy": remedy(finding)})
        });
        if output::tree(self.output, &Value::Array(tree.collect()))? {
            return Ok(());
        }
        let rows: Vec<Vec<String>> = findings
            .iter()
            .flat_map(|finding| {
                let word = if finding.well { "ok" } else { "FAIL" };
                let row = vec![word.to_owned(), finding.what.clone(), finding.detail.clone()];
                let hint = (!finding.well).then(|| vec![String::new(), String::new(), format!("→ {}", finding.remedy)]);
                std::iter::once(row).chain(hint)
            })
            .collect();
        output::table(&["STATE", "CHECK", "DETAIL"], &rows);
        Ok(())
    }
}
