//! The way in which a store is changed.

use std::path::PathBuf;

/// The changes that have to survive a loss of power.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Nothing: files may be empty or torn.
    Never,
    /// Each object is wholly old or wholly new.
    #[default]
    Atomic,
    /// Files that were closed have their new bytes.
    Close,
}

/// The way in which a store is changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WriterOptions {
    /// The changes that have to survive a loss of power.
    pub durability: Durability,
    /// The directory for journals, if they are not to be in the store.
    pub staging: Option<PathBuf>,
    /// Whether each object is replaced under the lock that tensorstore takes, too.
    pub locks_keys: bool,
}
