//! The contents at each moment of a script, and the contents that a loss of power may leave.

use crate::store::dir::writer::calls::recorded;

/// The contents of a key, or of a part of an object, one after the other.
#[derive(Default)]
pub(crate) struct History {
    /// The contents, and the number of calls before each of them began.
    had: Vec<(usize, Option<Vec<u8>>)>,
    /// Numbers of calls, and places in `had`: after so many calls, contents before the place are
    /// gone.
    synced: Vec<(usize, usize)>,
    /// Whether the bytes of the contents were synced.
    pub(crate) has_synced_bytes: bool,
}

impl History {
    /// The history of a key that had `bytes` before the script.
    pub(crate) fn of(bytes: Option<Vec<u8>>) -> History {
        History {
            had: vec![(0, bytes)],
            has_synced_bytes: true,
            ..History::default()
        }
    }

    /// Notes that the key gets `bytes` by the calls that follow the first `begun` ones.
    pub(crate) fn add(&mut self, begun: usize, bytes: Option<Vec<u8>>) {
        self.had.push((begun, bytes));
    }

    /// The current contents.
    pub(crate) fn now(&self) -> Option<&[u8]> {
        self.had.last()?.1.as_deref()
    }

    /// Notes that the current contents survive from now on, if their bytes were synced.
    pub(crate) fn sync(&mut self) {
        if self.has_synced_bytes {
            self.synced.push((recorded::count(), self.had.len() - 1));
        }
    }

    /// The contents that the object may have after this many calls, if no call is lost: those of the last change, or those
    /// before it.
    pub(crate) fn latest(&self, n_calls: usize) -> Vec<Option<&Vec<u8>>> {
        let had = self.had.iter().rev();
        let begun = had.filter(|(begun, _)| *begun < n_calls || *begun == 0);
        begun.take(2).map(|(_, bytes)| bytes.as_ref()).collect()
    }

    /// The contents that may be there after this many calls, and whether there is only one possibility.
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
