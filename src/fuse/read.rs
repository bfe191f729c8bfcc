//! Reading a file: on the spot where nothing must be waited for, else by the workers, whose slots
//! this thread may have: handing a read over costs more than many a chunk takes to decode. There
//! are fewer slots than event threads, so that some are left for what needs no waiting.

use std::cell::RefCell;
use std::sync::Arc;

use fuser::ReplyData;

use super::ZarrFs;
use super::open::OpenedFile;
use crate::chunk::Counters;
use crate::workers::confine;

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl ZarrFs {
    /// Answers a read; never short of the end of the file, since the kernel would shrink the
    /// file to what it got.
    pub(super) fn read_file(&self, file: Arc<OpenedFile>, part: Part, reply: ReplyData) {
        Counters::add(&self.view.counters().reads);
        if let Some(reply) = self.read_at_once(&file, part, reply) {
            self.read_later(file, part, reply);
        }
    }

    /// Gives the reply back when the bytes must be waited for.
    fn read_at_once(&self, file: &OpenedFile, part: Part, reply: ReplyData) -> Option<ReplyData> {
        SCRATCH.with_borrow_mut(|scratch| {
            match file.file.try_read(part.offset, part.len, scratch) {
                None => Some(reply),
                Some(Ok(data)) => {
                    count_bytes(self.view.counters(), data.len());
                    reply.data(&data);
                    None
                }
                Some(Err(error)) => {
                    reply.error(self.errno(&error));
                    None
                }
            }
        })
    }

    fn read_later(&self, file: Arc<OpenedFile>, part: Part, reply: ReplyData) {
        let (view, errors) = (Arc::clone(&self.view), Arc::clone(&self.errors));
        self.workers.run(move || {
            file.file.load(part.offset, part.len, move |loaded| {
                // Runs wherever the bytes became ready, with others' replies behind it.
                confine("read", || match loaded {
                    Ok(bytes) => {
                        count_bytes(view.counters(), bytes.len());
                        reply.data(bytes);
                    }
                    Err(error) => reply.error(errors.report(&error, view.counters())),
                });
            });
        });
    }
}

/// Which bytes of a file are asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub(super) offset: u64,
    pub(super) len: usize,
}

fn count_bytes(counters: &Counters, bytes: usize) {
    let bytes = u64::try_from(bytes).expect("usize has at most 64 bits");
    Counters::add_n(&counters.bytes_read, bytes);
}
