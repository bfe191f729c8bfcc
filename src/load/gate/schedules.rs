//! Every thread gets a permit at last, and no more permits are out than the gate has.

use shuttle::thread;

use super::*;
use crate::sync::Arc;
use crate::sync::schedules::check;
use crate::threads::as_class;

/// The permits that are out, as counted by their holders: those of awaited work, and those of
/// prefetches.
#[derive(Default)]
struct Inside(Mutex<(usize, usize)>);

impl Inside {
    /// Takes a permit and releases it. Returns how many permits were out meanwhile. A prefetch that
    /// has waited for long counts as awaited work.
    fn pass(&self, gate: &PriorityGate) -> (usize, usize) {
        let permit = gate.enter();
        let is_prefetch = permit.one == ONE_PREFETCH;
        let seen = self.count(is_prefetch, |own| *own += 1);
        self.count(is_prefetch, |own| *own -= 1);
        seen
    }

    fn count(&self, is_prefetch: bool, change: fn(&mut usize)) -> (usize, usize) {
        let mut inside = self.0.lock().unwrap();
        change(if is_prefetch {
            &mut inside.1
        } else {
            &mut inside.0
        });
        *inside
    }
}

/// Runs three awaited threads and two prefetches, each of which takes a permit twice.
fn crowd(
    gate: &Arc<PriorityGate>,
    is_right: impl Fn((usize, usize)) -> bool + Copy + Send + 'static,
) {
    let inside = Arc::new(Inside::default());
    let threads: Vec<_> = (0..5)
        .map(|number| {
            let (gate, inside) = (Arc::clone(gate), Arc::clone(&inside));
            let pass = move || {
                for _ in 0..2 {
                    let seen = inside.pass(&gate);
                    assert!(is_right(seen), "{seen:?} inside");
                }
            };
            thread::spawn(move || {
                if number < 3 {
                    pass();
                } else {
                    as_class(Class::Prefetch, pass);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(gate.inside.load(Ordering::SeqCst), 0);
    assert!(!gate.has_waiting());
    let outside = gate.outside.lock().unwrap();
    assert!(outside.awaited.0.is_empty() && outside.prefetches.0.is_empty());
}

#[test]
fn a_strict_gate_gives_every_thread_a_permit_at_last() {
    for most in [1, 2] {
        let is_right = move |(awaited, prefetches)| awaited + prefetches <= most;
        check(move || crowd(&Arc::new(PriorityGate::strict(most)), is_right));
    }
}

#[test]
fn a_lenient_gate_gives_every_thread_a_permit_at_last() {
    for most in [1, 2] {
        let is_right = move |(awaited, prefetches)| awaited <= most && prefetches <= most;
        check(move || crowd(&Arc::new(PriorityGate::lenient(most)), is_right));
    }
}

/// A thread may hold its permit for ever, which must not keep another thread from a free permit.
#[test]
fn no_permit_is_free_while_a_thread_waits() {
    check(|| {
        let gate = Arc::new(PriorityGate::strict(3));
        let permits = [gate.enter(), gate.enter(), gate.enter()];
        let inside = Arc::new((Mutex::new(0), Condvar::new()));
        let threads: Vec<_> = (0..3)
            .map(|number| {
                let (gate, inside) = (Arc::clone(&gate), Arc::clone(&inside));
                let stay = move || {
                    let _permit = gate.enter();
                    let (count, changed) = &*inside;
                    let mut count = count.lock().unwrap();
                    *count += 1;
                    changed.notify_all();
                    while *count < 3 {
                        count = changed.wait(count).unwrap();
                    }
                };
                thread::spawn(move || {
                    if number < 1 {
                        stay();
                    } else {
                        as_class(Class::Prefetch, stay);
                    }
                })
            })
            .collect();
        drop(permits);
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

/// Threads take turns of several jobs. A job that is not in a turn gets its permit too.
#[test]
fn turns_give_every_thread_a_permit_at_last() {
    check(|| {
        let (gate, inside) = (
            Arc::new(PriorityGate::strict(1)),
            Arc::new(Inside::default()),
        );
        let threads: Vec<_> = (0..3)
            .map(|number| {
                let (gate, inside) = (Arc::clone(&gate), Arc::clone(&inside));
                thread::spawn(move || {
                    if number == 0 {
                        assert_eq!(inside.pass(&gate), (1, 0));
                        return;
                    }
                    let mut left = 2;
                    while left > 0 {
                        let turn = Turn::begin(&gate);
                        while left > 0 {
                            left -= 1;
                            assert_eq!(inside.pass(&gate), (1, 0));
                            if turn.is_over() {
                                turn.end();
                                break;
                            }
                        }
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(gate.inside.load(Ordering::SeqCst), 0);
    });
}

/// A thread in a turn waits for another thread, which waits for a permit.
#[test]
fn a_thread_that_waits_releases_its_permit() {
    check(|| {
        let gate = Arc::new(PriorityGate::strict(1));
        let turn = Turn::begin(&gate);
        let (send, receive) = crate::sync::mpsc::channel();
        let other = {
            let gate = Arc::clone(&gate);
            thread::spawn(move || {
                let _permit = gate.enter();
                send.send(()).unwrap();
            })
        };
        step_aside(|| receive.recv()).unwrap();
        assert_eq!(gate.inside.load(Ordering::SeqCst), ONE_AWAITED);
        drop(gate.enter());
        assert_eq!(gate.inside.load(Ordering::SeqCst), ONE_AWAITED, "kept");
        drop(turn);
        assert_eq!(gate.inside.load(Ordering::SeqCst), 0);
        other.join().unwrap();
    });
}
