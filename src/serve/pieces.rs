//! The bytes of a file in pieces, several of which are read while the client takes the first one. [`crate::export`] has
//! pieces of its own: there, the thread that has decoded a piece also writes it, and no client makes it wait.
//!
//! The pieces of all responses together have a limit of memory. A response that gets none of it goes on with one short
//! piece at a time, so that slow clients cannot stop the others, however many bytes they make the server read ahead.

use std::collections::VecDeque;
use std::ops::{Deref, Range};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::sync::oneshot::{self, Receiver};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::counters::HttpCounters;
use crate::error::Error;
use crate::view::OpenFile;

/// The bytes of a piece. It has several chunks of most arrays, which are decoded side by side.
const PIECE_BYTES: u64 = 1 << 20;
/// The bytes of a piece for which there is no memory within the limit.
const SHORT_PIECE_BYTES: u64 = 64 << 10;
/// The pieces that are read at once.
const MOST_AT_ONCE: usize = 4;
/// The unit of the limit.
const UNIT_BYTES: u64 = 1 << 10;

/// The memory that the pieces of all responses may take.
#[derive(Debug, Clone)]
pub(super) struct PieceMemory(Arc<Semaphore>);

impl PieceMemory {
    pub(super) fn new(bytes: u64) -> PieceMemory {
        let units = usize::try_from(bytes / UNIT_BYTES).unwrap_or(usize::MAX);
        PieceMemory(Arc::new(Semaphore::new(units.min(Semaphore::MAX_PERMITS))))
    }

    /// Memory for `bytes`, if there is some.
    pub(super) fn take(&self, bytes: u64) -> Option<OwnedSemaphorePermit> {
        let units = u32::try_from(bytes.div_ceil(UNIT_BYTES)).ok()?;
        Arc::clone(&self.0).try_acquire_many_owned(units).ok()
    }
}

/// Bytes, with the memory that they take.
struct Held<B> {
    bytes: B,
    _memory: Option<OwnedSemaphorePermit>,
}

impl<B: Deref<Target = [u8]>> AsRef<[u8]> for Held<B> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// `bytes`, which were made within `memory`. They keep the part of it that they take until the client has them.
pub(super) fn held(bytes: Vec<u8>, mut memory: OwnedSemaphorePermit) -> Bytes {
    let bytes = bytes.into_boxed_slice();
    let units = (bytes.len() as u64).div_ceil(UNIT_BYTES);
    let units = usize::try_from(units).unwrap_or(usize::MAX);
    let own = memory.split(units.min(memory.num_permits()));
    Bytes::from_owner(Held {
        bytes,
        _memory: own,
    })
}

/// A range of bytes of a file.
#[derive(Debug)]
pub(super) struct FilePieces {
    file: Arc<OpenFile>,
    /// The bytes whose read has not begun.
    unread: Range<u64>,
    /// The bytes that were not sent.
    left: u64,
    /// Pieces that are being read, in their order.
    waiting: VecDeque<Receiver<Result<Bytes, Error>>>,
    /// The first piece, after it was waited for.
    first: Option<Bytes>,
    memory: PieceMemory,
    counters: Arc<HttpCounters>,
}

impl FilePieces {
    /// The bytes of `file` in `range`, which the file has. The first bytes are read before this returns, so that an error
    /// of the file can still set the status of the response.
    pub(super) async fn begin(
        file: &Arc<OpenFile>,
        range: Range<u64>,
        memory: &PieceMemory,
        counters: &Arc<HttpCounters>,
    ) -> Result<FilePieces, Error> {
        let mut pieces = FilePieces {
            file: Arc::clone(file),
            left: range.end - range.start,
            unread: range,
            waiting: VecDeque::new(),
            first: None,
            memory: memory.clone(),
            counters: Arc::clone(counters),
        };
        let Some(mut first) = pieces.next() else {
            return Ok(pieces);
        };
        // Most requests are for one piece, which needs no queue.
        if !pieces.unread.is_empty() {
            pieces.waiting.push_back(first);
            pieces.read_ahead();
            first = pieces.waiting.pop_front().ok_or_else(lost)?;
        }
        pieces.first = Some(first.await.map_err(|_| lost())??);
        Ok(pieces)
    }

    /// The number of bytes that were not sent yet.
    pub(super) fn left(&self) -> u64 {
        self.left
    }

    /// All bytes, for a file that is known to be short.
    pub(super) async fn collect(mut self) -> Result<Vec<u8>, Error> {
        let mut all = Vec::new();
        while let Some(bytes) = std::future::poll_fn(|cx| self.poll_next(cx)).await {
            all.extend_from_slice(&bytes?);
        }
        Ok(all)
    }

    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Error>>> {
        let bytes = if let Some(first) = self.first.take() {
            first
        } else {
            self.read_ahead();
            let Some(next) = self.waiting.front_mut() else {
                return Poll::Ready(None);
            };
            let read = ready!(Pin::new(next).poll(cx));
            self.waiting.pop_front();
            match read.map_err(|_| lost()).and_then(|read| read) {
                Ok(bytes) => bytes,
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        };
        self.left -= bytes.len() as u64;
        self.counters.sent_bytes.add(bytes.len() as u64);
        // The next pieces are read while the client takes this one.
        self.read_ahead();
        Poll::Ready(Some(Ok(bytes)))
    }

    fn read_ahead(&mut self) {
        while self.waiting.len() < MOST_AT_ONCE
            && let Some(next) = self.next()
        {
            self.waiting.push_back(next);
        }
    }

    /// Begins to read the next piece. `None` if there is none, or no memory for it while others are read.
    fn next(&mut self) -> Option<Receiver<Result<Bytes, Error>>> {
        if self.unread.is_empty() {
            return None;
        }
        let len = PIECE_BYTES.min(self.unread.end - self.unread.start);
        let (len, memory) = match self.memory.take(len) {
            Some(memory) => (len, Some(memory)),
            None if self.waiting.is_empty() => (len.min(SHORT_PIECE_BYTES), None),
            None => return None,
        };
        let offset = self.unread.start;
        self.unread.start += len;
        Some(self.read(offset, len, memory))
    }

    fn read(
        &self,
        offset: u64,
        len: u64,
        memory: Option<OwnedSemaphorePermit>,
    ) -> Receiver<Result<Bytes, Error>> {
        let (sender, receiver) = oneshot::channel();
        let len = usize::try_from(len).expect("a piece is short");
        self.file.read_exactly(offset, len, move |read| {
            let piece = read.map(|bytes| {
                Bytes::from_owner(Held {
                    bytes: bytes.keep(),
                    _memory: memory,
                })
            });
            // The client may have gone.
            drop(sender.send(piece));
        });
        receiver
    }
}

fn lost() -> Error {
    Error::GivenUp("a read")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_keep_the_memory_that_they_take_until_they_are_sent() {
        let memory = PieceMemory::new(8 * UNIT_BYTES);
        let all = memory.take(8 * UNIT_BYTES).unwrap();
        let bytes = held(vec![7; 1025], all);
        assert_eq!(bytes.len(), 1025);
        assert!(memory.take(7 * UNIT_BYTES).is_none());
        drop(memory.take(6 * UNIT_BYTES).unwrap());
        drop(bytes);
        drop(memory.take(8 * UNIT_BYTES).unwrap());
        // More bytes than there was memory for have all of it.
        let bytes = held(vec![7; 3000], memory.take(UNIT_BYTES).unwrap());
        assert!(memory.take(8 * UNIT_BYTES).is_none());
        drop(bytes);
        assert!(memory.take(8 * UNIT_BYTES).is_some());
    }
}
