use super::*;
use std::thread;
use std::time::Instant;

fn overdrawn(budget: &Arc<Budget>, holding: Holding) -> Option<Reservation> {
    budget.try_overdraw(1, holding, &mut Waiter::new(budget, holding.bit()))
}

struct Shelf(Mutex<Vec<Reservation>>);

impl Evict for Shelf {
    fn evict_one(&self) -> bool {
        self.0.lock().unwrap().pop().is_some()
    }
}

#[test]
fn a_full_budget_evicts_before_it_refuses() {
    let budget = Budget::new(100);
    let shelf = Arc::new(Shelf(Mutex::default()));
    let weak: Weak<dyn Evict> = Arc::downgrade(&(Arc::clone(&shelf) as Arc<dyn Evict>));
    budget.evict_from(weak);
    for _ in 0..10 {
        let kept = budget.reserve(40, Holding::NOTHING).unwrap();
        shelf.0.lock().unwrap().push(kept);
    }
    assert!(budget.used_and_peak().1 <= 100);
}

#[test]
fn the_oversize_pass_one_at_a_time() {
    let budget = Budget::new(100);
    let first = budget.reserve(1000, Holding::NOTHING).unwrap();
    let waiting = {
        let budget = Arc::clone(&budget);
        thread::spawn(move || budget.reserve(500, Holding::NOTHING).map(drop))
    };
    while budget.waits() == 0 {
        thread::yield_now();
    }
    assert_eq!(budget.used_and_peak().1, 1000, "the second waits");
    drop(first);
    assert!(waiting.join().unwrap().is_ok());
    assert_eq!(budget.used_and_peak(), (0, 1000));
}

#[test]
fn a_holder_of_its_source_does_not_wait() {
    let budget = Budget::new(100);
    let _source = budget.reserve(90, Holding::NOTHING).unwrap();
    assert!(budget.reserve(20, Holding::SOURCE).is_ok());
}

#[test]
fn a_holder_of_an_oversize_source_does_not_wait_for_itself() {
    let budget = Budget::new(100);
    let _shard = budget.reserve(1000, Holding::NOTHING).unwrap();
    let _nested = budget.reserve(500, Holding::SOURCE).unwrap();
    let deepest = Holding::SOURCE.and_one();
    let _chunk = budget.reserve(MOST_AT_ONCE + 1, deepest).unwrap();
    assert_eq!(budget.waits(), 0);
    assert!(overdrawn(&budget, deepest).is_none(), "one at a time");
}

#[test]
fn after_shrinking_within_the_limit_the_next_may_exceed_it() {
    let budget = Budget::new(100);
    let mut shrunk = budget.reserve(1000, Holding::NOTHING).unwrap();
    shrunk.shrink_to(10);
    let _next = budget.reserve(1000, Holding::NOTHING).unwrap();
    drop(shrunk);
    assert_eq!(budget.waits(), 0);
    assert!(
        overdrawn(&budget, Holding::NOTHING).is_none(),
        "the next one still exceeds the limit"
    );
}

#[test]
fn shrinking_gives_back_the_rest() {
    let budget = Budget::new(100);
    let mut reservation = budget.reserve(80, Holding::NOTHING).unwrap();
    reservation.shrink_to(10);
    assert_eq!(budget.used_and_peak().0, 10);
    drop(reservation);
    assert_eq!(budget.used_and_peak().0, 0);
}

#[test]
fn no_caller_waits_for_kept_bytes() {
    let budget = Budget::new(100);
    let mut header = budget.reserve(60, Holding::NOTHING).unwrap();
    header.keep();
    for _ in 0..20 {
        drop(budget.reserve(90, Holding::NOTHING).unwrap());
    }
    assert_eq!(budget.waits(), 0);
    assert_eq!(budget.used_and_peak(), (60, 150));
}

#[test]
fn beside_kept_bytes_one_exceeds_the_limit_at_a_time() {
    let budget = Budget::new(100);
    let _header = budget.reserve_kept(55, Holding::NOTHING).unwrap();
    let first = budget.reserve(90, Holding::NOTHING).unwrap();
    let waiting = {
        let budget = Arc::clone(&budget);
        thread::spawn(move || budget.reserve(80, Holding::NOTHING).map(drop))
    };
    while budget.waits() == 0 {
        thread::yield_now();
    }
    assert_eq!(budget.used_and_peak().1, 145, "the second waits");
    drop(first);
    assert!(waiting.join().unwrap().is_ok());
    assert_eq!(budget.used_and_peak(), (55, 145));
}

#[test]
fn kept_bytes_beyond_the_limit_do_not_block_the_next() {
    let budget = Budget::new(100);
    let mut header = budget.reserve(1000, Holding::NOTHING).unwrap();
    header.keep();
    let _chunk = budget.reserve(1000, Holding::NOTHING).unwrap();
    assert_eq!(budget.waits(), 0);
}

#[test]
fn too_much_to_keep_is_refused_by_name() {
    let budget = Budget::new(100);
    let most = 50 + MOST_KEPT_BEYOND;
    let holding = Holding::NOTHING.to_hold("the header of a file");
    let first = budget.reserve_kept(most - 10, holding).unwrap();
    assert!(budget.reserve_kept(most + 1, holding).is_err());
    let refused = budget.reserve_kept(20, holding).unwrap_err();
    assert_eq!(budget.waits(), 0, "no wait would help");
    assert!(refused.to_string().contains("the header of a file"));
    assert!(refused.to_string().contains("files that are open"));
    drop(first);
    assert!(budget.reserve_kept(20, holding).is_ok());
}

#[test]
fn caches_are_evicted_for_kept_bytes() {
    let budget = Budget::new(100);
    let shelf = Arc::new(Shelf(Mutex::default()));
    let weak: Weak<dyn Evict> = Arc::downgrade(&(Arc::clone(&shelf) as Arc<dyn Evict>));
    budget.evict_from(weak);
    for _ in 0..2 {
        let block = budget.reserve(45, Holding::NOTHING).unwrap();
        shelf.0.lock().unwrap().push(block);
    }
    let _kept = budget.reserve_kept(40, Holding::NOTHING).unwrap();
    assert_eq!(shelf.0.lock().unwrap().len(), 1, "no more than it takes");
    assert!(budget.used_and_peak().1 <= 100);
    assert!(
        budget
            .reserve_kept(MOST_KEPT_BEYOND + 50, Holding::NOTHING)
            .is_err()
    );
    assert_eq!(
        shelf.0.lock().unwrap().len(),
        1,
        "nothing goes that does not help"
    );
}

#[test]
fn waiting_callers_name_the_purpose_that_they_wait_for() {
    let state = {
        let budget = Budget::new(100);
        let document = Holding::NOTHING.to_hold("a document");
        let _small = budget.reserve(10, Holding::NOTHING).unwrap();
        let mut large = budget.reserve(80, document).unwrap();
        assert_eq!(budget.lock().working(), Some("a document"));
        large.keep();
        budget.lock().working()
    };
    assert_eq!(state, Some("a chunk"));
}

#[test]
fn a_full_budget_evicts_from_each_in_turn() {
    let budget = Budget::new(100);
    let shelves = [0, 1].map(|_| Arc::new(Shelf(Mutex::default())));
    for shelf in &shelves {
        let weak: Weak<dyn Evict> = Arc::downgrade(&(Arc::clone(shelf) as Arc<dyn Evict>));
        budget.evict_from(weak);
        let mut kept = budget.reserve(50, Holding::NOTHING).unwrap();
        kept.keep();
        shelf.0.lock().unwrap().push(kept);
    }
    let _all = budget.reserve(100, Holding::NOTHING).unwrap();
    assert_eq!(budget.used_and_peak(), (100, 100));
}

#[test]
fn patience_ends() {
    let budget = Budget::with_patience(100, Duration::from_millis(100));
    let _at_work = budget.reserve(100, Holding::NOTHING).unwrap();
    let asked = Instant::now();
    // After half of the patience, one reservation may exceed the limit.
    let _over = budget.reserve(50, Holding::NOTHING).unwrap();
    assert!(budget.reserve(50, Holding::NOTHING).is_err());
    let waited = asked.elapsed();
    assert!(waited >= Duration::from_millis(150));
}

#[test]
fn optional_data_is_kept_in_half_of_the_budget_only() {
    let budget = Budget::new(100);
    let holding = Holding::NOTHING;
    let _other = budget.reserve_free(30, holding).unwrap();
    let first = budget.reserve_kept_if_spare(40, holding).unwrap();
    assert!(budget.reserve_kept_if_spare(11, holding).is_none());
    let second = budget.reserve_kept_if_spare(10, holding).unwrap();
    // Other data is kept beside it.
    drop(budget.reserve_kept(MOST_KEPT_BEYOND, holding).unwrap());
    drop((first, second));
    let _more = budget.reserve_free(40, holding).unwrap();
    assert!(budget.reserve_kept_if_spare(31, holding).is_none());
    assert!(budget.reserve_kept_if_spare(30, holding).is_some());
}

#[test]
fn writers_take_turns_beyond_the_limit() {
    let budget = Budget::new(100);
    let turn = |bytes| budget.reserve_in_turn(bytes, Holding::NOTHING).unwrap();
    let both = (turn(40), turn(60));
    let waiting = {
        let budget = Arc::clone(&budget);
        thread::spawn(move || budget.reserve_in_turn(500, Holding::NOTHING).map(drop))
    };
    // A load does not wait for writers, even where nothing is free.
    drop(budget.reserve(10, Holding::NOTHING).unwrap());
    drop(both);
    assert!(waiting.join().unwrap().is_ok());
    let (used, peak) = budget.used_and_peak();
    assert_eq!((used, peak), (0, 500), "no other caller had a turn");
}

#[test]
fn a_turn_that_does_not_come_is_an_error() {
    let budget = Budget::with_patience(100, Duration::from_millis(50));
    let _first = budget.reserve_in_turn(200, Holding::NOTHING).unwrap();
    let error = budget.reserve_in_turn(1, Holding::NOTHING).unwrap_err();
    assert_eq!(error.held_by, "what others write");
}

fn n_waiting(budget: &Budget, holding: Holding) -> usize {
    let mut state = budget.lock();
    state.line(TURNS).len() + state.line(holding.bit()).len()
}

type Reserve = fn(&Arc<Budget>, u64) -> Result<Reservation, OutOfBudget>;

const WAYS: [Reserve; 2] = [
    |budget, bytes| budget.reserve(bytes, Holding::NOTHING),
    |budget, bytes| budget.reserve_in_turn(bytes, Holding::NOTHING),
];

/// Reserves on another thread, and returns once that waits.
fn wait_behind(
    budget: &Arc<Budget>,
    (reserve, bytes): (Reserve, u64),
    done: impl FnOnce(bool) + Send + 'static,
) -> thread::JoinHandle<()> {
    let before = n_waiting(budget, Holding::NOTHING);
    let thread = thread::spawn({
        let budget = Arc::clone(budget);
        move || {
            let reserved = reserve(&budget, bytes);
            done(reserved.is_ok());
        }
    });
    while n_waiting(budget, Holding::NOTHING) == before {
        thread::yield_now();
    }
    thread
}

#[test]
fn no_caller_is_overtaken_beyond_the_limit() {
    for reserve in WAYS {
        let budget = Budget::new(100);
        let order = Arc::new(Mutex::new(Vec::new()));
        let first = reserve(&budget, 500).unwrap();
        let threads = (0..6).map(|n| {
            let order = Arc::clone(&order);
            wait_behind(&budget, (reserve, 500), move |is_done| {
                assert!(is_done);
                order.lock().unwrap().push(n);
            })
        });
        let threads: Vec<_> = threads.collect();
        drop(first);
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3, 4, 5]);
        assert_eq!(n_waiting(&budget, Holding::NOTHING), 0);
        assert_eq!(budget.used_and_peak(), (0, 500));
    }
}

#[test]
fn the_next_goes_on_when_the_first_gives_up() {
    let budget = Budget::with_patience(100, Duration::from_millis(300));
    let [_, reserve] = WAYS;
    let _turn = reserve(&budget, 10).unwrap();
    // Beside the other turn, the first caller needs more than the budget has left. The second needs
    // little.
    let first = wait_behind(&budget, (reserve, 500), |is_done| assert!(!is_done));
    let second = wait_behind(&budget, (reserve, 1), |is_done| assert!(is_done));
    for thread in [first, second] {
        thread.join().unwrap();
    }
}

#[test]
fn a_panic_leaves_no_caller_in_the_line() {
    struct Breaks(std::sync::atomic::AtomicBool);
    impl Evict for Breaks {
        fn evict_one(&self) -> bool {
            let breaks = self.0.swap(false, std::sync::atomic::Ordering::Relaxed);
            assert!(!breaks, "the first call breaks");
            false
        }
    }
    for reserve in WAYS {
        let budget = Budget::new(100);
        let first = reserve(&budget, 500).unwrap();
        let breaks = Arc::new(Breaks(true.into()));
        let weak: Weak<dyn Evict> = Arc::downgrade(&(Arc::clone(&breaks) as Arc<dyn Evict>));
        budget.evict_from(weak);
        let broken = thread::spawn({
            let budget = Arc::clone(&budget);
            move || reserve(&budget, 500).map(drop)
        });
        assert!(broken.join().is_err());
        assert_eq!(n_waiting(&budget, Holding::NOTHING), 0);
        drop(first);
        assert!(reserve(&budget, 500).is_ok());
    }
}

#[test]
fn writers_do_not_wait_where_there_is_room() {
    let budget = Budget::new(1 << 30);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..1000 {
                    drop(budget.reserve_in_turn(1, Holding::NOTHING).unwrap());
                }
            });
        }
    });
    assert_eq!(
        budget.lock().line(TURNS).n_given(),
        0,
        "no caller stood in the line"
    );
}

/// The second reservation waits for the first, which is released only after the second.
#[test]
fn a_cycle_of_holders_is_broken() {
    let budget = Budget::with_patience(100, Duration::from_millis(400));
    let full = budget.reserve(100, Holding::NOTHING).unwrap();
    let first = budget.reserve(MOST_AT_ONCE + 1, Holding::SOURCE).unwrap();
    let second = budget.reserve(MOST_AT_ONCE + 1, Holding::SOURCE).unwrap();
    assert_eq!(budget.waits(), 1);
    drop((full, first, second));
    assert_eq!(budget.used_and_peak().0, 0);
    let again = budget.reserve(MOST_AT_ONCE + 1, Holding::SOURCE).unwrap();
    assert_eq!(budget.waits(), 1);
    assert!(overdrawn(&budget, Holding::SOURCE).is_none());
    drop(again);
}

#[test]
fn a_holder_gets_a_few_bytes_at_once() {
    let budget = Budget::new(100);
    let _full = budget.reserve(100, Holding::NOTHING).unwrap();
    let held = [(); 4].map(|()| budget.reserve(MOST_AT_ONCE, Holding::SOURCE).unwrap());
    assert_eq!(budget.waits(), 0);
    drop(held);
    assert_eq!(budget.used_and_peak().0, 100);
}
