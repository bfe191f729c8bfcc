//! The state that a remote store, its objects and its listings share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use bytes::Bytes;

use super::absences::ListedNames;
use super::body::{Body, joined};
use super::client::RemoteClient;
use super::documents::is_document;
use super::failure::Failure;
use super::first_bytes::FirstMemory;
use super::kept::Kept;
use super::pages::{Page, PageRequest};
use super::remembered::Remembered;
use super::request::Looked;
use super::runtime::Runtime;
use super::tag::Pinned;
use crate::store::{Key, Prefix, StoreError};

/// The most bytes of a document that is kept.
const MOST_DOCUMENT_BYTES: u64 = 64 << 10;

/// The state that a remote store, its objects and its listings share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) runtime: Arc<Runtime>,
    pub(super) client: RemoteClient,
    pub(super) remembered: Remembered,
    /// The data that is kept on disk; `None` without a disk cache.
    pub(super) kept: Option<Arc<Kept>>,
    /// Whether the store never changes.
    pub(super) is_immutable: bool,
    pub(super) first_memory: Arc<FirstMemory>,
    /// Whether the server answers 403 for objects that are absent, and this counts as absence
    /// (`--absent-403`).
    pub(super) absent_403: bool,
    /// Whether the server answered 403 for a name that cannot exist.
    pub(super) hides_absence: AtomicBool,
    /// Whether the server cannot send the last bytes of an object whose length is not known.
    pub(super) lacks_suffixes: AtomicBool,
}

impl Shared {
    /// Whether 403 means that there is no object at `key`. If the server hides absence, denied documents count as
    /// absent, because most prefixes have only one of the documents that are looked for. Chunks do so only with
    /// `--absent-403`: a denied chunk would be shown as fill values.
    fn means_absence(&self, key: &Key) -> bool {
        self.absent_403 || self.hides_absence.load(Ordering::Relaxed) && is_document(key.name())
    }

    /// The current version of the object at `key`, which may be remembered.
    pub(super) fn stat_object(self: &Arc<Self>, key: &Key) -> Result<Option<Pinned>, StoreError> {
        let known = || Some(self.remembered.get(key)?.0);
        let _request = match self.look(key, known)? {
            Looked::Found(known) => return Ok(known),
            Looked::Ask(_, request) => request,
        };
        let (shared, asked) = (Arc::clone(self), key.clone());
        let head = async move { shared.head(&asked).await };
        let found = self.runtime.wait_for(head)?;
        self.save(key);
        found
    }

    /// Requests the current version of the object at `key`. A document that was read before, and has changed, is read
    /// again by the same request.
    pub(super) async fn head(&self, key: &Key) -> Result<Option<Pinned>, StoreError> {
        if let Some(document) = self.remembered.last_document(key) {
            let found = self.document_again(key, document, MOST_DOCUMENT_BYTES);
            return Ok(found.await?.map(|(found, _)| found));
        }
        let (found, _) = self.head_or_directory(key).await?;
        Ok(found)
    }

    /// The current version of a document that was read before, and its bytes if it has at most
    /// `most_bytes`. The server sends them only if they have changed.
    pub(super) async fn document_again(
        &self,
        key: &Key,
        (last, bytes): (Pinned, Bytes),
        most_bytes: u64,
    ) -> Result<Option<(Pinned, Option<Bytes>)>, StoreError> {
        let begun = Instant::now();
        let answered = self.client.get_changed(key, &last, most_bytes).await;
        let found = match self.found(key, answered)? {
            Some(None) => Some((last, Some(bytes))),
            Some(Some((found, body))) => {
                if let Some(body) = &body {
                    self.keep_document(key, &found, body);
                }
                Some((found, body.map(|body| joined(&body))))
            }
            None => None,
        };
        let version = found.as_ref().map(|(found, _)| found.clone());
        self.remembered.put(key, begun, version);
        Ok(found)
    }

    /// Keeps the bytes of an object, if it is a short document. An empty document is damaged. It is not kept, because
    /// the server may claim that the good document that replaces it has not changed.
    pub(super) fn keep_document(&self, key: &Key, found: &Pinned, body: &Body) {
        if !is_document(key.name()) {
            return;
        }
        if (1..=MOST_DOCUMENT_BYTES).contains(&found.meta.size()) {
            self.remembered
                .keep_document(key, found.clone(), joined(body));
        } else {
            self.remembered.forget_document(key);
        }
    }

    /// Like [`Shared::head`], and also whether the server calls `key` a directory.
    pub(super) async fn head_or_directory(
        &self,
        key: &Key,
    ) -> Result<(Option<Pinned>, bool), StoreError> {
        if self.is_listed_absent(key).await {
            return Ok((None, false));
        }
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

    /// Whether a listing shows that no object is at `key`. The names around it are listed if several objects of its
    /// prefix were absent. Offline, they are looked for in the kept pages at once.
    pub(super) async fn is_listed_absent(&self, key: &Key) -> bool {
        let absences = &self.remembered.absences;
        if !self.client.lists_pages() {
            return absences.has(key);
        }
        if self.client.is_offline {
            return self.lists_offline(key, b"").await == Some(false);
        }
        if let Some(task) = absences.take_listing(key) {
            let listed = self.list_around(key, &task.prefix).await;
            task.finish(listed);
        }
        absences.has(key)
    }

    /// A page of the names in `prefix`: the first page, or in later calls the page that begins a little before `key`.
    async fn list_around(&self, key: &Key, prefix: &Prefix) -> Option<ListedNames> {
        let start = self.client.start_of(prefix)?;
        let before = key.name().split_last().map(|(_, before)| before);
        let before = before.filter(|_| self.remembered.absences.has_listing(prefix));
        let after = std::str::from_utf8(before.unwrap_or_default()).unwrap_or_default();
        let offset = (!after.is_empty()).then(|| format!("{start}{after}"));
        let request = PageRequest {
            start: start.clone(),
            offset,
            ..PageRequest::default()
        };
        let page = self.page(request).await.ok()?;
        Some(self.listed_in(prefix, (&start, after.as_bytes()), page))
    }

    /// Whether kept pages have the object at `key`, or with a slash as `end` names below it. `None` if they do not show it.
    pub(super) async fn lists_offline(&self, key: &Key, end: &[u8]) -> Option<bool> {
        let (mut prefix, mut name) = (key.parent(), [key.name(), end].concat());
        let mut is_above = false;
        loop {
            let absences = &self.remembered.absences;
            if absences.lists(&prefix, &name).is_none()
                && let Some(listed) = self.kept_names_around(&prefix, &name).await
            {
                absences.put_all(&prefix, listed);
            }
            match absences.lists(&prefix, &name) {
                // Something is below a prefix that the key is in.
                Some(true) if is_above => return None,
                Some(has) => return Some(has),
                None => {}
            }
            let above = prefix.to_key()?;
            (prefix, name) = (above.parent(), [above.name(), b"/"].concat());
            is_above = true;
        }
    }

    /// The page around `name` among the kept pages of the names in `prefix`. They are read from the first one on, because
    /// each page has the token by which the next one is found.
    async fn kept_names_around(&self, prefix: &Prefix, name: &[u8]) -> Option<ListedNames> {
        let start = self.client.start_of(prefix)?;
        let (mut after, mut token) = (Vec::new(), None);
        loop {
            let request = PageRequest {
                start: start.clone(),
                token,
                ..PageRequest::default()
            };
            let page = self.page(request).await.ok()?;
            let last = last_name(&page, &start);
            if page.token.is_none() || name <= last.as_slice() {
                let listed = self.listed_in(prefix, (&start, &after), page);
                return listed.covers(name).then_some(listed);
            }
            // Pages that go back would be read again and again.
            if last <= after {
                return None;
            }
            (after, token) = (last, page.token);
        }
    }

    /// The names in a page of the names below `prefix`, which begins behind the name `after`.
    fn listed_in(&self, prefix: &Prefix, (start, after): (&str, &[u8]), page: Page) -> ListedNames {
        let (checked, is_kept) = (page.asked, page.is_kept);
        let answered = Instant::now();
        let is_last = page.token.is_none();
        let names = self.names_in(prefix, start, page);
        ListedNames {
            checked,
            answered,
            after: after.to_vec(),
            last: (!is_last).then(|| names.iter().max().cloned().unwrap_or_default()),
            names: names.into_iter().collect(),
            is_kept,
        }
    }

    /// The names in a page of the names below `prefix`, with a slash at the end of the names of prefixes. The versions
    /// of the objects are remembered.
    fn names_in(&self, prefix: &Prefix, start: &str, page: Page) -> Vec<Vec<u8>> {
        let prefixes = page.names.common_prefixes.iter().filter_map(|path| {
            let name = path.as_ref().strip_prefix(start)?;
            Some([name.as_bytes(), b"/"].concat())
        });
        let mut names: Vec<Vec<u8>> = prefixes.collect();
        for object in page.names.objects {
            if let Some(name) = object.location.as_ref().strip_prefix(start) {
                names.push(name.as_bytes().to_vec());
                if let Ok(key) = prefix.key(name.as_bytes()) {
                    let found = self.client.pinned(&object, page.date);
                    self.put_listed(&key, (page.asked, page.is_kept), found);
                }
            }
        }
        names
    }

    /// Remembers the version of `key` in a page that was requested at `asked`, and that may be a kept one.
    pub(super) fn put_listed(&self, key: &Key, (asked, is_kept): (Instant, bool), found: Pinned) {
        if is_kept {
            self.remembered.put_listed(key, asked, found);
        } else {
            self.remembered.put(key, asked, Some(found));
        }
    }

    /// The result of a request for the object at `key`, `None` if there is no object.
    pub(super) fn found<T>(
        &self,
        key: &Key,
        result: Result<T, Failure>,
    ) -> Result<Option<T>, StoreError> {
        match result {
            Ok(found) => Ok(Some(found)),
            Err(Failure::Absent | Failure::Directory) => Ok(None),
            Err(Failure::Denied(_)) if self.means_absence(key) => {
                if !self.absent_403 {
                    self.remembered.note_denied(key);
                }
                Ok(None)
            }
            Err(failure) => Err(failure.into_error(key, false)),
        }
    }
}

/// The last of the names in a page of the names below `start`, with a slash at the end of the name of a prefix.
fn last_name(page: &Page, start: &str) -> Vec<u8> {
    let objects = page.names.objects.iter();
    let objects = objects.map(|object| (object.location.as_ref(), ""));
    let prefixes = page.names.common_prefixes.iter();
    let prefixes = prefixes.map(|path| (path.as_ref(), "/"));
    let names = objects.chain(prefixes).filter_map(|(path, slash)| {
        let name = path.strip_prefix(start)?;
        Some([name.as_bytes(), slash.as_bytes()].concat())
    });
    names.max().unwrap_or_default()
}
