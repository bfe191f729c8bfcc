//! A server and clients on plain sockets.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Bounds, Hosts, Server, ServerOptions, Token};
use crate::store::{Key, Location, MemoryStore, OpenOptions, Store, open_store_for};
use crate::view::{ArrayOptions, FileFormat, View, ViewKind, ViewOptions};

/// A wait until a test is given up, and never a measure of speed.
const PATIENCE: Duration = Duration::from_secs(60);

fn server(bounds: Bounds) -> (Server, Token) {
    let location = Location::parse("demo:".as_ref()).unwrap();
    let store = open_store_for(&location, &OpenOptions::default()).unwrap();
    let view = Arc::new(View::new(store, ViewOptions::default()).unwrap());
    server_of(view, bounds)
}

fn server_of(view: Arc<View>, bounds: Bounds) -> (Server, Token) {
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let token = Token::new().unwrap();
    let options = ServerOptions {
        store: "demo:".to_owned(),
        root: Vec::new(),
        hosts: Hosts::new(listener.local_addr().unwrap(), "", &[]),
        token: token.clone(),
        origins: Vec::new(),
        file_time: Duration::from_secs(1),
        memory_bytes: 1 << 20,
        tls: None,
        bounds,
    };
    (Server::start(view, listener, options).unwrap(), token)
}

fn connect(server: &Server) -> TcpStream {
    let client = TcpStream::connect(server.address()).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client
}

/// All that the server sends until it closes the connection.
fn rest(mut client: TcpStream) -> String {
    let mut answer = Vec::new();
    // A connection that is reset has nothing more to say either.
    drop(client.read_to_end(&mut answer));
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn a_client_that_sends_its_headers_slowly_is_cut_off() {
    let (server, _) = server(Bounds {
        header_time: Duration::from_millis(300),
        ..Bounds::default()
    });
    let begun = Instant::now();
    let mut silent = connect(&server);
    let mut slow = connect(&server);
    slow.write_all(b"GET / HTTP/1.1\r\n").unwrap();
    while slow.write_all(b"X: y\r\n").is_ok() {
        assert!(begun.elapsed() < PATIENCE, "it was not cut off");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!rest(slow).contains(" 200 "));
    silent.flush().unwrap();
    assert!(!rest(silent).contains(" 200 "));
    assert!(begun.elapsed() < PATIENCE);
    server.end(PATIENCE);
}

#[test]
fn there_are_so_many_connections_and_no_more() {
    let (server, token) = server(Bounds {
        most_connections: 2,
        ..Bounds::default()
    });
    let ask = format!(
        "GET /zarr.json HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n",
        token.reveal()
    );
    let held = [connect(&server), connect(&server)];
    // The two are held when the server has answered one of them.
    let mut refused = String::from(" 200 ");
    let begun = Instant::now();
    while refused.contains(" 200 ") {
        assert!(begun.elapsed() < PATIENCE);
        let mut third = connect(&server);
        drop(third.write_all(ask.as_bytes()));
        refused = rest(third);
    }
    assert_eq!(refused, "");
    for mut client in held {
        client.write_all(ask.as_bytes()).unwrap();
        assert!(rest(client).starts_with("HTTP/1.1 200 "));
    }
    server.end(PATIENCE);
}

#[test]
fn a_server_ends_though_clients_stay() {
    let (server, _) = server(Bounds::default());
    let idle = connect(&server);
    let address = server.address();
    server.end(Duration::from_millis(500));
    assert_eq!(rest(idle), "");
    assert!(TcpStream::connect(address).is_err());
}

/// An answer to a request for the file at `path`, with more `headers`.
fn get(server: &Server, token: &Token, path: &str, headers: &str) -> Vec<u8> {
    let ask = format!(
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n{headers}Connection: close\r\n\r\n",
        token.reveal()
    );
    let mut client = connect(server);
    client.write_all(ask.as_bytes()).unwrap();
    let mut answer = Vec::new();
    // The connection may be broken.
    drop(client.read_to_end(&mut answer));
    answer
}

/// A store with the array `a` of 64 chunks of 64 KiB, and its view as `a.npy`.
fn array_of_chunks() -> (Arc<MemoryStore>, Arc<View>) {
    const GROUP: &str = r#"{"zarr_format": 3, "node_type": "group"}"#;
    const ARRAY: &str = r#"{"zarr_format": 3, "node_type": "array", "shape": [4194304], "data_type": "uint8",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [65536]}},
        "chunk_key_encoding": {"name": "default"}, "fill_value": 0, "codecs": [{"name": "bytes"}]}"#;
    let store = Arc::new(MemoryStore::new());
    put(&store, "zarr.json", GROUP.into());
    put(&store, "a/zarr.json", ARRAY.into());
    for index in 0..64 {
        put(&store, &format!("a/c/{index}"), vec![1; 64 << 10]);
    }
    let options = ViewOptions {
        views: vec![ViewKind::Arrays],
        arrays: ArrayOptions {
            files: vec![FileFormat::Npy],
            ..ArrayOptions::default()
        },
        ..ViewOptions::default()
    };
    let view = View::new(Arc::clone(&store) as Arc<dyn Store>, options);
    (store, Arc::new(view.unwrap()))
}

fn put(store: &MemoryStore, key: &str, bytes: Vec<u8>) {
    store.insert(Key::parse(key.as_bytes()).unwrap(), bytes);
}

#[test]
fn an_error_behind_the_head_is_reported_and_the_file_is_opened_anew() {
    for (headers, begin) in [
        ("", "HTTP/1.1 200 "),
        ("Range: bytes=0-9, 2000000-4000000\r\n", "HTTP/1.1 206 "),
    ] {
        let (store, view) = array_of_chunks();
        put(&store, "a/c/40", vec![1; 1000]);
        let (server, token) = server_of(Arc::clone(&view), Bounds::default());
        let broken = get(&server, &token, "/a.npy", headers);
        assert!(broken.starts_with(begin.as_bytes()));
        assert_eq!(view.requests().errors_io.get(), 1, "{headers:?}");
        put(&store, "a/c/40", vec![1; 64 << 10]);
        let whole = get(&server, &token, "/a.npy", headers);
        assert!(whole.starts_with(begin.as_bytes()));
        assert!(whole.len() > broken.len(), "{headers:?}");
        assert_eq!(view.requests().errors_io.get(), 1, "{headers:?}");
        server.end(PATIENCE);
    }
}
