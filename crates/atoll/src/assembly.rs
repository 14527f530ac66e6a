//! Puts a hub together from its parts and runs it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use anyhow::Context as _;
use atoll_apiserver::auth::Keys;
use atoll_apiserver::{ApiService, Hub, Identity, Options, Server};
use atoll_pki::{Access, Auth, Ca, Kubeconfig, PemPair, San, ServerCerts, Validity};
use atoll_store::{Engine, MemoryEngine, RedbEngine};
use tokio_util::sync::CancellationToken;

/// Where objects are kept.
#[derive(Clone, Debug)]
pub enum StoreChoice {
    /// Nowhere: gone when the process ends.
    Memory,
    /// In a directory.
    Redb(PathBuf),
    /// In an etcd cluster.
    Etcd(Vec<String>),
}

impl FromStr for StoreChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "memory" => Ok(Self::Memory),
            Some(("redb", directory)) if !directory.is_empty() => Ok(Self::Redb(directory.into())),
            Some(("etcd", endpoints)) if !endpoints.is_empty() => {
                Ok(Self::Etcd(endpoints.split(',').map(ToOwned::to_owned).collect()))
            }
            _ => Err("expected memory, redb:DIR or etcd:ENDPOINT[,ENDPOINT…]".into()),
        }
    }
}

/// What `up` and `serve` need to know.
pub struct Settings {
    /// Where objects are kept.
    pub store: StoreChoice,
    /// Where keys, kubeconfig and token are.
    pub data_dir: PathBuf,
    /// Address of the TLS port.
    pub listen: SocketAddr,
    /// Members and nodes of the demonstration.
    pub demo: Option<(usize, usize)>,
}

/// Runs a hub until `stop`.
pub async fn run(settings: Settings, stop: CancellationToken) -> anyhow::Result<()> {
    let started = std::time::Instant::now();
    std::fs::create_dir_all(&settings.data_dir)
        .with_context(|| format!("cannot create the data directory {}", settings.data_dir.display()))?;
    let engine = open_store(&settings.store).await?;
    let now = jiff::Timestamp::now();
    let ca = load_ca(&settings.data_dir, now)?;
    let token = load_token(&settings.data_dir)?;
    let keys = Keys::default();
    keys.add_token(&token, Identity::master("atoll:admin"));
    let hub = Hub::open(engine, keys, Arc::new(jiff::Timestamp::now), Options::default()).await?;
    let certs = Arc::new(ServerCerts::default());
    let names: Vec<San> = server_names(settings.listen).iter().map(|name| San::new(name)).collect();
    certs.set(None, &ca.issue_server(&names, Validity::days(now, 365))?)?;
    let tls = atoll_pki::server_config(certs, &[b"h2", b"http/1.1"])?;
    let server = Server::bind(settings.listen, Arc::new(tls)).await?;
    let address = server.address()?;
    write_kubeconfig(&settings.data_dir, &hub, address, &ca, &token)?;
    eprintln!("atoll is ready at https://{address} after {} ms", started.elapsed().as_millis());
    eprintln!("export KUBECONFIG={}", settings.data_dir.join("kubeconfig").display());
    atoll_background::Background::start(hub.clone(), &ca.cert_pem(), stop.clone());
    let service = ApiService::new(hub.clone());
    let closing = hub.shutdown.clone();
    let watcher = stop.clone();
    tokio::spawn(async move {
        watcher.cancelled().await;
        closing.cancel();
    });
    server.run(service, stop).await;
    Ok(())
}

async fn open_store(choice: &StoreChoice) -> anyhow::Result<Arc<dyn Engine>> {
    Ok(match choice {
        StoreChoice::Memory => Arc::new(MemoryEngine::new()),
        StoreChoice::Redb(directory) => {
            std::fs::create_dir_all(directory)?;
            let path = directory.join("atoll.redb");
            Arc::new(RedbEngine::open(&path, atoll_store::Options::default()).with_context(|| format!("cannot open {}", path.display()))?)
        }
        StoreChoice::Etcd(endpoints) => anyhow::bail!("etcd at {endpoints:?} is not connected in this build"),
    })
}

fn server_names(listen: SocketAddr) -> Vec<String> {
    let mut names: Vec<String> = ["localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default", "kubernetes.default.svc"]
        .iter()
        .map(ToString::to_string)
        .collect();
    if !listen.ip().is_unspecified() {
        names.push(listen.ip().to_string());
    }
    names
}

fn load_ca(data_dir: &Path, now: jiff::Timestamp) -> anyhow::Result<Ca> {
    let (cert_path, key_path) = (data_dir.join("ca.crt"), data_dir.join("ca.key"));
    if cert_path.exists() {
        let pair = PemPair { cert: std::fs::read_to_string(&cert_path)?, key: std::fs::read_to_string(&key_path)? };
        return Ca::from_pem(&pair).with_context(|| format!("{} is damaged", cert_path.display()));
    }
    let ca = Ca::generate("atoll", now)?;
    let pair = ca.to_pem();
    write_private(&key_path, &pair.key)?;
    std::fs::write(&cert_path, &pair.cert)?;
    Ok(ca)
}

fn load_token(data_dir: &Path) -> anyhow::Result<String> {
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

fn write_kubeconfig(data_dir: &Path, hub: &Hub, address: SocketAddr, ca: &Ca, token: &str) -> anyhow::Result<()> {
    let mut config = Kubeconfig::new();
    for instance in hub.instances() {
        let path = if &*instance.name == "root" { String::new() } else { format!("/instances/{}", instance.name) };
        let access = Access {
            server: format!("https://{address}{path}"),
            ca_pem: Some(ca.cert_pem()),
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
