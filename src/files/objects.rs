//! Changes of objects that are made one after the other.

use super::form::ObjectChange;
use crate::error::Error;
use crate::store::{DirWriter, Draft, Key, StoreWriter};

/// Makes the changes. With `--durability close`, their names then survive a loss of power. `new` makes the
/// draft of an object that is not there, with its bytes. Returns the position of the first change that was
/// not made, because its object is not the one any more that it was made of.
pub(crate) fn change(
    writer: &DirWriter,
    changes: &[ObjectChange],
    new: impl Fn(&Key, &[u8]) -> Result<Draft, Error>,
) -> Result<Option<usize>, Error> {
    for (at, change) in changes.iter().enumerate() {
        let key = &change.key;
        let is_made = if let Some(bytes) = &change.bytes {
            let put = writer.put_with((key, bytes), change.replaces, || new(key, bytes))?;
            put.is_some()
        } else {
            writer.erase(key, change.replaces)?
        };
        if !is_made {
            return Ok(Some(at));
        }
    }
    Ok(None)
}
