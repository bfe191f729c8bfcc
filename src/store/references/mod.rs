//! Stores whose objects are named by references: ranges of objects that lie elsewhere.
//!
//! ```text
//! ReferenceStore   stat, open, list ──> contents: the references of one version of the set
//!                                         json: all in memory        parquet: files read when needed
//! ```
//!
//! The author of a set is not trusted: a reference may name any URL and any file of this machine.
//! [`targets`](super::targets) decides which of them are read, and reads them. This folder reads the sets
//! themselves, which may be hostile too: their memory is bounded, and damage is an error.

mod axis;
mod budget;
mod contents;
mod detect;
mod dimension;
mod expansion;
mod expression;
mod generated;
mod grid;
mod grid_key;
mod json;
mod lexer;
mod members;
mod names;
mod not_numbers;
#[cfg(feature = "references")]
mod parquet;
mod product;
mod row;
mod store;
mod stored_rows;
mod table;
mod templates;
mod text;

pub(in crate::store) use detect::{
    HEAD_BYTES, has_members, is_named_as_set, looks_like_set, metadata_key, metadata_of_set,
    metadata_of_set_up_to,
};
pub use store::ReferenceStore;
