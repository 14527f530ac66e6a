//! Files in the data directory: the admin token and the kubeconfig, both readable by their owner only.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use atoll_apiserver::Hub;
use atoll_pki::{Access, Auth, Kubeconfig};

/// The form in which data is kept. It changes when an older hub could not read what a newer one wrote.
const FORMAT: &str = "1";

/// Refuses a directory whose data another version wrote; marks a new one as ours.
pub fn check_format(data_dir: &Path) -> anyhow::Result<()> {
    let path = data_dir.join("format");
    match std::fs::read_to_string(&path) {
        Ok(found) if found.trim() == FORMAT => Ok(()),
        Ok(found) => anyhow::bail!(
            "the directory {} belongs to another version of Atoll (format {:?}, this one has {FORMAT:?}); use that version or another --data-dir",
            data_dir.display(),
            found.trim()
        ),
        Err(_) => {
            std::fs::write(&path, format!("{FORMAT}\n")).with_context(|| format!("cannot write {}", path.display()))
        }
    }
}

/// The token of the administrator, made at the first start.
pub fn token(data_dir: &Path) -> anyhow::Result<String> {
    let path = data_dir.join("admin.token");
    if path.exists() {
        return Ok(std::fs::read_to_string(&path)?.trim().to_owned());
    }
    let token = atoll_pki::random_text(43)?;
    write_private(&path, &token)?;
    Ok(token)
}

fn write_private(path: &Path, text: &str) -> anyhow::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .with_context(|| format!("cannot write {}", path.display()))?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    Ok(())
}

/// Writes a kubeconfig with one context per instance.
pub fn kubeconfig(data_dir: &Path, hub: &Hub, token: &str) -> anyhow::Result<()> {
    let mut config = Kubeconfig::new();
    for instance in hub.instances() {
        let access = Access {
            server: hub.url(&instance),
            ca_pem: Some(hub.keys().own().serving.cert_pem()),
            insecure: false,
            tls_server_name: None,
            auth: Auth::Token(token.to_owned()),
            namespace: None,
        };
        config.add(&instance.name, &access);
    }
    config.set_current("root");
    config.write(&data_dir.join("kubeconfig"))?;
    Ok(())
}

/// A path people can paste anywhere.
pub fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// The note that says which process runs here; gone when the process ends in order.
pub struct Running(PathBuf);

impl Running {
    /// Writes it.
    pub fn note(data_dir: &Path) -> anyhow::Result<Self> {
        let path = data_dir.join("atoll.pid");
        std::fs::write(&path, std::process::id().to_string())
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
