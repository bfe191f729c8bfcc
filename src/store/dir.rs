//! stub
/// What symbolic links may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Symlinks { /// Links that leave the store are refused.
 Inside, /// All links are followed.
 Follow }
/// A directory as a store.
#[derive(Debug)]
pub struct DirStore;
