//! Whole-array files of a store on a server, whose objects are replaced while they are read: all bytes
//! that one open file gives are of one state of the store, or the read fails.
//!
//! The server shows versions in all the ways in which servers do. It changes its objects between
//! requests, as a generator of random numbers says that has a fixed seed. `ZARR_MOUNT_SEQUENCES` gives
//! another number of sequences for each way, with more seeds.

#![cfg(feature = "remote")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]
#![allow(clippy::cast_possible_truncation, reason = "small test data")]

mod common;
#[path = "moments/server.rs"]
mod server;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use zarr_mount::error::Error;
use zarr_mount::store::{RemoteOptions, RemoteStore, RemoteUrl, StoreError};
use zarr_mount::view::{OpenFile, View, ViewKind};

use self::common::random::{Random, for_seeds};
use self::server::{CHUNKS, Dates, ITEMS, Layout, Server, Service, Ways};

/// Sequences for each way of a server and each layout.
const SEQUENCES: u64 = 2;

/// Files that are opened in a sequence.
const FILES: usize = 6;

/// Reads of an open file.
const READS: usize = 8;

/// One of so many requests comes just before a change of the store.
const REQUESTS_PER_CHANGE: [u64; 2] = [12, 40];

const HOUR: i64 = 3600;

fn ways() -> Vec<Ways> {
    let mut all = Vec::new();
    for (service, tags, dates) in [
        (Service::Http, true, Dates::None),
        (Service::Http, true, Dates::Upload),
        (Service::Http, true, Dates::Old),
        (Service::Http, false, Dates::None),
        (Service::Http, false, Dates::Old),
        (Service::S3, true, Dates::Upload),
    ] {
        let clocks: &[i64] = match dates {
            Dates::None => &[0],
            Dates::Upload | Dates::Old => &[0, HOUR, -HOUR],
        };
        for &clock in clocks {
            all.push(Ways {
                service,
                tags,
                dates,
                clock,
                heads: None,
            });
        }
    }
    all.push(Ways {
        heads: Some("403 Forbidden"),
        ..WEB_SERVER
    });
    all
}

/// A web server, which has no times of uploads: its answers have only versions.
const WEB_SERVER: Ways = Ways {
    service: Service::Http,
    tags: true,
    dates: Dates::Old,
    clock: 0,
    heads: None,
};

fn view(server: &Server, ttl: Duration) -> Arc<View> {
    let (url, endpoint) = match server.ways().service {
        Service::Http => (format!("{}/z", server.url()), None),
        Service::S3 => ("s3://bucket/z".to_owned(), Some(server.url().to_owned())),
    };
    let options = RemoteOptions {
        anonymous: true,
        region: endpoint.as_ref().map(|_| "us-east-1".to_owned()),
        endpoint,
        time_to_live: Some(ttl),
        ..RemoteOptions::default()
    };
    let url = RemoteUrl::parse(&url).unwrap().unwrap();
    let store = RemoteStore::open(url, &options).unwrap();
    common::view_of_raw_files(Arc::new(store), vec![ViewKind::Arrays], ttl)
}

/// The contents that an open file has shown: the number in each chunk.
type Shown = BTreeMap<usize, u32>;

/// Reads a range of chunks; whether it succeeded.
fn read(file: &Arc<OpenFile>, chunks: std::ops::Range<usize>, shown: &mut Shown) -> bool {
    const CHUNK: usize = ITEMS * 4;
    let (offset, len) = (chunks.start * CHUNK, chunks.len() * CHUNK);
    let bytes = match common::read_at(file, offset as u64, len) {
        Ok(bytes) => bytes,
        Err(Error::Stale | Error::Store(StoreError::Changed { .. })) => return false,
        Err(other) => panic!("{other}"),
    };
    for (chunk, bytes) in chunks.zip(bytes.chunks_exact(CHUNK)) {
        let mut items = bytes.chunks_exact(4);
        let mut items = items
            .by_ref()
            .map(|item| u32::from_le_bytes(item.try_into().unwrap()));
        let number = items.next().unwrap();
        assert!(items.all(|item| item == number), "chunk {chunk} is a mix");
        let before = shown.insert(chunk, number);
        assert!(
            before.is_none_or(|before| before == number),
            "chunk {chunk} changed"
        );
    }
    true
}

/// Reads parts of a file that is opened anew.
fn read_some(view: &Arc<View>, random: &mut Random, name: &str) -> Shown {
    let mut shown = Shown::new();
    let Ok(Some(file)) = common::open(view, name) else {
        return shown;
    };
    let in_order = random.below(2) == 0;
    for number in 0..READS {
        let start = if in_order {
            number
        } else {
            random.below(CHUNKS as u64) as usize
        };
        let end = (start + 1 + random.below(4) as usize).min(CHUNKS);
        if start < end && !read(&file, start..end, &mut shown) {
            break;
        }
    }
    shown
}

fn sequence(ways: Ways, layout: Layout, seed: u64) {
    let mut random = Random::new(seed);
    let server = Server::start(ways, layout, CHUNKS, random.next());
    let ttl = Duration::from_secs(if seed.is_multiple_of(2) { 0 } else { 60 });
    let view = view(&server, ttl);
    let what = format!("{ways:?} {layout:?} seed {seed} ttl {ttl:?}");
    for _ in 0..FILES {
        server.change_every(REQUESTS_PER_CHANGE[random.below(2) as usize]);
        let shown = read_some(&view, &mut random, "z.raw");
        server.change_every(0);
        assert!(server.had(&shown), "{what}: no state has {shown:?}");
    }
    // If nothing changes any more, a program that opens the file once more after an error can read it.
    let mut shown = Shown::new();
    let is_read = (0..6).any(|_| {
        shown.clear();
        let Ok(Some(file)) = common::open(&view, "z.raw") else {
            return false;
        };
        (0..CHUNKS)
            .step_by(4)
            .all(|start| read(&file, start..(start + 4).min(CHUNKS), &mut shown))
    });
    let tells_versions = ways.tags || ways.dates != Dates::None;
    assert_eq!(is_read, tells_versions, "{what}");
    // Within the time to live, a mount may show an older state, which it remembers.
    let is_right = server.has(&shown) || !ttl.is_zero() && server.had(&shown);
    assert!(!is_read || is_right, "{what}: {shown:?}");
}

fn sequences(layout: Layout) {
    for (number, ways) in ways().into_iter().enumerate() {
        let first = 1_000_000 * number as u64;
        for_seeds(first, SEQUENCES, |seed| sequence(ways, layout, seed));
    }
}

#[test]
fn what_an_open_file_shows_is_of_one_state() {
    sequences(Layout::Plain);
}

#[test]
fn what_an_open_file_shows_of_shards_is_of_one_state() {
    sequences(Layout::Sharded);
}

/// A whole array of `n` chunks on a web server that does not change, and a view that remembers nothing.
fn unchanging(n: usize, ways: Ways) -> (Server, Arc<View>) {
    let server = Server::start(ways, Layout::Plain, n, 1);
    let view = view(&server, Duration::ZERO);
    (server, view)
}

/// Reads the first byte of each of `chunks` of `file`, one after the other.
fn touch(file: &Arc<OpenFile>, chunks: impl IntoIterator<Item = usize>) {
    for chunk in chunks {
        common::read_at(file, (chunk * ITEMS * 4) as u64, 1).unwrap();
    }
}

/// The requests per chunk that is read, for orders of reading that go on as they begin.
#[test]
fn the_number_of_requests_is_in_proportion_to_the_chunks_that_are_read() {
    let boxes = |n: usize| (0..n).flat_map(|row| (0..6).map(move |at| 100 * row + 7 + at));
    let orders: [(&str, usize, Vec<usize>); 4] = [
        ("in order", 600, (0..600).collect()),
        ("backwards", 600, (0..600).rev().collect()),
        ("every tenth", 6000, (0..600).map(|n| 10 * n).collect()),
        ("a box", 10_000, boxes(100).collect()),
    ];
    for (what, n, order) in orders {
        let (server, view) = unchanging(n, WEB_SERVER);
        let file = common::open(&view, "z.raw").unwrap().unwrap();
        let before = server.requests();
        let count = order.len();
        touch(&file, order);
        let requests = server.requests() - before;
        println!("{what}: {requests} requests for {count} of {n} chunks");
        assert!(requests <= 3 * count, "{what}: {requests} for {count}");
    }
}

/// Nothing foretells the next chunk. The requests are still not as many as the square of the reads.
#[test]
fn reads_at_random_places_ask_for_each_chunk_of_the_file_a_few_times_at_most() {
    const N: usize = 1500;
    let (server, view) = unchanging(N, WEB_SERVER);
    let file = common::open(&view, "z.raw").unwrap().unwrap();
    let mut random = Random::new(5);
    let before = server.requests();
    for number in 1..=500 {
        touch(&file, [random.below(N as u64) as usize]);
        let requests = server.requests() - before;
        let most = (2 * number * number + 2).min(3 * N + number);
        assert!(requests <= most, "{requests} for {number}");
    }
    println!(
        "at random: {} requests for 500 of {N}",
        server.requests() - before
    );
}

#[test]
fn a_file_that_is_opened_again_asks_for_what_is_read() {
    let (server, view) = unchanging(300, WEB_SERVER);
    for (chunks, most) in [(300, 1200), (300, 450), (5, 100), (300, 450)] {
        let before = server.requests();
        let file = common::open(&view, "z.raw").unwrap().unwrap();
        touch(&file, 0..chunks);
        let requests = server.requests() - before;
        println!("opened and {chunks} of 300 chunks read: {requests} requests");
        assert!(
            (chunks..most).contains(&requests),
            "{requests} for {chunks}"
        );
    }
    let before = server.requests();
    let bytes = server.bytes();
    drop(common::open(&view, "z.raw").unwrap().unwrap());
    // Those for documents.
    assert!(server.requests() - before <= 100);
    assert_eq!(
        server.bytes(),
        bytes,
        "documents that have not changed are not sent"
    );
}

#[test]
fn a_server_that_refuses_requests_for_attributes_is_asked_for_first_bytes() {
    for heads in ["401 No", "403 No", "405 No", "501 No", "400 No"] {
        let ways = Ways {
            heads: Some(heads),
            ..WEB_SERVER
        };
        let (server, view) = unchanging(40, ways);
        let file = common::open(&view, "z.raw").unwrap().unwrap();
        let before = server.refused();
        touch(&file, 0..40);
        // Only the requests that are in flight before the first answer comes are refused.
        let refused = server.refused() - before;
        assert!((1..=8).contains(&refused), "{heads}: {refused}");
    }
}
