//! The bytes of a file in pieces, several of which are read at once.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use super::FileError;
use crate::error::Error;
use crate::view::OpenFile;

/// The bytes of a piece. It has several chunks of most arrays, which are decoded side by side.
const PIECE_BYTES: usize = 4 << 20;
/// The pieces that are read at once, so that the disk is written to while chunks are decoded.
const MOST_AT_ONCE: usize = 4;

/// Calls `read` with the offset and the bytes of each piece of `file`, on the thread that has decoded the last chunk of
/// the piece. Calls `take` with each result of `read`, on this thread and in the order of the pieces.
///
/// # Errors
/// [`FileError`] of the first piece that cannot be read, or that `take` refuses. Pieces behind it may have been read.
pub(super) fn for_each<T: Send + 'static>(
    file: &Arc<OpenFile>,
    read: impl Fn(u64, &[u8]) -> T + Send + Sync + 'static,
    mut take: impl FnMut(T) -> Result<(), FileError>,
) -> Result<(), FileError> {
    let read = Arc::new(read);
    let mut waiting: VecDeque<Receiver<Result<T, Error>>> = VecDeque::new();
    let mut offset = 0;
    loop {
        while waiting.len() < MOST_AT_ONCE && offset < file.len() {
            let left = usize::try_from(file.len() - offset).unwrap_or(usize::MAX);
            let len = left.min(PIECE_BYTES);
            let (sender, receiver) = sync_channel(1);
            let (read, at) = (Arc::clone(&read), offset);
            file.read_exactly(offset, len, move |bytes| {
                // After an error, no receiver is left.
                drop(sender.send(bytes.map(|bytes| read(at, &bytes))));
            });
            waiting.push_back(receiver);
            offset += len as u64;
        }
        let Some(next) = waiting.pop_front() else {
            return Ok(());
        };
        let lost = |_| Error::internal("the thread that read this has ended".to_owned());
        take(next.recv().map_err(lost)??)?;
    }
}
