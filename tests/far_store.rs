//! A store that is far away: how often it is asked, how many requests are under way, and who waits.
//!
//! Times are printed (`--nocapture`) and not asserted: a machine under load must not fail here.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]
#![cfg(debug_assertions)]

mod common;

use std::io::Write;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use zarr_mount::budget::Holding;
use zarr_mount::fresh::Freshness;
use zarr_mount::load::Patience;
use zarr_mount::store::testing::{
    CallKind, Failure, Fault, Faulty, Flat, Gate, Recording, Slow, wrap,
};
use zarr_mount::store::{Detail, GRAIN, Key, MemoryStore, Store};
use zarr_mount::threads::Class;
use zarr_mount::view::{EntrySource, FileFormat, View, ViewKind, ViewOptions};

use common::{files, open, read, read_at, view, walk};

/// The time that one request takes, and the most requests that may be under way.
const LATENCY: Duration = Duration::from_millis(50);
const IN_FLIGHT: usize = 64;

/// The limit for what cannot take long, on a machine under any load.
const PATIENCE: Duration = Duration::from_secs(60);

fn key(key: &str) -> Key {
    Key::parse(key.as_bytes()).unwrap()
}

/// A v3 array of `n_chunks` chunks of 64 KiB, uncompressed, in one shard or in a file each.
fn put_array(store: &MemoryStore, path: &str, n_chunks: usize, is_sharded: bool) {
    const CHUNK: usize = 64 << 10;
    let bytes = r#"[{"name": "bytes"}]"#;
    let chunks = (0..n_chunks).map(|n| vec![byte_of(n); CHUNK]);
    if is_sharded {
        let chunks: Vec<_> = chunks.collect();
        return put_shard(store, path, CHUNK, bytes, &chunks);
    }
    put_document(store, path, n_chunks * CHUNK, CHUNK, bytes);
    for (n, chunk) in chunks.enumerate() {
        store.insert(key(&format!("{path}/{n}")), chunk);
    }
}

/// A v3 array of one shard of these encoded chunks, of `chunk_len` bytes decoded.
fn put_shard(store: &MemoryStore, path: &str, chunk_len: usize, codecs: &str, chunks: &[Vec<u8>]) {
    let codec = format!(
        r#"[{{"name": "sharding_indexed", "configuration": {{"chunk_shape": [{chunk_len}],
        "codecs": {codecs}, "index_codecs": [{{"name": "bytes",
        "configuration": {{"endian": "little"}}}}]}}}}]"#
    );
    let shape = chunks.len() * chunk_len;
    put_document(store, path, shape, shape, &codec);
    let mut shard = chunks.concat();
    let mut offset = 0;
    for chunk in chunks {
        shard.extend((offset as u64).to_le_bytes());
        shard.extend((chunk.len() as u64).to_le_bytes());
        offset += chunk.len();
    }
    store.insert(key(&format!("{path}/0")), shard);
}

/// A v3 group `g` with `n` arrays of one chunk.
fn put_group(store: &MemoryStore, n: usize) {
    let group = r#"{"zarr_format": 3, "node_type": "group", "attributes": {"of": "all"}}"#;
    store.insert(key("g/zarr.json"), group);
    for array in 0..n {
        put_array(store, &format!("g/a{array}"), 1, false);
    }
}

fn put_document(store: &MemoryStore, path: &str, shape: usize, stored: usize, codecs: &str) {
    let document = format!(
        r#"{{"zarr_format": 3, "node_type": "array", "shape": [{shape}], "data_type": "uint8",
        "chunk_grid": {{"name": "regular", "configuration": {{"chunk_shape": [{stored}]}}}},
        "chunk_key_encoding": {{"name": "v2"}}, "fill_value": 0, "codecs": {codecs}}}"#
    );
    store.insert(key(&format!("{path}/zarr.json")), document);
}

fn byte_of(chunk: usize) -> u8 {
    u8::try_from(chunk % 251).unwrap() + 1
}

fn options(kind: ViewKind, immutable: bool) -> ViewOptions {
    let freshness = if immutable {
        Freshness::Immutable
    } else {
        ViewOptions::default().freshness
    };
    let mut options = ViewOptions {
        views: vec![kind],
        freshness,
        ..ViewOptions::default()
    };
    options.arrays.files = vec![FileFormat::Raw];
    options
}

/// A view of `store` in which each request takes some time, and the layers that count and delay the requests.
fn far(store: MemoryStore, options: ViewOptions) -> (Arc<View>, Arc<Recording>, Arc<Slow>) {
    farther(store, options, LATENCY)
}

fn farther(
    store: MemoryStore,
    options: ViewOptions,
    latency: Duration,
) -> (Arc<View>, Arc<Recording>, Arc<Slow>) {
    far_of(Arc::new(store), options, latency)
}

fn far_of(
    store: Arc<dyn Store>,
    options: ViewOptions,
    latency: Duration,
) -> (Arc<View>, Arc<Recording>, Arc<Slow>) {
    let slow = Arc::new(Slow::new(latency, IN_FLIGHT));
    let recording = Arc::new(Recording::default());
    let store = wrap(store, &slow);
    (view(wrap(store, &recording), options), recording, slow)
}

/// Reads the file at `path` from beginning to end, as the kernel does for one reader.
fn read_in_order(view: &Arc<View>, path: &str) -> Vec<u8> {
    let file = open(view, path).unwrap().unwrap();
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < file.len() {
        bytes.extend(read_at(&file, bytes.len() as u64, 1 << 20).unwrap());
    }
    bytes
}

#[test]
fn a_whole_array_takes_one_request_a_chunk_and_as_many_at_once_as_there_may_be() {
    let store = MemoryStore::new();
    let n = 1024;
    put_array(&store, "a", n, false);
    let (view, recording, slow) = far(store, options(ViewKind::Arrays, true));
    let file = open(&view, "a.raw").unwrap().unwrap();
    recording.clear();
    let begun = Instant::now();
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < file.len() {
        bytes.extend(read_at(&file, bytes.len() as u64, 1 << 20).unwrap());
    }
    println!(
        "{n} chunks of 64 KiB: {:.2} s of {:.2} s allowed, {} requests, {} in flight",
        begun.elapsed().as_secs_f64(),
        1.15 * (LATENCY * u32::try_from(n / IN_FLIGHT + 4).unwrap()).as_secs_f64(),
        recording.requests(),
        slow.most_in_flight(),
    );
    for (n, chunk) in bytes.chunks(64 << 10).enumerate() {
        assert!(chunk.iter().all(|&byte| byte == byte_of(n)), "chunk {n}");
    }
    assert_eq!(recording.count(CallKind::Fetch), n);
    assert!(recording.requests() <= n + 8, "{}", recording.requests());
    assert!(
        slow.most_in_flight() > IN_FLIGHT / 2,
        "{}",
        slow.most_in_flight()
    );
    // A thread sends the requests for four chunks. It is the store that limits how many are in flight.
    assert!(recording.round_trips() < n / 2, "one request at a time");
    let (used, peak) = view.loader().cache().budget().used_and_peak();
    let limit = view.loader().cache().budget().limit();
    assert!(
        used <= limit && peak <= limit,
        "{used} and {peak} of {limit}"
    );
}

#[test]
fn chunks_of_a_shard_are_read_together() {
    let store = MemoryStore::new();
    let n = 512;
    put_array(&store, "a", n, true);
    let (view, recording, _) = far(store, options(ViewKind::Arrays, true));
    let bytes = read_in_order(&view, "a.raw");
    for (n, chunk) in bytes.chunks(64 << 10).enumerate() {
        assert!(chunk.iter().all(|&byte| byte == byte_of(n)), "chunk {n}");
    }
    assert_eq!(bytes.len(), n << 16);
    let reads = recording.count(CallKind::Read);
    println!("{n} chunks of a shard: {reads} reads");
    assert!(reads <= n / 8, "{reads} reads of {n} chunks");
}

#[test]
fn an_error_of_chunks_that_are_read_together_comes_once_and_the_next_read_is_right() {
    let store = MemoryStore::new();
    put_array(&store, "a", 64, true);
    let faulty = Arc::new(Faulty::default());
    let store = wrap(Arc::new(store) as Arc<dyn Store>, &faulty);
    let mut options = options(ViewKind::Arrays, true);
    options.readahead = Some(0);
    let (view, recording, _) = far_of(store, options, LATENCY);
    let file = open(&view, "a.raw").unwrap().unwrap();
    assert_eq!(read_at(&file, 0, 10).unwrap(), vec![byte_of(0); 10]);
    recording.clear();
    faulty.at(CallKind::Read, 1, Fault::Fails(Failure::Io));
    assert!(read_at(&file, 4 << 16, 1 << 20).is_err());
    assert_eq!(
        recording.count(CallKind::Read),
        1,
        "{:?}",
        recording.calls()
    );
    let bytes = read_at(&file, 4 << 16, 1 << 20).unwrap();
    assert_eq!(
        recording.count(CallKind::Read),
        2,
        "{:?}",
        recording.calls()
    );
    for (n, chunk) in bytes.chunks(64 << 10).enumerate() {
        assert!(
            chunk.iter().all(|&byte| byte == byte_of(n + 4)),
            "chunk {n}"
        );
    }
}

/// One thread sends the requests for several small chunks, of which one fails, one is absent and one is too short.
#[test]
fn chunks_that_are_fetched_together_fail_alone() {
    const CHUNK: usize = 64 << 10;
    let n = 16;
    let store = MemoryStore::new();
    put_array(&store, "a", n, false);
    let (absent, truncated) = (5, 9);
    store.remove(&key(&format!("a/{absent}")));
    store.insert(key(&format!("a/{truncated}")), vec![7; CHUNK / 2]);
    let faulty = Arc::new(Faulty::default());
    let store = wrap(Arc::new(store) as Arc<dyn Store>, &faulty);
    let mut options = options(ViewKind::Arrays, true);
    options.readahead = Some(0);
    let (view, recording, _) = far_of(store, options, LATENCY);
    let file = open(&view, "a.raw").unwrap().unwrap();
    faulty.at(CallKind::Fetch, 3, Fault::Fails(Failure::Io));
    recording.clear();
    let error = read_at(&file, 0, n * CHUNK).unwrap_err();
    assert!(
        recording.requests() <= n,
        "{error}: {:?}",
        recording.calls()
    );
    assert!(recording.round_trips() < n / 2, "{:?}", recording.calls());
    for chunk in 0..n {
        let found = read_at(&file, (chunk * CHUNK) as u64, CHUNK);
        if chunk == truncated {
            let error = found.unwrap_err().to_string();
            assert!(error.contains(&format!("a/{truncated}")), "{error}");
        } else {
            let byte = if chunk == absent { 0 } else { byte_of(chunk) };
            assert_eq!(found.unwrap(), vec![byte; CHUNK], "chunk {chunk}");
        }
    }
    assert!(recording.requests() <= n + 4, "{:?}", recording.calls());
}

#[test]
fn a_damaged_chunk_does_not_hurt_those_that_are_read_with_it() {
    const CHUNK: usize = 64 << 10;
    let gzip = |bytes: &[u8]| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let mut chunks: Vec<_> = (0..16).map(|n| gzip(&vec![byte_of(n); CHUNK])).collect();
    let damaged = 5;
    chunks[damaged].fill(7);
    let start: usize = chunks[..damaged].iter().map(Vec::len).sum();
    let end = start + chunks[damaged].len();
    let store = MemoryStore::new();
    let codecs = r#"[{"name": "bytes"}, {"name": "gzip", "configuration": {"level": 1}}]"#;
    put_shard(&store, "a", CHUNK, codecs, &chunks);
    let (view, ..) = far(store, options(ViewKind::Arrays, true));
    let file = open(&view, "a.raw").unwrap().unwrap();
    let error = read_at(&file, 0, 16 * CHUNK).unwrap_err().to_string();
    assert!(error.contains(&format!("{start}..{end}")), "{error}");
    for n in 0..16 {
        let found = read_at(&file, (n * CHUNK) as u64, CHUNK);
        if n == damaged {
            assert!(found.is_err());
        } else {
            assert_eq!(found.unwrap(), vec![byte_of(n); CHUNK], "chunk {n}");
        }
    }
}

#[test]
fn a_chunk_takes_few_requests_and_none_again() {
    for is_sharded in [false, true] {
        let store = MemoryStore::new();
        put_array(&store, "a", 4, is_sharded);
        let (view, recording, _) = far(store, options(ViewKind::Chunks, true));
        // The array is known, the chunk is not.
        let (directory, _) = walk(&view, "a").unwrap().unwrap();
        walk(&view, "a/3").unwrap().unwrap();
        recording.clear();
        let found = view.lookup(directory, b"1").unwrap().unwrap();
        let file = view.open(found.id).unwrap().unwrap().file;
        let opened = recording.requests();
        let bytes = read_at(&file, 0, 64 << 10).unwrap();
        assert_eq!(bytes, vec![byte_of(1); 64 << 10]);
        let all = recording.requests();
        println!("sharded {is_sharded}: {all} requests, {opened} before the read");
        let (most, most_of_read) = if is_sharded { (3, 2) } else { (3, 1) };
        assert!(all <= most, "{all}: {:?}", recording.calls());
        assert!(all - opened <= most_of_read, "{:?}", recording.calls());
        recording.clear();
        let found = view.lookup(directory, b"1").unwrap().unwrap();
        let file = view.open(found.id).unwrap().unwrap().file;
        assert_eq!(read_at(&file, 0, 64 << 10).unwrap(), bytes);
        assert_eq!(recording.requests(), 0, "{:?}", recording.calls());
    }
}

#[test]
fn what_was_read_of_a_file_is_looked_at_side_by_side_when_it_is_opened_again() {
    let store = MemoryStore::new();
    let n = 256;
    put_array(&store, "a", n, false);
    let latency = Duration::from_millis(2);
    let (view, recording, slow) = farther(store, options(ViewKind::Arrays, false), latency);
    let file = open(&view, "a.raw").unwrap().unwrap();
    // From the end, so that nothing is read ahead.
    for chunk in (0..n).rev() {
        let at = (chunk * (64 << 10)) as u64;
        assert_eq!(read_at(&file, at, 1).unwrap(), [byte_of(chunk)]);
    }
    let in_flight = slow.most_in_flight();
    assert!(in_flight < IN_FLIGHT / 4, "{in_flight} for one reader");
    drop(file);
    recording.clear();
    let file = open(&view, "a.raw").unwrap().unwrap();
    let looks = recording.count(CallKind::Stat);
    assert!((n..n + 32).contains(&looks), "{looks} looks");
    let in_flight = slow.most_in_flight();
    assert!(in_flight >= IN_FLIGHT / 2, "{in_flight} of {looks} looks");
    recording.clear();
    assert_eq!(read_at(&file, 0, 1).unwrap(), [byte_of(0)]);
    assert_eq!(
        recording.count(CallKind::Fetch),
        0,
        "{:?}",
        recording.calls()
    );
}

#[test]
fn opening_a_file_again_stalls_no_other_reader() {
    let store = MemoryStore::new();
    let n = 2048;
    put_array(&store, "a", n, false);
    let slow = Arc::new(Slow::new(Duration::ZERO, IN_FLIGHT));
    let faulty = Arc::new(Faulty::default());
    let store = wrap(Arc::new(store) as Arc<dyn Store>, &slow);
    let view = view(wrap(store, &faulty), options(ViewKind::Arrays, false));
    let warm = open(&view, "a.raw").unwrap().unwrap();
    let mut read = 0;
    while read < warm.len() {
        read += read_at(&warm, read, 1 << 20).unwrap().len() as u64;
    }
    // Each of the chunks is looked at again when the file is opened again, and one look hangs.
    let gate = Arc::new(Gate::default());
    faulty.at(CallKind::Stat, n / 2, Fault::Hangs(Arc::clone(&gate)));
    let (tell, told) = mpsc::channel();
    let opening = Arc::clone(&view);
    std::thread::spawn(move || {
        let is_open = open(&opening, "a.raw").unwrap().is_some();
        tell.send(is_open).unwrap();
    });
    while gate.waiting() == 0 {
        std::thread::yield_now();
    }
    let chunk = n as u64 - 1;
    // On a busy machine it may be long ago that the chunk was looked at.
    read_at(&warm, chunk << 16, 4096).unwrap();
    for _ in 0..100 {
        let (send, replies) = mpsc::channel();
        warm.read(chunk << 16, 4096, Patience::Never, None, move |read| {
            send.send(read.map(|read| read.to_vec())).unwrap();
        });
        let reply = replies.try_recv().expect("an answer on the spot");
        assert_eq!(reply.unwrap(), [byte_of(n - 1); 4096]);
    }
    assert!(told.try_recv().is_err(), "the store still hangs");
    gate.open();
    assert!(told.recv_timeout(PATIENCE).unwrap());
}

/// The bytes of one row of a transposed chunk are far apart in it.
#[test]
fn parts_of_a_chunk_that_are_far_apart_take_one_request() {
    const ROWS: usize = 2 << 20;
    const COLUMNS: usize = 8;
    let store = MemoryStore::new();
    let shape = format!("[{ROWS}, {COLUMNS}]");
    let document = format!(
        r#"{{"zarr_format": 3, "node_type": "array", "shape": {shape}, "data_type": "uint8",
        "chunk_grid": {{"name": "regular", "configuration": {{"chunk_shape": {shape}}}}},
        "chunk_key_encoding": {{"name": "v2"}}, "fill_value": 0, "codecs": [
        {{"name": "transpose", "configuration": {{"order": [1, 0]}}}}, {{"name": "bytes"}}]}}"#
    );
    store.insert(key("a/zarr.json"), document);
    let chunk: Vec<u8> = (0..ROWS * COLUMNS)
        .map(|at| byte_of(at / ROWS + 7 * (at % ROWS)))
        .collect();
    store.insert(key("a/0.0"), chunk);
    let (view, recording, _) = far(store, options(ViewKind::Arrays, true));
    let file = open(&view, "a.raw").unwrap().unwrap();
    recording.clear();
    let row = 1_234_567;
    let bytes = read_at(&file, (row * COLUMNS) as u64, COLUMNS).unwrap();
    let expected: Vec<u8> = (0..COLUMNS)
        .map(|column| byte_of(column + 7 * row))
        .collect();
    assert_eq!(bytes, expected);
    assert_eq!(
        recording.count(CallKind::Read),
        1,
        "{:?}",
        recording.calls()
    );
    let calls = recording.calls();
    let ranges = calls.iter().flat_map(|call| &call.ranges);
    let bytes: u64 = ranges.map(|range| range.end - range.start).sum();
    assert_eq!(bytes, COLUMNS as u64, "{calls:?}");
}

/// The sum of the time of the requests is 7 s. One after the other, the documents alone take 5 s.
#[test]
fn a_directory_of_arrays_is_listed_with_attributes_in_four_round_trips() {
    const N: usize = 100;
    let store = MemoryStore::new();
    put_group(&store, N);
    // Objects that are younger than the grain of the clock would be requested again.
    std::thread::sleep(GRAIN);
    let options = ViewOptions {
        freshness: Freshness::Checked(PATIENCE),
        ..options(ViewKind::Arrays, false)
    };
    let (view, recording, slow) = far(store, options);
    let (directory, _) = walk(&view, "g").unwrap().unwrap();
    recording.clear();
    let begun = Instant::now();
    let mut listing = view.open_directory(directory).unwrap().unwrap();
    let mut files = 0;
    while let Some(entry) = listing.next_entry(Detail::Attributes).unwrap() {
        assert!(entry.attributes.is_some(), "{:?}", entry.name);
        files += 1;
    }
    let round_trips = begun.elapsed().as_secs_f64() / LATENCY.as_secs_f64();
    let requests = recording.requests();
    println!("{N} arrays: {round_trips:.1} round trips, {requests} requests");
    // Two files of each array, and the sidecar of the group.
    assert_eq!(files, 2 * N + 1);
    // The directory, its names, the document of each array, and what describes the groups above.
    assert!(requests <= N + 8, "{requests}");
    let in_flight = slow.most_in_flight();
    assert!(in_flight > IN_FLIGHT / 2, "{in_flight}");
}

/// Each of the arrays needs what the documents of the groups above it say.
#[test]
fn arrays_that_are_opened_at_once_ask_once_for_the_documents_of_their_group() {
    const N: usize = 32;
    let store = MemoryStore::new();
    put_group(&store, N);
    let (view, recording, _) = far(store, options(ViewKind::Arrays, true));
    let (directory, _) = walk(&view, "g").unwrap().unwrap();
    recording.clear();
    std::thread::scope(|scope| {
        for array in 0..N {
            let (view, directory) = (&view, directory);
            scope.spawn(move || {
                let name = format!("a{array}.raw");
                let found = view.lookup(directory, name.as_bytes()).unwrap();
                assert!(found.is_some(), "{name}");
            });
        }
    });
    let of_groups = ["g/zarr.json", "g/.zattrs", "zarr.json", ".zattrs"];
    for path in of_groups {
        let mut asked = recording.calls();
        asked.retain(|call| call.path.to_string() == path);
        assert!(asked.len() <= 2, "{asked:?}");
    }
}

#[test]
fn many_readers_of_many_arrays_wait_side_by_side() {
    let time = |n: usize| {
        let store = MemoryStore::new();
        for array in 0..n {
            put_array(&store, &format!("a{array}"), 2, false);
        }
        let (view, _, slow) = far(store, options(ViewKind::Arrays, true));
        let begun = Instant::now();
        std::thread::scope(|scope| {
            for array in 0..n {
                let view = &view;
                scope.spawn(move || {
                    let bytes = read_in_order(view, &format!("a{array}.raw"));
                    assert!(bytes.iter().all(|&byte| byte == 1 || byte == 2));
                    assert_eq!(bytes.len(), 2 * (64 << 10));
                });
            }
        });
        (begun.elapsed(), slow.most_in_flight())
    };
    let (one, _) = time(1);
    let (many, in_flight) = time(32);
    println!(
        "32 readers: {:.2} of the time of one, {in_flight} in flight",
        many.as_secs_f64() / one.as_secs_f64()
    );
    assert!(in_flight >= 32, "{in_flight}");
}

#[test]
fn reads_that_hang_leave_memory_and_names_alone() {
    let store = MemoryStore::new();
    put_array(&store, "a", 80, false);
    put_array(&store, "b", 1, false);
    let gate = Arc::new(Gate::default());
    let slow = Arc::new(Slow::new(Duration::ZERO, IN_FLIGHT));
    let faulty = Arc::new(Faulty::default());
    let store = wrap(Arc::new(store) as Arc<dyn Store>, &slow);
    let mut both = options(ViewKind::Chunks, false);
    both.views.push(ViewKind::Arrays);
    let view = view(wrap(store, &faulty), both);
    let cold: Vec<_> = (1..72)
        .map(|n| open(&view, &format!("chunks/a/{n}")).unwrap().unwrap())
        .collect();
    // The lookups loaded the chunks, which leave the cache again.
    let budget = view.loader().cache().budget();
    drop(budget.reserve(budget.limit(), Holding::NOTHING));
    let warm = open(&view, "arrays/b.raw").unwrap().unwrap();
    assert!(read_at(&warm, 0, 64 << 10).is_ok());
    faulty.hang_chunks(Arc::clone(&gate));
    let (send, replies) = mpsc::channel();
    for file in &cold {
        let send = send.clone();
        file.read(1, 4096, Patience::Never, None, move |read| {
            send.send(read.map(|read| read.to_vec())).unwrap();
        });
    }
    while gate.waiting() < IN_FLIGHT {
        std::thread::yield_now();
    }
    // A read of bytes in memory is answered on the spot, and so are lookups of names.
    let (tell, told) = mpsc::channel();
    warm.read(0, 4096, Patience::Never, None, move |read| {
        tell.send(read.map(|read| read.to_vec())).unwrap();
    });
    assert_eq!(told.try_recv().unwrap().unwrap(), [byte_of(0); 4096]);
    let (tell, told) = mpsc::channel();
    let looking = Arc::clone(&view);
    view.threads().submit(Class::Names, move || {
        let (found, _) = walk(&looking, "arrays/b.raw").unwrap().unwrap();
        assert!(looking.attributes(found).unwrap().is_some());
        tell.send(files(&looking, "arrays").len()).unwrap();
    });
    assert!(told.recv_timeout(PATIENCE).unwrap() >= 2);
    assert!(replies.try_recv().is_err(), "those still hang");
    gate.open();
    for _ in &cold {
        assert_eq!(replies.recv_timeout(PATIENCE).unwrap().unwrap().len(), 4096);
    }
    assert_eq!(read(&view, "chunks/b/0").unwrap().unwrap().len(), 64 << 10);
}

#[test]
fn requests_for_a_file_that_is_closed_are_given_up_and_the_next_reader_gets_its_bytes() {
    const READ: usize = 512 << 10;
    let n = 1024;
    for (is_sharded, kind, first) in [(false, CallKind::Fetch, 100), (true, CallKind::Read, 4)] {
        let store = MemoryStore::new();
        put_array(&store, "a", n, is_sharded);
        let slow = Arc::new(Slow::new(Duration::from_millis(20), IN_FLIGHT));
        let (faulty, gate) = (Arc::new(Faulty::default()), Arc::new(Gate::default()));
        let store = wrap(Arc::new(store) as Arc<dyn Store>, &slow);
        let view = view(wrap(store, &faulty), options(ViewKind::Arrays, true));
        for nth in first..first + 100 {
            faulty.at(kind, nth, Fault::Hangs(Arc::clone(&gate)));
        }
        let both = [(); 2].map(|()| open(&view, "a.raw").unwrap().unwrap());
        assert_eq!(read_at(&both[0], 0, READ).unwrap()[READ - 1], byte_of(7));
        until(|| gate.waiting() > 0);
        let [one, other] = both;
        drop(one);
        std::thread::sleep(Duration::from_millis(50));
        assert!(gate.waiting() > 0, "another handle is open");
        drop(other);
        until(|| gate.waiting() == 0);
        // A caller that opens the file meanwhile does not get the error of those requests.
        let bytes = std::thread::scope(|scope| {
            let reader = scope.spawn(|| read_in_order(&view, "a.raw"));
            std::thread::sleep(Duration::from_millis(100));
            gate.open();
            reader.join().unwrap()
        });
        let right = (0..n).flat_map(|n| vec![byte_of(n); 64 << 10]);
        assert!(bytes.into_iter().eq(right), "sharded: {is_sharded}");
    }
}

/// Waits until `is_so`.
fn until(is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Nothing but a second look proves that a chunk of such a store was absent.
#[test]
fn an_array_of_very_many_chunks_that_nothing_dates_is_read_to_its_end() {
    let n: usize = std::env::var("ZARR_MOUNT_CHUNKS").map_or(20_000, |n| n.parse().unwrap());
    let store = MemoryStore::new();
    put_document(&store, "a", n, 1, r#"[{"name": "bytes"}]"#);
    let recording = Arc::new(Recording::default());
    let store = wrap(Arc::new(store) as Arc<dyn Store>, &recording);
    let mut options = options(ViewKind::Arrays, false);
    options.readahead = Some(0);
    let view = view(Arc::new(Flat::new(store)), options);
    let file = open(&view, "a.raw").unwrap().unwrap();
    recording.clear();
    for at in (0..n).step_by(1000) {
        assert_eq!(read_at(&file, at as u64, 1000).unwrap(), [0; 1000]);
    }
    let requests = recording.requests();
    println!("{n} absent chunks: {requests} requests");
    assert!(requests <= 4 * n, "{requests}");
}
