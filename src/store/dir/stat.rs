//! Attributes of files from statx(2), which has the time at which a file was made.
//!
//! A file system gives the inode number of a removed file to the next one, and a program can set the time of
//! modification of the new file to that of the removed one, as `cp -p` and tar(1) do. Only the time at which the file
//! was made distinguishes the two, or its [generation](super::generation).

use std::os::fd::AsFd;
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, StatxFlags, StatxTimestamp, makedev, statx};
use rustix::io::Errno;
use rustix::path::Arg;

use super::generation::generation;

/// Attributes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) struct FileStat {
    pub(in crate::store) st_mode: u32,
    pub(in crate::store) st_nlink: u32,
    pub(in crate::store) st_uid: u32,
    pub(in crate::store) st_gid: u32,
    pub(in crate::store) st_dev: u64,
    pub(in crate::store) st_ino: u64,
    pub(in crate::store) st_size: u64,
    /// Space in units of 512 bytes.
    pub(in crate::store) st_blocks: u64,
    pub(in crate::store) atime: SystemTime,
    pub(in crate::store) mtime: SystemTime,
    pub(in crate::store) ctime: SystemTime,
    /// When the file was made; `None` if the file system does not know.
    pub(in crate::store) btime: Option<SystemTime>,
    /// A number that differs between files of one inode number. The system is asked for it only if `btime` is missing.
    pub(in crate::store) generation: Option<u32>,
}

/// The attributes of an open file.
pub(in crate::store) fn fstat(file: impl AsFd) -> Result<FileStat, Errno> {
    statat(file, c"", AtFlags::EMPTY_PATH)
}

/// The attributes of the file `name` of an open directory.
pub(in crate::store) fn statat(
    directory: impl AsFd,
    name: impl Arg,
    flags: AtFlags,
) -> Result<FileStat, Errno> {
    let mask = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    let directory = directory.as_fd();
    let (found, generation) = name.into_with_c_str(|name| {
        let found = statx(directory, name, flags, mask)?;
        let is_unmade = found.stx_mask & StatxFlags::BTIME.bits() == 0;
        // File systems without a disk have the major number 0.
        let generation = (is_unmade && found.stx_dev_major != 0)
            .then(|| generation(directory, name, flags, found.stx_ino));
        Ok((found, generation.flatten()))
    })?;
    let has_btime = found.stx_mask & StatxFlags::BTIME.bits() != 0;
    let stat = FileStat {
        st_mode: found.stx_mode.into(),
        st_nlink: found.stx_nlink,
        st_uid: found.stx_uid,
        st_gid: found.stx_gid,
        st_dev: makedev(found.stx_dev_major, found.stx_dev_minor),
        st_ino: found.stx_ino,
        st_size: found.stx_size,
        st_blocks: found.stx_blocks,
        atime: time(found.stx_atime),
        mtime: time(found.stx_mtime),
        ctime: time(found.stx_ctime),
        btime: has_btime.then(|| time(found.stx_btime)),
        generation,
    };
    #[cfg(test)]
    let stat = coarse::shown(stat);
    Ok(stat)
}

/// Seconds may be negative (before 1970), nanoseconds count forward from them.
fn time(found: StatxTimestamp) -> SystemTime {
    moment(found.tv_sec, found.tv_nsec)
}

fn moment(seconds: i64, nanoseconds: u32) -> SystemTime {
    let magnitude = Duration::from_secs(seconds.unsigned_abs());
    let whole = if seconds < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(magnitude)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(magnitude)
    };
    // Times that SystemTime cannot hold come from damaged file systems only.
    whole
        .and_then(|whole| whole.checked_add(Duration::from_nanos(nanoseconds.into())))
        .unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Attributes with less information, which do not distinguish the files of one inode number.
#[cfg(test)]
pub(crate) mod coarse {
    use std::cell::Cell;

    use super::{Duration, FileStat, SystemTime};

    #[derive(Clone, Copy)]
    enum Shown {
        All,
        Unmade,
        Coarse,
    }

    thread_local! {
        static SHOWN: Cell<Shown> = const { Cell::new(Shown::All) };
    }

    /// Shows one time of whole seconds, the same during the whole test, in this thread from now on.
    pub(crate) fn show() {
        SHOWN.set(Shown::Coarse);
    }

    /// Hides when files were made, in this thread from now on, and shows one inode number for all
    /// files.
    pub(crate) fn show_unmade() {
        SHOWN.set(Shown::Unmade);
    }

    pub(super) fn shown(stat: FileStat) -> FileStat {
        match SHOWN.get() {
            Shown::All => return stat,
            Shown::Unmade => {
                return FileStat {
                    btime: None,
                    generation: None,
                    st_ino: 7,
                    ..stat
                };
            }
            Shown::Coarse => {}
        }
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = Duration::from_secs(since.unwrap_or_default().as_secs());
        FileStat {
            mtime: SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000),
            // This time is young however slow the test is.
            ctime: SystemTime::UNIX_EPOCH + now,
            btime: None,
            generation: None,
            ..stat
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_1970_keep_their_order() {
        let half_before = moment(-1, 500_000_000);
        assert_eq!(
            SystemTime::UNIX_EPOCH.duration_since(half_before).unwrap(),
            Duration::from_millis(500)
        );
        assert!(half_before > moment(-1, 0));
        assert_eq!(moment(i64::MIN, 0), moment(i64::MIN, 0), "no panic");
        let last = moment(i64::MAX, 999_999_999);
        assert_eq!(last, moment(i64::MAX, 999_999_999));
    }

    #[test]
    fn the_attributes_are_those_of_the_standard_library() {
        use std::os::unix::fs::MetadataExt;
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), b"text").unwrap();
        let file = std::fs::File::open(folder.path().join("a")).unwrap();
        let (found, expected) = (fstat(&file).unwrap(), file.metadata().unwrap());
        let directory = std::fs::File::open(folder.path()).unwrap();
        assert_eq!(statat(&directory, "a", AtFlags::empty()), Ok(found));
        assert_eq!(found.st_mode, expected.mode());
        assert_eq!(
            (found.st_uid, found.st_gid),
            (expected.uid(), expected.gid())
        );
        assert_eq!(
            (found.st_dev, found.st_ino),
            (expected.dev(), expected.ino())
        );
        assert_eq!((found.st_size, found.st_blocks), (4, expected.blocks()));
        assert_eq!(u64::from(found.st_nlink), expected.nlink());
        assert_eq!(found.mtime, expected.modified().unwrap());
        assert_eq!(found.atime, expected.accessed().unwrap());
        assert_eq!(found.btime, expected.created().ok());
    }
}
