//! The code that the programs of `scripts/bench` share: the layout of a store of the benchmark, the
//! decoding and encoding of its chunks by hand, and the report of results.

pub mod arguments;
pub mod codec;
pub mod report;
pub mod scatter;
pub mod source;
pub mod spec;
