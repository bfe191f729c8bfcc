//! Whether a store is sound: every document, every chunk, every checksum.
//!
//! * `finding`: a finding, and its severity;
//! * `purpose`: whether chunks are decoded, or only kept on disk;
//! * `run`: the walk over all nodes, and the threads that read chunks;
//! * `objects`: the objects of an array that are chunks, and those that are not;
//! * `strays`: keys that belong to no node;
//! * `ignored`: findings of one kind, of which only some are named;
//! * `chunks`: the chunks in one object;
//! * `counters`: the progress;
//! * `copies`: consolidated metadata, compared with the documents themselves.

mod chunks;
mod copies;
mod counters;
mod finding;
mod ignored;
mod objects;
mod purpose;
mod run;
mod strays;

pub use counters::Counters;
pub use finding::{Finding, Severity};
pub use purpose::Purpose;
pub use run::Verification;
