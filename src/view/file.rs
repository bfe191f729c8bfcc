//! Opened files: the bytes of one version of a vnode.
//!
//! What is at hand or a plain positional read is answered on the spot ([`OpenFile::try_read`]);
//! what must be decoded is loaded by a worker ([`OpenFile::load`]). A handle pins an object of
//! the store, never memory of the cache, so that idle handles do not starve the others.

use std::ops::{Deref, Range};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Weak};

use super::View;
use super::arrays::{KeptText, PlainOpen};
use super::chunk_file::ChunkFile;
use super::shown::{Form, ShownArray};
use super::vnode::{Attributes, Vnode};
use crate::buffers::{Buffer, NoMemory, zeroed};
use crate::chunk::{Block, Continuation, Slice};
use crate::error::Error;
use crate::store::{Key, Object, ObjectMeta};

/// A file that was opened, and its attributes at that moment.
#[derive(Debug)]
pub struct Opened {
    /// Of the version that `file` holds.
    pub attributes: Attributes,
    /// Its bytes.
    pub file: OpenFile,
}

/// One version of the bytes of a vnode.
#[derive(Debug)]
pub struct OpenFile {
    view: Arc<View>,
    len: u64,
    content: Content,
}

#[derive(Debug)]
pub(super) enum Content {
    /// Bytes of a stored object, as they are.
    Stored(Slice),
    /// All bytes of a stored object that cannot be read in ranges.
    Whole(Slice),
    /// Fill value.
    Absent(Arc<ShownArray>),
    /// A chunk that has to be decoded, or taken out of a shard that had to be.
    Chunk(Arc<ChunkFile>),
    /// A whole array, or several.
    Plain(PlainOpen),
    /// A metadata document, edited or written.
    Document {
        vnode: Vnode,
        fingerprint: u64,
        /// Gone when the cache evicted it; then it is made again.
        text: Weak<Block>,
    },
    /// A short generated text.
    Generated(Vec<u8>),
    /// A long one, which all who have it open share.
    Kept(Arc<KeptText>),
    /// Counters, as they were when the file was opened.
    Statistics(Vec<u8>),
}

/// What callers of [`OpenFile::try_read`] keep room for.
const SCRATCH_BYTES: usize = 64 << 10;

/// Bytes that answer a read.
#[derive(Debug)]
pub enum Data<'a> {
    /// Part of a block of the cache.
    Block(Arc<Block>, Range<usize>),
    /// Bytes at hand, or read into the caller's buffer.
    Bytes(&'a [u8]),
    /// Bytes read into a buffer that others use in turn.
    Buffer(Buffer),
}

/// Where bytes are read to.
enum Room<'a> {
    /// The caller's buffer.
    Short(&'a mut [u8]),
    /// One that was used just before, by whatever thread: its memory is at hand.
    Long(Buffer),
}

impl Deref for Data<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Data::Block(block, range) => block.get(range.clone()).unwrap_or_default(),
            Data::Bytes(bytes) => bytes,
            Data::Buffer(buffer) => buffer,
        }
    }
}

impl View {
    pub(super) fn open_vnode(self: &Arc<Self>, vnode: &Vnode) -> Result<Option<Opened>, Error> {
        match vnode {
            Vnode::Object { key, .. } => {
                let object = self.shared.sources.open(key)?;
                Ok(object.map(|object| self.open_object(object, key)))
            }
            Vnode::Unsupported { key, .. } => {
                let Some(object) = self.shared.sources.open(key)? else {
                    return Ok(None);
                };
                let meta = self.shown_apart(object.meta(), &key.parent())?;
                let opened = self.open_object(object, key);
                Ok(Some(Opened {
                    attributes: self.object(&meta),
                    ..opened
                }))
            }
            Vnode::Document { .. } | Vnode::Written { .. } => {
                Ok(self.document_of(vnode)?.map(|(meta, text)| {
                    let attributes = self.edited_document(&meta, &text);
                    let content = Content::Document {
                        vnode: vnode.clone(),
                        fingerprint: attributes.fingerprint,
                        text: Arc::downgrade(&text),
                    };
                    self.opened(attributes, content)
                }))
            }
            Vnode::Plain(name) => self.open_plain(name),
            Vnode::ErrorNote { view, path } => {
                let note = self.note(*view, path)?;
                Ok(
                    note.map(|(attributes, text)| {
                        self.opened(attributes, Content::Generated(text))
                    }),
                )
            }
            Vnode::Statistics => {
                let attributes = self.attributes_of(vnode)?;
                let text = self.statistics();
                Ok(attributes.map(|found| self.opened(found, Content::Statistics(text))))
            }
            Vnode::Chunk(place) => {
                let array = self.array_of(place)?;
                if !array.grid().contains(&place.indices) {
                    return Ok(None);
                }
                self.open_chunk(array, &place.indices)
            }
            Vnode::Views | Vnode::Control | Vnode::Prefix { .. } | Vnode::ChunkDirectory(_) => {
                Ok(None)
            }
        }
    }

    fn document_of(&self, vnode: &Vnode) -> Result<Option<(ObjectMeta, Arc<Block>)>, Error> {
        match vnode {
            Vnode::Document { view, key } => self.document(*view, key),
            Vnode::Written { view, path, name } => self.written(*view, path, *name),
            Vnode::Plain(name) => self.long_text(name),
            _ => Ok(None),
        }
    }

    fn open_chunk(
        self: &Arc<Self>,
        array: Arc<ShownArray>,
        indices: &[u64],
    ) -> Result<Option<Opened>, Error> {
        let reader = &array.reader;
        let absent = |array: Arc<ShownArray>, attributes: Option<Attributes>| {
            attributes.map(|attributes| self.opened(attributes, Content::Absent(array)))
        };
        let found = reader.open_stored(indices, None)?;
        if array.form != Form::Stored {
            self.check_current(&array)?;
        }
        let Some(object) = found else {
            let attributes = self.absent_chunk(&array)?;
            return Ok(absent(array, attributes));
        };
        let meta = self.chunk_meta(&array, indices, object.meta())?;
        if array.form == Form::Stored {
            return Ok(Some(self.open_object(object, &reader.stored_key(indices)?)));
        }
        let Some(chunk) = reader.locate(&object, indices)? else {
            let attributes = array.absent_len.map(|len| self.part(&meta, len));
            return Ok(absent(array, attributes));
        };
        let encoded_len = chunk.encoded.len();
        let (len, as_stored) = match array.form {
            Form::Decoded => {
                let len = array.decoded_len_of(&object, indices)?;
                // Stored bytes that are decoded bytes need no decoder, if the length is right.
                let same =
                    reader.layout().is_identity() && array.decoded_len() == Some(encoded_len);
                (len, same)
            }
            Form::Encoded | Form::Stored => {
                array.check_encoded(indices, &chunk.encoded)?;
                (encoded_len, true)
            }
        };
        let attributes = self.part(&meta, len);
        // A slice of a shard's body would pin it.
        let content = if as_stored && chunk.encoded.in_memory().is_none() {
            self.stored(chunk.encoded)
        } else {
            Content::Chunk(Arc::new(ChunkFile::new(array, object, indices, chunk)))
        };
        Ok(Some(self.opened(attributes, content)))
    }

    fn open_object(self: &Arc<Self>, object: Arc<dyn Object>, key: &Key) -> Opened {
        let attributes = self.object(object.meta());
        let slice = Slice::of_object(object, key.to_string().into());
        self.opened(attributes, self.stored(slice))
    }

    fn stored(&self, slice: Slice) -> Content {
        if self.shared.is_read_whole(&slice) {
            Content::Whole(slice)
        } else {
            Content::Stored(slice)
        }
    }

    pub(super) fn opened(self: &Arc<Self>, attributes: Attributes, content: Content) -> Opened {
        Opened {
            attributes,
            file: OpenFile {
                view: Arc::clone(self),
                len: attributes.size,
                content,
            },
        }
    }
}

impl OpenFile {
    /// Bytes in the file.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether each open shows other bytes, so that nobody may keep them.
    pub fn is_uncached(&self) -> bool {
        matches!(self.content, Content::Statistics(_))
    }

    /// Whether pages that the kernel holds of this version are good: of a whole array, only if
    /// they were all read from the same state of its chunks.
    pub fn keeps_pages(&self) -> bool {
        match &self.content {
            Content::Plain(plain) => plain.keeps_pages(),
            _ => true,
        }
    }

    /// The kernel holds no pages of this version any more.
    pub fn pages_dropped(&self) {
        if let Content::Plain(plain) = &self.content {
            plain.pages_dropped();
        }
    }

    /// The file of the store whose bytes these are, when they are all of it.
    pub fn backing(&self) -> Option<BorrowedFd<'_>> {
        match &self.content {
            Content::Stored(slice) => slice.whole_object()?.as_file(),
            _ => None,
        }
    }

    /// Answers a read of `len` bytes at `offset` when that takes no decoding; `None` when
    /// [`OpenFile::load`] must be asked. The answer is cut at the end of the file, and only
    /// there.
    pub fn try_read<'a>(
        &'a self,
        offset: u64,
        len: usize,
        scratch: &'a mut Vec<u8>,
    ) -> Option<Result<Data<'a>, Error>> {
        let range = self.range(offset, len);
        let len = range.len();
        if len == 0 {
            return Some(Ok(Data::Bytes(&[])));
        }
        match &self.content {
            Content::Stored(slice) => {
                Some(self.fill(scratch, len, |buf| slice.read_at(offset, buf)))
            }
            Content::Absent(array) => Some(self.fill(scratch, len, |buf| {
                array.reader.layout().fill_absent(offset, buf);
                Ok(())
            })),
            Content::Generated(text) | Content::Statistics(text) => {
                Some(Ok(Data::Bytes(text.get(range).unwrap_or_default())))
            }
            Content::Kept(text) => Some(Ok(Data::Bytes(text.get(range).unwrap_or_default()))),
            Content::Document { text, .. } => Some(Ok(Data::Block(text.upgrade()?, range))),
            Content::Chunk(chunk) => {
                if let Some(block) = chunk.cached(&self.view, len) {
                    return Some(Ok(Data::Block(block, range)));
                }
                let mut room = self.room(scratch, len).ok()?;
                let read = chunk.try_read(offset, room.bytes())?;
                Some(read.map(|()| room.data()))
            }
            Content::Plain(plain) => {
                let mut room = self.room(scratch, len).ok()?;
                let read = plain.try_read(offset, room.bytes());
                read.then(|| Ok(room.data()))
            }
            Content::Whole(slice) => {
                let shared = &self.view.shared;
                let block = shared.cache.get(&shared.whole_key(slice)?)?;
                Some(Ok(Data::Block(block, range)))
            }
        }
    }

    /// Calls `then` with `len` bytes at `offset`, cut at the end of the file, on this thread or,
    /// when another one loads them already, on that.
    pub fn load(
        &self,
        offset: u64,
        len: usize,
        then: impl FnOnce(Result<&[u8], Error>) + Send + 'static,
    ) {
        let range = self.range(offset, len);
        let len = range.len();
        if let Content::Plain(plain) = &self.content {
            let mut bytes = match self.view.shared.cache.buffers().scratch(len) {
                Ok(bytes) => bytes,
                Err(error) => return then(Err(error.into())),
            };
            let read = plain.read(offset, &mut bytes);
            return then(read.map(|()| &*bytes));
        }
        if let Content::Chunk(chunk) = &self.content
            && chunk.may_be_read_in_part(offset, len)
        {
            let mut bytes = match zeroed(len) {
                Ok(bytes) => bytes,
                Err(error) => return then(Err(error.into())),
            };
            match chunk.read_part(offset, &mut bytes) {
                Ok(true) => return then(Ok(&bytes)),
                Ok(false) => {}
                Err(error) => return then(Err(error)),
            }
        }
        let then: Continuation = Box::new(move |block| {
            then(
                block
                    .as_ref()
                    .map(|block| part(block, range))
                    .map_err(Clone::clone),
            );
        });
        match &self.content {
            Content::Chunk(chunk) => chunk.load(len, then),
            Content::Whole(slice) => self.view.shared.read_whole_then(slice, then),
            Content::Document {
                vnode, fingerprint, ..
            } => then(self.document(vnode, *fingerprint)),
            // Those that `try_read` always answers.
            Content::Stored(_)
            | Content::Absent(_)
            | Content::Generated(_)
            | Content::Kept(_)
            | Content::Plain(_)
            | Content::Statistics(_) => then(Err(Error::Panicked)),
        }
    }

    fn room<'a>(&self, scratch: &'a mut Vec<u8>, len: usize) -> Result<Room<'a>, NoMemory> {
        if len > SCRATCH_BYTES {
            return self
                .view
                .shared
                .cache
                .buffers()
                .scratch(len)
                .map(Room::Long);
        }
        if scratch.len() < len {
            scratch.resize(SCRATCH_BYTES, 0);
        }
        Ok(Room::Short(&mut scratch[..len]))
    }

    /// Makes `read` fill `len` bytes.
    fn fill<'a>(
        &self,
        scratch: &'a mut Vec<u8>,
        len: usize,
        read: impl FnOnce(&mut [u8]) -> Result<(), Error>,
    ) -> Result<Data<'a>, Error> {
        let mut room = self.room(scratch, len)?;
        read(room.bytes())?;
        Ok(room.data())
    }

    /// The document again, if it still says what it said.
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
        // A file longer than memory has no block, and its ranges are not used as such.
        let start = usize::try_from(start).unwrap_or(usize::MAX - len);
        let cut = usize::try_from(end.saturating_sub(offset.min(self.len))).unwrap_or(len);
        start..start.saturating_add(cut)
    }
}

/// The part of a block that is in `range`, as far as it goes.
fn part(block: &[u8], range: Range<usize>) -> &[u8] {
    let end = range.end.min(block.len());
    block.get(range.start.min(end)..end).unwrap_or_default()
}

impl<'a> Room<'a> {
    fn bytes(&mut self) -> &mut [u8] {
        match self {
            Room::Short(bytes) => bytes,
            Room::Long(buffer) => buffer,
        }
    }

    fn data(self) -> Data<'a> {
        match self {
            Room::Short(bytes) => Data::Bytes(bytes),
            Room::Long(buffer) => Data::Buffer(buffer),
        }
    }
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
            assert_eq!(part(&block, range), bytes);
        }
    }
}
