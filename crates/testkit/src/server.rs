//! A hub as users run it, inside the test process: TLS port, background work, kubeconfig.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use atoll_apiserver::auth::Keys;
use atoll_apiserver::{ApiService, Hub, Identity, Server};
use atoll_background::Background;
use atoll_pki::{Access, Auth, Kubeconfig, San, ServerCerts, Validity};
use atoll_runtime::Endpoint;
use atoll_store::{Engine, MemoryEngine, RedbEngine};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

/// Where the objects of a test server are kept.
#[derive(Clone, Debug, Default)]
pub enum EngineChoice {
    /// In memory; they survive [`TestServer::restart`], not the test.
    #[default]
    Memory,
    /// In files of a directory.
    Redb(PathBuf),
}

/// How to start a server. Its `root` treats pods as a cluster that runs them does.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Where objects are kept.
    pub engine: EngineChoice,
    /// How much history the store keeps.
    pub store: atoll_store::Options,
    /// Makes `root` a simulated cluster: workload controllers, a scheduler and these nodes, if any.
    pub sim: Option<atoll_sim::Spec>,
}

/// A running hub. It has its own threads, so that tests with and without a runtime can share it.
pub struct TestServer {
    options: Options,
    memory: Arc<dyn Engine>,
    files: tempfile::TempDir,
    token: String,
    address: SocketAddr,
    running: Option<Running>,
}

struct Running {
    runtime: Runtime,
    hub: Arc<Hub>,
    service: ApiService,
    stop: CancellationToken,
    serving: tokio::task::JoinHandle<()>,
    sim: Option<atoll_sim::Sim>,
}

impl TestServer {
    /// Starts a hub on a free port of the loopback.
    pub fn start(options: Options) -> anyhow::Result<Self> {
        let mut own = Self {
            memory: Arc::new(MemoryEngine::with(options.store.clone())),
            options,
            files: tempfile::tempdir()?,
            token: atoll_pki::random_text(32)?,
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            running: None,
        };
        own.run()?;
        Ok(own)
    }

    /// A server in memory with everything at its default.
    pub fn memory() -> anyhow::Result<Self> {
        Self::start(Options::default())
    }

    fn run(&mut self) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let (engine, token, address) = (self.engine()?, self.token.clone(), self.address);
        let sim = self.options.sim.clone();
        // A test may run on a runtime of its own, where waiting for another one is not allowed.
        let running = std::thread::spawn(move || {
            let running = runtime.block_on(open(engine, &token, address, sim));
            running.map(|running| (runtime, running))
        });
        let (runtime, opened) = running.join().map_err(|_| anyhow::anyhow!("the server panicked while starting"))??;
        self.address = opened.address;
        let Opened { hub, service, stop, serving, sim, .. } = opened;
        self.running = Some(Running { runtime, hub, service, stop, serving, sim });
        self.write_kubeconfig()
    }

    fn engine(&self) -> anyhow::Result<Arc<dyn Engine>> {
        Ok(match &self.options.engine {
            EngineChoice::Memory => self.memory.clone(),
            EngineChoice::Redb(directory) => {
                std::fs::create_dir_all(directory)?;
                Arc::new(RedbEngine::open(directory, self.options.store.clone())?)
            }
        })
    }

    fn live(&self) -> &Running {
        self.running.as_ref().expect("the server was stopped")
    }

    /// The hub.
    pub fn hub(&self) -> &Arc<Hub> {
        &self.live().hub
    }

    /// Its API, without a socket.
    pub fn service(&self) -> &ApiService {
        &self.live().service
    }

    /// Where it listens, without a slash at the end.
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// The token of its administrator.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// A kubeconfig with one context per instance; `root` is the current one.
    pub fn kubeconfig(&self) -> PathBuf {
        self.files.path().join("kubeconfig")
    }

    /// A directory that lives as long as the server.
    pub fn scratch(&self) -> &Path {
        self.files.path()
    }

    /// A way to an instance with all rights, without a socket.
    pub fn endpoint(&self, instance: &str) -> Endpoint {
        endpoint(self.service(), instance, "atoll-test")
    }

    /// Makes an instance and adds it to the kubeconfig.
    pub fn create_instance(&self, name: &str) -> anyhow::Result<()> {
        let (hub, name) = (self.hub().clone(), name.to_owned());
        self.wait(async move { hub.create_instance(&name).await })?.map_err(|status| anyhow::anyhow!("{status}"))?;
        self.write_kubeconfig()
    }

    /// Runs something on the server's threads and waits for it.
    pub fn wait<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> anyhow::Result<T> {
        let (sender, receiver) = std::sync::mpsc::channel();
        self.live().runtime.spawn(async move {
            let _ = sender.send(work.await); // nobody waits any more: nothing to tell
        });
        receiver.recv().context("the work panicked")
    }

    /// Forgets the history of an instance up to now, so that older resourceVersions answer 410.
    pub fn compact(&self, instance: &str) -> anyhow::Result<()> {
        let hub = self.hub().clone();
        let instance = hub.instance(instance).context("no such instance")?;
        self.wait(async move {
            let now = hub.engine().revision(instance.id)?;
            hub.engine().compact(instance.id, now).await
        })?
        .map_err(|error| anyhow::anyhow!("{error}"))
    }

    /// Ends the server and starts it again over the same data, at the same address.
    pub fn restart(&mut self) -> anyhow::Result<()> {
        self.stop();
        self.run()
    }

    /// Ends the server: watches are closed, the port is free, the data stays.
    pub fn stop(&mut self) {
        let Some(Running { runtime, hub, service, stop, serving, sim }) = self.running.take() else { return };
        let (sender, receiver) = std::sync::mpsc::channel();
        runtime.spawn(async move {
            stop.cancel();
            hub.shutdown.cancel();
            let _ = serving.await;
            let _ = sender.send(());
        });
        let _ = receiver.recv_timeout(std::time::Duration::from_secs(30));
        drop((service, sim));
        // Tasks hold the store open; they must be gone before somebody opens it again.
        let ended = std::thread::spawn(move || runtime.shutdown_timeout(std::time::Duration::from_secs(10)));
        let _ = ended.join();
    }

    fn write_kubeconfig(&self) -> anyhow::Result<()> {
        let hub = self.hub();
        let mut config = Kubeconfig::new();
        for instance in hub.instances() {
            let access = Access {
                server: hub.url(&instance),
                ca_pem: Some(hub.keys().own().serving.cert_pem()),
                insecure: false,
                tls_server_name: None,
                auth: Auth::Token(self.token.clone()),
                namespace: None,
            };
            config.add(&instance.name, &access);
        }
        config.set_current("root");
        config.write(&self.kubeconfig())?;
        Ok(())
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.stop();
    }
}

struct Opened {
    hub: Arc<Hub>,
    service: ApiService,
    stop: CancellationToken,
    serving: tokio::task::JoinHandle<()>,
    address: SocketAddr,
    sim: Option<atoll_sim::Sim>,
}

fn endpoint(service: &ApiService, instance: &str, agent: &str) -> Endpoint {
    let identity = Identity::master("atoll:test");
    Endpoint::in_process(service.clone(), instance, agent, move |extensions| {
        extensions.insert(identity.clone());
    })
}

async fn open(
    engine: Arc<dyn Engine>,
    token: &str,
    address: SocketAddr,
    sim: Option<atoll_sim::Spec>,
) -> anyhow::Result<Opened> {
    let certs = Arc::new(ServerCerts::default());
    let tls = Arc::new(atoll_pki::server_config(certs.clone(), &[b"h2", b"http/1.1"])?);
    let server = Server::bind(address, tls).await?;
    let address = server.address()?;
    let keys = Keys::default();
    keys.add_token(token, Identity::master("atoll:admin"));
    let options = atoll_apiserver::Options { advertise: Some(address), ..atoll_apiserver::Options::default() };
    let hub = Hub::open(engine, keys, Arc::new(jiff::Timestamp::now), options)
        .await
        .map_err(|status| anyhow::anyhow!("{status}"))?;
    hub.set_url(&format!("https://{address}"));
    hub.root().set_features(atoll_apiserver::Features::member());
    hub.add_admission(Arc::new(atoll_sim::ServiceAddresses::new(|_| true)));
    let names = ["localhost", "127.0.0.1", "kubernetes.default.svc"].map(San::new);
    certs.set(None, &hub.keys().own().serving.issue_server(&names, Validity::days(hub.now(), 2))?)?;
    let stop = CancellationToken::new();
    Background::start(hub.clone(), &hub.keys().own().serving.cert_pem(), stop.clone());
    let service = ApiService::new(hub.clone());
    let serving = tokio::spawn(server.run(service.clone(), stop.clone()));
    let sim = match sim {
        Some(spec) => Some(simulate(&hub, &service, spec, stop.clone()).await?),
        None => None,
    };
    Ok(Opened { hub, service, stop, serving, address, sim })
}

async fn simulate(
    hub: &Arc<Hub>,
    service: &ApiService,
    spec: atoll_sim::Spec,
    stop: CancellationToken,
) -> anyhow::Result<atoll_sim::Sim> {
    atoll_sim::install(hub);
    let endpoint = endpoint(service, "root", "kube-controller-manager");
    atoll_sim::Sim::start(hub.clone(), endpoint, "root", spec, stop).await.map_err(|status| anyhow::anyhow!("{status}"))
}
