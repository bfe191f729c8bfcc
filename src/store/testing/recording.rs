//! A recording of the calls to a store.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::call::{Call, CallKind};
use super::layer::Layer;
use crate::store::StoreError;

/// Records calls in the order in which they began.
#[derive(Debug, Default)]
pub struct Recording {
    calls: Mutex<Vec<Call>>,
    /// How many of the calls were sent together with one before them.
    beside_others: AtomicUsize,
    /// The file that requests are written to instead, one line each.
    file: Option<File>,
}

impl Recording {
    /// Records nothing in memory, and appends each request to the file at `path` as a line.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn to_file(path: &Path) -> io::Result<Recording> {
        let file = File::options().append(true).create(true).open(path)?;
        Ok(Recording {
            file: Some(file),
            ..Recording::default()
        })
    }

    /// All calls so far.
    pub fn calls(&self) -> Vec<Call> {
        self.lock().clone()
    }

    /// How many calls of this kind there were.
    pub fn count(&self, kind: CallKind) -> usize {
        self.lock().iter().filter(|call| call.kind == kind).count()
    }

    /// How many of the calls are requests to a remote store.
    pub fn requests(&self) -> usize {
        self.lock().iter().filter(|call| call.is_request()).count()
    }

    /// How many round trips the requests of one thread took: those that are sent concurrently
    /// count as one.
    pub fn round_trips(&self) -> usize {
        let beside_others = self.beside_others.load(Ordering::Relaxed);
        self.requests().saturating_sub(beside_others)
    }

    /// Forgets the calls so far.
    pub fn clear(&self) {
        self.beside_others.store(0, Ordering::Relaxed);
        self.lock().clear();
    }

    fn record(&self, call: &Call) {
        let Some(mut file) = self.file.as_ref() else {
            self.lock().push(call.clone());
            return;
        };
        // One write for each line, so that lines of several threads do not mix.
        let line = format!("{call}\n");
        if call.is_request()
            && let Err(error) = file.write_all(line.as_bytes())
        {
            log::error!("{call}: not recorded: {error}");
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Call>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Layer for Recording {
    fn around<T>(
        &self,
        call: &Call,
        ask: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.record(call);
        ask()
    }

    fn concurrent(&self, calls: usize) {
        let others = calls.saturating_sub(1);
        self.beside_others.fetch_add(others, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::wrap;
    use super::*;
    use crate::store::{Cursor, Detail, Key, Listing, MemoryStore, Prefix, ReadRange, Store};

    fn key(name: &str) -> Key {
        Key::parse(name.as_bytes()).unwrap()
    }

    fn store(count: usize) -> Arc<dyn Store> {
        let store = MemoryStore::new();
        for number in 0..count {
            store.insert(key(&format!("a/{number}")), b"0123456789".to_vec());
        }
        Arc::new(store)
    }

    fn lines(recording: &Recording) -> Vec<String> {
        recording.calls().iter().map(Call::to_string).collect()
    }

    /// Asks for everything once.
    fn ask(store: &dyn Store) {
        store.stat_root().unwrap();
        store.stat_many(&[key("a/0"), key("x")]);
        let object = store.open(&key("a/0")).unwrap().unwrap();
        object.meta();
        object.read_at(2, &mut [0; 3]).unwrap();
        object.read_at(2, &mut []).unwrap();
        let (mut first, mut last) = ([0; 1], [0; 2]);
        object
            .read_ranges(&mut [
                ReadRange {
                    offset_bytes: 0,
                    buf: &mut first,
                },
                ReadRange {
                    offset_bytes: 8,
                    buf: &mut last,
                },
            ])
            .unwrap();
        assert_eq!((&first, &last), (b"0", b"89"));
        object.verify().unwrap();
        let mut buffer = Vec::new();
        let fetched = store.fetch(&key("a/0"), 10, &mut buffer).unwrap().unwrap();
        assert!(fetched.is_read && buffer == b"0123456789");
        fetched.object.verify().unwrap();
    }

    const ASKED: [&str; 10] = [
        "stat /",
        "stat a/0",
        "stat x",
        "open a/0",
        "read a/0 2..5",
        "read a/0 2..2",
        "read a/0 0..1 8..10",
        "verify a/0",
        "fetch a/0 0..10",
        "verify a/0",
    ];

    #[test]
    fn every_call_is_remembered_and_requests_are_counted() {
        let recording = Arc::new(Recording::default());
        ask(&*wrap(store(1), &recording));
        assert_eq!(lines(&recording), ASKED);
        assert_eq!(
            (recording.count(CallKind::Read), recording.requests()),
            (3, 9)
        );
        recording.clear();
        assert!(recording.calls().is_empty());
    }

    #[test]
    fn requests_are_lines_of_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("requests");
        let recording = Arc::new(Recording::to_file(&path).unwrap());
        ask(&*wrap(store(1), &recording));
        let written = std::fs::read_to_string(path).unwrap();
        let expected = ASKED.iter().filter(|line| **line != "read a/0 2..2");
        assert!(written.lines().eq(expected.copied()), "{written}");
    }

    #[test]
    fn each_page_of_a_listing_is_a_request() {
        for (count, expected) in [(1, 1), (1000, 1), (1001, 2), (2000, 2), (2001, 3)] {
            let recording = Arc::new(Recording::default());
            let store = wrap(store(count), &recording);
            let prefix = Prefix::parse(b"a").unwrap();
            let listing = store.list(&prefix, Cursor::START, Detail::Names);
            let mut listing: Box<dyn Listing> = listing.unwrap().unwrap();
            let entries = std::iter::from_fn(|| listing.next_entry().unwrap());
            assert_eq!(entries.count(), count);
            assert_eq!(recording.requests(), expected, "{count} entries");
        }
    }
}
