//! Directory streams, as getdents(2) and seekdir(3) see them.
//!
//! An offset is an ordinal within the handle: 0 is before `.`, 1 before `..`, 2 before the first
//! entry. The kernel continues at the offset of the last entry that fitted its caller's buffer,
//! which may be any entry of the last reply: the positions of all of these are kept. An older
//! offset (seekdir) is reached from the start.
//!
//! An entry that did not fit the reply is kept for the next reply. An error that comes after other
//! entries is kept, too, because a reply with an error cannot have entries; and so is the end of the
//! directory.

use crate::error::Error;
use crate::store::Detail;
use crate::view::EntrySource;

/// An item that is offered to a reply.
pub(super) enum StreamItem<'e, E> {
    /// `.`
    This,
    /// `..`
    Parent,
    Entry(&'e E),
}

/// Whether an item fitted the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    Added,
    Full,
}

/// Ordinal of the first entry, after `.` and `..`.
const FIRST: u64 = 2;

/// One open directory.
pub(super) struct Stream<D: EntrySource> {
    entries: D,
    /// The ordinal of the next item: of `kept` if there is one, else of the next entry. `None`
    /// after an error, when the position is unknown.
    next: Option<u64>,
    kept: Option<KeptEntry<D>>,
    /// The ordinals of the entries that were offered to the last reply, and the positions before
    /// them.
    offered: Vec<(u64, D::Position)>,
}

struct KeptEntry<D: EntrySource> {
    outcome: Result<Option<D::Entry>, Error>,
    detail: Detail,
    position: D::Position,
}

impl<D: EntrySource> Stream<D> {
    /// A stream of `entries`, which must be at their start.
    pub(super) fn new(entries: D) -> Stream<D> {
        Stream {
            entries,
            next: Some(FIRST),
            kept: None,
            offered: Vec::new(),
        }
    }

    /// Offers the items after `offset` to `reply`, each with the offset after it, until the reply
    /// is full or the directory ends.
    ///
    /// # Errors
    /// Those of the directory, when nothing could be offered before.
    pub(super) fn read(
        &mut self,
        offset: u64,
        detail: Detail,
        mut reply: impl FnMut(StreamItem<'_, D::Entry>, u64) -> Fit,
    ) -> Result<(), Error> {
        self.go_to(offset)?;
        self.offered.clear();
        if offset == 0 && reply(StreamItem::This, 1) == Fit::Full {
            return Ok(());
        }
        if offset <= 1 && reply(StreamItem::Parent, FIRST) == Fit::Full {
            return Ok(());
        }
        let mut ordinal = offset.max(FIRST);
        let mut added = offset < FIRST;
        let listed = loop {
            let next = self.take_kept(detail).unwrap_or_else(|| KeptEntry {
                position: self.entries.position(),
                outcome: self.entries.next_entry(detail),
                detail,
            });
            self.offered.push((ordinal, next.position.clone()));
            match &next.outcome {
                Ok(Some(entry)) if reply(StreamItem::Entry(entry), ordinal + 1) == Fit::Added => {}
                Err(error) if !added => {
                    self.next = None;
                    break Err(error.clone());
                }
                _ => {
                    self.kept = Some(next);
                    break Ok(());
                }
            }
            added = true;
            ordinal += 1;
            self.next = Some(ordinal);
        };
        self.entries.release();
        listed
    }

    /// Moves the stream to `offset`.
    fn go_to(&mut self, offset: u64) -> Result<(), Error> {
        let target = offset.max(FIRST);
        // rewinddir(3) must show the current entries, not one that was kept.
        let rewound = offset == 0 && self.kept.is_some();
        if self.next == Some(target) && !rewound {
            return Ok(());
        }
        self.kept = None;
        self.next = None;
        let known = self.offered.iter().find(|(ordinal, _)| *ordinal == target);
        if let (Some((_, position)), false) = (known, target == FIRST) {
            self.entries.seek(position.clone())?;
        } else {
            self.entries.seek(D::START)?;
            for _ in FIRST..target {
                if self.entries.next_entry(Detail::Names)?.is_none() {
                    break;
                }
            }
        }
        self.next = Some(target);
        Ok(())
    }

    /// The entry, error or end that was kept, with the attributes that are requested now. Seeking
    /// back to it could skip other entries, if entries were added or removed meanwhile.
    fn take_kept(&mut self, detail: Detail) -> Option<KeptEntry<D>> {
        let mut kept = self.kept.take()?;
        if kept.detail == Detail::Names
            && detail == Detail::Attributes
            && let Ok(Some(entry)) = &mut kept.outcome
        {
            self.entries.examine(entry);
            kept.detail = detail;
        }
        Some(kept)
    }
}

#[cfg(test)]
mod tests;
