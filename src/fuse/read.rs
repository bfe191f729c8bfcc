//! Reading a file: on the spot where nothing must be waited for, else on the pool.

use std::cell::RefCell;
use std::sync::Arc;

use fuser::{Errno, ReplyData};

use super::ZarrFs;
use super::open::OpenedFile;
use super::pool::confine;
use crate::chunk::Counters;

/// What a thread keeps of its buffer between reads: the largest read that the kernel sends.
const SCRATCH_KEPT_BYTES: usize = 1 << 20;

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
            let unanswered = match file.file.try_read(part.offset, part.len, scratch) {
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
            };
            if scratch.capacity() > SCRATCH_KEPT_BYTES {
                scratch.clear();
                scratch.shrink_to(SCRATCH_KEPT_BYTES);
            }
            unanswered
        })
    }

    fn read_later(&self, file: Arc<OpenedFile>, part: Part, reply: ReplyData) {
        let Some(pool) = &self.pool else {
            return reply.error(Errno::EIO);
        };
        let (view, errors) = (Arc::clone(&self.view), Arc::clone(&self.errors));
        pool.submit(move || {
            file.file.load(Box::new(move |loaded| {
                // Runs wherever the bytes became ready, with others' replies behind it.
                confine("read", || match loaded {
                    Ok(block) => {
                        let bytes = part.of(&block);
                        count_bytes(view.counters(), bytes.len());
                        reply.data(bytes);
                    }
                    Err(error) => reply.error(errors.report(&error, view.counters())),
                });
            }));
        });
    }
}

/// Which bytes of a file are asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub(super) offset: u64,
    pub(super) len: usize,
}

impl Part {
    /// These bytes of a whole file, fewer only at its end.
    fn of(self, whole: &[u8]) -> &[u8] {
        let start = usize::try_from(self.offset).unwrap_or(usize::MAX);
        let start = start.min(whole.len());
        let end = start.saturating_add(self.len).min(whole.len());
        &whole[start..end]
    }
}

fn count_bytes(counters: &Counters, bytes: usize) {
    let bytes = u64::try_from(bytes).expect("usize has at most 64 bits");
    Counters::add_n(&counters.bytes_read, bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_ends_with_the_file() {
        let whole = [0, 1, 2, 3, 4];
        let cases: [(u64, usize, &[u8]); 7] = [
            (0, 5, &whole),
            (0, 9, &whole),
            (1, 2, &[1, 2]),
            (4, 1, &[4]),
            (5, 1, &[]),
            (u64::MAX, usize::MAX, &[]),
            (3, usize::MAX, &[3, 4]),
        ];
        for (offset, len, bytes) in cases {
            assert_eq!(Part { offset, len }.of(&whole), bytes);
        }
    }
}
