//! What the system lets this process have (`ulimit`); `None` where there is no limit.

use rustix::process::{Resource, getrlimit};

/// Open files: what can be had now, not what could be asked for.
pub fn descriptor_limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// Bytes of addresses.
pub fn address_limit() -> Option<u64> {
    getrlimit(Resource::As).current
}
