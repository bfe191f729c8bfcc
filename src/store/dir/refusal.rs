//! Errors of the system as errors of the store.

use std::fmt;

use rustix::io::Errno;

use crate::store::{Prefix, StoreError};

/// No Linux file system has longer names.
const NAME_MAX_BYTES: usize = 255;

/// Absence if `errno` proves it, the error otherwise.
pub(super) fn absent<T>(path: &Prefix, errno: Errno) -> Result<Option<T>, StoreError> {
    match errno {
        Errno::NOENT | Errno::NOTDIR => Ok(None),
        // A path whose names are short can be too long as a whole, and still exist.
        Errno::NAMETOOLONG if has_long_name(path) => Ok(None),
        other => Err(refusal(path, other)),
    }
}

fn has_long_name(path: &Prefix) -> bool {
    path.as_bytes()
        .split(|&byte| byte == b'/')
        .any(|name| name.len() > NAME_MAX_BYTES)
}

/// The error for `errno`, where it does not mean absence.
pub(super) fn refusal(key: &dyn fmt::Display, errno: Errno) -> StoreError {
    let key = key.to_string();
    match errno {
        Errno::XDEV => {
            let reason = "a symbolic link leaves the store; --follow-symlinks allows it";
            StoreError::denied(key, reason)
        }
        Errno::ACCESS | Errno::PERM => StoreError::denied(key, "no permission"),
        Errno::LOOP => StoreError::Loop { key },
        // Neither sockets nor devices without a driver can be opened.
        Errno::NXIO | Errno::NODEV => StoreError::NotAnObject {
            key,
            found: "a socket or a device",
        },
        other => StoreError::io(key, &other.into()),
    }
}
