//! What symbolic links may do in a store.

/// What symbolic links may do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Symlinks {
    /// Links that leave the store are refused. An absolute link counts as leaving.
    #[default]
    Inside,
    /// All links are followed.
    Follow,
}
