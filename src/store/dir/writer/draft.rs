//! New bytes of an object, before they have its name.

use std::fs::{File, FileTimes};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use super::attributes::end_set_id;
use super::copy::copy_range;
use super::names::name_file;
use super::replace::Replaced;
use super::temporary::TemporaryName;
use super::{
    DirWriter, Durability, Errno, FileStat, Key, Mode, NewFile, OFlags, OwnedFd, Prefix,
    StoreError, StoredFile, Version, failed, fdatasync, fstat, give, openat,
};
use rustix::fs::{
    FileType, MemfdFlags, XattrFlags, fgetxattr, flistxattr, fsetxattr, memfd_create,
};

/// The most bytes of the names of extended attributes, and of the value of one, that are copied: the
/// limit of Linux.
const MOST_XATTR_BYTES: usize = 64 << 10;

/// The most attempts of a commit while names change.
const ATTEMPTS: usize = 8;

/// A file that has no name, or a name that no reader looks for.
#[derive(Debug)]
pub struct Draft {
    file: Arc<File>,
    /// `None` while the file has no name.
    name: Option<TemporaryName>,
    /// Whether it ever had a name.
    was_named: bool,
    /// Whether its times were set by its writer.
    has_times: bool,
    /// The version of the file since it got a time that no other file has.
    dated: Option<Version>,
}

/// The object that a draft replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replaces {
    /// The key must be absent.
    Nothing,
    /// The object must have this version.
    Version(Version),
    /// Any object, or none.
    Anything,
}

/// The result of a commit.
#[derive(Debug)]
pub enum Commit {
    /// The draft is the object now.
    Done(StoredFile),
    /// The key had another object than the one that the draft was to replace, and still has it.
    Conflict,
}

impl Draft {
    fn new(file: File, name: Option<TemporaryName>) -> Draft {
        Draft {
            file: Arc::new(file),
            was_named: name.is_some(),
            name,
            has_times: false,
            dated: None,
        }
    }

    /// The file with the new bytes.
    pub fn file(&self) -> &Arc<File> {
        &self.file
    }

    /// Writes `bytes` to the draft, which is empty. Errors are about `key`.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn fill(&self, key: &dyn std::fmt::Display, bytes: &[u8]) -> Result<(), StoreError> {
        let written = self.file.write_all_at(bytes, 0);
        written.map_err(|error| StoreError::io(key, &error))
    }

    /// Notes that the times of the file were set by its writer, and stay.
    pub fn keep_times(&mut self) {
        self.has_times = true;
    }
}

impl DirWriter {
    /// Makes an empty draft of a new object at `key`.
    ///
    /// # Errors
    /// [`StoreError::Io`], with `ENOENT` when the directory of `key` is missing.
    pub fn begin(&self, key: &Key, new: NewFile) -> Result<Draft, StoreError> {
        self.begin_in(&self.parent_of_new(key)?, key, new)
    }

    /// Like [`DirWriter::begin`], for an object whose directory may be missing. The draft is then in
    /// the nearest directory above.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn begin_near(&self, key: &Key, new: NewFile) -> Result<Draft, StoreError> {
        self.begin_in(&self.nearest_parent(key)?, key, new)
    }

    /// Like [`DirWriter::begin_near`], for a file that is committed only as a part of an object. It is in
    /// the staging directory, if there is one.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn begin_part(&self, key: &Key, new: NewFile) -> Result<Draft, StoreError> {
        let Some(staging) = &self.staging else {
            return self.begin_near(key, new);
        };
        let draft = self.nameless_in(key, staging.fd())?;
        give(key, &self.nearest_parent(key)?, &*draft.file, new)?;
        Ok(draft)
    }

    /// Like [`DirWriter::begin_part`], in memory.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn begin_in_memory(&self, key: &Key, new: NewFile) -> Result<Draft, StoreError> {
        let made = memfd_create("zarr-mount draft", MemfdFlags::CLOEXEC);
        let file = File::from(made.map_err(|errno| failed(key, errno))?);
        give(key, &self.nearest_parent(key)?, &file, new)?;
        Ok(Draft::new(file, None))
    }

    fn begin_in(&self, parent: &OwnedFd, key: &Key, new: NewFile) -> Result<Draft, StoreError> {
        let draft = self.nameless(key, parent)?;
        give(key, parent, &*draft.file, new)?;
        Ok(draft)
    }

    /// An empty draft that belongs to no object.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn begin_apart(&self, name: &dyn std::fmt::Display) -> Result<Draft, StoreError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let root = self.root()?.open_unlinked(&Prefix::root(), flags);
        self.nameless(name, &root.map_err(|errno| failed(name, errno))?)
    }

    /// An empty draft with the mode after a write, the owner, the access list and the `user.*` attributes of the
    /// object `old`, which it is to replace.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn begin_like(&self, key: &Key, old: &StoredFile) -> Result<Draft, StoreError> {
        let draft = self.nameless(key, &self.nearest_parent(key)?)?;
        let copied = || -> Result<(), Errno> {
            self.give_like(key, &old.file, &draft.file)?;
            copy_user_attributes(&old.file, &draft.file)
        };
        copied().map_err(|errno| failed(key, errno))?;
        Ok(draft)
    }

    /// A draft with all bytes of `old`.
    ///
    /// # Errors
    /// [`StoreError::Io`]; [`StoreError::Changed`] when `old` was written to meanwhile.
    pub fn begin_copy(&self, key: &Key, old: &StoredFile) -> Result<Draft, StoreError> {
        let draft = self.begin_like(key, old)?;
        match copy_range((&*old.file, 0), (&draft.file, 0), old.meta.size()) {
            // `old` was cut off meanwhile, which shows in its version.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {}
            copied => copied.map_err(|error| StoreError::io(key, &error))?,
        }
        if self.meta_of(key, &old.file)?.version != old.meta.version {
            return Err(StoreError::changed(key));
        }
        Ok(draft)
    }

    fn nameless(&self, key: &dyn std::fmt::Display, parent: &OwnedFd) -> Result<Draft, StoreError> {
        if self.calls.nameless {
            return self.nameless_in(key, parent);
        }
        self.named()
    }

    /// An empty draft in the directory `parent`, which may be on another file system than the store.
    fn nameless_in(
        &self,
        key: &dyn std::fmt::Display,
        parent: &OwnedFd,
    ) -> Result<Draft, StoreError> {
        let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
        match openat(parent, ".", flags, Mode::RUSR | Mode::WUSR) {
            Ok(fd) => Ok(Draft::new(fd.into(), None)),
            // Some file systems lack files without a name.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => self.named(),
            Err(errno) => Err(failed(key, errno)),
        }
    }

    fn named(&self) -> Result<Draft, StoreError> {
        let (name, fd) = self.temporaries.create(self.root()?)?;
        Ok(Draft::new(fd.into(), Some(name)))
    }

    /// Makes `draft` the object at `key`, in place of the object that `replaces` names. For [`Durability::Close`], the
    /// caller then calls [`DirWriter::sync_closed`].
    ///
    /// # Errors
    /// [`StoreError::Io`]. The store is then as it was, and the commit may be tried again.
    pub fn commit(
        &self,
        key: &Key,
        draft: &mut Draft,
        replaces: Replaces,
    ) -> Result<Commit, StoreError> {
        let parent = self.parent(key)?;
        // A file cannot get another name after another program has removed its only one.
        if draft.was_named && draft.name.is_none() {
            return Ok(Commit::Conflict);
        }
        self.date(key, draft)?;
        if self.durability != Durability::Never {
            fdatasync(&draft.file).map_err(|errno| failed(key, errno))?;
        }
        let _lock = self.lock(&parent, key)?;
        for _ in 0..ATTEMPTS {
            if !matches!(replaces, Replaces::Version(_)) {
                match self.place_new(&parent, key, draft) {
                    Ok(()) => return self.done(key, draft),
                    Err(Errno::EXIST) if replaces == Replaces::Nothing => {
                        return Ok(Commit::Conflict);
                    }
                    Err(Errno::EXIST) => {}
                    Err(errno) => return Err(failed(key, errno)),
                }
            }
            let name = if let Some(name) = &draft.name {
                name
            } else {
                let name = self.temporaries.link(self.root()?, &draft.file)?;
                draft.was_named = true;
                draft.name.insert(name)
            };
            match self.replace((name, &draft.file), (&parent, key), replaces)? {
                Replaced::Done => return self.done(key, draft),
                Replaced::Gone if matches!(replaces, Replaces::Version(_)) => break,
                Replaced::Gone => {}
                Replaced::Other { is_draft_back } => {
                    if !is_draft_back {
                        // Yet another object has taken the draft's name, and the draft cannot get a
                        // name again.
                        draft.name = None;
                    }
                    break;
                }
            }
        }
        Ok(Commit::Conflict)
    }

    /// Removes the set-user-ID and set-group-ID bits from `draft`, because it is not known who has written its bytes
    /// since they were set. Gives the draft, which has all its bytes, a time that no other file has, unless its writer
    /// has set the times. Returns the version of the object that it is about to become. The version is noted before the
    /// draft has its name, so that a reader that finds it need not wait until it is old enough to be trusted.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn date(&self, key: &Key, draft: &mut Draft) -> Result<Version, StoreError> {
        let stat = fstat(&draft.file).map_err(|errno| failed(key, errno))?;
        end_set_id(&draft.file, stat.st_mode).map_err(|errno| failed(key, errno))?;
        let now = self.meta(&stat);
        if draft.dated == Some(now.version) {
            return Ok(now.version);
        }
        if draft.has_times && !self.root.versions.may_repeat(&stat) {
            return Ok(now.version);
        }
        let own = &self.root.versions.own;
        let mtime = own.own_time(stat.mtime);
        let times = FileTimes::new().set_modified(mtime);
        let is_set = !draft.has_times && draft.file.set_times(times).is_ok();
        let stat = fstat(&draft.file).map_err(|errno| failed(key, errno))?;
        let found = self.root.versions.unnumbered(&stat);
        // Some file systems keep only whole seconds, or ignore times that are set.
        let has_own_time = is_set && found.mtime == mtime;
        let dated = if has_own_time {
            found
        } else {
            own.number(found)
        };
        own.add(dated);
        draft.dated = Some(dated);
        Ok(dated)
    }

    /// Gives the draft the name of an absent object.
    fn place_new(&self, parent: &OwnedFd, key: &Key, draft: &Draft) -> Result<(), Errno> {
        let place = (parent, key.name());
        match &draft.name {
            None => name_file(&*draft.file, place),
            Some(name) => self.calls.move_to_free(name.path(), place, || Ok(())),
        }
    }

    /// Whether a draft may replace the file that was found.
    pub(super) fn is_expected(&self, found: Result<FileStat, Errno>, replaces: Replaces) -> bool {
        match (found, replaces) {
            (Ok(stat), Replaces::Version(version)) => self.meta(&stat).version == version,
            (found, Replaces::Anything) => {
                // A directory must not be replaced.
                let kind = found.map(|stat| FileType::from_raw_mode(stat.st_mode));
                !matches!(kind, Ok(FileType::Directory))
            }
            (found, Replaces::Nothing) => matches!(found, Err(Errno::NOENT)),
            (Err(_), Replaces::Version(_)) => false,
        }
    }

    /// Ends the commit of `draft`, which is the object now. The replaced object has the temporary
    /// name, which is removed.
    fn done(&self, key: &Key, draft: &mut Draft) -> Result<Commit, StoreError> {
        draft.name = None;
        self.unsynced.note_name(key);
        if self.durability == Durability::Never {
            self.unsynced.note_bytes(key);
        }
        self.end_waiting(key);
        let meta = self.meta_of(key, &draft.file)?;
        let stored = self.stored_as(Arc::clone(&draft.file), meta, true);
        Ok(Commit::Done(stored))
    }
}

/// Copies the extended attributes whose names begin with `user.`. On a file system without extended attributes, there
/// are none to copy.
fn copy_user_attributes(from: &File, to: &File) -> Result<(), Errno> {
    let mut names = Vec::with_capacity(MOST_XATTR_BYTES);
    match flistxattr(from, rustix::buffer::spare_capacity(&mut names)) {
        Ok(_) => {}
        Err(Errno::OPNOTSUPP) => return Ok(()),
        Err(errno) => return Err(errno),
    }
    for name in names.split(|byte| *byte == 0) {
        if !name.starts_with(b"user.") {
            continue;
        }
        let mut value = Vec::with_capacity(MOST_XATTR_BYTES);
        match fgetxattr(from, name, rustix::buffer::spare_capacity(&mut value)) {
            Ok(_) => fsetxattr(to, name, &value, XattrFlags::empty())?,
            // The attribute was removed meanwhile.
            Err(Errno::NODATA) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}
