//! How commands reach a hub: a kubeconfig and a context in it.

use std::path::PathBuf;

use anyhow::Context as _;
use atoll_meta::Status;
use atoll_runtime::Endpoint;
use clap::Args;
use kube::config::{KubeConfigOptions, Kubeconfig};

/// Which kubeconfig and which context in it.
#[derive(Args, Clone, Debug)]
pub struct Access {
    /// Path of the kubeconfig; otherwise $KUBECONFIG, then ./atoll-data/kubeconfig
    #[arg(long, global = true)]
    kubeconfig: Option<PathBuf>,
    /// Context in the kubeconfig
    #[arg(long, global = true)]
    context: Option<String>,
}

impl Access {
    /// From a path and a context given otherwise.
    pub fn of(kubeconfig: Option<PathBuf>, context: Option<String>) -> Self {
        Self { kubeconfig, context }
    }

    /// What the kubeconfig holds; of several files in $KUBECONFIG all of them.
    pub fn read(&self) -> anyhow::Result<Kubeconfig> {
        if self.kubeconfig.is_none() && std::env::var_os("KUBECONFIG").is_some() {
            return Kubeconfig::read().context("cannot read $KUBECONFIG");
        }
        let path = self.path()?;
        std::fs::metadata(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Kubeconfig::read_from(&path).with_context(|| format!("cannot read {}", path.display()))
    }

    /// Where the kubeconfig is; of several files in $KUBECONFIG the first.
    pub fn path(&self) -> anyhow::Result<PathBuf> {
        let fallback = PathBuf::from("atoll-data/kubeconfig");
        match (&self.kubeconfig, std::env::var_os("KUBECONFIG")) {
            (Some(path), _) => Ok(path.clone()),
            (None, Some(list)) => std::env::split_paths(&list).next().context("$KUBECONFIG is empty"),
            (None, None) if fallback.exists() => Ok(fallback),
            (None, None) => {
                anyhow::bail!("no kubeconfig: give --kubeconfig, set KUBECONFIG, or run `atoll up` in this directory")
            }
        }
    }

    /// A kubeconfig whose one context is an instance, with the credentials of the root context.
    pub fn kubeconfig_for(&self, instance: &str) -> anyhow::Result<String> {
        let mut config = self.read()?;
        let wanted = self.context.clone().unwrap_or_else(|| "root".to_owned());
        self.known(&config, &wanted)?;
        let context = config.contexts.iter().find(|context| context.name == wanted).cloned();
        let context =
            context.and_then(|named| named.context).with_context(|| format!("the context {wanted:?} is empty"))?;
        config.clusters.retain(|cluster| cluster.name == context.cluster);
        config.auth_infos.retain(|user| Some(&user.name) == context.user.as_ref());
        for cluster in config.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
            if let Some(server) = &mut cluster.server {
                let base = server.split("/instances/").next().unwrap_or_default().trim_end_matches('/').to_owned();
                *server = if instance == "root" { base } else { format!("{base}/instances/{instance}") };
            }
        }
        config.contexts = vec![kube::config::NamedContext {
            name: instance.to_owned(),
            context: Some(context),
            ..Default::default()
        }];
        config.current_context = Some(instance.to_owned());
        let tree = serde_json::to_value(&config)?;
        Ok(serde_saphyr::to_string(&tree)?)
    }

    /// The name of the context in use: the given one, the current one where an instance is wanted, or `default`.
    fn chosen(&self, kubeconfig: &Kubeconfig, default: &str) -> anyhow::Result<String> {
        let has = |name: &str| kubeconfig.contexts.iter().any(|context| context.name == name);
        let current = kubeconfig.current_context.clone().unwrap_or_default();
        let name = match &self.context {
            Some(name) => name.clone(),
            // Whoever chose an instance means it; `root` is merely where everybody starts.
            None if default != "root" && current != "root" && has(&current) => current,
            None if has(default) => default.to_owned(),
            None => current,
        };
        self.known(kubeconfig, &name)?;
        Ok(name)
    }

    /// Says which contexts there are when this is none of them.
    pub fn known(&self, kubeconfig: &Kubeconfig, name: &str) -> anyhow::Result<()> {
        let known: Vec<&str> = kubeconfig.contexts.iter().map(|context| context.name.as_str()).collect();
        if known.contains(&name) {
            return Ok(());
        }
        let known = known.join(", ");
        Err(Fault::Missing(format!("there is no context {name:?} in the kubeconfig; it has: {known}")).into())
    }

    /// URL of the server in a context, and the authority of its certificate as PEM.
    pub fn server(&self, default: &str) -> anyhow::Result<(String, Option<String>)> {
        use base64::Engine as _;
        let kubeconfig = self.read()?;
        let name = self.chosen(&kubeconfig, default)?;
        let context = kubeconfig.contexts.iter().find(|context| context.name == name);
        let wanted = context.and_then(|named| named.context.as_ref()).map(|context| context.cluster.clone());
        let cluster = kubeconfig.clusters.iter().find(|cluster| Some(&cluster.name) == wanted.as_ref());
        let cluster = cluster.and_then(|named| named.cluster.as_ref()).context("the context names no server")?;
        let ca = cluster.certificate_authority_data.as_ref();
        let ca = ca.map(|data| base64::engine::general_purpose::STANDARD.decode(data)).transpose()?;
        Ok((cluster.server.clone().unwrap_or_default(), ca.map(String::from_utf8).transpose()?))
    }

    /// A way to the hub in a context: the given one, or `default`.
    pub async fn endpoint(&self, default: &str) -> anyhow::Result<Endpoint> {
        let name = self.chosen(&self.read()?, default)?;
        Ok(Endpoint::remote(&name, self.config(default).await?, "atoll")?)
    }

    /// How to reach the hub in a context, for streams.
    pub async fn config(&self, default: &str) -> anyhow::Result<kube::Config> {
        let kubeconfig = self.read()?;
        let context = Some(self.chosen(&kubeconfig, default)?);
        let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
        Ok(kube::Config::from_custom_kubeconfig(kubeconfig, &options).await?)
    }
}

/// A failure as people read it; its code decides the exit code.
pub fn told(status: Status) -> anyhow::Error {
    status.into()
}

/// A command that ran elsewhere and ended with this exit code; it said itself what it had to say.
#[derive(Debug)]
pub struct Ended(pub u8);

impl std::fmt::Display for Ended {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "the command ended with {}", self.0)
    }
}

impl std::error::Error for Ended {}

/// A failure that was found here and not by a server.
#[derive(Debug)]
pub enum Fault {
    /// The words of the command line do not make sense.
    Usage(String),
    /// What was asked for is not there.
    Missing(String),
}

impl std::fmt::Display for Fault {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Self::Usage(text) | Self::Missing(text)) = self;
        out.write_str(text)
    }
}

impl std::error::Error for Fault {}

/// The exit code for a failure: 2 wrong usage, 3 not found, 4 not allowed, 5 no answer, 1 anything else.
pub fn exit_code(error: &anyhow::Error) -> u8 {
    if let Some(Ended(code)) = error.downcast_ref() {
        return *code;
    }
    match error.downcast_ref() {
        Some(Fault::Usage(_)) => return 2,
        Some(Fault::Missing(_)) => return 3,
        None => {}
    }
    match error.downcast_ref::<Status>().map(|status| status.code) {
        Some(404) => 3,
        Some(401 | 403) => 4,
        Some(502..=504) => 5,
        _ => 1,
    }
}

/// Runs a command's async part.
pub fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting the runtime")?;
    let result = runtime.block_on(work);
    // Whoever still reads the keyboard is not waited for.
    runtime.shutdown_background();
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_tell_failures_apart() {
        let table = [
            (told(Status::not_found("", "pods", "a")), 3),
            (told(Status::unauthorized()), 4),
            (told(Status::unavailable("gone")), 5),
            (told(Status::bad_request("no")), 1),
            (Ended(42).into(), 42),
            (Fault::Usage("how".into()).into(), 2),
            (Fault::Missing("what".into()).into(), 3),
            (anyhow::anyhow!("else"), 1),
        ];
        for (error, code) in table {
            assert_eq!(exit_code(&error), code, "{error}");
        }
    }

    #[test]
    fn the_current_instance_is_meant_unless_another_is_named() {
        let config = |current: &str| {
            let context = |name: &str| kube::config::NamedContext { name: name.into(), ..Default::default() };
            Kubeconfig {
                contexts: ["root", "fleet", "other"].map(context).to_vec(),
                current_context: Some(current.into()),
                ..Kubeconfig::default()
            }
        };
        let named = |name: Option<&str>| Access::of(None, name.map(ToOwned::to_owned));
        let table = [
            (None, "root", "fleet", Some("fleet")),
            (None, "other", "fleet", Some("other")),
            (None, "other", "root", Some("root")),
            (None, "gone", "fleet", Some("fleet")),
            (Some("other"), "root", "fleet", Some("other")),
            (Some("none"), "root", "fleet", None),
        ];
        for (given, current, default, expected) in table {
            let chosen = named(given).chosen(&config(current), default).ok();
            assert_eq!(chosen.as_deref(), expected, "{given:?} {current} {default}");
        }
    }
}
