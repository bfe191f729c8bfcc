//! Stores in S3, Google Cloud Storage and Azure, and on web servers.
//!
//! ```text
//! RemoteStore   stat, open, fetch, list ──> remembered: is the answer younger than the time to live?
//!                                             └ no: a request
//! client        attempts within the deadline; checks of each answer
//! flow          permits for requests (window: how many), and memory for their answers
//! connection    HTTP, TLS, redirects
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
mod first_bytes;
mod flow;
mod kept;
mod listed_names;
mod listing;
mod methods;
mod object;
mod open;
mod options;
mod patience;
mod proxy;
mod ranges;
mod remembered;
mod request;
mod runtime;
mod shared;
mod single;
mod statistics;
mod tag;
mod trust;
mod url;
mod web_names;
mod window;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Instant, SystemTime};

use futures_util::future::join_all;
use futures_util::join;

use self::backend::Backend;
use self::body::Body;
use self::client::{ClientParts, PageRequest, RemoteClient};
use self::documents::is_no_prefix;
use self::failure::Failure;
use self::flow::Flow;
pub use self::kept::DiskCacheOptions;
use self::kept::Kept;
use self::listing::RemoteListing;
use self::object::RemoteObject;
use self::open::ANY_READ;
pub use self::options::{DEFAULT_REQUESTS, HeaderOption, PrivateAddresses, RemoteOptions};
use self::remembered::{Known, Remembered};
use self::request::Looked;
use self::runtime::Runtime;
use self::shared::Shared;
pub use self::statistics::RemoteStatistics;
pub(super) use self::tag::tag_number;
use self::tag::{LastModified, Pinned};
pub use self::url::{RemoteUrl, Service};
use super::{
    AnswerTimes, Cursor, Detail, FetchBuffer, FetchRequest, Fetched, FirstRead, Key, Listing,
    Object, ObjectMeta, ObjectStart, OpenedPart, Prefix, Profile, ReceivedBytes, Stat, StatKind,
    Store, StoreError,
};

/// Bytes that are received in the time of one request, by which reads are planned together.
const REQUEST_BYTES: u64 = 256 << 10;

/// A caller that reads objects of at most this many bytes expects about this length.
const MOST_KNOWN_BYTES: u64 = 16 << 20;

/// Bytes of an object whose length is not known, for which memory is reserved before it is
/// requested. A longer one takes further requests.
const UNKNOWN_BYTES: u64 = 256 << 10;

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
        let Backend {
            store,
            pages,
            path,
            credentials,
            access,
            origin,
        } = backend??;
        log::info!("{url}: {credentials}");
        let is_azure = url.service == Service::Azure;
        let last_modified = match url.service {
            Service::S3 | Service::Gcs | Service::Azure => LastModified::OfUpload,
            Service::Http => LastModified::OfFile,
        };
        let disk_cache = options.disk_cache.as_ref();
        let limits = (options.most_requests(), options.absent_403);
        let kept = disk_cache.map(|cache| Kept::open(cache, limits, origin, last_modified));
        let kept = kept.transpose()?.flatten().map(Arc::new);
        let is_offline = disk_cache.is_some_and(|cache| cache.is_offline);
        let client = RemoteClient::new(ClientParts {
            store,
            pages,
            path,
            web_root: url.path_on_web().unwrap_or_default(),
            flow: Flow::new(options.most_requests(), options.budget_bytes),
            deadline: options.timeout,
            access,
            most_whole_bytes: options.most_whole_bytes,
            last_modified,
            is_offline,
        });
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
            credentials,
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

    /// Passes an answer of `pinned`, which is the whole object, to a caller.
    fn fetched(
        &self,
        key: &Key,
        pinned: Pinned,
        parts: Body,
        buffer: &mut dyn FetchBuffer,
    ) -> Fetched {
        let mut bytes = ReceivedBytes::default();
        bytes.push_all(0, parts);
        Fetched {
            is_read: buffer.receive(bytes),
            object: self.object(key, pinned),
        }
    }
}

impl RemoteStore {
    /// The result of a fetch, if it is known without a request, or if the object is read in parts or from
    /// the disk.
    fn fetch_known(
        &self,
        key: &Key,
        most_bytes: u64,
        buffer: &mut dyn FetchBuffer,
    ) -> Option<Result<Option<Fetched>, StoreError>> {
        if let Some((pinned, bytes)) = self.shared.remembered.document(key) {
            return Some(Ok(Some(self.fetched(key, pinned, vec![bytes], buffer))));
        }
        if !self.is_here(key, most_bytes) {
            return None;
        }
        let Known(found) = self.shared.remembered.get(key)?;
        let object = found.map(|pinned| self.object(key, pinned));
        let fetch = |object| Fetched::of_object(object, most_bytes, buffer);
        Some(object.map(fetch).transpose())
    }

    /// Whether a fetch needs no request, or requests parts of an object.
    fn is_here(&self, key: &Key, most_bytes: u64) -> bool {
        let is_read = |pinned: Pinned| {
            pinned.meta.size() > whole_bytes(most_bytes)
                || self.shared.is_kept_whole(key, &pinned)
                || self.shared.remembered.document(key).is_some()
        };
        let known = self.shared.remembered.get(key);
        known.is_some_and(|known| known.0.is_none_or(is_read))
    }

    /// Fetches those of `requests` at these places, all at once. Each comes with the version that is kept.
    fn fetch_group(
        &self,
        group: &[(usize, Option<Pinned>)],
        requests: &mut [FetchRequest<'_>],
        all: &mut [Option<Result<Option<Fetched>, StoreError>>],
    ) {
        let asked: Vec<_> = group
            .iter()
            .filter_map(|(at, kept)| Some((requests.get(*at)?, kept.clone())))
            .map(|(request, kept)| {
                let most_bytes = request.most_bytes.min(UNKNOWN_BYTES);
                (request.key.clone(), most_bytes, kept)
            })
            .collect();
        let Some((first, _, _)) = asked.first().cloned() else {
            return;
        };
        let shared = Arc::clone(&self.shared);
        let found = self.shared.runtime.wait_while_wanted(&first, async move {
            let bytes = asked.iter().map(|(_, most_bytes, _)| most_bytes).sum();
            let memory = shared.client.flow.reserve(bytes).await;
            let each = asked
                .iter()
                .map(|(key, most_bytes, kept)| shared.fetch(key, *most_bytes, kept.clone()));
            (join_all(each).await, memory)
        });
        let (found, _memory) = match found {
            Ok((found, memory)) => (found, memory),
            Err(error) => (vec![Err(error); group.len()], None),
        };
        for (&(at, _), found) in group.iter().zip(found) {
            if let (Some(request), Some(answer)) = (requests.get_mut(at), all.get_mut(at)) {
                self.shared.save(request.key);
                if let Ok(Some((pinned, body))) = &found {
                    self.shared.keep_body(request.key, pinned, body.as_ref());
                }
                *answer = Some(found.and_then(|found| {
                    let taken = found.map(|(pinned, body)| {
                        let FetchRequest {
                            key,
                            most_bytes,
                            buffer,
                        } = request;
                        self.take(key, pinned, body, *most_bytes, *buffer)
                    });
                    taken.transpose()
                }));
            }
        }
    }

    /// Passes an answer to a caller, and reads the object in parts if it was too long for one request.
    fn take(
        &self,
        key: &Key,
        pinned: Pinned,
        body: Option<Body>,
        most_bytes: u64,
        buffer: &mut dyn FetchBuffer,
    ) -> Result<Fetched, StoreError> {
        match body {
            Some(body) => Ok(self.fetched(key, pinned, body, buffer)),
            None => Fetched::of_object(self.object(key, pinned), most_bytes, buffer),
        }
    }
}

impl Shared {
    /// Whether a key is an object, or a prefix of others.
    async fn stat(&self, key: &Key, prefix_meta: ObjectMeta) -> Result<Option<Stat>, StoreError> {
        let prefix = key.to_prefix();
        let remembered = self.remembered.get(key);
        let object = async {
            match remembered {
                Some(known) => Ok((known.0, false)),
                None => self.head_or_directory(key).await,
            }
        };
        let below = async {
            match self.remembered.has_prefix(&prefix) {
                Some(has) => Ok(has),
                None if !self.client.lists_pages() || is_no_prefix(key.name()) => Ok(false),
                None => self.has_names(&prefix).await,
            }
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

    /// Whether some key begins with `prefix`. If listing is denied, only remembered answers decide.
    async fn has_names(&self, prefix: &Prefix) -> Result<bool, StoreError> {
        let Some(start) = self.client.start_of(prefix) else {
            return Ok(false);
        };
        let request = PageRequest {
            start,
            most: Some(1),
            ..PageRequest::default()
        };
        let (has, begun) = match self.page(request).await {
            Ok(page) => {
                let has = !page.names.objects.is_empty() || !page.names.common_prefixes.is_empty();
                (has, page.asked)
            }
            Err(
                Failure::Absent | Failure::Denied(_) | Failure::Refused(_) | Failure::Unusable(_),
            ) => return Ok(false),
            Err(failure) => {
                let key = prefix.to_key();
                let key = key.as_ref().map_or_else(String::new, Key::to_string);
                return Err(StoreError::problem(key, format!("{failure:?}")));
            }
        };
        if has {
            self.remembered.put_prefix(prefix, begun);
        } else {
            self.remembered.put_no_prefix(prefix, begun);
        }
        Ok(has)
    }

    /// Reads an object of at most `most_bytes`. Of a longer object, or one that still has the version `kept`, only the
    /// attributes are returned. The caller has reserved the memory.
    async fn fetch(
        &self,
        key: &Key,
        most_bytes: u64,
        kept: Option<Pinned>,
    ) -> Result<Option<(Pinned, Option<Body>)>, StoreError> {
        if let Some(document) = self.remembered.last_document(key) {
            let found = self.document_again(key, document, most_bytes).await?;
            return Ok(found.map(|(pinned, bytes)| (pinned, bytes.map(|bytes| vec![bytes]))));
        }
        if self.is_listed_absent(key).await {
            return Ok(None);
        }
        let begun = Instant::now();
        let read = match kept {
            Some(kept) => {
                let changed = self.client.get_changed(key, &kept, most_bytes).await;
                changed.map(|changed| changed.unwrap_or((kept, None)))
            }
            None => self.client.get_whole(key, most_bytes).await,
        };
        let found = self.found(key, read)?;
        let pinned = found.as_ref().map(|(pinned, _)| pinned.clone());
        self.remembered.put(key, begun, pinned);
        if let Some((pinned, Some(body))) = &found {
            self.keep_document(key, pinned, body);
        }
        Ok(found)
    }
}

/// How many bytes are read of an object of which a caller takes at most `most_bytes`. A caller with a very large limit
/// does not know how long the object is.
fn whole_bytes(most_bytes: u64) -> u64 {
    if most_bytes > MOST_KNOWN_BYTES {
        UNKNOWN_BYTES
    } else {
        most_bytes
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
        let known = || self.fetch_known(key, most_bytes, buffer);
        let (kept, request) = match self.shared.look(key, known)? {
            Looked::Found(known) => return known,
            Looked::Ask(kept, request) => (kept, request),
        };
        let (shared, asked) = (Arc::clone(&self.shared), key.clone());
        let whole_bytes = whole_bytes(most_bytes);
        let answer = async move {
            let memory = shared.client.flow.reserve(whole_bytes).await;
            (shared.fetch(&asked, whole_bytes, kept).await, memory)
        };
        let runtime = &self.shared.runtime;
        let (found, _memory) = runtime.wait_while_wanted(key, answer)?;
        self.shared.save(key);
        let Some((pinned, body)) = found? else {
            return Ok(None);
        };
        self.shared.keep_body(key, &pinned, body.as_ref());
        drop(request);
        self.take(key, pinned, body, most_bytes, buffer).map(Some)
    }

    fn fetch_many(
        &self,
        requests: &mut [FetchRequest<'_>],
    ) -> Vec<Result<Option<Fetched>, StoreError>> {
        let keys: Vec<Key> = requests.iter().map(|request| request.key.clone()).collect();
        let mut all: Vec<Option<_>> = keys.iter().map(|_| None).collect();
        // All answers of a group are in memory at the same time.
        let group = self.shared.client.flow.answer_bytes() / UNKNOWN_BYTES;
        let group = usize::try_from(group).unwrap_or(usize::MAX).max(1);
        let most: Vec<u64> = requests.iter().map(|request| request.most_bytes).collect();
        let is_here = |at: usize, key: &Key| {
            let most_bytes = most.get(at).copied().unwrap_or(0);
            self.is_here(key, most_bytes)
        };
        self.shared.in_turn(&keys, is_here, |places, kept| {
            let mut unknown = Vec::new();
            for (&at, kept) in places.iter().zip(kept) {
                if let (Some(request), Some(answer)) = (requests.get_mut(at), all.get_mut(at)) {
                    *answer = self.fetch_known(request.key, request.most_bytes, request.buffer);
                    if answer.is_none() {
                        unknown.push((at, kept));
                    }
                }
            }
            for group in unknown.chunks(group) {
                self.fetch_group(group, requests, &mut all);
            }
        });
        all.into_iter()
            .map(|found| found.unwrap_or(Ok(None)))
            .collect()
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
