//! Callers that are killed while they wait for a reply.
//!
//! Once the daemon has taken a request, the kernel keeps its caller waiting for the reply, even after SIGKILL. The
//! kernel reports the signal to the daemon (`FUSE_INTERRUPT`), but fuser answers that report itself. So a thread checks
//! now and then whether a signal that ends the caller is pending. If so, the reply is `EINTR`, which no program sees,
//! because the process ends before the system call returns.
//!
//! The request itself goes on, because other callers may wait for what it loads. If it ends after the reply `EINTR`, it
//! undoes its effects of which the kernel does not know: a lookup, an open file.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use fuser::Errno;

use super::events::{EventThreads, WaitPermit};
use super::reply::{Answer, Bytes, Reply};
use crate::buffers::Lender;
use crate::sync;
use crate::threads::is_dying;

/// The time between two checks of the callers. Most requests are done before the first one.
const INTERVAL: Duration = Duration::from_millis(200);

/// A reply that may be an error.
pub(super) trait Refuse {
    /// Sends an error.
    fn refuse(self, errno: Errno);
}

impl<A: Answer> Refuse for Reply<A> {
    fn refuse(self, errno: Errno) {
        self.error(errno);
    }
}

/// A request that has no reply yet.
pub(super) struct Unanswered<R> {
    thread: u32,
    reply: R,
}

impl<R> Unanswered<R> {
    /// A request of `thread`; 0 where the kernel names none.
    pub(super) fn new(thread: u32, reply: R) -> Unanswered<R> {
        Unanswered { thread, reply }
    }

    /// The thread that the kernel names as the caller; 0 if it names none.
    pub(super) fn thread(&self) -> u32 {
        self.thread
    }
}

impl<A: Answer> Unanswered<Reply<A>> {
    /// Like [`Reply::may_wait`].
    pub(super) fn may_wait<'e>(&self, events: &'e EventThreads) -> Option<WaitPermit<'e>> {
        self.reply.may_wait(events)
    }

    /// Like [`Reply::awaits_closing`].
    pub(super) fn awaits_closing(&self) -> bool {
        self.reply.awaits_closing()
    }
}

impl Unanswered<Reply<Bytes>> {
    /// Like [`Reply::lender`].
    pub(super) fn lender(&self) -> Option<Lender> {
        self.reply.lender()
    }
}

/// The reply of one request, which is sent once: by the request, or because the caller was killed.
pub(super) struct AwaitedReply<R>(Holder<R>);

enum Holder<R> {
    /// The thread that took the request answers it.
    Own(Option<R>),
    Shared(Arc<SharedReply<R>>),
}

struct SharedReply<R> {
    /// `None` once the reply was sent, or is about to be.
    reply: sync::Mutex<Option<R>>,
}

/// A reply of any type, for the thread that checks the callers.
trait SharedRefusal: Send + Sync {
    fn is_sent(&self) -> bool;
    fn refuse(&self);
}

impl<R> SharedReply<R> {
    fn lock(&self) -> sync::MutexGuard<'_, Option<R>> {
        self.reply.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R: Refuse + Send> SharedRefusal for SharedReply<R> {
    fn is_sent(&self) -> bool {
        self.lock().is_none()
    }

    fn refuse(&self) {
        let reply = self.lock().take();
        if let Some(reply) = reply {
            reply.refuse(Errno::EINTR);
        }
    }
}

impl<R> AwaitedReply<R> {
    /// The reply of a request that is answered by the thread that took it.
    pub(super) fn own(unanswered: Unanswered<R>) -> AwaitedReply<R> {
        AwaitedReply(Holder::Own(Some(unanswered.reply)))
    }

    /// Whether the caller was killed.
    pub(super) fn is_abandoned(&self) -> bool {
        match &self.0 {
            Holder::Own(_) => false,
            Holder::Shared(shared) => shared.lock().is_none(),
        }
    }

    /// Calls `add` with the reply, which is sent later. `None` when the caller was killed.
    pub(super) fn with<T>(&mut self, add: impl FnOnce(&mut R) -> T) -> Option<T> {
        match &mut self.0 {
            Holder::Own(reply) => reply.as_mut().map(add),
            Holder::Shared(shared) => shared.lock().as_mut().map(add),
        }
    }

    /// The reply, which the caller of this function must send. `None` when its own caller was killed.
    pub(super) fn take(mut self) -> Option<R> {
        self.take_once()
    }

    /// Sends `result`, by `send` if it is not an error. Returns the result when the caller was killed, so that effects
    /// of which the kernel does not know are undone.
    pub(super) fn send<T>(self, result: Result<T, Errno>, send: impl FnOnce(R, T)) -> Result<(), T>
    where
        R: Refuse,
    {
        match (result, self.take()) {
            (Ok(found), Some(reply)) => send(reply, found),
            (Ok(found), None) => return Err(found),
            (Err(errno), Some(reply)) => reply.refuse(errno),
            (Err(_), None) => {}
        }
        Ok(())
    }

    /// Sends an error.
    pub(super) fn refuse(self, errno: Errno)
    where
        R: Refuse,
    {
        let _ = self.send(Err::<(), Errno>(errno), |_, ()| {});
    }

    fn take_once(&mut self) -> Option<R> {
        match &mut self.0 {
            Holder::Own(reply) => reply.take(),
            Holder::Shared(shared) => shared.lock().take(),
        }
    }
}

impl<R> Drop for AwaitedReply<R> {
    fn drop(&mut self) {
        // After a panic, the reply becomes EIO when it is dropped.
        drop(self.take_once());
    }
}

/// The callers that wait for replies. A thread checks them. It starts with the first one, and ends when this is
/// dropped.
pub(super) struct Callers(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    has_changed: Condvar,
    is_dying: fn(u32) -> bool,
}

#[derive(Default)]
struct State {
    waiting: Vec<Waiting>,
    is_running: bool,
    has_ended: bool,
}

struct Waiting {
    thread: u32,
    /// Whether the thread has seen it before. Callers that have waited only for a moment are not checked.
    is_seen: bool,
    reply: Arc<dyn SharedRefusal>,
}

/// A reply that was not passed to [`Callers::watch`] yet.
pub(super) struct Unwatched {
    thread: u32,
    reply: Arc<dyn SharedRefusal>,
}

impl Callers {
    pub(super) fn new() -> Callers {
        Callers::with(is_dying)
    }

    fn with(is_dying: fn(u32) -> bool) -> Callers {
        Callers(Arc::new(Shared {
            state: Mutex::default(),
            has_changed: Condvar::new(),
            is_dying,
        }))
    }

    /// Shares the reply of a request whose caller may have to wait.
    pub(super) fn share<R: Refuse + Send + 'static>(
        unanswered: Unanswered<R>,
    ) -> (AwaitedReply<R>, Unwatched) {
        let Unanswered { thread, reply } = unanswered;
        let shared = Arc::new(SharedReply {
            reply: sync::Mutex::new(Some(reply)),
        });
        let reply: Arc<dyn SharedRefusal> = Arc::clone(&shared) as _;
        let awaited = AwaitedReply(Holder::Shared(shared));
        (awaited, Unwatched { thread, reply })
    }

    /// Replies with `EINTR` once the caller was killed, unless the request was answered before.
    pub(super) fn watch(&self, unwatched: Unwatched) {
        let Unwatched { thread, reply } = unwatched;
        // The kernel does not name callers in a PID namespace that the mount is not in.
        if thread == 0 || reply.is_sent() {
            return;
        }
        let mut state = self.0.lock();
        state.waiting.push(Waiting {
            thread,
            is_seen: false,
            reply,
        });
        if state.is_running {
            if state.waiting.len() == 1 {
                self.0.has_changed.notify_one();
            }
            return;
        }
        let shared = Arc::clone(&self.0);
        let thread = thread::Builder::new().name("callers".to_owned());
        match thread.spawn(move || shared.run()) {
            Ok(_) => state.is_running = true,
            // The callers wait for their replies.
            Err(error) => {
                state.waiting.clear();
                log::debug!("no thread for checking callers can be started: {error}");
            }
        }
    }
}

impl Drop for Callers {
    fn drop(&mut self) {
        self.0.lock().has_ended = true;
        self.0.has_changed.notify_one();
    }
}

impl Shared {
    fn run(&self) {
        let mut state = self.lock();
        while !state.has_ended {
            if state.waiting.is_empty() {
                let waited = self.has_changed.wait(state);
                state = waited.unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let waited = self
                .has_changed
                .wait_timeout_while(state, INTERVAL, |state| !state.has_ended);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            let mut waiting = std::mem::take(&mut state.waiting);
            drop(state);
            self.look(&mut waiting);
            state = self.lock();
            state.waiting.append(&mut waiting);
        }
    }

    /// Answers the callers that were killed, and keeps those that wait on.
    fn look(&self, waiting: &mut Vec<Waiting>) {
        let mut known = HashMap::new();
        waiting.retain_mut(|caller| {
            if caller.reply.is_sent() {
                return false;
            }
            if !std::mem::replace(&mut caller.is_seen, true) {
                return true;
            }
            let asked = known.entry(caller.thread);
            let is_dying = *asked.or_insert_with(|| (self.is_dying)(caller.thread));
            if is_dying {
                caller.reply.refuse();
            }
            !is_dying
        });
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::mpsc::{self, Sender};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// A reply that reports the result that was sent, or that it was dropped without one.
    struct TestReply(Option<Sender<Result<u32, i32>>>);

    impl TestReply {
        fn ok(mut self, found: u32) {
            let sender = self.0.take().expect("a reply is sent once");
            sender.send(Ok(found)).expect("the test waits");
        }
    }

    impl Refuse for TestReply {
        fn refuse(mut self, errno: Errno) {
            let sender = self.0.take().expect("a reply is sent once");
            sender.send(Err(errno.code())).expect("the test waits");
        }
    }

    impl Drop for TestReply {
        fn drop(&mut self) {
            if let Some(sender) = self.0.take() {
                let _ = sender.send(Err(libc::EIO));
            }
        }
    }

    fn request(thread: u32) -> (Unanswered<TestReply>, mpsc::Receiver<Result<u32, i32>>) {
        let (sender, sent) = mpsc::channel();
        (Unanswered::new(thread, TestReply(Some(sender))), sent)
    }

    #[test]
    fn killed_callers_are_answered_before_their_requests_are_done_and_others_after() {
        let callers = Callers::with(|thread| thread == 7);
        let ((killed, killed_sent), (alive, alive_sent)) = (request(7), request(8));
        let ((mut killed, first), (mut alive, second)) =
            (Callers::share(killed), Callers::share(alive));
        callers.watch(second);
        callers.watch(first);
        assert_eq!(killed_sent.recv_timeout(PATIENCE), Ok(Err(libc::EINTR)));
        assert!(killed.is_abandoned() && !alive.is_abandoned());
        assert_eq!(killed.with(|_| ()), None);
        assert_eq!(alive.with(|_| ()), Some(()));
        // The request gets its result back.
        assert_eq!(killed.send(Ok(1), TestReply::ok), Err(1));
        assert_eq!(alive.send(Ok(2), TestReply::ok), Ok(()));
        assert_eq!(alive_sent.recv_timeout(PATIENCE), Ok(Ok(2)));
        assert!(killed_sent.recv_timeout(PATIENCE).is_err(), "one reply");
    }

    #[test]
    fn callers_are_checked_for_as_long_as_they_wait() {
        let shared = Shared {
            state: Mutex::default(),
            has_changed: Condvar::new(),
            is_dying: |thread| thread == 7,
        };
        let (mut waiting, mut replies) = (Vec::new(), Vec::new());
        for thread in [8, 7, 8, 7] {
            let (unanswered, sent) = request(thread);
            let (
                reply,
                Unwatched {
                    thread,
                    reply: shown,
                },
            ) = Callers::share(unanswered);
            waiting.push(Waiting {
                thread,
                is_seen: false,
                reply: shown,
            });
            replies.push((reply, sent));
        }
        shared.look(&mut waiting);
        assert_eq!(waiting.len(), 4, "they have waited for a moment only");
        shared.look(&mut waiting);
        assert_eq!(waiting.len(), 2);
        let (first, sent) = replies.remove(0);
        assert_eq!(first.send(Err(Errno::ENOENT), TestReply::ok), Ok(()));
        assert_eq!(sent.recv(), Ok(Err(libc::ENOENT)));
        shared.look(&mut waiting);
        assert_eq!(waiting.len(), 1, "one was answered");
    }

    #[test]
    fn a_request_that_panics_is_answered() {
        for is_shared in [false, true] {
            let (unanswered, sent) = request(8);
            let (reply, _unwatched) = if is_shared {
                let (reply, unwatched) = Callers::share(unanswered);
                (reply, Some(unwatched))
            } else {
                (AwaitedReply::own(unanswered), None)
            };
            let work = move || {
                let _reply = reply;
                panic!("on purpose");
            };
            assert!(catch_unwind(AssertUnwindSafe(work)).is_err());
            assert_eq!(sent.recv(), Ok(Err(libc::EIO)));
        }
    }
}

#[cfg(all(test, feature = "model"))]
mod schedules {
    use shuttle::thread;

    use super::*;
    use crate::sync::atomic::{AtomicUsize, Ordering};
    use crate::sync::schedules::check;

    /// A reply that counts itself when it is sent, with a result or with an error.
    struct Counted {
        results: Arc<AtomicUsize>,
        errors: Arc<AtomicUsize>,
    }

    impl Refuse for Counted {
        fn refuse(self, _: Errno) {
            self.errors.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_killed_caller_and_its_request_send_one_reply() {
        check(|| {
            let [results, errors] = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
            let reply = Counted {
                results: Arc::clone(&results),
                errors: Arc::clone(&errors),
            };
            let (awaited, unwatched) = Callers::share(Unanswered::new(7, reply));
            let request = thread::spawn(move || {
                let send = |reply: Counted, n| {
                    reply.results.fetch_add(n, Ordering::SeqCst);
                };
                awaited.send(Ok(1), send).is_ok()
            });
            let looking = thread::spawn(move || unwatched.reply.refuse());
            let is_sent = request.join().unwrap();
            looking.join().unwrap();
            let sent = [&results, &errors].map(|count| count.load(Ordering::SeqCst));
            // The request knows whether the kernel has its result, and otherwise undoes its effects.
            assert_eq!(sent, if is_sent { [1, 0] } else { [0, 1] });
        });
    }
}
