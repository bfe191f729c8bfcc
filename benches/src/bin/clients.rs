//! Clients that read one file, of a mount or of a web server, side by side, and how long they took.
//!
//! usage: `clients SOURCE whole` | `clients SOURCE ranges CLIENTS BYTES` | `clients SOURCE load CLIENTS BYTES SECONDS`
//!
//! SOURCE is a path or `http://ADDRESS:PORT/PATH`; the variable `TOKEN` has the token of the server.
//!
//! * `whole`: one client reads the file from end to end, with buffers of 1 MiB.
//! * `ranges`: the clients read all pieces of the file, each once, in an order that looks random.
//! * `load`: the clients read such pieces until the time is over, and begin anew where all were read. Requests that fail
//!   are counted.
//!
//! Each client has a thread, and a descriptor or a connection of its own, which is open before the clock starts.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::FileExt;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use zarr_mount_benches::arguments::{argument, number};
use zarr_mount_benches::report;

const BUFFER_BYTES: usize = 1 << 20;
const STACK_BYTES: usize = 256 << 10;
/// How long a client waits for the next bytes of a server.
const PATIENCE: Duration = Duration::from_secs(60);

fn main() -> io::Result<()> {
    let source = argument(1)?;
    let told = match argument(2)?.as_str() {
        "whole" => whole(&source)?,
        "ranges" => side_by_side(&source, number(3)?, number(4)?, None)?,
        "load" => {
            let seconds = u64::try_from(number(5)?).map_err(io::Error::other)?;
            side_by_side(
                &source,
                number(3)?,
                number(4)?,
                Some(Duration::from_secs(seconds)),
            )?
        }
        _ => return Err(io::Error::other("what to read?")),
    };
    report::tell(&told);
    Ok(())
}

fn whole(source: &str) -> io::Result<Value> {
    let mut client = Client::open(source)?;
    let len = client.len()?;
    let mut buffer = vec![1; BUFFER_BYTES];
    let start = Instant::now();
    match &mut client {
        Client::File(file) => while file.read(&mut buffer)? > 0 {},
        Client::Server(server) => server.get(None, &mut buffer)?,
    }
    Ok(report::reading(start.elapsed(), len))
}

/// Reads with many clients: each piece once, or until `time` is over.
fn side_by_side(
    source: &str,
    clients: usize,
    bytes: usize,
    time: Option<Duration>,
) -> io::Result<Value> {
    let len = Client::open(source)?.len()?;
    let pieces = len / bytes as u64;
    let order = Order::of(pieces)?;
    let (next, failed) = (AtomicU64::new(0), AtomicU64::new(0));
    let barrier = Barrier::new(clients + 1);
    let work = || -> io::Result<Vec<Duration>> {
        let client = Client::open(source);
        barrier.wait();
        let (mut client, start) = (client?, Instant::now());
        let (mut buffer, mut each) = (vec![1; bytes], Vec::new());
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if time.map_or(number >= pieces, |time| start.elapsed() >= time) {
                return Ok(each);
            }
            let begun = Instant::now();
            let read = client.read_at(order.place(number % pieces) * bytes as u64, &mut buffer);
            match (read, time) {
                (Ok(()), _) => each.push(begun.elapsed()),
                (Err(error), None) => return Err(error),
                (Err(_), Some(_)) => {
                    failed.fetch_add(1, Ordering::Relaxed);
                    client = Client::open(source)?;
                }
            }
        }
    };
    let (elapsed, each) = thread::scope(|scope| -> io::Result<_> {
        let threads: Vec<_> = (0..clients)
            .map(|_| {
                thread::Builder::new()
                    .stack_size(STACK_BYTES)
                    .spawn_scoped(scope, work)
            })
            .collect::<io::Result<_>>()?;
        barrier.wait();
        let start = Instant::now();
        let mut each = Vec::new();
        for thread in threads {
            each.extend(
                thread
                    .join()
                    .map_err(|_| io::Error::other("a client panicked"))??,
            );
        }
        Ok((start.elapsed(), each))
    })?;
    let read = each.len() as u64 * bytes as u64;
    let latencies = report::latencies(each);
    Ok(json!({
        "seconds": elapsed.as_secs_f64(), "bytes": read, "failed": failed.into_inner(),
        "count": latencies["count"], "p50": latencies["p50"], "p99": latencies["p99"],
    }))
}

/// The numbers below `n` in an order that looks random: multiples of a number that has no divisor in common with `n`.
struct Order {
    n: u64,
    step: u64,
}

impl Order {
    fn of(n: u64) -> io::Result<Order> {
        let divisor = |mut a: u64, mut b: u64| {
            while b > 0 {
                (a, b) = (b, a % b);
            }
            a
        };
        // The step is about `n` divided by the golden ratio, so that neighbours are far apart.
        let first = (n / 8 * 5).max(1);
        let step = (first..first + n).find(|&step| divisor(step, n) == 1);
        let step = step.ok_or_else(|| io::Error::other("the file is shorter than a piece"))?;
        Ok(Order { n, step })
    }

    fn place(&self, number: u64) -> u64 {
        let product = u128::from(number) * u128::from(self.step) % u128::from(self.n);
        u64::try_from(product).unwrap_or_default()
    }
}

enum Client {
    File(File),
    Server(Server),
}

impl Client {
    fn open(source: &str) -> io::Result<Client> {
        match source.strip_prefix("http://") {
            Some(address) => Ok(Client::Server(Server::connect(address)?)),
            None => Ok(Client::File(File::open(source)?)),
        }
    }

    fn len(&mut self) -> io::Result<u64> {
        match self {
            Client::File(file) => Ok(file.metadata()?.len()),
            Client::Server(server) => server.ask("HEAD", ""),
        }
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        match self {
            Client::File(file) => file.read_exact_at(buffer, offset),
            Client::Server(server) => server.get(Some(offset), buffer),
        }
    }
}

/// A connection that carries one request after another.
struct Server {
    stream: BufReader<TcpStream>,
    host: String,
    path: String,
    token: String,
}

impl Server {
    fn connect(address: &str) -> io::Result<Server> {
        let (host, path) = address.split_once('/').unwrap_or((address, ""));
        let stream = TcpStream::connect(host)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Server {
            stream: BufReader::new(stream),
            host: host.to_owned(),
            path: format!("/{path}"),
            token: std::env::var("TOKEN").unwrap_or_default(),
        })
    }

    /// Sends a request, and reads the headers of its answer. The result is the length of the body.
    fn ask(&mut self, method: &str, more: &str) -> io::Result<u64> {
        let Server {
            host, path, token, ..
        } = self;
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n{more}\r\n"
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let wanted = if more.is_empty() { " 200 " } else { " 206 " };
        if !line.contains(wanted) {
            return Err(io::Error::other(format!(
                "expected{wanted}, found {line:?}"
            )));
        }
        let mut len = None;
        loop {
            line.clear();
            if self.stream.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let Some((name, value)) = line.split_once(':') else {
                return len.ok_or_else(|| io::Error::other("no length"));
            };
            if name.eq_ignore_ascii_case("content-length") {
                len = value.trim().parse().ok();
            }
        }
    }

    /// Reads the file, or the range from `offset` on that is as long as `buffer`.
    fn get(&mut self, offset: Option<u64>, buffer: &mut [u8]) -> io::Result<()> {
        let range = offset.map(|offset| {
            format!(
                "Range: bytes={offset}-{}\r\n",
                offset + buffer.len() as u64 - 1
            )
        });
        let mut left = self.ask("GET", &range.unwrap_or_default())?;
        while left > 0 {
            let most = usize::try_from(left)
                .unwrap_or(usize::MAX)
                .min(buffer.len());
            let n = self.stream.read(&mut buffer[..most])?;
            if n == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            left -= n as u64;
        }
        Ok(())
    }
}
