//! The daemon's own files, below `.zarr-mount`: its counters in two forms, the last lines of its log, and the changes
//! that it refused last.

pub(in crate::view) mod log;
pub(in crate::view) mod metrics;
pub(in crate::view) mod statistics;
