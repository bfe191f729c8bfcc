//! Connections, and what a client may take of time and memory before it has shown a token.

use std::convert::Infallible;
use std::future::Future;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::Watcher;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::routes;
use super::served::Served;

/// Bounds of connections.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// The most connections at once. Further ones are closed.
    pub most_connections: usize,
    /// The longest time until the headers of a request have come, from the answer to the one before.
    pub header_time: Duration,
    /// The longest time in which a client takes nothing of an answer.
    pub stall_time: Duration,
    /// The most bytes of the headers of a request.
    pub header_bytes: usize,
    /// The most headers of a request.
    pub most_headers: usize,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            most_connections: 2048,
            header_time: Duration::from_secs(30),
            stall_time: Duration::from_secs(60),
            header_bytes: 16 << 10,
            most_headers: 100,
        }
    }
}

/// Answers the requests of a client until it goes, or takes too long.
pub(super) async fn serve(
    served: Arc<Served>,
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    bounds: Bounds,
    watcher: Watcher,
) {
    // Answers are short, or come in large pieces, so that waiting for more bytes would only delay them.
    if let Err(error) = stream.set_nodelay(true) {
        log::debug!("a connection: {error}");
    }
    let Some(tls) = tls else {
        return serve_stream(served, stream, bounds, watcher).await;
    };
    match timeout(bounds.header_time, tls.accept(stream)).await {
        Ok(Ok(stream)) => serve_stream(served, stream, bounds, watcher).await,
        Ok(Err(error)) => log::debug!("a connection is not encrypted: {error}"),
        Err(_) => log::debug!("a client takes too long to encrypt its connection"),
    }
}

async fn serve_stream<S>(served: Arc<Served>, stream: S, bounds: Bounds, watcher: Watcher)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let stream = Guarded::new(TokioIo::new(stream), bounds.stall_time);
    let answer = service_fn(move |request: Request<Incoming>| {
        let served = Arc::clone(&served);
        async move { Ok::<_, Infallible>(routes::answer(served, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(bounds.header_time)
        .max_buf_size(bounds.header_bytes)
        .max_headers(bounds.most_headers)
        .serve_connection(stream, answer);
    if let Err(error) = watcher.watch(connection).await {
        log::debug!("a connection has ended: {error}");
    }
}

/// A connection that breaks when the other side takes no bytes for too long.
struct Guarded<S> {
    stream: S,
    time: Duration,
    deadline: Pin<Box<Sleep>>,
    is_stalled: bool,
}

impl<S> Guarded<S> {
    fn new(stream: S, time: Duration) -> Guarded<S> {
        Guarded {
            stream,
            time,
            deadline: Box::pin(sleep(time)),
            is_stalled: false,
        }
    }

    /// Passes on what the stream says of bytes that are sent, or an error if it has been saying "later" for too long.
    fn guard<T>(&mut self, cx: &mut Context<'_>, sent: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if sent.is_ready() {
            self.is_stalled = false;
            return sent;
        }
        if !self.is_stalled {
            self.is_stalled = true;
            self.deadline.as_mut().reset(Instant::now() + self.time);
        }
        match self.deadline.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: Read + Unpin> Read for Guarded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: Write + Unpin> Write for Guarded<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let sent = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.guard(cx, sent)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let sent = Pin::new(&mut self.stream).poll_flush(cx);
        self.guard(cx, sent)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let sent = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.guard(cx, sent)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let sent = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.guard(cx, sent)
    }
}
