//! Open whole-array files, and reads of them.

use std::ptr;
use std::sync::{Arc, Weak};

use smallvec::SmallVec;

use super::super::vnode::{PlainName, VnodeAttributes};
use super::Arrays;
use super::file::{ElementSource, PlainFile};
use super::lock;
use super::preview::PreviewOpen;
use super::snapshot::Snapshot;
use crate::buffers::{Buffer, Lender};
use crate::error::Error;
use crate::grid::Dims;
use crate::load::tuning::LONG_READ_BYTES;
use crate::load::{Block, ChunkLayout, ChunkedArray, Loader, Patience, Pending, Versions};
use crate::plain::{Elements, Plan, Tiles};
use crate::read::{Policy, ReadOperation, Readahead, Region, RegionRange, RegionRun};
use crate::store::Prefix;
use crate::threads::Class;
use crate::view::open_file::ReadBytes;

/// The runs of a read; most reads have one.
type Runs = SmallVec<[RegionRun; 1]>;

/// The sequential readers of a read.
type Prefetches<'o> = SmallVec<[SequentialRead<'o>; 1]>;

/// A read of a sequential reader.
struct SequentialRead<'o> {
    readahead: &'o Readahead,
    array: Arc<ChunkedArray>,
    /// All elements that the reader reads.
    region: Arc<Region>,
    /// The lengths of a tile along the axes of the file; none where these elements are in C order.
    tile: Dims,
    /// The range of bytes that was read.
    from: u64,
    len: u64,
}

/// Called once, with the bytes of a read or with the error.
pub(in crate::view) type Reply = Box<dyn FnOnce(Result<ReadBytes<'_>, Error>) + Send>;

/// The bytes of an opened file of the arrays view.
#[derive(Debug)]
pub(in crate::view) enum PlainContent {
    /// A whole array, or a group of arrays.
    Elements(PlainOpen),
    /// A preview.
    Preview(PreviewOpen),
    /// A long text, which is in the cache of blocks.
    Text {
        fingerprint: u64,
        /// Empty after the cache has evicted the text, which is then made again.
        text: Weak<Block>,
    },
    /// A long text that all handles of the file share.
    Kept(Arc<Block>),
}

/// An open file of the arrays view: a layout, and a snapshot of the chunks that are shown.
#[derive(Debug)]
pub(in crate::view) struct PlainOpen {
    file: Arc<PlainFile>,
    snapshot: Arc<Snapshot>,
    /// The policy and the readahead of each array in the file.
    readers: Vec<(Policy, Readahead)>,
}

impl Drop for PlainOpen {
    fn drop(&mut self) {
        self.snapshot.close();
    }
}

impl Arrays {
    /// Opens the current version of the file called `name`; `None` when it does not exist.
    pub(in crate::view) fn open_plain(
        &self,
        name: &PlainName,
    ) -> Result<Option<(VnodeAttributes, PlainContent)>, Error> {
        self.tree.settle_below(&Prefix::root())?;
        let Some(mut file) = self.file_or_none(name)? else {
            return Ok(None);
        };
        // An open file shows the current version, regardless of how long names are trusted.
        if !self.tree.options.freshness.is_immutable()
            && !file.inputs.are_unchanged(self.tree.loader.sources())
        {
            self.forget_plain(&file)?;
            match self.file_or_none(name)? {
                Some(again) => file = again,
                None => return Ok(None),
            }
        }
        if file.text_len.is_some() {
            return self.open_long_text(&file);
        }
        let snapshot = self.snapshot(&file)?;
        let attributes = self.attributes_of_plain(&file, snapshot.generation);
        if let (Some(shown), Some(source)) = (&file.preview, file.sources.first()) {
            let opened = PreviewOpen::new(&file, (shown, source), snapshot);
            return Ok(Some((attributes, PlainContent::Preview(opened))));
        }
        let readers = file.sources.iter();
        let mut readers: Vec<_> = readers
            .map(|_| (Policy::Whole, Readahead::default()))
            .collect();
        for elements in file.layout.elements() {
            let source = file.sources.get(elements.array);
            if let Some((source, (policy, _))) = source.zip(readers.get_mut(elements.array)) {
                *policy = self.policy(source, source.region(&elements.order, None), &[]);
            }
        }
        for tiles in file.layout.tiles() {
            let source = file.sources.get(tiles.array);
            if let Some((source, (policy, _))) = source.zip(readers.get_mut(tiles.array)) {
                let region = source.region(tiles.order(), None);
                *policy = self.policy(source, region, &source.tile_lengths(tiles));
            }
        }
        let opened = PlainOpen {
            file,
            snapshot,
            readers,
        };
        Ok(Some((attributes, PlainContent::Elements(opened))))
    }

    /// Opens a long text. All handles share one copy while the budget has room for it, so that
    /// readers of many texts do not evict each other's texts from the cache.
    fn open_long_text(
        &self,
        file: &PlainFile,
    ) -> Result<Option<(VnodeAttributes, PlainContent)>, Error> {
        let Some((_, text)) = self.long_text(&file.name)? else {
            return Err(Error::Stale);
        };
        let generation = lock(&self.snapshots).generation(&file.name);
        let attributes = self.attributes_of_plain(file, generation);
        let content = match self.kept_text(file, &text) {
            Some(kept) => PlainContent::Kept(kept),
            None => PlainContent::Text {
                fingerprint: text.stamp(),
                text: Arc::downgrade(&text),
            },
        };
        Ok(Some((attributes, content)))
    }

    /// How the elements of `region` in tiles of the lengths `tile` are read: as whole chunks, unless the
    /// cache cannot hold a row of chunks. In that case, whole chunks would be decoded again for every line.
    fn policy(&self, source: &ElementSource, region: Option<Region>, tile: &[u64]) -> Policy {
        let budget = self.tree.loader.cache().budget().limit();
        let layout = source.array.chunked.layout();
        let item_size = layout.data_type().item_size;
        let row =
            region.and_then(|region| region.row_chunks_bytes(tile, layout.shown_grid(), item_size));
        let Some(row) = row else {
            return Policy::Whole;
        };
        let wanted = cache_for(row, layout);
        if wanted <= budget {
            return Policy::Whole;
        }
        let key = &source.array.node.document.key;
        self.tree.warn_once(&(key, "row"), || {
            format!(
                "{key}: a row of chunks takes {}, more than the cache holds: chunks are decoded \
                 in part or more than once; --cache-size {} would avoid that",
                in_mib(row),
                in_mib(wanted),
            )
        });
        Policy::Parts
    }
}

/// The size of a cache that holds a row of chunks of `row` bytes while it is read, and the memory
/// that decoders of `layout` need.
pub fn cache_for(row: u64, layout: &ChunkLayout) -> u64 {
    let chunk = layout.longest_decoded_len().unwrap_or(0);
    row.saturating_add((row / 3).max(chunk.saturating_mul(8)))
}

/// A size as `--cache-size` takes it, rounded up to mebibytes.
fn in_mib(bytes: u64) -> String {
    format!("{}MiB", bytes.div_ceil(1 << 20))
}

impl PlainOpen {
    /// Whether all pages that the kernel holds of the file were read from this snapshot.
    pub(in crate::view) fn keeps_pages(&self) -> bool {
        self.snapshot.is_clean()
    }

    /// The number of the snapshot; `None` if there is only one.
    pub(in crate::view) fn snapshot(&self) -> Option<u64> {
        self.snapshot.version()
    }

    /// Tells the snapshot that the kernel holds no pages of the file.
    pub(in crate::view) fn pages_dropped(&self) {
        self.snapshot.set_clean();
    }

    /// Calls `reply` with `len` bytes at `offset`, which must be within the file. It is called at
    /// once, or on the thread that loads the last chunk. The bytes are put into memory of `lender`, if that has room.
    pub(in crate::view) fn read(
        &self,
        loader: &Arc<Loader>,
        (offset, len): (u64, usize),
        patience: Patience,
        lender: Option<Lender>,
        reply: Reply,
    ) {
        // The kernel reads through this handle, so it dropped all older pages when the file was
        // opened.
        self.snapshot.set_clean();
        let layout = &self.file.layout;
        let plan = layout.plan(offset, len);
        let scratch = || loader.cache().buffers().scratch(plan.room());
        let lent = lender.and_then(|lend| Buffer::of_lent(lend()?, plan.room()));
        let mut out = match lent.map_or_else(scratch, Ok) {
            Ok(out) => out,
            Err(error) => return reply(Err(error.into())),
        };
        plan.fill(layout, &mut out);
        let Some((runs, prefetch)) = self.runs(loader, &plan, len) else {
            let name = &self.file.name;
            return reply(Err(Error::internal(format!(
                "{name:?}: no source of {len} bytes"
            ))));
        };
        let versions = Arc::<Snapshot>::clone(&self.snapshot) as Arc<dyn Versions>;
        let completion = ReadCompletion {
            loader: Arc::clone(loader),
            file: Arc::clone(&self.file),
            snapshot: Arc::clone(&self.snapshot),
            _pending: loader.pend(plan.memory_bytes()),
            plan,
            len,
            patience,
        };
        let finish = Box::new(move |out| completion.reply(out, reply));
        ReadOperation::new(loader, &versions, runs.into_iter(), out, finish).go_on(patience);
        for read in prefetch {
            let range = RegionRange {
                array: &read.array,
                region: &read.region,
                tile: &read.tile,
                from: read.from,
                len: read.len,
            };
            read.readahead.advance(loader, range, &versions);
        }
    }

    /// The runs of elements of a read of `read_len` bytes, and those runs that continue a
    /// sequential read. Of several runs of one array, the last one counts, because the next read
    /// begins after it.
    fn runs(
        &self,
        loader: &Loader,
        plan: &Plan,
        read_len: usize,
    ) -> Option<(Runs, Prefetches<'_>)> {
        let (mut runs, mut prefetch) = (Runs::new(), Prefetches::new());
        // The tiles of an array are one sequence, although each tile is a region.
        let mut tiled: SmallVec<[(usize, bool); 1]> = SmallVec::new();
        for range in plan.tile_ranges(&self.file.layout) {
            let source = self.file.sources.get(range.tiles.array)?;
            let (policy, readahead) = self.readers.get(range.tiles.array)?;
            let goes_on = readahead.goes_on(loader, range.from, range.len);
            tiled.push((range.tiles.array, goes_on));
            if *policy == Policy::Whole && goes_on {
                prefetch.push(SequentialRead {
                    readahead,
                    array: Arc::clone(&source.array.chunked),
                    region: Arc::new(source.region(range.tiles.order(), None)?),
                    tile: source.tile_lengths(range.tiles),
                    from: range.from,
                    len: range.len,
                });
            }
        }
        // Consecutive runs of one part of the layout share its region.
        let mut last: Option<(&Elements, Arc<Region>)> = None;
        for (elements, planned) in plan.runs(&self.file.layout) {
            let source = self.file.sources.get(elements.array)?;
            let (policy, readahead) = self.readers.get(elements.array)?;
            let region = match last.take() {
                Some((known, region)) if ptr::eq(known, elements) => region,
                _ => Arc::new(source.region(&elements.order, elements.bounds.as_deref())?),
            };
            let mut run = RegionRun {
                array: Arc::clone(&source.array.chunked),
                region: Arc::clone(&region),
                from: planned.from,
                at: planned.at,
                len: planned.len,
                policy: *policy,
            };
            let in_tiles = tiled.iter().find(|(array, _)| *array == elements.array);
            let goes_on = match in_tiles {
                Some((_, goes_on)) => *goes_on,
                None => readahead.goes_on(loader, run.from, run.len as u64),
            };
            if *policy == Policy::Whole && goes_on && in_tiles.is_none() {
                prefetch.retain(|read| !ptr::eq(read.readahead, readahead));
                prefetch.push(SequentialRead {
                    readahead,
                    array: Arc::clone(&run.array),
                    region: Arc::clone(&run.region),
                    tile: Dims::new(),
                    from: run.from,
                    len: run.len as u64,
                });
            } else if *policy == Policy::Whole && !goes_on && (read_len as u64) < LONG_READ_BYTES {
                run.policy = Policy::ByCost;
            }
            runs.push(run);
            last = Some((elements, region));
        }
        Some((runs, prefetch))
    }
}

impl ElementSource {
    /// The lengths of a tile along the axes of the file, those that the selection removed first.
    fn tile_lengths(&self, tiles: &Tiles) -> Dims {
        self.removed().map(|_| 1).chain(tiles.lengths()).collect()
    }
}

/// The work that remains after the last chunk of a read was loaded.
struct ReadCompletion {
    loader: Arc<Loader>,
    file: Arc<PlainFile>,
    snapshot: Arc<Snapshot>,
    plan: Plan,
    len: usize,
    patience: Patience,
    _pending: Pending,
}

impl ReadCompletion {
    fn reply(self, out: Result<Buffer, Error>, reply: Reply) {
        let out = match out {
            Ok(out) => out,
            Err(error) => return reply(Err(error)),
        };
        if self.snapshot.is_confirmed() {
            return self.finish(out, reply);
        }
        let (patience, threads) = (self.patience, Arc::clone(self.loader.threads()));
        let confirm = move || match self.snapshot.confirm() {
            Ok(()) => self.finish(out, reply),
            Err(error) => reply(Err(error)),
        };
        if patience == Patience::Waits {
            return confirm();
        }
        // The confirmation of the snapshot examines directories in the store, and this thread may
        // not wait for that.
        threads.submit(Class::Read, confirm);
    }

    /// Replies with the requested bytes, in the encoding of the format.
    fn finish(&self, mut out: Buffer, reply: Reply) {
        let finished = self.plan.finish(&self.file.layout, &mut out);
        let finished = finished.map_err(|error| Error::in_document(&self.file.key(), error));
        reply(finished.map(|()| ReadBytes::Own(out, self.len)));
    }
}

impl PlainFile {
    /// The name of the file in messages: the key of its array's document, or its path.
    fn key(&self) -> String {
        match self.sources.as_slice() {
            [source] => source.array.node.document.key.to_string(),
            _ => self.name.path.to_string(),
        }
    }
}
