//! Chunks of the keys view, which are the bytes of their objects. The bytes are the writer's, and stay
//! as they are; with `--check` they are decoded before they are saved.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::error::until_current;
use crate::error::{Error, FormatError};
use crate::files::{CleanFile, Encoded, Form, is_document, looks_like_a_chunk};
use crate::hierarchy::Node;
use crate::load::{Cache, ChunkedArray, Shards};
use crate::metadata::{DocumentName, NodeMetadata, v2, v3};
use crate::shards::InnerChunk;
use crate::store::{Key, NewFile, StoredFile};
use crate::view::nodes::meaning::still;
use crate::view::nodes::node::makes_an_array;
use crate::view::vnode::ChunkPlace;
use crate::view::{OpenedVnode, View, ViewKind};

use super::chunk::{inner_at, moved_place, open_chunk, open_inner, read_encoded};
use super::document::room_for;
use super::earlier_chunks::NewArray;

/// The object at `key`, which is a chunk.
#[derive(Debug)]
pub(super) struct EncodedForm {
    pub(super) view: Arc<View>,
    pub(super) key: Key,
    /// The chunk; `None` where the view shows the store as it is, and only the name tells that it is
    /// a chunk.
    pub(super) place: Option<ChunkPlace>,
    /// The inner chunk of a shard that it is; `None` where it is an object.
    pub(super) inner: Option<InnerChunk>,
}

/// Whether the object at `key` is decoded before it is saved, if that is asked for. The document of a new array
/// is looked at, because chunks may have been made before it.
pub(super) fn is_checked(key: &Key) -> bool {
    is_array_document(key) || looks_like_a_chunk(key.name()) && !is_document(key)
}

fn is_array_document(key: &Key) -> bool {
    makes_an_array(key.name())
}

impl EncodedForm {
    fn is_checked(&self) -> bool {
        self.view.tree.options.writes.checks
    }

    /// The array that has this chunk, with its shards whole; `None` where no array has it.
    fn array(&self) -> Result<Option<Arc<ChunkedArray>>, Error> {
        if let Some(place) = &self.place {
            let array = self.view.tree.array_of(place)?;
            return Ok(Some(Arc::clone(&array.chunked)));
        }
        for prefix in self.key.parent().with_ancestors() {
            let Node::Array(node) = self.view.tree.hierarchy.node(&prefix)? else {
                continue;
            };
            let name = prefix.strip(self.key.as_bytes()).unwrap_or_default();
            let metadata = &node.metadata;
            let found = metadata.chunk_keys.decode(name, metadata.shape.len());
            if found.is_none() {
                return Ok(None);
            }
            let array = ChunkedArray::new(&node, Shards::Keep);
            return array
                .map(|array| Some(Arc::new(array)))
                .map_err(|error| Error::in_document(&node.document.key, error));
        }
        Ok(None)
    }

    /// Refuses the document `written` of a new array where chunks that were made before it cannot be decoded. Any
    /// other bytes are the writer's business.
    fn check_new_document(&self, written: &[u8]) -> Result<(), Error> {
        let parsed = match DocumentName::of(self.key.name()) {
            Some(DocumentName::ZArray) => v2::parse_array(written),
            _ => match v3::parse(written) {
                Ok(NodeMetadata::Array(metadata)) => Ok(*metadata),
                Ok(NodeMetadata::Group) => return Ok(()),
                Err(error) => Err(error),
            },
        };
        let Ok(mut metadata) = parsed else {
            return Ok(());
        };
        let prefix = &self.key.parent();
        self.view
            .tree
            .hierarchy
            .find_separator(prefix, &mut metadata)?;
        let new = NewArray {
            key: &self.key,
            prefix,
            metadata: &metadata,
        };
        self.view.check_earlier_chunks(ViewKind::Keys, &new)
    }

    fn open_once(&self) -> Result<Option<CleanFile>, Error> {
        match (&self.place, &self.inner) {
            (Some(place), Some(inner)) => return open_inner(&self.view, place, inner),
            (Some(place), None) => return open_chunk(&self.view, place, &self.key),
            (None, _) => {}
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

impl Form for EncodedForm {
    fn len(&self) -> Option<u64> {
        None
    }

    fn max_len(&self) -> u64 {
        u64::MAX
    }

    fn open(&self) -> Result<Option<CleanFile>, Error> {
        until_current(|| self.open_once())
    }

    fn is_current(&self) -> Result<bool, Error> {
        let place = self.place.as_ref();
        still(place.map_or(Ok(()), |place| self.view.tree.array_now(place).map(drop)))
    }

    fn inner(&self) -> Option<&InnerChunk> {
        self.inner.as_ref()
    }

    fn new_file(&self) -> Result<NewFile, Error> {
        let inner = self.inner.as_ref().ok_or(Error::Stale)?;
        inner.new_file()
    }

    fn cache(&self) -> &Cache {
        self.view.tree.loader.cache()
    }

    fn is_shown_as_is(&self, head: &[u8]) -> Result<bool, Error> {
        // An empty file is refused when it is encoded.
        Ok(!self.is_checked() && (self.place.is_none() || !head.is_empty()))
    }

    fn room(&self, len: u64) -> Result<u64, Error> {
        if is_array_document(&self.key) {
            return Ok(room_for(len));
        }
        if !self.is_checked() {
            return Ok(len);
        }
        let Some(array) = self.array()? else {
            return Ok(len);
        };
        let decoded_len = array.layout().decoded_len().unwrap_or(len);
        let room = array.layout().encode_bytes(decoded_len);
        Ok(room.saturating_add(len))
    }

    fn decode(&self, stored: Option<&StoredFile>) -> Result<Vec<u8>, Error> {
        let Some(stored) = stored else {
            return Ok(Vec::new());
        };
        let array = self.array()?;
        let layout = array.as_ref().map(|array| array.layout());
        let what = (&self.key, self.inner.as_ref());
        read_encoded(&self.view, what, layout, stored)
    }

    fn is_stored(&self) -> bool {
        self.inner.is_none()
    }

    fn encode(&self, shown: &[u8], stored: Option<&StoredFile>) -> Result<Encoded, Error> {
        if is_array_document(&self.key) {
            if stored.is_none() {
                self.check_new_document(shown)?;
            }
            return Ok(Encoded::AsShown);
        }
        let refused = |error| Error::unacceptable(&self.key, error);
        if let Some(place) = &self.place {
            let array = self.view.tree.array_of(place)?;
            if self.inner.is_some() && array.has_ended.load(Ordering::Relaxed) {
                // Nothing would say what its shard is.
                let reason = "the array has no document any more";
                return Err(Error::unacceptable(&self.key, reason));
            }
            if shown.is_empty() {
                return Err(Error::unacceptable(
                    &self.key,
                    "an encoded chunk is not empty",
                ));
            }
            if !self.is_checked() {
                return Ok(Encoded::AsShown);
            }
        }
        let Some(array) = self.array()? else {
            return Ok(Encoded::AsShown);
        };
        let loader = &self.view.tree.loader;
        if let Some(len) = array.layout().decoded_len() {
            let what = "the size of a decoded chunk (see --max-chunk)";
            FormatError::check_limit(what, len, loader.max_chunk_bytes()).map_err(refused)?;
        }
        match loader.decode_bytes(&array, &self.key, shown) {
            Ok(_) => Ok(Encoded::AsShown),
            Err(Error::Chunk { error, .. }) => Err(refused(error)),
            Err(error) => Err(error),
        }
    }

    fn moved(&self, key: &Key) -> Option<Arc<dyn Form>> {
        let place = self.place.as_ref();
        let place = place.map(|place| moved_place(&self.view, place, (&self.key, key)));
        let place = place.flatten();
        let inner = place
            .as_ref()
            .and_then(|place| inner_at(&self.view, place).ok());
        Some(Arc::new(EncodedForm {
            view: Arc::clone(&self.view),
            key: key.clone(),
            // Without an array at the new key, the file shows the bytes of an object.
            place,
            inner: inner.flatten(),
        }))
    }
}
