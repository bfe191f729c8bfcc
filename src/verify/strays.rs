//! Strays: keys of a store that belong to no node. They are keys beside documents, directories without a document, and the
//! chunks of arrays whose document is missing.

use std::ops::ControlFlow;

use super::finding::{Finding, Found, Severity};
use super::ignored::Ignored;
use crate::hierarchy::{Hierarchy, Node};
use crate::metadata::{DocumentName, index_of, n5};
use crate::store::{
    Cursor, Detail, EntryKind, JOURNAL_DIRECTORY, Key, ListEntry, OWN_DIRECTORY, Prefix, StatKind,
    may_be_store_file,
};

/// The most names of a directory that are looked at for a chunk.
const MOST_NAMES: usize = 100;
/// The most directories, one in another, that are looked into for a chunk.
const MOST_LEVELS: usize = 64;

const STRAY: &str = "no chunk, and no document; readers ignore it";

const OWN: &str = "files of a mount with --rw; readers ignore them";
const JOURNAL: &str = "the journal of a mount with --rw, with changes that are not in their objects yet; that mount \
     saves them, or, if it was killed, the next one, or zarr-mount --recover";

/// The search for strays, along a walk over all nodes. A directory is reported by one of its keys, and is listed only as far
/// as it takes to find this key.
pub(super) struct Strays<'h> {
    hierarchy: &'h Hierarchy,
    /// The directories that have keys and no document.
    directories: Ignored,
    /// The path that was reported last. The report covers everything below it.
    reported: Option<Prefix>,
}

impl<'h> Strays<'h> {
    pub(super) fn new(hierarchy: &'h Hierarchy) -> Strays<'h> {
        Strays {
            hierarchy,
            directories: Ignored::default(),
            reported: None,
        }
    }

    /// Leaves out what is below `path`, because it was reported with `path` itself.
    pub(super) fn leave_out(&mut self, path: &Prefix) {
        if !self.is_left_out(path) {
            self.reported = Some(path.clone());
        }
    }

    /// Reports the keys beside the documents of the group at `path`, and documents of another node there than the one of
    /// which `own` is the document.
    pub(super) fn look_beside_documents(
        &self,
        path: &Prefix,
        own: Option<&Key>,
        found: &Found<'_>,
    ) {
        let mut strays = Ignored::default();
        self.visit(path, usize::MAX, |entry| {
            if entry.kind == EntryKind::Prefix {
                return ControlFlow::Continue(());
            }
            if let Ok(key) = path.key(&entry.name) {
                if !is_document(&entry.name) {
                    strays.add(path, &key, &STRAY, found);
                } else if let Some(own) = own.filter(|own| is_of_another_node(&key, own)) {
                    found(second_document(path, &key, own));
                }
            }
            ControlFlow::Continue(())
        });
        strays.end(path, &format!("keys: {STRAY}"), found);
    }

    /// Reports the directory at `path`, which has no document, if it has keys. An array whose document is missing is damage
    /// if it `is_selected`.
    pub(super) fn look_without_document(
        &mut self,
        path: &Prefix,
        is_selected: &dyn Fn(&Prefix) -> bool,
        found: &Found<'_>,
    ) {
        if self.is_left_out(path) {
            return;
        }
        if path.to_key().is_some_and(|key| key.name() == OWN_DIRECTORY) {
            return self.look_into_own(path, found);
        }
        if let Some(key) = self.chunk_below(path) {
            self.leave_out(path);
            if is_selected(path) {
                let problem =
                    format!("{path}: it has chunks, such as {key}, and no document of an array");
                found(Finding::new(Severity::Damage, path, problem));
            }
        } else if let Some(key) = self.first_key(path) {
            let what = format!("keys, such as {key}, and no document; readers ignore them");
            self.directories.add(path, path, &what, found);
        }
    }

    /// Reports the directory at `path`, which is that of a mount with `--rw`, if it has keys.
    fn look_into_own(&mut self, path: &Prefix, found: &Found<'_>) {
        self.leave_out(path);
        let journal = path.key(JOURNAL_DIRECTORY).map(|key| key.to_prefix());
        if let Ok(journal) = journal
            && self.first_key(&journal).is_some()
        {
            self.directories.add(path, &journal, &JOURNAL, found);
        } else if self.first_key(path).is_some() {
            self.directories.add(path, path, &OWN, found);
        }
    }

    /// Reports how many directories were not named.
    pub(super) fn end(&self, start: &Prefix, found: &Found<'_>) {
        let what = "directories with keys and without a document; readers ignore them";
        self.directories.end(start, what, found);
    }

    fn is_left_out(&self, path: &Prefix) -> bool {
        let reported = self.reported.as_ref();
        reported.is_some_and(|above| above.strip(path.as_bytes()).is_some())
    }

    /// A key below `path`, which has no document, that looks like one of a chunk of an array there.
    fn chunk_below(&self, path: &Prefix) -> Option<Key> {
        let mut directory = path.clone();
        for level in 0..MOST_LEVELS {
            let (mut chunk, mut below, mut lone) = (None, None, None);
            let mut n_names = 0;
            self.visit(&directory, MOST_NAMES, |entry| {
                let is_first = || level == 0 && entry.name == b"c";
                n_names += 1;
                match entry.kind {
                    EntryKind::Object if is_chunk_name(&entry.name) => {
                        chunk = directory.key(&entry.name).ok();
                        return ControlFlow::Break(());
                    }
                    EntryKind::Prefix if index_of(&entry.name).is_some() || is_first() => {
                        below = below.take().or_else(|| directory.key(&entry.name).ok());
                    }
                    // The one chunk of an array of v3 without dimensions.
                    EntryKind::Object if is_first() => lone = directory.key(&entry.name).ok(),
                    _ => {}
                }
                ControlFlow::Continue(())
            });
            // A file that is called `c` need not be a chunk. But if it is the only name in its directory, it probably is one.
            let chunk = chunk.or(lone.filter(|_| n_names == 1));
            if chunk.is_some() {
                return chunk;
            }
            directory = below?.to_prefix();
            // Groups have numbers for names, too.
            if !matches!(self.hierarchy.node(&directory), Ok(Node::Implicit)) {
                return None;
            }
        }
        None
    }

    /// A key in the directory at `path` that is neither a store of its own, nor perhaps attributes of N5.
    fn first_key(&self, path: &Prefix) -> Option<Key> {
        let mut first = None;
        self.visit(path, usize::MAX, |entry| {
            let Ok(key) = path.key(&entry.name) else {
                return ControlFlow::Continue(());
            };
            let is_ignored = entry.kind == EntryKind::Prefix
                || entry.name == n5::DOCUMENT.as_bytes()
                || may_be_store_file(&entry.name) && self.is_store(&key);
            if is_ignored {
                return ControlFlow::Continue(());
            }
            first = Some(key);
            ControlFlow::Break(())
        });
        first
    }

    fn is_store(&self, key: &Key) -> bool {
        let stat = self.hierarchy.store().stat(key);
        stat.is_ok_and(|stat| {
            stat.is_some_and(|stat| stat.kind == StatKind::Prefix || stat.below.is_some())
        })
    }

    /// Passes the first `most` entries of the directory at `path` to `visit`, until that breaks. The walk reports the error
    /// of a directory that cannot be listed.
    fn visit(
        &self,
        path: &Prefix,
        most: usize,
        mut visit: impl FnMut(ListEntry) -> ControlFlow<()>,
    ) {
        let listing = self
            .hierarchy
            .store()
            .list(path, Cursor::START, Detail::Names);
        let Ok(Some(mut listing)) = listing else {
            return;
        };
        for _ in 0..most {
            let Ok(Some(entry)) = listing.next_entry() else {
                return;
            };
            if visit(entry).is_break() {
                return;
            }
        }
    }
}

/// Whether there is a document at `key` that makes a node, beside `own`.
pub(super) fn is_of_another_node(key: &Key, own: &Key) -> bool {
    let makes_node = matches!(
        DocumentName::of(key.name()),
        Some(DocumentName::ZarrJson | DocumentName::ZArray | DocumentName::ZGroup)
    );
    makes_node && key != own && key.parent() == own.parent()
}

/// The note about a second document, at `key`, of the node at `path`, which was read from `own`.
pub(super) fn second_document(path: &Prefix, key: &Key, own: &Key) -> Finding {
    let problem = format!(
        "{key}: a second document of this node, which was read from {own}; other readers may take this one"
    );
    Finding::new(Severity::Note, path, problem)
}

/// Whether a file of this name is a document, or that of attributes.
fn is_document(name: &[u8]) -> bool {
    DocumentName::of(name).is_some() || name == n5::DOCUMENT.as_bytes()
}

/// Whether `name` looks like the last part of the key of a chunk: `0`, `0.1`, `c.0.1`.
fn is_chunk_name(name: &[u8]) -> bool {
    let indices = name.strip_prefix(b"c.").unwrap_or(name);
    let mut indices = indices.split(|&byte| byte == b'.');
    indices.all(|index| index_of(index).is_some())
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::budget::Budget;
    use crate::fresh::Freshness;
    use crate::store::{MemoryStore, Store};

    const ARRAY: &str = r#"{"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "<i4"}"#;

    /// The findings about the directories at `paths`, which have no document.
    fn reported(objects: &[&str], paths: &[&str]) -> Vec<(Severity, String)> {
        let store = Arc::new(MemoryStore::new());
        for key in objects {
            let text = if key.ends_with(".zarray") { ARRAY } else { "x" };
            store.insert(Key::parse(key.as_bytes()).unwrap(), text);
        }
        let shared: Arc<dyn Store> = store;
        let hierarchy = Hierarchy::new(shared, Budget::new(1 << 20), Freshness::Immutable);
        let found = Mutex::new(Vec::new());
        let note = |finding: Finding| {
            let mut found = found.lock().unwrap();
            found.push((finding.severity, finding.problem));
        };
        let mut strays = Strays::new(&hierarchy);
        for path in paths {
            let path = Prefix::parse(path.as_bytes()).unwrap();
            strays.look_without_document(&path, &|_| true, &note);
        }
        found.into_inner().unwrap()
    }

    #[test]
    fn chunks_without_a_document_are_damage_and_other_keys_are_a_note() {
        for key in ["a/c/0/1", "a/c.0.1", "a/0.1", "a/0", "a/3/0/12", "a/c"] {
            let found = reported(&[key], &["a"]);
            let problem = format!("a: it has chunks, such as {key}, and no document of an array");
            assert_eq!(found, [(Severity::Damage, problem)]);
        }
        for key in ["a/readme", "a/0x", "a/.zattrs", "a/c.x", "a/.1"] {
            let found = reported(&[key], &["a"]);
            let problem = format!("a: keys, such as {key}, and no document; readers ignore them");
            assert_eq!(found, [(Severity::Note, problem)]);
        }
    }

    #[test]
    fn directories_that_lead_to_nodes_are_no_finding() {
        for objects in [
            &["a/0/.zarray", "a/0/0"][..],
            &["a/b/.zarray", "a/b/0"],
            &["a/c/x/readme"],
            &["a/attributes.json"],
        ] {
            assert_eq!(reported(objects, &["a"]), []);
        }
        // A program in C, and no array without dimensions.
        let found = reported(&["a/c", "a/h"], &["a"]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, Severity::Note, "{found:?}");
    }

    #[test]
    fn the_journal_of_a_mount_is_named_once_as_what_it_is() {
        let paths = [".zarr-mount", ".zarr-mount/journal"];
        for (key, expected) in [
            (
                ".zarr-mount/journal/1f",
                ".zarr-mount/journal: the journal of",
            ),
            (".zarr-mount/1f.tmp", ".zarr-mount: files of"),
        ] {
            let found = reported(&[key], &paths);
            assert_eq!(found.len(), 1, "{found:?}");
            assert_eq!(found[0].0, Severity::Note);
            assert!(found[0].1.starts_with(expected), "{found:?}");
        }
        assert_eq!(reported(&["a/.zarray"], &paths), []);
    }

    #[test]
    fn a_missing_document_is_reported_once() {
        let objects = ["a/c/0/1", "a/c/1/0", "a/c/1/readme", "b/readme"];
        let found = reported(&objects, &["a", "a/c", "a/c/0", "a/c/1", "b"]);
        let severities: Vec<_> = found.iter().map(|(severity, _)| *severity).collect();
        assert_eq!(severities, [Severity::Damage, Severity::Note], "{found:?}");
    }
}
