//! The authorization of requests. If the server refuses credentials that were fetched, they are fetched
//! anew, once for all requests that had them.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use object_store::CredentialProvider;
use parking_lot::Mutex;
use tokio::time::timeout;

use crate::store::remote::credentials::credential_error::CredentialError;
use crate::store::remote::credentials::static_credentials::CredentialFuture;

/// Credentials that no server has accepted are used for at least this long before others are
/// fetched, so that a server that refuses all credentials does not cause a fetch for each request.
const PAUSE: Duration = Duration::from_secs(10);

/// While the last credentials can be used, others are waited for no longer than this.
const PATIENCE: Duration = Duration::from_secs(5);

/// The authorization of requests.
#[derive(Debug, Clone)]
pub(crate) enum Access {
    /// Without credentials.
    Anonymous,
    /// By credentials that stay the same.
    Fixed,
    /// By credentials that the client library fetches, and keeps until they expire. The caller
    /// wraps them in [`Reissued`].
    Library,
    /// By credentials that are fetched anew when these refusals say so.
    Renewed(Arc<Refusals>),
}

impl Access {
    /// Whether requests have credentials, which may expire.
    pub(crate) fn is_signed(&self) -> bool {
        !matches!(self, Access::Anonymous)
    }
}

/// The refusals of credentials by the server. Credentials are numbered from 1, in the order in which
/// they are fetched.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Mutex<Numbers>);

#[derive(Debug, Default)]
struct Numbers {
    issued: u64,
    issued_at: Option<Instant>,
    accepted: u64,
    refused: u64,
}

impl Refusals {
    /// The number of the credentials for a request that begins now.
    pub(crate) fn current(&self) -> u64 {
        let numbers = self.0.lock();
        numbers.issued.max(numbers.refused + 1)
    }

    /// Notes that a server has accepted the credentials `number`.
    pub(crate) fn accept(&self, number: u64) {
        let mut numbers = self.0.lock();
        numbers.accepted = numbers.accepted.max(number);
    }

    /// Notes that a server has refused the credentials `number`. Returns whether others can be
    /// fetched.
    pub(crate) fn refuse(&self, number: u64) -> bool {
        let mut numbers = self.0.lock();
        if number > numbers.refused {
            let is_new = numbers.accepted < number
                && numbers.issued_at.is_some_and(|at| at.elapsed() < PAUSE);
            if is_new {
                return false;
            }
            numbers.refused = number;
        }
        true
    }

    /// Notes that credentials are fetched, and gives them a number.
    pub(crate) fn issue(&self) -> u64 {
        let mut numbers = self.0.lock();
        numbers.issued += 1;
        numbers.issued_at = Some(Instant::now());
        numbers.issued
    }

    /// Whether the credentials `number` must not be used any more.
    pub(crate) fn is_refused(&self, number: u64) -> bool {
        number <= self.0.lock().refused
    }
}

/// A provider of credentials.
type Shared<T> = Arc<dyn CredentialProvider<Credential = T>>;

/// Credentials of the client library, whose provider is made anew when a server has refused the
/// credentials that it gave. The library fetches credentials anew some minutes before they expire. If that fails, the
/// last ones are used until a server refuses them.
pub(crate) struct Reissued<T> {
    make: Box<dyn Fn() -> object_store::Result<Shared<T>> + Send + Sync>,
    held: Mutex<Option<Held<T>>>,
    refusals: Arc<Refusals>,
}

/// A provider, and the credentials that it gave.
struct Held<T> {
    /// The number of the credentials, by which they are refused.
    number: u64,
    provider: Shared<T>,
    last: Option<Arc<T>>,
    /// The provider is not asked before this time, because it failed.
    pause_until: Option<Instant>,
}

impl<T> Clone for Held<T> {
    fn clone(&self) -> Held<T> {
        Held {
            number: self.number,
            provider: Arc::clone(&self.provider),
            last: self.last.clone(),
            pause_until: self.pause_until,
        }
    }
}

impl<T> Reissued<T> {
    /// Credentials of the providers that `make` gives.
    pub(crate) fn new(
        make: impl Fn() -> object_store::Result<Shared<T>> + Send + Sync + 'static,
    ) -> Reissued<T> {
        Reissued {
            make: Box::new(make),
            held: Mutex::new(None),
            refusals: Arc::default(),
        }
    }

    /// The authorization of requests with these credentials.
    pub(crate) fn access(&self) -> Access {
        Access::Renewed(Arc::clone(&self.refusals))
    }

    fn held(&self) -> object_store::Result<Held<T>> {
        let mut held = self.held.lock();
        if let Some(held) = &*held
            && !self.refusals.is_refused(held.number)
        {
            return Ok(held.clone());
        }
        let made = Held {
            provider: (self.make)()?,
            number: self.refusals.issue(),
            last: None,
            pause_until: None,
        };
        *held = Some(made.clone());
        Ok(made)
    }

    /// Notes what the provider of `used` has given, and returns the credentials to use.
    fn note(
        &self,
        used: &Held<T>,
        fetched: object_store::Result<Arc<T>>,
    ) -> object_store::Result<Arc<T>> {
        let is_last = |found: &Arc<T>| {
            used.last
                .as_ref()
                .is_some_and(|last| Arc::ptr_eq(last, found))
        };
        let (found, pause_until) = match (fetched, used.last.clone()) {
            (Ok(found), _) if is_last(&found) => return Ok(found),
            (Ok(found), _) => (found, None),
            (Err(failure), None) => return Err(failure),
            (Err(_), Some(last)) => {
                log::warn!(
                    "credentials cannot be renewed; the last ones are used until they expire"
                );
                (last, Instant::now().checked_add(PAUSE))
            }
        };
        if let Some(held) = &mut *self.held.lock()
            && held.number == used.number
        {
            held.last = Some(Arc::clone(&found));
            held.pause_until = pause_until;
        }
        Ok(found)
    }
}

impl<T> fmt::Debug for Reissued<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reissued")
    }
}

impl<T: fmt::Debug + Send + Sync + 'static> CredentialProvider for Reissued<T> {
    type Credential = T;

    fn get_credential<'s, 'f>(&'s self) -> CredentialFuture<'f, T>
    where
        's: 'f,
        Self: 'f,
    {
        Box::pin(async {
            let used = self.held()?;
            if let (Some(last), Some(until)) = (&used.last, used.pause_until)
                && Instant::now() < until
            {
                return Ok(Arc::clone(last));
            }
            // `object_store` panics if the answer has characters that cannot stand in a header.
            let fetched = AssertUnwindSafe(used.provider.get_credential()).catch_unwind();
            let fetched = fetched.map(|fetched| {
                let problem = "the server that gives them answers with characters that none has";
                fetched.unwrap_or_else(|_| Err(not_given(problem)))
            });
            let fetched = if used.last.is_some() {
                let problem = "the server that gives them does not answer";
                let fetched = timeout(PATIENCE, fetched).await;
                fetched.unwrap_or_else(|_| Err(not_given(problem)))
            } else {
                fetched.await
            };
            self.note(&used, fetched)
        })
    }
}

fn not_given(problem: &str) -> object_store::Error {
    object_store::Error::Unauthenticated {
        path: String::new(),
        source: Box::new(CredentialError::setting("credentials", problem)),
    }
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Builder;

    use super::*;
    use crate::store::remote::credentials::static_credentials::StaticCredentials;

    /// A provider whose fetches give these credentials one after the other, and fail for 0.
    #[derive(Debug)]
    struct InTurn(Mutex<Vec<i32>>);

    #[async_trait::async_trait]
    impl CredentialProvider for InTurn {
        type Credential = i32;

        async fn get_credential(&self) -> object_store::Result<Arc<i32>> {
            match self.0.lock().remove(0) {
                0 => Err(object_store::Error::NotImplemented {
                    operation: String::new(),
                    implementer: String::new(),
                }),
                number => Ok(Arc::new(number)),
            }
        }
    }

    #[test]
    fn the_last_credentials_are_used_while_others_cannot_be_fetched() {
        let provider = Reissued::new(|| Ok(Arc::new(InTurn(Mutex::new(vec![1, 0, 0, 2, 0]))) as _));
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        let get = || runtime.block_on(provider.get_credential()).ok();
        let end_pause = || provider.held.lock().as_mut().unwrap().pause_until = None;
        assert_eq!((get().as_deref(), get().as_deref()), (Some(&1), Some(&1)));
        assert_eq!(get().as_deref(), Some(&1), "within the pause");
        for expected in [1, 2] {
            end_pause();
            assert_eq!(get().as_deref(), Some(&expected));
        }
        let refusals = Arc::clone(&provider.refusals);
        let number = refusals.current();
        refusals.accept(number);
        assert!(refusals.refuse(number));
        assert_eq!(get().as_deref(), Some(&1), "of a new provider");
    }

    #[test]
    fn refused_credentials_are_fetched_anew_once_for_all_requests() {
        let fetches = Arc::new(Mutex::new(0));
        let counted = Arc::clone(&fetches);
        let provider = Reissued::new(move || {
            let mut fetches = counted.lock();
            *fetches += 1;
            Ok(Arc::new(StaticCredentials::new(*fetches)) as Shared<i32>)
        });
        let refusals = Arc::clone(&provider.refusals);
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        let get = || *runtime.block_on(provider.get_credential()).unwrap();
        // Two requests begin before there are any credentials.
        let (first, second) = (refusals.current(), refusals.current());
        assert_eq!((get(), get()), (1, 1));
        refusals.accept(first);
        assert!(refusals.refuse(first));
        assert_eq!(get(), 2);
        assert!(refusals.refuse(second), "others are there already");
        assert_eq!(get(), 2);
        assert!(!refusals.refuse(refusals.current()), "these are new");
        assert_eq!(get(), 2);
    }
}
