//! The nodes that consolidated metadata mentions in a store without directories, and the nodes that
//! were found where names cannot be listed.
//!
//! A request to such a store takes long, and listing may be denied or impossible. So where a group
//! has consolidated metadata, its copies describe everything below it ([`CatalogStore`]): documents
//! are read from them, names are listed from them, and documents that they lack are absent. Only
//! names that they do not mention are looked for in the store. Where several groups have copies of
//! a document, the outermost one counts.
//!
//! Copies are an observation like any other: they are trusted for the time to live, and then the
//! document that holds them is requested again. Their text is in memory within the budget, and is
//! read again after it was evicted.

mod copies;
mod groups;
mod guesses;
mod known;
mod listing;
mod said;
mod store;

pub(super) use groups::Catalog;
pub(super) use store::{CatalogStore, Face};
