//! Scripts of changes, and the contents that the keys had meanwhile.

use std::fs;
use std::os::unix::fs::FileExt;

use rustix::fs::RenameFlags;

use super::disk::Chance;
use super::history::History;
use crate::store::dir::writer::calls::recorded;
use crate::store::dir::writer::calls::{fdatasync, renameat_with};
use crate::store::dir::writer::tests::{Fixture, NEW, fixture_in, key};
use crate::store::dir::writer::{Commit, Durability, Key, Prefix, RenameMode, Replaces, Version};

/// The keys that scripts change. The directory of the last one is missing at first.
pub(super) const KEYS: [&str; 3] = ["a/c/0", "a/c/1", "a/d/0"];

/// A script that is done step by step.
pub(super) struct Script {
    pub(super) fixture: Fixture,
    pub(super) chance: Chance,
    pub(super) histories: [History; 3],
    n_texts: usize,
    /// Versions that the keys had at some time.
    versions: [Option<Version>; 3],
}

impl Script {
    pub(super) fn new(seed: u64, durability: Durability) -> Script {
        Script {
            fixture: fixture_in(super::folder(), durability),
            chance: Chance(seed),
            histories: [(); 3].map(|()| History::of(None)),
            n_texts: 0,
            versions: [None; 3],
        }
    }

    fn text(&mut self) -> Vec<u8> {
        self.n_texts += 1;
        format!("<{}>", self.n_texts).repeat(4).into_bytes()
    }

    fn durability(&self) -> Durability {
        self.fixture.writer.durability()
    }

    /// Notes that the key has `bytes` since the changes that began after `begun` calls.
    fn has(&mut self, number: usize, begun: usize, bytes: Option<Vec<u8>>) {
        let is_synced = bytes.is_none() || self.durability() != Durability::Never;
        self.histories[number].add(begun, bytes);
        self.histories[number].has_synced_bytes = is_synced;
    }

    pub(super) fn step(&mut self) {
        let number = self.chance.below(KEYS.len());
        let key = key(KEYS[number]);
        let begun = recorded::count();
        match self.chance.below(13) {
            0..=5 => self.commit(number, &key, begun),
            6 => {
                if self.fixture.writer.unlink(&key).is_ok() {
                    self.has(number, begun, None);
                }
            }
            7 => self.erase_version(number, &key, begun),
            8 => self.rename((number, &key), begun),
            9 => self.sync(number, &key),
            10 => {
                if self.fixture.writer.sync_names(&key.parent()).is_ok() {
                    let parent = key.parent();
                    for (other, name) in KEYS.iter().enumerate() {
                        if self::key(name).parent() == parent {
                            self.histories[other].sync();
                        }
                    }
                }
            }
            11 => {
                self.fixture.writer.sync_below(&Prefix::root()).unwrap();
                for history in &mut self.histories {
                    history.has_synced_bytes = true;
                    history.sync();
                }
            }
            _ => self.outsider(number, &key, begun),
        }
    }

    /// A version that the key has or had.
    fn version(&mut self, number: usize, key: &Key) -> Option<Version> {
        let now = self
            .fixture
            .writer
            .stat(key)
            .unwrap()
            .map(|meta| meta.version);
        let old = self.versions[number];
        self.versions[number] = now.or(old);
        if self.chance.below(3) == 0 { old } else { now }
    }

    fn commit(&mut self, number: usize, key: &Key, begun: usize) {
        let text = self.text();
        let writer = &self.fixture.writer;
        let old = writer.open_object(key, false).unwrap();
        let mut draft = match (self.chance.below(4), &old) {
            (0, Some(old)) => writer.begin_like(key, old),
            (1, Some(old)) => writer.begin_copy(key, old),
            (2, _) => writer.begin_near(key, NEW),
            _ => {
                writer.make_parents(key).unwrap();
                writer.begin(key, NEW)
            }
        }
        .unwrap();
        draft.file().set_len(0).unwrap();
        draft.file().write_all_at(&text, 0).unwrap();
        writer.make_parents(key).unwrap();
        let replaces = match self.chance.below(3) {
            0 => Replaces::Nothing,
            1 => Replaces::Anything,
            _ => match self.version(number, key) {
                Some(version) => Replaces::Version(version),
                None => Replaces::Nothing,
            },
        };
        match self
            .fixture
            .writer
            .commit(key, &mut draft, replaces)
            .unwrap()
        {
            Commit::Done(_) => {
                self.has(number, begun, Some(text));
                self.sync_closed(number, key);
            }
            // The draft may have had the key for a moment, before it was found to replace the wrong
            // object.
            Commit::Conflict => self.had_for_a_moment(number, begun, Some(text)),
        }
    }

    fn sync_closed(&mut self, number: usize, key: &Key) {
        self.fixture.writer.sync_closed(key).unwrap();
        if self.durability() == Durability::Close {
            self.histories[number].sync();
        }
    }

    fn had_for_a_moment(&mut self, number: usize, begun: usize, bytes: Option<Vec<u8>>) {
        let now = self.histories[number].now().map(<[u8]>::to_vec);
        let is_synced = self.histories[number].has_synced_bytes;
        self.has(number, begun, bytes);
        self.has(number, begun, now);
        self.histories[number].has_synced_bytes = is_synced;
    }

    fn erase_version(&mut self, number: usize, key: &Key, begun: usize) {
        let Some(version) = self.version(number, key) else {
            return;
        };
        match self.fixture.writer.erase_version(key, version) {
            Ok(true) => {
                self.has(number, begun, None);
                self.sync_closed(number, key);
            }
            Ok(false) => self.had_for_a_moment(number, begun, None),
            Err(_) => {}
        }
    }

    fn rename(&mut self, (from, old): (usize, &Key), begun: usize) {
        let to = (from + 1 + self.chance.below(KEYS.len() - 1)) % KEYS.len();
        let mode = [RenameMode::Replace, RenameMode::Keep][self.chance.below(2)];
        if self
            .fixture
            .writer
            .rename(old, &key(KEYS[to]), mode)
            .is_ok()
        {
            let moved = self.histories[from].now().map(<[u8]>::to_vec);
            let is_synced = self.histories[from].has_synced_bytes;
            self.has(from, begun, None);
            self.has(to, begun, moved);
            self.histories[to].has_synced_bytes = is_synced;
        }
    }

    fn sync(&mut self, number: usize, key: &Key) {
        let writer = &self.fixture.writer;
        if let Some(stored) = writer.open_object(key, false).unwrap() {
            writer.sync(key, &stored.file).unwrap();
            self.histories[number].has_synced_bytes = true;
        }
    }

    /// Another program replaces the object, and makes it survive.
    fn outsider(&mut self, number: usize, key: &Key, begun: usize) {
        let text = self.text();
        let Ok(parent) = self.fixture.writer.parent(key) else {
            return;
        };
        let path = self.fixture.path.join(KEYS[number]);
        let beside = path.with_file_name("beside");
        fs::write(&beside, &text).unwrap();
        fdatasync(fs::File::open(&beside).unwrap()).unwrap();
        let flags = RenameFlags::empty();
        renameat_with(&parent, "beside", &parent, key.name(), flags).unwrap();
        self.has(number, begun, Some(text));
        self.histories[number].has_synced_bytes = true;
        if self.fixture.writer.sync_names(&key.parent()).is_ok() {
            self.histories[number].sync();
        }
    }
}
