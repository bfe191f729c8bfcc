//! What symbolic links may do in a store.

/// What symbolic links may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Symlinks {
    /// Links that leave the store are refused. An absolute link counts as leaving.
    Inside,
    /// All links are followed.
    Follow,
}
