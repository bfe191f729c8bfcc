//! What STORE may be.
use std::sync::Arc;
use super::{Store, StoreError, Symlinks};
/// A parsed STORE argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location { /// A directory.
 Directory(std::path::PathBuf), /// The built-in store.
 Demo }
/// Opens the store at `location`.
/// # Errors
/// stub
pub fn open_store(_location: &Location, _symlinks: Symlinks) -> Result<Arc<dyn Store>, StoreError> { Err(StoreError::Unsupported("stub".into())) }
