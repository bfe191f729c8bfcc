//! Concurrent callers share one load of a block, and each of them gets one answer.

use shuttle::thread::{self, JoinHandle};

use super::*;
use crate::load::Shards;
use crate::load::block::chunk_key;
use crate::sync::atomic::AtomicUsize;
use crate::sync::schedules::check;
use crate::threads::{Class, Limits, Threads, confine};

const BLOCK_BYTES: usize = 100;

/// Memory for one block, and for a second one that is being made.
const SMALL: u64 = 2 * (BLOCK_BYTES as u64 + ENTRY_OVERHEAD_BYTES);

/// A cache, and counts of its loads.
#[derive(Clone)]
struct CacheCase {
    cache: Arc<Cache>,
    /// Loads that are running, and all loads that were begun.
    running: Arc<AtomicUsize>,
    loads: Arc<AtomicUsize>,
}

impl CacheCase {
    fn new(budget: u64) -> CacheCase {
        CacheCase {
            cache: Cache::new(Budget::new(budget), Arc::default(), Profile::local()),
            running: Arc::default(),
            loads: Arc::default(),
        }
    }

    /// Loads one of two blocks.
    fn load(&self) -> Result<Block, Error> {
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        assert!(running <= 2, "{running} loads of two blocks");
        self.loads.fetch_add(1, Ordering::SeqCst);
        let block = self
            .cache
            .reserve(BLOCK_BYTES as u64, Holding::NOTHING)
            .map(|reservation| Block::new(vec![7; BLOCK_BYTES], reservation));
        self.running.fetch_sub(1, Ordering::SeqCst);
        block
    }

    fn loads(&self) -> usize {
        self.loads.load(Ordering::SeqCst)
    }

    /// Loads the block on this thread, or waits for it.
    fn wait(&self, rank: u64) -> Result<Arc<Block>, Error> {
        self.cache.load(chunk_key(rank), || self.load())
    }

    fn begin_ask(&self, rank: u64, done: Option<AnswerCallback>) {
        let case = self.clone();
        let load = Load::Block(Box::new(move || case.load()));
        let key = FlightKey::Block(chunk_key(rank));
        self.cache.ask(key, load, done);
    }

    /// Asks for the block, runs the load if it is queued, and waits for the answer.
    fn ask(&self, rank: u64) -> Result<Answer, Error> {
        let (send, receive) = mpsc::channel();
        self.begin_ask(
            rank,
            Some(Box::new(move |answer| send.send(answer).unwrap())),
        );
        self.run(rank);
        let answer = receive.recv().expect("an answer");
        assert!(receive.recv().is_err(), "one answer");
        answer
    }

    fn run(&self, rank: u64) {
        self.cache.run(FlightKey::Block(chunk_key(rank)));
    }

    fn cancel(&self, rank: u64) {
        self.cache.cancel([FlightKey::Block(chunk_key(rank))]);
    }

    /// Checks that no load is left and that all memory is released.
    fn end(&self) {
        assert!(self.cache.lock().flights.is_empty());
        while self.cache.evict_one() {}
        assert_eq!(self.cache.budget.used_and_peak().0, 0);
        assert_eq!(self.cache.lock().blocks.evict_first_bytes(), 0);
    }

    fn spawn(&self, body: impl FnOnce(CacheCase) + Send + 'static) -> JoinHandle<()> {
        let case = self.clone();
        thread::spawn(move || body(case))
    }
}

fn join<const N: usize>(threads: [JoinHandle<()>; N]) {
    for thread in threads {
        thread.join().unwrap();
    }
}

fn assert_right(block: &[u8]) {
    assert_eq!(block, [7; BLOCK_BYTES]);
}

#[test]
fn all_callers_of_a_block_share_one_load() {
    check(|| {
        let case = CacheCase::new(1 << 20);
        join([
            case.spawn(|case| assert_right(&case.wait(0).unwrap())),
            case.spawn(|case| assert_right(&case.ask(0).unwrap().unwrap())),
            case.spawn(|case| {
                case.begin_ask(0, None);
                case.run(0);
            }),
            case.spawn(|case| {
                case.begin_ask(0, None);
                case.cancel(0);
            }),
        ]);
        assert_eq!(case.loads(), 1);
        case.end();
    });
}

/// The second caller joins the load that the first has queued, and is answered even if the first
/// cancels it.
#[test]
fn a_load_that_a_caller_has_joined_is_not_cancelled() {
    check(|| {
        let case = CacheCase::new(1 << 20);
        case.begin_ask(0, None);
        join([
            case.spawn(|case| case.cancel(0)),
            case.spawn(|case| assert_right(&case.ask(0).unwrap().unwrap())),
            case.spawn(|case| {
                case.begin_ask(0, None);
                case.cancel(0);
            }),
        ]);
        assert_eq!(case.loads(), 1);
        case.end();
    });
}

#[test]
fn blocks_are_evicted_while_other_threads_request_them() {
    check(|| {
        let case = CacheCase::new(SMALL);
        let both = |case: CacheCase| {
            for rank in [0, 1, 0] {
                assert_right(&case.wait(rank).unwrap());
            }
        };
        join([
            case.spawn(both),
            case.spawn(|case| {
                assert_right(&case.ask(1).unwrap().unwrap());
                assert_right(&case.ask(0).unwrap().unwrap());
            }),
            case.spawn(|case| {
                case.begin_ask(1, None);
                case.run(1);
                case.cache.evict_first(&chunk_key(1));
                case.cache.evict_first(&chunk_key(0));
            }),
            case.spawn(|case| {
                case.cache.evict_one();
            }),
        ]);
        assert!(case.loads() >= 2);
        case.end();
    });
}

#[test]
fn all_callers_that_wait_get_the_error_of_a_failed_load() {
    check(|| {
        let case = CacheCase::new(1 << 20);
        let fails = |case: CacheCase| {
            let failed = case.cache.load(chunk_key(0), || Err(Error::Stale));
            assert!(failed.is_err() || case.loads() == 1);
        };
        let panics = |case: CacheCase| {
            let load = || std::panic::resume_unwind(Box::new("a mistake of a codec"));
            confine("a load", || drop(case.cache.load(chunk_key(0), load)));
        };
        join([
            case.spawn(fails),
            case.spawn(panics),
            case.spawn(|case| drop(case.ask(0))),
            case.spawn(|case| drop(case.wait(0))),
        ]);
        assert!(case.loads() <= 1);
        // The failed load was not cached.
        assert_right(&case.wait(0).unwrap());
        assert_eq!(case.loads(), 1);
        case.end();
    });
}

#[test]
fn a_version_that_is_found_on_the_way_shares_the_load_of_its_block() {
    check(|| {
        let case = CacheCase::new(1 << 20);
        let latest = |case: CacheCase| {
            let array = ReaderIdentity {
                array: 1,
                shards: Shards::Keep,
                decoded_len: None,
            };
            let key = FlightKey::Latest {
                reader: 1,
                token: 0,
                array,
                rank: 9,
            };
            let (send, receive) = mpsc::channel();
            let done: AnswerCallback = Box::new(move |answer| send.send(answer).unwrap());
            let inner = case.clone();
            let load = Load::Latest(Box::new(move || {
                let load = Box::new(move || inner.load());
                Ok(LatestChunk::Block(chunk_key(0), load))
            }));
            assert!(case.cache.ask(key, load, Some(done)));
            case.cache.run(key);
            assert_right(&receive.recv().unwrap().unwrap().unwrap());
        };
        join([
            case.spawn(latest),
            case.spawn(latest),
            case.spawn(|case| assert_right(&case.ask(0).unwrap().unwrap())),
            case.spawn(|case| {
                case.begin_ask(0, None);
                case.cancel(0);
            }),
        ]);
        assert_eq!(case.loads(), 1);
        case.end();
    });
}

/// Callers load on their own threads, beside one pool thread for reads. The load that they wait for
/// is always run, by one of them or by the pool thread.
#[test]
fn a_caller_that_waits_for_a_load_does_not_wait_for_a_queued_job() {
    check(|| {
        let case = CacheCase::new(1 << 20);
        let threads = Threads::new(Limits {
            names: 1,
            changes: 1,
            reads: 1,
            prefetches: 1,
        });
        for class in [Class::Prefetch, Class::Read, Class::Read, Class::Names] {
            let inner = case.clone();
            case.begin_ask(0, None);
            assert!(threads.submit(class, move || assert_right(&inner.wait(0).unwrap())));
        }
        join([
            case.spawn(|case| assert_right(&case.wait(0).unwrap())),
            case.spawn(|case| assert_right(&case.ask(0).unwrap().unwrap())),
        ]);
        assert!(threads.finish(std::time::Duration::MAX));
        assert_eq!(case.loads(), 1);
        case.end();
    });
}
