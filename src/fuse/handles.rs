//! Open files and directories, by the file handle that the kernel was given.
//!
//! Handles are reused. The kernel sends no request for a handle after its release, so that a handle
//! is never ambiguous.

use std::sync::{Arc, PoisonError, RwLock};

use fuser::FileHandle;

/// Open files or open directories.
#[derive(Debug)]
pub(super) struct Handles<T> {
    slots: RwLock<Slots<T>>,
}

#[derive(Debug)]
struct Slots<T> {
    open: Vec<Option<Arc<T>>>,
    free: Vec<usize>,
}

impl<T> Handles<T> {
    pub(super) fn new() -> Handles<T> {
        Handles {
            slots: RwLock::new(Slots {
                open: Vec::new(),
                free: Vec::new(),
            }),
        }
    }

    /// Adds `opened`, and returns its handle.
    pub(super) fn insert(&self, opened: T) -> FileHandle {
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        let index = slots.free.pop().unwrap_or(slots.open.len());
        if index == slots.open.len() {
            slots.open.push(None);
        }
        slots.open[index] = Some(Arc::new(opened));
        FileHandle(u64::try_from(index).expect("usize has at most 64 bits"))
    }

    /// The file or directory of `handle`; `None` only if the kernel makes handles up.
    pub(super) fn get(&self, handle: FileHandle) -> Option<Arc<T>> {
        let index = usize::try_from(handle.0).ok()?;
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        slots.open.get(index)?.clone()
    }

    /// Removes the file or directory of `handle`.
    pub(super) fn remove(&self, handle: FileHandle) -> Option<Arc<T>> {
        let index = usize::try_from(handle.0).ok()?;
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        let removed = slots.open.get_mut(index)?.take()?;
        slots.free.push(index);
        Some(removed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_reused_after_release_only() {
        let handles = Handles::new();
        let (a, b) = (handles.insert('a'), handles.insert('b'));
        assert_ne!(a, b);
        assert_eq!(handles.get(a).as_deref(), Some(&'a'));
        assert_eq!(handles.remove(a).as_deref(), Some(&'a'));
        assert!(handles.get(a).is_none() && handles.remove(a).is_none());
        assert_eq!(handles.insert('c'), a);
        assert_eq!(handles.get(b).as_deref(), Some(&'b'));
    }

    #[test]
    fn made_up_numbers_stand_for_nothing() {
        let handles = Handles::<()>::new();
        assert!(handles.get(FileHandle(0)).is_none());
        assert!(handles.remove(FileHandle(u64::MAX)).is_none());
    }
}
