//! Opens stored objects. Many readers of a shard share one descriptor, and a version is not used
//! before it is old enough to be trusted.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Instant, SystemTime};

use lru::LruCache;

use super::opening::Opening;
use crate::counters::LoadCounters;
use crate::fresh::{DirectoryAccess, Freshness, LastCheck, Observed, Subject, look};
use crate::store::{
    Access, FetchBuffer, FetchRequest, Fetched, FirstRead, Key, Object, ObjectMeta, Prefix,
    ReadRight, Stat, Store, StoreError, Version, descriptor_limit,
};

/// Most descriptors that are kept after their last reader. Shards are few, and each has many
/// chunks.
const MOST_KEPT_OPEN: usize = 64;

/// Most descriptors that are kept for a store that is slow to answer, where opening an object again costs more than a
/// descriptor.
const MOST_KEPT_FAR: usize = 4096;

/// The number of all descriptors of the process, divided by this, is the most that may be kept.
const KEPT_PART: u64 = 4;

/// Opens stored objects and keeps some of them open.
#[derive(Debug)]
pub struct Sources {
    store: Arc<dyn Store>,
    freshness: Freshness,
    counters: Arc<LoadCounters>,
    kept: Mutex<LruCache<Key, Arc<dyn Object>>>,
    opening: Opening,
    /// Owners and modes of the directories above objects. `None` if only the user of the daemon
    /// has access to the mount, because the kernel checks that user's permissions in the store.
    directory_access: Option<DirectoryAccess>,
}

impl Sources {
    /// Sources of `store`.
    pub fn new(
        store: Arc<dyn Store>,
        freshness: Freshness,
        counters: Arc<LoadCounters>,
    ) -> Sources {
        let most = if store.profile().is_local {
            MOST_KEPT_OPEN
        } else {
            MOST_KEPT_FAR
        };
        let most_kept = most_kept_open(descriptor_limit(), most);
        Sources {
            store,
            freshness,
            counters,
            kept: Mutex::new(LruCache::new(most_kept)),
            opening: Opening::default(),
            directory_access: None,
        }
    }

    /// Checks permissions for a mount that other users have access to.
    #[must_use]
    pub fn for_others(self) -> Sources {
        Sources {
            directory_access: Some(DirectoryAccess::new(self.freshness)),
            ..self
        }
    }

    /// The rule that says when the store is asked again.
    pub fn freshness(&self) -> Freshness {
        self.freshness
    }

    /// The right to read an object with these attributes; `None` if permissions are not checked.
    pub fn object_right(&self, meta: &ObjectMeta) -> Option<ReadRight> {
        let right = ReadRight::of_object(meta.access());
        self.checks_permissions().then_some(right)
    }

    /// Whether permissions are checked, because other users have access to the mount.
    pub fn checks_permissions(&self) -> bool {
        self.directory_access.is_some()
    }

    /// Whether all opened objects are kept for later callers. That is so where nothing changes and the store is not
    /// local, so that opening an object again would cost a request.
    pub(super) fn keeps_all(&self) -> bool {
        self.freshness.is_immutable() && !self.store.profile().is_local
    }

    /// The store that objects are opened in.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The current attributes of the object at `key`; `None` when it is absent.
    ///
    /// # Errors
    /// Those of [`Store::stat`]; [`StoreError::NotAnObject`] when `key` is a prefix.
    pub fn stat(&self, key: &Key) -> Result<Option<ObjectMeta>, StoreError> {
        if let Some(known) = self.known(key) {
            return Ok(known);
        }
        self.store.stat_object(key)
    }

    /// Like [`Sources::stat`] for each of `keys`, in one request where the store supports that.
    pub fn stat_many(&self, keys: &[Key]) -> Vec<Result<Option<ObjectMeta>, StoreError>> {
        self.store.stat_objects(keys)
    }

    /// The current attributes of a prefix; `None` when there is no such prefix. If prefixes have no attributes of their
    /// own, this makes no request.
    ///
    /// # Errors
    /// Those of [`Store::stat`].
    pub fn stat_prefix(&self, prefix: &Prefix) -> Result<Option<ObjectMeta>, StoreError> {
        match prefix.to_key() {
            Some(key) if self.store.profile().has_directories => {
                Ok(prefix_meta(self.store.stat(&key)?.as_ref()))
            }
            _ => self.store.stat_root().map(Some),
        }
    }

    /// Like [`Sources::stat_prefix`] for each of `prefixes`, in one request where the store supports
    /// that.
    ///
    /// # Errors
    /// The first error, as of [`Store::stat`].
    pub fn stat_prefixes(
        &self,
        prefixes: &[Prefix],
    ) -> Result<Vec<Option<ObjectMeta>>, StoreError> {
        if !self.store.profile().has_directories {
            let root = self.store.stat_root()?;
            return Ok(vec![Some(root); prefixes.len()]);
        }
        let keys: Vec<Key> = prefixes.iter().filter_map(Prefix::to_key).collect();
        let mut found = self.store.stat_many(&keys).into_iter();
        let mut next = |prefix: &Prefix| {
            let Some(key) = prefix.to_key() else {
                return self.store.stat_root().map(Some);
            };
            let stat = found.next().unwrap_or_else(|| self.store.stat(&key));
            stat.map(|stat| prefix_meta(stat.as_ref()))
        };
        prefixes.iter().map(&mut next).collect()
    }

    /// Owner and mode of a directory, which may be remembered from an earlier call; `None` if
    /// there is no such directory, or where permissions are not checked. This is for the
    /// directories above many objects.
    ///
    /// # Errors
    /// Those of [`Store::stat`].
    pub fn directory_access(&self, prefix: &Prefix) -> Result<Option<Access>, StoreError> {
        let found = self.observe(&[&Subject::Passage(prefix.clone())])?;
        let found = found.into_iter().next().flatten();
        Ok(found.map(|found| found.access))
    }

    /// The store's current observations of `subjects`, in order. They are made by one request if the store supports
    /// that. Owners and modes of directories may be remembered from an earlier call; they are `None` if permissions are
    /// not checked.
    ///
    /// # Errors
    /// The first error, as of [`Store::stat`].
    pub fn observe(&self, subjects: &[&Subject]) -> Result<Vec<Option<Observed>>, StoreError> {
        let begun = LastCheck::now();
        let (mut now, mut asked) = (vec![None; subjects.len()], Vec::new());
        for (subject, now) in subjects.iter().zip(&mut now) {
            let remembered = match (subject, &self.directory_access) {
                (Subject::Passage(_), None) => Some(None),
                (Subject::Passage(prefix), Some(known)) => known.get(prefix),
                (Subject::Object(_) | Subject::Directory(_), _) => None,
            };
            match remembered {
                Some(access) => *now = access.map(Observed::passage),
                None => asked.push((*subject, now)),
            }
        }
        let asked_for: Vec<&Subject> = asked.iter().map(|(subject, _)| *subject).collect();
        let found = look(&*self.store, &asked_for);
        for ((subject, now), found) in asked.into_iter().zip(found) {
            *now = found?;
            if let (Subject::Passage(prefix), Some(known)) = (subject, &self.directory_access) {
                known.put(prefix, begun.clone(), now.map(|now| now.access));
            }
        }
        Ok(now)
    }

    /// Like [`Sources::stat`], but waits until the version is settled, which is when it is older than
    /// the grain of the clock.
    ///
    /// # Errors
    /// Those of [`Sources::stat`]; [`StoreError::Changed`] when the object keeps changing.
    pub fn stat_settled(&self, key: &Key) -> Result<Option<ObjectMeta>, StoreError> {
        let Some(mut found) = self.stat(key)? else {
            return Ok(None);
        };
        let patience = Instant::now() + found.dating.patience();
        while let Some(wait) = self.freshness.settles_in(&found) {
            thread::sleep(wait);
            match self.stat(key)? {
                None => return Ok(None),
                Some(again) if again.version == found.version => return Ok(Some(again)),
                Some(_) if Instant::now() > patience => return Err(StoreError::changed(key)),
                Some(other) => found = other,
            }
        }
        Ok(Some(found))
    }

    /// The object at `key`, if that is known without a request to the store. The inner `None` means that it is absent.
    pub fn known(&self, key: &Key) -> Option<Option<ObjectMeta>> {
        if self.freshness.is_immutable()
            && let Some(object) = self.lock().get(key)
        {
            return Some(Some(*object.meta()));
        }
        self.store.known_object(key)
    }

    /// Opens the settled, current version of the object at `key`. A version that is younger than
    /// the grain of the clock is held open for that time, and must be unchanged then. `None` when
    /// the object is absent.
    ///
    /// # Errors
    /// Those of [`Store::open`]; [`StoreError::Changed`] when the object keeps changing.
    pub fn open(&self, key: &Key) -> Result<Option<Arc<dyn Object>>, StoreError> {
        self.open_by(|| self.store.open(key))
    }

    /// Like [`Sources::open`], for a version that may be younger, because the caller waits by itself.
    ///
    /// # Errors
    /// Those of [`Store::open`].
    pub fn open_young(&self, key: &Key) -> Result<Option<Arc<dyn Object>>, StoreError> {
        let object = self.with_descriptors(|| self.store.open(key))?;
        self.counters.fetches.add(u64::from(object.is_some()));
        Ok(object)
    }

    /// Like [`Sources::open`], with the request `open`.
    fn open_by(
        &self,
        mut open: impl FnMut() -> Result<Option<Arc<dyn Object>>, StoreError>,
    ) -> Result<Option<Arc<dyn Object>>, StoreError> {
        let begun = Instant::now();
        loop {
            let Some(object) = self.with_descriptors(&mut open)? else {
                return Ok(None);
            };
            if let Some(wait) = self.freshness.settles_in(object.meta()) {
                let patience = object.meta().dating.patience();
                thread::sleep(wait);
                // If the file was replaced meanwhile, its bytes are still there. If it was written to, they are lost.
                match object.verify() {
                    Err(StoreError::Changed { .. }) if begun.elapsed() < patience => continue,
                    checked => checked?,
                }
            }
            self.counters.fetches.add(1);
            return Ok(Some(object));
        }
    }

    /// Like [`Sources::open`], and reads all of an object of at most `most_bytes` into `buffer`. This
    /// is one request where the store supports that.
    ///
    /// # Errors
    /// Those of [`Sources::open`].
    pub fn fetch(
        &self,
        key: &Key,
        most_bytes: u64,
        buffer: &mut dyn FetchBuffer,
    ) -> Result<Option<Fetched>, StoreError> {
        let begun = SystemTime::now();
        let fetched = self.with_descriptors(|| self.store.fetch(key, most_bytes, buffer))?;
        self.trusted(key, fetched, begun)
    }

    /// [`Sources::fetch`] of each of `requests`, in their order, for a store that sends them concurrently
    /// ([`Store::fetches_at_once`]).
    pub(super) fn fetch_many(
        &self,
        requests: &mut [FetchRequest<'_>],
    ) -> Vec<Result<Option<Fetched>, StoreError>> {
        let begun = SystemTime::now();
        let fetched = self.store.fetch_many(requests);
        let each = requests.iter().zip(fetched);
        each.map(|(request, fetched)| self.trusted(request.key, fetched?, begun))
            .collect()
    }

    /// The result of a fetch that began at `begun`, or the object alone if it was too young then.
    fn trusted(
        &self,
        key: &Key,
        fetched: Option<Fetched>,
        begun: SystemTime,
    ) -> Result<Option<Fetched>, StoreError> {
        let Some(fetched) = fetched else {
            return Ok(None);
        };
        // The age counts from the time of the request, however long the answer took.
        let was_young =
            !self.freshness.is_immutable() && fetched.object.meta().settles_in(begun).is_some();
        if was_young {
            // A writer may not have finished writing the object when it was read.
            let object = self.open(key)?;
            let is_read = false;
            return Ok(object.map(|object| Fetched { object, is_read }));
        }
        self.counters.fetches.add(1);
        if self.keeps_all() {
            let replaced = self.lock().push(key.clone(), Arc::clone(&fetched.object));
            drop(replaced);
        }
        Ok(Some(fetched))
    }

    /// Calls `open`. Where no descriptor is left, this closes the objects that are only kept for
    /// later callers, and calls `open` again.
    fn with_descriptors<T>(
        &self,
        mut open: impl FnMut() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match open() {
            Err(error) if is_out_of_descriptors(&error) && self.gives_up_kept() => open(),
            opened => opened,
        }
    }

    /// Drops the objects that are only kept for later callers; `false` when there were none.
    fn gives_up_kept(&self) -> bool {
        let mut kept = self.lock();
        let given_up: Vec<_> = std::iter::from_fn(|| kept.pop_lru()).collect();
        drop(kept);
        // Closing a file is a system call, which must not happen under the lock.
        !given_up.is_empty()
    }

    /// Like [`Sources::open`], but callers that ask for the same version share one descriptor. This
    /// is for shards, which are opened again and again. `found` is the result of a
    /// [`Sources::stat`] just before, if there was one. The bytes `first` are read first.
    ///
    /// # Errors
    /// Those of [`Store::open`].
    pub fn open_shared(
        &self,
        key: &Key,
        found: Option<ObjectMeta>,
        first: FirstRead,
    ) -> Result<Option<Arc<dyn Object>>, StoreError> {
        if let Some(object) = self.kept_current(key, found)? {
            return Ok(Some(object));
        }
        let turn = self.opening.turn(key, &*self.store);
        let _turn = turn.wait();
        // Another caller may have opened the object meanwhile.
        if turn.is_shared()
            && let Some(object) = self.kept_current(key, None)?
        {
            return Ok(Some(object));
        }
        let object = self.open_by(|| self.store.open_reading(key, first))?;
        let mut kept = self.lock();
        let replaced = match &object {
            Some(object) => kept.push(key.clone(), Arc::clone(object)),
            None => kept.pop_entry(key),
        };
        drop(kept);
        // Closing a file is a system call, which must not happen under the lock.
        drop(replaced);
        Ok(object)
    }

    /// The object at `key` that is kept open, if it is the current version. `found` is that version,
    /// where it is known.
    fn kept_current(
        &self,
        key: &Key,
        found: Option<ObjectMeta>,
    ) -> Result<Option<Arc<dyn Object>>, StoreError> {
        let Some(object) = self.lock().get(key).cloned() else {
            return Ok(None);
        };
        let now = match found {
            Some(_) => found,
            None => self.stat(key)?,
        };
        // The owner and mode are shown to users, so they must be the current ones.
        let is_same = |now: ObjectMeta| {
            let kept = object.meta();
            // The change time shows whether the object was moved away and back meanwhile.
            now.version == kept.version
                && now.changed() == kept.changed()
                && now.access() == kept.access()
        };
        Ok(now.is_some_and(is_same).then_some(object))
    }

    /// The object at `key` in `version`. An object that is kept open is returned without a request
    /// to the store, else the current one is opened and kept, and the bytes `first` are read first.
    /// `None` when the current version is another one.
    ///
    /// # Errors
    /// Those of [`Store::open`].
    pub fn open_version(
        &self,
        key: &Key,
        version: Version,
        first: FirstRead,
    ) -> Result<Option<Arc<dyn Object>>, StoreError> {
        let is_asked = |object: &Arc<dyn Object>| object.meta().version == version;
        let kept = || self.lock().get(key).cloned().filter(is_asked);
        if let Some(object) = kept() {
            return Ok(Some(object));
        }
        let turn = self.opening.turn(key, &*self.store);
        let _turn = turn.wait();
        if let Some(object) = kept() {
            return Ok(Some(object));
        }
        let opened = self.open_by(|| self.store.open_reading(key, first))?;
        let Some(object) = opened.filter(is_asked) else {
            return Ok(None);
        };
        let replaced = self.lock().push(key.clone(), Arc::clone(&object));
        drop(replaced);
        Ok(Some(object))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, LruCache<Key, Arc<dyn Object>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The attributes of a prefix from `stat`; `None` when `stat` is that of an object.
fn prefix_meta(stat: Option<&Stat>) -> Option<ObjectMeta> {
    stat.and_then(Stat::prefix_meta)
}

fn is_out_of_descriptors(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Io {
            errno: Some(libc::EMFILE | libc::ENFILE),
            ..
        }
    )
}

/// The number of objects that a process may keep open if it may have `limit` descriptors; never
/// more than `most`.
fn most_kept_open(limit: Option<u64>, most: usize) -> NonZeroUsize {
    let part = limit.map_or(u64::MAX, |limit| limit / KEPT_PART);
    let part = usize::try_from(part).unwrap_or(usize::MAX);
    NonZeroUsize::new(part.min(most)).unwrap_or(NonZeroUsize::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Cursor, Detail, DirStore, Listing, MemoryStore, Profile, Symlinks};
    use std::time::Duration;

    /// A store whose objects take one descriptor each, where only two descriptors exist.
    #[derive(Debug)]
    struct Few {
        store: MemoryStore,
        descriptors: Arc<()>,
    }

    #[derive(Debug)]
    struct Open {
        object: Arc<dyn Object>,
        _descriptor: Arc<()>,
    }

    impl Object for Open {
        fn meta(&self) -> &ObjectMeta {
            self.object.meta()
        }

        fn read_at(&self, offset_bytes: u64, buf: &mut [u8]) -> Result<(), StoreError> {
            self.object.read_at(offset_bytes, buf)
        }

        fn verify(&self) -> Result<(), StoreError> {
            self.object.verify()
        }
    }

    impl Store for Few {
        fn stat(&self, key: &Key) -> Result<Option<Stat>, StoreError> {
            self.store.stat(key)
        }

        fn stat_root(&self) -> Result<ObjectMeta, StoreError> {
            self.store.stat_root()
        }

        fn open(&self, key: &Key) -> Result<Option<Arc<dyn Object>>, StoreError> {
            if Arc::strong_count(&self.descriptors) > 2 {
                let error = std::io::Error::from_raw_os_error(libc::EMFILE);
                return Err(StoreError::io(key, &error));
            }
            let opened = self.store.open(key)?.map(|object| Open {
                object,
                _descriptor: Arc::clone(&self.descriptors),
            });
            Ok(opened.map(|open| Arc::new(open) as Arc<dyn Object>))
        }

        fn list(
            &self,
            prefix: &Prefix,
            after: Cursor,
            detail: Detail,
        ) -> Result<Option<Box<dyn Listing>>, StoreError> {
            self.store.list(prefix, after, detail)
        }

        fn profile(&self) -> Profile {
            self.store.profile()
        }
    }

    #[test]
    fn descriptors_that_are_only_kept_are_given_up_when_none_is_left() {
        let key = |name: &str| Key::parse(name.as_bytes()).unwrap();
        let store = MemoryStore::new();
        for name in ["a", "b", "c", "d"] {
            store.insert(key(name), name.as_bytes().to_vec());
        }
        let descriptors = Arc::default();
        let few = Arc::new(Few { store, descriptors });
        let sources = Sources::new(few, Freshness::Immutable, Arc::default());
        let shared = |name: &str| sources.open_shared(&key(name), None, FirstRead::Start(0));
        for name in ["a", "b", "c", "d"] {
            assert!(shared(name).unwrap().is_some(), "{name}");
        }
        let held = [shared("a").unwrap(), shared("b").unwrap()];
        let refused = shared("c").unwrap_err();
        assert!(
            matches!(
                refused,
                StoreError::Io {
                    errno: Some(libc::EMFILE),
                    ..
                }
            ),
            "{refused}"
        );
        drop(held);
        assert!(shared("c").unwrap().is_some());
    }

    #[test]
    fn few_descriptors_are_kept_where_there_are_few() {
        for (limit, kept) in [
            (Some(0), 1),
            (Some(16), 4),
            (Some(64), 16),
            (Some(1024), 64),
            (None, 64),
        ] {
            assert_eq!(
                most_kept_open(limit, MOST_KEPT_OPEN).get(),
                kept,
                "{limit:?}"
            );
        }
    }

    /// A store whose requests take longer than the grain of the clock.
    #[derive(Debug)]
    struct Late(DirStore);

    impl Store for Late {
        fn stat(&self, key: &Key) -> Result<Option<Stat>, StoreError> {
            self.0.stat(key)
        }
        fn stat_root(&self) -> Result<ObjectMeta, StoreError> {
            self.0.stat_root()
        }
        fn open(&self, key: &Key) -> Result<Option<Arc<dyn Object>>, StoreError> {
            self.0.open(key)
        }
        fn fetch(
            &self,
            key: &Key,
            most_bytes: u64,
            buffer: &mut dyn FetchBuffer,
        ) -> Result<Option<Fetched>, StoreError> {
            let fetched = self.0.fetch(key, most_bytes, buffer);
            thread::sleep(Duration::from_millis(40));
            fetched
        }
        fn list(
            &self,
            prefix: &Prefix,
            after: Cursor,
            detail: Detail,
        ) -> Result<Option<Box<dyn Listing>>, StoreError> {
            self.0.list(prefix, after, detail)
        }
        fn profile(&self) -> Profile {
            self.0.profile()
        }
    }

    fn directory() -> (tempfile::TempDir, DirStore) {
        let directory = tempfile::tempdir().unwrap();
        let opened = DirStore::open(directory.path(), Symlinks::Inside);
        (directory, opened.unwrap())
    }

    #[test]
    fn an_object_that_was_young_when_it_was_read_is_not_trusted() {
        let (directory, store) = directory();
        let sources = Sources::new(
            Arc::new(Late(store)),
            Freshness::Checked(Duration::ZERO),
            Arc::default(),
        );
        std::fs::write(directory.path().join("a"), b"one").unwrap();
        let mut buffer = Vec::new();
        let fetched = sources.fetch(&Key::parse(b"a").unwrap(), 100, &mut buffer);
        assert!(!fetched.unwrap().unwrap().is_read);
    }

    #[test]
    fn a_kept_object_has_the_current_time_of_change() {
        let (directory, store) = directory();
        let sources = Sources::new(
            Arc::new(store),
            Freshness::Checked(Duration::ZERO),
            Arc::default(),
        );
        let (here, away) = (directory.path().join("a"), directory.path().join("b"));
        std::fs::write(&here, b"one").unwrap();
        let key = Key::parse(b"a").unwrap();
        drop(
            sources
                .open_shared(&key, None, FirstRead::Start(0))
                .unwrap(),
        );
        thread::sleep(Duration::from_millis(50));
        std::fs::rename(&here, &away).unwrap();
        std::fs::rename(&away, &here).unwrap();
        let now = sources.stat(&key).unwrap().unwrap().times.ctime;
        let opened = sources
            .open_shared(&key, None, FirstRead::Start(0))
            .unwrap()
            .unwrap();
        assert_eq!(opened.meta().times.ctime, now);
    }
}
