//! Unmounting: by umount2(2) for users who may use it, by `fusermount3 -u` for all others.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::io::Errno;
use rustix::mount::UnmountFlags;

/// The action of an unmount when files of the mount are open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unmount {
    /// Refuse, with [`UnmountError::Busy`].
    WhenIdle,
    /// Take the mount out of the tree now; it ends when the last file is closed.
    Detach,
}

/// Why an unmount failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnmountError {
    /// Files of the mount are open, or it is a working directory.
    #[error("busy")]
    Busy,
    /// Nothing is mounted there.
    #[error("not mounted")]
    NotMounted,
    /// The system refused, or there is no `fusermount3`.
    #[error("{0}")]
    Refused(String),
}

/// Unmounts the topmost mount at `mountpoint`, an absolute path free of links. The caller must have
/// checked that this is a mount of zarr-mount.
///
/// # Errors
/// [`UnmountError`], but [`UnmountError::Busy`] only with [`Unmount::WhenIdle`].
pub fn unmount(mountpoint: &Path, how: Unmount) -> Result<(), UnmountError> {
    let flags = match how {
        Unmount::WhenIdle => UnmountFlags::NOFOLLOW,
        Unmount::Detach => UnmountFlags::NOFOLLOW | UnmountFlags::DETACH,
    };
    match rustix::mount::unmount(mountpoint, flags) {
        Ok(()) => Ok(()),
        Err(Errno::BUSY) => Err(UnmountError::Busy),
        Err(Errno::INVAL | Errno::NOENT) => Err(UnmountError::NotMounted),
        // Without CAP_SYS_ADMIN this is always the answer, mounted or not.
        Err(Errno::PERM) => unmount_by_helper(mountpoint, how),
        Err(errno) => Err(UnmountError::Refused(io::Error::from(errno).to_string())),
    }
}

fn unmount_by_helper(mountpoint: &Path, how: Unmount) -> Result<(), UnmountError> {
    let flags: &[&str] = match how {
        Unmount::WhenIdle => &["-u"],
        Unmount::Detach => &["-u", "-z"],
    };
    for helper in FUSERMOUNT {
        let mut command = Command::new(helper);
        command.args(flags).arg("--").arg(mountpoint);
        // Its messages are parsed below.
        command.env("LC_ALL", "C").stdin(Stdio::null());
        match command.output() {
            Ok(output) if output.status.success() => return Ok(()),
            Ok(output) => return Err(helper_error(&output.stderr)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(UnmountError::Refused(format!("{helper}: {error}"))),
        }
    }
    Err(UnmountError::Refused(
        "fusermount3 is not on PATH; install fuse3".to_owned(),
    ))
}

/// The set-uid helper of libfuse, under its names.
pub(super) const FUSERMOUNT: [&str; 2] = ["fusermount3", "fusermount"];

fn helper_error(stderr: &[u8]) -> UnmountError {
    let words = String::from_utf8_lossy(stderr);
    let words = words.trim();
    if words.contains("busy") {
        UnmountError::Busy
    } else if words.contains("not found in") || words.contains("Invalid argument") {
        UnmountError::NotMounted
    } else {
        UnmountError::Refused(words.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_fusermount3() {
        let cases = [
            (
                "fusermount3: failed to unmount /m: Device or resource busy\n",
                UnmountError::Busy,
            ),
            (
                "fusermount3: entry for /m not found in /etc/mtab\n",
                UnmountError::NotMounted,
            ),
            (
                "fusermount3: failed to unmount /m: Invalid argument\n",
                UnmountError::NotMounted,
            ),
            (
                "fusermount3: bad mount point /m: No such file or directory\n",
                UnmountError::Refused(
                    "fusermount3: bad mount point /m: No such file or directory".to_owned(),
                ),
            ),
        ];
        for (words, error) in cases {
            assert_eq!(helper_error(words.as_bytes()), error, "{words}");
        }
    }
}
