//! A server from its beginning to its end.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper_util::server::graceful::GracefulShutdown;
use tokio::runtime::{self, Runtime};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::connection::{self, Bounds};
use super::counters::HttpCounters;
use super::door::Door;
use super::found::Lookups;
use super::host::Hosts;
use super::opened::OpenedFiles;
use super::origin::Origin;
use super::pieces::PieceMemory;
use super::served::Served;
use super::session::Sessions;
use super::tls::Tls;
use super::token::Token;
use crate::error::ErrorLog;
use crate::threads::cores;
use crate::view::View;

/// How a view is served.
#[derive(Debug)]
pub struct ServerOptions {
    /// The name of the store, for people.
    pub store: String,
    /// The path in the view that clients see as the root.
    pub root: Vec<u8>,
    /// The names by which the server is called.
    pub hosts: Hosts,
    /// The secret of clients.
    pub token: Token,
    /// The origins of other sites whose pages may read what is served.
    pub origins: Vec<Origin>,
    /// How long an opened file is taken for the current one.
    pub file_time: Duration,
    /// The memory for bytes that clients have not taken yet, beside a few for each connection.
    pub memory_bytes: u64,
    /// The certificate of encrypted connections; `None` for connections that are not encrypted.
    pub tls: Option<Tls>,
    /// The bounds of connections.
    pub bounds: Bounds,
}

/// The server cannot begin.
#[derive(Debug, thiserror::Error)]
#[error("the server cannot begin: {0}")]
pub struct ServeError(#[from] io::Error);

/// A server that answers.
pub struct Server {
    runtime: Runtime,
    served: Arc<Served>,
    address: SocketAddr,
    accepting: JoinHandle<()>,
    connections: Arc<GracefulShutdown>,
}

impl Server {
    /// Serves `view` to the clients of `listener`, from threads of its own.
    ///
    /// # Errors
    /// [`ServeError`] when the system has no threads, sockets or random numbers.
    pub fn start(
        view: Arc<View>,
        listener: TcpListener,
        options: ServerOptions,
    ) -> Result<Server, ServeError> {
        let address = listener.local_addr()?;
        let served = Arc::new(Served {
            view,
            door: Door {
                hosts: options.hosts,
                token: options.token,
                sessions: Sessions::new(address.port(), options.tls.is_some())?,
                origins: options.origins,
            },
            store: options.store,
            process: RandomState::new().build_hasher().finish(),
            root: options.root,
            opened: OpenedFiles::new(options.file_time),
            lookups: Lookups::default(),
            errors: ErrorLog::new(),
            memory: PieceMemory::new(options.memory_bytes),
            counters: Arc::default(),
        });
        let runtime = runtime::Builder::new_multi_thread()
            .worker_threads(cores().max(2))
            .thread_name("serve")
            .enable_io()
            .enable_time()
            .build()?;
        listener.set_nonblocking(true)?;
        let _entered = runtime.enter();
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let connections = Arc::new(GracefulShutdown::new());
        let acceptor = Acceptor {
            listener,
            served: Arc::clone(&served),
            tls: options.tls.map(|tls| TlsAcceptor::from(tls.0)),
            bounds: options.bounds,
            connections: Arc::clone(&connections),
            free: Arc::new(Semaphore::new(options.bounds.most_connections)),
        };
        let accepting = runtime.spawn(acceptor.run());
        let files = Arc::clone(&served);
        runtime.spawn(async move {
            loop {
                sleep(Duration::from_secs(5)).await;
                files.opened.close_old(Instant::now());
            }
        });
        Ok(Server {
            runtime,
            served,
            address,
            accepting,
            connections,
        })
    }

    /// The address that it is bound to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The path of the link that lets one browser in, if it was not used yet.
    pub fn link(&self) -> Option<String> {
        self.served.door.sessions.link()
    }

    /// Takes no more connections, and ends those that are open when their answers are sent, or after `patience`.
    pub fn end(self, patience: Duration) {
        self.accepting.abort();
        let (accepting, connections) = (self.accepting, self.connections);
        self.runtime.block_on(async move {
            // When the task has ended, the socket is closed, and no other reference to the connections is left.
            drop(accepting.await);
            let Some(connections) = Arc::into_inner(connections) else {
                return;
            };
            if timeout(patience, connections.shutdown()).await.is_err() {
                log::info!("connections are cut off, because clients have not taken their answers");
            }
        });
        self.runtime.shutdown_timeout(patience);
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Server").field(&self.address).finish()
    }
}

/// The socket that clients connect to.
struct Acceptor {
    listener: tokio::net::TcpListener,
    served: Arc<Served>,
    tls: Option<TlsAcceptor>,
    bounds: Bounds,
    connections: Arc<GracefulShutdown>,
    /// A permit for each further connection.
    free: Arc<Semaphore>,
}

impl Acceptor {
    async fn run(self) {
        loop {
            let stream = match self.listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // The client is gone already, or there are no descriptors left, which takes a while.
                    log::debug!("a connection was not accepted: {error}");
                    sleep(Duration::from_millis(20)).await;
                    continue;
                }
            };
            let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() else {
                self.served.counters.refused.add(1);
                continue;
            };
            let (served, bounds) = (Arc::clone(&self.served), self.bounds);
            let (tls, watcher) = (self.tls.clone(), self.connections.watcher());
            let open = HttpCounters::open(&served.counters);
            tokio::spawn(async move {
                connection::serve(served, stream, tls, bounds, watcher).await;
                drop((open, permit));
            });
        }
    }
}
