//! The file or directory at a path. Requests for the same path that come at the same time look it up once.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use tokio::sync::OnceCell;

use super::opened::ServedFile;
use crate::error::Error;
use crate::view::HeldVnode;

/// The number of lookups that have ended without a word, because their clients went, before they are forgotten.
const MOST_ENDED: usize = 1024;

/// A file or directory.
#[derive(Debug, Clone)]
pub(super) enum Found {
    /// A file, which is open.
    File(Arc<ServedFile>),
    /// A directory.
    Directory(Arc<HeldVnode>),
}

/// The result of a lookup; `None` if nothing is there.
pub(super) type Outcome = Result<Option<Found>, Error>;

/// A lookup that has ended.
#[derive(Debug)]
struct Lookup {
    /// When it began.
    asked: Instant,
    outcome: Outcome,
}

type Cells = HashMap<Vec<u8>, Weak<OnceCell<Lookup>>>;

/// Lookups that have not ended, by their paths.
#[derive(Debug, Default)]
pub(super) struct Lookups(Mutex<Cells>);

impl Lookups {
    /// The outcome of the lookup of `path` that another request has begun, or of `look`. What is there, or not there, is
    /// as new as `news`: a lookup that began before may have met an older state of the store.
    pub(super) async fn share<F: Future<Output = Outcome>>(
        &self,
        path: &[u8],
        news: Option<Instant>,
        look: impl Fn() -> F,
    ) -> Outcome {
        loop {
            let cell = self.cell(path);
            let begin = || async {
                let asked = Instant::now();
                let outcome = look().await;
                // Requests that come from now on look again, because the store may have changed.
                self.lock().remove(path);
                Lookup { asked, outcome }
            };
            let lookup = cell.get_or_init(begin).await;
            if news.is_none_or(|news| news <= lookup.asked) {
                return lookup.outcome.clone();
            }
        }
    }

    fn cell(&self, path: &[u8]) -> Arc<OnceCell<Lookup>> {
        let mut lookups = self.lock();
        if let Some(cell) = lookups.get(path).and_then(Weak::upgrade) {
            return cell;
        }
        if lookups.len() > MOST_ENDED {
            lookups.retain(|_, cell| cell.strong_count() > 0);
        }
        let cell = Arc::default();
        lookups.insert(path.to_vec(), Arc::downgrade(&cell));
        cell
    }

    fn lock(&self) -> MutexGuard<'_, Cells> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Notify;

    use super::*;

    #[test]
    fn requests_at_the_same_time_look_once_and_later_ones_again() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let (lookups, looks, go) = (
            Arc::new(Lookups::default()),
            Arc::new(AtomicUsize::new(0)),
            Arc::new(Notify::new()),
        );
        let ask_since = |path: &'static [u8], news| {
            let (lookups, looks, go) = (Arc::clone(&lookups), Arc::clone(&looks), Arc::clone(&go));
            runtime.spawn(async move {
                let look = || async {
                    looks.fetch_add(1, Ordering::Relaxed);
                    go.notified().await;
                    Ok(None)
                };
                lookups.share(path, news, look).await.is_ok()
            })
        };
        let ask = |path| ask_since(path, None);
        let settle = || {
            runtime.block_on(async {
                for _ in 0..100 {
                    tokio::task::yield_now().await;
                }
            });
        };
        let (first, others) = (ask(b"a"), [ask(b"a"), ask(b"a")]);
        settle();
        assert_eq!(looks.load(Ordering::Relaxed), 1);
        // The client of the first request goes, and another request looks in its place.
        first.abort();
        settle();
        assert_eq!(looks.load(Ordering::Relaxed), 2);
        let other = ask(b"b");
        settle();
        assert_eq!(looks.load(Ordering::Relaxed), 3);
        go.notify_waiters();
        for asked in others.into_iter().chain([other]) {
            assert!(runtime.block_on(asked).unwrap());
        }
        let later = ask(b"a");
        settle();
        go.notify_waiters();
        assert!(runtime.block_on(later).unwrap());
        assert_eq!(looks.load(Ordering::Relaxed), 4);
        // A client that was sent something new looks again where the lookup of another request has begun before.
        let early = ask(b"c");
        settle();
        let late = ask_since(b"c", Some(Instant::now()));
        settle();
        assert_eq!(looks.load(Ordering::Relaxed), 5);
        go.notify_waiters();
        settle();
        assert!(early.is_finished() && !late.is_finished());
        assert_eq!(looks.load(Ordering::Relaxed), 6);
        go.notify_waiters();
        assert!(runtime.block_on(late).unwrap());
        assert!(lookups.lock().is_empty());
    }
}
