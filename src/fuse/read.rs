//! Reading a file. The event thread that took the request replies if the bytes are in memory or if
//! it may wait for them; otherwise the thread that loads the last of them replies.

use std::sync::Arc;

use fuser::ReplyData;

use super::Core;
use super::callers::{AwaitedReply, Callers, Unanswered};
use super::opened::OpenedFile;
use crate::load::Patience;
use crate::threads::confine;

/// The bytes that the kernel asks for.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadRequest {
    pub(super) offset: u64,
    pub(super) len: usize,
}

impl Core {
    /// Answers a read. A reply is never shorter than asked for, except at the end of the file: the
    /// kernel would take that for a smaller file.
    pub(super) fn read_file(
        self: &Arc<Self>,
        file: &OpenedFile,
        asked: ReadRequest,
        unanswered: Unanswered<ReplyData>,
    ) {
        self.view.requests().reads.add(1);
        if let Some(_permit) = self.events.may_wait() {
            return self.read_with(file, asked, Patience::Waits, AwaitedReply::own(unanswered));
        }
        // The reply is shared also where the bytes are in memory, which is known only when it was sent.
        let (reply, unwatched) = Callers::share(unanswered);
        self.read_with(file, asked, Patience::Never, reply);
        self.callers.watch(unwatched);
    }

    fn read_with(
        self: &Arc<Self>,
        file: &OpenedFile,
        asked: ReadRequest,
        patience: Patience,
        reply: AwaitedReply<ReplyData>,
    ) {
        let core = Arc::clone(self);
        let ReadRequest { offset, len } = asked;
        file.file.read(offset, len, patience, move |read| {
            // The thread that made the bytes ready runs this, and has other replies to run after
            // it.
            confine("read", || match read {
                Ok(bytes) => {
                    let counters = core.view.requests();
                    counters.bytes_read.add(bytes.len() as u64);
                    let _ = reply.send(Ok(bytes), ReplyData::data);
                }
                Err(error) => {
                    reply.refuse(core.errno(&error));
                }
            });
        });
    }
}
