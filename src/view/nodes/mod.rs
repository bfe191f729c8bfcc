//! The nodes of a hierarchy as a view shows them.
//!
//! ```text
//! path of a view --resolve--> NodePath --known--> ShownNode: an array, an unusable node, or neither
//!                   (which node is there,            |
//!                    in which Zarr version)          +-- directory: which names it shows
//!                                                    +-- damaged, removed: names that give errors, and are not absent
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `path`, `resolve` | a path of a view, and the node that is there |
//! | `node` | a shown array, or why a node cannot be shown |
//! | `known`, `cache` | the nodes that were shown last |
//! | `directory`, `store_files` | the names in the directory of a node |
//! | `damaged`, `removed` | names below nodes that are damaged or gone: they give errors, and are not absent |
//! | `current`, `meaning` | whether an array, or a key, is still what it was when it was found |
//! | `document_checks` | when documents were last checked |
//!
//! Start with `node`, then `directory`.

pub(in crate::view) mod cache;
pub(in crate::view) mod current;
pub(in crate::view) mod damaged;
pub(in crate::view) mod directory;
pub(in crate::view) mod document_checks;
pub(in crate::view) mod known;
pub(in crate::view) mod meaning;
pub(in crate::view) mod node;
pub(in crate::view) mod path;
pub(in crate::view) mod removed;
pub(in crate::view) mod resolve;
pub(in crate::view) mod store_files;
