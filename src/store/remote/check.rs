//! The first requests to a server. They find out whether it answers at all, whether it reports
//! absence, and whether the URL names a store or one object.

use std::hash::{BuildHasher, RandomState};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures_util::future::{Either, join_all, select};
use futures_util::join;
use tokio::time::timeout;

use super::RemoteStore;
use super::body::joined;
use super::documents::ROOT_DOCUMENTS;
use super::failure::Failure;
use super::remembered::Known;
use super::shared::Shared;
use super::single::SingleObject;
use super::url::Service;
use crate::notice::TOLD;
use crate::store::{Key, Prefix, StoreError};

/// The user gets a message after this time without an answer.
const SILENCE: Duration = Duration::from_millis(2500);

/// Documents of the root that are longer than this are read when they are needed.
const MOST_BYTES: u64 = 1 << 20;

/// The answers to the first requests.
#[derive(Debug)]
pub(in crate::store) struct FirstAnswers {
    /// Whether there is a document at the root.
    has_documents: bool,
    /// The reason why a document could not be read.
    failed: Option<Failure>,
    /// The answer to a request for a name that cannot exist.
    nothing: Result<(), Failure>,
    /// The object at the URL itself, unless there are documents below it.
    pub(in crate::store) single: Option<SingleObject>,
    /// The reason why it cannot be told what is at the URL itself, in a bucket.
    unread: Option<Failure>,
    /// Whether the server redirects from the URL itself to that of a directory.
    pub(in crate::store) is_directory: bool,
}

impl RemoteStore {
    /// Requests the documents of the root, a name that cannot exist, and the object at the URL
    /// itself, all at once. The documents are kept until they are needed.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be found out whether the URL names one object.
    pub(in crate::store) fn ask_first(&self) -> Result<FirstAnswers, StoreError> {
        let shared = Arc::clone(&self.shared);
        let itself = self.of_url_itself();
        let asked = itself
            .as_ref()
            .map(|(store, key)| (Arc::clone(&store.shared), key.clone()));
        let (url, told) = (self.url.clone(), Arc::clone(&self.shared));
        let documents: Vec<Key> = ROOT_DOCUMENTS
            .iter()
            .filter_map(|name| Key::parse(name).ok())
            .collect();
        let mut keys: Vec<(&Shared, &Key)> = documents.iter().map(|key| (&*shared, key)).collect();
        if let Some((shared, key)) = &asked {
            keys.push((shared, key));
        }
        // If several daemons begin at the same time, the first one requests all of these objects.
        let _request = self.shared.begin_all(&keys);
        let kept_nothing = self.shared.kept_nothing();
        let is_nothing_kept = kept_nothing.is_some();
        let begun = Instant::now();
        let ask = async move {
            let early = ROOT_DOCUMENTS.iter().map(|name| shared.read_early(name));
            let below = pin!(async {
                let nothing = async {
                    match kept_nothing {
                        Some(kept) => kept,
                        None => shared.ask_for_nothing().await,
                    }
                };
                let (found, nothing) = join!(join_all(early), nothing);
                let has_documents = found.iter().any(|found| matches!(found, Ok(true)));
                let failed = found.into_iter().find_map(Result::err);
                (has_documents, failed, nothing)
            });
            let single = pin!(async {
                match asked {
                    Some((shared, key)) => Some(shared.open_single(&key).await),
                    None => None,
                }
            });
            match select(below, single).await {
                // If the store has documents, the object at the URL itself is not waited for. But the
                // documents prove nothing if the server has an object for a name that cannot exist.
                Either::Left((below @ (true, _, Err(_)), _)) => (below, None),
                Either::Left((below, single)) => (below, single.await),
                Either::Right((single, below)) => (below.await, single),
            }
        };
        let (below, single) = self.shared.runtime.wait_for(async move {
            let mut ask = pin!(ask);
            if let Ok(answers) = timeout(SILENCE, &mut ask).await {
                return answers;
            }
            if !told.client.has_told_of_failures() {
                log::warn!(target: TOLD, "{url}: the server has not answered yet; the mount waits until --timeout");
            }
            ask.await
        })?;
        let (has_documents, failed, nothing) = below;
        self.shared.save_all(&documents);
        // Without another answer, a denial may be one of these credentials alone.
        let is_admitted = has_documents || matches!(single, Some(Ok(_)));
        if !is_nothing_kept && (is_admitted || !matches!(nothing, Err(Failure::Denied(_)))) {
            self.shared.keep_nothing(begun, &nothing);
        }
        if let Some((store, key)) = &itself {
            store.shared.save(key);
            if let Some(Ok((pinned, Some(tail)))) = &single {
                let start = pinned.meta.size().saturating_sub(tail.len() as u64);
                let tail = std::slice::from_ref(tail);
                store.shared.keep_range(key, pinned, start, tail);
            }
        }
        let is_store = has_documents && nothing.is_err();
        let is_directory = matches!(&single, Some(Err(Failure::Directory)));
        let mut unread = None;
        let single = match single.filter(|_| !is_store) {
            Some(Ok(found)) => itself.map(|(store, key)| store.single(key, found)),
            Some(Err(Failure::Transient(transient))) => {
                return Err(StoreError::problem(&self.url, transient.problem));
            }
            // There is nothing at the URL.
            Some(Err(Failure::Absent | Failure::Directory)) | None => None,
            Some(Err(failure)) => {
                // A web server may answer a request for a directory with any failure.
                unread = (self.url.service != Service::Http).then_some(failure);
                None
            }
        };
        Ok(FirstAnswers {
            has_documents,
            failed,
            nothing,
            single,
            unread,
            is_directory,
        })
    }

    /// Whether the server lists names below the URL. `false` if it cannot list names.
    ///
    /// # Errors
    /// [`StoreError`] when the server does not answer.
    pub(in crate::store) fn has_names(&self) -> Result<bool, StoreError> {
        if !self.shared.client.lists_pages() {
            return Ok(false);
        }
        let shared = Arc::clone(&self.shared);
        let root = Prefix::root();
        self.shared
            .runtime
            .wait_for(async move { shared.has_names(&root).await })?
    }

    /// Checks that the URL can be used as a store, by the `first` answers.
    ///
    /// # Errors
    /// [`StoreError`] when the server cannot be reached, denies access, or answers with an object
    /// for the name that cannot exist, so that it does not report absence.
    pub(in crate::store) fn check(&self, first: FirstAnswers) -> Result<(), StoreError> {
        let url = &self.url;
        match first.nothing {
            Ok(()) => Err(StoreError::problem(
                url,
                "the server answers every request with an object, such as a page for logging in, so \
                 that absent chunks cannot be distinguished from stored ones",
            )),
            Err(Failure::Denied(_)) if first.has_documents => {
                self.shared.hides_absence.store(true, Ordering::Relaxed);
                if !self.shared.absent_403 {
                    log::warn!(
                        "{url}: the server answers 403 for names that do not exist; chunks that it \
                         denies are errors, unless --absent-403 takes them for absent ones"
                    );
                }
                Ok(())
            }
            Err(
                Failure::Absent
                | Failure::Directory
                | Failure::Changed
                | Failure::Unchanged
                | Failure::NotPartial
                | Failure::BeyondEnd,
            ) => {
                if let Some(failure) = first.failed.filter(|_| !first.has_documents) {
                    return Err(self.refusal(failure));
                }
                // Users who may read the objects below a prefix alone are denied an object of its name.
                if let Some(failure) = first.unread.filter(|_| !first.has_documents)
                    && !self.has_names()?
                {
                    return Err(self.refusal(failure));
                }
                self.shared.client.says_no_parts();
                Ok(())
            }
            Err(failure) => Err(self.refusal(failure)),
        }
    }

    /// The error for a store that cannot be used. It names the store, and no document of it.
    fn refusal(&self, failure: Failure) -> StoreError {
        let url = &self.url;
        match failure {
            Failure::Denied(reason) | Failure::Unauthorized(reason) => {
                let (credentials, advice) = (&self.credentials, advice(url.service));
                let reason = format!("{reason} (credentials: {credentials}); {advice}");
                StoreError::denied(url, reason)
            }
            Failure::Refused(reason) => {
                let reason = format!("{reason}; give the URL that it leads to if you trust it");
                StoreError::denied(url, reason)
            }
            Failure::Unusable(problem) => StoreError::problem(url, problem),
            Failure::Transient(transient) => StoreError::problem(url, transient.problem),
            Failure::Absent
            | Failure::Directory
            | Failure::Changed
            | Failure::Unchanged
            | Failure::NotPartial
            | Failure::BeyondEnd => {
                StoreError::problem(url, "the server's answers contradict each other")
            }
        }
    }
}

/// Advice on how to give credentials.
fn advice(service: Service) -> &'static str {
    match service {
        Service::S3 => {
            "give others by AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, by --profile, or \
                        --anonymous for a public bucket"
        }
        Service::Gcs => {
            "give others by GOOGLE_APPLICATION_CREDENTIALS, or --anonymous for a public \
                         bucket"
        }
        Service::Azure => {
            "give others by AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_TOKEN, or \
                           --anonymous for a public container"
        }
        Service::Http => "give others by --header 'Authorization: @FILE'",
    }
}

impl Shared {
    /// Reads a document of the root before it is needed. Returns whether there is one.
    async fn read_early(&self, name: &[u8]) -> Result<bool, Failure> {
        let Ok(key) = Key::parse(name) else {
            return Ok(false);
        };
        let begun = Instant::now();
        let known = self.remembered.get(&key);
        let last = self.remembered.last_document(&key);
        match known {
            Some(Known(None)) => return Ok(false),
            Some(Known(Some(_))) if last.is_some() => return Ok(true),
            Some(Known(Some(_))) | None => {}
        }
        let read = if let Some((last, bytes)) = last {
            let changed = self.client.get_changed(&key, &last, MOST_BYTES).await;
            changed.map(|changed| changed.unwrap_or((last, Some(vec![bytes]))))
        } else if self.client.lists_pages() {
            self.client.get_whole(&key, MOST_BYTES).await
        } else {
            self.client.get_whole_as_part(&key, MOST_BYTES).await
        };
        match read {
            Ok((found, whole)) => {
                self.remembered.put(&key, begun, Some(found.clone()));
                if let Some(body) = whole {
                    self.remembered.keep_document(&key, found, joined(&body));
                }
                Ok(true)
            }
            Err(Failure::Absent | Failure::Directory) => {
                self.remembered.put(&key, begun, None);
                Ok(false)
            }
            // If the store can be used without the document, a caller that needs it gets the error.
            Err(failure) => Err(failure),
        }
    }

    /// Requests an object with a random name, which does not exist.
    async fn ask_for_nothing(&self) -> Result<(), Failure> {
        let random = RandomState::new().hash_one(Instant::now());
        let name = format!("zarr-mount-asks-for-what-is-absent-{random:016x}");
        let key = Key::parse(name.as_bytes()).map_err(|_| Failure::Absent)?;
        // Unlike the answer to a request for attributes alone, the answer to this one gives the
        // reason of an error.
        self.client.get_whole(&key, 0).await.map(drop)
    }
}
