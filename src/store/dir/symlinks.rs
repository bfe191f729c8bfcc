//! The use of symbolic links in a store.

/// The symbolic links that are followed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Symlinks {
    /// Links that leave the store are refused. An absolute link counts as leaving.
    #[default]
    Inside,
    /// All links are followed.
    Follow,
}
