//! The limits of this process (`ulimit`); `None` if there is none.

use rustix::process::{Resource, getrlimit};

/// Most open files: the soft limit.
pub fn descriptor_limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// Most bytes of address space.
pub fn address_limit() -> Option<u64> {
    getrlimit(Resource::As).current
}
