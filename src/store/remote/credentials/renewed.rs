//! Credentials that expire, and are fetched again in time. Callers that need them at the same
//! moment wait for one fetch, and share its failure.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use object_store::CredentialProvider;
use tokio::sync::Mutex;

use crate::store::remote::credentials::access::Refusals;
use crate::store::remote::credentials::credential_error::CredentialError;
use crate::store::remote::credentials::static_credentials::CredentialFuture;

/// Credentials are fetched anew when they expire within this time.
const EARLY: Duration = Duration::from_secs(300);

/// After a fetch, credentials that have not expired are used for at least so long, even if they
/// expire soon.
const PAUSE: Duration = Duration::from_secs(10);

/// Credentials as they were fetched.
pub(crate) struct Fetched<T> {
    /// The credentials.
    pub(crate) credentials: T,
    /// When they expire; `None` for never.
    pub(crate) expires: Option<SystemTime>,
}

impl<T> fmt::Debug for Fetched<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetched")
            .field("expires", &self.expires)
            .finish_non_exhaustive()
    }
}

type Fetch<T> = dyn Fn() -> Result<Fetched<T>, CredentialError> + Send + Sync;

/// Credentials that are fetched when they are needed.
pub(crate) struct Renewed<T> {
    fetch: Arc<Fetch<T>>,
    held: Mutex<Held<T>>,
    /// How many fetches have ended.
    ended: AtomicU64,
    refusals: Arc<Refusals>,
}

/// The result of the last fetch.
struct Held<T> {
    credentials: Option<(Arc<T>, Option<SystemTime>)>,
    /// The number of the credentials, by which they are refused.
    number: u64,
    failure: Option<CredentialError>,
    pause_until: Instant,
}

impl<T> Held<T> {
    /// The credentials, unless they have expired.
    fn valid(&self, now: SystemTime) -> Option<(Arc<T>, Option<SystemTime>)> {
        let (credentials, expires) = self.credentials.as_ref()?;
        let is_valid = expires.is_none_or(|expires| expires > now);
        is_valid.then(|| (Arc::clone(credentials), *expires))
    }

    /// The credentials, unless they are to be fetched anew.
    fn fresh(&self, now: SystemTime) -> Option<Arc<T>> {
        let (credentials, expires) = self.valid(now)?;
        let is_fresh = expires.is_none_or(|expires| expires > now + EARLY)
            || Instant::now() < self.pause_until;
        is_fresh.then_some(credentials)
    }
}

impl<T> fmt::Debug for Renewed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Renewed")
    }
}

impl<T: Send + Sync + 'static> Renewed<T> {
    /// Credentials that `fetch` gives. It may block.
    pub(crate) fn new(
        fetch: impl Fn() -> Result<Fetched<T>, CredentialError> + Send + Sync + 'static,
    ) -> Renewed<T> {
        Renewed {
            fetch: Arc::new(fetch),
            held: Mutex::new(Held {
                credentials: None,
                number: 0,
                failure: None,
                pause_until: Instant::now(),
            }),
            ended: AtomicU64::new(0),
            refusals: Arc::default(),
        }
    }

    /// Credentials that have not expired.
    ///
    /// # Errors
    /// [`CredentialError`] of the fetch.
    pub(crate) async fn get(&self) -> Result<Arc<T>, CredentialError> {
        let ended = self.ended.load(Ordering::Acquire);
        let mut held = self.held.lock().await;
        if self.refusals.is_refused(held.number) {
            held.credentials = None;
        }
        if let Some(fresh) = held.fresh(SystemTime::now()) {
            return Ok(fresh);
        }
        if self.ended.load(Ordering::Acquire) != ended
            && let Some(failure) = &held.failure
        {
            // The fetch of another caller failed while this caller waited for it.
            return Err(failure.clone());
        }
        let fetch = Arc::clone(&self.fetch);
        let fetched = tokio::task::spawn_blocking(move || fetch()).await;
        let fetched = fetched.unwrap_or_else(|_| {
            let problem = "fetching them was given up";
            Err(CredentialError::setting("credentials", problem))
        });
        let now = SystemTime::now();
        let valid = held.valid(now);
        held.pause_until = Instant::now() + PAUSE;
        let result = match (fetched, valid) {
            (Ok(fetched), _) if fetched.expires.is_some_and(|expires| expires <= now) => {
                let problem = "they have expired already; the clock may be wrong";
                Err(CredentialError::setting("credentials", problem))
            }
            (Ok(fetched), _) => {
                let credentials = Arc::new(fetched.credentials);
                held.credentials = Some((Arc::clone(&credentials), fetched.expires));
                held.number = self.refusals.issue();
                Ok(credentials)
            }
            (Err(failure), Some((credentials, _))) => {
                log::warn!("credentials are not renewed, and expire soon: {failure}");
                Ok(credentials)
            }
            (Err(failure), None) => Err(failure),
        };
        held.failure = result.as_ref().err().cloned();
        self.ended.fetch_add(1, Ordering::Release);
        result
    }

    /// Receives refusals of servers. Credentials that were refused are fetched anew.
    pub(crate) fn refusals(&self) -> Arc<Refusals> {
        Arc::clone(&self.refusals)
    }
}

impl<T: Send + Sync + 'static> CredentialProvider for Renewed<T> {
    type Credential = T;

    fn get_credential<'s, 'f>(&'s self) -> CredentialFuture<'f, T>
    where
        's: 'f,
        Self: 'f,
    {
        Box::pin(async {
            let credentials = self.get().await;
            credentials.map_err(|error| object_store::Error::Unauthenticated {
                path: String::new(),
                source: Box::new(error),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use tokio::runtime::Builder;

    use super::*;

    fn failure() -> CredentialError {
        CredentialError::setting("x", "failed")
    }

    /// Credentials whose fetches are counted. Fetch `n` returns `result(n)`.
    fn counted(
        result: impl Fn(usize) -> Result<Option<SystemTime>, CredentialError> + Send + Sync + 'static,
    ) -> (Arc<Renewed<usize>>, Arc<AtomicUsize>) {
        let count = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&count);
        let fetch = move || {
            let n = counter.fetch_add(1, Ordering::SeqCst) + 1;
            result(n).map(|expires| Fetched {
                credentials: n,
                expires,
            })
        };
        (Arc::new(Renewed::new(fetch)), count)
    }

    fn run<T>(future: impl Future<Output = T>) -> T {
        let runtime = Builder::new_current_thread().enable_time().build();
        runtime.unwrap().block_on(future)
    }

    fn after(seconds: u64) -> SystemTime {
        SystemTime::now() + Duration::from_secs(seconds)
    }

    #[test]
    fn credentials_are_fetched_once_until_they_are_refused() {
        run(async {
            for expires in [None, Some(after(1000))] {
                let (renewed, count) = counted(move |_| Ok(expires));
                assert_eq!(*renewed.get().await.unwrap(), 1);
                assert_eq!(*renewed.get().await.unwrap(), 1);
                renewed.refusals().accept(1);
                assert!(renewed.refusals().refuse(1));
                assert_eq!(*renewed.get_credential().await.unwrap(), 2);
                assert_eq!(count.load(Ordering::SeqCst), 2);
            }
        });
    }

    #[test]
    fn credentials_that_expire_within_five_minutes_are_renewed_after_a_pause() {
        run(async {
            let (renewed, count) = counted(|n| match n {
                1 => Ok(Some(after(200))),
                2 => Err(failure()),
                _ => Ok(Some(after(1000))),
            });
            for (expected, fetches) in [(1, 1), (1, 2), (3, 3), (3, 3)] {
                // The pause is over.
                renewed.held.lock().await.pause_until = Instant::now();
                assert_eq!(*renewed.get().await.unwrap(), expected);
                assert_eq!(count.load(Ordering::SeqCst), fetches);
            }
            let (renewed, count) = counted(|_| Ok(Some(after(200))));
            for _ in 0..3 {
                assert_eq!(*renewed.get().await.unwrap(), 1, "within the pause");
            }
            assert_eq!(count.load(Ordering::SeqCst), 1);
        });
    }

    #[test]
    fn expired_credentials_are_an_error_and_a_failure_is_not_kept() {
        run(async {
            let (renewed, _) = counted(|n| match n {
                1 => Ok(Some(SystemTime::now() - Duration::from_secs(1))),
                2 => Err(failure()),
                _ => Ok(None),
            });
            let message = renewed.get().await.unwrap_err().to_string();
            assert!(message.contains("expired already"), "{message}");
            let error = renewed.get_credential().await.unwrap_err();
            assert!(matches!(error, object_store::Error::Unauthenticated { .. }));
            assert_eq!(*renewed.get().await.unwrap(), 3);
        });
    }

    #[test]
    fn callers_at_the_same_time_share_one_fetch_and_its_failure() {
        for is_failing in [false, true] {
            run(async {
                let (send, receive) = std::sync::mpsc::channel::<()>();
                let receive = std::sync::Mutex::new(receive);
                let (renewed, count) = counted(move |_| {
                    receive.lock().unwrap().recv().unwrap();
                    if is_failing { Err(failure()) } else { Ok(None) }
                });
                let callers: Vec<_> = (0..20)
                    .map(|_| {
                        let renewed = Arc::clone(&renewed);
                        tokio::spawn(async move { renewed.get().await.is_err() })
                    })
                    .collect();
                // All callers wait before the fetch ends.
                tokio::task::yield_now().await;
                send.send(()).unwrap();
                drop(send);
                for caller in callers {
                    assert_eq!(caller.await.unwrap(), is_failing);
                }
                assert_eq!(count.load(Ordering::SeqCst), 1);
            });
        }
    }
}
