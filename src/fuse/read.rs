//! Reading a file. The event thread that took the request replies if the bytes are in memory or if
//! it may wait for them; otherwise the thread that loads the last of them replies.

use std::sync::Arc;

use fuser::ReplyData;

use super::Core;
use super::opened::OpenedFile;
use crate::load::Patience;
use crate::threads::confine;

impl Core {
    /// Answers a read. A reply is never shorter than asked for, except at the end of the file: the
    /// kernel would take that for a smaller file.
    pub(super) fn read_file(
        self: &Arc<Self>,
        file: &OpenedFile,
        offset: u64,
        len: usize,
        reply: ReplyData,
    ) {
        let core = Arc::clone(self);
        core.view.requests().reads.add(1);
        let permit = self.events.may_wait();
        let patience = if permit.is_some() {
            Patience::Waits
        } else {
            Patience::Never
        };
        file.file.read(offset, len, patience, move |read| {
            // The thread that made the bytes ready runs this, and has other replies to run after
            // it.
            confine("read", || match read {
                Ok(bytes) => {
                    let counters = core.view.requests();
                    counters.bytes_read.add(bytes.len() as u64);
                    reply.data(bytes);
                }
                Err(error) => reply.error(core.errno(&error)),
            });
        });
    }
}
