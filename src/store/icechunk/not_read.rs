//! The virtual chunks that are not read, for people who want to know before they mount a repository.

use std::collections::BTreeSet;

use super::files::key_of;
use super::names::ChunkReader;
use super::object_id::ObjectId;
use crate::store::StoreError;
use crate::store::targets::Refused;

/// The most manifests that are examined, each of which is a request.
const MOST_MANIFESTS: usize = 16;

/// The most chunks that are examined.
const MOST_CHUNKS: usize = 100_000;

/// Which virtual chunks of the snapshot are not read; `None` if all that were examined are read.
pub(super) fn not_read(reader: &ChunkReader<'_>) -> Option<String> {
    let mut refused = Refused::default();
    let all = add_refused(reader, &mut refused);
    if refused.is_empty() {
        return None;
    }
    let text = format!("virtual chunks that are not read without --allow-refs: {refused}");
    Some(match all {
        Ok(true) => text,
        Ok(false) | Err(_) => format!("{text}, and perhaps others, because not all were examined"),
    })
}

/// Counts the chunks that are refused. Returns whether all manifests were examined.
fn add_refused(reader: &ChunkReader<'_>, refused: &mut Refused) -> Result<bool, StoreError> {
    let snapshot = &reader.pinned.snapshot;
    let mut manifests: BTreeSet<ObjectId> = BTreeSet::new();
    let mut chunks = 0;
    for node in snapshot.nodes() {
        let Some(array) = reader.of_snapshot(node.and_then(|node| node.array()))? else {
            continue;
        };
        for part in reader.of_snapshot(array.manifests_of(&[]))? {
            if manifests.len() == MOST_MANIFESTS {
                return Ok(false);
            }
            if !manifests.insert(part.id) {
                continue;
            }
            let manifest = reader.files.manifest(part.id, reader.shown)?;
            for place in manifest.virtual_places() {
                if chunks == MOST_CHUNKS {
                    return Ok(false);
                }
                chunks += 1;
                let key = key_of("manifests", part.id)?;
                let place = place.map_err(|problem| problem.of(&key))?;
                reader.prepare(&place)?;
                let directory = reader.found_virtual(&place).refused_directory();
                if let Some(directory) = directory {
                    refused.add(directory);
                }
            }
        }
    }
    Ok(true)
}
