//! `atoll login` and `atoll account`: local accounts and their sessions.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::PathBuf;

use anyhow::Context as _;
use atoll_manage::access::{accounts, objects};
use atoll_pki::{Auth, Kubeconfig};
use atoll_runtime::{Endpoint, Patch};
use base64::Engine as _;
use clap::{Args, Subcommand};
use http::Method;
use kube::config::KubeConfigOptions;
use serde_json::{Value, json};

use super::access::{Access, Fault, block_on, told};
use super::output::{self, Format};

/// Open a session of a local account and print a kubeconfig for it.
#[derive(Args)]
#[command(
    after_help = "The password is read from the terminal, or from standard input.\n\nExample:\n  atoll login ann --server https://127.0.0.1:7443 --ca ca.pem --instance fleet > ann.kubeconfig"
)]
pub struct Login {
    /// Name of the account
    user: String,
    /// URL of the hub; otherwise that of the kubeconfig
    #[arg(long)]
    server: Option<String>,
    /// File with the authority of the hub's certificate; otherwise that of the kubeconfig, or the system's
    #[arg(long, requires = "server")]
    ca: Option<PathBuf>,
    /// Instances to make contexts for, besides `root`
    #[arg(long)]
    instance: Vec<String>,
    #[command(flatten)]
    access: Access,
}

/// Make, list, change and close local accounts.
#[derive(Args)]
#[command(
    after_help = "The password is read from the terminal, or from standard input.\n\nExamples:\n  atoll account create ann --group team-a\n  atoll account list\n  atoll account close ann"
)]
pub struct Account {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    access: Access,
}

#[derive(Subcommand)]
enum Action {
    /// Make an account with a password
    Create {
        /// Its name
        name: String,
        /// Groups it is in
        #[arg(long)]
        group: Vec<String>,
    },
    /// List accounts
    List {
        /// Form of the output
        #[arg(short, long, value_enum, default_value_t)]
        output: Format,
    },
    /// Give an account another password
    SetPassword {
        /// Its name
        name: String,
    },
    /// Close an account; its sessions end at once
    Close {
        /// Its name
        name: String,
    },
}

impl Login {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<()> {
        let (server, ca) = self.hub()?;
        let password = password()?;
        block_on(async move {
            let cluster = json!({"server": server, "certificate-authority-data": ca.as_deref().map(encode)});
            let config = json!({
                "apiVersion": "v1", "kind": "Config", "current-context": "c", "users": [],
                "clusters": [{"name": "c", "cluster": cluster}], "contexts": [{"name": "c", "context": {"cluster": "c", "user": ""}}],
            });
            let config = serde_json::from_value(config)?;
            let config = kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
            let hub = Endpoint::remote("hub", config, "atoll").map_err(told)?;
            let body = json!({"user": self.user, "password": password}).to_string().into();
            let answer = hub.send(Method::POST, "/manage/login", "application/json", body).await.map_err(told)?;
            let answer: Value = serde_json::from_slice(&answer)?;
            let token = answer["token"].as_str().context("the hub gave no token")?;
            let mut out = Kubeconfig::new();
            for name in std::iter::once("root").chain(self.instance.iter().map(String::as_str)) {
                let server = if name == "root" { server.clone() } else { format!("{server}/instances/{name}") };
                let auth = Auth::Token(token.to_owned());
                let ca_pem = ca.clone();
                out.add(
                    name,
                    &atoll_pki::Access {
                        server,
                        ca_pem,
                        insecure: false,
                        tls_server_name: None,
                        auth,
                        namespace: None,
                    },
                );
            }
            out.set_current(self.instance.first().map_or("root", String::as_str));
            output::line(out.to_yaml()?.trim_end());
            Ok(())
        })
    }

    /// URL and authority of the hub.
    fn hub(&self) -> anyhow::Result<(String, Option<String>)> {
        let Some(server) = &self.server else {
            let own: kube::config::Kubeconfig = serde_saphyr::from_str(&self.access.kubeconfig_for("root")?)?;
            let cluster =
                own.clusters.into_iter().find_map(|named| named.cluster).context("the kubeconfig has no server")?;
            let ca =
                cluster.certificate_authority_data.map(|data| base64::engine::general_purpose::STANDARD.decode(data));
            let ca = ca.transpose()?.map(String::from_utf8).transpose()?;
            return Ok((cluster.server.context("the kubeconfig has no server")?, ca));
        };
        let read =
            |path: &PathBuf| std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()));
        Ok((server.trim_end_matches('/').to_owned(), self.ca.as_ref().map(read).transpose()?))
    }
}

impl Account {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<()> {
        let password = match &self.action {
            Action::Close { .. } | Action::List { .. } => String::new(),
            _ => password()?,
        };
        block_on(async move {
            let root = self.access.endpoint("root").await?;
            let gvr = objects::ACCOUNT.gvr();
            match &self.action {
                Action::Create { name, group } => {
                    // Checked before anything is made.
                    accounts::hash(&password).map_err(told)?;
                    let object = json!({"apiVersion": objects::ACCOUNT.api_version(), "kind": "Account", "metadata": {"name": name}, "spec": {"groups": group}});
                    root.create(&gvr, None, &object).await.map_err(told)?;
                    accounts::set_password(&root, name, &password).await.map_err(told)?;
                    output::line(&format!("account/{name} created"));
                }
                Action::List { output } => list(&root, *output).await?,
                Action::SetPassword { name } => {
                    accounts::set_password(&root, name, &password).await.map_err(told)?;
                    output::line(&format!("account/{name} has a new password"));
                }
                Action::Close { name } => {
                    let change = json!({"spec": {"disabled": true}});
                    root.patch(&gvr, None, name, "", Patch::Merge, &change).await.map_err(told)?;
                    output::line(&format!("account/{name} closed"));
                }
            }
            Ok(())
        })
    }
}

async fn list(root: &Endpoint, format: Format) -> anyhow::Result<()> {
    let found = root.list(&objects::ACCOUNT.gvr(), None, "").await.map_err(told)?.items;
    if output::tree(format, &json!({"apiVersion": "v1", "kind": "List", "items": found}))? {
        return Ok(());
    }
    let row = |account: &Value| {
        let groups = account["spec"]["groups"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let state = if account["spec"]["disabled"] == true { "closed" } else { "open" };
        let name = account["metadata"]["name"].as_str().unwrap_or_default();
        vec![name.to_owned(), state.to_owned(), groups.collect::<Vec<_>>().join(",")]
    };
    output::table(&["NAME", "STATE", "GROUPS"], &found.iter().map(row).collect::<Vec<_>>());
    Ok(())
}

fn encode(pem: &str) -> String {
    base64::engine::general_purpose::STANDARD.encode(pem)
}

/// One line of standard input; a terminal does not show it.
fn password() -> anyhow::Result<String> {
    let stdin = std::io::stdin();
    let hidden = stdin.is_terminal();
    let echo = |word: &str| std::process::Command::new("stty").arg(word).status();
    if hidden {
        eprint!("Password: ");
        std::io::stderr().flush()?;
        echo("-echo").context("the terminal cannot hide the password")?;
    }
    let mut line = String::new();
    let read = stdin.lock().read_line(&mut line);
    if hidden {
        let _ = echo("echo");
        eprintln!();
    }
    read?;
    let password = line.trim_end_matches(['\r', '\n']).to_owned();
    match password.is_empty() {
        true => Err(Fault::Usage("give the password on standard input".into()).into()),
        false => Ok(password),
    }
}
