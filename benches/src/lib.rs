//! What the programs of `scripts/bench` share: how a store of the benchmark is laid out, how its
//! chunks are decoded and encoded by hand, and how results are told.

pub mod arguments;
pub mod codec;
pub mod report;
pub mod scatter;
pub mod source;
pub mod spec;
