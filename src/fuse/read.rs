//! Reading a file: by the thread that got the request, where the bytes are in memory or it may wait
//! for them; else by whoever brings the last of them.

use std::sync::Arc;

use fuser::ReplyData;

use super::Core;
use super::open::OpenedFile;
use crate::load::{Counters, Patience};
use crate::threads::confine;

impl Core {
    /// Answers a read; never short of the end of the file, since the kernel would shrink the
    /// file to what it got.
    pub(super) fn read_file(
        self: &Arc<Self>,
        file: &OpenedFile,
        offset: u64,
        len: usize,
        reply: ReplyData,
    ) {
        let core = Arc::clone(self);
        Counters::add(&core.view.counters().reads);
        let permit = self.events.may_wait();
        let patience = if permit.is_some() {
            Patience::Waits
        } else {
            Patience::Never
        };
        file.file.read(offset, len, patience, move |read| {
            // Runs wherever the bytes became ready, with others' replies behind it.
            confine("read", || match read {
                Ok(bytes) => {
                    let counters = core.view.counters();
                    Counters::add_n(&counters.bytes_read, bytes.len() as u64);
                    reply.data(bytes);
                }
                Err(error) => reply.error(core.errno(&error)),
            });
        });
    }
}
