//! Puts a hub together from its parts and runs it.
//!
//! [`run`] opens the store and the hub, starts what every hub has (background work, instances),
//! listens, and then serves until told to stop.

mod demo;
mod entry;
mod faults;
mod files;
mod instances;
mod members;
mod parts;
pub mod progress;
mod side;
mod store;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use atoll_apiserver::auth::Keys;
use atoll_apiserver::{Hub, Identity, Options, Server, Serving};
use atoll_pki::{San, ServerCerts};
use atoll_runtime::Denied;
use tokio_util::sync::CancellationToken;

pub use faults::FAULTS;
pub use instances::{EVENTS, NODES};
pub use parts::Parts;
use progress::Progress;
pub use side::SidePort;
pub use store::{StoreChoice, open as open_store};

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
    /// Where metrics are served; nothing said means the usual port if it is free.
    pub metrics: Option<SidePort>,
    /// Where health is served; nothing said means the usual port if it is free.
    pub health: Option<SidePort>,
    /// Instances are also reached as `NAME.DOMAIN`.
    pub domain: String,
    /// Where no way to a member leads.
    pub denied: Denied,
}

/// Runs a hub until `stop`.
pub async fn run(settings: Settings, stop: CancellationToken) -> anyhow::Result<()> {
    let started = std::time::Instant::now();
    std::fs::create_dir_all(&settings.data_dir)
        .with_context(|| format!("cannot create the data directory {}", settings.data_dir.display()))?;
    let certs = Arc::new(ServerCerts::default());
    let tls = atoll_pki::server_config(certs.clone(), &[b"h2", b"http/1.1"])?;
    // The port first: a taken one must be told before anything is touched.
    let server = Server::bind(settings.listen, Arc::new(tls)).await?;
    let address = server.address()?;
    let side = side::Side::bind(settings.metrics, settings.health).await?;
    files::check_format(&settings.data_dir)?;
    let progress = Progress::start();
    progress.stage("reading the store …");
    let engine = store::open(&settings.store).await?;
    let token = files::token(&settings.data_dir)?;
    let keys = Keys::default();
    keys.add_token(&token, Identity::master("atoll:admin"));
    let options = Options { advertise: Some(address), domain: settings.domain, ..Options::default() };
    let hub = Hub::open(engine, keys, Arc::new(jiff::Timestamp::now), options).await?;
    hub.set_url(&format!("https://{address}"));
    let names = server_names(address, hub.domain()).iter().map(|name| San::new(name)).collect();
    tokio::spawn(Serving::start(&hub, certs, names)?.keep(stop.clone()));
    side.run(&hub);
    let _running = files::Running::note(&settings.data_dir)?;
    let choice = match (&settings.store, std::env::var("ATOLL_INDEX")) {
        (_, Ok(url)) if !url.is_empty() => atoll_index::Choice::Postgres(url),
        (StoreChoice::Memory, _) => atoll_index::Choice::Memory,
        _ => atoll_index::Choice::Sqlite(settings.data_dir.join("index.sqlite")),
    };
    progress.stage("reading the index …");
    let index = atoll_index::Index::open(&choice).await?;
    let parts = Parts::new(hub.clone(), index, settings.denied, stop.clone());
    parts.manage.core().audit.keep(&settings.data_dir.join("audit.jsonl")).context("cannot keep the audit file")?;
    progress.stage("starting what runs in the background …");
    parts.start().await?;
    let serving = tokio::spawn(server.run(entry::Entry::new(&parts), stop.clone()));
    if let Some((members, nodes)) = settings.demo {
        demo::ensure(&parts, members, nodes, &progress).await?;
        tokio::spawn(demo::keep(parts.clone(), members, stop.clone()));
    }
    files::kubeconfig(&settings.data_dir, &hub, &token)?;
    drop(progress);
    eprintln!("atoll is ready at https://{address} after {} ms", started.elapsed().as_millis());
    eprintln!();
    eprintln!("  export KUBECONFIG={}", files::absolute(&settings.data_dir.join("kubeconfig")).display());
    if settings.demo.is_some() {
        eprint!("{}", demo::HINTS);
    }
    stop.cancelled().await;
    hub.shutdown.cancel();
    let _ = serving.await;
    Ok(())
}

fn server_names(listen: SocketAddr, domain: &str) -> Vec<String> {
    let mut names: Vec<String> =
        ["localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default", "kubernetes.default.svc"]
            .iter()
            .map(ToString::to_string)
            .collect();
    names.extend([domain.to_owned(), format!("*.{domain}")]);
    if !listen.ip().is_unspecified() {
        names.push(listen.ip().to_string());
    }
    names
}
