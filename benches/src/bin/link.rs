//! A link that is long: bytes arrive half a round trip later, in each direction. How many are under
//! way is not limited. To connect costs no round trip.
//!
//! usage: `link PORT SERVER_PORT RTT_MS`
//!
//! Both ports are of 127.0.0.1. It runs until it is ended.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

const BUFFER_BYTES: usize = 256 << 10;
const STACK_BYTES: usize = 64 << 10;

fn main() -> io::Result<()> {
    let number = |n| {
        let argument = std::env::args().nth(n).unwrap_or_default();
        argument.parse::<u16>().map_err(io::Error::other)
    };
    let (port, server, rtt) = (number(1)?, number(2)?, number(3)?);
    let delay = Duration::from_millis(u64::from(rtt)) / 2;
    for client in TcpListener::bind(("127.0.0.1", port))?.incoming() {
        let client = client?;
        let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else {
            continue;
        };
        for stream in [&client, &server] {
            stream.set_nodelay(true)?;
        }
        carry(client.try_clone()?, server.try_clone()?, delay)?;
        carry(server, client, delay)?;
    }
    Ok(())
}

/// Carries bytes from one stream to the other, on two threads of its own.
fn carry(mut from: TcpStream, mut to: TcpStream, delay: Duration) -> io::Result<()> {
    let (send, receive) = mpsc::channel::<(Instant, Vec<u8>)>();
    let reader = move || {
        let mut buffer = vec![0; BUFFER_BYTES];
        while let Ok(n) = from.read(&mut buffer) {
            let Some(bytes) = buffer.get(..n).filter(|bytes| !bytes.is_empty()) else {
                break;
            };
            let arrival = Instant::now() + delay;
            if send.send((arrival, bytes.to_vec())).is_err() {
                // Nobody is there to read the rest, so nobody should send it.
                let _ = from.shutdown(Shutdown::Both);
                break;
            }
        }
    };
    let writer = move || {
        for (arrival, bytes) in receive {
            thread::sleep(arrival.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        // The other end may have closed it already.
        let _ = to.shutdown(Shutdown::Write);
    };
    let thread = || thread::Builder::new().stack_size(STACK_BYTES);
    thread().spawn(reader)?;
    thread().spawn(writer)?;
    Ok(())
}
