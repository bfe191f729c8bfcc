//! Nodes as a view shows them: arrays, and nodes that cannot be shown.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use crate::codec::BytesToBytes;
use crate::error::{Error, FormatError};
use crate::escape::Text;
use crate::files::looks_like_a_chunk;
use crate::fresh::LastCheck;
use crate::grid::{ChunkGrid, Dims};
use crate::hierarchy::{ArrayNode, BrokenKind, Document, Node};
use crate::load::{ChunkLayout, ChunkedArray, Loader, Shards, Slice};
use crate::metadata::write::{self, ChunkContent};
use crate::metadata::{Decoding, DocumentName, Target, ZarrFormat};
use crate::read::FileReaders;
use crate::store::{DirWriter, Key, Object, Prefix, StoreError, Version};
pub(in crate::view) use crate::translate::FileForm;
use crate::view::chunks::names::{ChunkName, ChunkNames};
use crate::view::nodes::document_checks::DocumentChecks;
use crate::view::nodes::path::NodePath;
use crate::view::options::{ViewKind, ViewOptions};

/// Directories of larger grids list only the stored chunks, even where absent chunks are files.
const MOST_LISTED: u64 = 10_000_000;

/// An array as a view shows it.
#[derive(Debug)]
pub(in crate::view) struct ShownArray {
    pub(in crate::view) view: ViewKind,
    pub(in crate::view) node: Arc<ArrayNode>,
    /// The path of the array in the view.
    pub(in crate::view) path: Prefix,
    /// When its document was last seen unchanged.
    pub(in crate::view) last_check: LastCheck,
    pub(in crate::view) document_checks: DocumentChecks,
    /// Since when its document has been the current one, as far as that is known.
    pub(in crate::view) shown_since: Instant,
    /// When the mount noticed that the array is gone.
    pub(in crate::view) gone_since: OnceLock<Instant>,
    /// The version in which the document of a foreign array is written.
    pub(in crate::view) foreign: Option<Target>,
    pub(in crate::view) form: FileForm,
    /// The content of the chunk files, which the shown document describes.
    pub(in crate::view) content: ChunkContent,
    /// Whether the encoded chunks may be zlib streams although the document says gzip.
    is_gzip_in_doubt: bool,
    /// How the keys of stored chunks are spelled, relative to `node.prefix`.
    pub(in crate::view) stored: ChunkNames,
    /// How the view spells the keys of chunks, relative to `path`.
    pub(in crate::view) shown: ChunkNames,
    pub(in crate::view) chunked: Arc<ChunkedArray>,
    /// The innermost prefix of the store that the document and all chunks are below.
    pub(in crate::view) enclosing: Prefix,
    /// Detects readers that open its chunk files one after the other.
    pub(in crate::view) readers: FileReaders,
    /// Whether a chunk that is not stored is shown as a file of fill values.
    pub(in crate::view) shows_absent: bool,
    /// Whether listings name every chunk of the grid, stored or not.
    pub(in crate::view) lists_grid: bool,
    /// The reason why chunks cannot be written, if so.
    pub(in crate::view) unwritable: Option<FormatError>,
    /// Whether its document was removed through the mount. Its chunks are shown until their directory is removed, too,
    /// so that a program that moves or removes all of them finds all names that were listed.
    pub(in crate::view) has_ended: AtomicBool,
}

/// A node, or a directory without a node, as a view shows it.
#[derive(Debug, Clone)]
pub(in crate::view) enum ShownNode {
    /// There is no array: stored keys are shown as they are.
    Plain,
    /// An array that can be shown.
    Array(Arc<ShownArray>),
    /// The document describes an array that this view cannot show, or cannot be read.
    Unusable(Arc<Unusable>),
}

/// A node that cannot be shown, and the reason.
#[derive(Debug)]
pub(in crate::view) struct Unusable {
    pub(in crate::view) document: Document,
    pub(in crate::view) error: FormatError,
    /// The path of the node in the view.
    pub(in crate::view) path: Prefix,
    /// How chunk keys are spelled, if the document says so. These chunks are hidden.
    pub(in crate::view) names: Option<ChunkNames>,
    /// The identity of the array; 0 where the document does not describe an array.
    pub(in crate::view) identity: u64,
    /// The document of attributes that was read before the error was found; `None` if none was read.
    pub(in crate::view) attributes: Option<ReadAttributes>,
    /// The kind of node that the document describes. The nodes below a group are shown.
    pub(in crate::view) kind: BrokenKind,
}

/// The document of the attributes of an array.
#[derive(Debug, Clone)]
pub(in crate::view) struct ReadAttributes {
    pub(in crate::view) key: Key,
    /// The version that was read; `None` if there is no such document, or it cannot be read.
    pub(in crate::view) version: Option<Version>,
}

impl ShownArray {
    /// The array `node` as it is shown at `resolved`.
    ///
    /// # Errors
    /// [`FormatError`] when the array cannot be decoded.
    pub(in crate::view) fn new(
        node: Arc<ArrayNode>,
        resolved: &NodePath,
        options: &ViewOptions,
        shown_since: Instant,
    ) -> Result<ShownArray, FormatError> {
        let (view, foreign) = (resolved.view, resolved.foreign);
        let decoding = node.metadata.decoding.as_ref();
        let presentation = options.presentation(view);
        let (form, shards) = presentation.form_of_chunks(&node.metadata, foreign);
        let chunked = ChunkedArray::new(&node, shards)?;
        let layout = chunked.layout();
        let may_be_zlib = decoding.is_ok_and(|decoding| may_be_zlib(decoding, shards));
        presentation.check_decoded_len(layout, form)?;
        let n_chunks = layout.shown_grid().n_chunks().unwrap_or(u64::MAX);
        let shows_absent = layout.shows_absent() && presentation.fills_absent;
        let lists_grid = shows_absent && n_chunks <= MOST_LISTED;
        if shows_absent && !lists_grid {
            log::warn!(
                "{}: {n_chunks} chunks; listings show the stored ones only, any other opens by name",
                node.prefix
            );
        }
        let stored = ChunkNames::of(&node);
        let is_above_chunks =
            |above: &Prefix| node.prefix.with_ancestors().any(|one| one == *above);
        let enclosing = (node.document.key.parent().with_ancestors()).find(is_above_chunks);
        let enclosing = enclosing.unwrap_or_else(Prefix::root);
        let unwritable = unwritable(&node, chunked.layout(), form, options);
        Ok(ShownArray {
            view,
            node,
            path: resolved.path.clone(),
            last_check: LastCheck::never(),
            document_checks: DocumentChecks::default(),
            shown_since,
            gone_since: OnceLock::new(),
            form,
            stored,
            shown: foreign.map_or(stored, |target| ChunkNames {
                encoding: write::chunk_keys(stored.encoding, target),
                ..stored
            }),
            content: match form {
                FileForm::Decoded if shows_absent => ChunkContent::Complete(shards),
                FileForm::Decoded => ChunkContent::Decoded(shards),
                FileForm::Encoded | FileForm::Stored => ChunkContent::Encoded(shards),
            },
            has_ended: AtomicBool::new(false),
            unwritable,
            is_gzip_in_doubt: form == FileForm::Encoded
                && foreign == Some(Target::V3)
                && may_be_zlib,
            foreign,
            chunked: Arc::new(chunked),
            enclosing,
            readers: FileReaders::default(),
            shows_absent,
            lists_grid,
        })
    }

    /// Bytes of the decoded chunk `indices`; `None` when the size is known only after decoding, and
    /// where the grid does not say it.
    pub(in crate::view) fn decoded_len(&self, indices: &[u64]) -> Option<u64> {
        self.chunked.layout().decoded_len(indices)
    }

    /// Bytes of the chunk `indices`, if it is absent and shown.
    pub(in crate::view) fn absent_len(&self, indices: &[u64]) -> Option<u64> {
        let layout = self.chunked.layout();
        self.shows_absent.then(|| layout.absent_len(indices))?
    }

    /// Refuses encoded bytes that do not match the shown document: `gzip` in v2 may be a zlib stream of an old library,
    /// which v3 does not call `gzip`.
    pub(in crate::view) fn check_encoded(
        &self,
        indices: &[u64],
        encoded: &Slice,
    ) -> Result<(), Error> {
        const GZIP: [u8; 2] = [0x1f, 0x8b];
        if !self.is_gzip_in_doubt {
            return Ok(());
        }
        let mut magic = [0; 2];
        if encoded.len() >= 2 {
            encoded.read_at(0, &mut magic)?;
        }
        if magic == GZIP {
            return Ok(());
        }
        let problem = "found another stream, such as zlib, which v3 does not call gzip; \
                       the chunks view (--view chunks) decodes it";
        Err(Error::Chunk {
            key: self.chunked.stored_key(indices)?.to_string(),
            start: encoded.offset(),
            end: encoded.offset().saturating_add(encoded.len()),
            error: FormatError::encoded("gzip", problem),
            place: self.chunked.place_of(indices).map(Box::new),
        })
    }

    /// Whether the size of a chunk file is known only after decoding.
    pub(in crate::view) fn decodes_to_measure(&self) -> bool {
        self.form == FileForm::Decoded && self.chunked.layout().longest_decoded_len().is_none()
    }

    /// Bytes of the decoded chunk `indices`, which `object` holds.
    pub(in crate::view) fn decoded_len_of(
        &self,
        loader: &Arc<Loader>,
        object: &Arc<dyn Object>,
        indices: &[u64],
    ) -> Result<u64, Error> {
        if let Some(len) = self.decoded_len(indices) {
            return Ok(len);
        }
        let block = loader.decoded(&self.chunked, object, indices)?;
        Ok(block.len() as u64)
    }

    /// Whether each chunk is shown as the bytes of an object of its own.
    pub(in crate::view) fn has_encoded_objects(&self) -> bool {
        self.form != FileForm::Decoded && !self.chunked.layout().is_sharded()
    }

    /// Whether its chunks are inner chunks of shards.
    pub(in crate::view) fn has_inner_chunks(&self) -> bool {
        self.chunked.layout().is_sharded()
    }

    /// Whether its chunks can be removed. The removal of an inner chunk writes its shard anew.
    pub(in crate::view) fn can_lose_chunks(&self) -> bool {
        self.unwritable.is_none() || !self.has_inner_chunks()
    }

    /// The key by which a file of the chunk `indices` is known: the key of its object. A file of an inner chunk has the
    /// key that its object would have.
    pub(in crate::view) fn file_key(&self, indices: &[u64]) -> Result<Key, StoreError> {
        if !self.has_inner_chunks() {
            return self.chunked.stored_key(indices);
        }
        self.node.prefix.key(&self.stored.encoding.encode(indices))
    }

    /// The grid of the chunks that are shown.
    pub(in crate::view) fn grid(&self) -> &ChunkGrid {
        self.chunked.layout().shown_grid()
    }

    /// Whether the document of this array was removed, and it is certain that no other node is at its prefix.
    pub(in crate::view) fn is_gone(&self, writer: &DirWriter) -> bool {
        let is_absent = |key: &Key| matches!(writer.stat(key), Ok(None));
        let documents =
            DocumentName::ALL.map(|name| self.node.prefix.key(name.as_str().as_bytes()));
        self.has_ended.load(Ordering::Relaxed)
            && is_absent(&self.node.document.key)
            && documents.iter().flatten().all(is_absent)
    }

    /// Whether `key` is a part that remains of an array whose document was removed, and that the view does not show: a
    /// chunk or a shard outside of the grid, because the array had become smaller, or a directory of chunks. If the array
    /// `shows_no_inner_chunks`, each shard is such a part: its inner chunks are all outside of the grid.
    pub(in crate::view) fn leaves_over(
        &self,
        key: &Key,
        is_directory: bool,
        shows_no_inner_chunks: bool,
    ) -> bool {
        let Some(name) = self.node.prefix.strip(key.as_bytes()) else {
            return false;
        };
        if is_directory {
            let first = name.split(|byte| *byte == b'/').next();
            return first.is_some_and(|first| self.stored.in_array(first) != ChunkName::Other);
        }
        let Some(indices) = self.stored.indices_of(name) else {
            return false;
        };
        let shown = self.chunked.layout().shown_in(&indices);
        let first = shown.map(|axes| axes.iter().map(|axis| axis.first).collect::<Dims>());
        shows_no_inner_chunks || first.is_none_or(|first| !self.grid().contains(&first))
    }

    /// The store's directory of the stored chunks that are in the shown directory `first`.
    pub(in crate::view) fn stored_directory(&self, first: &[u64]) -> Result<Prefix, StoreError> {
        let stored = self.chunked.layout().stored_indices(first);
        self.stored_prefix(&stored)
    }

    /// The prefixes of the store that have the array's documents and chunks.
    pub(in crate::view) fn paths(&self) -> Result<Vec<Prefix>, StoreError> {
        Ok(vec![self.node.prefix.clone(), self.stored_directory(&[])?])
    }

    /// The directory of the store with the same path as the shown directory of the chunks whose indices begin with `first`.
    /// `None` if the view spells chunk keys differently from the store.
    pub(in crate::view) fn directory_of_same_name(
        &self,
        first: &[u64],
    ) -> Result<Option<Prefix>, StoreError> {
        self.is_at_stored_path()
            .then(|| self.stored_prefix(first))
            .transpose()
    }

    /// Whether chunks are shown at the paths at which they are stored, so that the kernel checks
    /// callers against the modes of all directories above them.
    pub(in crate::view) fn is_at_stored_path(&self) -> bool {
        self.stored == self.shown && self.path == self.node.prefix
    }

    /// The store's directory of the stored chunks whose indices begin with `first`.
    pub(in crate::view) fn stored_prefix(&self, first: &[u64]) -> Result<Prefix, StoreError> {
        let relative = self.stored.directory_key(first);
        if relative.is_empty() {
            return Ok(self.node.prefix.clone());
        }
        Ok(self.node.prefix.key(&relative)?.to_prefix())
    }

    /// The first shown chunk in the stored chunk `indices`; `None` when that is outside the grid.
    pub(in crate::view) fn first_shown(&self, indices: &[u64]) -> Option<Dims> {
        let shown = self.chunked.layout().shown_in(indices)?;
        let shown = shown.iter().zip(self.grid().counts());
        shown
            .map(|(axis, &count)| (axis.first < count).then_some(axis.first))
            .collect()
    }

    /// Whether the store's directory of the chunks whose indices begin with `first` has other chunks, too, because one
    /// shard has several chunks.
    pub(in crate::view) fn shares_stored_directories(&self, first: &[u64]) -> bool {
        let layout = self.chunked.layout();
        let shown = layout.shown_in(&layout.stored_indices(first));
        let has_several = shown.is_none_or(|axes| axes.iter().any(|axis| axis.count > 1));
        self.has_inner_chunks() && has_several
    }

    /// Whether the grid has chunks whose indices begin with `first`.
    pub(in crate::view) fn has_directory(&self, first: &[u64]) -> bool {
        let counts = self.grid().counts();
        !counts.contains(&0) && first.iter().zip(counts).all(|(index, count)| index < count)
    }
}

impl ShownNode {
    /// The node as the view of `resolved` shows it: the keys view shows arrays that cannot be decoded as they are
    /// stored, unless another version is requested.
    pub(in crate::view) fn in_view(self, resolved: &NodePath) -> ShownNode {
        match (&self, resolved.view, resolved.foreign) {
            (ShownNode::Unusable(_), ViewKind::Keys, None) => ShownNode::Plain,
            _ => self,
        }
    }

    /// Whether nodes can be below it.
    pub(in crate::view) fn has_children(&self) -> bool {
        match self {
            ShownNode::Plain => true,
            ShownNode::Unusable(unusable) => unusable.kind.may_have_nodes(),
            ShownNode::Array(_) => false,
        }
    }

    /// The array, if it can be shown.
    pub(in crate::view) fn into_array(self) -> Option<Arc<ShownArray>> {
        match self {
            ShownNode::Array(array) => Some(array),
            ShownNode::Plain | ShownNode::Unusable(_) => None,
        }
    }
}

impl Unusable {
    /// The node at `resolved` with the document `document`, which cannot be used because of
    /// `error`.
    pub(in crate::view) fn new(
        resolved: &NodePath,
        document: &Document,
        error: &FormatError,
    ) -> Unusable {
        let node = match &resolved.node {
            Node::Array(node) => Some(node),
            _ => None,
        };
        Unusable {
            kind: match &resolved.node {
                Node::Broken(broken) => broken.kind,
                _ => BrokenKind::Array,
            },
            path: resolved.path.clone(),
            document: document.clone(),
            error: error.clone(),
            names: node.map(|node| ChunkNames::of(node)),
            identity: node.map_or(0, |node| node.identity),
            attributes: None,
        }
    }

    /// The text of `ERROR.txt` in `view`.
    pub(in crate::view) fn note(&self, view: ViewKind) -> Vec<u8> {
        let is_group = self.kind == BrokenKind::Group;
        let what = if is_group { "The group " } else { "" };
        let mut text = Text::new()
            .line(format_args!(
                "{what}{} cannot be shown in this view.",
                self.path
            ))
            .line("")
            .line(format_args!("{}: {}", self.document.key, self.error))
            .line("");
        let name = String::from_utf8_lossy(self.document.key.name());
        match self.kind {
            BrokenKind::Group => text = text.line("The nodes in the group are shown."),
            BrokenKind::Unknown => {
                text = text.line(
                    "If it is a group, the nodes in it that have documents of their own are shown.",
                );
            }
            BrokenKind::Array => {}
        }
        if view != ViewKind::Arrays && is_group {
            text = text.line(format_args!(
                "Its metadata document is shown under the name {name}.unsupported, because readers \
                 would refuse it."
            ));
        } else if view != ViewKind::Arrays {
            text = text.line(format_args!(
                "Its metadata document is shown under the name {name}.unsupported, so that no \
                 reader takes it for an array without chunks."
            ));
        }
        text.line("The keys view (--view keys, without --as) shows the stored bytes.")
            .into_bytes()
    }

    /// Whether the stored `name` is hidden beside a node that cannot be shown.
    pub(in crate::view) fn hides(&self, name: &[u8]) -> bool {
        // Readers must not take the directory for an array: they see no document, and no chunks without a document.
        makes_an_array(name)
            || name == self.document.key.name()
            || self
                .names
                .is_some_and(|chunks| chunks.in_array(name) != ChunkName::Other)
    }
}

/// Whether `name` could be a chunk key, or a segment of one, of an array of any version.
pub(in crate::view) fn may_be_part_of_chunk_key(name: &[u8]) -> bool {
    let unsuffixed = name.strip_suffix(b".blosc").unwrap_or(name);
    looks_like_a_chunk(unsuffixed) || name == b"__zdata__"
}

/// The reason why the chunks of an array cannot be written in this form, if so.
fn unwritable(
    node: &ArrayNode,
    layout: &ChunkLayout,
    form: FileForm,
    options: &ViewOptions,
) -> Option<FormatError> {
    if node.metadata.zarr_format == ZarrFormat::N5 {
        return Some(FormatError::unsupported("", "format for writing", "N5"));
    }
    let what = "the memory for the index of a shard that is written (see --max-chunk)";
    let index = layout.packed_index_bytes();
    if let Err(error) = FormatError::check_limit(what, index, options.max_chunk_bytes) {
        return Some(error);
    }
    if form != FileForm::Decoded {
        return layout.check_repacks().err();
    }
    // The order of the elements of such an array of v1 is not specified.
    if let Some(doubt) = node.metadata.doubts.first() {
        return Some(FormatError::unsupported(
            "order",
            "order for writing",
            doubt.as_str(),
        ));
    }
    layout.check_encodes().err()
}

/// Whether the outermost codec of the encoded chunks is a v2 `gzip`, which old libraries used for
/// zlib streams too.
fn may_be_zlib(decoding: &Decoding, shards: Shards) -> bool {
    let mut chain = &decoding.codecs;
    while let (Shards::Expand, Some(sharding)) = (shards, chain.sharding()) {
        chain = &sharding.codecs;
    }
    matches!(
        chain.bytes_to_bytes.last(),
        Some(BytesToBytes::GzipOrZlib { .. })
    )
}

/// Whether a reader takes a directory with a document of this name for an array.
pub(in crate::view) fn makes_an_array(name: &[u8]) -> bool {
    matches!(
        DocumentName::of(name),
        Some(DocumentName::ZarrJson | DocumentName::ZArray)
    )
}
