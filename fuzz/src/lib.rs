//! The checks that each fuzz target makes of an input: properties that must hold whatever the bytes
//! are.
//!
//! `fuzz_targets` hands these functions to libFuzzer; `tests/fuzz_regressions.rs` of the crate
//! itself replays inputs through them, without a nightly compiler.

mod choices;
mod decoding;
mod heap;
mod walk;

pub mod codec_chains;
#[cfg(feature = "icechunk")]
pub mod icechunk_files;
pub mod metadata_documents;
pub mod n5_attributes;
pub mod n5_blocks;
pub mod references;
pub mod shard_indices;
pub mod stored_chunks;
