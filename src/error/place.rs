//! The place of a chunk or of a shard in its array, for messages.

use std::fmt;

use crate::grid::Dims;
use crate::store::Prefix;

/// The place of a chunk, or of a shard as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceInArray {
    /// The prefix of the array.
    pub array: Prefix,
    /// The indices of the chunk; within shards, those of the inner chunk. `None` for a shard as a whole.
    pub chunk: Option<Dims>,
    /// The indices of the elements that it covers, for each dimension: the first, and one past the last.
    pub region: Vec<(u64, u64)>,
    /// The indices of the shard, if the array has shards.
    pub shard: Option<Dims>,
}

impl fmt::Display for PlaceInArray {
    /// `chunk (2, 1) [32:48, 16:32] of shard (1, 0)`, or `shard (1, 0) [32:64, 0:32]`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let region = self.region.iter().map(|(from, to)| format!("{from}:{to}"));
        let region = region.collect::<Vec<_>>().join(", ");
        match (&self.chunk, &self.shard) {
            (Some(chunk), Some(shard)) => {
                let (chunk, shard) = (list(chunk), list(shard));
                write!(f, "chunk ({chunk}) [{region}] of shard ({shard})")
            }
            (Some(chunk), None) => write!(f, "chunk ({}) [{region}]", list(chunk)),
            (None, Some(shard)) => write!(f, "shard ({}) [{region}]", list(shard)),
            (None, None) => write!(f, "[{region}]"),
        }
    }
}

fn list(numbers: &[u64]) -> String {
    let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
    numbers.join(", ")
}
