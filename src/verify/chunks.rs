//! The chunks in one object: each is decoded.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::counters::Counters;
use super::finding::{Finding, Found, Severity};
use crate::error::Error;
use crate::grid::{Dims, indices_of, product};
use crate::load::{ChunkedArray, Loader};
use crate::store::Prefix;

/// The inner chunks that one thread decodes in turn. Those of a large shard are decoded by several threads.
pub(super) const CHUNKS_AT_ONCE: u64 = 64;

/// Some chunks in one object of an array.
pub(super) struct ObjectPart {
    /// The path of the array in the tree of nodes.
    pub(super) path: Prefix,
    pub(super) array: Arc<ChunkedArray>,
    /// The indices of the object: of a shard, if the array has shards.
    pub(super) stored: Dims,
    /// The number of the first chunk in the object, in C order. [`CHUNKS_AT_ONCE`] chunks follow.
    pub(super) first: u64,
    /// Whether the object was listed, so that it has to be there.
    pub(super) is_listed: bool,
}

impl ObjectPart {
    /// The parts of the object `stored` of `array`.
    pub(super) fn of(
        path: &Prefix,
        array: &Arc<ChunkedArray>,
        stored: &[u64],
        is_listed: bool,
    ) -> impl Iterator<Item = ObjectPart> {
        let chunks = array.layout().shown_in(stored).and_then(|axes| {
            let counts: Dims = axes.iter().map(|axis| axis.count).collect();
            product(&counts)
        });
        let firsts = (0..chunks.unwrap_or(0)).step_by(usize::try_from(CHUNKS_AT_ONCE).unwrap_or(1));
        firsts.map(move |first| ObjectPart {
            path: path.clone(),
            array: Arc::clone(array),
            stored: stored.into(),
            first,
            is_listed,
        })
    }

    /// Decodes the chunks.
    pub(super) fn verify(&self, loader: &Arc<Loader>, counters: &Counters, found: &Found<'_>) {
        if let Err(error) = self.decode_all(loader, counters, found) {
            // Another part of the same object reports the same error of its index.
            if self.first == 0 {
                let place = self.array.place_of_stored(&self.stored);
                found(Finding::of_error(&self.path, place, &error));
            }
        }
    }

    /// Decodes the chunks and reports those that cannot be decoded.
    ///
    /// # Errors
    /// An error of the object itself, or of its index.
    fn decode_all(
        &self,
        loader: &Arc<Loader>,
        counters: &Counters,
        found: &Found<'_>,
    ) -> Result<(), Error> {
        let layout = self.array.layout();
        let Some(axes) = layout.shown_in(&self.stored) else {
            return Ok(());
        };
        let counts: Dims = axes.iter().map(|axis| axis.count).collect();
        let chunks = product(&counts).unwrap_or(0);
        let firsts: Dims = axes.iter().map(|axis| axis.first).collect();
        let Some(object) = loader.open_stored(&self.array, &firsts, None)? else {
            if self.is_listed && self.first == 0 {
                let key = self.array.key_of_stored(&self.stored)?;
                let gone = format!("{key}: removed while the store was verified");
                found(Finding::new(Severity::Unread, &self.path, gone));
            }
            return Ok(());
        };
        let mut locator = loader.locator(&self.array, &object, &firsts)?;
        locator.verify()?;
        for number in self.first..chunks.min(self.first.saturating_add(CHUNKS_AT_ONCE)) {
            let Some(within) = indices_of(number, &counts) else {
                continue;
            };
            let indices: Dims = firsts.iter().zip(&within).map(|(a, b)| a + b).collect();
            // A shard at the edge may have chunks outside of the array.
            if !layout.shown_grid().contains(&indices) {
                continue;
            }
            let decoded = match locator.locate(&indices) {
                Ok(None) => continue,
                Ok(Some(chunk)) => {
                    let key = self.array.block_key(object.meta().version, &indices);
                    let key = key.ok_or(Error::Stale);
                    key.and_then(|key| loader.load_located((&self.array, &indices), key, chunk))
                }
                Err(error) => Err(error),
            };
            counters.chunks.fetch_add(1, Ordering::Relaxed);
            match decoded {
                Ok(block) => {
                    let bytes = block.len() as u64;
                    counters.bytes.fetch_add(bytes, Ordering::Relaxed);
                }
                Err(error) => {
                    let place = self.array.place_of(&indices);
                    found(Finding::of_error(&self.path, place, &error));
                }
            }
        }
        Ok(())
    }
}
