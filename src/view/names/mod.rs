//! Names that come, go and change, in a mount that is written to.
//!
//! A name is known in four places, which a change of names updates in this order:
//!
//! 1. the store has objects by their keys;
//! 2. open files have the keys under which they are saved (`files::names`);
//! 3. vnodes have numbers, which the kernel keeps as inode numbers (`numbers::renamed`);
//! 4. caches have what was found at a path: nodes of the hierarchy, documents, chunks of arrays that are gone.
//!
//! The store is first, so that a change that it refuses has changed nothing. Threads that resolve a name meanwhile see
//! the change as one step (`rename_locks`).
//!
//! | file | contents |
//! |---|---|
//! | `new` | files and directories that are made |
//! | `remove` | files, empty directories and chunks that are removed |
//! | `rename` | renames and links |
//! | `rename_locks` | locks that make a rename one step for every thread that resolves names meanwhile |
//!
//! The module [`super::forms`] decides in which form a file is saved under its name, and which documents change with
//! it.

mod new;
mod remove;
mod rename;
pub(in crate::view) mod rename_locks;
