//! System calls that are recorded, if the thread that makes them has requested it.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::CStr;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, Stat, fstat, statat};
use rustix::io::{Errno, Result, pread};
use rustix::path::Arg;

use crate::store::dir::writer::attributes::path_of;

/// The inode number of a directory, and a name in it.
pub(crate) type Name = (u64, Vec<u8>);

/// The effect of a system call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Call {
    /// Each of these names now stands for this inode, or for nothing.
    Names(Vec<(Name, Option<u64>)>),
    /// The names in this directory survive a loss of power.
    SyncNames(u64),
    /// The file has these bytes, which survive a loss of power if `is_synced`.
    Data {
        inode: u64,
        bytes: Vec<u8>,
        is_synced: bool,
    },
}

/// The features that a file system lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Lacking {
    /// Files without a name.
    pub(crate) nameless: bool,
    /// The flags of renameat2(2).
    pub(crate) flags: bool,
    /// Second names of files.
    pub(crate) links: bool,
}

impl Lacking {
    /// The features that are missing for this seed: none for even seeds, and for odd ones some that real file systems
    /// lack.
    pub(crate) fn of(seed: u64) -> Lacking {
        Lacking {
            nameless: [1, 3, 5].contains(&(seed % 8)),
            flags: [3, 5, 7].contains(&(seed % 8)),
            links: seed % 8 == 5,
        }
    }
}

#[derive(Debug, Default)]
struct Recorder {
    calls: Vec<Call>,
    lacking: Lacking,
    seen: BTreeSet<u64>,
    /// The files that were seen. While they are open, no other file gets their inode numbers.
    held: Vec<OwnedFd>,
    /// The change by another program that happens just before the next rename(2).
    meanwhile: Option<Meanwhile>,
    /// The number of calls of rename(2) until the one that fails.
    until_failure: Option<usize>,
}

/// A change that happens between two calls.
struct Meanwhile(Box<dyn FnOnce()>);

impl std::fmt::Debug for Meanwhile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Meanwhile")
    }
}

thread_local! {
    static RECORDER: RefCell<Option<Recorder>> = const { RefCell::new(None) };
}

/// Records the calls of this thread from now on, as if the file system lacked these features.
pub(crate) fn start(lacking: Lacking) {
    let recorder = Recorder {
        lacking,
        ..Recorder::default()
    };
    RECORDER.set(Some(recorder));
}

/// Makes a change by another program happen just before the next rename(2) without flags of this thread, whose
/// calls are recorded.
pub(crate) fn before_rename(what: impl FnOnce() + 'static) {
    RECORDER.with_borrow_mut(|recorder| {
        let recorder = recorder.as_mut().expect("the calls are recorded");
        recorder.meanwhile = Some(Meanwhile(Box::new(what)));
    });
}

/// Makes call number `nth` of rename(2) of this thread, counted from 1, fail with `EIO`.
pub(crate) fn fail_rename(nth: usize) {
    RECORDER.with_borrow_mut(|recorder| {
        let recorder = recorder.as_mut().expect("the calls are recorded");
        recorder.until_failure = Some(nth);
    });
}

/// Whether this call of rename(2) fails; counts the call.
fn is_failure() -> bool {
    RECORDER.with_borrow_mut(|recorder| {
        let Some(until) = recorder
            .as_mut()
            .and_then(|found| found.until_failure.as_mut())
        else {
            return false;
        };
        *until = until.wrapping_sub(1);
        *until == 0
    })
}

/// The number of calls that were recorded.
pub(crate) fn count() -> usize {
    RECORDER.with_borrow(|recorder| recorder.as_ref().map_or(0, |found| found.calls.len()))
}

/// Ends the record, and returns it.
pub(crate) fn stop() -> Vec<Call> {
    RECORDER.take().map_or(Vec::new(), |found| found.calls)
}

fn is_recording() -> bool {
    RECORDER.with_borrow(Option::is_some)
}

fn lacking() -> Lacking {
    RECORDER.with_borrow(|recorder| {
        recorder
            .as_ref()
            .map(|found| found.lacking)
            .unwrap_or_default()
    })
}

fn note(call: Call) {
    RECORDER.with_borrow_mut(|recorder| {
        if let Some(recorder) = recorder {
            recorder.calls.push(call);
        }
    });
}

fn is_directory(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

/// The inode that `name` stands for now. The bytes of a file that is seen for the first time are
/// noted.
fn seen(directory: impl AsFd, name: &CStr) -> Result<Option<u64>> {
    let stat = match statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    let is_new = RECORDER.with_borrow_mut(|recorder| {
        recorder
            .as_mut()
            .is_some_and(|found| found.seen.insert(stat.st_ino))
    });
    if is_new {
        let file = rustix::fs::openat(&directory, name, OFlags::RDONLY, Mode::empty())?;
        if !is_directory(&stat) {
            note_data(&file, false)?;
        }
        RECORDER.with_borrow_mut(|recorder| {
            if let Some(recorder) = recorder {
                recorder.held.push(file);
            }
        });
    }
    Ok(Some(stat.st_ino))
}

/// Notes the inode that each name in `names` stands for now.
fn note_names(names: &[(&dyn NamedDirectory, &CStr)]) -> Result<()> {
    let mut set = Vec::new();
    for (directory, name) in names {
        let found = directory.seen(name)?;
        set.push(((directory.inode()?, name.to_bytes().to_vec()), found));
    }
    note(Call::Names(set));
    Ok(())
}

/// A directory, whatever the type of its descriptor.
trait NamedDirectory {
    fn inode(&self) -> Result<u64>;
    fn seen(&self, name: &CStr) -> Result<Option<u64>>;
}

impl<Fd: AsFd> NamedDirectory for Fd {
    fn inode(&self) -> Result<u64> {
        Ok(fstat(self)?.st_ino)
    }

    fn seen(&self, name: &CStr) -> Result<Option<u64>> {
        seen(self, name)
    }
}

/// Notes the bytes of a file.
fn note_data(file: impl AsFd, is_synced: bool) -> Result<()> {
    let stat = fstat(&file)?;
    let mut bytes = vec![0; usize::try_from(stat.st_size).unwrap_or(0)];
    // The descriptor may be open for writing alone.
    let path = path_of(&file);
    let file = rustix::fs::openat(CWD, path.as_str(), OFlags::RDONLY, Mode::empty())?;
    let len = pread(&file, &mut bytes, 0)?;
    bytes.truncate(len);
    note(Call::Data {
        inode: stat.st_ino,
        bytes,
        is_synced,
    });
    Ok(())
}

pub(in crate::store::dir::writer) fn openat<P: Arg, Fd: AsFd>(
    directory: Fd,
    path: P,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd> {
    if flags.contains(OFlags::TMPFILE) && lacking().nameless {
        return Err(Errno::OPNOTSUPP);
    }
    let name = path.into_c_str()?;
    let opened = rustix::fs::openat(&directory, &*name, flags, mode)?;
    if is_recording() && flags.contains(OFlags::CREATE) {
        note_names(&[(&directory, &name)])?;
    }
    Ok(opened)
}

pub(in crate::store::dir::writer) fn linkat<P: Arg, Q: Arg, OldFd: AsFd, NewFd: AsFd>(
    old_directory: OldFd,
    old_path: P,
    directory: NewFd,
    path: Q,
    flags: AtFlags,
) -> Result<()> {
    if lacking().links {
        return Err(Errno::OPNOTSUPP);
    }
    let name = path.into_c_str()?;
    rustix::fs::linkat(old_directory, old_path, &directory, &*name, flags)?;
    if is_recording() {
        note_names(&[(&directory, &name)])?;
    }
    Ok(())
}

pub(in crate::store::dir::writer) fn renameat_with<P: Arg, Q: Arg, OldFd: AsFd, NewFd: AsFd>(
    old_directory: OldFd,
    old_path: P,
    directory: NewFd,
    path: Q,
    flags: RenameFlags,
) -> Result<()> {
    if flags.is_empty() {
        let meanwhile = RECORDER.with_borrow_mut(|recorder| recorder.as_mut()?.meanwhile.take());
        if let Some(Meanwhile(what)) = meanwhile {
            what();
        }
    } else if lacking().flags {
        return Err(Errno::INVAL);
    }
    if is_failure() {
        return Err(Errno::IO);
    }
    let (old_name, name) = (old_path.into_c_str()?, path.into_c_str()?);
    rustix::fs::renameat_with(&old_directory, &*old_name, &directory, &*name, flags)?;
    if is_recording() {
        note_names(&[(&old_directory, &old_name), (&directory, &name)])?;
    }
    Ok(())
}

pub(in crate::store::dir::writer) fn unlinkat<P: Arg, Fd: AsFd>(
    directory: Fd,
    path: P,
    flags: AtFlags,
) -> Result<()> {
    let name = path.into_c_str()?;
    rustix::fs::unlinkat(&directory, &*name, flags)?;
    if is_recording() {
        note_names(&[(&directory, &name)])?;
    }
    Ok(())
}

pub(in crate::store::dir::writer) fn mkdirat<P: Arg, Fd: AsFd>(
    directory: Fd,
    path: P,
    mode: Mode,
) -> Result<()> {
    let name = path.into_c_str()?;
    rustix::fs::mkdirat(&directory, &*name, mode)?;
    if is_recording() {
        note_names(&[(&directory, &name)])?;
    }
    Ok(())
}

pub(in crate::store::dir::writer) fn fdatasync<Fd: AsFd>(file: Fd) -> Result<()> {
    rustix::fs::fdatasync(&file)?;
    if is_recording() {
        note_data(&file, true)?;
    }
    Ok(())
}

pub(in crate::store::dir::writer) fn fsync<Fd: AsFd>(file: Fd) -> Result<()> {
    rustix::fs::fsync(&file)?;
    if is_recording() {
        let stat = fstat(&file)?;
        if is_directory(&stat) {
            note(Call::SyncNames(stat.st_ino));
        } else {
            note_data(&file, true)?;
        }
    }
    Ok(())
}

pub(in crate::store::dir::writer) fn write_all_at(
    file: &File,
    bytes: &[u8],
    at: u64,
) -> std::io::Result<()> {
    file.write_all_at(bytes, at)?;
    if is_recording() {
        note_data(file, false)?;
    }
    Ok(())
}
