//! Locks of names, so that no commit meets a rename half-way.
//!
//! A change of names locks them exclusively, with everything below them: a rename locks both names, and everything in a
//! directory that is renamed. Work on a file (it is opened, made, saved or closed) shares the lock of its name with
//! other such work. No change waits for work on other names, however long that takes: an encoder, the disk, or a lock
//! of another program.
//!
//! Requests for the same names are served in the order in which they come, so that none of them waits for ever. A
//! thread that has a lock requests no other one of the same [`NameLocks`].

use crate::store::Prefix;
use crate::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Locks of names.
#[derive(Debug, Default)]
pub(crate) struct NameLocks {
    table: Mutex<Table>,
    given_back: Condvar,
}

#[derive(Debug, Default)]
struct Table {
    /// The requests that were served and those that wait, in the order in which they came.
    requests: Vec<Request>,
    /// How many requests there were so far.
    n_requests: u64,
    n_waiting: usize,
}

#[derive(Debug)]
struct Request {
    number: u64,
    /// The request is for everything at these paths, and below them.
    paths: Vec<Prefix>,
    is_alone: bool,
    /// Whether the request has the lock.
    is_served: bool,
}

/// A lock, until this is dropped.
#[derive(Debug)]
pub(crate) struct NameLock<'l> {
    locks: &'l NameLocks,
    number: u64,
}

impl NameLocks {
    /// A lock for work on the files at these paths, during which their names must not change.
    pub(crate) fn share(&self, paths: Vec<Prefix>) -> NameLock<'_> {
        self.ask(paths, false)
    }

    /// A lock for changes of the files at these paths, and below them.
    pub(crate) fn take(&self, paths: Vec<Prefix>) -> NameLock<'_> {
        self.ask(paths, true)
    }

    fn ask(&self, paths: Vec<Prefix>, is_alone: bool) -> NameLock<'_> {
        let mut table = self.lock();
        table.n_requests += 1;
        let number = table.n_requests;
        table.requests.push(Request {
            number,
            paths,
            is_alone,
            is_served: false,
        });
        self.serve(table, number);
        NameLock {
            locks: self,
            number,
        }
    }

    /// Waits until no other request excludes this one.
    fn serve(&self, mut table: MutexGuard<'_, Table>, number: u64) {
        while table.must_wait(number) {
            table.n_waiting += 1;
            let waited = self.given_back.wait(table);
            table = waited.unwrap_or_else(PoisonError::into_inner);
            table.n_waiting -= 1;
        }
        if let Some(own) = table.find(number) {
            own.is_served = true;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn find(&mut self, number: u64) -> Option<&mut Request> {
        let mut requests = self.requests.iter_mut();
        requests.find(|request| request.number == number)
    }

    /// Whether a request that came before this one, or has its lock, excludes this one.
    fn must_wait(&self, number: u64) -> bool {
        let others = || self.requests.iter().filter(|other| other.number != number);
        let own = self.requests.iter().find(|own| own.number == number);
        own.is_some_and(|own| {
            others().any(|other| (other.number < number || other.is_served) && other.excludes(own))
        })
    }
}

impl NameLock<'_> {
    /// Replaces the lock by one of `path`, which keeps its place in the order: the locked file had another name when
    /// the lock was requested.
    pub(crate) fn move_to(&mut self, path: &Prefix) {
        let mut table = self.locks.lock();
        if let Some(own) = table.find(self.number) {
            (own.paths, own.is_served) = (vec![path.clone()], false);
        }
        self.locks.given_back.notify_all();
        self.locks.serve(table, self.number);
    }
}

impl Request {
    fn excludes(&self, other: &Request) -> bool {
        let is_related = |path: &Prefix| other.paths.iter().any(|theirs| are_related(path, theirs));
        (self.is_alone || other.is_alone) && self.paths.iter().any(is_related)
    }
}

impl Drop for NameLock<'_> {
    fn drop(&mut self) {
        let mut table = self.locks.lock();
        table.requests.retain(|ask| ask.number != self.number);
        let is_awaited = table.n_waiting > 0;
        drop(table);
        if is_awaited {
            self.locks.given_back.notify_all();
        }
    }
}

/// Whether the paths are equal, or one is above the other.
fn are_related(one: &Prefix, other: &Prefix) -> bool {
    one == other || one.strip(other.as_bytes()).is_some() || other.strip(one.as_bytes()).is_some()
}

#[cfg(test)]
#[cfg(feature = "model")]
mod schedules {
    use shuttle::thread;

    use super::*;
    use crate::sync::Arc;
    use crate::sync::atomic::{AtomicUsize, Ordering};
    use crate::sync::schedules::check;

    fn path(path: &str) -> Prefix {
        Prefix::parse(path.as_bytes()).unwrap()
    }

    /// Two renames and three saves: a rename has its names alone, and each of the five gets its lock.
    #[test]
    fn a_change_of_a_name_has_it_alone() {
        check(|| {
            let shared = Arc::new((NameLocks::default(), [const { AtomicUsize::new(0) }; 2]));
            let rename = |from: &'static str, to: &'static str, concerned: &'static [usize]| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let (locks, savers) = &*shared;
                    let _lock = locks.take(vec![path(from), path(to)]);
                    for at in concerned {
                        assert_eq!(savers[*at].swap(100, Ordering::SeqCst), 0);
                        thread::yield_now();
                        assert_eq!(savers[*at].swap(0, Ordering::SeqCst), 100);
                    }
                })
            };
            let save = |saved: &'static str, concerned: usize| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let (locks, savers) = &*shared;
                    let _lock = locks.share(vec![path(saved)]);
                    assert!(savers[concerned].fetch_add(1, Ordering::SeqCst) < 100);
                    thread::yield_now();
                    savers[concerned].fetch_sub(1, Ordering::SeqCst);
                })
            };
            let threads = [
                rename("a", "b/x", &[0, 1]),
                rename("b/x/1", "c", &[1]),
                save("a/0", 0),
                save("a/0", 0),
                save("b/x/1", 1),
            ];
            for thread in threads {
                thread.join().unwrap();
            }
            assert!(shared.0.lock().requests.is_empty());
        });
    }

    /// The lock of a save moves along when the file is renamed all the time.
    #[test]
    fn a_lock_moves_along() {
        check(|| {
            let shared = Arc::new((NameLocks::default(), AtomicUsize::new(0)));
            let renames = [("a", "b"), ("b", "a")].map(|(from, to)| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let (locks, savers) = &*shared;
                    let _lock = locks.take(vec![path(from), path(to)]);
                    assert_eq!(savers.swap(100, Ordering::SeqCst), 0);
                    thread::yield_now();
                    assert_eq!(savers.swap(0, Ordering::SeqCst), 100);
                })
            });
            let saves = [("a/0", "b/0"), ("b/1", "a/1")].map(|(old, new)| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let (locks, savers) = &*shared;
                    let mut lock = locks.share(vec![path(old)]);
                    lock.move_to(&path(new));
                    assert!(savers.fetch_add(1, Ordering::SeqCst) < 100);
                    thread::yield_now();
                    savers.fetch_sub(1, Ordering::SeqCst);
                })
            });
            for thread in renames.into_iter().chain(saves) {
                thread.join().unwrap();
            }
        });
    }
}

#[cfg(test)]
#[cfg(not(feature = "model"))]
mod tests {
    use super::*;

    fn path(path: &str) -> Prefix {
        Prefix::parse(path.as_bytes()).unwrap()
    }

    #[test]
    fn work_on_other_names_is_not_waited_for() {
        let locks = NameLocks::default();
        let _saves = locks.share(vec![path("a/0")]);
        let _saves_too = locks.share(vec![path("a/0")]);
        let _renames = locks.take(vec![path("a/1"), path("b")]);
        let _makes = locks.share(vec![path("a/10"), path("c")]);
        let _removes = locks.take(vec![path("a/00")]);
    }

    #[test]
    fn a_later_request_waits_for_an_earlier_one_that_waits() {
        let locks = NameLocks::default();
        let saves = locks.share(vec![path("a/0")]);
        let ask = |number, asked: &str, is_alone| {
            let request = Request {
                number,
                paths: vec![path(asked)],
                is_alone,
                is_served: false,
            };
            let mut table = locks.lock();
            table.requests.push(request);
            table.must_wait(number)
        };
        assert!(!ask(100, "a/0", false));
        assert!(ask(101, "a", true));
        assert!(ask(102, "a/1", false), "behind the one before");
        assert!(!ask(103, "b", true));
        drop(saves);
        assert!(locks.lock().must_wait(101));
        locks.lock().requests.retain(|ask| ask.number != 100);
        assert!(!locks.lock().must_wait(101));
    }

    #[test]
    fn a_lock_that_moves_comes_before_requests_that_wait_for_it() {
        let locks = NameLocks::default();
        let mut saves = locks.share(vec![path("g/0")]);
        let rename = Request {
            number: 100,
            paths: vec![path("g"), path("l")],
            is_alone: true,
            is_served: false,
        };
        locks.lock().requests.push(rename);
        saves.move_to(&path("l/0"));
        assert!(locks.lock().must_wait(100));
        saves.move_to(&path("m/0"));
        assert!(!locks.lock().must_wait(100));
        locks.lock().requests.retain(|ask| ask.number != 100);
    }

    #[test]
    fn paths_are_related_to_those_above_and_below() {
        for (one, other, expected) in [
            ("a", "a", true),
            ("a", "a/b/c", true),
            ("a", "ab", false),
            ("a/b", "a/c", false),
            ("", "a", true),
        ] {
            assert_eq!(are_related(&path(one), &path(other)), expected);
            assert_eq!(are_related(&path(other), &path(one)), expected);
        }
    }
}
