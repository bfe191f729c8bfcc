//! The limits that the system sets to this process (`ulimit`); `None` where there is none.

use rustix::process::{Resource, getrlimit};

/// Open files: what can be had now, not what could be asked for.
pub fn descriptor_limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// Bytes of addresses.
pub fn address_limit() -> Option<u64> {
    getrlimit(Resource::As).current
}
