//! Requests to a server. Each is repeated while that may help, within a deadline, and an answer is used only if it is
//! exactly what was requested.

use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use futures_util::StreamExt;
use futures_util::future::{BoxFuture, Either, select};
use object_store::list::{PaginatedListOptions, PaginatedListResult, PaginatedListStore};
use object_store::path::Path;
use object_store::{
    GetOptions, GetRange, GetResult, ListResult, ObjectMeta as ServerMeta, ObjectStore,
};
use tokio::time::{sleep, timeout};

use super::body::{Body, Gathered};
use super::credentials::access::Access;
use super::exchange::{Exchange, RequestKind};
use super::failure::{Failure, Transient};
use super::flow::Flow;
use super::methods::Methods;
use super::statistics::RemoteStatistics;
use super::tag::{LastModified, Pinned};
use super::web_names;
use crate::notice::TOLD;
use crate::store::{Key, Prefix};

/// The wait before the second attempt, which doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// How long a server is tried to which no connection could ever be made. So a wrong name or port is reported soon.
const UNREACHABLE: Duration = Duration::from_secs(2);

/// The longest wait before an attempt.
const MOST_WAIT: Duration = Duration::from_secs(5);

/// If the first byte takes longer than this, it is requested on another connection.
const LEAST_HEDGE: Duration = Duration::from_secs(1);

/// A first byte is late if it takes this many times the 95th percentile.
const HEDGE_FACTOR: u32 = 4;

/// One of this many requests may be sent a second time.
const HEDGE_PART: u64 = 20;

/// The number of answers before the latencies show what is late.
const HEDGE_ANSWERS: u64 = 20;

/// The problem of a request that is not sent.
const OFFLINE: &str = "not in the disk cache, and --offline sends no request";

/// A client of one store.
#[derive(Clone)]
pub(super) struct RemoteClient {
    pub(super) store: Arc<dyn ObjectStore>,
    pages: Option<Arc<dyn PaginatedListStore>>,
    /// The prefix of all keys in the bucket, with a slash at the end unless it is empty.
    base: String,
    /// The path of the URL on a web server. Its listings have this path before each name.
    web_root: String,
    /// Whether the only object is the one at the URL itself, which every key names.
    is_single: bool,
    pub(super) flow: Arc<Flow>,
    pub(super) statistics: Arc<RemoteStatistics>,
    /// How long a request and its repetitions may take.
    deadline: Duration,
    /// Whole objects that are read for a range of them are no longer than this.
    most_whole_bytes: u64,
    /// Whether the message that requests are repeated was logged.
    is_patient: Arc<AtomicBool>,
    /// Whether a connection to the server could be made.
    is_reached: Arc<AtomicBool>,
    seen: Arc<Seen>,
    pub(super) access: Access,
    last_modified: LastModified,
    pub(super) methods: Arc<Methods>,
    /// Whether no request is sent (`--offline`).
    is_offline: bool,
}

/// Properties of the server that its answers to one client have shown.
#[derive(Debug, Default)]
struct Seen {
    /// Whether it sends whole objects for ranges. This was logged when it was found out.
    sends_whole: AtomicBool,
    /// Whether it sent a whole document for a range.
    lacks_parts: AtomicBool,
    /// Whether it has sent a page of names.
    has_listed: AtomicBool,
    /// Whether the message that names are left out was logged.
    left_out_names: AtomicBool,
}

/// The parts of a client.
pub(super) struct ClientParts {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) pages: Option<Arc<dyn PaginatedListStore>>,
    /// The prefix of all keys.
    pub(super) path: String,
    /// The path of the URL on a web server.
    pub(super) web_root: String,
    pub(super) flow: Arc<Flow>,
    pub(super) deadline: Duration,
    pub(super) most_whole_bytes: u64,
    pub(super) access: Access,
    pub(super) last_modified: LastModified,
    pub(super) is_offline: bool,
}

/// An answer whose body was not read yet.
pub(super) struct AnswerHead {
    pub(super) found: Pinned,
    result: GetResult,
    exchange: Exchange,
}

/// A request for a page of names.
#[derive(Debug, Clone, Default)]
pub(super) struct PageRequest {
    /// The names are those of keys that begin so.
    pub(super) start: String,
    /// The page follows the one that had this token.
    pub(super) token: Option<String>,
    /// The page begins after this key.
    pub(super) offset: Option<String>,
    /// The most names.
    pub(super) most: Option<usize>,
}

/// One page of names.
pub(super) struct Page {
    pub(super) names: ListResult,
    /// Continues the listing; `None` after the last page.
    pub(super) token: Option<String>,
    /// When the server sent the page, by its own clock.
    pub(super) date: Option<SystemTime>,
    /// When it was requested.
    pub(super) asked: Instant,
}

impl fmt::Debug for RemoteClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemoteClient({:?}, {:?})", self.base, self.flow)
    }
}

impl RemoteClient {
    pub(super) fn new(parts: ClientParts) -> RemoteClient {
        let base = if parts.path.is_empty() {
            String::new()
        } else {
            format!("{}/", parts.path)
        };
        RemoteClient {
            store: parts.store,
            pages: parts.pages,
            base,
            web_root: parts.web_root,
            is_single: false,
            flow: parts.flow,
            statistics: Arc::default(),
            deadline: parts.deadline,
            most_whole_bytes: parts.most_whole_bytes,
            is_patient: Arc::default(),
            is_reached: Arc::default(),
            seen: Arc::default(),
            access: parts.access,
            last_modified: parts.last_modified,
            methods: Arc::default(),
            is_offline: parts.is_offline,
        }
    }

    /// A client of the object at the URL itself, which shares connections and permits with this
    /// one.
    pub(super) fn of_url_itself(&self) -> RemoteClient {
        RemoteClient {
            pages: None,
            is_single: true,
            seen: Arc::default(),
            ..self.clone()
        }
    }

    /// The version that the server describes, at a time when its clock shows `date`.
    pub(super) fn pinned(&self, found: &ServerMeta, date: Option<SystemTime>) -> Pinned {
        Pinned::new(found, date, self.last_modified)
    }

    /// Whether the server is a web server, whose answers may be wrong even for `HEAD`.
    pub(super) fn is_web(&self) -> bool {
        self.last_modified == LastModified::OfFile
    }

    /// The path of `key` in the bucket; `None` if the key is not text, or has control characters, so that no object can
    /// have it.
    pub(super) fn path(&self, key: &Key) -> Option<Path> {
        if self.is_single {
            return Path::parse(&self.base).ok();
        }
        let key = std::str::from_utf8(key.as_bytes()).ok()?;
        Path::parse(format!("{}{key}", self.base)).ok()
    }

    /// The prefix of the keys below `prefix` in the bucket.
    pub(super) fn start_of(&self, prefix: &Prefix) -> Option<String> {
        let text = std::str::from_utf8(prefix.as_bytes()).ok()?;
        let slash = if prefix.is_root() { "" } else { "/" };
        Some(format!("{}{text}{slash}", self.base))
    }

    /// Reads all of the object at `key`, if it has at most `most_bytes`; or else only its
    /// attributes. The caller has reserved memory for the answer.
    pub(super) async fn get_whole(
        &self,
        key: &Key,
        most_bytes: u64,
    ) -> Result<(Pinned, Option<Body>), Failure> {
        self.get_whole_with(key, GetOptions::new(), most_bytes)
            .await
    }

    /// Like [`RemoteClient::get_whole`], by a request with `options`.
    async fn get_whole_with(
        &self,
        key: &Key,
        options: GetOptions,
        most_bytes: u64,
    ) -> Result<(Pinned, Option<Body>), Failure> {
        let path = self.path(key).ok_or(Failure::Absent)?;
        self.attempts(RequestKind::Get, |exchange| {
            let (path, options) = (path.clone(), options.clone());
            async move {
                let head = self.head_of_get(&path, options, &exchange).await?;
                self.whole_of(head, most_bytes).await
            }
        })
        .await
    }

    /// Like [`RemoteClient::get_whole`], unless the object still has the version `last`; then the result is `None`.
    pub(super) async fn get_changed(
        &self,
        key: &Key,
        last: &Pinned,
        most_bytes: u64,
    ) -> Result<Option<(Pinned, Option<Body>)>, Failure> {
        let Some(tag) = &last.tag else {
            return self.get_whole(key, most_bytes).await.map(Some);
        };
        let path = self.path(key).ok_or(Failure::Absent)?;
        self.attempts(RequestKind::Get, |exchange| {
            let path = path.clone();
            let mut options = GetOptions::new();
            options.if_none_match = Some(tag.clone());
            async move {
                let head = match self.head_of_get(&path, options, &exchange).await {
                    Ok(head) => head,
                    Err(Failure::Unchanged) => return Ok(None),
                    Err(failure) => return Err(failure),
                };
                self.whole_of(head, most_bytes).await.map(Some)
            }
        })
        .await
    }

    /// Reads all of an object, if it has at most `most_bytes`.
    async fn whole_of(
        &self,
        head: AnswerHead,
        most_bytes: u64,
    ) -> Result<(Pinned, Option<Body>), Failure> {
        let found = head.found.clone();
        let len = found.meta.size();
        if len > most_bytes {
            return Ok((found, None));
        }
        let body = self.body(head, 0..len).await?;
        Ok((found, Some(body)))
    }

    /// Reads `range` of the object at `key`, as far as it is in the object. Returns the version, and the offset at
    /// which the bytes begin; [`Failure::Unchanged`] if the object has the version `unless`.
    pub(super) async fn get_first(
        &self,
        key: &Key,
        range: GetRange,
        unless: Option<&Pinned>,
    ) -> Result<(Pinned, u64, Body), Failure> {
        let path = self.path(key).ok_or(Failure::Absent)?;
        self.attempts(RequestKind::Get, |exchange| {
            let (path, range) = (path.clone(), range.clone());
            let mut options = GetOptions::new();
            options.range = Some(range.clone());
            options.if_none_match = unless.and_then(|pinned| pinned.tag.clone());
            async move {
                let head = self.head_of_get(&path, options, &exchange).await?;
                let found = head.found.clone();
                let bytes = range.as_range(found.meta.size());
                let bytes = bytes.map_err(|_| Failure::BeyondEnd)?;
                let start = bytes.start;
                let body = self.body(head, bytes).await?;
                Ok((found, start, body))
            }
        })
        .await
    }

    /// Reads `range` of the version `pinned` of the object at `key`.
    pub(super) async fn get_range(
        &self,
        key: &Key,
        pinned: &Pinned,
        range: Range<u64>,
    ) -> Result<Body, Failure> {
        let path = self.path(key).ok_or(Failure::Absent)?;
        if self.sends_whole() {
            return self.cut_from_whole(&path, pinned, range).await;
        }
        let read = self
            .attempts(RequestKind::Get, |exchange| {
                let mut options = conditions(pinned);
                let is_whole = range == (0..pinned.meta.size());
                if !is_whole {
                    options.range = Some(GetRange::Bounded(range.clone()));
                }
                let (path, range) = (path.clone(), range.clone());
                async move {
                    let head = self.head_of_get(&path, options, &exchange).await?;
                    // Servers may ignore the condition.
                    head.found.check_is(pinned, is_whole)?;
                    self.body(head, range).await
                }
            })
            .await;
        match read {
            Err(Failure::NotPartial) if pinned.meta.size() <= self.most_whole_bytes => {
                self.note_no_parts();
                self.cut_from_whole(&path, pinned, range).await
            }
            read => read,
        }
    }

    /// Like [`RemoteClient::get_whole`], for a web server. The request is for a part, so that a server that cannot send
    /// parts is noticed ([`RemoteClient::says_no_parts`]).
    pub(super) async fn get_whole_as_part(
        &self,
        key: &Key,
        most_bytes: u64,
    ) -> Result<(Pinned, Option<Body>), Failure> {
        let mut options = GetOptions::new();
        options.range = Some(GetRange::Bounded(0..most_bytes));
        match self.get_whole_with(key, options, most_bytes).await {
            Err(Failure::NotPartial) => {
                let found = self.get_whole(key, most_bytes).await?;
                self.seen.lacks_parts.store(true, Ordering::Relaxed);
                Ok(found)
            }
            // An empty object has no part.
            Err(Failure::BeyondEnd | Failure::Unusable(_)) => self.get_whole(key, most_bytes).await,
            found => found,
        }
    }

    /// Whether the server sends whole objects for ranges.
    pub(super) fn sends_whole(&self) -> bool {
        self.seen.sends_whole.load(Ordering::Relaxed)
    }

    /// Logs that the server sends no parts of objects, if that was noticed.
    pub(super) fn says_no_parts(&self) {
        if self.seen.lacks_parts.load(Ordering::Relaxed) {
            self.note_no_parts();
        }
    }

    /// Logs once that the server sends no parts of objects.
    fn note_no_parts(&self) {
        if !self.seen.sends_whole.swap(true, Ordering::Relaxed) {
            log::warn!(
                target: TOLD,
                "the server sends whole objects where a part is asked for; they are read whole, \
                 which is slow for shards"
            );
        }
    }

    /// Reads all of an object for a request of `range`.
    async fn cut_from_whole(
        &self,
        path: &Path,
        pinned: &Pinned,
        range: Range<u64>,
    ) -> Result<Body, Failure> {
        let whole = self
            .attempts(RequestKind::Get, |exchange| {
                let options = conditions(pinned);
                let path = path.clone();
                async move {
                    let head = self.head_of_get(&path, options, &exchange).await?;
                    head.found.check_is(pinned, true)?;
                    let len = pinned.meta.size();
                    self.body(head, 0..len).await
                }
            })
            .await?;
        let mut at = 0;
        let mut cut = Gathered::of_len(range.end - range.start);
        for part in whole {
            let end = at + part.len() as u64;
            let (from, to) = (range.start.max(at), range.end.min(end));
            if from < to {
                let inside = |n: u64| usize::try_from(n - at).unwrap_or(usize::MAX);
                cut.push(part.slice(inside(from)..inside(to)));
            }
            at = end;
        }
        Ok(cut.into_body())
    }

    /// One page of names.
    pub(super) async fn page(&self, request: &PageRequest) -> Result<Page, Failure> {
        let page = self.any_page(request).await;
        match &page {
            Ok(_) => self.seen.has_listed.store(true, Ordering::Relaxed),
            // This server has listed names before.
            Err(Failure::Unusable(problem)) if self.seen.has_listed.load(Ordering::Relaxed) => {
                return Err(Failure::transient(problem));
            }
            Err(_) => {}
        }
        page
    }

    /// Like [`RemoteClient::page`], where a failure may mean that the server does not list names.
    async fn any_page(&self, request: &PageRequest) -> Result<Page, Failure> {
        let PageRequest {
            start,
            token,
            offset,
            most,
        } = request;
        let Some(pages) = &self.pages else {
            return self.web_listing(start).await;
        };
        self.attempts(RequestKind::List, |_| {
            let exchange = Exchange::of_page();
            let mut options = PaginatedListOptions {
                offset: offset.clone(),
                delimiter: Some("/".into()),
                max_keys: *most,
                page_token: token.clone(),
                ..PaginatedListOptions::default()
            };
            options.extensions.insert(exchange.clone());
            let prefix = (!start.is_empty()).then_some(start.as_str());
            async move {
                let asked = Instant::now();
                let found = pages.list_paginated(prefix, options).await;
                let PaginatedListResult { result, page_token } =
                    found.map_err(|error| Failure::new(&error, &exchange.facts()))?;
                check_below(&result, start)?;
                if page_token.is_some() && page_token == *token {
                    let problem = "the server sends the same page of names again and again";
                    return Err(Failure::Unusable(problem.to_owned()));
                }
                let facts = exchange.facts();
                if facts.left_out > 0 && !self.seen.left_out_names.swap(true, Ordering::Relaxed) {
                    log::warn!(
                        "{} of the names below {start:?} are left out, because they have an empty \
                         segment, or . or .. as one (this is said once)",
                        facts.left_out
                    );
                }
                Ok(Page {
                    names: result,
                    token: page_token,
                    date: facts.date,
                    asked,
                })
            }
        })
        .await
    }

    /// The names that a web server lists by `WebDAV`. The facts of the answer are not passed on, so a failure means
    /// that the server cannot list names.
    async fn web_listing(&self, start: &str) -> Result<Page, Failure> {
        if self.is_offline {
            // Names come from the documents, as where a server lists none.
            return Err(Failure::Unusable(OFFLINE.to_owned()));
        }
        self.statistics.count(RequestKind::List);
        let asked = Instant::now();
        let prefix = Path::parse(start).map_err(|_| Failure::Absent)?;
        let list = self.store.list_with_delimiter(Some(&prefix));
        let found = timeout(self.deadline, list).await;
        let names = found
            .map_err(|_| Failure::transient("the server does not answer"))?
            .map_err(|_| Failure::Unusable("the web server does not list names".to_owned()))?;
        Ok(Page {
            names: web_names::below(&self.web_root, &prefix, names)?,
            token: None,
            date: None,
            asked,
        })
    }

    /// Whether names can be listed after a key.
    pub(super) fn lists_pages(&self) -> bool {
        self.pages.is_some()
    }

    /// Sends a request for bytes, and checks the head of its answer. If the answer is late, the request is sent a
    /// second time on another connection, and the first answer counts.
    pub(super) async fn head_of_get(
        &self,
        path: &Path,
        options: GetOptions,
        exchange: &Exchange,
    ) -> Result<AnswerHead, Failure> {
        let send = |exchange: &Exchange| {
            let mut options = options.clone();
            options.extensions.insert(exchange.clone());
            let exchange = exchange.clone();
            let path = path.clone();
            Box::pin(async move {
                let result = self.store.get_opts(&path, options).await;
                let facts = exchange.facts();
                (result.map_err(|error| Failure::new(&error, &facts)), facts)
            })
        };
        let begun = Instant::now();
        let mut first = send(exchange);
        let (result, facts) = match self.late_after() {
            None => first.await,
            Some(late) => {
                if let Ok(answered) = timeout(late, &mut first).await {
                    answered
                } else {
                    self.statistics.hedges.add(1);
                    self.statistics.count(RequestKind::Get);
                    let second = send(&Exchange::default());
                    match select(first, second).await {
                        Either::Left(((Err(Failure::Transient(_)), _), other))
                        | Either::Right(((Err(Failure::Transient(_)), _), other)) => other.await,
                        Either::Left((answered, _)) | Either::Right((answered, _)) => answered,
                    }
                }
            }
        };
        self.statistics.latencies.add(begun.elapsed());
        let result = result?;
        facts.check()?;
        self.methods.note_found(path);
        let found = self.pinned(&result.meta, facts.date);
        Ok(AnswerHead {
            found,
            result,
            exchange: exchange.clone(),
        })
    }

    /// The time after which an answer is late; `None` while this is not known, or too many requests were sent twice.
    fn late_after(&self) -> Option<Duration> {
        let statistics = &self.statistics;
        let requests = statistics.requests();
        let may = requests >= HEDGE_ANSWERS
            && statistics.hedges.get().saturating_mul(HEDGE_PART) < requests;
        let usual = statistics.latencies.percentile(95).filter(|_| may)?;
        Some(usual.saturating_mul(HEDGE_FACTOR).max(LEAST_HEDGE))
    }

    /// Reads the body of an answer, which must have the bytes `range` and no others.
    async fn body(&self, head: AnswerHead, range: Range<u64>) -> Result<Body, Failure> {
        let result = head.result;
        let len = range.end - range.start;
        if result.range != range {
            let problem = "the server sent another range than requested";
            return Err(Failure::Unusable(problem.to_owned()));
        }
        let mut stream = result.into_stream();
        let (mut body, mut received) = (Gathered::of_len(len), 0_u64);
        while let Some(part) = stream.next().await {
            let part = part.map_err(|_| Failure::transient("the answer ended early"))?;
            received = received.saturating_add(part.len() as u64);
            self.statistics.received_bytes.add(part.len() as u64);
            if received > len {
                let problem = format!("the server sent more than the {len} requested bytes");
                return Err(Failure::Unusable(problem));
            }
            body.push(part);
        }
        if received < len {
            let problem = format!("the answer ended after {received} of {len} bytes");
            return Err(Failure::transient(problem));
        }
        head.exchange.received(received);
        Ok(body.into_body())
    }

    /// Makes attempts until one succeeds, or fails for good, or the deadline has passed. They have a box, because the state
    /// of a request takes kilobytes: each function that passes it on would need as much of the stack of its thread, and
    /// hundreds of threads may wait for requests.
    pub(super) fn attempts<'a, T: Send + 'a, F>(
        &'a self,
        kind: RequestKind,
        attempt: impl FnMut(Exchange) -> F + Send + 'a,
    ) -> BoxFuture<'a, Result<T, Failure>>
    where
        F: Future<Output = Result<T, Failure>> + Send + 'a,
    {
        Box::pin(self.all_attempts(kind, attempt))
    }

    async fn all_attempts<T, F>(
        &self,
        kind: RequestKind,
        mut attempt: impl FnMut(Exchange) -> F,
    ) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        if self.is_offline {
            return Err(Failure::Unusable(OFFLINE.to_owned()));
        }
        let begun = Instant::now();
        let mut renewed = false;
        let refusals = match &self.access {
            Access::Renewed(refusals) => Some(refusals),
            _ => None,
        };
        for number in 0.. {
            let left = self.deadline.saturating_sub(begun.elapsed());
            let entered = timeout(left, self.flow.enter()).await;
            let Ok(in_flight) = entered else {
                return Err(Failure::transient("too many requests wait for the server"));
            };
            self.statistics.count(kind);
            let exchange = Exchange::default();
            let credentials = refusals.map_or(0, |refusals| refusals.current());
            let left = self.deadline.saturating_sub(begun.elapsed());
            let failure = match timeout(left, attempt(exchange.clone())).await {
                Ok(Ok(found)) => {
                    self.is_reached.store(true, Ordering::Relaxed);
                    // A page of names takes the server much longer than other answers of its length.
                    if kind != RequestKind::List {
                        self.flow.answered(&in_flight, exchange.received_bytes());
                    }
                    if let Some(refusals) = refusals {
                        refusals.accept(credentials);
                    }
                    return Ok(found);
                }
                Ok(Err(failure)) => failure,
                Err(_) => Failure::transient("the server does not answer"),
            };
            drop(in_flight);
            let is_unreachable =
                matches!(&failure, Failure::Transient(transient) if transient.is_unreachable);
            if !is_unreachable {
                self.is_reached.store(true, Ordering::Relaxed);
            }
            let is_reached = self.is_reached.load(Ordering::Relaxed);
            let deadline = if is_unreachable && !is_reached {
                self.deadline.min(UNREACHABLE)
            } else {
                self.deadline
            };
            let wait = match &failure {
                Failure::Transient(transient) => self.wait_before_next(transient, number, deadline),
                // The credentials may have expired just now.
                Failure::Unauthorized(_)
                    if !renewed && refusals.is_some_and(|all| all.refuse(credentials)) =>
                {
                    renewed = true;
                    Duration::ZERO
                }
                Failure::Absent | Failure::Directory => return Err(failure),
                _ => {
                    self.count_failure(&failure);
                    return Err(failure);
                }
            };
            if begun.elapsed() + wait >= deadline {
                self.count_failure(&failure);
                return Err(failure);
            }
            self.statistics.retries.add(1);
            sleep(wait).await;
        }
        Err(Failure::transient("no attempt was made"))
    }

    /// Whether the message that requests fail and are repeated was logged.
    pub(super) fn has_told_of_failures(&self) -> bool {
        self.is_patient.load(Ordering::Relaxed)
    }

    fn count_failure(&self, failure: &Failure) {
        match failure {
            Failure::Changed => self.statistics.changed.add(1),
            _ => self.statistics.failures.add(1),
        }
    }

    /// The wait before the next attempt, with a random part so that not all requests are repeated at the same moment.
    /// The request fails after `deadline`.
    fn wait_before_next(&self, transient: &Transient, number: u32, deadline: Duration) -> Duration {
        if transient.is_throttle {
            self.flow.throttled();
            self.statistics.throttles.add(1);
        }
        if number >= 1 && !self.is_patient.swap(true, Ordering::Relaxed) {
            log::warn!(
                target: TOLD,
                "a request to the server failed twice: {}; it is repeated for up to {deadline:?}{} (this is said once)",
                transient.problem,
                if deadline == self.deadline { " (see --timeout)" } else { "" }
            );
        }
        let doubled = FIRST_WAIT
            .saturating_mul(1 << number.min(10))
            .min(MOST_WAIT);
        let random = doubled.mul_f64(0.5 + random_unit() / 2.0);
        transient.wait.map_or(random, |wait| wait.max(random))
    }
}

/// Checks that all `names` are below `start`, as requested. A marker of the prefix itself is not below it.
fn check_below(names: &ListResult, start: &str) -> Result<(), Failure> {
    let objects = names.objects.iter().map(|object| &object.location);
    let is_other = |path: &&Path| {
        let path = path.as_ref();
        !path.starts_with(start) && path != start.trim_end_matches('/')
    };
    match objects.chain(&names.common_prefixes).find(is_other) {
        None => Ok(()),
        Some(path) => Err(Failure::Unusable(format!(
            "the server sent {path:?} where names below {start:?} were requested"
        ))),
    }
}

/// The conditions that the version must be `pinned`.
fn conditions(pinned: &Pinned) -> GetOptions {
    let mut options = GetOptions::new();
    match &pinned.tag {
        Some(tag) => options.if_match = Some(tag.clone()),
        None if pinned.is_identified() => {
            options.if_unmodified_since = Some(pinned.meta.version.mtime.into());
        }
        None => {}
    }
    options
}

/// A number from 0 to 1.
fn random_unit() -> f64 {
    use std::hash::{BuildHasher, RandomState};
    let random = RandomState::new().hash_one(Instant::now());
    f64::from(u32::try_from(random >> 32).unwrap_or(0)) / f64::from(u32::MAX)
}
