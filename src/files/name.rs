//! The name of an open file.

use std::fmt;

use crate::store::Key;

/// The key of an open file, which it may lose.
#[derive(Debug)]
pub(super) enum FileName {
    /// This key.
    Named(Key),
    /// The file has no name: it was removed, or given to another file. This is the last name, for
    /// messages.
    Unnamed(Key),
}

impl FileName {
    /// The key.
    pub(super) fn key(&self) -> Option<&Key> {
        match self {
            FileName::Named(key) => Some(key),
            FileName::Unnamed(_) => None,
        }
    }

    /// The key that the file has, or had last.
    pub(super) fn last(&self) -> &Key {
        let (FileName::Named(key) | FileName::Unnamed(key)) = self;
        key
    }

    /// Removes the name.
    pub(super) fn lose(&mut self) {
        *self = FileName::Unnamed(self.last().clone());
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.last().fmt(f)
    }
}
