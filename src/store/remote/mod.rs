//! Stores in S3, Google Cloud Storage and Azure, and on web servers.
//!
//! ```text
//! RemoteStore   stat, open, fetch, list ──> remembered: is the answer younger than the time to live?
//!                                             └ no: a request
//! client        attempts within the deadline; checks of each answer
//! flow          permits for requests (window: how many), and memory for their answers
//! connection    HTTP, TLS; redirect: which are followed; whole_answer: names and credentials
//! ```
//!
//! Callers wait, on threads of their own. All requests run on one or two threads ([`runtime`]).
//!
//! The version of an object consists of the attributes that the server sends: its length, its time of modification and
//! its `ETag`. An opened object remembers its version, each request for its bytes demands it, and each answer is
//! compared with it, because some servers ignore the demand. So no bytes of two versions are mixed. Answers of the
//! server are trusted for the time to live: an object that was listed a moment ago is opened without a request.
//!
//! A prefix is a common beginning of keys. It has no attributes, and finding it costs a listing.

mod absences;
mod addresses;
mod answer;
mod attempts;
mod attributes;
mod backend;
mod body;
mod check;
mod client;
mod connection;
mod credentials;
mod documents;
mod exchange;
mod failure;
mod fetch;
mod first_bytes;
mod flow;
mod kept;
mod listed_names;
mod listing;
mod methods;
mod object;
mod open;
mod options;
mod pages;
mod patience;
mod proxy;
mod ranges;
mod reads;
mod redirect;
mod remembered;
mod request;
mod runtime;
mod shared;
mod single;
mod stat;
mod statistics;
mod tag;
mod trust;
mod url;
mod web_names;
mod whole_answer;
mod window;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

use futures_util::future::join_all;

use self::backend::Backend;
use self::client::RemoteClient;
pub use self::kept::DiskCacheOptions;
use self::kept::Kept;
use self::listing::RemoteListing;
use self::object::RemoteObject;
use self::open::ANY_READ;
pub use self::options::{DEFAULT_REQUESTS, HeaderOption, PrivateAddresses, RemoteOptions};
use self::remembered::{Known, Remembered};
use self::runtime::Runtime;
use self::shared::Shared;
pub use self::statistics::RemoteStatistics;
use self::tag::Pinned;
pub(super) use self::tag::tag_number;
pub use self::url::{RemoteUrl, Service};
use super::{
    AnswerTimes, Cursor, Detail, FetchBuffer, FetchRequest, Fetched, FirstRead, Key, Listing,
    Object, ObjectMeta, ObjectStart, OpenedPart, Prefix, Profile, Stat, Store, StoreError,
};

/// Bytes that are received in the time of one request, by which reads are planned together.
const REQUEST_BYTES: u64 = 256 << 10;

/// A store on a server.
#[derive(Debug)]
pub struct RemoteStore {
    url: RemoteUrl,
    shared: Arc<Shared>,
    prefix_meta: ObjectMeta,
    most_requests: usize,
    /// The credentials that are used, as a message.
    credentials: String,
    /// Whether the server answers the URL itself with a page.
    is_page: bool,
}

impl RemoteStore {
    /// Prepares the store at `url`. Sends no request.
    ///
    /// # Errors
    /// [`StoreError`] for options that do not fit, and for files that cannot be read.
    pub fn open(url: RemoteUrl, options: &RemoteOptions) -> Result<RemoteStore, StoreError> {
        let runtime = Runtime::start()?;
        let (asked, given) = (url.clone(), options.clone());
        let backend = runtime.wait_for(async move { Backend::new(&asked, &given).await });
        let backend = backend??;
        log::info!("{url}: {}", backend.credentials);
        let is_azure = url.service == Service::Azure;
        let client = RemoteClient::new(&url, options, &backend);
        let disk_cache = options.disk_cache.as_ref();
        let limits = (options.most_requests(), options.absent_403);
        let kept =
            disk_cache.map(|cache| Kept::open(cache, limits, backend.origin, client.last_modified));
        let kept = kept.transpose()?.flatten().map(Arc::new);
        if kept.as_ref().is_some_and(|kept| kept.is_forever()) {
            client.statistics.expect_disk_reads();
        }
        Ok(RemoteStore {
            url,
            shared: Arc::new(Shared {
                runtime: Arc::new(runtime),
                client,
                remembered: Remembered::new(options.time_to_live, kept.is_some()),
                is_immutable: options.time_to_live.is_none(),
                kept,
                absent_403: options.absent_403,
                first_memory: Arc::default(),
                hides_absence: AtomicBool::new(false),
                // Azure knows no ranges from the end.
                lacks_suffixes: AtomicBool::new(is_azure),
            }),
            prefix_meta: listing::attributes_of_prefixes(),
            most_requests: options.most_requests(),
            credentials: backend.credentials,
            is_page: false,
        })
    }

    /// Notes that the server answers the URL itself with a page.
    pub(in crate::store) fn note_page(&mut self) {
        self.is_page = true;
    }

    /// The URL, which has no secret.
    pub fn url(&self) -> &RemoteUrl {
        &self.url
    }

    fn object(&self, key: &Key, pinned: Pinned) -> Arc<dyn Object> {
        let shared = Arc::clone(&self.shared);
        Arc::new(RemoteObject::new(shared, key.clone(), pinned))
    }
}

impl Store for RemoteStore {
    fn is_page(&self) -> bool {
        self.is_page
    }

    fn stat(&self, key: &Key) -> Result<Option<Stat>, StoreError> {
        let mut found = self.stat_many(std::slice::from_ref(key));
        found.pop().unwrap_or(Ok(None))
    }

    fn stat_many(&self, keys: &[Key]) -> Vec<Result<Option<Stat>, StoreError>> {
        let prefix_meta = self.prefix_meta;
        self.shared.each(keys, |asked| {
            let shared = Arc::clone(&self.shared);
            self.shared.runtime.wait_for(async move {
                let each = asked.iter().map(|key| shared.stat(key, prefix_meta));
                join_all(each).await
            })
        })
    }

    fn stat_objects(&self, keys: &[Key]) -> Vec<Result<Option<ObjectMeta>, StoreError>> {
        self.shared.recall_all(keys);
        let known: Option<Vec<_>> = keys
            .iter()
            .map(|key| self.shared.remembered.get(key))
            .collect();
        if let Some(known) = known {
            let meta = |known: Known| Ok(known.0.map(|found| found.meta));
            return known.into_iter().map(meta).collect();
        }
        self.shared.each(keys, |asked| {
            let (shared, first) = (Arc::clone(&self.shared), asked.first().cloned());
            let all = async move {
                let each = asked.iter().map(async |key| {
                    let found = match shared.remembered.get(key) {
                        Some(known) => known.0,
                        None => shared.head(key).await?,
                    };
                    Ok(found.map(|found| found.meta))
                });
                join_all(each).await
            };
            match first {
                Some(first) => self.shared.runtime.wait_while_wanted(&first, all),
                None => Ok(Vec::new()),
            }
        })
    }

    fn stat_root(&self) -> Result<ObjectMeta, StoreError> {
        Ok(self.prefix_meta)
    }

    fn open(&self, key: &Key) -> Result<Option<Arc<dyn Object>>, StoreError> {
        self.shared.open(key, ANY_READ)
    }

    fn open_reading(
        &self,
        key: &Key,
        first: FirstRead,
    ) -> Result<Option<Arc<dyn Object>>, StoreError> {
        self.shared.open(key, first)
    }

    fn open_part(&self, key: &Key, part: &Range<u64>) -> Result<Option<OpenedPart>, StoreError> {
        self.shared.open_part(key, part)
    }

    fn told_since(&self) -> Option<SystemTime> {
        self.shared.remembered.trust().since()
    }

    fn ask_again_for(&self, keys: &[Key]) {
        for key in keys {
            self.shared.remembered.doubt(key);
            self.shared.doubt_kept(key);
        }
    }

    fn known_object(&self, key: &Key) -> Option<Option<ObjectMeta>> {
        self.shared.recall(key);
        let known = self.shared.remembered.get(key)?;
        Some(known.0.map(|found| found.meta))
    }

    fn told_at(&self, key: &Key) -> Option<AnswerTimes> {
        Some(self.shared.remembered.told_at(key))
    }

    fn fetch(
        &self,
        key: &Key,
        most_bytes: u64,
        buffer: &mut dyn FetchBuffer,
    ) -> Result<Option<Fetched>, StoreError> {
        self.fetch_object(key, most_bytes, buffer)
    }

    fn fetch_many(
        &self,
        requests: &mut [FetchRequest<'_>],
    ) -> Vec<Result<Option<Fetched>, StoreError>> {
        self.fetch_objects(requests)
    }

    fn fetches_at_once(&self) -> bool {
        true
    }

    fn starts_of(&self, keys: &[Key], most_bytes: u64) -> Vec<Result<ObjectStart, StoreError>> {
        let mut starts = Vec::with_capacity(keys.len());
        // All answers of a group are in memory at the same time.
        let group = self.shared.client.flow.answer_bytes() / most_bytes.max(1);
        let group = usize::try_from(group).unwrap_or(usize::MAX).max(1);
        for group in keys.chunks(group) {
            starts.extend(self.shared.each(group, |keys| {
                let asked: Vec<_> = keys
                    .iter()
                    .map(|key| (key.clone(), self.shared.kept_start(key, most_bytes)))
                    .collect();
                let shared = Arc::clone(&self.shared);
                let answers = async move {
                    let each = asked.into_iter().map(async |(key, kept)| match kept {
                        Some(start) => Ok(Some(start)),
                        None => shared.start_of(&key, most_bytes).await,
                    });
                    join_all(each).await
                };
                let found = self.shared.runtime.wait_for(answers)?;
                for (key, start) in keys.iter().zip(&found) {
                    self.shared.keep_start(key, start);
                }
                Ok(found)
            }));
        }
        starts
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
        if let Some(kept) = &self.shared.kept {
            shown.extend(kept.statistics());
        }
        shown
    }

    fn reads_from_disk(&self) -> bool {
        self.shared.client.statistics.reads_from_disk()
    }

    fn useful_in_flight(&self) -> usize {
        self.shared.client.flow.limit()
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
