//! `.jsonl` files: the only format whose size is known only after everything is decoded. The whole
//! file is made when it is first asked for, and again after a chunk changed.

use std::sync::Arc;

use super::super::odometer::Odometer;
use super::super::vnode::PlainName;
use super::Arrays;
use super::facts::ArrayFacts;
use super::file::FileParts;
use super::groups::more_than;
use super::lock;
use crate::budget::Holding;
use crate::codec::VariableLength;
use crate::error::{Error, FormatError};
use crate::grid::{ChunkGrid, Dims, product, rank_of};
use crate::load::ChunkedArray;
use crate::plain::{FileFormat, Layout, Selected, Selection, jsonl};
use crate::store::Prefix;

/// The most bytes of one file.
const MOST_BYTES: u64 = 64 << 20;
/// A file may take this part of the cache. With its lines in two orders and the position of each
/// line, it needs less than half of the cache, so that chunks can be decoded meanwhile.
const LIMIT_PARTS: u64 = 10;
/// The most chunks of one file: each is examined when the file is asked for again.
const MOST_CHUNKS: u64 = 1 << 16;

/// Lines in the order in which they were decoded, and the position of each element's line.
struct JsonLines {
    text: Vec<u8>,
    /// Start and end in `text`, by element in C order.
    places: Vec<(u32, u32)>,
    limit: u64,
}

impl Arrays {
    pub(super) fn make_jsonl(
        &self,
        path: &Prefix,
        facts: &ArrayFacts,
        selection: Option<&Selection>,
    ) -> Result<Option<FileParts>, Error> {
        let document = &facts.array.node.document.key;
        let refused = |error| Error::in_document(document, error);
        let chunked = &facts.array.chunked;
        let kind = match chunked.layout().variable_length() {
            Some(VariableLength::Text) => jsonl::ElementKind::Text,
            Some(VariableLength::Bytes) => jsonl::ElementKind::Bytes,
            _ => {
                let name = chunked.layout().data_type().name.clone();
                let title = FileFormat::Jsonl.title();
                return Err(refused(FormatError::inexpressible(
                    "data type",
                    name,
                    title,
                )));
            }
        };
        let Some(selected) = facts.selected(selection) else {
            return Ok(None);
        };
        let limit = MOST_BYTES.min(self.tree.loader.cache().budget().limit() / LIMIT_PARTS);
        let n_elements = product(&selected.shape).unwrap_or(u64::MAX);
        // The shortest line is `""` and a newline.
        if n_elements.saturating_mul(3) > limit {
            return Err(refused(too_long(limit)));
        }
        let place = size_of::<(u32, u32)>() as u64;
        let memory = limit.saturating_mul(2) + n_elements * place;
        let holding = Holding::NOTHING.to_hold("the lines of a file");
        // One file at a time: each decodes chunks while it holds a part of the budget, and must not
        // wait for another one.
        let _alone = lock(&self.writing);
        let mut reservation = self.tree.loader.cache().reserve(memory, holding)?;
        reservation.keep();
        let mut parts = facts.parts(Layout::of_bytes(Vec::new()));
        let fill = chunked.layout().fill_value().bytes();
        let bits = parts.inputs.readers.bits_for(parts.meta.access());
        let audience = self.audience(&parts.meta, bits);
        let mut lines = JsonLines::filled(n_elements, fill, kind, limit).map_err(refused)?;
        let deadline = self.tree.loader.deadline();
        for indices in chunks_of(chunked.layout().shown_grid(), &selected).map_err(refused)? {
            deadline.check(|| path.to_string())?;
            let key = chunked.stored_key(&indices)?;
            let object = self.tree.loader.open_stored(chunked, &indices, None)?;
            parts
                .inputs
                .observations
                .add_object(&key, object.as_ref().map(|object| object.meta()));
            let Some(object) = object else { continue };
            audience.check_object(&key, object.meta())?;
            audience.check_search(self.tree.loader.sources(), &key.parent())?;
            if self
                .tree
                .loader
                .locate(chunked, &object, &indices)?
                .is_some()
            {
                let block = self.tree.loader.decoded(chunked, &object, &indices)?;
                lines
                    .add(chunked, &selected, &indices, &block, kind)
                    .map_err(|error| Error::in_document(&key, error))?;
            }
        }
        parts.layout = Layout::of_bytes(lines.in_order().map_err(refused)?);
        Ok(Some(parts))
    }

    /// Whether the strings of the array were found to be too long for a file.
    pub(super) fn is_left_out(&self, name: &PlainName) -> bool {
        self.tree.has_warned(name)
    }
}

impl JsonLines {
    /// Lines for `n_elements` elements that are all the fill value.
    fn filled(
        n_elements: u64,
        fill: &[u8],
        kind: jsonl::ElementKind,
        limit: u64,
    ) -> Result<JsonLines, FormatError> {
        let mut text = Vec::new();
        jsonl::line(&mut text, fill, kind)?;
        let end = u32::try_from(text.len()).map_err(|_| too_long(limit))?;
        let n = usize::try_from(n_elements).map_err(|_| too_long(limit))?;
        Ok(JsonLines {
            text,
            places: vec![(0, end); n],
            limit,
        })
    }

    /// Adds the elements of the chunk `indices` that are selected.
    fn add(
        &mut self,
        reader: &Arc<ChunkedArray>,
        selected: &Selected,
        indices: &[u64],
        bytes: &[u8],
        kind: jsonl::ElementKind,
    ) -> Result<(), FormatError> {
        let chunk_shape = reader.layout().shown_grid().chunk_shape();
        let first = indices.iter().zip(chunk_shape);
        let first = first.map(|(&index, &chunk)| index.checked_mul(chunk));
        let places = first.collect::<Option<Dims>>();
        let places = places.and_then(|first| Odometer::new(first, chunk_shape.into()));
        let mut elements = jsonl::elements(bytes)?;
        for place in places.into_iter().flatten() {
            let Some(element) = elements.next() else {
                let problem = "fewer elements than the chunk has";
                return Err(FormatError::encoded("vlen", problem));
            };
            let place = place.iter().zip(&selected.start);
            let place: Option<Dims> = place
                .map(|(place, &start)| place.checked_sub(start))
                .collect();
            // Elements outside of the array, or outside of the selection, are skipped.
            if let Some(rank) = place.and_then(|place| rank_of(&place, &selected.shape)) {
                self.put(rank, element?, kind)?;
            }
        }
        Ok(())
    }

    /// Adds the line of the element of `rank` in the selection.
    fn put(
        &mut self,
        rank: u64,
        element: &[u8],
        kind: jsonl::ElementKind,
    ) -> Result<(), FormatError> {
        let place = usize::try_from(rank).ok();
        let Some(place) = place.and_then(|rank| self.places.get_mut(rank)) else {
            return Ok(());
        };
        let start = self.text.len();
        jsonl::line(&mut self.text, element, kind)?;
        if self.text.len() as u64 > self.limit {
            return Err(too_long(self.limit));
        }
        let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        *place = (offset(start), offset(self.text.len()));
        Ok(())
    }

    fn in_order(self) -> Result<Vec<u8>, FormatError> {
        let len: u64 = self
            .places
            .iter()
            .map(|(start, end)| u64::from(end - start))
            .sum();
        if len > self.limit {
            return Err(too_long(self.limit));
        }
        let mut ordered = Vec::with_capacity(usize::try_from(len).unwrap_or(0));
        for (start, end) in self.places {
            let line = self.text.get(start as usize..end as usize);
            ordered.extend_from_slice(line.unwrap_or_default());
        }
        Ok(ordered)
    }
}

/// The chunks that a selection touches, in C order.
fn chunks_of(grid: &ChunkGrid, selected: &Selected) -> Result<Odometer, FormatError> {
    let (mut first, mut counts) = (Dims::new(), Dims::new());
    let axes = selected.start.iter().zip(&selected.shape);
    for ((&start, &length), &chunk) in axes.zip(grid.chunk_shape()) {
        let begin = start / chunk;
        first.push(begin);
        counts.push(match length {
            0 => 0,
            length => (start + length).div_ceil(chunk).saturating_sub(begin),
        });
    }
    let chunks = Odometer::new(first, counts).filter(|chunks| chunks.total <= MOST_CHUNKS);
    let what = "the number of chunks of a JSON lines file";
    chunks.ok_or_else(|| more_than(what, MOST_CHUNKS))
}

fn too_long(limit: u64) -> FormatError {
    more_than(
        "the size of the JSON lines file in bytes (see --cache-size)",
        limit,
    )
}
