//! Shards whose index cannot be read, in listings.
//!
//! Such a shard may hold a chunk in each of its slots, so a listing names them all: whoever looks a name
//! up gets the error, and none of the chunks passes for absent. That ends where a false index would make
//! names without number: a shard of 2^33 slots needs no more than one damaged byte.

use std::sync::Arc;

use super::View;
use super::listing::NameStream;
use super::names::ChunkName;
use super::shown_node::ShownArray;
use crate::error::Error;
use crate::grid::Dims;
use crate::load::{Loader, Locator};
use crate::store::Detail;

/// Slots of one stored name that are listed although nothing is known of them. Of a name that stands for
/// more, none is listed, and the listing ends with the error.
pub(super) const MOST_UNKNOWN: u64 = 1_000_000;

/// The stored shard that holds the shown chunk `indices`, its index checked; `None` where there is no
/// such shard, or there is none any more.
///
/// # Errors
/// That of an index that is false, or cannot be read.
pub(super) fn sound_shard(
    loader: &Arc<Loader>,
    array: &Arc<ShownArray>,
    indices: &[u64],
) -> Result<Option<Locator>, Error> {
    let Some(object) = loader.open_stored(&array.chunked, indices, None)? else {
        return Ok(None);
    };
    let mut locator = loader.locator(&array.chunked, &object, indices)?;
    // Logged when a slot is looked up, which is when somebody misses its bytes.
    locator
        .verify()
        .inspect_err(|error| log::debug!("{error}"))?;
    Ok(Some(locator))
}

/// Whether any stored shard below the stored directory of `first` has an index that can be read. The
/// search ends at the first one that has.
///
/// # Errors
/// That of the last shard whose index cannot be read, where no other shard has one that can.
pub(super) fn has_sound_shard(
    view: &View,
    array: &Arc<ShownArray>,
    first: Dims,
) -> Result<bool, Error> {
    let deadline = view.loader.deadline();
    let mut refused = None;
    let mut pending = vec![first];
    while let Some(first) = pending.pop() {
        let prefix = array.stored_prefix(&first)?;
        let mut names = NameStream::new(prefix);
        while let Some(entry) = names.next(view, Detail::Names)? {
            deadline.check(|| format!("{}: listing", names.prefix))?;
            let stored = match array.stored.in_directory(&first, &entry.name) {
                ChunkName::Directory(indices) => {
                    pending.push(indices);
                    continue;
                }
                ChunkName::Chunk(indices) => indices,
                ChunkName::Other => continue,
            };
            let Some(shown) = array.first_shown(&stored) else {
                // A leftover of a resize, outside the grid.
                continue;
            };
            match sound_shard(&view.loader, array, &shown) {
                Ok(Some(_)) => return Ok(true),
                Ok(None) => {}
                Err(error) => refused = Some(error),
            }
        }
    }
    refused.map_or(Ok(false), Err)
}
