//! The caller of a request.

use fuser::Request;

use crate::view::{Caller, NewFile};

/// The process that makes a request, as the kernel names it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Requester {
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// The thread that waits for the reply; 0 if the kernel names none.
    pub(super) thread: u32,
}

impl From<&Request> for Requester {
    fn from(request: &Request) -> Self {
        Requester {
            uid: request.uid(),
            gid: request.gid(),
            thread: request.pid(),
        }
    }
}

impl Requester {
    /// The user.
    pub(super) fn caller(&self) -> Caller {
        Caller {
            uid: self.uid,
            gid: self.gid,
        }
    }

    /// The mode and the owner of a new file of the user.
    pub(super) fn new_file(&self, mode: u32, umask: u32) -> NewFile {
        NewFile {
            mode: mode & 0o7777,
            umask: umask & 0o777,
            uid: self.uid,
            gid: self.gid,
        }
    }
}
