//! The chunks in one object: each is decoded, or only read.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use super::counters::Counters;
use super::finding::{Finding, Found, Severity};
use super::ignored::Ignored;
use super::purpose::Purpose;
use crate::error::Error;
use crate::grid::{Dims, indices_of, product};
use crate::load::{ChunkAt, ChunkedArray, Loader, Locator};
use crate::store::Prefix;

/// The inner chunks that one thread reads or decodes in turn. Those of a large shard are decoded by several threads.
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

    /// Reads the chunks, and decodes them unless they are only kept. A shard whose chunks share bytes is added to `shared`.
    pub(super) fn read(
        &self,
        purpose: Purpose,
        loader: &Arc<Loader>,
        (counters, shared): (&Counters, &Mutex<Ignored>),
        found: &Found<'_>,
    ) {
        let of_object = |error| {
            let place = self.array.place_of_stored(&self.stored);
            found(Finding::of_error(&self.path, place, &error));
        };
        let mut locator = match self.open(loader, found) {
            Ok(Some(locator)) => locator,
            Ok(None) => return,
            // Another part of the same object reports the same error.
            Err(_) if self.first > 0 => return,
            Err(error) => return of_object(error),
        };
        match purpose {
            Purpose::Verify => {
                if self.first == 0 {
                    self.look_for_shared_bytes(&mut locator, shared, found);
                }
                self.decode_all(loader, &mut locator, counters, found);
            }
            Purpose::Warm => {
                let kept = self.keep_all(loader, &mut locator, counters, found);
                kept.unwrap_or_else(of_object);
            }
        }
    }

    /// Finds chunks in the object, whose index is verified.
    ///
    /// # Errors
    /// An error of the object itself, or of its index.
    fn open(&self, loader: &Arc<Loader>, found: &Found<'_>) -> Result<Option<Locator>, Error> {
        let Some(axes) = self.array.layout().shown_in(&self.stored) else {
            return Ok(None);
        };
        let firsts: Dims = axes.iter().map(|axis| axis.first).collect();
        let Some(mut locator) = loader.locator_of_latest(&self.array, &firsts)? else {
            if self.is_listed && self.first == 0 {
                let key = self.array.key_of_stored(&self.stored)?;
                let gone = format!("{key}: removed while the store was verified");
                found(Finding::new(Severity::Unread, &self.path, gone));
            }
            return Ok(None);
        };
        locator.verify()?;
        Ok(Some(locator))
    }

    /// Reports the object if it is a shard in which several chunks have the same bytes. Errors are those of the chunks.
    fn look_for_shared_bytes(
        &self,
        locator: &mut Locator,
        shared: &Mutex<Ignored>,
        found: &Found<'_>,
    ) {
        let (Ok(Some(bytes)), Ok(key)) = (
            locator.shared_bytes(),
            self.array.key_of_stored(&self.stored),
        ) else {
            return;
        };
        let [first, second] = bytes.ranges;
        let entries = match bytes.count {
            1 => "an entry of the index has bytes".to_owned(),
            count => format!("{count} entries of the index have bytes"),
        };
        let what = format!(
            "{entries} that another entry or the index itself has, too, such as {}..{} and {}..{}; a chunk may have been \
             overwritten",
            first.start, first.end, second.start, second.end
        );
        let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.add(&self.path, &key, &what, found);
    }

    /// The indices of the chunks. A shard at the edge has none for places outside of the array.
    fn indices(&self) -> impl Iterator<Item = Dims> {
        let layout = self.array.layout();
        let axes = layout.shown_in(&self.stored).unwrap_or_default();
        let counts: Dims = axes.iter().map(|axis| axis.count).collect();
        let chunks = product(&counts).unwrap_or(0);
        let numbers = self.first..chunks.min(self.first.saturating_add(CHUNKS_AT_ONCE));
        let each = numbers.filter_map(move |number| {
            let within = indices_of(number, &counts)?;
            let shifted = axes.iter().zip(&within);
            Some(shifted.map(|(axis, index)| axis.first + index).collect())
        });
        each.filter(move |indices: &Dims| layout.shown_grid().contains(indices))
    }

    /// The chunks that are in the object. Those that an index has no place for are reported.
    fn locate_all(
        &self,
        locator: &mut Locator,
        counters: &Counters,
        found: &Found<'_>,
    ) -> Vec<ChunkAt> {
        let mut chunks = Vec::new();
        for indices in self.indices() {
            match locator.locate(&indices) {
                Ok(chunk) => chunks.extend(chunk.map(|chunk| (indices, chunk))),
                Err(error) => {
                    counters.chunks.fetch_add(1, Ordering::Relaxed);
                    self.report(&indices, &error, found);
                }
            }
        }
        chunks
    }

    fn report(&self, indices: &[u64], error: &Error, found: &Found<'_>) {
        let place = self.array.place_of(indices);
        found(Finding::of_error(&self.path, place, error));
    }

    /// Decodes the chunks and reports those that cannot be decoded.
    fn decode_all(
        &self,
        loader: &Arc<Loader>,
        locator: &mut Locator,
        counters: &Counters,
        found: &Found<'_>,
    ) {
        let version = locator.meta().version;
        let chunks = self.locate_all(locator, counters, found);
        let mut rest = chunks.as_slice();
        while !rest.is_empty() {
            let (group, others) = loader.split_group(rest);
            rest = others;
            // If they cannot be received at once, the read of each chunk gives its error.
            let together = !loader.is_local() && group.len() > 1;
            let received = together.then(|| loader.receive_group(group).ok()).flatten();
            let mut received = received.unwrap_or_default().into_iter();
            for (indices, chunk) in group {
                let chunk = received.next().unwrap_or_else(|| chunk.clone());
                let key = self.array.block_key(version, indices).ok_or(Error::Stale);
                let decoded =
                    key.and_then(|key| loader.load_located((&self.array, indices), key, chunk));
                counters.chunks.fetch_add(1, Ordering::Relaxed);
                match decoded {
                    Ok(block) => {
                        let bytes = block.len() as u64;
                        counters.bytes.fetch_add(bytes, Ordering::Relaxed);
                    }
                    Err(error) => self.report(indices, &error, found),
                }
            }
        }
    }

    /// Reads the encoded chunks, so that the store keeps them.
    ///
    /// # Errors
    /// An error of reading them.
    fn keep_all(
        &self,
        loader: &Arc<Loader>,
        locator: &mut Locator,
        counters: &Counters,
        found: &Found<'_>,
    ) -> Result<(), Error> {
        let chunks = self.locate_all(locator, counters, found);
        let mut rest = chunks.as_slice();
        while !rest.is_empty() {
            let (group, others) = loader.split_group(rest);
            rest = others;
            let received = loader.receive_group(group)?;
            let bytes = received.iter().map(|chunk| chunk.encoded.len()).sum();
            counters
                .chunks
                .fetch_add(group.len() as u64, Ordering::Relaxed);
            counters.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        Ok(())
    }
}
