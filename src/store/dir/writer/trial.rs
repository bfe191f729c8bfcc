//! The features of a store's file system for names, which are tried out with files of this program.

use rustix::fs::{Mode, OFlags, RenameFlags};

use super::calls::openat;
use super::names::{NameCalls, link, name_file, rename};
use super::temporary::{Temporaries, TemporaryName};
use super::{FileStat, Root, StoreError, fstat};

/// Tries the calls in the directory of this program in `root`. Where no files can be made there, the missing
/// calls are unknown, and all calls count as present.
pub(super) fn name_calls(temporaries: &Temporaries, root: &Root) -> NameCalls {
    tried(temporaries, root).unwrap_or_else(|error| {
        log::debug!("the calls of the file system cannot be tried: {error}");
        NameCalls::ALL
    })
}

fn tried(temporaries: &Temporaries, root: &Root) -> Result<NameCalls, StoreError> {
    let (file, fd) = temporaries.create(root)?;
    let (other, _) = temporaries.create(root)?;
    let (second, third) = (temporaries.free_name(root)?, temporaries.free_name(root)?);
    let is_same = |stat: FileStat| fstat(&fd).is_ok_and(|own| own.st_ino == stat.st_ino);
    let linked = link(file.path(), second.path());
    let has_links = linked.is_ok() && second.stat().is_ok_and(is_same);
    Ok(NameCalls {
        exchange: rename(file.path(), other.path(), RenameFlags::EXCHANGE).is_ok(),
        keep: rename(file.path(), third.path(), RenameFlags::NOREPLACE).is_ok(),
        link: has_links,
        nameless: has_links && has_nameless(&temporaries.free_name(root)?),
    })
}

/// Whether a file can be made without a name, and then get `name`.
fn has_nameless(name: &TemporaryName) -> bool {
    let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
    let made = openat(name.path().0, ".", flags, Mode::RUSR | Mode::WUSR);
    made.and_then(|file| name_file(&file, name.path())).is_ok()
}
