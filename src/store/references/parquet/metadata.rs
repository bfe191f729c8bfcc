//! `.zmetadata` of a set in Parquet: its documents, and the grids of its arrays.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::store::Object;
use crate::store::references::budget::{ENTRY_BYTES, TooLarge};
use crate::store::references::grid_key::Indices;
use crate::store::references::members::members;
use crate::store::references::names::spelled;
use crate::store::references::not_numbers::{Masked, unmasked};
use crate::store::references::row::ReferenceValue;
use crate::store::references::table::{Table, TableBuilder};
use crate::store::references::text::{Progress, text_of};

/// The most chunks whose references are in one file.
const MOST_RECORDS: u64 = 10_000_000;

/// The most axes of an array.
const MOST_AXES: usize = 64;

/// The contents of `.zmetadata`.
#[derive(Debug)]
pub(super) struct SetMetadata {
    pub(super) documents: Table,
    /// The grids of the arrays, by their paths.
    pub(super) arrays: BTreeMap<Vec<u8>, RecordedArray>,
    /// Memory of the grids.
    array_bytes: u64,
    /// The number of chunks whose references are in one file.
    pub(super) record_size: u64,
}

/// The grid of an array.
#[derive(Debug, Default)]
pub(super) struct RecordedArray {
    /// The number of chunks along each axis; one axis of one chunk for an array without axes.
    counts: Vec<u64>,
    pub(super) n_chunks: u64,
    /// Why the references of the array cannot be found.
    pub(super) problem: Option<String>,
}

impl SetMetadata {
    /// Reads the metadata in `object`, which may take `most_bytes`, and notes its errors in `progress`.
    ///
    /// # Errors
    /// A message.
    pub(super) fn read(
        object: &Arc<dyn Object>,
        most_bytes: u64,
        progress: &Progress,
    ) -> Result<SetMetadata, String> {
        let mut text = String::new();
        let read = text_of(object, most_bytes, progress)
            .and_then(|mut source| source.read_to_string(&mut text));
        read.map_err(|error| error.to_string())?;
        let root = members(&text, most_bytes)?;
        let member = |name: &str| {
            let found = root.iter().find(|(member, _)| member == name);
            let found = found.map(|(_, text)| text.get());
            found.ok_or_else(|| format!("`{name}` is missing"))
        };
        let record_size = serde_json::from_str::<u64>(member("record_size")?).ok();
        let record_size = record_size.filter(|size| (1..=MOST_RECORDS).contains(size));
        let record_size = record_size.ok_or("`record_size` is no number of references")?;
        let documents = members(member("metadata")?, most_bytes)?;
        let mut builder = TableBuilder::new(most_bytes);
        let mut arrays = BTreeMap::new();
        let mut array_bytes = 0;
        for (key, text) in documents {
            let text = match serde_json::from_str::<String>(text.get()) {
                Ok(text) => text,
                Err(_) => unmasked(text.get()).into_owned(),
            };
            let path = key.strip_suffix(".zarray");
            let path = path.map(|path| path.strip_suffix('/').unwrap_or(path));
            if let Some(path) = path {
                let array = RecordedArray::parse(&text);
                let array = array.unwrap_or_else(|problem| RecordedArray {
                    problem: Some(problem),
                    ..RecordedArray::default()
                });
                array_bytes += ENTRY_BYTES + path.len() as u64 + array.memory_bytes();
                arrays.insert(path.as_bytes().to_vec(), array);
            }
            let added = builder.add(key.as_bytes(), ReferenceValue::Inline(text.into_bytes()));
            if added == Err(TooLarge) || array_bytes > builder.left_bytes() {
                return Err("the metadata is too large for --cache-size".to_owned());
            }
        }
        Ok(SetMetadata {
            documents: builder.finish(),
            arrays,
            array_bytes,
            record_size,
        })
    }

    /// Memory of the documents and of the grids.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.documents.memory_bytes() + self.array_bytes
    }
}

impl RecordedArray {
    /// Memory of the grid.
    fn memory_bytes(&self) -> u64 {
        let problem = self.problem.as_ref().map_or(0, String::len);
        (size_of_val(self.counts.as_slice()) + problem) as u64
    }

    /// Parses a document of v2. Only its grid matters here.
    pub(super) fn parse(document: &str) -> Result<RecordedArray, String> {
        let unreadable = "its references cannot be found: its `.zarray` is not understood";
        let masked = Masked::new(document.as_bytes());
        let mut parser = serde_json::Deserializer::from_reader(masked);
        let grid = parser.deserialize_map(Grid::default());
        let grid = grid.and_then(|grid| parser.end().map(|()| grid));
        let grid = grid.map_err(|error| format!("{unreadable}: {error}"))?;
        let missing = |name: &str| format!("{unreadable}: `{name}`");
        let shape = grid.shape.ok_or_else(|| missing("shape"))?.0;
        let chunks = grid.chunks.ok_or_else(|| missing("chunks"))?.0;
        if shape.len() != chunks.len() || chunks.contains(&0) {
            return Err(format!("{unreadable}: `chunks` does not fit `shape`"));
        }
        if grid.has_slashes {
            return Err(
                "references in Parquet are to chunks whose keys have `.`, and its \
                        dimension_separator is `/`"
                    .to_owned(),
            );
        }
        let mut counts: Vec<u64> = shape
            .iter()
            .zip(&chunks)
            .map(|(length, chunk)| length.div_ceil(*chunk))
            .collect();
        if counts.is_empty() {
            counts.push(1);
        }
        let n_chunks = counts
            .iter()
            .try_fold(1_u64, |n, count| n.checked_mul(*count));
        let n_chunks = n_chunks.ok_or_else(|| format!("{unreadable}: it has too many chunks"))?;
        Ok(RecordedArray {
            counts,
            n_chunks,
            problem: None,
        })
    }

    /// The place of a chunk in C order; `None` outside the grid.
    pub(super) fn rank(&self, indices: &[u32]) -> Option<u64> {
        if indices.len() != self.counts.len() {
            return None;
        }
        let mut rank = 0_u64;
        for (&index, &count) in indices.iter().zip(&self.counts) {
            let index = u64::from(index);
            if index >= count {
                return None;
            }
            rank = rank.checked_mul(count)?.checked_add(index)?;
        }
        Some(rank)
    }

    /// The name of the chunk at a place in C order.
    pub(super) fn name(&self, rank: u64) -> Vec<u8> {
        let mut left = rank;
        let mut indices: Indices = std::iter::repeat_n(0, self.counts.len()).collect();
        for (index, &count) in indices.iter_mut().zip(&self.counts).rev() {
            *index = u32::try_from(left % count.max(1)).unwrap_or(u32::MAX);
            left /= count.max(1);
        }
        spelled(&indices)
    }
}

/// The members of a document of v2 that are about the grid. Others are skipped, so that they take no memory.
#[derive(Default)]
struct Grid {
    shape: Option<Lengths>,
    chunks: Option<Lengths>,
    has_slashes: bool,
}

/// Lengths along the axes.
struct Lengths(Vec<u64>);

impl<'de> Visitor<'de> for Grid {
    type Value = Grid;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a document, which is an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Grid, A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            let failed = |error: A::Error| A::Error::custom(format!("`{name}`: {error}"));
            match &*name {
                "shape" => self.shape = Some(map.next_value().map_err(failed)?),
                "chunks" => self.chunks = Some(map.next_value().map_err(failed)?),
                "dimension_separator" => {
                    let separator: Option<String> = map.next_value().map_err(failed)?;
                    self.has_slashes = separator.as_deref() == Some("/");
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(self)
    }
}

impl<'de> Deserialize<'de> for Lengths {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Lengths, D::Error> {
        deserializer.deserialize_seq(LengthsVisitor)
    }
}

struct LengthsVisitor;

impl<'de> Visitor<'de> for LengthsVisitor {
    type Value = Lengths;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of lengths")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Lengths, A::Error> {
        let mut lengths = Vec::new();
        while let Some(length) = list.next_element()? {
            if lengths.len() == MOST_AXES {
                let problem = format!("more than {MOST_AXES} axes are not supported");
                return Err(A::Error::custom(problem));
            }
            lengths.push(length);
        }
        Ok(Lengths(lengths))
    }
}
