//! Runs code in many schedules, and tests that the model checker finds known mistakes.

use std::panic::{AssertUnwindSafe, catch_unwind};

use shuttle::thread;

use super::atomic::{AtomicBool, AtomicUsize, Ordering};
use super::{Arc, Condvar, Mutex};

/// The number of schedules of each test, unless `ZARR_MOUNT_SCHEDULES` is set.
const SCHEDULES: usize = 1000;

/// Runs `test` in random schedules, and in as many schedules that rarely switch threads (PCT),
/// which finds mistakes that need long runs between few switches. A failing schedule is printed.
pub(crate) fn check(test: impl Fn() + Send + Sync + Clone + 'static) {
    let count = std::env::var("ZARR_MOUNT_SCHEDULES");
    let count = count.map_or(SCHEDULES, |count| count.parse().unwrap());
    shuttle::check_random(test.clone(), count.div_ceil(2));
    shuttle::check_pct(test, count / 2, 3);
}

/// Whether `test` fails in one of the schedules.
fn fails(test: impl Fn() + Send + Sync + Clone + 'static) -> bool {
    catch_unwind(AssertUnwindSafe(|| check(test))).is_err()
}

/// A slot for callers that run a job on their own thread, and that may wait in it. A caller that
/// waits gives the slot back and is counted, so that no more callers than slots are held up.
#[derive(Default)]
struct Slot {
    /// The number of callers that have the slot, and of those that gave it back and wait.
    state: Mutex<(usize, usize)>,
    held_up: AtomicUsize,
}

impl Slot {
    fn take(&self) -> bool {
        let mut state = self.state.lock().unwrap();
        let is_free = state.0 + state.1 < 1;
        state.0 += usize::from(is_free);
        is_free
    }

    fn give_back_and_wait(&self) {
        let mut state = self.state.lock().unwrap();
        *state = (state.0 - 1, state.1 + 1);
    }

    /// This has the mistake that the caller is counted nowhere between the two statements.
    fn give_back_then_wait(&self) {
        self.state.lock().unwrap().0 -= 1;
        self.state.lock().unwrap().1 += 1;
    }

    fn end_wait(&self) {
        self.state.lock().unwrap().1 -= 1;
    }

    /// Runs three callers. Those that find no slot leave their job to others.
    fn three_callers(wait: fn(&Slot)) {
        let slot = Arc::new(Slot::default());
        let callers = [(); 3].map(|()| {
            let slot = Arc::clone(&slot);
            thread::spawn(move || {
                if slot.take() {
                    let held_up = slot.held_up.fetch_add(1, Ordering::SeqCst) + 1;
                    assert!(held_up <= 1, "{held_up} callers are held up");
                    wait(&slot);
                    slot.held_up.fetch_sub(1, Ordering::SeqCst);
                    slot.end_wait();
                }
            })
        });
        for caller in callers {
            caller.join().unwrap();
        }
    }
}

#[test]
fn a_caller_that_is_counted_nowhere_is_found() {
    assert!(fails(|| Slot::three_callers(Slot::give_back_then_wait)));
    check(|| Slot::three_callers(Slot::give_back_and_wait));
}

/// Waits for a flag, which is set with or without the lock.
fn wait_for_flag(is_under_lock: bool) {
    let shared = Arc::new((Mutex::new(()), Condvar::new(), AtomicBool::new(false)));
    let caller = Arc::clone(&shared);
    let caller = thread::spawn(move || {
        let (lock, condition, flag) = &*caller;
        let guard = is_under_lock.then(|| lock.lock().unwrap());
        flag.store(true, Ordering::SeqCst);
        condition.notify_all();
        drop(guard);
    });
    let (lock, condition, flag) = &*shared;
    let mut guard = lock.lock().unwrap();
    while !flag.load(Ordering::SeqCst) {
        guard = condition.wait(guard).unwrap();
    }
    drop(guard);
    caller.join().unwrap();
}

#[test]
fn a_call_that_is_missed_is_found() {
    assert!(fails(|| wait_for_flag(false)));
    check(|| wait_for_flag(true));
}
