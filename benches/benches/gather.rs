//! Byte ranges of a whole array, put together out of chunks that are in the cache.

use std::sync::{Arc, mpsc};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use zarr_mount::budget::{Budget, PATIENCE};
use zarr_mount::buffers::{Buffer, zeroed};
use zarr_mount::counters::LoadCounters;
use zarr_mount::fresh::Freshness;
use zarr_mount::hierarchy::{ArrayNode, Document};
use zarr_mount::load::{
    Cache, ChunkedArray, Loader, LoaderParts, Patience, Shards, Sources, Versions,
};
use zarr_mount::read::{Policy, ReadOperation, Region, RegionRun};
use zarr_mount::store::{Key, MemoryStore, Prefix, Profile, Store, Version};
use zarr_mount::threads::{Limits, Threads};
use zarr_mount_benches::codec::Codec;

mod support;

/// Chunks along each axis: 27 MiB in all, a row of them 9.
const CHUNKS: u64 = 3;
const READ_BYTES: usize = 1 << 20;

/// The store does not change: what it says now is the version.
struct Current(Arc<MemoryStore>);

impl Versions for Current {
    fn known(&self, array: &ChunkedArray, indices: &[u64]) -> Option<Option<Version>> {
        let found = self.0.stat(&array.stored_key(indices).ok()?).ok()?;
        Some(found.map(|stat| stat.meta.version))
    }
}

fn reader() -> (Arc<Loader>, Arc<ChunkedArray>, Arc<dyn Versions>) {
    let store = Arc::new(MemoryStore::new());
    for rank in 0..CHUNKS.pow(3) {
        let (z, y, x) = (
            rank / CHUNKS / CHUNKS,
            rank / CHUNKS % CHUNKS,
            rank % CHUNKS,
        );
        let key = Key::parse(format!("c/{z}/{y}/{x}").as_bytes()).expect("a plain key");
        store.insert(key, support::encoded(Codec::Blosc, rank));
    }
    let document = Key::parse(b"zarr.json").expect("a plain key");
    store.insert(document.clone(), Vec::new());
    let meta = store.stat(&document).expect("in memory").expect("is there");
    let document = Document::new(document, meta.meta);
    let metadata = support::array(Codec::Blosc, CHUNKS);
    let node = ArrayNode::new(&Prefix::root(), document, None, metadata);
    let array = ChunkedArray::new(&node, Shards::Expand).expect("an array made above");
    let counters = Arc::new(LoadCounters::default());
    let versions = Arc::new(Current(Arc::clone(&store)));
    let loader = Loader::new(LoaderParts {
        sources: Sources::new(store, Freshness::Immutable, Arc::clone(&counters)),
        cache: Cache::new(Budget::new(256 << 20), counters, Profile::local()),
        threads: Threads::new(Limits {
            names: 1,
            reads: 2,
            prefetches: 2,
        }),
        decoders: 2,
        max_chunk_bytes: 1 << 30,
        timeout: PATIENCE,
        readahead: None,
    });
    (loader, Arc::new(array), versions)
}

fn gather(criterion: &mut Criterion) {
    let (loader, array, versions) = reader();
    let length = CHUNKS * support::EDGE;
    let mut group = criterion.benchmark_group("gather 1 MiB");
    group.throughput(Throughput::Bytes(READ_BYTES as u64));
    for (name, order) in [
        ("C order", [0, 1, 2]),
        ("transposed", [2, 1, 0]),
        ("planes swapped", [1, 0, 2]),
    ] {
        let mut region = Region::all(&[length; 3]);
        region.order = order.into_iter().collect();
        let whole = length.pow(3) * 4;
        let mut from = 0;
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let run = RegionRun {
                    array: Arc::clone(&array),
                    region: Arc::new(region.clone()),
                    from,
                    at: 0,
                    len: READ_BYTES,
                    policy: Policy::Whole,
                };
                let (send, receive) = mpsc::channel();
                let finish = Box::new(move |out| drop(send.send(out)));
                let out = Buffer::from(zeroed(READ_BYTES).expect("there is memory"));
                ReadOperation::new(&loader, &versions, [run].into_iter(), out, finish)
                    .go_on(Patience::Waits);
                let out = receive.recv().expect("it is always called");
                out.expect("made above");
                from = (from + 2 * READ_BYTES as u64) % (whole - READ_BYTES as u64);
            });
        });
    }
    group.finish();
}

criterion_group!(benches, gather);
criterion_main!(benches);
