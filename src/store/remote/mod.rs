//! Stores in S3, Google Cloud Storage and Azure, and on web servers.
//!
//! ```text
//! RemoteStore   stat, open, fetch, list ──> remembered: told no longer ago than the time to live?
//!                                             └ no: a request
//! client        attempts within the deadline; checks of each answer
//! flow          permits for requests, and memory for their answers
//! connection    HTTP, TLS, redirects
//! ```
//!
//! Callers wait, on threads of their own; all requests are under way on one or two threads
//! ([`runtime`]).
//!
//! A version is what the server tells of an object: its length, its time of modification and its
//! `ETag`. An opened object remembers its version, each request for its bytes demands it, and each
//! answer is compared with it, because servers exist that ignore the demand. So no bytes of two
//! versions are mixed. What the server told is trusted for the time to live: an object that was
//! listed a moment ago is opened without a request.
//!
//! A prefix is what keys have in common. It has no attributes, and costs a listing to find.

mod backend;
mod check;
mod client;
mod connection;
mod documents;
mod exchange;
mod failure;
mod flow;
mod listing;
mod object;
mod options;
mod ranges;
mod remembered;
mod runtime;
mod shared;
mod statistics;
mod tag;
mod url;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::join;

use self::backend::Backend;
use self::client::{ClientParts, RemoteClient, WholeObject};
use self::failure::Failure;
use self::flow::Flow;
use self::listing::RemoteListing;
use self::object::RemoteObject;
pub use self::options::{DEFAULT_REQUESTS, HeaderOption, RemoteOptions};
use self::remembered::{Known, Remembered};
use self::runtime::Runtime;
use self::shared::Shared;
pub use self::statistics::RemoteStatistics;
use self::tag::Pinned;
pub use self::url::{RemoteUrl, Service};
use super::{
    Cursor, Detail, FetchBuffer, Fetched, Key, Listing, Object, ObjectMeta, Prefix, Profile, Stat,
    StatKind, Store, StoreError,
};

/// Bytes that are received in the time of one request, for plans of what is read together.
const REQUEST_BYTES: u64 = 256 << 10;

/// A caller that reads objects of at most this many bytes expects about so many.
const MOST_KNOWN_BYTES: u64 = 16 << 20;

/// Bytes of an object whose length is not known, for which memory is reserved before it is
/// requested. A longer one takes further requests.
const UNKNOWN_BYTES: u64 = 1 << 20;

/// A store on a server.
#[derive(Debug)]
pub struct RemoteStore {
    url: RemoteUrl,
    shared: Arc<Shared>,
    prefix_meta: ObjectMeta,
    most_requests: usize,
    /// Which credentials are used, as a message.
    credentials: String,
    /// Whether names can be listed page by page.
    lists_pages: bool,
}

impl RemoteStore {
    /// Prepares the store at `url`. Sends no request.
    ///
    /// # Errors
    /// [`StoreError`] for options that do not fit, and for files that cannot be read.
    pub fn open(url: RemoteUrl, options: &RemoteOptions) -> Result<RemoteStore, StoreError> {
        let Backend {
            store,
            pages,
            path,
            credentials,
        } = Backend::new(&url, options)?;
        log::info!("{url}: {credentials}");
        let lists_pages = pages.is_some();
        let client = RemoteClient::new(ClientParts {
            store,
            pages,
            path,
            flow: Flow::new(options.requests, options.budget_bytes),
            deadline: options.timeout,
            most_whole_bytes: options.most_whole_bytes,
        });
        Ok(RemoteStore {
            url,
            shared: Arc::new(Shared {
                runtime: Arc::new(Runtime::start()?),
                client,
                remembered: Remembered::new(options.time_to_live),
                is_immutable: options.time_to_live.is_none(),
                absent_403: options.absent_403,
                hides_absence: AtomicBool::new(false),
            }),
            prefix_meta: listing::attributes_of_prefixes(),
            most_requests: options.requests,
            credentials,
            lists_pages,
        })
    }

    /// The URL, which has no secret.
    pub fn url(&self) -> &RemoteUrl {
        &self.url
    }

    fn object(&self, key: &Key, pinned: Pinned) -> Arc<dyn Object> {
        let shared = Arc::clone(&self.shared);
        Arc::new(RemoteObject::new(shared, key.clone(), pinned))
    }

    /// Copies an answer of `pinned` into the buffer of a caller.
    fn fetched(
        &self,
        key: &Key,
        pinned: Pinned,
        parts: &[Bytes],
        buffer: &mut dyn FetchBuffer,
    ) -> Fetched {
        let mut is_read = false;
        if let Some(mut buf) = buffer.of_len(pinned.meta.size()) {
            for part in parts {
                let Some((filled, rest)) = buf.split_at_mut_checked(part.len()) else {
                    break;
                };
                filled.copy_from_slice(part);
                buf = rest;
            }
            is_read = true;
        }
        Fetched {
            object: self.object(key, pinned),
            is_read,
        }
    }
}

impl Shared {
    /// Whether a key is an object, or a prefix of others.
    async fn stat(
        &self,
        key: &Key,
        prefix_meta: ObjectMeta,
        lists_pages: bool,
    ) -> Result<Option<Stat>, StoreError> {
        let prefix = key.to_prefix();
        let remembered = self.remembered.get(key);
        let object = async {
            match remembered {
                Some(known) => Ok((known.0, false)),
                None => self.head_or_directory(key).await,
            }
        };
        let below = async {
            if self.remembered.has_prefix(&prefix) {
                return Ok(true);
            }
            if !lists_pages {
                return Ok(false);
            }
            self.has_names(&prefix).await
        };
        let (object, below) = join!(object, below);
        let (object, is_directory) = object?;
        let below = (below? || is_directory).then_some(prefix_meta);
        Ok(match (object, below) {
            (Some(object), below) => Some(Stat {
                kind: StatKind::Object,
                meta: object.meta,
                below,
            }),
            (None, Some(meta)) => Some(Stat::of_prefix(meta)),
            (None, None) => None,
        })
    }

    /// Whether some key begins with `prefix`. Where listing is denied, only what is remembered
    /// tells.
    async fn has_names(&self, prefix: &Prefix) -> Result<bool, StoreError> {
        let Some(start) = self.client.start_of(prefix) else {
            return Ok(false);
        };
        let begun = Instant::now();
        let has = match self.client.page(&start, None, None, Some(1)).await {
            Ok(page) => !page.names.objects.is_empty() || !page.names.common_prefixes.is_empty(),
            Err(Failure::Absent | Failure::Denied(_) | Failure::Unusable(_)) => false,
            Err(failure) => {
                let key = prefix.to_key();
                let key = key.as_ref().map_or_else(String::new, Key::to_string);
                return Err(StoreError::problem(key, format!("{failure:?}")));
            }
        };
        if has {
            self.remembered.put_prefix(prefix, begun);
        }
        Ok(has)
    }

    /// Reads an object of at most `most_bytes`; a longer one is only examined.
    async fn fetch(
        &self,
        key: &Key,
        most_bytes: u64,
    ) -> Result<Option<(Pinned, Option<WholeObject>)>, StoreError> {
        let begun = Instant::now();
        // A caller that takes very much does not know how long the object is.
        let most_bytes = if most_bytes > MOST_KNOWN_BYTES {
            UNKNOWN_BYTES
        } else {
            most_bytes
        };
        let read = self.client.get_whole(key, most_bytes);
        let found = self.found(key, read.await)?;
        let pinned = found.as_ref().map(|(pinned, _)| pinned.clone());
        self.remembered.put(key, begun, pinned);
        Ok(found)
    }
}

impl Store for RemoteStore {
    fn stat(&self, key: &Key) -> Result<Option<Stat>, StoreError> {
        let mut found = self.stat_many(std::slice::from_ref(key));
        found.pop().unwrap_or(Ok(None))
    }

    fn stat_many(&self, keys: &[Key]) -> Vec<Result<Option<Stat>, StoreError>> {
        let (shared, asked) = (Arc::clone(&self.shared), keys.to_vec());
        let (prefix_meta, lists_pages) = (self.prefix_meta, self.lists_pages);
        let all = self.shared.runtime.wait_for(async move {
            let each = asked
                .iter()
                .map(|key| shared.stat(key, prefix_meta, lists_pages));
            join_all(each).await
        });
        all.unwrap_or_else(|error| keys.iter().map(|_| Err(error.clone())).collect())
    }

    fn stat_objects(&self, keys: &[Key]) -> Vec<Result<Option<ObjectMeta>, StoreError>> {
        let known: Option<Vec<_>> = keys
            .iter()
            .map(|key| self.shared.remembered.get(key))
            .collect();
        if let Some(known) = known {
            let meta = |known: Known| Ok(known.0.map(|found| found.meta));
            return known.into_iter().map(meta).collect();
        }
        let (shared, asked) = (Arc::clone(&self.shared), keys.to_vec());
        let all = self.shared.runtime.wait_for(async move {
            let each = asked.iter().map(async |key| {
                let found = match shared.remembered.get(key) {
                    Some(known) => known.0,
                    None => shared.head(key).await?,
                };
                Ok(found.map(|found| found.meta))
            });
            join_all(each).await
        });
        all.unwrap_or_else(|error| keys.iter().map(|_| Err(error.clone())).collect())
    }

    fn stat_root(&self) -> Result<ObjectMeta, StoreError> {
        Ok(self.prefix_meta)
    }

    fn open(&self, key: &Key) -> Result<Option<Arc<dyn Object>>, StoreError> {
        let found = self.shared.stat_object(key)?;
        Ok(found.map(|found| self.object(key, found)))
    }

    fn fetch(
        &self,
        key: &Key,
        most_bytes: u64,
        buffer: &mut dyn FetchBuffer,
    ) -> Result<Option<Fetched>, StoreError> {
        if let Some((pinned, bytes)) = self.shared.remembered.take_bytes(key) {
            return Ok(Some(self.fetched(key, pinned, &[bytes], buffer)));
        }
        match self.shared.remembered.get(key) {
            Some(Known(None)) => return Ok(None),
            // A long object is read in parts.
            Some(Known(Some(pinned))) if pinned.meta.size() > most_bytes => {
                let object = self.object(key, pinned);
                return Fetched::of_object(object, most_bytes, buffer).map(Some);
            }
            _ => {}
        }
        let (shared, asked) = (Arc::clone(&self.shared), key.clone());
        let fetch = async move { shared.fetch(&asked, most_bytes).await };
        let Some((pinned, answer)) = self.shared.runtime.wait_for(fetch)?? else {
            return Ok(None);
        };
        if let Some(whole) = answer {
            return Ok(Some(self.fetched(key, pinned, &whole.body, buffer)));
        }
        let object = self.object(key, pinned);
        Fetched::of_object(object, most_bytes, buffer).map(Some)
    }

    fn list(
        &self,
        prefix: &Prefix,
        after: Cursor,
        detail: Detail,
    ) -> Result<Option<Box<dyn Listing>>, StoreError> {
        let listing = RemoteListing::begin(&self.shared, prefix, after, detail, self.prefix_meta)?;
        Ok(listing.map(|listing| Box::new(listing) as Box<dyn Listing>))
    }

    fn statistics(&self) -> Vec<(&'static str, u64)> {
        let client = &self.shared.client;
        let (in_flight, bytes_in_flight) = client.flow.in_flight();
        let mut shown = client.statistics.shown();
        shown.extend([
            ("in_flight", in_flight as u64),
            ("in_flight_bytes", bytes_in_flight),
            ("in_flight_limit", client.flow.limit() as u64),
        ]);
        shown
    }

    fn profile(&self) -> Profile {
        Profile {
            is_local: false,
            most_in_flight: self.most_requests,
            request_bytes: REQUEST_BYTES,
            has_directories: false,
        }
    }
}
