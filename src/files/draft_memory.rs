//! The bytes of a draft in memory.

use std::io;
use std::ops::Range;

use super::form::Form;
use crate::budget::{Holding, Reservation};
use crate::buffers::Buffer;
use crate::load::to_usize;
use crate::store::{Allocation, FileChange};
use crate::translate::DraftBytes;

/// The bytes of a draft in memory.
#[derive(Debug)]
pub(super) struct DraftMemory {
    /// A buffer of the greatest length that the file may have.
    buffer: Buffer,
    /// How many of its bytes are those of the draft.
    len: usize,
    _reservation: Reservation,
}

impl DraftMemory {
    /// Memory for the bytes that `form` shows; `None` if they belong in a file. A file never becomes a part of an
    /// object, so the bytes of a part may always be in memory.
    pub(super) fn of(form: &dyn Form) -> Option<DraftMemory> {
        let rules = form.rules();
        let is_encoded = rules.draft == DraftBytes::Encoded || form.inner().is_some();
        let len = rules.len.filter(|_| is_encoded)?;
        let cache = form.cache();
        let holding = Holding::NOTHING.to_hold("what is written");
        let reservation = cache.reserve_kept_if_spare(Buffer::scratch_capacity_of(len), holding)?;
        Some(DraftMemory {
            buffer: cache.buffers().scratch(to_usize(len).ok()?).ok()?,
            len: 0,
            _reservation: reservation,
        })
    }

    /// The bytes of the draft.
    pub(super) fn bytes(&self) -> &[u8] {
        self.buffer.get(..self.len).unwrap_or_default()
    }

    /// Makes `change`.
    pub(super) fn change(&mut self, change: &FileChange) -> io::Result<()> {
        match *change {
            FileChange::Write { offset, data } => self.write(offset, data),
            FileChange::SetLen(len) => self.set_len(len),
            FileChange::Allocate {
                offset,
                len,
                allocation,
            } => self.allocate(offset..offset.saturating_add(len), allocation),
        }
    }

    /// Puts `data` at `offset`.
    pub(super) fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        let start = usize::try_from(offset).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let end = start.saturating_add(data.len());
        if start > self.len && !data.is_empty() {
            self.set_len(offset)?;
        }
        let part = self.buffer.get_mut(start..end);
        part.ok_or(io::ErrorKind::FileTooLarge)?
            .copy_from_slice(data);
        if !data.is_empty() {
            self.len = self.len.max(end);
        }
        Ok(())
    }

    /// Cuts or extends the bytes.
    pub(super) fn set_len(&mut self, len: u64) -> io::Result<()> {
        let len = usize::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
        if len > self.len {
            // The buffer may hold the bytes of an earlier use.
            let new = self.buffer.get_mut(self.len..len);
            new.ok_or(io::ErrorKind::FileTooLarge)?.fill(0);
        }
        self.len = len;
        Ok(())
    }

    fn allocate(&mut self, range: Range<u64>, allocation: Allocation) -> io::Result<()> {
        match allocation {
            Allocation::Extend if range.end > self.len as u64 => self.set_len(range.end),
            Allocation::Extend => Ok(()),
            Allocation::Hole => {
                let len = self.len as u64;
                let place = |at: u64| usize::try_from(at.min(len)).unwrap_or(self.len);
                let (start, end) = (place(range.start), place(range.end));
                if let Some(hole) = self.buffer.get_mut(start..end) {
                    hole.fill(0);
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use proptest::prelude::*;

    use super::*;
    use crate::budget::Budget;

    const MOST: usize = 300;

    /// A memory whose buffer has the bytes of an earlier use.
    fn used() -> DraftMemory {
        let budget = Budget::new(1 << 20);
        let reservation = budget.reserve_kept_if_spare(MOST as u64, Holding::NOTHING);
        DraftMemory {
            buffer: Buffer::from(vec![0xaa; MOST]),
            len: 0,
            _reservation: reservation.unwrap(),
        }
    }

    fn place() -> impl Strategy<Value = (u64, u64)> {
        (0..MOST as u64).prop_flat_map(|start| (Just(start), 0..=MOST as u64 - start))
    }

    #[derive(Debug, Clone)]
    enum Step {
        Write((u64, u64), u8),
        SetLen(u64),
        Allocate((u64, u64), Allocation),
    }

    fn step() -> impl Strategy<Value = Step> {
        let allocation = prop_oneof![Just(Allocation::Extend), Just(Allocation::Hole)];
        prop_oneof![
            (place(), any::<u8>()).prop_map(|(place, value)| Step::Write(place, value)),
            (0..=MOST as u64).prop_map(Step::SetLen),
            (place(), allocation).prop_map(|(place, what)| Step::Allocate(place, what)),
        ]
    }

    proptest! {
        #[test]
        fn memory_changes_as_a_file_does(steps in prop::collection::vec(step(), 1..20)) {
            let mut memory = used();
            let file = File::from(rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC)?);
            for step in steps {
                let data;
                let change = match step {
                    Step::Write((offset, len), value) => {
                        data = vec![value; usize::try_from(len)?];
                        FileChange::Write { offset, data: &data }
                    }
                    Step::SetLen(len) => FileChange::SetLen(len),
                    // The system call refuses a length of 0.
                    Step::Allocate((_, 0), _) => continue,
                    Step::Allocate((offset, len), allocation) => {
                        FileChange::Allocate { offset, len, allocation }
                    }
                };
                change.apply(&file)?;
                memory.change(&change)?;
                let mut expected = vec![0; usize::try_from(file.metadata()?.len())?];
                file.read_exact_at(&mut expected, 0)?;
                prop_assert_eq!(memory.bytes(), &expected[..], "{:?}", change);
            }
        }
    }

    #[test]
    fn changes_that_do_not_fit_are_refused() {
        let mut memory = used();
        let data = &[1; 10];
        let refused = [
            FileChange::Write {
                offset: MOST as u64 - 9,
                data,
            },
            FileChange::Write {
                offset: u64::MAX,
                data,
            },
            FileChange::SetLen(MOST as u64 + 1),
        ];
        for change in refused {
            let error = memory.change(&change).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::FileTooLarge, "{change:?}");
        }
    }
}
