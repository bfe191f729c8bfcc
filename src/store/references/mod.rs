//! Stores whose objects are named by references: ranges of objects that lie elsewhere.
//!
//! A reference comes from whoever wrote the set of references, and may name any URL and any file of
//! this machine. [`Targets`] decides which of them are read, and reads them.

mod address;
mod allowed;
mod target;
mod targets;

pub use allowed::AllowedPrefix;
