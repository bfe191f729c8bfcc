//! Observations: what was looked at in the store, and what was found.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::time::SystemTime;

use crate::store::{Access, Key, ObjectMeta, Prefix, Store, StoreError, Version};

/// What was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Subject {
    /// An object, which may be absent.
    Object(Key),
    /// A directory, whose version changes when names in it are added or removed.
    Directory(Prefix),
    /// A directory of which only owner and mode matter, because they decide who can reach the
    /// objects below it.
    Passage(Prefix),
}

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Observed {
    /// `None` where only owner and mode matter.
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

    /// What the attributes of what it names say of it.
    fn observed(&self, found: &ObjectMeta) -> Observed {
        match self {
            Subject::Object(_) | Subject::Directory(_) => Observed::from(found),
            Subject::Passage(_) => Observed::passage(found.access()),
        }
    }
}

/// What was looked at, and what was found there; `None` where there was nothing.
#[derive(Debug, Clone, Default)]
pub struct Observations {
    found: HashMap<Subject, Option<Observed>>,
    /// Whether equal observations prove nothing: one of them is younger than the grain of file
    /// times, so that it could change without a new version, or something was not observed.
    is_unsettled: bool,
    /// Whether a subject was found in two versions, so that what was made may mix them.
    is_torn: bool,
}

impl Observations {
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

    /// Adds all of `others`.
    pub fn add_all(&mut self, others: &Observations) {
        self.is_unsettled |= others.is_unsettled;
        self.is_torn |= others.is_torn;
        for (subject, found) in &others.found {
            self.insert(subject.clone(), *found);
        }
    }

    /// Those of them that are not among `others`.
    #[must_use]
    pub fn apart_from<'o>(
        &self,
        others: impl IntoIterator<Item = &'o Observations>,
    ) -> Observations {
        let mut left = self.clone();
        for other in others {
            left.found
                .retain(|subject, _| !other.found.contains_key(subject));
        }
        left
    }

    /// What was made also depends on something that is not among the observations, so that they
    /// prove nothing.
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

    /// Whether a later change of what was made shows in them.
    pub fn are_settled(&self) -> bool {
        !self.is_unsettled && !self.is_torn
    }

    /// Whether the store still shows the same; never where something was found in two versions.
    /// `ask` is called once with all subjects, and returns what is found there now, in order.
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
        let (subjects, found): (Vec<&Subject>, Vec<&Option<Observed>>) = self.found.iter().unzip();
        Ok(ask(&subjects)?.iter().eq(found))
    }

    /// All that was looked at.
    pub fn subjects(&self) -> impl Iterator<Item = &Subject> {
        self.found.keys()
    }

    /// The prefixes of all subjects, and of the directories that they are in.
    pub fn prefixes(&self) -> HashSet<Prefix> {
        self.found.keys().map(Subject::prefix).collect()
    }

    /// An estimate of their memory.
    pub fn memory_bytes(&self) -> u64 {
        const ENTRY: u64 = 256;
        self.found.len() as u64 * ENTRY
    }

    /// A hash of the subjects and what was found, valid within this process.
    pub fn fingerprint(&self) -> u64 {
        let hash = |entry: (&Subject, &Option<Observed>)| {
            let mut hasher = DefaultHasher::new();
            entry.hash(&mut hasher);
            hasher.finish()
        };
        // The sum does not depend on the order of the entries.
        self.found.iter().map(hash).fold(1, u64::wrapping_add)
    }
}

/// What `store` shows of `subjects` now, in order. All are asked for at once.
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
