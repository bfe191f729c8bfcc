//! Changes of objects that are made one after the other.

use super::form::ObjectChange;
use crate::error::Error;
use crate::store::{Commit, DirWriter, Draft, Key, Replaces};

/// Makes the changes. With `--durability close`, their names then survive a loss of power. `new` makes the
/// draft of an object that is not there, with its bytes. Returns the position of the first change that was
/// not made, because its object is not the one any more that it was made of.
pub(in crate::view) fn change(
    writer: &DirWriter,
    changes: &[ObjectChange],
    new: impl Fn(&Key, &[u8]) -> Result<Draft, Error>,
) -> Result<Option<usize>, Error> {
    for (at, change) in changes.iter().enumerate() {
        let key = &change.key;
        let is_made = if let Some(bytes) = &change.bytes {
            let mut draft = if let Some(stored) = writer.open_object(key, false)? {
                let draft = writer.begin_like(key, &stored)?;
                draft.fill(key, bytes)?;
                draft
            } else {
                writer.make_parents(key)?;
                new(key, bytes)?
            };
            let made = writer.commit(key, &mut draft, change.replaces)?;
            matches!(made, Commit::Done(_))
        } else {
            erase(writer, key, change.replaces)?
        };
        if !is_made {
            return Ok(Some(at));
        }
        writer.sync_closed(key)?;
    }
    Ok(None)
}

/// Removes the object at `key`, if it is what `replaces` says. [`sync_closed`] follows.
pub(super) fn erase(writer: &DirWriter, key: &Key, replaces: Replaces) -> Result<bool, Error> {
    Ok(match replaces {
        Replaces::Version(version) => writer.erase_version(key, version)?,
        Replaces::Nothing => writer.stat(key)?.is_none(),
        Replaces::Anything => match writer.erase(key) {
            Err(error) if error.is_absent() => true,
            erased => erased.map(|()| true)?,
        },
    })
}
