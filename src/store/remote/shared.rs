//! What a remote store, its objects and its listings share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::client::RemoteClient;
use super::documents::is_document;
use super::failure::Failure;
use super::remembered::Remembered;
use super::runtime::Runtime;
use super::tag::Pinned;
use super::tail::TailMemory;
use crate::store::{Key, StoreError};

/// What a remote store, its objects and its listings share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) runtime: Arc<Runtime>,
    pub(super) client: RemoteClient,
    pub(super) remembered: Remembered,
    /// Whether nothing in the store changes.
    pub(super) is_immutable: bool,
    pub(super) tails: Arc<TailMemory>,
    /// Whether the server answers 403 for objects that are absent, and this counts as absence
    /// (`--absent-403`).
    pub(super) absent_403: bool,
    /// Whether the server answered 403 for a name that cannot exist.
    pub(super) hides_absence: AtomicBool,
    /// Whether the server cannot send the last bytes of an object whose length is not known.
    pub(super) lacks_suffixes: AtomicBool,
}

impl Shared {
    /// Whether 403 means that there is no object at `key`. Where the server hides absence, documents
    /// that it denies count as absent, because most prefixes have only one of the documents that
    /// are looked for. Chunks do so only with `--absent-403`: a denied chunk would be shown as fill
    /// value.
    fn means_absence(&self, key: &Key) -> bool {
        self.absent_403 || self.hides_absence.load(Ordering::Relaxed) && is_document(key.name())
    }

    /// The current version of the object at `key`, which may be remembered.
    pub(super) fn stat_object(self: &Arc<Self>, key: &Key) -> Result<Option<Pinned>, StoreError> {
        if let Some(known) = self.remembered.get(key) {
            return Ok(known.0);
        }
        let (shared, asked) = (Arc::clone(self), key.clone());
        let head = async move { shared.head(&asked).await };
        self.runtime.wait_for(head)?
    }

    /// Asks the server for the current version of the object at `key`.
    pub(super) async fn head(&self, key: &Key) -> Result<Option<Pinned>, StoreError> {
        let (found, _) = self.head_or_directory(key).await?;
        Ok(found)
    }

    /// As [`Shared::head`], and whether the server says that `key` is a directory.
    pub(super) async fn head_or_directory(
        &self,
        key: &Key,
    ) -> Result<(Option<Pinned>, bool), StoreError> {
        let begun = Instant::now();
        let answered = self.client.head(key).await;
        let is_directory = matches!(answered, Err(Failure::Directory));
        let found = self.found(key, answered)?;
        self.remembered.put(key, begun, found.clone());
        if is_directory {
            self.remembered.put_prefix(&key.to_prefix(), begun);
        }
        Ok((found, is_directory))
    }

    /// The result of a request for the object at `key`, `None` where nothing is there.
    pub(super) fn found<T>(
        &self,
        key: &Key,
        result: Result<T, Failure>,
    ) -> Result<Option<T>, StoreError> {
        match result {
            Ok(found) => Ok(Some(found)),
            Err(Failure::Absent | Failure::Directory) => Ok(None),
            Err(Failure::Denied(_)) if self.means_absence(key) => Ok(None),
            Err(failure) => Err(failure.into_error(key, false)),
        }
    }
}
