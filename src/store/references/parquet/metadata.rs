//! `.zmetadata` of a set in Parquet: its documents, and the grids of its arrays.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;

use serde_json::Value;

use crate::store::Object;
use crate::store::references::budget::TooLarge;
use crate::store::references::grid_key::Indices;
use crate::store::references::members::members;
use crate::store::references::names::spelled;
use crate::store::references::not_numbers::{Masked, unmasked};
use crate::store::references::row::ReferenceValue;
use crate::store::references::table::{Table, TableBuilder};
use crate::store::references::text::{Progress, text_of};

/// The most chunks whose references are in one file.
const MOST_RECORDS: u64 = 10_000_000;

/// The contents of `.zmetadata`.
#[derive(Debug)]
pub(super) struct SetMetadata {
    pub(super) documents: Table,
    /// The grids of the arrays, by their paths.
    pub(super) arrays: BTreeMap<Vec<u8>, RecordedArray>,
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
    /// Reads the metadata in `object`, which may take `most_bytes`.
    ///
    /// # Errors
    /// A message.
    pub(super) fn read(object: &Arc<dyn Object>, most_bytes: u64) -> Result<SetMetadata, String> {
        let mut text = String::new();
        let read = text_of(object, most_bytes, &Progress::default())
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
                arrays.insert(path.as_bytes().to_vec(), array);
            }
            let added = builder.add(key.as_bytes(), ReferenceValue::Inline(text.into_bytes()));
            added.map_err(|TooLarge| "the metadata is too large for --cache-size".to_owned())?;
        }
        Ok(SetMetadata {
            documents: builder.finish(),
            arrays,
            record_size,
        })
    }
}

impl RecordedArray {
    /// Parses a document of v2. Only its grid matters here.
    fn parse(document: &str) -> Result<RecordedArray, String> {
        let unreadable = "its references cannot be found: its `.zarray` is not understood";
        let mut masked = Masked::new(document.as_bytes());
        let document: Value = serde_json::from_reader(&mut masked)
            .map_err(|error| format!("{unreadable}: {error}"))?;
        let lengths = |name: &str| {
            let items = document.get(name).and_then(Value::as_array);
            let items = items.map(|items| items.iter().map(Value::as_u64).collect::<Option<_>>());
            items
                .flatten()
                .ok_or_else(|| format!("{unreadable}: `{name}`"))
        };
        let (shape, chunks): (Vec<u64>, Vec<u64>) = (lengths("shape")?, lengths("chunks")?);
        if shape.len() != chunks.len() || chunks.contains(&0) {
            return Err(format!("{unreadable}: `chunks` does not fit `shape`"));
        }
        if document.get("dimension_separator").and_then(Value::as_str) == Some("/") {
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
