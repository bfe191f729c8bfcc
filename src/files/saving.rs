//! What is shown of a file while it is saved. That may take long, for an encoder, the disk, or a lock of another
//! program, and the state of the file is locked meanwhile. A look at the file does not wait for that.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::store::ObjectMeta;

/// What is shown of a file that is being saved.
#[derive(Debug, Clone)]
pub(super) struct Saving {
    /// The attributes of what was written.
    pub(super) meta: ObjectMeta,
    /// Whether the store has nothing yet.
    pub(super) is_new: bool,
    /// Whether the file is in the mount only, until it is saved under another name.
    pub(super) is_scratch: bool,
    /// As in the state of the file.
    pub(super) has_wrong_pages: bool,
}

/// Has something while the file is saved.
#[derive(Debug, Clone, Default)]
pub(super) struct SavingSlot(Arc<Mutex<Option<Arc<Saving>>>>);

/// Empties the slot when it is dropped.
pub(super) struct SavingGuard(SavingSlot);

impl SavingSlot {
    /// Shows this until what is returned is dropped.
    pub(super) fn begin(&self, saving: Saving) -> SavingGuard {
        *self.lock() = Some(Arc::new(saving));
        SavingGuard(self.clone())
    }

    /// Notes that the store has the file, though its saving has not ended.
    pub(super) fn note_stored(&self) {
        if let Some(saving) = &mut *self.lock() {
            Arc::make_mut(saving).is_new = false;
        }
    }

    /// What is shown, if the file is being saved.
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
