//! The attributes that are shown of a file while it is saved. A save may take long because of an encoder, the disk, or
//! a lock of another program, and the state of the file is locked meanwhile. A stat(2) of the file does not wait for
//! that.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::store::ObjectMeta;

/// The attributes that are shown of a file that is being saved.
#[derive(Debug, Clone)]
pub(super) struct Saving {
    /// The attributes of the draft.
    pub(super) meta: ObjectMeta,
    /// Whether the store does not have the file yet.
    pub(super) is_new: bool,
    /// Whether the file is only in the mount, until it is saved under another name.
    pub(super) is_scratch: bool,
    /// Whether the kernel may have pages that are not those of the object.
    pub(super) has_wrong_pages: bool,
}

/// A slot that is filled while the file is saved.
#[derive(Debug, Clone, Default)]
pub(super) struct SavingSlot(Arc<Mutex<Option<Arc<Saving>>>>);

/// Empties the slot when it is dropped.
pub(super) struct SavingGuard(SavingSlot);

impl SavingSlot {
    /// Shows `saving` until the result is dropped.
    pub(super) fn begin(&self, saving: Saving) -> SavingGuard {
        *self.lock() = Some(Arc::new(saving));
        SavingGuard(self.clone())
    }

    /// Notes that the store has the file, although the save has not ended.
    pub(super) fn note_stored(&self) {
        if let Some(saving) = &mut *self.lock() {
            Arc::make_mut(saving).is_new = false;
        }
    }

    /// The attributes, if the file is being saved.
    pub(super) fn get(&self) -> Option<Arc<Saving>> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Saving>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SavingGuard {
    fn drop(&mut self) {
        *self.0.lock() = None;
    }
}
