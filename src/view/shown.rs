//! An array as a view shows it.

use std::sync::Arc;

use super::names::{ChunkNames, Name};
use super::options::{Missing, ViewKind, ViewOptions};
use crate::chunk::{ArrayReader, ChunkLayout, Shards, Shared};
use crate::error::FormatError;
use crate::grid::ChunkGrid;
use crate::hierarchy::{ArrayNode, BrokenNode, Document};
use crate::metadata::DocumentName;
use crate::store::{Key, StoreError};

/// Grids of more chunks than this are listed by what is stored, even where absent chunks are
/// files.
const MOST_LISTED: u64 = 10_000_000;

/// What a view makes of an array.
#[derive(Debug)]
pub(super) struct ShownArray {
    pub(super) node: Arc<ArrayNode>,
    pub(super) form: Form,
    pub(super) names: ChunkNames,
    pub(super) reader: Arc<ArrayReader>,
    /// Bytes of a decoded chunk, where chunks are decoded.
    pub(super) decoded_len: u64,
    /// Whether a chunk that the store lacks is a file of fill value.
    pub(super) fills: bool,
    /// Whether listings name every chunk of the grid.
    pub(super) lists_grid: bool,
}

/// How the files of an array come about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As in the store.
    Stored,
    /// Shards give way to their inner chunks, encoded.
    Expanded,
    /// Chunks are decoded.
    Decoded,
}

/// What lives at a prefix, as a view shows it.
#[derive(Debug, Clone)]
pub(super) enum Shown {
    /// Keys as they are.
    Plain,
    /// An array.
    Array(Arc<ShownArray>),
    /// An array (or something that cannot be read as a node) that this view cannot show.
    Unusable(Arc<Unusable>),
}

/// Why a node cannot be shown, and where that is said.
#[derive(Debug)]
pub(super) struct Unusable {
    pub(super) document: Document,
    pub(super) reason: String,
    /// Names of chunks to leave out, where the document tells.
    pub(super) names: Option<ChunkNames>,
    /// Of the array; 0 where the document does not make one.
    pub(super) identity: u64,
}

impl ShownArray {
    /// The array at `node` in `view`.
    ///
    /// # Errors
    /// [`FormatError`] when the array cannot be decoded.
    pub(super) fn new(
        node: Arc<ArrayNode>,
        view: ViewKind,
        options: &ViewOptions,
        shared: Shared,
    ) -> Result<ShownArray, FormatError> {
        let is_sharded = matches!(
            &node.metadata.decoding,
            Ok(decoding) if decoding.codecs.sharding().is_some()
        );
        let (form, shards) = match view {
            ViewKind::Chunks => (Form::Decoded, options.shards),
            ViewKind::Keys if is_sharded && options.shards == Shards::Expand => {
                (Form::Expanded, Shards::Expand)
            }
            ViewKind::Keys => (Form::Stored, Shards::Keep),
        };
        let layout = ChunkLayout::new(&node.metadata, shards)?;
        let decoded_len = match (form, layout.decoded_len()) {
            (Form::Decoded, None) => {
                let name = format!("{} in the view of decoded chunks", node.metadata.data_type);
                return Err(FormatError::unsupported("", "data type", name));
            }
            (Form::Decoded, Some(len)) if len > options.max_chunk_bytes => {
                return Err(FormatError::TooLarge {
                    what: "the size of a decoded chunk (see --max-chunk)",
                    found: len.to_string(),
                    limit: options.max_chunk_bytes,
                });
            }
            (_, len) => len.unwrap_or(0),
        };
        let n_chunks = layout.shown_grid().n_chunks().unwrap_or(u64::MAX);
        let fills = form == Form::Decoded && options.missing == Missing::Fill;
        let lists_grid = fills && n_chunks <= MOST_LISTED;
        if fills && !lists_grid {
            log::warn!(
                "{}: {n_chunks} chunks; listings show the stored ones only, any other opens by name",
                node.prefix
            );
        }
        let reader = ArrayReader::new(
            shared,
            node.prefix.clone(),
            node.metadata.chunk_keys,
            layout,
            // The two views read one array in different ways, so does `--shards keep`.
            node.identity ^ (form as u64),
        );
        Ok(ShownArray {
            names: ChunkNames {
                encoding: node.metadata.chunk_keys,
                rank: node.metadata.shape.len(),
            },
            node,
            form,
            reader: Arc::new(reader),
            decoded_len,
            fills,
            lists_grid,
        })
    }

    /// The grid of the chunks that are shown.
    pub(super) fn grid(&self) -> &ChunkGrid {
        self.reader.layout().shown_grid()
    }

    /// The store's directory of the stored chunks below the shown directory `first`; `None` for
    /// the root.
    pub(super) fn stored_directory(&self, first: &[u64]) -> Result<Option<Key>, StoreError> {
        let stored = self.reader.layout().stored_indices(first);
        let relative = self.names.directory_key(&stored);
        if relative.is_empty() {
            return Ok(self.node.prefix.to_key());
        }
        self.node.prefix.key(&relative).map(Some)
    }

    /// What becomes of the metadata document called `name` beside the chunks; `None` for what is
    /// shown as it is.
    pub(super) fn role_of(&self, name: &[u8]) -> Result<Option<Role>, StoreError> {
        if DocumentName::of(name) == Some(DocumentName::ZMetadata) {
            return Ok(Some(Role::Edited(self.node.prefix.key(name)?)));
        }
        if self.form == Form::Stored {
            return Ok(None);
        }
        let own = &self.node.document.key;
        if name == own.name() {
            return Ok(Some(Role::Edited(own.clone())));
        }
        // A document of another version describes the stored chunks, which are not shown.
        Ok(makes_an_array(name).then_some(Role::Hidden))
    }

    /// Whether the chunks that begin with `first` are in the grid.
    pub(super) fn has_directory(&self, first: &[u64]) -> bool {
        let counts = self.grid().counts();
        !counts.contains(&0) && first.iter().zip(counts).all(|(index, count)| index < count)
    }
}

impl Shown {
    /// The keys view shows as stored what it cannot understand.
    pub(super) fn in_view(self, view: ViewKind) -> Shown {
        match self {
            Shown::Unusable(_) if view == ViewKind::Keys => Shown::Plain,
            shown => shown,
        }
    }
}

impl Unusable {
    pub(super) fn array(node: &ArrayNode, error: &FormatError) -> Unusable {
        Unusable {
            document: node.document.clone(),
            reason: error.to_string(),
            identity: node.identity,
            names: Some(ChunkNames {
                encoding: node.metadata.chunk_keys,
                rank: node.metadata.shape.len(),
            }),
        }
    }

    pub(super) fn broken(node: &BrokenNode) -> Unusable {
        Unusable {
            document: node.document.clone(),
            reason: node.error.to_string(),
            names: None,
            identity: 0,
        }
    }

    /// The text of `ERROR.txt`.
    pub(super) fn note(&self) -> Vec<u8> {
        let place = self.document.key.parent();
        format!(
            "{place} cannot be shown in this view.\n\n{key}: {reason}\n\n\
             Its metadata document is beside this file under the name \
             {name}.unsupported, so that no reader takes it for an array without chunks.\n\
             The keys view (--view keys) shows the stored bytes.\n",
            key = self.document.key,
            reason = self.reason,
            name = String::from_utf8_lossy(self.document.key.name()),
        )
        .into_bytes()
    }
}

/// What becomes of a metadata document in an array's directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Role {
    /// It is shown edited.
    Edited(Key),
    /// It would describe files that are not there.
    Hidden,
}

/// Whether `name` could be (the first part of) a chunk key: `c`, `c.0.1`, `0`, `0.1`.
pub(super) fn looks_like_a_chunk(name: &[u8]) -> bool {
    let rest = name.strip_prefix(b"c").unwrap_or(name);
    rest.iter()
        .all(|byte| byte.is_ascii_digit() || *byte == b'.')
        && !name.starts_with(b".")
}

impl Unusable {
    /// Whether the stored `name` is left out beside what cannot be shown.
    pub(super) fn hides(&self, name: &[u8]) -> bool {
        // No reader may take this for an array: no document, and no chunks without one.
        makes_an_array(name)
            || name == self.document.key.name()
            || self
                .names
                .is_some_and(|chunks| chunks.in_array(name) != Name::Other)
    }
}

fn makes_an_array(name: &[u8]) -> bool {
    matches!(
        DocumentName::of(name),
        Some(DocumentName::ZarrJson | DocumentName::ZArray)
    )
}
