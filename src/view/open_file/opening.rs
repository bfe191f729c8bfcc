//! How each vnode is opened.

use std::sync::Arc;

use super::{FileContent, OpenFile, OpenedChunk, OpenedVnode};
use crate::error::Error;
use crate::files::HandleAccess;
use crate::load::Slice;
use crate::read::KeyReadahead;
use crate::store::{Key, Object, StoreError, Version};
use crate::view::View;
use crate::view::arrays::PlainContent;
use crate::view::chunks::file::ChunkFile;
use crate::view::names::rename_locks::checked;
use crate::view::nodes::node::{FileForm, ShownArray};
use crate::view::vnode::{Vnode, VnodeAttributes};

impl View {
    pub(in crate::view) fn open_vnode(
        self: &Arc<Self>,
        vnode: &Vnode,
    ) -> Result<Option<OpenedVnode>, Error> {
        let opened = self.open_any(vnode)?;
        if let Vnode::Object { view, key } = vnode {
            checked(opened, self.tree.check_read(*view, key))
        } else {
            Ok(opened)
        }
    }

    fn open_any(self: &Arc<Self>, vnode: &Vnode) -> Result<Option<OpenedVnode>, Error> {
        match vnode {
            Vnode::Object { .. }
            | Vnode::Document { .. }
            | Vnode::Written { .. }
            | Vnode::Chunk(_)
                if self.tree.is_writable() =>
            {
                let writing = vnode.view().and_then(|view| self.tree.writing(view));
                match writing.zip(self.form_of(vnode)?) {
                    Some((writing, file)) => {
                        match self.open_written((writing, &file), HandleAccess::Reads, 0) {
                            // A link, or an object behind a link, can be read but not written.
                            Err(Error::Store(StoreError::Denied { .. })) => {
                                self.open_unwritten(vnode)
                            }
                            opened => opened,
                        }
                    }
                    None => self.open_unwritten(vnode),
                }
            }
            _ => self.open_unwritten(vnode),
        }
    }

    /// Opens a vnode that no program writes to.
    fn open_unwritten(self: &Arc<Self>, vnode: &Vnode) -> Result<Option<OpenedVnode>, Error> {
        match vnode {
            Vnode::Sync => {
                let attributes = self.attributes_of(vnode)?;
                Ok(attributes.map(|found| self.opened(found, FileContent::Sync)))
            }
            Vnode::Object { view, key } => {
                let object = self.tree.sources_of(*view).open(key)?;
                Ok(object.map(|object| self.open_object(object, key)))
            }
            Vnode::Unsupported { key, .. } => {
                let Some(object) = self.tree.loader.sources().open(key)? else {
                    return Ok(None);
                };
                let meta = self.tree.shown_apart(object.meta(), &key.parent())?;
                let opened = self.open_object(object, key);
                Ok(Some(OpenedVnode {
                    attributes: self.tree.object(&meta),
                    ..opened
                }))
            }
            Vnode::Document { .. } | Vnode::Written { .. } => {
                let opened = self.open_document(vnode.clone())?;
                Ok(opened.map(|(opened, _)| opened))
            }
            Vnode::Plain(name) => Ok(self.arrays.open_plain(name)?.map(|(attributes, content)| {
                let content = match content {
                    PlainContent::Elements(opened) => FileContent::Plain(opened),
                    PlainContent::Preview(opened) => FileContent::Preview(opened),
                    PlainContent::Kept(text) => FileContent::Kept(text),
                    PlainContent::Text { fingerprint, text } => FileContent::Document {
                        vnode: vnode.clone(),
                        fingerprint,
                        text,
                    },
                };
                self.opened(attributes, content)
            })),
            Vnode::ErrorNote { view, path } => Ok(self
                .note(*view, path)?
                .map(|(attributes, text)| self.opened(attributes, FileContent::Generated(text)))),
            Vnode::Statistics => self.momentary(vnode, self.statistics()),
            Vnode::Metrics => self.momentary(vnode, self.metrics()),
            Vnode::Log | Vnode::Refused => self.momentary(vnode, self.log_lines(vnode).text()),
            Vnode::Snapshot => match self.tree.snapshot_text() {
                Some(text) => self.momentary(vnode, text),
                None => Ok(None),
            },
            Vnode::Chunk(place) => {
                let array = self.tree.array_of(place)?;
                if !array.grid().contains(&place.indices) {
                    return Ok(None);
                }
                let opened = self.open_chunk_of(&array, &place.indices)?;
                Ok(opened.map(|(opened, _)| opened))
            }
            Vnode::Views
            | Vnode::Control
            | Vnode::Gone(_)
            | Vnode::Prefix { .. }
            | Vnode::ChunkDirectory(_) => Ok(None),
        }
    }

    /// Opens an edited or written document. The version is that of the stored one.
    pub(in crate::view) fn open_document(
        self: &Arc<Self>,
        vnode: Vnode,
    ) -> Result<Option<(OpenedVnode, Version)>, Error> {
        // A document that has copies of others must not be older than they are.
        let found = self.tree.looking_now(|| self.document_of(&vnode))?;
        Ok(found.map(|(meta, text)| {
            let attributes = self.tree.document(&meta, &text);
            let content = FileContent::Document {
                vnode,
                fingerprint: attributes.fingerprint,
                text: Arc::downgrade(&text),
            };
            (self.opened(attributes, content), meta.version)
        }))
    }

    /// Opens the chunk `indices` and the object that has it; a chunk without an object is shown as fill value.
    pub(in crate::view) fn open_chunk_of(
        self: &Arc<Self>,
        array: &Arc<ShownArray>,
        indices: &[u64],
    ) -> Result<Option<OpenedChunk>, Error> {
        self.tree.in_one_directory(array, || {
            let object = self.tree.asking_anew(array, || {
                (self.tree.loader).open_stored(&array.chunked, indices, None)
            })?;
            self.opened_chunk(Arc::clone(array), indices, object)
        })
    }

    /// Like [`View::open_chunk_of`], for a chunk in `object`, which was just opened. The caller has made sure that both
    /// belong to the same directory.
    pub(in crate::view) fn opened_chunk(
        self: &Arc<Self>,
        array: Arc<ShownArray>,
        indices: &[u64],
        found: Option<Arc<dyn Object>>,
    ) -> Result<Option<OpenedChunk>, Error> {
        let chunked = &array.chunked;
        let absent = |attributes: Option<VnodeAttributes>| {
            let content = FileContent::Absent(Arc::clone(&array), indices.into());
            Ok(attributes.map(|attributes| (self.opened(attributes, content), None)))
        };
        if found.is_none() || self.tree.depends_on_documents(array.view) {
            let key = chunked.stored_key(indices)?;
            let meta = found.as_ref().map(|object| object.meta());
            self.tree.check_current(&array, &key, meta)?;
        }
        let Some(object) = found else {
            return absent(self.tree.absent_chunk(&array, indices)?);
        };
        let meta = self.tree.chunk_meta(&array, indices, object.meta())?;
        if array.form == FileForm::Stored {
            let key = chunked.stored_key(indices)?;
            return Ok(Some((
                self.open_object(Arc::clone(&object), &key),
                Some(object),
            )));
        }
        let Some(chunk) = self.tree.loader.locate(chunked, &object, indices)? else {
            return absent((array.absent_len(indices)).map(|len| self.tree.part(&meta, len)));
        };
        let encoded_len = chunk.encoded.len();
        let (len, as_stored) = match array.form {
            FileForm::Decoded => {
                let len = array.decoded_len_of(&self.tree.loader, &object, indices)?;
                // Stored bytes that need no decoding are passed through if their length is right, unless one request
                // for all of them is better.
                let same = chunked.layout().is_identity()
                    && array.decoded_len(indices) == Some(encoded_len)
                    && !self.tree.loader.loads_early(chunked);
                (len, same)
            }
            FileForm::Encoded | FileForm::Stored => {
                array.check_encoded(indices, &chunk.encoded)?;
                (encoded_len, true)
            }
        };
        let fingerprint = meta.version.fingerprint();
        let attributes = match array.unwritable {
            None => self.tree.writable(&meta, len, fingerprint),
            Some(_) => self.tree.file(&meta, len, fingerprint),
        };
        // A slice of a decoded shard body would pin memory of the cache.
        let content = if as_stored && chunk.encoded.in_memory().is_none() {
            self.stored(chunk.encoded)
        } else {
            let object = Arc::clone(&object);
            FileContent::Chunk(Arc::new(ChunkFile::new(array, object, indices, chunk)))
        };
        Ok(Some((self.opened(attributes, content), Some(object))))
    }

    /// The file `vnode`, which has another `text` whenever it is opened.
    fn momentary(
        self: &Arc<Self>,
        vnode: &Vnode,
        text: Vec<u8>,
    ) -> Result<Option<OpenedVnode>, Error> {
        let size = text.len() as u64;
        let attributes = match vnode {
            // Their attributes have the length of the text, which would be made once more to measure it.
            Vnode::Metrics | Vnode::Snapshot => {
                Some(self.tree.file(&self.tree.root_meta(), size, 0))
            }
            _ => self.attributes_of(vnode)?,
        };
        Ok(attributes.map(|found| {
            let attributes = VnodeAttributes { size, ..found };
            self.opened(attributes, FileContent::Momentary(text))
        }))
    }

    pub(in crate::view) fn open_object(
        self: &Arc<Self>,
        object: Arc<dyn Object>,
        key: &Key,
    ) -> OpenedVnode {
        let attributes = self.tree.object(object.meta());
        let slice = Slice::of_object(object, key.to_string().into());
        self.opened(attributes, self.stored(slice))
    }

    fn stored(&self, slice: Slice) -> FileContent {
        if self.tree.loader.is_read_whole(&slice) {
            FileContent::Whole(slice)
        } else if let Some(pages) = self.tree.loader.pages_of(&slice) {
            FileContent::Paged(Arc::new(pages), KeyReadahead::default())
        } else {
            FileContent::Stored(slice)
        }
    }

    pub(in crate::view) fn opened(
        self: &Arc<Self>,
        attributes: VnodeAttributes,
        content: FileContent,
    ) -> OpenedVnode {
        OpenedVnode {
            attributes,
            file: Arc::new(OpenFile {
                view: Arc::clone(self),
                len: attributes.size,
                content,
            }),
        }
    }
}
