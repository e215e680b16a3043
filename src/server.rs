//! Assembly: from a configuration to a running process, and from a signal to its end.

mod reload;

use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures_util::FutureExt;
use pingora::server::configuration::ServerConf;
use pingora::server::{RunArgs, Server, ShutdownSignal, ShutdownSignalWatch};
use pingora::services::listening::Service;
use tokio::net::TcpSocket;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;
use tracing::{info, warn};

use self::reload::Reload;
use crate::admin::Admin;
use crate::config::{Config, Readiness, Sources};
use crate::metrics::Metrics;
use crate::proxy::Gateway;
use crate::route::Route;
use crate::store::{self, ClaimStore, OpenError};
use crate::{VERSION, telemetry};

/// How often the store is looked at.
const BETWEEN_LOOKS: Duration = Duration::from_secs(5);

/// How many connections may wait to be accepted; the system may allow fewer.
const MOST_UNACCEPTED: u32 = 65_535;

/// How long the listeners may take to come up.
const STARTING: Duration = Duration::from_secs(10);

/// The parts of pingora that speak of listeners and services, not of requests.
const TALKATIVE: [&str; 3] = ["pingora_core::listeners", "pingora_core::server", "pingora_core::services"];

/// Why the process could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The store cannot be used as it is.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// An address of the configuration cannot be listened on.
    #[error("cannot listen on `{address}`: {source}")]
    Listen {
        /// `server.listen` or `server.admin`.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// The listeners did not come up.
    #[error("nothing listens on `{0}` after {STARTING:?}")]
    NotListening(SocketAddr),
    /// The runtime could not be made.
    #[error("the runtime could not be started: {0}")]
    Runtime(#[source] std::io::Error),
    /// Two metrics have one name: a fault in hookonce.
    #[error("the metrics could not be made: {0}")]
    Metrics(#[from] prometheus::Error),
}

impl StartError {
    /// The way out, where there is one to name.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Store(error) => error.hint.as_deref(),
            Self::Listen { source, .. } if source.kind() == std::io::ErrorKind::AddrInUse => {
                Some("another process listens there; stop it, or change `server.listen` or `server.admin`")
            }
            Self::Listen { .. } | Self::NotListening(_) | Self::Runtime(_) | Self::Metrics(_) => None,
        }
    }

    /// The process's exit code: 78 (`EX_CONFIG`) where starting again would change nothing, else 1.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Store(_) => 78,
            Self::Listen { .. } | Self::NotListening(_) | Self::Runtime(_) | Self::Metrics(_) => 1,
        }
    }
}

/// Runs until SIGTERM or SIGINT. `path` is the file that `config` was read from, together with `sources`: when they
/// change, or at SIGHUP, its routes are read anew.
///
/// # Errors
///
/// [`StartError`], before anything is served.
pub fn run(path: &Path, config: Config, sources: Sources) -> Result<(), StartError> {
    telemetry::start(config.server.log, &TALKATIVE);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(StartError::Runtime)?;
    let metrics = Arc::new(Metrics::new(VERSION)?);
    let cannot = |address| move |source| StartError::Listen { address, source };
    let (listen, admin_listen) = (config.server.listen, config.server.admin);
    let listener = runtime.block_on(async { listen_on(listen) }).map_err(cannot(listen))?;
    // Pingora ends the process where it cannot listen; this way there is a word about it.
    drop(TcpListener::bind(admin_listen).map_err(cannot(admin_listen))?);
    let store = runtime.block_on(store::open(&config.store, Arc::clone(&metrics)))?;
    let routes: Vec<Route> = config.routes.iter().cloned().map(Route::new).collect();
    let gateway = Gateway::new(&config.server, routes, Arc::clone(&store), Arc::clone(&metrics));
    let stopping = gateway.stopping();
    // Before anything else, or SIGHUP would end the process.
    let hang_up = runtime.block_on(async { signal(SignalKind::hangup()) }).map_err(StartError::Runtime)?;
    let reload = Reload::new(path, config.clone(), sources, gateway.clone(), Arc::clone(&metrics));
    let ready = Arc::new(AtomicBool::new(false));

    let conf = ServerConf {
        threads: config.server.threads,
        // Pingora sleeps its whole grace period after it has closed the listeners; the process ends before it wakes.
        grace_period_seconds: Some(config.server.shutdown_grace.as_secs() + 60),
        graceful_shutdown_timeout_seconds: Some(1),
        ..ServerConf::default()
    };
    let mut server = Server::new_with_opt_and_conf(None, conf);
    server.bootstrap();
    server.add_service(gateway.service(&server.configuration, listener).map_err(StartError::Runtime)?);
    runtime.spawn(look_after(Arc::clone(&store)));
    let needs_store = config.server.readiness == Readiness::Store;
    let health = move || {
        let store = Arc::clone(&store);
        async move { store.health().await }.boxed()
    };
    let admin = Admin::new(metrics, Box::new(health), Arc::clone(&ready), needs_store);
    let mut admin = Service::new("admin".to_owned(), admin);
    admin.threads = Some(1);
    admin.add_tcp(&config.server.admin.to_string());
    server.add_service(admin);

    let stop = Arc::new(Notify::new());
    let signal = StopSignal { stop: Arc::clone(&stop) };
    std::thread::spawn(move || server.run(RunArgs { shutdown_signal: Box::new(signal) }));
    await_listener(config.server.admin)?;
    ready.store(true, Ordering::Release);
    runtime.spawn(reload.watch(hang_up));
    info!(listen = %config.server.listen, admin = %config.server.admin, version = VERSION, "ready");

    runtime.block_on(stop_signal()).map_err(StartError::Runtime)?;
    ready.store(false, Ordering::Release);
    info!(grace = ?config.server.shutdown_grace, "stopping: what is in flight ends, nothing is begun");
    stopping.begin();
    stop.notify_one();
    let ended =
        runtime.block_on(async { tokio::time::timeout(config.server.shutdown_grace, stopping.ended()).await.is_ok() });
    if ended {
        info!("stopped: nothing is in flight");
    } else {
        warn!("stopped: the grace period is over, what is still in flight is cut off");
        stopping.give_up();
    }
    Ok(())
}

/// Looks at the store's health, so that its gauges are true while no delivery comes.
async fn look_after(store: Arc<dyn ClaimStore>) {
    let mut pause = tokio::time::interval(BETWEEN_LOOKS);
    loop {
        pause.tick().await;
        store.health().await;
    }
}

/// Listens from now on; whoever connects before anything is accepted waits.
fn listen_on(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A gateway that is started again need not wait for the connections of the one before.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(MOST_UNACCEPTED)?.into_std()
}

async fn stop_signal() -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

/// Waits until something listens, so that whoever reads `/readyz` can rely on it.
fn await_listener(address: SocketAddr) -> Result<(), StartError> {
    let mut reachable = address;
    if address.ip().is_unspecified() {
        reachable.set_ip(match address.ip() {
            IpAddr::V4(_) => IpAddr::from([127, 0, 0, 1]),
            IpAddr::V6(_) => IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]),
        });
    }
    let begun = Instant::now();
    while begun.elapsed() < STARTING {
        if TcpStream::connect_timeout(&reachable, STARTING).is_ok() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Err(StartError::NotListening(address))
}

/// Tells pingora to close its listeners.
struct StopSignal {
    stop: Arc<Notify>,
}

#[async_trait]
impl ShutdownSignalWatch for StopSignal {
    async fn recv(&self) -> ShutdownSignal {
        self.stop.notified().await;
        ShutdownSignal::GracefulTerminate
    }
}
