use super::*;
use crate::counters::Counter;
use crate::load::block::chunk_key as key;
use std::sync::Barrier;
use std::sync::atomic::AtomicU64;
use std::thread;

fn cache(limit: u64) -> Arc<Cache> {
    Cache::new(
        Budget::new(limit),
        Arc::new(LoadCounters::default()),
        Profile::local(),
    )
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
                let got = cache.load(key(0), || {
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
    assert!(cache.load(key(0), || Err(Error::Stale)).is_err());
    assert!(cache.load(key(0), || block(&cache, 1)).is_ok());
}

#[test]
fn callers_that_wait_get_a_panic_of_the_load_as_an_error() {
    let cache = cache(1 << 20);
    let (send, receive) = mpsc::channel();
    let waiting = cache.clone();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _ = cache.load(key(0), || {
            let load = Load::Block(Box::new(|| unreachable!("one is loading")));
            let done: AnswerCallback = Box::new(move |answer| send.send(answer.is_err()).unwrap());
            waiting.ask(FlightKey::Block(key(0)), load, Some(done));
            panic!("a codec's mistake")
        });
    }));
    assert!(panicked.is_err());
    assert!(receive.recv().unwrap());
    assert!(cache.load(key(0), || block(&cache, 1)).is_ok());
}

/// Asks for a block. The answer goes to the receiver.
fn ask(cache: &Arc<Cache>, rank: u64) -> mpsc::Receiver<Result<Answer, Error>> {
    let (send, receive) = mpsc::channel();
    let done: AnswerCallback = Box::new(move |answer| send.send(answer).unwrap());
    queue(cache, rank, Some(done));
    receive
}

fn queue(cache: &Arc<Cache>, rank: u64, done: Option<AnswerCallback>) {
    let loading = cache.clone();
    let load = Load::Block(Box::new(move || block(&loading, 10)));
    cache.ask(FlightKey::Block(key(rank)), load, done);
}

#[test]
fn a_caller_that_waits_for_a_queued_load_runs_it() {
    let cache = cache(1 << 20);
    let first = ask(&cache, 0);
    assert!(first.try_recv().is_err(), "no thread runs it");
    let block = cache
        .load(key(0), || unreachable!("one is queued"))
        .unwrap();
    assert_eq!(block.len(), 10);
    assert!(first.try_recv().unwrap().is_ok());
    // A load that another caller has run is not run again.
    cache.run(FlightKey::Block(key(0)));
    assert!(ask(&cache, 0).try_recv().unwrap().is_ok());
}

#[test]
fn queued_loads_without_callers_are_cancelled() {
    let cache = cache(1 << 20);
    queue(&cache, 0, None);
    queue(&cache, 1, None);
    let waits = ask(&cache, 1);
    let keys = [0, 1].map(|rank| FlightKey::Block(key(rank)));
    cache.cancel(keys);
    for key in keys {
        cache.run(key);
    }
    assert!(!cache.has(&key(0)) && cache.has(&key(1)));
    assert!(waits.try_recv().unwrap().is_ok());
}

#[test]
fn the_least_recently_used_leaves_first_and_the_budget_holds() {
    let each = 1000 + ENTRY_OVERHEAD_BYTES;
    let cache = cache(3 * each);
    for rank in 0..3 {
        cache.load(key(rank), || block(&cache, 1000)).unwrap();
    }
    assert!(cache.get(&key(0)).is_some(), "used again");
    cache.load(key(3), || block(&cache, 1000)).unwrap();
    assert!(cache.get(&key(1)).is_none(), "the oldest left");
    assert!(cache.get(&key(0)).is_some() && cache.get(&key(3)).is_some());
    let (used, peak) = cache.budget().used_and_peak();
    assert!(used <= 3 * each && peak <= 3 * each, "{used} {peak}");
}

#[test]
fn an_evicted_block_counts_while_it_is_read() {
    let cache = cache(2000);
    let held = cache.load(key(0), || block(&cache, 1000)).unwrap();
    assert!(cache.evict_one());
    assert!(cache.budget().used_and_peak().0 >= 1000);
    drop(held);
    assert_eq!(cache.budget().used_and_peak().0, 0);
}

fn load(cache: &Cache, rank: u64) {
    cache.load(key(rank), || block(cache, 1000)).unwrap();
}

fn held(cache: &Cache, ranks: std::ops::Range<u64>) -> Vec<u64> {
    ranks.filter(|&rank| cache.has(&key(rank))).collect()
}

#[test]
fn blocks_marked_evict_first_leave_first_and_the_newest_of_them_before_all() {
    let each = 1000 + ENTRY_OVERHEAD_BYTES;
    let cache = cache(5 * each);
    for rank in 0..5 {
        load(&cache, rank);
        if rank != 1 {
            cache.evict_first(&key(rank));
        }
    }
    load(&cache, 5);
    load(&cache, 6);
    assert_eq!(held(&cache, 0..7), [0, 1, 2, 5, 6]);
    // A block that is used again loses its mark.
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
            cache.load(key(rank), load).unwrap();
            cache.evict_first(&key(rank));
        }
    }
    // Seven blocks stay, and one makes room. If the least recently used block left first, none would be hit.
    assert!(loads <= 16 + 9 * 9, "{loads}");
    assert_eq!(cache.budget().used_and_peak().0, 8 * each);
}

#[test]
fn many_blocks_marked_evict_first_give_their_memory_to_the_next() {
    let cache = cache(1 << 30);
    let len = 8 << 20;
    for rank in 0..32 {
        cache.load(key(rank), || block(&cache, len)).unwrap();
        cache.evict_first(&key(rank));
    }
    let used = cache.budget().used_and_peak().1;
    assert!(used <= MOST_EVICT_FIRST_BYTES + 3 * len as u64, "{used}");
}

#[test]
fn a_prefetched_block_is_loaded_once_and_its_first_use_is_no_hit() {
    let cache = cache(1 << 20);
    let count = || {
        let counters = cache.counters();
        let all = [
            &counters.prefetch_loads,
            &counters.cache_hits,
            &counters.cache_misses,
        ];
        all.map(Counter::get)
    };
    for _ in 0..2 {
        queue(&cache, 0, None);
        cache.run(FlightKey::Block(key(0)));
    }
    assert_eq!(count(), [1, 0, 0]);
    for hits in 0..2 {
        assert!(cache.get(&key(0)).is_some());
        assert_eq!(count(), [1, hits, 0]);
    }
    queue(&cache, 2, None);
    cache.run(FlightKey::Block(key(2)));
    while cache.evict_one() {}
    assert_eq!(cache.counters().prefetch_unused.get(), 1);
}
