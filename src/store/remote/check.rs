//! The first requests to a server: whether it can be asked at all, and whether it tells absence.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::Ordering;
use std::time::Instant;

use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::join;

use super::RemoteStore;
use super::documents::ROOT_DOCUMENTS;
use super::failure::Failure;
use super::shared::Shared;
use crate::store::{Key, StoreError};

/// Documents of the root that are longer than this are read when they are needed.
const MOST_BYTES: u64 = 1 << 20;

impl RemoteStore {
    /// Asks for the documents of the root, and for a name that cannot exist, all at once. The
    /// documents are kept until they are needed.
    ///
    /// # Errors
    /// [`StoreError`] when the server cannot be reached, denies access, or answers with an object
    /// for the name that cannot exist, so that absence cannot be told.
    pub(in crate::store) fn check(&self) -> Result<(), StoreError> {
        let shared = std::sync::Arc::clone(&self.shared);
        let (is_any, nothing) = self.shared.runtime.wait_for(async move {
            let documents = ROOT_DOCUMENTS.iter().map(|name| shared.read_early(name));
            let (found, nothing) = join!(join_all(documents), shared.ask_for_nothing());
            (found.into_iter().any(|found| found), nothing)
        })?;
        let url = &self.url;
        match nothing {
            Ok(()) => Err(StoreError::problem(
                url,
                "the server answers every request with an object, such as a page for logging in, so \
                 that the absence of chunks cannot be told",
            )),
            Err(Failure::Denied(_)) if is_any => {
                self.shared.hides_absence.store(true, Ordering::Relaxed);
                if !self.shared.absent_403 {
                    log::warn!(
                        "{url}: the server answers 403 for names that do not exist; chunks that it \
                         denies are errors, unless --absent-403 takes them for absent ones"
                    );
                }
                Ok(())
            }
            Err(Failure::Denied(reason) | Failure::Unauthorized(reason)) => {
                Err(StoreError::Denied {
                    key: url.to_string(),
                    reason: if self.credentials.is_empty() {
                        reason
                    } else {
                        format!("{reason}; {}", self.credentials)
                    },
                })
            }
            Err(Failure::Unusable(problem)) => Err(StoreError::problem(url, problem)),
            Err(Failure::Transient(transient)) => Err(StoreError::problem(url, transient.problem)),
            Err(
                Failure::Absent
                | Failure::Directory
                | Failure::Changed
                | Failure::Unchanged
                | Failure::NotPartial
                | Failure::BeyondEnd,
            ) => Ok(()),
        }
    }
}

impl Shared {
    /// Reads a document of the root before anyone asks for it; whether there is one.
    async fn read_early(&self, name: &[u8]) -> bool {
        let Ok(key) = Key::parse(name) else {
            return false;
        };
        let begun = Instant::now();
        match self.client.get_whole(&key, MOST_BYTES).await {
            Ok((found, whole)) => {
                self.remembered.put(&key, begun, Some(found.clone()));
                if let Some(body) = whole {
                    let bytes = Bytes::from(body.concat());
                    self.remembered.keep_document(&key, found, bytes);
                }
                true
            }
            Err(Failure::Absent | Failure::Directory) => {
                self.remembered.put(&key, begun, None);
                false
            }
            // Whoever needs the document gets the error.
            Err(_) => false,
        }
    }

    /// Asks for an object whose name nobody knows.
    async fn ask_for_nothing(&self) -> Result<(), Failure> {
        let random = RandomState::new().hash_one(Instant::now());
        let name = format!("zarr-mount-asks-for-what-is-absent-{random:016x}");
        let key = Key::parse(name.as_bytes()).map_err(|_| Failure::Absent)?;
        // Unlike a request for attributes alone, this gets an answer that says what is wrong.
        self.client.get_whole(&key, 0).await.map(drop)
    }
}
