//! Listings of shards whose index cannot be read.
//!
//! Such a shard may hold a chunk in each of its slots. So a listing names all slots, and the lookup
//! of one gives the error: no chunk passes for absent. But one damaged byte can turn the index into
//! one of 2^33 slots, so the number of such names is limited.

use std::sync::Arc;

use crate::error::Error;
use crate::grid::Dims;
use crate::load::{Loader, Locator};
use crate::store::Detail;
use crate::view::View;
use crate::view::chunks::names::ChunkName;
use crate::view::listing::name_stream::NameStream;
use crate::view::nodes::node::ShownArray;

/// The most slots of one stored name that are listed although its index cannot be read. If there
/// are more, no slot is listed, and the listing ends with the error.
pub(in crate::view) const MOST_UNKNOWN: u64 = 1_000_000;

/// The stored shard that holds the shown chunk `indices`, with a verified index; `None` if it is
/// not stored.
///
/// # Errors
/// [`Error`] when the index is invalid, or cannot be read.
pub(in crate::view) fn sound_shard(
    loader: &Arc<Loader>,
    array: &Arc<ShownArray>,
    indices: &[u64],
) -> Result<Option<Locator>, Error> {
    let Some(object) = loader.open_stored(&array.chunked, indices, None)? else {
        return Ok(None);
    };
    let mut locator = loader.locator(&array.chunked, &object, indices)?;
    // The error is logged at a low level, because the lookup of a slot reports it.
    locator
        .verify()
        .inspect_err(|error| log::debug!("{error}"))?;
    Ok(Some(locator))
}

/// Whether a stored shard below the stored directory of `first` has a valid index. The search ends
/// at the first valid one.
///
/// # Errors
/// The error of the last invalid index, if no shard has a valid one.
pub(in crate::view) fn has_sound_shard(
    view: &View,
    array: &Arc<ShownArray>,
    first: Dims,
) -> Result<bool, Error> {
    let deadline = view.tree.loader.deadline();
    let mut refused = None;
    let mut pending = vec![first];
    while let Some(first) = pending.pop() {
        let prefix = array.stored_prefix(&first)?;
        let mut names = NameStream::new(prefix);
        while let Some(entry) = names.next(view.tree.store(), Detail::Names)? {
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
                // The shard is outside the grid, and remains from before a resize.
                continue;
            };
            match sound_shard(&view.tree.loader, array, &shown) {
                Ok(Some(_)) => return Ok(true),
                Ok(None) => {}
                Err(error) => refused = Some(error),
            }
        }
    }
    refused.map_or(Ok(false), Err)
}
