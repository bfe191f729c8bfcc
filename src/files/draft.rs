//! Bytes that were written to a file and are not in the store yet.

use std::ops::Range;

use rangemap::RangeSet;

use super::base::Base;
use super::draft_file::DraftFile;
use super::{HandleAccess, HandleId};
use crate::store::{NewAttributes, Replaces};
use crate::translate::Rules;

/// The draft of a file.
#[derive(Debug)]
pub(super) struct FileDraft {
    pub(super) bytes: DraftFile,
    pub(super) replaces: Replaces,
    beginning: Beginning,
    /// The numbers of the handles that made the file empty, to write it anew, and were not closed since. While there
    /// are any, the close of another handle does not commit the half-written file.
    pub(super) rewriters: Vec<HandleId>,
    /// The handles that save the draft when they are closed, beside those that have written it.
    pub(super) savers: Savers,
    /// Whether the times of the file were set after it was last written.
    pub(super) has_times: bool,
    /// The attributes that programs have set on the draft, for objects that are not made from its file, and the owner
    /// that the file had before.
    pub(super) set: Option<(NewAttributes, u32)>,
    /// Whether no writer can have read the file by the same handle.
    is_blind: bool,
    /// The earlier text of a document.
    pub(super) base: Base,
    /// Whether the object already differs from the base when the draft begins.
    pub(super) is_behind: bool,
    /// The written text, before it was merged with the changes of another program.
    pub(super) unmerged: Option<Base>,
    /// The parts that the draft has; `None` if it has all bytes of the file.
    parts: Option<Parts>,
    /// The bytes that were written since the file was made or made empty.
    anew: RangeSet<u64>,
}

/// The beginning of a draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beginning {
    /// The draft began as the object: bytes that are not written stay.
    Object,
    /// The draft began empty, after a program that may have read the object has made the file empty.
    Emptied,
    /// The draft began empty, and its writer has not read the version that it replaces.
    Empty,
}

/// The handles that save the draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Savers {
    /// The handles that have written it.
    Writers,
    /// The handles that write the file anew, to which others have left their bytes.
    Rewriters,
    /// All handles that may write, because some bytes come from mapped memory, which the kernel writes through any
    /// handle.
    All,
}

/// The parts of a file that were written. Its other bytes are decoded when they are needed.
#[derive(Debug)]
struct Parts {
    written: RangeSet<u64>,
    /// Whether the other bytes are in the draft, too.
    is_complete: bool,
}

impl FileDraft {
    /// A draft that has all bytes of the file.
    pub(super) fn whole(bytes: DraftFile, replaces: Replaces, began_empty: bool) -> FileDraft {
        FileDraft {
            bytes,
            replaces,
            beginning: if began_empty {
                Beginning::Empty
            } else {
                Beginning::Object
            },
            rewriters: Vec::new(),
            savers: Savers::Writers,
            has_times: false,
            set: None,
            is_blind: true,
            base: Base::Nothing,
            is_behind: false,
            unmerged: None,
            parts: None,
            anew: RangeSet::new(),
        }
    }

    /// The empty draft of a file that was made by the handle `writer`.
    pub(super) fn made(bytes: DraftFile, writer: HandleId) -> FileDraft {
        FileDraft {
            rewriters: vec![writer],
            ..FileDraft::whole(bytes, Replaces::Nothing, true)
        }
    }

    /// A draft that has none of the bytes yet.
    pub(super) fn partial(bytes: DraftFile, replaces: Replaces) -> FileDraft {
        let parts = Parts {
            written: RangeSet::new(),
            is_complete: false,
        };
        FileDraft {
            parts: Some(parts),
            ..FileDraft::whole(bytes, replaces, false)
        }
    }

    /// Notes that all bytes are new. A writer that `is_blind` cannot have read the earlier ones.
    pub(super) fn begin_empty(&mut self, writer: HandleId, is_blind: bool) {
        if is_blind {
            self.beginning = Beginning::Empty;
        } else if self.beginning == Beginning::Object {
            self.beginning = Beginning::Emptied;
        }
        self.parts = None;
        self.anew.clear();
        self.savers = Savers::Writers;
        if !self.rewriters.contains(&writer) {
            self.rewriters.push(writer);
        }
    }

    /// Whether handles write the file anew.
    pub(super) fn has_rewriters(&self) -> bool {
        !self.rewriters.is_empty()
    }

    /// Notes that these bytes were written.
    pub(super) fn note_written(&mut self, range: Range<u64>) {
        if self.has_rewriters() && !range.is_empty() {
            self.anew.insert(range);
        }
    }

    /// Notes that the file was cut or extended to `len` bytes.
    pub(super) fn note_len(&mut self, len: u64) {
        if len < u64::MAX {
            self.anew.remove(len..u64::MAX);
        }
    }

    /// Whether the first `len` bytes were all written since the file was made or made empty.
    pub(super) fn is_written_whole(&self, len: u64) -> bool {
        len > 0 && self.anew.gaps(&(0..len)).next().is_none()
    }

    /// Notes that the merged text is not saved: the writers know only the text that they have written.
    pub(super) fn go_back(&mut self) {
        if let Some(unmerged) = self.unmerged.take() {
            (self.base, self.is_behind) = (unmerged, true);
        }
    }

    /// Notes that the whole draft was saved, by removing the object.
    pub(super) fn saved_as_nothing(&mut self) {
        self.replaces = Replaces::Nothing;
        // From now on, programs may read the file before they write to it.
        self.beginning = Beginning::Emptied;
        self.rewriters.clear();
    }

    /// Whether the draft began empty, and its writer has not read the version that it replaces.
    pub(super) fn began_empty(&self) -> bool {
        self.beginning == Beginning::Empty
    }

    /// Notes that `range` was written through a handle with `access`.
    pub(super) fn note(&mut self, range: Range<u64>, access: HandleAccess) {
        self.has_times = false;
        if let Some((set, _)) = &mut self.set {
            (set.atime, set.mtime) = (None, None);
        }
        self.is_blind &= access != HandleAccess::ReadsAndWrites;
        if let Some(parts) = &mut self.parts
            && !range.is_empty()
        {
            parts.written.insert(range);
        }
    }

    /// Notes that a program has set `new` on the file of the draft, which `owner` owned before.
    pub(super) fn note_attributes(&mut self, new: &NewAttributes, owner: u32) {
        self.has_times |= new.atime.is_some() || new.mtime.is_some();
        let (before, owner) = self.set.unwrap_or((NewAttributes::default(), owner));
        self.set = Some((before.then(new), owner));
    }

    /// The parts of the first `len` bytes that are missing in the draft.
    pub(super) fn missing(&self, len: u64) -> Vec<Range<u64>> {
        match &self.parts {
            Some(parts) if !parts.is_complete => parts.written.gaps(&(0..len)).collect(),
            _ => Vec::new(),
        }
    }

    /// Adds the missing bytes from `base`, which has those of the whole file.
    pub(super) fn complete(&mut self, base: &[u8]) -> std::io::Result<()> {
        for gap in self.missing(base.len() as u64) {
            let place = usize::try_from(gap.start).ok();
            let place = place.zip(usize::try_from(gap.end).ok());
            let bytes = place.and_then(|(start, end)| base.get(start..end));
            self.bytes.put(gap.start, bytes.unwrap_or_default())?;
        }
        if let Some(parts) = &mut self.parts {
            parts.is_complete = true;
        }
        Ok(())
    }

    /// Notes that the bytes that were not written must be taken from another version.
    pub(super) fn rebase(&mut self, replaces: Replaces) {
        self.replaces = replaces;
        if let Some(parts) = &mut self.parts {
            parts.is_complete = false;
        }
    }

    /// Whether some bytes of the file were not written.
    pub(super) fn is_partial(&self) -> bool {
        self.parts.is_some()
    }

    /// Whether the draft may replace another version than the one that it was made from. A draft that began as an empty
    /// file may. A draft that began with the bytes of the object may if the bytes or members that were not written can
    /// be taken from the other version, and if all writers are blind or the mount merges changes of other programs in
    /// any case.
    pub(super) fn can_rebase(&self, rules: Rules) -> bool {
        let merges = rules.merges_in_any_case();
        let can_be_taken = rules.merges_members() || self.parts.is_some();
        match self.beginning {
            Beginning::Empty => true,
            Beginning::Emptied => merges,
            Beginning::Object => can_be_taken && (self.is_blind || merges),
        }
    }
}
