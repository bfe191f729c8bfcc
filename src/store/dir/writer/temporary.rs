//! Names in the directory of this program in the store, which exist for the time of a commit.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::super::stat::{FileStat, fstat, statat};
use super::calls::{mkdirat, openat, unlinkat};
use super::names::{NameIn, name_file, rename};
use super::{OWN_DIRECTORY, Root, failed};
use crate::store::{Key, Prefix, StoreError};
use std::fs::File;

/// The end of the name of a temporary file. Before it are 16 hexadecimal digits.
const SUFFIX: &[u8] = b".tmp";

/// The end of the name of an object of another program that could not be put back. No mount removes it.
const KEPT_SUFFIX: &str = ".kept";

/// The temporary names of one writer.
#[derive(Debug, Default)]
pub(super) struct Temporaries {
    /// The directory, once it is open.
    directory: Mutex<Option<Arc<OwnedFd>>>,
    next: AtomicU64,
}

/// A temporary name. Dropping this removes the name, if it exists.
#[derive(Debug)]
pub(super) struct TemporaryName {
    directory: Arc<OwnedFd>,
    name: Vec<u8>,
    /// Whether the file is not removed.
    is_kept: AtomicBool,
}

impl Drop for TemporaryName {
    fn drop(&mut self) {
        if self.is_kept.load(Ordering::Relaxed) {
            return;
        }
        // Once the draft has the name of an object, this name does not exist.
        let _ = unlinkat(&self.directory, &self.name, AtFlags::empty());
    }
}

impl Temporaries {
    /// Removes the temporary files that a killed writer left in `root`. The caller has the lock, so no other writer
    /// uses these files. Returns their number.
    pub(super) fn remove_left(&self, root: &Root) -> Result<usize, StoreError> {
        let Some(directory) = open_directory(root)? else {
            return Ok(0);
        };
        let mut removed = 0;
        for name in numbered_names(&directory, SUFFIX)? {
            let is_file = statat(&directory, &name, AtFlags::SYMLINK_NOFOLLOW)
                .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
            if is_file && unlinkat(&directory, &name, AtFlags::empty()).is_ok() {
                removed += 1;
            }
        }
        if removed > 0 {
            log::warn!(
                "an earlier mount was ended before it had finished: {removed} of its temporary \
                 files were removed; each object is as it was before or after its change"
            );
        }
        self.finish(root);
        Ok(removed)
    }

    /// Removes the directory, if it is empty.
    pub(super) fn finish(&self, root: &Root) {
        let mut held = self.directory.lock();
        *held = None;
        let _ = unlinkat(root, OWN_DIRECTORY, AtFlags::REMOVEDIR);
    }

    /// The directory, which is made when it is missing.
    pub(super) fn directory(&self, root: &Root) -> Result<Arc<OwnedFd>, StoreError> {
        let mut held = self.directory.lock();
        if let Some(directory) = &*held
            && fstat(directory).is_ok_and(|stat| stat.st_nlink > 0)
        {
            return Ok(Arc::clone(directory));
        }
        let mode = Mode::RWXU;
        match mkdirat(root, OWN_DIRECTORY, mode) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(own_failed(errno)),
        }
        let directory = open_directory(root)?.ok_or_else(|| own_failed(Errno::NOENT))?;
        let directory = Arc::new(directory);
        *held = Some(Arc::clone(&directory));
        Ok(directory)
    }

    pub(super) fn free_name(&self, root: &Root) -> Result<TemporaryName, StoreError> {
        Ok(TemporaryName {
            directory: self.directory(root)?,
            name: [self.free_digits().as_bytes(), SUFFIX].concat(),
            is_kept: AtomicBool::new(false),
        })
    }

    /// 16 hexadecimal digits that this process has not used for a name before.
    pub(super) fn free_digits(&self) -> String {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let pid = u64::from(std::process::id());
        format!("{:016x}", pid << 40 ^ number)
    }

    /// A new file with a temporary name.
    pub(super) fn create(&self, root: &Root) -> Result<(TemporaryName, OwnedFd), StoreError> {
        let name = self.free_name(root)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let flags = flags | OFlags::CLOEXEC;
        let made = openat(&name.directory, &name.name, flags, Mode::RUSR | Mode::WUSR);
        Ok((name, made.map_err(own_failed)?))
    }

    /// Gives `file`, which has no name, a temporary name.
    pub(super) fn link(&self, root: &Root, file: &File) -> Result<TemporaryName, StoreError> {
        let name = self.free_name(root)?;
        name_file(file, name.path()).map_err(own_failed)?;
        Ok(name)
    }
}

impl TemporaryName {
    /// The name in its directory.
    pub(super) fn path(&self) -> NameIn<'_> {
        (&self.directory, &self.name)
    }

    /// Keeps the file with this name, an object of another program that could not be put back to `key` because of
    /// `errno`, and tells where it is. The file gets a name that no later mount removes.
    pub(super) fn keep(&self, key: &Key, errno: Errno) {
        self.is_kept.store(true, Ordering::Relaxed);
        let digits = self.name.strip_suffix(SUFFIX).unwrap_or(&self.name);
        let mut names = (0..1000).map(|n| {
            let end = format!(".{n}{KEPT_SUFFIX}");
            [digits, end.as_bytes()].concat()
        });
        // A process with the same number may have kept an object before.
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let free = names.find(|name| statat(&self.directory, name, flags) == Err(Errno::NOENT));
        let kept = free.ok_or(Errno::EXIST).and_then(|name| {
            rename(self.path(), (&self.directory, &name), RenameFlags::empty()).map(|()| name)
        });
        let name = match &kept {
            Err(Errno::NOENT) => return,
            Err(_) => &self.name,
            Ok(name) => name,
        };
        let [own, name] = [OWN_DIRECTORY, name].map(String::from_utf8_lossy);
        log::error!(
            "{key}: another program has put an object there, which was taken away and could not be put back ({errno}): \
             it is in the store as {own}/{name}"
        );
    }

    /// The attributes of the file with this name.
    pub(super) fn stat(&self) -> Result<FileStat, Errno> {
        statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW)
    }
}

/// Opens the directory of this program in the store; `None` when there is none.
pub(super) fn open_directory(root: &Root) -> Result<Option<OwnedFd>, StoreError> {
    let path = Prefix::parse(OWN_DIRECTORY)?;
    match root.open_unlinked(&path, OFlags::RDONLY | OFlags::DIRECTORY) {
        Ok(fd) => {
            check_owner(
                &fd,
                || path.to_text(),
                "; remove it if no program writes the store",
            )?;
            Ok(Some(fd))
        }
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(own_failed(errno)),
    }
}

/// Refuses the directory `fd` if it belongs to another user, who could exchange the files in it. The message calls the
/// directory `name`, and ends with `hint`.
pub(super) fn check_owner(
    fd: &OwnedFd,
    name: impl FnOnce() -> String,
    hint: &str,
) -> Result<(), StoreError> {
    let owner = fstat(fd).map_err(own_failed)?.st_uid;
    if owner == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    let reason = format!("it belongs to user {owner}{hint}");
    Err(StoreError::denied(name(), reason))
}

/// The names of 16 hexadecimal digits and `suffix` in a directory of this program, in order.
pub(super) fn numbered_names(
    directory: &OwnedFd,
    suffix: &[u8],
) -> Result<Vec<Vec<u8>>, StoreError> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory).map_err(own_failed)? {
        let entry = entry.map_err(own_failed)?;
        let name = entry.file_name().to_bytes();
        let digits = name.strip_suffix(suffix).unwrap_or_default();
        if digits.len() == 16 && digits.iter().all(u8::is_ascii_hexdigit) {
            names.push(name.to_vec());
        }
    }
    names.sort();
    Ok(names)
}

pub(super) fn own_failed(errno: Errno) -> StoreError {
    failed(&String::from_utf8_lossy(OWN_DIRECTORY), errno)
}
