//! Chunks as files of decoded elements that are written.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::codec::Losses;
use crate::dtype::Element;
use crate::error::Error;
use crate::error::until_current;
use crate::files::{CleanFile, Encoded, Form};
use crate::load::{Cache, ChunkLayout, Slice, to_usize};
use crate::shards::InnerChunk;
use crate::store::{DirWriter, Key, NewFile, Object, Prefix, StoreError, StoredFile};
use crate::view::nodes::meaning::still;
use crate::view::nodes::node::ShownArray;
use crate::view::vnode::ChunkPlace;
use crate::view::{OpenedVnode, View};

/// A chunk, which is one object.
#[derive(Debug)]
pub(super) struct ChunkForm {
    pub(super) view: Arc<View>,
    pub(super) place: ChunkPlace,
    pub(super) key: Key,
    pub(super) len: Option<u64>,
    /// The inner chunk of a shard that it is; `None` where it is an object.
    pub(super) inner: Option<InnerChunk>,
}

impl ChunkForm {
    /// The array as it was known a moment ago, for what need not be right when the document changes.
    fn known_array(&self) -> Result<Arc<ShownArray>, Error> {
        self.view.tree.array_of(&self.place)
    }

    /// The array as its document says now.
    fn array(&self) -> Result<Arc<ShownArray>, Error> {
        until_current(|| self.view.tree.array_now(&self.place))
    }

    /// Fails where the array cannot have the chunk any more.
    fn check(&self, array: &ShownArray) -> Result<(), Error> {
        if array.has_ended.load(Ordering::Relaxed) {
            let reason = "the array has no document any more";
            return Err(Error::unacceptable(&self.key, reason));
        }
        if !array.grid().contains(&self.place.indices) {
            let reason = "the array has become smaller, and has no such chunk any more";
            return Err(Error::unacceptable(&self.key, reason));
        }
        Ok(())
    }

    /// Whether the bytes of a chunk are those of its object. Filters that round decode to what is stored,
    /// and do not store what they are given.
    fn is_stored_as_shown(array: &ShownArray) -> bool {
        let layout = array.chunked.layout();
        layout.is_identity() && !layout.can_lose()
    }

    /// Whether `shown`, the bytes of a chunk or the first ones of them, are those of the fill value,
    /// which all libraries read alike.
    fn is_fill_value(array: &ShownArray, shown: &[u8]) -> bool {
        const STEP: usize = 8 << 10;
        let layout = array.chunked.layout();
        if layout.absent_len().is_none() || !layout.fill_value().is_undisputed() {
            return false;
        }
        let mut expected = [0; STEP];
        shown.chunks(STEP).enumerate().all(|(i, part)| {
            let Some(expected) = expected.get_mut(..part.len()) else {
                return false;
            };
            layout.fill_absent((i * STEP) as u64, expected);
            *part == *expected
        })
    }
}

impl Form for ChunkForm {
    fn len(&self) -> Option<u64> {
        self.len
    }

    fn max_len(&self) -> u64 {
        self.len
            .unwrap_or_else(|| self.view.tree.loader.max_chunk_bytes())
    }

    fn open(&self) -> Result<Option<CleanFile>, Error> {
        until_current(|| match &self.inner {
            Some(inner) => open_inner(&self.view, &self.place, inner),
            None => open_chunk(&self.view, &self.place, &self.key),
        })
    }

    fn is_current(&self) -> Result<bool, Error> {
        still(self.view.tree.array_now(&self.place).map(drop))
    }

    fn inner(&self) -> Option<&InnerChunk> {
        self.inner.as_ref()
    }

    fn is_encoded(&self) -> bool {
        let is_stored_as_shown = || Some(Self::is_stored_as_shown(&*self.known_array().ok()?));
        self.inner.is_some() || is_stored_as_shown() == Some(false)
    }

    fn cache(&self) -> &Cache {
        self.view.tree.loader.cache()
    }

    fn room(&self, len: u64) -> Result<u64, Error> {
        Ok(self.array()?.chunked.layout().encode_bytes(len))
    }

    fn decode(&self, stored: Option<&StoredFile>) -> Result<Vec<u8>, Error> {
        let array = self.array()?;
        let layout = array.chunked.layout();
        let Some(stored) = stored else {
            let len = layout.absent_len().or(self.len).unwrap_or(0);
            let mut bytes = crate::buffers::zeroed(to_usize(len)?)?;
            layout.fill_absent(0, &mut bytes);
            return Ok(bytes);
        };
        let what = (&self.key, self.inner.as_ref());
        let encoded = read_encoded(&self.view, what, Some(layout), stored)?;
        let loader = &self.view.tree.loader;
        loader.decode_bytes(&array.chunked, &self.key, &encoded)
    }

    fn is_shown_as_is(&self, head: &[u8]) -> Result<bool, Error> {
        let is_as_is = |array: &ShownArray| {
            let is_bool = array.chunked.layout().data_type().element == Element::Bool;
            !is_bool && Self::is_stored_as_shown(array)
        };
        // To encode is right for every chunk, and looks at the document itself.
        if !is_as_is(&*self.known_array()?) {
            return Ok(false);
        }
        let array = self.array()?;
        if !is_as_is(&array) {
            return Ok(false);
        }
        self.check(&array)?;
        let writes = self.view.tree.options.writes;
        Ok(writes.empty_chunks || !Self::is_fill_value(&array, head))
    }

    fn encode(&self, shown: &[u8], _: Option<&StoredFile>) -> Result<Encoded, Error> {
        let array = self.array()?;
        self.check(&array)?;
        let writes = self.view.tree.options.writes;
        let is_bool = array.chunked.layout().data_type().element == Element::Bool;
        if is_bool && let Some(at) = shown.iter().position(|byte| *byte > 1) {
            let reason = format!("byte {at} is no boolean, which is 0 or 1");
            return Err(Error::unacceptable(&self.key, reason));
        }
        let is_whole = array.chunked.layout().absent_len() == Some(shown.len() as u64);
        if !writes.empty_chunks && is_whole && Self::is_fill_value(&array, shown) {
            return Ok(Encoded::Erased);
        }
        if Self::is_stored_as_shown(&array) {
            return Ok(Encoded::AsShown);
        }
        let layout = array.chunked.layout();
        let losses = if writes.is_lossy {
            Losses::Allowed
        } else {
            Losses::Refused
        };
        let encoded = self.view.tree.loader.encode(&array.chunked, shown, losses);
        let encoded = encoded.map_err(|error| Error::unacceptable(&self.key, error))?;
        if writes.is_lossy && layout.can_lose() {
            return Ok(Encoded::Rounded(encoded));
        }
        Ok(Encoded::Bytes(encoded))
    }

    fn new_file(&self) -> Result<NewFile, Error> {
        if let Some(inner) = &self.inner {
            return inner.new_file();
        }
        let (writer, array) = (self.view.tree.writer()?, self.array()?);
        let document = &array.node.document;
        Ok(writer.new_like((&document.key, &document.meta), &self.key)?)
    }

    fn merges(&self) -> bool {
        self.view.tree.options.writes.merges()
    }

    fn hides_absent(&self) -> bool {
        self.array().is_ok_and(|array| array.absent_len.is_none())
    }

    fn moved(&self, key: &Key) -> Option<Arc<dyn Form>> {
        let place = moved_place(&self.view, &self.place, (&self.key, key))?;
        Some(Arc::new(ChunkForm {
            view: Arc::clone(&self.view),
            inner: inner_at(&self.view, &place).ok()?,
            place,
            key: key.clone(),
            len: self.len,
        }))
    }
}

/// Opens the chunk at `place`, whose object is at `key`.
pub(super) fn open_chunk(
    view: &Arc<View>,
    place: &ChunkPlace,
    key: &Key,
) -> Result<Option<CleanFile>, Error> {
    // Whether the document is current is checked when the chunk is open.
    let array = view.tree.array_of(place)?;
    if !array.grid().contains(&place.indices) {
        return Ok(None);
    }
    // Whoever opens a file of this form waits until the object is settled, unless it is its own.
    let opened = view.tree.in_one_directory(&array, || {
        let object = view.tree.loader.sources().open_young(key)?;
        view.opened_chunk(Arc::clone(&array), &place.indices, object)
    })?;
    let Some((OpenedVnode { attributes, file }, object)) = opened else {
        return Ok(None);
    };
    let stored = object.map(|object| stored_file(key, &*object));
    Ok(Some(CleanFile {
        file,
        stored: stored.transpose()?,
        attributes: attributes.into(),
    }))
}

/// The inner chunk of a shard at `place`; `None` where the chunk is an object.
pub(super) fn inner_at(view: &View, place: &ChunkPlace) -> Result<Option<InnerChunk>, Error> {
    let array = view.tree.array_of(place)?;
    view.tree.inner_chunk(&array, &place.indices)
}

/// As [`open_chunk`], of an inner chunk of a shard.
pub(super) fn open_inner(
    view: &Arc<View>,
    place: &ChunkPlace,
    inner: &InnerChunk,
) -> Result<Option<CleanFile>, Error> {
    let array = view.tree.array_of(place)?;
    if !array.grid().contains(&place.indices) {
        return Ok(None);
    }
    let opened = view.tree.in_one_directory(&array, || -> Result<_, Error> {
        // What was found holds memory, which opening the chunk must not wait for.
        let found = inner
            .find()?
            .map(|found| (Arc::clone(&found.object), found.stored_file()));
        let (object, stored) = found.unzip();
        let opened = view.opened_chunk(Arc::clone(&array), &place.indices, object)?;
        Ok(opened.map(|(opened, _)| (opened, stored)))
    })?;
    let Some((OpenedVnode { attributes, file }, stored)) = opened else {
        return Ok(None);
    };
    Ok(Some(CleanFile {
        file,
        stored: stored.transpose()?,
        attributes: attributes.into(),
    }))
}

/// The chunk `place` after a directory above its object was renamed, so that the object, which was at
/// `from`, is at `to`.
pub(super) fn moved_place(
    view: &View,
    place: &ChunkPlace,
    (from, to): (&Key, &Key),
) -> Option<ChunkPlace> {
    // The object has kept the end of its key.
    let end = from.as_bytes().strip_prefix(place.path.as_bytes())?;
    let path = Prefix::parse(to.as_bytes().strip_suffix(end)?).ok()?;
    let array = view.tree.shown(place.view, &path).ok()?;
    Some(array.into_array()?.place(place.indices.clone()))
}

/// The open file of an object.
fn stored_file(key: &Key, object: &dyn Object) -> Result<StoredFile, Error> {
    let file = object.as_file();
    let file = file.ok_or_else(|| StoreError::problem(key, "no file of its own"))?;
    Ok(StoredFile {
        file: Arc::clone(file),
        meta: *object.meta(),
        offset: 0,
        whole: None,
        is_writable: false,
    })
}

/// The encoded bytes of the chunk at `key`, or of the inner chunk, which has not changed since it was opened.
/// They are as long as `layout` allows, where there is one.
///
/// # Errors
/// [`Error::Chunk`] when they are too long, [`Error::Store`] when they cannot be read.
pub(super) fn read_encoded(
    view: &View,
    (key, inner): (&Key, Option<&InnerChunk>),
    layout: Option<&ChunkLayout>,
    stored: &StoredFile,
) -> Result<Vec<u8>, Error> {
    let encoded = match inner {
        Some(inner) => inner.read(stored)?,
        None => stored_slice(view.tree.writer()?, key, stored)?,
    };
    let most = view.tree.loader.max_chunk_bytes();
    let checked = layout.map_or(Ok(()), |layout| {
        layout.check_encoded_len(encoded.len(), most)
    });
    checked.map_err(|error| encoded.error(error))?;
    encoded.read_all()
}

/// The bytes of an object, which has not changed since it was opened. Reading them tells when it changes
/// meanwhile.
pub(super) fn stored_slice(
    writer: &DirWriter,
    key: &Key,
    stored: &StoredFile,
) -> Result<Slice, Error> {
    let object = writer.object_of(key, &stored.file)?;
    if object.meta().version != stored.meta.version {
        return Err(StoreError::changed(key).into());
    }
    Ok(Slice::of_object(object, key.to_string().into()))
}
