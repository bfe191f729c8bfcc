//! fsync(2): commits, and makes the bytes and the name of a file survive a loss of power.

use super::failure::Audience;
use super::phase::OpenState;
use super::target::Target;
use super::{HandleId, KeyFile, Writing};
use crate::error::Error;
use crate::store::Key;

/// The program for which a file is synced.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Syncer {
    /// The process of this thread, by the handle `id`, which may have written since it was last flushed
    /// (`has_written`).
    Handle {
        id: HandleId,
        thread: u32,
        has_written: bool,
    },
    /// A program that syncs a directory.
    Directory,
    /// A program that requests that everything is saved.
    Mount,
}

impl KeyFile {
    /// Commits, and makes the bytes survive a loss of power, and also the name, if the program syncs this file. A chunk
    /// with all its bytes is always committed. Half-written bytes are left to the handles that write the file anew,
    /// with these exceptions: their own process syncs the file, a handle that has written syncs it, or everything is to
    /// be saved.
    pub(super) fn sync(&self, writing: &Writing, syncer: Syncer) -> Result<(), Error> {
        let mut state = self.lock();
        let len = state.form.as_ref().and_then(|form| form.rules().len);
        let is_rewritten = state.phase.is_rewritten();
        let draft = state.phase.draft().filter(|_| is_rewritten);
        let (is_left, may_fail) = draft.map_or((false, false), |draft| match syncer {
            _ if len.is_some_and(|len| draft.is_written_whole(len)) => (false, false),
            Syncer::Handle {
                id,
                thread,
                has_written,
            } => {
                let is_own = |writer: &HandleId| *writer == id || writer.is_of_process(thread);
                (!has_written && !draft.rewriters.iter().any(is_own), false)
            }
            Syncer::Directory => (true, false),
            Syncer::Mount => (false, true),
        });
        if !is_left {
            let committed = state.commit(writing);
            if let Err(error) = committed {
                drop(state);
                let audience = match syncer {
                    Syncer::Handle { .. } => return Err(error),
                    Syncer::Mount if may_fail => Audience::WriterOfPart,
                    Syncer::Directory | Syncer::Mount => Audience::Other,
                };
                return self.after_failure(error, audience);
            }
        }
        let (name, form, stored, removal) = (
            (state.name.last().clone(), state.key().is_some()),
            state.form.clone(),
            state.stored.clone(),
            state.removal,
        );
        let is_scratch = state.phase.state() == OpenState::Scratch;
        // The disk may be slow, and the state of the file is no longer needed.
        drop(state);
        let (key, is_named) = name;
        let target = Target::of(&writing.writer, &key, form.as_deref());
        // After a directory or the whole mount, all changes except journals are synced at once.
        let is_alone = matches!(syncer, Syncer::Handle { .. });
        if is_scratch || !is_alone && !target.is_part() {
            return Ok(());
        }
        let objects = form
            .as_ref()
            .filter(|_| is_named)
            .map(|form| form.objects());
        match objects.transpose()?.flatten() {
            Some(objects) => sync_objects(writing, objects.keys()),
            None => target.sync(stored.as_ref(), removal, is_named),
        }
    }
}

/// Makes the objects, and their names, survive a loss of power.
fn sync_objects<'k>(
    writing: &Writing,
    objects: impl Iterator<Item = &'k Key>,
) -> Result<(), Error> {
    // The commit may have removed a note of the change, which must not come back.
    writing.writer.sync_removed_journals()?;
    for key in objects {
        if let Some(stored) = writing.writer.open_object(key, false)? {
            writing.writer.sync(key, &stored.file)?;
        }
        writing.writer.sync_names(&key.parent())?;
    }
    Ok(())
}
