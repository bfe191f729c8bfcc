//! Whether a store is sound: every document, every chunk, every checksum.
//!
//! * `finding`: what was found, and what it means for the store;
//! * `run`: the walk over all nodes, and the threads that decode chunks;
//! * `objects`: the objects of an array that are chunks, and those that are not;
//! * `chunks`: the chunks in one object;
//! * `counters`: how far it is;
//! * `copies`: consolidated metadata, compared with the documents themselves.

mod chunks;
mod copies;
mod counters;
mod finding;
mod objects;
mod run;

pub use counters::Counters;
pub use finding::{Finding, Severity};
pub use run::{Purpose, Verification};
