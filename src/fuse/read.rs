//! Reading a file. The event thread that took the request replies if the bytes are in memory or if
//! it may wait for them; otherwise the thread that loads the last of them replies.

use std::sync::Arc;
use std::time::Instant;

use fuser::OpenFlags;

use super::Core;
use super::callers::{AwaitedReply, Callers, Unanswered};
use super::late_reads::LateReads;
use super::opened::OpenedFile;
use super::reply::{Bytes, Reply};
use crate::error::Error;
use crate::load::Patience;
use crate::threads::{confine, may_wait_for_page};
use crate::view::ReadBytes;

/// The shortest read whose bytes are put straight into the memory of its reply. A copy of fewer bytes costs less.
const SHORTEST_LENT: usize = 32 << 10;

/// The byte range that the kernel requests.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadRequest {
    pub(super) offset: u64,
    pub(super) len: usize,
    /// Whether the bytes go to the program, and not to pages (`O_DIRECT`).
    pub(super) is_direct: bool,
}

impl ReadRequest {
    /// A read of `size` bytes through a handle that was opened with these flags.
    pub(super) fn new(offset: u64, size: u32, flags: OpenFlags) -> ReadRequest {
        ReadRequest {
            offset,
            len: usize::try_from(size).expect("usize has at least 32 bits"),
            is_direct: flags.0 & libc::O_DIRECT != 0,
        }
    }
}

impl Core {
    /// Answers a read. A reply is never shorter than requested, except at the end of the file: the kernel would take
    /// the file for shorter.
    pub(super) fn read_file(
        self: &Arc<Self>,
        file: &OpenedFile,
        asked: ReadRequest,
        unanswered: Unanswered<Reply<Bytes>>,
    ) {
        self.view.requests().reads.add(1);
        let end = asked.offset.saturating_add(asked.len as u64);
        if let Some(errno) = file.late_reads.take(&(asked.offset..end)) {
            return AwaitedReply::own(unanswered).refuse(errno);
        }
        let caller = unanswered.thread();
        let permit = unanswered.may_wait(&self.events);
        let (reply, patience, lender, unwatched) = if permit.is_some() {
            let is_lent = asked.len >= SHORTEST_LENT;
            let lender = is_lent.then(|| unanswered.lender()).flatten();
            let reply = AwaitedReply::own(unanswered);
            (reply, Patience::Waits, lender, None)
        } else {
            // The reply is shared even if the bytes are in memory, which is known only after the read. Its memory is
            // not lent: a caller that is killed must get the reply at once, also while another thread reads the bytes.
            let (reply, unwatched) = Callers::share(unanswered);
            (reply, Patience::Never, None, Some(unwatched))
        };
        let (core, late_reads) = (Arc::clone(self), Arc::clone(&file.late_reads));
        let ReadRequest { offset, len, .. } = asked;
        file.file.read(offset, len, patience, lender, move |read| {
            // The thread that made the bytes ready runs this closure, and those of other reads after it.
            confine("read", || {
                core.answer_read(read, (asked, caller), &late_reads, reply);
            });
        });
        if let Some(unwatched) = unwatched {
            self.callers.watch(unwatched);
        }
    }

    /// Answers the request of the thread `caller` with what was read.
    fn answer_read(
        &self,
        read: Result<ReadBytes<'_>, Error>,
        (asked, caller): (ReadRequest, u32),
        late_reads: &LateReads,
        reply: AwaitedReply<Reply<Bytes>>,
    ) {
        match read {
            Ok(bytes) => {
                let counters = self.view.requests();
                counters.bytes_read.add(bytes.len() as u64);
                let _ = reply.send(Ok(&*bytes), Reply::bytes);
            }
            Err(error) => {
                let errno = self.errno(&error);
                // The kernel repeats a read for its pages, but not one that goes straight to the program. If the
                // program does not wait for the pages, because it only announced what it will read, the read is not
                // repeated at once.
                if error.is_timeout() && !asked.is_direct && may_wait_for_page(caller) {
                    let end = asked.offset.saturating_add(asked.len as u64);
                    late_reads.add(asked.offset..end, errno, Instant::now());
                }
                reply.refuse(errno);
            }
        }
    }
}
