//! Notes of changes that a loss of power may undo: changed names in directories and changed bytes of files that were
//! not synced since.
//!
//! A program that syncs a directory, or the whole store, expects files that were closed before to survive too. Most
//! changes are not synced when they are made, so each of them is noted here.

use std::collections::HashMap;
use std::fs::File;
use std::hash::Hash;

use parking_lot::Mutex;
use rustix::fs::{FileType, OFlags, syncfs};
use rustix::io::Errno;

use super::calls::{fdatasync, fsync};
use super::{DirWriter, FileStat, failed, fstat};
use crate::store::{Key, Prefix, StoreError};

/// The most directories, and the most files, that are noted. Beyond that, the whole file system is synced.
const MOST_NOTES: usize = 4096;

/// The number of a note. Later notes have higher numbers.
type Stamp = u64;

/// The notes of changes that were not synced.
#[derive(Debug, Default)]
pub(super) struct Unsynced(Mutex<Notes>);

#[derive(Debug, Default)]
struct Notes {
    /// Directories in which names were changed.
    directories: HashMap<Prefix, Stamp>,
    /// Files of which bytes were changed.
    files: HashMap<Key, Stamp>,
    /// The last note that was not kept, because there were too many.
    left_out: Option<Stamp>,
    last: Stamp,
}

/// The files and directories that have to be synced.
struct Left {
    files: Vec<Key>,
    directories: Vec<Prefix>,
    /// Whether some changes have no note.
    is_too_much: bool,
}

impl Unsynced {
    /// Notes that the name `key` was made, removed, or given to another object.
    pub(super) fn note_name(&self, key: &Key) {
        self.note(&key.parent(), |notes| &mut notes.directories);
    }

    /// Notes that bytes of the object at `key` were changed.
    pub(super) fn note_bytes(&self, key: &Key) {
        self.note(key, |notes| &mut notes.files);
    }

    /// Makes a note in one of the maps, or notes that it has no room for one more.
    fn note<K: Hash + Eq + Clone>(
        &self,
        key: &K,
        map: impl FnOnce(&mut Notes) -> &mut HashMap<K, Stamp>,
    ) {
        let notes = &mut *self.0.lock();
        notes.last += 1;
        let stamp = notes.last;
        let map = map(notes);
        if let Some(noted) = map.get_mut(key) {
            *noted = stamp;
        } else if map.len() < MOST_NOTES {
            map.insert(key.clone(), stamp);
        } else {
            notes.left_out = Some(stamp);
        }
    }

    /// Runs `rename`, which renames `from` to `to` and returns whether that is a directory. The notes have the new
    /// names before another thread finds that the old ones are gone.
    pub(super) fn renamed<E>(
        &self,
        (from, to): (&Key, &Key),
        rename: impl FnOnce() -> Result<bool, E>,
    ) -> Result<(), E> {
        let mut notes = self.0.lock();
        let is_directory = rename()?;
        if is_directory {
            move_all(&mut notes.directories, |path| path.moved(from, to));
            move_all(&mut notes.files, |key| key.moved(from, to));
        } else if let Some(stamp) = notes.files.remove(from) {
            notes.files.insert(to.clone(), stamp);
        }
        drop(notes);
        self.note_name(from);
        self.note_name(to);
        Ok(())
    }

    /// Notes that the object at `from` has the second name `to`.
    pub(super) fn note_link(&self, from: &Key, to: &Key) {
        self.note_name(to);
        let is_noted = self.0.lock().files.contains_key(from);
        if is_noted {
            self.note_bytes(to);
        }
    }

    /// The files and directories at and below `prefix` that have a note of up to `last`, without the directory
    /// `prefix` itself.
    fn left_below(&self, prefix: &Prefix, last: Stamp) -> Left {
        let is_below = |path: &[u8]| prefix.as_bytes() == path || prefix.strip(path).is_some();
        let notes = self.0.lock();
        let files = (notes.files.iter()).filter(|(_, stamp)| **stamp <= last);
        let files = files
            .map(|(key, _)| key)
            .filter(|key| is_below(key.as_bytes()));
        let directories = (notes.directories.iter()).filter(|(_, stamp)| **stamp <= last);
        let directories = directories.map(|(path, _)| path);
        let directories = directories.filter(|path| *path != prefix && is_below(path.as_bytes()));
        Left {
            files: files.cloned().collect(),
            directories: directories.cloned().collect(),
            is_too_much: notes.left_out.is_some(),
        }
    }

    fn stamp_of_directory(&self, path: &Prefix) -> Option<Stamp> {
        self.0.lock().directories.get(path).copied()
    }

    /// Notes that the names in the directory were synced when its note had this stamp.
    fn synced_directory(&self, path: &Prefix, stamp: Option<Stamp>) {
        remove(&mut self.0.lock().directories, path, stamp);
    }
}

/// Removes a note, unless it was made anew since it had this stamp.
fn remove<K: Hash + Eq>(notes: &mut HashMap<K, Stamp>, key: &K, stamp: Option<Stamp>) {
    if stamp.is_some() && notes.get(key).copied() == stamp {
        notes.remove(key);
    }
}

/// Moves notes to other keys, where `moved` returns one.
fn move_all<K: Hash + Eq>(notes: &mut HashMap<K, Stamp>, moved: impl Fn(&K) -> Option<K>) {
    let renamed: Vec<_> = notes
        .iter()
        .filter_map(|(key, stamp)| Some((moved(key)?, *stamp)))
        .collect();
    notes.retain(|key, _| moved(key).is_none());
    notes.extend(renamed);
}

impl DirWriter {
    /// Makes the bytes of the object at `key`, which is open as `file`, survive a loss of power.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn sync(&self, key: &Key, file: &File) -> Result<(), StoreError> {
        let stamp = self.unsynced.0.lock().files.get(key).copied();
        fdatasync(file).map_err(|errno| failed(key, errno))?;
        remove(&mut self.unsynced.0.lock().files, key, stamp);
        Ok(())
    }

    /// Makes the names in `prefix` and in the directories above it survive a loss of power. If `prefix` does not exist,
    /// its absence survives, because the directories above it are synced.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn sync_names(&self, prefix: &Prefix) -> Result<(), StoreError> {
        for directory in prefix.with_ancestors() {
            self.sync_directory(&directory)?;
        }
        Ok(())
    }

    /// Makes the names in one directory survive a loss of power. A missing directory has no names.
    fn sync_directory(&self, path: &Prefix) -> Result<(), StoreError> {
        let stamp = self.unsynced.stamp_of_directory(path);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        match self.root()?.open_unlinked(path, flags).and_then(fsync) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if !path.is_root() => {}
            synced => synced.map_err(|errno| failed(path, errno))?,
        }
        self.unsynced.synced_directory(path, stamp);
        Ok(())
    }

    /// Makes all that was changed at and below `prefix`, and its name, survive a loss of power.
    ///
    /// # Errors
    /// [`StoreError::Io`]: the first error, after all were tried.
    pub fn sync_below(&self, prefix: &Prefix) -> Result<(), StoreError> {
        const ROUNDS: usize = 8;
        let last = self.unsynced.0.lock().last;
        // A file that is renamed meanwhile has its new name in the next round.
        for _ in 0..ROUNDS {
            let left = self.unsynced.left_below(prefix, last);
            if left.is_too_much {
                break;
            }
            if left.files.is_empty() && left.directories.is_empty() {
                return self.sync_names(prefix);
            }
            if !self.sync_left(&left)? {
                break;
            }
        }
        self.sync_file_system()
    }

    /// Syncs the remaining changes; `false` if a file cannot be opened.
    fn sync_left(&self, left: &Left) -> Result<bool, StoreError> {
        let mut result = Ok(true);
        let files = left.files.iter().map(|key| self.sync_closed_file(key));
        let directories = left
            .directories
            .iter()
            .map(|path| self.sync_directory(path));
        for synced in files.chain(directories) {
            result = match (result, synced) {
                (Ok(_), Err(error)) if error.is_of_rights() => Ok(false),
                (Ok(all), Ok(())) => Ok(all),
                (Ok(_), Err(error)) => Err(error),
                (failed, _) => failed,
            };
        }
        result
    }

    /// Makes the bytes of the object at `key` survive a loss of power, where that is a file.
    fn sync_closed_file(&self, key: &Key) -> Result<(), StoreError> {
        let stamp = self.unsynced.0.lock().files.get(key).copied();
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let found = self.root()?.open_unlinked(&key.to_prefix(), flags);
        let is_file =
            |stat: FileStat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        match found {
            Ok(found) if fstat(&found).is_ok_and(is_file) => self.sync(key, &found.into()),
            // The file does not exist any more; its directory is synced.
            Ok(_) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO) => {
                remove(&mut self.unsynced.0.lock().files, key, stamp);
                Ok(())
            }
            Err(errno) => Err(failed(key, errno)),
        }
    }

    /// Makes all that the file system of the store has survive a loss of power.
    fn sync_file_system(&self) -> Result<(), StoreError> {
        let last = self.unsynced.0.lock().last;
        let root = Prefix::root();
        let opened = (self.root()?).open_unlinked(&root, OFlags::RDONLY | OFlags::DIRECTORY);
        let synced = opened.and_then(syncfs);
        synced.map_err(|errno| failed(&root, errno))?;
        let notes = &mut *self.unsynced.0.lock();
        notes.files.retain(|_, stamp| *stamp > last);
        notes.directories.retain(|_, stamp| *stamp > last);
        notes.left_out.take_if(|stamp| *stamp <= last);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Key {
        Key::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn changes_during_a_sync_stay_noted() {
        let unsynced = Unsynced::default();
        let directory = key("a/0").parent();
        unsynced.note_name(&key("a/0"));
        let stamp = unsynced.stamp_of_directory(&directory);
        unsynced.note_name(&key("a/1"));
        unsynced.synced_directory(&directory, stamp);
        let again = unsynced.stamp_of_directory(&directory);
        assert!(again > stamp);
        unsynced.synced_directory(&directory, again);
        assert_eq!(unsynced.stamp_of_directory(&directory), None);
    }

    #[test]
    fn notes_follow_a_directory_that_is_renamed() {
        let unsynced = Unsynced::default();
        unsynced.note_name(&key("a/c/0"));
        unsynced.note_bytes(&key("a/c/0"));
        unsynced.note_name(&key("a-1/0"));
        let renamed = |from, to, is_directory| {
            let done: Result<(), ()> =
                unsynced.renamed((&key(from), &key(to)), || Ok(is_directory));
            done.unwrap();
        };
        renamed("a", "g/b", true);
        unsynced.note_bytes(&key("a-1/0"));
        renamed("a-1/0", "a-1/1", false);
        let notes = unsynced.0.lock();
        let mut directories: Vec<_> = notes.directories.keys().map(Prefix::to_text).collect();
        directories.sort();
        assert_eq!(directories, ["/", "a-1", "g", "g/b/c"]);
        let mut files: Vec<_> = notes.files.keys().map(Key::to_text).collect();
        files.sort();
        assert_eq!(files, ["a-1/1", "g/b/c/0"]);
    }

    #[test]
    fn changes_without_a_note_are_known_to_be_left_out() {
        let unsynced = Unsynced::default();
        for number in 0..=MOST_NOTES {
            assert_eq!(unsynced.0.lock().left_out, None);
            unsynced.note_bytes(&key(&number.to_string()));
        }
        let notes = unsynced.0.lock();
        assert_eq!(notes.left_out, Some(notes.last));
        assert_eq!(notes.files.len(), MOST_NOTES);
    }
}
