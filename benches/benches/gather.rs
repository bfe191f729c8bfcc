//! Byte ranges of a whole array, put together out of chunks that are in the cache.

use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use zarr_mount::budget::Budget;
use zarr_mount::chunk::{
    ArrayReader, Cache, ChunkLayout, Counters, Freshness, Policy, Region, Shards, Shared, Sources,
    Versions,
};
use zarr_mount::error::Error;
use zarr_mount::store::{Key, MemoryStore, Prefix, Version};
use zarr_mount::workers::Workers;
use zarr_mount_benches::codec::Codec;

mod support;

/// Chunks along each axis: 27 MiB in all, a row of them 9.
const CHUNKS: u64 = 3;
const READ_BYTES: usize = 1 << 20;

/// The store does not change: what it says now is the version.
struct Current;

impl Versions for Current {
    fn version(
        &self,
        reader: &Arc<ArrayReader>,
        indices: &[u64],
    ) -> Result<Option<Version>, Error> {
        Ok(reader.stat_stored(indices)?.map(|meta| meta.version))
    }

    fn known(&self, reader: &Arc<ArrayReader>, indices: &[u64]) -> Option<Option<Version>> {
        self.version(reader, indices).ok()
    }
}

fn reader() -> Arc<ArrayReader> {
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
    let array = support::array(Codec::Blosc, CHUNKS);
    let counters = Arc::new(Counters::default());
    let sources = Sources::new(store, Freshness::Immutable, Arc::clone(&counters));
    let shared = Shared {
        sources: Arc::new(sources),
        cache: Cache::new(Budget::new(256 << 20), counters),
        workers: Workers::new(2),
        max_chunk_bytes: 1 << 30,
        readahead: None,
        timeout: zarr_mount::budget::PATIENCE,
    };
    let layout = ChunkLayout::new(&array, Shards::Expand).expect("an array made above");
    Arc::new(ArrayReader::new(
        shared,
        Prefix::root(),
        array.chunk_keys,
        layout,
        1,
    ))
}

fn gather(criterion: &mut Criterion) {
    let versions: Arc<dyn Versions> = Arc::new(Current);
    let reader = reader();
    let length = CHUNKS * support::EDGE;
    let mut out = vec![1; READ_BYTES];
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
                let done = reader.gather(&region, from, &mut out, &versions, Policy::Whole);
                done.expect("made above");
                from = (from + 2 * READ_BYTES as u64) % (whole - READ_BYTES as u64);
            });
        });
    }
    group.finish();
}

criterion_group!(benches, gather);
criterion_main!(benches);
