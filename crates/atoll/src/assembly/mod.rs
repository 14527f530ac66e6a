//! Puts a hub together from its parts and runs it.
//!
//! [`run`] opens the store and the hub, starts what every hub has (background work, instances),
//! listens, and then serves until told to stop.

mod address;
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

pub use address::Advertised;
pub use faults::FAULTS;
pub use instances::{EVENTS, NODES};
pub use parts::Parts;
use progress::Progress;
pub use side::SidePort;
pub use store::{EtcdFiles, StoreChoice, open as open_store};

/// What `up` and `serve` need to know.
pub struct Settings {
    /// Where objects are kept.
    pub store: StoreChoice,
    /// How etcd is spoken to.
    pub etcd: EtcdFiles,
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
    /// Where others reach the hub, if not where it listens.
    pub advertise: Option<Advertised>,
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
    let engine = store::open(&settings.store, &settings.etcd).await?;
    let token = files::token(&settings.data_dir)?;
    let keys = Keys::default();
    keys.add_token(&token, Identity::master("atoll:admin"));
    let options = Options { advertise: Some(address), domain: settings.domain, ..Options::default() };
    let hub = Hub::open(engine, keys, Arc::new(jiff::Timestamp::now), options).await?;
    let url = address::url(address, settings.advertise.as_ref());
    hub.set_url(&url);
    let names = address::names(address, settings.advertise.as_ref(), hub.domain());
    let names = names.iter().map(|name| San::new(name)).collect();
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
    let parts = Parts::new(hub.clone(), index, settings.denied, settings.store.is_shared(), stop.clone());
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
    eprintln!("atoll is ready at {url} after {} ms", started.elapsed().as_millis());
    if address.ip().is_unspecified() && settings.advertise.is_none() {
        eprintln!(
            "others reach it by the name or address that --advertise says; its certificate holds for this machine only"
        );
    }
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
