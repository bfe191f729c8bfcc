//! The file or directory at a path. Requests for the same path that come at the same time look it up once.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

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

/// Lookups that have not ended, by their paths.
#[derive(Debug, Default)]
pub(super) struct Lookups(Mutex<HashMap<Vec<u8>, Weak<OnceCell<Outcome>>>>);

impl Lookups {
    /// The outcome of the lookup of `path` that another request has begun, or of `look`.
    pub(super) async fn share(&self, path: &[u8], look: impl Future<Output = Outcome>) -> Outcome {
        let cell = self.cell(path);
        let look = || async {
            let outcome = look.await;
            // Requests that come from now on look again, because the store may have changed.
            self.lock().remove(path);
            outcome
        };
        cell.get_or_init(look).await.clone()
    }

    fn cell(&self, path: &[u8]) -> Arc<OnceCell<Outcome>> {
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

    fn lock(&self) -> MutexGuard<'_, HashMap<Vec<u8>, Weak<OnceCell<Outcome>>>> {
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
        let ask = |path: &'static [u8]| {
            let (lookups, looks, go) = (Arc::clone(&lookups), Arc::clone(&looks), Arc::clone(&go));
            runtime.spawn(async move {
                let look = async {
                    looks.fetch_add(1, Ordering::Relaxed);
                    go.notified().await;
                    Ok(None)
                };
                lookups.share(path, look).await.is_ok()
            })
        };
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
        assert!(lookups.lock().is_empty());
    }
}
