use super::chunk_key as key;
use super::*;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, mpsc};
use std::thread;

fn cache(limit: u64) -> Arc<Cache> {
    Cache::new(Budget::new(limit), Arc::new(Counters::default()))
}

fn block(cache: &Cache, len: usize) -> Result<Block, Error> {
    let reservation = cache.reserve(len as u64, Holding::NOTHING)?;
    Ok(Block::new(vec![7; len], reservation))
}

#[test]
fn many_readers_of_one_absent_block_load_it_once() {
    let cache = cache(1 << 20);
    let (loads, barrier) = (AtomicU64::new(0), Barrier::new(8));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                barrier.wait();
                let got = cache.get_or_load(key(0), || {
                    loads.fetch_add(1, Ordering::Relaxed);
                    thread::yield_now();
                    block(&cache, 10)
                });
                assert_eq!(&got.unwrap()[..], [7; 10]);
            });
        }
    });
    assert_eq!(loads.into_inner(), 1);
}

#[test]
fn failures_are_not_kept() {
    let cache = cache(1 << 20);
    assert!(cache.get_or_load(key(0), || Err(Error::Stale)).is_err());
    assert!(cache.get_or_load(key(0), || block(&cache, 1)).is_ok());
}

#[test]
fn a_panic_while_loading_reaches_those_who_wait_as_an_error() {
    let cache = cache(1 << 20);
    let (send, receive) = mpsc::channel();
    let waiting = cache.clone();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        cache.get_or_then(
            key(0),
            || {
                waiting.get_or_then(
                    key(0),
                    || unreachable!("one is loading"),
                    Box::new(move |result| send.send(result.is_err()).unwrap()),
                );
                panic!("a codec's mistake")
            },
            Box::new(|result| assert!(result.is_err())),
        );
    }));
    assert!(panicked.is_err());
    assert!(receive.recv().unwrap());
    assert!(cache.get_or_load(key(0), || block(&cache, 1)).is_ok());
}

#[test]
fn the_least_recently_used_leaves_first_and_the_budget_holds() {
    let each = 1000 + ENTRY_OVERHEAD_BYTES;
    let cache = cache(3 * each);
    for rank in 0..3 {
        cache
            .get_or_load(key(rank), || block(&cache, 1000))
            .unwrap();
    }
    assert!(cache.get(&key(0)).is_some(), "used again");
    cache.get_or_load(key(3), || block(&cache, 1000)).unwrap();
    assert!(cache.get(&key(1)).is_none(), "the oldest left");
    assert!(cache.get(&key(0)).is_some() && cache.get(&key(3)).is_some());
    let (used, peak) = cache.budget().used_and_peak();
    assert!(used <= 3 * each && peak <= 3 * each, "{used} {peak}");
}

#[test]
fn an_evicted_block_counts_while_it_is_read() {
    let cache = cache(2000);
    let held = cache.get_or_load(key(0), || block(&cache, 1000)).unwrap();
    assert!(cache.evict_one());
    assert!(cache.budget().used_and_peak().0 >= 1000);
    drop(held);
    assert_eq!(cache.budget().used_and_peak().0, 0);
}

fn load(cache: &Cache, rank: u64) {
    cache.get_or_load(key(rank), || block(cache, 1000)).unwrap();
}

fn held(cache: &Cache, ranks: std::ops::Range<u64>) -> Vec<u64> {
    ranks.filter(|&rank| cache.has(&key(rank))).collect()
}

#[test]
fn finished_blocks_leave_first_and_the_newest_of_them_before_all() {
    let each = 1000 + ENTRY_OVERHEAD_BYTES;
    let cache = cache(5 * each);
    for rank in 0..5 {
        load(&cache, rank);
        if rank != 1 {
            cache.finish(&key(rank));
        }
    }
    load(&cache, 5);
    load(&cache, 6);
    assert_eq!(held(&cache, 0..7), [0, 1, 2, 5, 6]);
    // One that is used again is as good as any.
    assert!(cache.get(&key(0)).is_some());
    load(&cache, 7);
    load(&cache, 8);
    assert_eq!(held(&cache, 0..9), [0, 5, 6, 7, 8]);
}

#[test]
fn a_scan_in_a_circle_finds_its_beginning_again() {
    let each = 1000 + ENTRY_OVERHEAD_BYTES;
    let cache = cache(8 * each);
    let mut loads = 0;
    for _ in 0..10 {
        for rank in 0..16 {
            let load = || {
                loads += 1;
                block(&cache, 1000)
            };
            cache.get_or_load(key(rank), load).unwrap();
            cache.finish(&key(rank));
        }
    }
    // Seven stay, one makes room; least recently used would never hit.
    assert!(loads <= 16 + 9 * 9, "{loads}");
    assert_eq!(cache.budget().used_and_peak().0, 8 * each);
}

#[test]
fn many_finished_blocks_give_their_memory_to_the_next() {
    let cache = cache(1 << 30);
    let len = 8 << 20;
    for rank in 0..32 {
        cache.get_or_load(key(rank), || block(&cache, len)).unwrap();
        cache.finish(&key(rank));
    }
    let used = cache.budget().used_and_peak().1;
    assert!(used <= MOST_FINISHED_BYTES + 3 * len as u64, "{used}");
}

#[test]
fn what_is_loaded_ahead_is_loaded_once_and_its_first_use_is_no_hit() {
    use std::sync::atomic::Ordering::Relaxed;
    let cache = cache(1 << 20);
    let count = || {
        let counters = cache.counters();
        let all = [
            &counters.ahead_loads,
            &counters.cache_hits,
            &counters.cache_misses,
        ];
        all.map(|counter| counter.load(Relaxed))
    };
    for _ in 0..2 {
        cache.load_ahead(key(0), || block(&cache, 10)).unwrap();
    }
    assert_eq!(count(), [1, 0, 0]);
    for hits in 0..2 {
        assert!(cache.get(&key(0)).is_some());
        assert_eq!(count(), [1, hits, 0]);
    }
    assert!(cache.load_ahead(key(1), || Err(Error::Stale)).is_err());
    assert!(!cache.has(&key(1)), "failures are not kept");
    cache.load_ahead(key(2), || block(&cache, 10)).unwrap();
    while cache.evict_one() {}
    assert_eq!(cache.counters().ahead_unused.load(Relaxed), 1);
}

#[test]
fn all_or_none() {
    let cache = cache(1 << 20);
    load(&cache, 0);
    load(&cache, 1);
    let found = cache.get_all(&[Some(key(1)), None, Some(key(0))]).unwrap();
    let lengths: Vec<Option<usize>> = found
        .iter()
        .map(|block| Some(block.as_ref()?.len()))
        .collect();
    assert_eq!(lengths, [Some(1000), None, Some(1000)]);
    assert!(cache.get_all(&[Some(key(0)), Some(key(2))]).is_none());
}
