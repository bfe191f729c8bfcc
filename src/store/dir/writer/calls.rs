//! The system calls that change names, write journals, or make changes survive a loss of power. They are those of
//! `rustix`; tests record them, to find out what each loss of power would leave.

#[cfg(test)]
#[cfg(not(feature = "model"))]
pub(crate) mod recorded;

#[cfg(all(test, not(feature = "model")))]
pub(super) use recorded::{
    fdatasync, fsync, linkat, mkdirat, openat, renameat_with, unlinkat, write_all_at,
};
#[cfg(any(not(test), feature = "model"))]
pub(super) use rustix::fs::{fdatasync, fsync, linkat, mkdirat, openat, renameat_with, unlinkat};

/// Writes all of `bytes` to `file`, from this byte on.
#[cfg(any(not(test), feature = "model"))]
pub(super) fn write_all_at(file: &std::fs::File, bytes: &[u8], at: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, at)
}
