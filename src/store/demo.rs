//! stub
use super::{MemoryStore, StoreError};
pub(super) fn store() -> Result<MemoryStore, StoreError> { Ok(MemoryStore::new()) }
