//! Observations: the parts of the store that were examined, and the results.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::SystemTime;

use crate::store::{Access, Key, ObjectMeta, Prefix, Store, StoreError, Version};

/// The part of the store that was examined.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Subject {
    /// An object, which may be absent.
    Object(Key),
    /// A directory, whose version changes when names in it are added or removed.
    Directory(Prefix),
    /// A directory whose owner and mode alone matter, because they decide which users can reach the objects below it.
    Passage(Prefix),
}

/// The result of an examination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Observed {
    /// `None` if only owner and mode matter.
    pub version: Option<Version>,
    /// Owner and mode, which files that are made from the object show.
    pub access: Access,
}

impl From<&ObjectMeta> for Observed {
    fn from(meta: &ObjectMeta) -> Observed {
        Observed {
            version: Some(meta.version),
            access: meta.access(),
        }
    }
}

impl Observed {
    /// Only owner and mode.
    pub fn passage(access: Access) -> Observed {
        Observed {
            version: None,
            access,
        }
    }
}

impl Subject {
    /// The prefix of a directory, or the one that an object is in.
    pub fn prefix(&self) -> Prefix {
        match self {
            Subject::Object(key) => key.parent(),
            Subject::Directory(prefix) | Subject::Passage(prefix) => prefix.clone(),
        }
    }

    /// The property of the attributes `found` that counts for this subject.
    fn observed(&self, found: &ObjectMeta) -> Observed {
        match self {
            Subject::Object(_) | Subject::Directory(_) => Observed::from(found),
            Subject::Passage(_) => Observed::passage(found.access()),
        }
    }
}

/// Subjects that were examined, with the results; `None` for a subject that does not exist.
#[derive(Debug, Clone, Default)]
pub struct Observations {
    found: HashMap<Subject, Option<Observed>>,
    /// Observations that other values share, by their addresses.
    shared: HashMap<usize, Arc<Shared>>,
    /// Whether equal observations prove nothing: one of them is younger than the grain of file
    /// times, so that it could change without a new version, or something was not observed.
    is_unsettled: bool,
    /// Whether a subject was found in two versions, so that the result may mix them.
    is_torn: bool,
}

/// Observations that many others contain.
#[derive(Debug)]
struct Shared {
    found: HashMap<Subject, Option<Observed>>,
    /// The hash of each observation.
    hashes: Vec<u64>,
}

impl Observations {
    /// The same observations behind a shared reference, so that they need not be copied when they are added to others.
    #[must_use]
    pub fn shared(mut self) -> Observations {
        let found = std::mem::take(&mut self.found);
        let hashes = found.iter().map(hash_of).collect();
        let shared = Arc::new(Shared { found, hashes });
        self.shared.insert(Arc::as_ptr(&shared).addr(), shared);
        self
    }

    /// The observations that are not [shared](Observations::shared).
    #[must_use]
    pub fn unshared(&self) -> Observations {
        Observations {
            found: self.found.clone(),
            shared: HashMap::new(),
            ..*self
        }
    }

    /// Adds an object that was examined. An observation of an object that was read has to be added
    /// after it was read, so that a later change is noticed.
    pub fn add_object(&mut self, key: &Key, meta: Option<&ObjectMeta>) {
        self.add_meta(Subject::Object(key.clone()), meta);
    }

    /// Adds a directory, whose version changes when names in it are added or removed.
    pub fn add_directory(&mut self, prefix: &Prefix, meta: Option<&ObjectMeta>) {
        self.add_meta(Subject::Directory(prefix.clone()), meta);
    }

    /// Adds a directory of which only owner and mode matter.
    pub fn add_passage(&mut self, prefix: &Prefix, access: Option<Access>) {
        let subject = Subject::Passage(prefix.clone());
        self.insert(subject, access.map(Observed::passage));
    }

    /// Adds all of `others`. If a subject was found in two versions and one of them is shared,
    /// [`Observations::are_unchanged`] notices it later.
    pub fn add_all(&mut self, others: &Observations) {
        self.is_unsettled |= others.is_unsettled;
        self.is_torn |= others.is_torn;
        for (subject, found) in &others.found {
            self.insert(subject.clone(), *found);
        }
        let shared = others.shared.iter();
        self.shared
            .extend(shared.map(|(&at, shared)| (at, Arc::clone(shared))));
    }

    /// Notes that the result also depends on something that is not among the observations, so that they prove nothing.
    pub fn add_unobserved(&mut self) {
        self.is_unsettled = true;
    }

    fn add_meta(&mut self, subject: Subject, meta: Option<&ObjectMeta>) {
        let young = |meta: &ObjectMeta| meta.settles_in(SystemTime::now()).is_some();
        self.is_unsettled |= meta.is_some_and(young);
        self.insert(subject, meta.map(Observed::from));
    }

    fn insert(&mut self, subject: Subject, found: Option<Observed>) {
        let first = *self.found.entry(subject).or_insert(found);
        self.is_torn |= first != found;
    }

    /// Whether a later change of an input would show in them.
    pub fn are_settled(&self) -> bool {
        !self.is_unsettled && !self.is_torn
    }

    /// Whether the observations still hold; never if a subject was found in two versions. `ask` is called once
    /// with all subjects, and returns the current observations, in order.
    ///
    /// # Errors
    /// Those of `ask`.
    pub fn are_unchanged(
        &self,
        ask: impl FnOnce(&[&Subject]) -> Result<Vec<Option<Observed>>, StoreError>,
    ) -> Result<bool, StoreError> {
        if self.is_torn {
            return Ok(false);
        }
        let (subjects, found): (Vec<&Subject>, Vec<&Option<Observed>>) = if self.shared.is_empty() {
            self.found.iter().unzip()
        } else {
            let mut all = HashMap::new();
            for (subject, found) in self.entries() {
                if *all.entry(subject).or_insert(found) != found {
                    return Ok(false);
                }
            }
            all.into_iter().unzip()
        };
        Ok(ask(&subjects)?.iter().eq(found))
    }

    /// All subjects that were examined, with the results. A subject may be among several that are shared.
    fn entries(&self) -> impl Iterator<Item = (&Subject, &Option<Observed>)> {
        let shared = self.shared.values().flat_map(|shared| &shared.found);
        self.found.iter().chain(shared)
    }

    /// All subjects that were examined. A subject may be among several that are shared.
    pub fn subjects(&self) -> impl Iterator<Item = &Subject> {
        self.entries().map(|(subject, _)| subject)
    }

    /// The prefixes of all subjects, and of the directories that they are in.
    pub fn prefixes(&self) -> HashSet<Prefix> {
        self.subjects().map(Subject::prefix).collect()
    }

    /// An estimate of their memory, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        const ENTRY: u64 = 256;
        self.entries().count() as u64 * ENTRY
    }

    /// A hash of the subjects and the results, valid within this process.
    pub fn fingerprint(&self) -> u64 {
        let mut hashes: Vec<u64> = self.found.iter().map(hash_of).collect();
        hashes.extend(self.shared.values().flat_map(|shared| &shared.hashes));
        // It depends neither on their order nor on which of them are shared.
        hashes.sort_unstable();
        hashes.dedup();
        hashes.into_iter().fold(1, u64::wrapping_add)
    }
}

fn hash_of(entry: (&Subject, &Option<Observed>)) -> u64 {
    let mut hasher = DefaultHasher::new();
    entry.hash(&mut hasher);
    hasher.finish()
}

/// The current observations of `subjects` in `store`, in order. All of them are requested at once.
pub fn look(store: &dyn Store, subjects: &[&Subject]) -> Vec<Result<Option<Observed>, StoreError>> {
    let has_directories = store.profile().has_directories;
    let (mut objects, mut directories) = (Vec::new(), Vec::new());
    for subject in subjects {
        match subject {
            Subject::Object(key) => objects.push(key.clone()),
            Subject::Directory(prefix) | Subject::Passage(prefix) if has_directories => {
                directories.extend(prefix.to_key());
            }
            Subject::Directory(_) | Subject::Passage(_) => {}
        }
    }
    let mut objects = store.stat_objects(&objects).into_iter();
    let mut directories = store.stat_many(&directories).into_iter();
    let mut found = |subject: &Subject| match subject {
        Subject::Object(_) => match objects.next() {
            // A directory in the place of an object counts as its absence.
            Some(Err(StoreError::NotAnObject { .. })) | None => Ok(None),
            Some(found) => Ok(found?.as_ref().map(Observed::from)),
        },
        Subject::Directory(prefix) | Subject::Passage(prefix) => {
            let meta = if prefix.is_root() || !has_directories {
                Some(store.stat_root()?)
            } else {
                let found = directories.next().unwrap_or(Ok(None));
                found?.and_then(|found| found.prefix_meta())
            };
            Ok(meta.map(|meta| subject.observed(&meta)))
        }
    };
    subjects.iter().map(|subject| found(subject)).collect()
}
