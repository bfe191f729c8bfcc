//! Chunks of a writable view: files of their elements, or of their encoded bytes.
//!
//! In a view that shows the store as it is, only the name of a file shows that it is a chunk. With `--check`, such a file
//! is decoded by the codecs of the array above it, if there is one. If a new array gets its document after its chunks, the
//! document is checked against these chunks.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::error::Error;
use crate::error::until_current;
use crate::files::{CleanFile, Form, Translation, is_document, looks_like_a_chunk};
use crate::grid::Dims;
use crate::hierarchy::Node;
use crate::load::{Cache, ChunkedArray, Shards};
use crate::metadata::{DocumentName, NodeMetadata};
use crate::shards::{ChunkObject, InnerChunk};
use crate::store::{Key, NewFile, Prefix, StoredFile};
use crate::translate::{
    ChunkFile, DecodedChunk, DraftBytes, Encoded, EncodedChunk, Rules, memory_for_document,
    parse_new,
};
use crate::view::nodes::meaning::still;
use crate::view::nodes::node::{ShownArray, makes_an_array};
use crate::view::vnode::ChunkPlace;
use crate::view::{OpenedVnode, View, ViewKind};

use super::earlier_chunks::NewArray;
use super::stored_bytes::read_encoded;

/// A file of a chunk.
#[derive(Debug)]
pub(super) struct ChunkForm {
    pub(super) view: Arc<View>,
    /// The key of its object, or of its shard.
    pub(super) key: Key,
    /// The place of the chunk in its array; `None` if the view shows the store as it is.
    pub(super) place: Option<ChunkPlace>,
    pub(super) object: ChunkObject,
    pub(super) rules: Rules,
    /// Whether the file has the elements of the chunk, and not its encoded bytes.
    pub(super) is_decoded: bool,
}

/// Whether the object at `key` is checked before it is saved, in a mount with `--check`. The document of a new array is
/// checked, too, because its chunks may have been made before it.
pub(super) fn is_checked(key: &Key) -> bool {
    makes_an_array(key.name()) || looks_like_a_chunk(key.name()) && !is_document(key)
}

impl ChunkForm {
    /// The array as it was known a moment ago, for uses that need not follow a change of the document at once.
    fn known_array(&self) -> Result<Arc<ShownArray>, Error> {
        let place = self.place.as_ref().ok_or(Error::Stale)?;
        self.view.tree.array_of(place)
    }

    /// The array as its document describes it now.
    fn array(&self) -> Result<Arc<ShownArray>, Error> {
        let place = self.place.as_ref().ok_or(Error::Stale)?;
        until_current(|| self.view.tree.array_now(place))
    }

    fn checks(&self) -> bool {
        self.view.tree.options.writes.checks
    }

    /// The translation of the file, by the current documents.
    fn translation(&self) -> Result<ChunkFile<'_>, Error> {
        self.translation_by(|| self.array())
    }

    /// Like [`ChunkForm::translation`], just after the documents were examined.
    fn known_translation(&self) -> Result<ChunkFile<'_>, Error> {
        self.translation_by(|| until_current(|| self.known_array()))
    }

    /// The translation of a file of elements by this array, and of a file of encoded bytes by the one that is known.
    fn translation_by(
        &self,
        array: impl FnOnce() -> Result<Arc<ShownArray>, Error>,
    ) -> Result<ChunkFile<'_>, Error> {
        let tree = &self.view.tree;
        let max_bytes = tree.loader.max_chunk_bytes();
        let has_ended = |array: &ShownArray| array.has_ended.load(Ordering::Relaxed);
        if let Some(place) = self.place.as_ref().filter(|_| self.is_decoded) {
            let array = array()?;
            return Ok(ChunkFile::Elements(DecodedChunk {
                key: &self.key,
                array: Arc::clone(&array.chunked),
                indices: &place.indices,
                has_ended: has_ended(&array),
                writes: tree.options.writes,
                max_bytes,
            }));
        }
        Ok(ChunkFile::Encoded(EncodedChunk {
            key: &self.key,
            is_of_array: self.place.is_some(),
            has_ended: self.inner().is_some() && has_ended(&*self.known_array()?),
            array: self.stored_array()?,
            is_checked: self.checks(),
            max_bytes,
        }))
    }

    /// The array that the encoded chunk belongs to, with its shards whole, and the indices of the chunk; `None` if
    /// it belongs to none.
    fn stored_array(&self) -> Result<Option<(Arc<ChunkedArray>, Dims)>, Error> {
        if let Some(place) = &self.place {
            let array = Arc::clone(&self.known_array()?.chunked);
            return Ok(Some((array, place.indices.clone())));
        }
        for prefix in self.key.parent().with_ancestors() {
            let Node::Array(node) = self.view.tree.hierarchy.node(&prefix)? else {
                continue;
            };
            let name = prefix.strip(self.key.as_bytes()).unwrap_or_default();
            let metadata = &node.metadata;
            let indices = metadata.chunk_keys.decode(name, metadata.shape.len());
            let Some(indices) = indices else {
                return Ok(None);
            };
            let array = ChunkedArray::new(&node, Shards::Keep);
            return array
                .map(|array| Some((Arc::new(array), indices)))
                .map_err(|error| Error::in_document(&node.document.key, error));
        }
        Ok(None)
    }

    /// Whether the file is the document of an array, in a view that shows the store as it is.
    fn is_document(&self) -> bool {
        self.place.is_none() && makes_an_array(self.key.name())
    }

    /// Refuses the document `written` of a new array if chunks that were made before it cannot be decoded. Bytes that
    /// are no document of an array are accepted.
    fn check_new_document(&self, written: &[u8]) -> Result<(), Error> {
        let parsed = parse_new(DocumentName::of(self.key.name()), written);
        let Ok(NodeMetadata::Array(mut metadata)) = parsed else {
            return Ok(());
        };
        let prefix = &self.key.parent();
        let hierarchy = &self.view.tree.hierarchy;
        hierarchy.find_separator(prefix, &mut metadata)?;
        let new = NewArray {
            key: &self.key,
            prefix,
            metadata: &metadata,
        };
        self.view.check_earlier_chunks(ViewKind::Keys, &new)
    }

    fn open_once(&self) -> Result<Option<CleanFile>, Error> {
        if let Some(place) = &self.place {
            return open_chunk(&self.view, place, &self.object);
        }
        let tree = &self.view.tree;
        let Some(stored) = tree.open_stored(&self.key)? else {
            return Ok(None);
        };
        let Some(object) = tree.sources_of(ViewKind::Keys).open(&self.key)? else {
            return Ok(None);
        };
        if object.meta().version != stored.meta.version {
            return Err(Error::Stale);
        }
        let OpenedVnode { file, .. } = self.view.open_object(object, &self.key);
        let version = stored.meta.version.fingerprint();
        Ok(Some(CleanFile {
            file,
            attributes: tree
                .writable(&stored.meta, stored.meta.size(), version)
                .into(),
            stored: Some(stored),
        }))
    }
}

impl Translation for ChunkForm {
    fn is_current(&self) -> Result<bool, Error> {
        let Some(place) = &self.place else {
            return Ok(true);
        };
        still(self.view.tree.array_now(place).and_then(|array| {
            // Another list of chunk lengths may begin with the same one.
            let len = array.chunked.layout().decoded_len(&place.indices);
            let has_same_len = !self.is_decoded || len == self.rules.len;
            has_same_len.then_some(()).ok_or(Error::Stale)
        }))
    }

    fn cache(&self) -> &Cache {
        self.view.tree.loader.cache()
    }

    fn memory(&self, len: u64) -> Result<u64, Error> {
        if self.is_document() {
            return Ok(memory_for_document(len));
        }
        // The documents are examined when the chunk is encoded or decoded.
        Ok(self.translation_by(|| self.known_array())?.memory(len))
    }

    fn decode(&self, stored: Option<&StoredFile>) -> Result<Vec<u8>, Error> {
        let translation = self.translation()?;
        let layout = translation.array().map(ChunkedArray::layout);
        let loader = &self.view.tree.loader;
        let read = |stored| read_encoded(loader, &self.object.read(stored)?, layout);
        let encoded = stored.map(read).transpose()?;
        loader.decoding(|| translation.decode(encoded))
    }

    fn is_shown_as_is(&self, head: &[u8]) -> Result<bool, Error> {
        // To encode a chunk is never wrong. For many chunks, it is known to be necessary without reading the documents.
        let is_encoded =
            self.rules.draft == DraftBytes::Encoded || !self.is_decoded && self.checks();
        Ok(!is_encoded && self.known_translation()?.is_shown_as_is(head)?)
    }

    fn encode(&self, shown: &[u8], stored: Option<&StoredFile>) -> Result<Encoded, Error> {
        if self.is_document() {
            if stored.is_none() {
                self.check_new_document(shown)?;
            }
            return Ok(Encoded::AsShown);
        }
        let translation = self.known_translation()?;
        let loader = &self.view.tree.loader;
        loader.decoding(|| translation.encode(shown))
    }
}

impl Form for ChunkForm {
    fn rules(&self) -> Rules {
        self.rules
    }

    fn open(&self) -> Result<Option<CleanFile>, Error> {
        until_current(|| self.open_once())
    }

    fn exists(&self) -> Result<bool, Error> {
        Ok(self.object.now()?.is_some())
    }

    fn inner(&self) -> Option<&InnerChunk> {
        self.object.inner()
    }

    fn new_file(&self) -> Result<NewFile, Error> {
        self.object.new_file()
    }

    fn moved(&self, key: &Key) -> Option<Arc<dyn Form>> {
        let tree = &self.view.tree;
        let place = self.place.as_ref();
        let place = place.and_then(|place| moved_place(&self.view, place, (&self.key, key)));
        let object = place.as_ref().and_then(|place| {
            let array = tree.array_of(place).ok()?;
            tree.chunk_object(&array, &place.indices).ok()?
        });
        if object.is_none() && self.is_decoded {
            return None;
        }
        let staging = tree.writings.as_ref()?.staging();
        Some(Arc::new(ChunkForm {
            view: Arc::clone(&self.view),
            key: key.clone(),
            // Without an array at the new key, the file shows the bytes of its object.
            place,
            object: object.unwrap_or_else(|| ChunkObject::at(staging, key)),
            rules: self.rules,
            is_decoded: self.is_decoded,
        }))
    }
}

/// Opens the chunk at `place`, which has this object.
fn open_chunk(
    view: &Arc<View>,
    place: &ChunkPlace,
    object: &ChunkObject,
) -> Result<Option<CleanFile>, Error> {
    // Whether the document is current is checked after the chunk is opened.
    let array = view.tree.array_of(place)?;
    if !array.grid().contains(&place.indices) {
        return Ok(None);
    }
    // The module `files` waits until the object is settled, unless this mount has written it.
    let opened = view.tree.in_one_directory(&array, || -> Result<_, Error> {
        let (object, stored) = object.open()?.unzip();
        let opened = view.opened_chunk(Arc::clone(&array), &place.indices, object)?;
        Ok(opened.map(|(opened, _)| (opened, stored)))
    })?;
    Ok(
        opened.map(|(OpenedVnode { attributes, file }, stored)| CleanFile {
            file,
            stored,
            attributes: attributes.into(),
        }),
    )
}

/// The chunk `place` after a directory above its object was renamed, so that the object, which was at
/// `from`, is at `to`.
fn moved_place(view: &View, place: &ChunkPlace, (from, to): (&Key, &Key)) -> Option<ChunkPlace> {
    // The object has kept the end of its key.
    let end = from.as_bytes().strip_prefix(place.path.as_bytes())?;
    let path = Prefix::parse(to.as_bytes().strip_suffix(end)?).ok()?;
    let array = view.tree.shown(place.view, &path).ok()?;
    Some(array.into_array()?.place(place.indices.clone()))
}
