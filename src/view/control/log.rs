//! `.zarr-mount/log`, the last lines of the log of the daemon, and `.zarr-mount/refused`, the last
//! changes that were refused.

use std::sync::Arc;

use crate::recent_lines::RecentLines;
use crate::store::ObjectMeta;
use crate::view::vnode::{VnodeAttributes, VnodeKind};

/// The log of the daemon, with the user who owns it.
#[derive(Debug, Default)]
pub struct OwnLog {
    /// Its last lines.
    pub lines: Arc<RecentLines>,
    /// The user of the daemon.
    pub uid: u32,
    /// The group of the daemon.
    pub gid: u32,
}

impl OwnLog {
    /// The attributes of a file of `lines`, in a store whose root is `root`. The options do not
    /// change its owner and mode: the lines name keys that other users may not list.
    pub(in crate::view) fn attributes(
        &self,
        lines: &RecentLines,
        root: &ObjectMeta,
    ) -> VnodeAttributes {
        VnodeAttributes {
            kind: VnodeKind::File,
            size: lines.n_bytes(),
            times: root.times,
            mode: 0o400,
            uid: self.uid,
            gid: self.gid,
            fingerprint: 0,
        }
    }
}
