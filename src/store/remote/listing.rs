//! Listings of prefixes, page by page. The next page is requested while one is read.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, mpsc};
use std::time::Instant;

use super::absences::ListedNames;
use super::failure::Failure;
use super::pages::{Page, PageRequest, no_end};
use super::shared::Shared;
use super::tag::prefix_attributes;
use crate::store::{
    Cursor, Detail, EntryKind, Key, ListEntry, Listing, ObjectMeta, Prefix, StoreError,
};

/// The character after all keys below a prefix: no key has it.
const LAST_CHARACTER: char = '\u{10ffff}';

/// The names of a listing are remembered if there are at most this many.
const MOST_NAMES: usize = 4096;

/// A listing of one prefix.
pub(super) struct RemoteListing {
    shared: Arc<Shared>,
    prefix: Prefix,
    /// The prefix of the keys in the bucket.
    start: String,
    /// Entries up to this one are left out.
    after: Cursor,
    entries: VecDeque<ListEntry>,
    next: NextPage,
    detail: Detail,
    prefix_meta: ObjectMeta,
    /// All names so far, unless there are too many, or the listing did not begin with the first
    /// name.
    names: Option<HashSet<Vec<u8>>>,
    begun: Instant,
    /// Whether a page was kept on disk.
    has_kept: bool,
    /// When the first page arrived of those without names that follow each other up to here.
    empty_since: Option<Instant>,
}

/// The page that follows.
enum NextPage {
    /// The page was requested.
    Requested(mpsc::Receiver<Result<Page, Failure>>),
    /// There is no next page.
    None,
}

impl RemoteListing {
    /// Begins a listing of `prefix` after the entry `after`; `None` when no key is below it.
    pub(super) fn begin(
        shared: &Arc<Shared>,
        prefix: &Prefix,
        after: Cursor,
        detail: Detail,
        prefix_meta: ObjectMeta,
    ) -> Result<Option<RemoteListing>, StoreError> {
        let Some(start) = shared.client.start_of(prefix) else {
            return Ok(None);
        };
        let offset = (!after.is_start() && shared.client.lists_pages())
            .then(|| offset(&start, &after))
            .flatten();
        let is_first = after.is_start();
        let mut listing = RemoteListing {
            shared: Arc::clone(shared),
            prefix: prefix.clone(),
            start,
            after,
            entries: VecDeque::new(),
            next: NextPage::None,
            detail,
            prefix_meta,
            names: is_first.then(HashSet::new),
            begun: Instant::now(),
            has_kept: false,
            empty_since: None,
        };
        listing.request(None, offset);
        listing.take_page()?;
        if is_first && listing.entries.is_empty() && matches!(listing.next, NextPage::None) {
            return Ok(prefix.is_root().then_some(listing));
        }
        Ok(Some(listing))
    }

    /// Requests the page that follows `token` or `offset`.
    fn request(&mut self, token: Option<String>, offset: Option<String>) {
        let (send, receive) = mpsc::sync_channel(1);
        let (shared, start) = (Arc::clone(&self.shared), self.start.clone());
        self.shared.runtime.spawn(async move {
            let request = PageRequest {
                start,
                token,
                offset,
                most: None,
            };
            let page = shared.page(request).await;
            // The receiver is gone if the listing was closed.
            let _ = send.send(page);
        });
        self.next = NextPage::Requested(receive);
    }

    /// Waits for the page that was requested, and requests the one after it.
    fn take_page(&mut self) -> Result<(), StoreError> {
        let NextPage::Requested(page) = std::mem::replace(&mut self.next, NextPage::None) else {
            return Ok(());
        };
        let ended = || Failure::transient("the requests to the remote store have ended");
        let page = page.recv().map_err(|_| ended()).and_then(|page| page);
        let page = page.map_err(|failure| self.error(failure))?;
        if let Some(token) = page.token.clone() {
            self.request(Some(token), None);
        }
        self.begun = self.begun.min(page.asked);
        self.has_kept |= page.is_kept;
        let has_names = self.add(page);
        if matches!(self.next, NextPage::None) {
            self.tell_absences();
        } else if has_names {
            self.empty_since = None;
        } else {
            let since = *self.empty_since.get_or_insert_with(Instant::now);
            if since.elapsed() >= self.shared.client.deadline {
                return Err(self.error(no_end()));
            }
        }
        Ok(())
    }

    /// Notes that all names were listed, so that keys with other names are absent.
    fn tell_absences(&mut self) {
        if !self.shared.client.lists_pages() {
            return;
        }
        if let Some(names) = self.names.take() {
            let listed = ListedNames {
                checked: self.begun,
                answered: Instant::now(),
                after: Vec::new(),
                last: None,
                names,
                is_kept: self.has_kept,
            };
            self.shared
                .remembered
                .absences
                .put_all(&self.prefix, listed);
        }
    }

    fn error(&self, failure: Failure) -> StoreError {
        let key = self.prefix.to_string();
        match failure {
            Failure::Denied(reason) | Failure::Refused(reason) | Failure::Unusable(reason) => {
                StoreError::Unlisted { key, reason }
            }
            failure => {
                let key = self.prefix.to_key();
                let key = key.or_else(|| Key::parse(b"STORE").ok());
                key.map_or_else(
                    || StoreError::problem("STORE", "its names cannot be listed"),
                    |key| failure.into_error(&key, false),
                )
            }
        }
    }

    /// Adds the entries of a page, in the order of their keys, and remembers their versions. Returns whether the page has
    /// entries, which may all be left out.
    fn add(&mut self, page: Page) -> bool {
        let (checked, is_kept) = (page.asked, page.is_kept);
        let mut entries = Vec::new();
        for prefix in page.names.common_prefixes {
            if let Some(name) = self.name_of(prefix.as_ref()) {
                let meta = Some(self.prefix_meta);
                entries.push(entry(name, EntryKind::Prefix, meta));
            }
        }
        for object in page.names.objects {
            let Some(name) = self.name_of(object.location.as_ref()) else {
                continue;
            };
            if is_marker(name, object.size) {
                continue;
            }
            let found = self.shared.client.pinned(&object, page.date);
            entries.push(entry(name, EntryKind::Object, Some(found.meta)));
            if let Ok(key) = self.prefix.key(name.as_bytes()) {
                self.shared.put_listed(&key, (checked, is_kept), found);
            }
        }
        let has_entries = !entries.is_empty();
        if has_entries {
            self.shared.remembered.put_prefix(&self.prefix, checked);
        }
        if let Some(names) = &mut self.names {
            names.extend(entries.iter().map(|entry| entry.name.clone()));
            if names.len() > MOST_NAMES {
                self.names = None;
            }
        }
        entries.sort_unstable_by(|a, b| a.cursor.as_bytes().cmp(b.cursor.as_bytes()));
        let after = self.after.as_bytes();
        entries.retain(|entry| after.is_empty() || entry.cursor.as_bytes() > after);
        self.entries.extend(entries);
        has_entries
    }

    /// The name of the entry at `path` of the bucket; `None` if the path is not one level below the
    /// prefix, such as a marker of the prefix itself.
    fn name_of<'p>(&self, path: &'p str) -> Option<&'p str> {
        let name = path.strip_prefix(&*self.start)?;
        (!name.is_empty() && !name.contains(['/', '\0'])).then_some(name)
    }
}

fn entry(name: &str, kind: EntryKind, meta: Option<ObjectMeta>) -> ListEntry {
    ListEntry {
        cursor: Cursor::after(name.as_bytes(), kind == EntryKind::Prefix),
        name: name.as_bytes().to_vec(),
        kind,
        meta,
    }
}

/// Whether an object only marks a directory, as some programs leave them.
fn is_marker(name: &str, size_bytes: u64) -> bool {
    size_bytes == 0 && name.ends_with("_$folder$")
}

/// The key of the bucket after which a listing resumes.
fn offset(start: &str, after: &Cursor) -> Option<String> {
    let name = std::str::from_utf8(after.as_bytes()).ok()?;
    let is_prefix = name.ends_with('/');
    let last = is_prefix.then_some(LAST_CHARACTER);
    Some(start.chars().chain(name.chars()).chain(last).collect())
}

impl Listing for RemoteListing {
    fn next_entry(&mut self) -> Result<Option<ListEntry>, StoreError> {
        loop {
            if let Some(mut entry) = self.entries.pop_front() {
                if self.detail == Detail::Names {
                    entry.meta = None;
                }
                return Ok(Some(entry));
            }
            if matches!(self.next, NextPage::None) {
                return Ok(None);
            }
            self.take_page()?;
        }
    }

    fn ask_for(&mut self, detail: Detail) {
        self.detail = detail;
    }
}

/// Attributes that all prefixes have.
pub(super) fn attributes_of_prefixes() -> ObjectMeta {
    prefix_attributes(std::time::SystemTime::now())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::pages::tests::{EmptyPages, listed_by};
    use super::*;
    use crate::store::Store;

    #[test]
    fn pages_without_names_are_passed_over_for_a_while() {
        for (count, is_endless) in [(3, false), (usize::MAX, true)] {
            let timeout = Duration::from_millis(if is_endless { 200 } else { 60_000 });
            let prefixes = &["a/b"];
            let store = listed_by(EmptyPages { count, prefixes }, timeout);
            let prefix = Key::parse(b"a").unwrap().to_prefix();
            let listing = store.list(&prefix, Cursor::START, Detail::Names);
            let found = listing.unwrap().unwrap().next_entry();
            assert_eq!(found.is_err(), is_endless);
            if let Ok(found) = found {
                assert_eq!(found.unwrap().name, b"b");
            }
        }
    }
}
