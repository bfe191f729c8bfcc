//! Chunks as files of a view.
//!
//! | file | contents |
//! |---|---|
//! | `names` | the names below an array, as parts of chunk keys |
//! | `odometer` | the indices in a box, in C order |
//! | `file` | an open chunk that has to be decoded |
//! | `unreadable_shards` | shards whose index is damaged, in listings |
//!
//! A chunk is found by its name in [`lookup`](super::lookup), and listed in [`listing`](super::listing). Its bytes
//! come from [`crate::load`].

pub(in crate::view) mod file;
pub(in crate::view) mod names;
pub(in crate::view) mod odometer;
pub(in crate::view) mod unreadable_shards;
