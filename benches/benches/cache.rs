//! The cache itself: hits, misses that evict other blocks, by one thread and by two.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use criterion::{Criterion, criterion_group, criterion_main};
use zarr_mount::budget::{Budget, Holding};
use zarr_mount::counters::LoadCounters;
use zarr_mount::load::{Block, BlockKey, BlockPart, Cache, Owner};
use zarr_mount::store::{Profile, Version};

/// Blocks that fit the budget, of as many bytes.
const BLOCKS: u64 = 1000;
const BLOCK_BYTES: usize = 4096;
/// The step from one requested block to the next, so that they are not requested in their order.
const STRIDE: u64 = 7;

fn key(rank: u64) -> BlockKey {
    BlockKey {
        owner: Owner::Object(1),
        version: Version {
            size: 1,
            mtime: SystemTime::UNIX_EPOCH,
            inode: 1,
            tag: 0,
        },
        part: BlockPart::Chunk { rank },
    }
}

fn cache() -> Arc<Cache> {
    // Each block costs some hundred bytes beside its own.
    let budget = Budget::new(BLOCKS * (BLOCK_BYTES as u64 + 512));
    Cache::new(budget, Arc::new(LoadCounters::default()), Profile::local())
}

fn load(cache: &Cache, rank: u64) -> usize {
    let load = || {
        let reservation = cache.reserve(BLOCK_BYTES as u64, Holding::NOTHING)?;
        Ok(Block::new(vec![1; BLOCK_BYTES], reservation))
    };
    cache.load(key(rank), load).expect("room").len()
}

/// Time for `iterations` calls of `work` in each of `threads`, which gets a number that never repeats.
fn side_by_side(threads: u64, iterations: u64, work: impl Fn(u64) + Sync) -> Duration {
    let next = AtomicU64::new(0);
    let start = Instant::now();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope
                .spawn(|| (0..iterations).for_each(|_| work(next.fetch_add(1, Ordering::Relaxed))));
        }
    });
    start.elapsed()
}

fn accesses(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("cache");
    for threads in [1, 2] {
        let full = cache();
        for rank in 0..BLOCKS {
            load(&full, rank);
        }
        group.bench_function(format!("hit/{threads} threads"), |bencher| {
            bencher.iter_custom(|n| {
                side_by_side(threads, n, |i| {
                    assert!(full.get(&key(i * STRIDE % BLOCKS)).is_some());
                })
            });
        });
        let next = AtomicU64::new(BLOCKS);
        group.bench_function(format!("miss and eviction/{threads} threads"), |bencher| {
            bencher.iter_custom(|n| {
                side_by_side(threads, n, |_| {
                    load(&full, next.fetch_add(1, Ordering::Relaxed));
                })
            });
        });
    }
    group.finish();
}

criterion_group!(benches, accesses);
criterion_main!(benches);
