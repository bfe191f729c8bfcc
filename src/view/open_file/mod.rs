//! Open files: the bytes of one version of a vnode.
//!
//! An open handle pins an object of the store and no memory of the cache, so that idle handles do not keep other
//! readers from using the cache. The module `opening` opens each vnode, this one reads from what was opened, `buffer`
//! has the memory of one read, and `written` has the files of a writable mount.

pub(in crate::view) mod buffer;
mod opening;
pub(in crate::view) mod written;

use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Weak};

use crate::buffers::Lender;
use crate::error::Error;
use crate::files::KeyHandle;
use crate::grid::Dims;
use crate::load::{AnswerCallback, Block, Pages, Patience, Slice};
use crate::read::KeyReadahead;
use crate::store::Object;
use crate::threads::Class;
use crate::view::View;
use crate::view::arrays::{PlainOpen, PreviewOpen};
use crate::view::chunks::file::ChunkFile;
use crate::view::nodes::node::ShownArray;
use crate::view::vnode::{Vnode, VnodeAttributes};
use buffer::ReadBuffer;
pub use buffer::ReadBytes;

/// An opened vnode: its file, with the attributes at that moment.
#[derive(Debug)]
pub struct OpenedVnode {
    /// Attributes of the version that `file` shows.
    pub attributes: VnodeAttributes,
    /// Its bytes.
    pub file: Arc<OpenFile>,
}

/// An opened chunk, and the stored object that has it.
pub(in crate::view) type OpenedChunk = (OpenedVnode, Option<Arc<dyn Object>>);

/// One version of the bytes of a vnode.
#[derive(Debug)]
pub struct OpenFile {
    pub(in crate::view) view: Arc<View>,
    len: u64,
    pub(in crate::view) content: FileContent,
}

#[derive(Debug)]
pub(in crate::view) enum FileContent {
    /// A stored object, or a range of one.
    Stored(Slice),
    /// A stored object of a store where requests take long: it is read in pages through the cache.
    Paged(Arc<Pages>, KeyReadahead),
    /// A stored object that cannot be read in ranges; all of it is cached.
    Whole(Slice),
    /// A chunk that is not stored and is shown as fill value.
    Absent(Arc<ShownArray>, Dims),
    /// A chunk that has to be decoded itself, or whose shard has to be decoded.
    Chunk(Arc<ChunkFile>),
    /// A whole array, or a group of arrays.
    Plain(PlainOpen),
    /// A preview of an array.
    Preview(PreviewOpen),
    /// An edited or written metadata document, or a long text.
    Document {
        vnode: Vnode,
        fingerprint: u64,
        /// Empty once the cache evicted the text, which is then made again.
        text: Weak<Block>,
    },
    /// A short generated text.
    Generated(Vec<u8>),
    /// A long generated text, shared by all handles of the file.
    Kept(Arc<Block>),
    /// A file that is written through the mount.
    Written(KeyHandle),
    /// An empty file; fsync(2) on it commits all changes that were made through the mount.
    Sync,
    /// Text of the daemon about itself, from the moment when the file was opened.
    Momentary(Vec<u8>),
}

impl OpenFile {
    /// Bytes of the file.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the file is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether each open may show other bytes, so that the kernel must not cache them.
    pub fn is_uncached(&self) -> bool {
        matches!(self.content, FileContent::Momentary(_) | FileContent::Sync)
    }

    /// Whether pages that the kernel holds of this version may be kept. For a whole array, all of
    /// them must have been read from the same snapshot.
    pub fn keeps_pages(&self) -> bool {
        match &self.content {
            FileContent::Plain(plain) => plain.keeps_pages(),
            FileContent::Preview(preview) => preview.keeps_pages(),
            FileContent::Written(handle) => handle.keeps_pages,
            _ => true,
        }
    }

    /// The number of the state of the store that a whole array is read from, which distinguishes versions with the same
    /// fingerprint from each other for as long as this process runs. `None` if a fingerprint stands for one version.
    pub fn snapshot(&self) -> Option<u64> {
        match &self.content {
            FileContent::Plain(plain) => plain.snapshot(),
            FileContent::Preview(preview) => preview.snapshot(),
            FileContent::Kept(text) => Some(text.stamp()),
            _ => None,
        }
    }

    /// Notes that the kernel no longer holds pages of this version.
    pub fn pages_dropped(&self) {
        match &self.content {
            FileContent::Plain(plain) => plain.pages_dropped(),
            FileContent::Preview(preview) => preview.pages_dropped(),
            _ => {}
        }
    }

    /// The file of the store that has exactly these bytes, for passthrough.
    pub fn backing(&self) -> Option<BorrowedFd<'_>> {
        match &self.content {
            FileContent::Stored(slice) => slice.whole_object()?.as_file().map(AsFd::as_fd),
            _ => None,
        }
    }

    /// Calls `reply` with exactly `len` bytes at `offset`, which the file has, or with an error. The call comes from
    /// this thread if the bytes are in memory, and otherwise from another thread.
    pub fn read_exactly(
        self: &Arc<Self>,
        offset: u64,
        len: usize,
        reply: impl FnOnce(Result<ReadBytes<'_>, Error>) + Send + 'static,
    ) {
        self.read(offset, len, Patience::Never, None, move |read| {
            reply(read.and_then(|bytes| {
                if bytes.len() == len {
                    return Ok(bytes);
                }
                let problem = format!("{} bytes at {offset} in place of {len}", bytes.len());
                Err(Error::internal(problem))
            }));
        });
    }

    /// Calls `reply` with `len` bytes at `offset`, or with fewer at the end of the file. The call comes from this
    /// thread if the bytes are in memory or `patience` allows this thread to wait, and otherwise from another thread.
    /// Bytes that have to be put together are put into memory of `lender`, if that is given.
    pub fn read(
        self: &Arc<Self>,
        offset: u64,
        len: usize,
        patience: Patience,
        lender: Option<Lender>,
        reply: impl FnOnce(Result<ReadBytes<'_>, Error>) + Send + 'static,
    ) {
        if let FileContent::Written(handle) = &self.content {
            if !waits_for(patience) {
                return self.read_later(offset, len, reply);
            }
            return self.read_written(handle, offset, len, reply);
        }
        let range = self.range(offset, len);
        let loader = &self.view.tree.loader;
        let waits = waits_for(patience);
        if range.is_empty() {
            return reply(Ok(ReadBytes::Shared(&[])));
        }
        let in_memory = match &self.content {
            FileContent::Chunk(chunk) => chunk.cached(loader, range.len()),
            FileContent::Whole(slice) => loader
                .whole_key(slice)
                .and_then(|key| loader.cache().get(&key)),
            FileContent::Document { text, .. } => text.upgrade(),
            FileContent::Preview(preview) => preview.cached(loader),
            _ => None,
        };
        if let Some(block) = in_memory {
            return reply(Ok(part(&block, range)));
        }
        match &self.content {
            FileContent::Generated(text) | FileContent::Momentary(text) => {
                reply(Ok(part(text, range)));
            }
            FileContent::Kept(text) => reply(Ok(part(text, range))),
            FileContent::Plain(plain) if waits || !loader.is_crowded() => {
                let range = (offset, range.len());
                plain.read(loader, range, patience, lender, Box::new(reply));
            }
            FileContent::Preview(preview) if waits => {
                let file = preview.file(loader);
                reply(
                    file.as_deref()
                        .map(|file| part(file, range))
                        .map_err(Error::clone),
                );
            }
            FileContent::Absent(array, indices) => {
                self.fill(range.len(), lender, reply, |out| {
                    array.chunked.layout().fill_absent(indices, offset, out);
                    Ok(true)
                });
            }
            FileContent::Stored(slice) if waits => {
                self.fill(range.len(), lender, reply, |out| {
                    slice.read_at(offset, out).map(|()| true)
                });
            }
            FileContent::Paged(pages, readahead) => {
                self.read_paged((pages, readahead), offset, len, patience, reply);
            }
            FileContent::Chunk(chunk) if waits => {
                let reply = self.fill(range.len(), lender, reply, |out| {
                    chunk.read_part(loader, offset, out)
                });
                if let Some(reply) = reply {
                    chunk.load(loader, range.len(), answer_with(range, reply));
                }
            }
            FileContent::Whole(slice) if waits => self.read_whole(slice, range, reply),
            FileContent::Document {
                vnode, fingerprint, ..
            } if waits => {
                let text = self.document(vnode, *fingerprint);
                reply(
                    text.as_deref()
                        .map(|text| part(text, range))
                        .map_err(Error::clone),
                );
            }
            FileContent::Written(_) | FileContent::Sync => reply(Ok(ReadBytes::Shared(&[]))),
            FileContent::Plain(_)
            | FileContent::Preview(_)
            | FileContent::Stored(_)
            | FileContent::Chunk(_)
            | FileContent::Whole(_)
            | FileContent::Document { .. } => self.read_later(offset, len, reply),
        }
    }

    /// Reads from the pages of an object, which are in the cache or are loaded into it.
    fn read_paged(
        self: &Arc<Self>,
        (pages, readahead): (&Arc<Pages>, &KeyReadahead),
        offset: u64,
        len: usize,
        patience: Patience,
        reply: impl FnOnce(Result<ReadBytes<'_>, Error>) + Send + 'static,
    ) {
        let range = self.range(offset, len);
        let loader = &self.view.tree.loader;
        if let Some((number, from)) = pages.only_page(offset, range.len()) {
            return match loader.page(pages, number, patience) {
                Ok(Some(block)) => {
                    readahead.advance(loader, pages, offset, range.len() as u64);
                    reply(Ok(part(&block, from..from + range.len())));
                }
                Ok(None) => self.read_later(offset, len, reply),
                Err(error) => reply(Err(error)),
            };
        }
        let mut reply = reply;
        // Memory for the bytes is taken only after their pages have come. The cache may evict pages before they
        // are read; only the last attempt waits for pages while it holds that memory.
        for is_last in [false, false, false, true] {
            match loader.load_pages(pages, offset, range.len(), patience) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => return reply(Err(error)),
            }
            let patience = if is_last { patience } else { Patience::Never };
            let _permit = (patience == Patience::Waits).then(|| loader.hold_output());
            let left = self.fill(range.len(), None, reply, |out| {
                let is_read = loader.read_pages(pages, offset, out, patience)?;
                if is_read {
                    readahead.advance(loader, pages, offset, out.len() as u64);
                }
                Ok(is_read)
            });
            let Some(left) = left else { return };
            reply = left;
        }
        self.read_later(offset, len, reply);
    }

    /// Repeats the read on a thread that may wait for the store.
    fn read_later(
        self: &Arc<Self>,
        offset: u64,
        len: usize,
        reply: impl FnOnce(Result<ReadBytes<'_>, Error>) + Send + 'static,
    ) {
        let file = Arc::clone(self);
        let read = move || file.read(offset, len, Patience::Waits, None, reply);
        let class = match &self.content {
            // The read waits while the file is saved.
            FileContent::Written(handle) if handle.has_draft() => Class::Changes,
            _ => Class::Read,
        };
        self.view.tree.loader.threads().submit(class, read);
    }

    /// Replies with `len` bytes that `fill` writes. When `fill` returns `false`, nothing is sent and the caller gets
    /// `reply` back.
    fn fill<R: FnOnce(Result<ReadBytes<'_>, Error>)>(
        &self,
        len: usize,
        lender: Option<Lender>,
        reply: R,
        fill: impl FnOnce(&mut [u8]) -> Result<bool, Error>,
    ) -> Option<R> {
        let buffer = ReadBuffer::new(self.view.tree.loader.cache(), len, lender);
        match buffer.and_then(|mut buffer| Ok(fill(&mut buffer)?.then_some(buffer))) {
            Ok(Some(buffer)) => buffer.give(len, reply),
            Ok(None) => return Some(reply),
            Err(error) => reply(Err(error)),
        }
        None
    }

    fn read_whole(
        &self,
        slice: &Slice,
        range: Range<usize>,
        reply: impl FnOnce(Result<ReadBytes<'_>, Error>) + Send + 'static,
    ) {
        let loader = Arc::clone(&self.view.tree.loader);
        let Some(key) = loader.whole_key(slice) else {
            let name = slice.name();
            return reply(Err(Error::internal(format!("{name}: not a whole object"))));
        };
        let (reader, slice) = (Arc::clone(&loader), slice.clone());
        let load = move || reader.read_whole(&slice);
        loader.ask_for(key, load, answer_with(range, reply), Patience::Waits);
    }

    /// Makes the text again after the cache evicted it; the error is [`Error::Stale`] if the text has changed.
    fn document(&self, vnode: &Vnode, fingerprint: u64) -> Result<Arc<Block>, Error> {
        let (_, text) = self.view.document_of(vnode)?.ok_or(Error::Stale)?;
        if text.stamp() != fingerprint {
            return Err(Error::Stale);
        }
        Ok(text)
    }

    /// `len` bytes at `offset`, cut at the end of the file, as a range of a block.
    fn range(&self, offset: u64, len: usize) -> Range<usize> {
        let start = offset.min(self.len);
        let end = start.saturating_add(len as u64).min(self.len);
        // Positions beyond the address space are clamped: such a file is never one block, so they
        // are not used.
        let start = usize::try_from(start).unwrap_or(usize::MAX - len);
        let cut = usize::try_from(end.saturating_sub(offset.min(self.len))).unwrap_or(len);
        start..start.saturating_add(cut)
    }
}

fn waits_for(patience: Patience) -> bool {
    patience == Patience::Waits
}

/// Replies with `range` of the block that the loader returns.
fn answer_with(
    range: Range<usize>,
    reply: impl FnOnce(Result<ReadBytes<'_>, Error>) + Send + 'static,
) -> AnswerCallback {
    Box::new(move |answer| match answer {
        Ok(Some(block)) => reply(Ok(part(&block, range))),
        Ok(None) => reply(Err(Error::Stale)),
        Err(error) => reply(Err(error)),
    })
}

/// The bytes of a block that are in `range`; fewer where the block ends before.
fn part(block: &[u8], range: Range<usize>) -> ReadBytes<'_> {
    let end = range.end.min(block.len());
    let bytes = block.get(range.start.min(end)..end);
    bytes.unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_ends_with_the_block() {
        let block = [0, 1, 2, 3, 4];
        let cases: [(Range<usize>, &[u8]); 6] = [
            (0..5, &block),
            (0..9, &block),
            (1..3, &[1, 2]),
            (4..5, &[4]),
            (5..6, &[]),
            (usize::MAX..usize::MAX, &[]),
        ];
        for (range, bytes) in cases {
            assert_eq!(*part(&block, range), *bytes);
        }
    }
}
