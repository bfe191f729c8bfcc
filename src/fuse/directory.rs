//! Directory streams, as getdents(2) and seekdir(3) see them.
//!
//! An offset is an ordinal within the handle: 0 is before `.`, 1 before `..`, 2 before the first
//! entry. The kernel asks for the offset that it was given with the last entry that found room
//! in its caller's buffer, so it may come back to any entry of the last reply: the positions of
//! those are kept. An older offset (seekdir) is reached from the start.
//!
//! An entry that did not fit the reply is held for the next one, as is an error that would have
//! cost the entries before it; the end is an outcome like these.

use crate::error::Error;
use crate::store::Detail;
use crate::view::{Directory, DirectoryEntry, Position};

/// What a stream reads: entries in an order that stays the same, with places to go back to.
pub(super) trait Entries {
    type Entry;
    type Position: Clone;
    const START: Self::Position;

    /// The place before the next entry.
    fn position(&self) -> Self::Position;

    fn seek(&mut self, position: Self::Position) -> Result<(), Error>;

    fn next_entry(&mut self, detail: Detail) -> Result<Option<Self::Entry>, Error>;

    /// Adds attributes to an entry that was read without.
    fn examine(&self, entry: &mut Self::Entry);

    /// Nothing is asked for a while: lets go of what others may need.
    fn rest(&mut self);
}

impl Entries for Directory {
    type Entry = DirectoryEntry;
    type Position = Position;
    const START: Position = Position::START;

    fn position(&self) -> Position {
        Directory::position(self)
    }

    fn seek(&mut self, position: Position) -> Result<(), Error> {
        Directory::seek(self, position)
    }

    fn next_entry(&mut self, detail: Detail) -> Result<Option<DirectoryEntry>, Error> {
        Directory::next_entry(self, detail)
    }

    fn examine(&self, entry: &mut DirectoryEntry) {
        Directory::examine(self, entry);
    }

    fn rest(&mut self) {
        Directory::rest(self);
    }
}

/// What is offered to a reply.
pub(super) enum Item<'e, E> {
    /// `.`
    This,
    /// `..`
    Parent,
    Entry(&'e E),
}

/// Whether an item found room in the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    Added,
    Full,
}

/// Ordinal of the first entry, after `.` and `..`.
const FIRST: u64 = 2;

/// One open directory.
pub(super) struct Stream<D: Entries> {
    entries: D,
    /// Ordinal of what comes next: of `held` if there is one, else of the next entry. `None`
    /// after an error, when the place is not known.
    next: Option<u64>,
    held: Option<Held<D>>,
    /// The entries offered to the last reply, in order, and the places before them.
    offered: Vec<(u64, D::Position)>,
}

struct Held<D: Entries> {
    outcome: Result<Option<D::Entry>, Error>,
    detail: Detail,
    position: D::Position,
}

impl<D: Entries> Stream<D> {
    /// A stream of `entries`, which are at their start.
    pub(super) fn new(entries: D) -> Stream<D> {
        Stream {
            entries,
            next: Some(FIRST),
            held: None,
            offered: Vec::new(),
        }
    }

    /// Offers what follows `offset` to `reply`, each with the offset behind it, until the reply
    /// is full or the directory ends.
    ///
    /// # Errors
    /// Those of the directory, when nothing could be offered before.
    pub(super) fn read(
        &mut self,
        offset: u64,
        detail: Detail,
        reply: impl FnMut(Item<'_, D::Entry>, u64) -> Fit,
    ) -> Result<(), Error> {
        let listed = self.fill(offset, detail, reply);
        self.entries.rest();
        listed
    }

    fn fill(
        &mut self,
        offset: u64,
        detail: Detail,
        mut reply: impl FnMut(Item<'_, D::Entry>, u64) -> Fit,
    ) -> Result<(), Error> {
        self.go_to(offset)?;
        self.offered.clear();
        if offset == 0 && reply(Item::This, 1) == Fit::Full {
            return Ok(());
        }
        if offset <= 1 && reply(Item::Parent, FIRST) == Fit::Full {
            return Ok(());
        }
        let mut ordinal = offset.max(FIRST);
        let mut added = offset < FIRST;
        loop {
            let held = self.hold(detail);
            self.offered.push((ordinal, held.position.clone()));
            match &held.outcome {
                Ok(Some(entry)) if reply(Item::Entry(entry), ordinal + 1) == Fit::Added => {}
                Err(error) if !added => {
                    self.next = None;
                    return Err(error.clone());
                }
                _ => {
                    self.held = Some(held);
                    return Ok(());
                }
            }
            added = true;
            ordinal += 1;
            self.next = Some(ordinal);
        }
    }

    /// Makes `offset` the place to go on from.
    fn go_to(&mut self, offset: u64) -> Result<(), Error> {
        let target = offset.max(FIRST);
        // rewinddir(3) must show what is there now, not what was held.
        let rewound = offset == 0 && self.held.is_some();
        if self.next == Some(target) && !rewound {
            return Ok(());
        }
        self.held = None;
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

    /// What comes next: what is held, with the attributes that are asked for now. They are
    /// not read again: where entries come and go, going back may pass over others.
    fn hold(&mut self, detail: Detail) -> Held<D> {
        if let Some(mut held) = self.held.take() {
            if held.detail == Detail::Names
                && detail == Detail::Attributes
                && let Ok(Some(entry)) = &mut held.outcome
            {
                self.entries.examine(entry);
                held.detail = detail;
            }
            return held;
        }
        let position = self.entries.position();
        let outcome = self.entries.next_entry(detail);
        Held {
            outcome,
            detail,
            position,
        }
    }
}

#[cfg(test)]
mod tests;
