//! The strings of an array, gathered from its chunks. Their lengths decide the size of a file, so they are read when
//! the file is first requested, and again after a chunk has changed.

use super::Arrays;
use super::audience::Audience;
use super::facts::ArrayFacts;
use crate::codec::VariableLength;
use crate::error::{Error, FormatError};
use crate::fresh::Observations;
use crate::grid::{ChunkGrid, Dims, product, rank_of};
use crate::load::{ChunkedArray, Deadline};
use crate::plain::{ElementKind, Selected, Strings, StringsLimit, chunk_strings};
use crate::view::chunks::odometer::Odometer;

/// The most chunks of one array: each is examined when the file is requested again.
const MOST_CHUNKS: u64 = 1 << 16;

/// The type of the elements; `None` if they are neither strings nor bytes of variable length.
pub(super) fn kind_of(facts: &ArrayFacts) -> Option<ElementKind> {
    match facts.array.chunked.layout().variable_length() {
        Some(VariableLength::Text) => Some(ElementKind::Text),
        Some(VariableLength::Bytes) => Some(ElementKind::Bytes),
        _ => None,
    }
}

/// The strings of an array that are read, and the users that they are read for.
pub(super) struct WantedStrings<'a> {
    pub(super) selected: &'a Selected,
    pub(super) kind: ElementKind,
    pub(super) limit: StringsLimit,
    /// The users who must be allowed to read the chunks.
    pub(super) audience: Audience,
    pub(super) deadline: Deadline,
}

impl Arrays {
    /// The strings of an array that are `wanted`. The chunks are added to `observed`.
    ///
    /// # Errors
    ///
    /// [`Error::Metadata`] when there are more bytes or chunks than the limits;
    /// [`Error::TooSlow`] after the deadline; errors of the chunks.
    pub(super) fn strings_of(
        &self,
        facts: &ArrayFacts,
        wanted: &WantedStrings<'_>,
        observed: &mut Observations,
    ) -> Result<Strings, Error> {
        let (selected, audience) = (wanted.selected, wanted.audience);
        let chunked = &facts.array.chunked;
        let refused = |error| Error::in_document(&facts.array.node.document.key, error);
        let n = product(&selected.shape).unwrap_or(u64::MAX);
        let fill = chunked.layout().fill_value().bytes();
        let strings = Strings::filled(n, fill, wanted.kind, wanted.limit);
        let mut strings = strings.map_err(refused)?;
        for indices in chunks_of(chunked.layout().shown_grid(), selected).map_err(refused)? {
            wanted.deadline.check(|| facts.array.path.to_string())?;
            let key = chunked.stored_key(&indices)?;
            let object = self.tree.loader.open_stored(chunked, &indices, None)?;
            observed.add_object(&key, object.as_ref().map(|object| object.meta()));
            let Some(object) = object else { continue };
            audience.check_object(&key, object.meta())?;
            audience.check_search(self.tree.loader.sources(), &key.parent())?;
            let located = self.tree.loader.locate(chunked, &object, &indices)?;
            if located.is_some() {
                let block = self.tree.loader.decoded(chunked, &object, &indices)?;
                add_chunk(&mut strings, chunked, selected, &indices, &block)
                    .map_err(|error| Error::in_document(&key, error))?;
            }
        }
        Ok(strings)
    }
}

/// Adds the elements of the chunk `indices` that are selected.
fn add_chunk(
    strings: &mut Strings,
    chunked: &ChunkedArray,
    selected: &Selected,
    indices: &[u64],
    bytes: &[u8],
) -> Result<(), FormatError> {
    let axes = chunked.layout().shown_grid().chunks().axes();
    let spans = axes
        .iter()
        .zip(indices)
        .map(|(axis, &index)| axis.span(index));
    let spans = spans.collect::<Option<Vec<(u64, u64)>>>();
    let places = spans.and_then(|spans| {
        let (first, chunk_shape) = spans.into_iter().unzip();
        Odometer::new(first, chunk_shape)
    });
    let mut elements = chunk_strings(bytes)?;
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
            strings.put(rank, element?)?;
        }
    }
    Ok(())
}

/// The chunks that a selection touches, in C order.
pub(super) fn chunks_of(grid: &ChunkGrid, selected: &Selected) -> Result<Odometer, FormatError> {
    let (mut first, mut counts) = (Dims::new(), Dims::new());
    let axes = selected.start.iter().zip(&selected.shape);
    for ((&start, &length), chunks) in axes.zip(grid.chunks().axes()) {
        let begin = chunks.chunk_at(start);
        first.push(begin);
        counts.push(match length {
            0 => 0,
            length => chunks.chunk_at(start + length - 1) - begin + 1,
        });
    }
    let chunks = Odometer::new(first, counts).filter(|chunks| chunks.total <= MOST_CHUNKS);
    let what = "the number of chunks that one file is made from";
    chunks.ok_or_else(|| FormatError::above_limit(what, MOST_CHUNKS))
}
