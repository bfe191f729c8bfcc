//! The chunks in one object: each is decoded, or only read.

use std::sync::atomic::{AtomicBool, Ordering};
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
    /// The number of the first chunk in the object, in C order. The part has [`CHUNKS_AT_ONCE`] chunks or fewer.
    pub(super) first: u64,
    /// Whether the object was listed, so that it has to be there.
    pub(super) is_listed: bool,
    access: Arc<ObjectAccess>,
}

/// How the parts of one object could open it. Each part opens it again.
#[derive(Default)]
struct ObjectAccess {
    /// Whether a part has opened it.
    is_opened: AtomicBool,
    /// Whether a part could not open it. The first such part says so, and the others are left out: a document may
    /// promise more parts than can ever be tried.
    is_given_up: AtomicBool,
}

impl ObjectPart {
    /// The parts of the object `stored` of `array`, until one of them cannot open it.
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
        let access = Arc::new(ObjectAccess::default());
        firsts.map_while(move |first| {
            (!access.is_given_up.load(Ordering::Relaxed)).then(|| ObjectPart {
                path: path.clone(),
                array: Arc::clone(array),
                stored: stored.into(),
                first,
                is_listed,
                access: Arc::clone(&access),
            })
        })
    }

    /// Reads the chunks. To verify them, it also decodes them, and adds a shard whose chunks share bytes to `shared`.
    pub(super) fn read(
        &self,
        purpose: Purpose,
        loader: &Arc<Loader>,
        (counters, shared): (&Counters, &Mutex<Ignored>),
        found: &Found<'_>,
    ) {
        let Some(mut locator) = self.open(loader, found) else {
            return;
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
                kept.unwrap_or_else(|error| found(self.of_object(&error)));
            }
        }
    }

    /// The locator of chunks in the object, whose index is verified. `None` if the object cannot be opened, which is
    /// reported once.
    fn open(&self, loader: &Arc<Loader>, found: &Found<'_>) -> Option<Locator> {
        let access = &self.access;
        if access.is_given_up.load(Ordering::Relaxed) {
            return None;
        }
        let finding = match self.try_open(loader) {
            Ok(Some(locator)) => {
                access.is_opened.store(true, Ordering::Relaxed);
                return Some(locator);
            }
            Ok(None) => self.gone(),
            Err(error) => Some(self.of_object(&error)),
        };
        if !access.is_given_up.swap(true, Ordering::Relaxed) {
            finding.into_iter().for_each(found);
        }
        None
    }

    /// The finding that the object was removed; `None` if it may never have been there.
    fn gone(&self) -> Option<Finding> {
        let was_there = self.is_listed || self.access.is_opened.load(Ordering::Relaxed);
        let gone = |key| {
            let problem = format!("{key}: removed while the store was read");
            Finding::new(Severity::Unread, &self.path, problem)
        };
        let key = was_there.then(|| self.array.key_of_stored(&self.stored))?;
        Some(key.map_or_else(|error| self.of_object(&error.into()), gone))
    }

    /// # Errors
    /// An error of the object itself, or of its index.
    fn try_open(&self, loader: &Arc<Loader>) -> Result<Option<Locator>, Error> {
        let Some(axes) = self.array.layout().shown_in(&self.stored) else {
            return Ok(None);
        };
        let firsts: Dims = axes.iter().map(|axis| axis.first).collect();
        let Some(mut locator) = loader.locator_of_latest(&self.array, &firsts)? else {
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

    /// The chunks that are in the object. Those that cannot be located are reported.
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

    /// The finding of an error of the object.
    fn of_object(&self, error: &Error) -> Finding {
        let place = self.array.place_of_stored(&self.stored);
        Finding::of_error(&self.path, place, error)
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

    /// Reads the encoded chunks, so that the disk cache of the store keeps them.
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

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::PathBuf;
    use std::sync::atomic::AtomicUsize;

    use super::*;
    use crate::budget::Budget;
    use crate::fresh::Freshness;
    use crate::hierarchy::Hierarchy;
    use crate::load::testing::Reader;
    use crate::metadata::{NodeMetadata, v3};
    use crate::store::testing::{Call, CallKind, Layer, wrap};
    use crate::store::{DirStore, Key, StoreError, Symlinks};
    use crate::verify::Verification;

    /// The outcome of opening the shard again after its index was read.
    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Later {
        Nothing,
        Fails,
        IsGone,
    }

    #[derive(Debug)]
    struct OpensLater {
        later: Later,
        object: PathBuf,
        is_due: AtomicBool,
        opened: AtomicUsize,
    }

    impl Layer for OpensLater {
        fn around<T>(
            &self,
            call: &Call,
            ask: impl FnOnce() -> Result<T, StoreError>,
        ) -> Result<T, StoreError> {
            if call.path != key("c/0").to_prefix() {
                return ask();
            }
            match call.kind {
                CallKind::Stat | CallKind::Open => {}
                CallKind::Read => {
                    self.is_due.store(true, Ordering::Relaxed);
                    return ask();
                }
                _ => return ask(),
            }
            self.opened.fetch_add(1, Ordering::Relaxed);
            if self.is_due.swap(false, Ordering::Relaxed) {
                match self.later {
                    Later::Nothing => {}
                    Later::Fails => {
                        return Err(StoreError::io(
                            "c/0".to_owned(),
                            &io::Error::from_raw_os_error(libc::EIO),
                        ));
                    }
                    Later::IsGone => std::fs::remove_file(&self.object).unwrap(),
                }
            }
            ask()
        }
    }

    fn key(name: &str) -> Key {
        Key::parse(name.as_bytes()).unwrap()
    }

    /// The findings about an array of one shard, of `chunks` chunks, whose object has these bytes; and how often it was
    /// opened.
    fn reported(chunks: u64, object: &[u8], later: Later) -> (Vec<(Severity, String)>, usize) {
        let document = format!(
            r#"{{"zarr_format": 3, "node_type": "array", "shape": [{chunks}], "data_type": "uint8", "fill_value": 0,
                "chunk_grid": {{"name": "regular", "configuration": {{"chunk_shape": [{chunks}]}}}},
                "chunk_key_encoding": {{"name": "default"}},
                "codecs": [{{"name": "sharding_indexed", "configuration": {{"chunk_shape": [1], "codecs": [{{"name": "bytes"}}],
                    "index_codecs": [{{"name": "bytes", "configuration": {{"endian": "little"}}}}]}}}}]}}"#
        );
        let NodeMetadata::Array(metadata) = v3::parse(document.as_bytes()).unwrap() else {
            panic!("no array");
        };
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("c/0");
        std::fs::create_dir(root.path().join("c")).unwrap();
        std::fs::write(root.path().join("zarr.json"), document).unwrap();
        std::fs::write(&path, object).unwrap();
        let opens = Arc::new(OpensLater {
            later,
            object: path,
            is_due: AtomicBool::new(false),
            opened: AtomicUsize::new(0),
        });
        let store = DirStore::open(root.path(), Symlinks::Inside).unwrap();
        let store = wrap(Arc::new(store), &opens);
        let reader = Reader::new(*metadata, Arc::clone(&store), 1 << 20);
        let hierarchy = Hierarchy::new(store, Budget::new(1 << 20), Freshness::Immutable);
        let found = Mutex::new(Vec::new());
        let run = Verification {
            purpose: Purpose::Verify,
            selects: &|_| true,
            start: &Prefix::root(),
            hierarchy: &Arc::new(hierarchy),
            loader: &reader.loader,
            at_once: &|| 1,
        };
        run.run(&Counters::default(), &|finding| {
            if finding.severity != Severity::Note {
                let mut found = found.lock().unwrap();
                found.push((finding.severity, finding.problem));
            }
        });
        let found = found.into_inner().unwrap();
        (found, opens.opened.load(Ordering::Relaxed))
    }

    #[test]
    fn an_object_that_a_later_part_cannot_open_is_reported_once() {
        let chunks = 3 * CHUNKS_AT_ONCE;
        let index_without_chunks = vec![0xff; usize::try_from(chunks * 16).unwrap()];
        for (later, problem) in [
            (Later::Nothing, None),
            (Later::Fails, Some("Input/output error")),
            (Later::IsGone, Some("removed while the store was read")),
        ] {
            let (found, _) = reported(chunks, &index_without_chunks, later);
            assert_eq!(found.len(), usize::from(problem.is_some()), "{found:?}");
            if let (Some(problem), Some((severity, told))) = (problem, found.first()) {
                assert_eq!(*severity, Severity::Unread);
                assert!(told.contains(problem), "{told}");
            }
        }
    }

    #[test]
    fn the_parts_of_a_shard_without_an_index_are_not_tried() {
        let (found, opened) = reported(1 << 40, &[0; 10], Later::Nothing);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].0, Severity::Damage, "{found:?}");
        assert!(opened < 4, "{opened}");
    }
}
