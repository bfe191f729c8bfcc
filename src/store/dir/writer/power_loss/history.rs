//! What was there at each moment of a script, and what a loss of power may leave of it.

use crate::store::dir::writer::calls::recorded;

/// What a key, or a part of an object, had, one after the other.
#[derive(Default)]
pub(crate) struct History {
    /// What it had, and the number of calls before it began to have it.
    had: Vec<(usize, Option<Vec<u8>>)>,
    /// From this number of calls on, what it had before this place is not there any more.
    synced: Vec<(usize, usize)>,
    /// Whether the bytes of what it has were synced.
    pub(crate) has_synced_bytes: bool,
}

impl History {
    /// That of something that had `bytes` before the script.
    pub(crate) fn of(bytes: Option<Vec<u8>>) -> History {
        History {
            had: vec![(0, bytes)],
            has_synced_bytes: true,
            ..History::default()
        }
    }

    /// Notes that it has `bytes`, by calls after the first `begun`.
    pub(crate) fn add(&mut self, begun: usize, bytes: Option<Vec<u8>>) {
        self.had.push((begun, bytes));
    }

    /// What it has.
    pub(crate) fn now(&self) -> Option<&[u8]> {
        self.had.last()?.1.as_deref()
    }

    /// What it has now survives.
    pub(crate) fn sync(&mut self) {
        if self.has_synced_bytes {
            self.synced.push((recorded::count(), self.had.len() - 1));
        }
    }

    /// What it may have after so many calls, of which nothing is lost: what it was changed to last, or
    /// what it had before this change.
    pub(crate) fn latest(&self, n_calls: usize) -> Vec<Option<&Vec<u8>>> {
        let had = self.had.iter().rev();
        let begun = had.filter(|(begun, _)| *begun < n_calls || *begun == 0);
        begun.take(2).map(|(_, bytes)| bytes.as_ref()).collect()
    }

    /// What it may have after so many calls, and whether that is only one thing.
    pub(crate) fn allowed(&self, n_calls: usize) -> (Vec<Option<&Vec<u8>>>, bool) {
        let synced = self.synced.iter().rev().find(|(when, _)| *when <= n_calls);
        let first = synced.map_or(0, |(_, place)| *place);
        let had = self.had[first..]
            .iter()
            .filter(|(begun, _)| *begun < n_calls || *begun == 0);
        let allowed: Vec<_> = had.map(|(_, bytes)| bytes.as_ref()).collect();
        let is_certain = synced.is_some() && allowed.len() == 1;
        (allowed, is_certain)
    }
}
