//! Opened whole-array files.

use std::ops::Deref;
use std::sync::Arc;

use smallvec::SmallVec;

use super::super::View;
use super::super::file::{Content, Opened, Reply};
use super::super::vnode::{PlainName, Vnode};
use super::file::{PlainFile, Source};
use super::lock;
use super::snapshot::Snapshot;
use crate::buffers::Buffer;
use crate::error::Error;
use crate::load::tuning::LONG_READ_BYTES;
use crate::load::{ChunkLayout, Loader, Patience, Pending, Versions};
use crate::plain::{Elements, Plan, PlannedRun};
use crate::read::{Access, Policy, ReadOperation, Readahead, Region, Run};
use crate::threads::Class;

/// An opened file of the arrays view: a layout, and the versions of chunks that are shown.
#[derive(Debug)]
pub(in crate::view) struct PlainOpen {
    file: Arc<PlainFile>,
    snapshot: Arc<Snapshot>,
    /// How each array is read.
    policies: Vec<Policy>,
    readaheads: Vec<Readahead>,
}

impl Drop for PlainOpen {
    fn drop(&mut self) {
        self.snapshot.close();
    }
}

impl View {
    /// Opens the file called `name` as it is now; `None` when there is none.
    pub(in crate::view) fn open_plain(
        self: &Arc<Self>,
        name: &PlainName,
    ) -> Result<Option<Opened>, Error> {
        let Some(mut file) = self.plain_if_held(name)? else {
            return Ok(None);
        };
        // What is opened is what is there now, however long names are trusted.
        if !self.options.immutable && !self.are_unchanged(&file.inputs) {
            self.forget_plain(&file)?;
            match self.plain_if_held(name)? {
                Some(again) => file = again,
                None => return Ok(None),
            }
        }
        if file.text_len.is_some() {
            return self.open_long_text(&file);
        }
        let snapshot = self.snapshot(&file)?;
        let attributes = self.attributes_of_plain(&file, snapshot.generation);
        let mut policies = vec![Policy::Whole; file.sources.len()];
        for elements in file.layout.elements() {
            let source = file.sources.get(elements.array);
            if let Some((source, policy)) = source.zip(policies.get_mut(elements.array)) {
                *policy = self.policy(elements, source);
            }
        }
        let readaheads = file.sources.iter().map(|_| Readahead::default());
        let opened = PlainOpen {
            readaheads: readaheads.collect(),
            file,
            snapshot,
            policies,
        };
        Ok(Some(self.opened(attributes, Content::Plain(opened))))
    }

    /// Opens a long text. All who have it open share a copy while there is room for that, so that
    /// readers of many texts do not evict each other's from the cache for every read.
    fn open_long_text(self: &Arc<Self>, file: &PlainFile) -> Result<Option<Opened>, Error> {
        let Some((_, text)) = self.long_text(&file.name)? else {
            return Err(Error::Stale);
        };
        let generation = lock(&self.arrays.snapshots).generation(&file.name);
        let attributes = self.attributes_of_plain(file, generation);
        let content = match self.kept_text(file, &text) {
            Some(kept) => Content::Kept(kept),
            None => Content::Document {
                vnode: Vnode::Plain(file.name.clone()),
                fingerprint: text.stamp(),
                text: Arc::downgrade(&text),
            },
        };
        Ok(Some(self.opened(attributes, content)))
    }

    /// How a run of elements is read: whole chunks, unless a row of them does not fit the cache,
    /// so that each would be decoded again for every line of it.
    fn policy(&self, elements: &Elements, source: &Source) -> Policy {
        let budget = self.loader.cache().budget().limit();
        let Some(row) = row_bytes(elements, source) else {
            return Policy::Whole;
        };
        let wanted = cache_for(row, source.chunked().layout());
        if wanted <= budget {
            return Policy::Whole;
        }
        let key = &source.array.node.document.key;
        self.say_once(&(key, "row"), || {
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

/// The cache in which a row of chunks of `layout`, of so many bytes, stays while it is read: with
/// room for what decoding a few of them takes.
pub fn cache_for(row: u64, layout: &ChunkLayout) -> u64 {
    let chunk = layout.decoded_len().unwrap_or(0);
    row.saturating_add((row / 3).max(chunk.saturating_mul(8)))
}

/// A size as `--cache-size` takes it, rounded up.
fn in_mib(bytes: u64) -> String {
    format!("{}MiB", bytes.div_ceil(1 << 20))
}

/// Bytes of the decoded chunks that a sequential read of a run needs at once.
fn row_bytes(elements: &Elements, source: &Source) -> Option<u64> {
    let layout = source.chunked().layout();
    source
        .region(elements)?
        .row_chunks_bytes(layout.shown_grid(), layout.data_type().item_size)
}

impl PlainOpen {
    /// Whether all that the kernel holds of the file is what this handle shows.
    pub(in crate::view) fn keeps_pages(&self) -> bool {
        self.snapshot.is_clean()
    }

    /// The kernel dropped what it held of the file.
    pub(in crate::view) fn pages_dropped(&self) {
        self.snapshot.set_clean();
    }

    /// Calls `reply` with `len` bytes at `offset`, which end at the end of the file or before: at once,
    /// or on the thread that brings the last chunk.
    pub(in crate::view) fn read(
        &self,
        loader: &Arc<Loader>,
        (offset, len): (u64, usize),
        patience: Patience,
        reply: Reply,
    ) {
        // The kernel asks through this handle: what it held it dropped when that was opened.
        self.snapshot.set_clean();
        let layout = &self.file.layout;
        let plan = layout.plan(offset, len);
        let mut out = match loader.cache().buffers().scratch(plan.room()) {
            Ok(out) => out,
            Err(error) => return reply(Err(error.into())),
        };
        plan.fill(layout, &mut out);
        let versions = Arc::<Snapshot>::clone(&self.snapshot) as Arc<dyn Versions>;
        let mut runs = SmallVec::<[Run; 1]>::new();
        let mut ahead = SmallVec::<[Ahead; 1]>::new();
        // Runs of one part of the layout follow each other, and are of one region.
        let mut region: Option<(*const Elements, Arc<Region>)> = None;
        for (elements, planned) in plan.runs(layout) {
            let known = region.take().filter(|(of, _)| std::ptr::eq(*of, elements));
            let found = match known {
                Some((_, region)) => Some(region),
                None => self.region(elements).map(Arc::new),
            };
            let run = found
                .as_ref()
                .and_then(|region| self.run(elements, planned, (region, len), &mut ahead));
            let Some(run) = run else {
                return reply(Err(Error::Panicked));
            };
            runs.push(run);
            region = found.map(|region| (std::ptr::from_ref(elements), region));
        }
        let ended = Ended {
            loader: Arc::clone(loader),
            file: Arc::clone(&self.file),
            snapshot: Arc::clone(&self.snapshot),
            _pending: loader.pend(plan.room() as u64),
            plan,
            len,
            patience,
        };
        let finish = Box::new(move |out| ended.reply(out, reply));
        ReadOperation::new(loader, &versions, runs.into_iter(), out, finish).go_on(patience);
        for Ahead {
            array,
            region,
            from,
            len,
        } in ahead
        {
            if let (Some(source), Some(readahead)) =
                (self.file.sources.get(array), self.readaheads.get(array))
            {
                let access = Access {
                    array: source.chunked(),
                    region: &region,
                    from,
                    len,
                };
                readahead.advance(loader, access, &versions);
            }
        }
    }

    fn region(&self, elements: &Elements) -> Option<Region> {
        self.file.sources.get(elements.array)?.region(elements)
    }

    /// A run of elements as it is read. Adds to `ahead` where the reader goes on.
    fn run(
        &self,
        elements: &Elements,
        planned: &PlannedRun,
        (region, read_len): (&Arc<Region>, usize),
        ahead: &mut SmallVec<[Ahead; 1]>,
    ) -> Option<Run> {
        let source = self.file.sources.get(elements.array)?;
        let run_len = planned.len as u64;
        let readahead = self.readaheads.get(elements.array)?;
        let goes_on = readahead.goes_on(planned.from, run_len);
        let policy = match *self.policies.get(elements.array)? {
            Policy::Whole if goes_on => {
                // Of many short runs of one array, the last says where the reader is.
                ahead.retain(|ahead| ahead.array != elements.array);
                ahead.push(Ahead {
                    array: elements.array,
                    region: Arc::clone(region),
                    from: planned.from,
                    len: run_len,
                });
                Policy::Whole
            }
            Policy::Whole if (read_len as u64) < LONG_READ_BYTES => Policy::ByCost,
            policy => policy,
        };
        Some(Run {
            array: Arc::clone(source.chunked()),
            region: Arc::clone(region),
            from: planned.from,
            at: planned.at,
            len: planned.len,
            policy,
        })
    }
}

/// Where a reader in order of an array is.
struct Ahead {
    array: usize,
    region: Arc<Region>,
    from: u64,
    len: u64,
}

/// What is left to do when the elements of a read have come.
struct Ended {
    loader: Arc<Loader>,
    file: Arc<PlainFile>,
    snapshot: Arc<Snapshot>,
    plan: Plan,
    len: usize,
    patience: Patience,
    _pending: Pending,
}

impl Ended {
    fn reply(self, out: Result<Buffer, Error>, reply: Reply) {
        let out = match out {
            Ok(out) => out,
            Err(error) => return reply(Err(error)),
        };
        if self.snapshot.is_confirmed() {
            return reply(self.finished(out).as_deref().map_err(Error::clone));
        }
        if self.patience == Patience::Waits {
            return self.confirm(out, reply);
        }
        // The directories that chunks lie in have to be looked at, which this thread may not wait for.
        let threads = Arc::clone(self.loader.threads());
        threads.submit(Class::Read, move || self.confirm(out, reply));
    }

    fn confirm(self, out: Buffer, reply: Reply) {
        let confirmed = self.snapshot.confirm();
        let finished = confirmed.and_then(|()| self.finished(out));
        reply(finished.as_deref().map_err(Error::clone));
    }

    /// The bytes of the range, as the format wants them.
    fn finished(&self, mut out: Buffer) -> Result<Finished, Error> {
        let finished = self.plan.finish(&self.file.layout, &mut out);
        finished.map_err(|error| Error::Metadata {
            key: self.file.key(),
            error,
        })?;
        Ok(Finished(out, self.len))
    }
}

/// The output, and how much of it is the range.
struct Finished(Buffer, usize);

impl Deref for Finished {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.get(..self.1).unwrap_or_default()
    }
}

impl PlainFile {
    /// What messages call it: the document of its array, or its path.
    fn key(&self) -> String {
        match self.sources.as_slice() {
            [source] => source.array.node.document.key.to_string(),
            _ => self.name.path.to_string(),
        }
    }
}
