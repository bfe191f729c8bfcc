//! The system calls that change names, or make what was written survive a loss of power. They are
//! those of `rustix`; tests record them, to find out what each loss of power would leave.

#[cfg(test)]
pub(super) mod recorded;

#[cfg(test)]
pub(super) use recorded::{fdatasync, fsync, linkat, mkdirat, openat, renameat_with, unlinkat};
#[cfg(not(test))]
pub(super) use rustix::fs::{fdatasync, fsync, linkat, mkdirat, openat, renameat_with, unlinkat};
