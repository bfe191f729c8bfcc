//! Opened whole-array files.

use std::sync::Arc;

use super::super::View;
use super::super::file::{Content, Opened};
use super::super::vnode::{PlainName, Vnode};
use super::file::{PlainFile, Source};
use super::lock;
use super::sequence::{Access, Sequence};
use super::snapshot::Snapshot;
use crate::chunk::{ArrayReader, ChunkLayout, Policy, Region, Versions};
use crate::error::Error;
use crate::plain::Elements;

/// Reads of less than this may be random: the rest of a chunk may never be asked for.
const SMALL_BYTES: usize = 64 << 10;

/// An opened file of the arrays view: a layout, and the versions of chunks that are shown.
#[derive(Debug)]
pub(in crate::view) struct PlainOpen {
    file: Arc<PlainFile>,
    snapshot: Arc<Snapshot>,
    /// How each array is read.
    policies: Vec<Policy>,
    sequences: Vec<Sequence>,
}

impl Drop for PlainOpen {
    fn drop(&mut self) {
        self.snapshot.close();
    }
}

/// Not everything that a read needs is at hand.
struct NotAtHand;

impl From<crate::error::FormatError> for NotAtHand {
    fn from(_: crate::error::FormatError) -> Self {
        // The read that decodes says it.
        NotAtHand
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
        let sequences = file.sources.iter().map(|_| Sequence::default());
        let opened = PlainOpen {
            sequences: sequences.collect(),
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
        let budget = self.shared.cache.budget().limit();
        let Some(row) = row_bytes(elements, source) else {
            return Policy::Whole;
        };
        let wanted = cache_for(row, source.reader().layout());
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
    let layout = source.reader().layout();
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

    /// Fills `out` from `offset` if everything is at hand; `false` when it is not.
    pub(in crate::view) fn try_read(&self, offset: u64, out: &mut [u8]) -> bool {
        // The kernel asks through this handle: what it held it dropped when that was opened.
        self.snapshot.set_clean();
        // What another read looked at may not be of this state, as long as that has not ended.
        if !self.snapshot.is_confirmed() {
            return false;
        }
        let read = self.file.layout.read(offset, out, |elements, from, to| {
            self.try_fetch(elements, from, to)
        });
        read.is_ok() && self.snapshot.is_confirmed()
    }

    fn try_fetch(&self, elements: &Elements, from: u64, out: &mut [u8]) -> Result<(), NotAtHand> {
        let run = self.run(elements).ok_or(NotAtHand)?;
        let at_hand = run
            .reader
            .try_gather(&run.region, from, out, &*self.snapshot);
        if !at_hand {
            return Err(NotAtHand);
        }
        let len = out.len() as u64;
        if run.sequence.goes_on(from, len) && run.policy == Policy::Whole {
            run.sequence
                .advance(run.access(from, len), &self.versions());
        }
        Ok(())
    }

    /// Fills `out` from `offset`.
    pub(in crate::view) fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        self.snapshot.set_clean();
        let fetch = |elements: &Elements, from: u64, to: &mut [u8]| {
            self.fetch(elements, from, to).map_err(Failure::Error)
        };
        match self.file.layout.read(offset, out, fetch) {
            Ok(()) => self.snapshot.confirm(),
            Err(Failure::Error(error)) => Err(error),
            Err(Failure::Format(error)) => Err(Error::Metadata {
                key: self.file.key(),
                error,
            }),
        }
    }

    fn fetch(&self, elements: &Elements, from: u64, out: &mut [u8]) -> Result<(), Error> {
        let run = self.run(elements).ok_or(Error::Panicked)?;
        let versions = self.versions();
        let len = out.len() as u64;
        let goes_on = run.sequence.goes_on(from, len);
        let policy = match run.policy {
            Policy::Whole if !goes_on && out.len() < SMALL_BYTES => Policy::ByCost,
            policy => policy,
        };
        run.reader
            .gather(&run.region, from, out, &versions, policy)?;
        if goes_on && run.policy == Policy::Whole {
            run.sequence.advance(run.access(from, len), &versions);
        }
        Ok(())
    }

    fn versions(&self) -> Arc<dyn Versions> {
        Arc::<Snapshot>::clone(&self.snapshot)
    }

    fn run(&self, elements: &Elements) -> Option<Run<'_>> {
        let source = self.file.sources.get(elements.array)?;
        Some(Run {
            reader: source.reader(),
            region: source.region(elements)?,
            policy: *self.policies.get(elements.array)?,
            sequence: self.sequences.get(elements.array)?,
        })
    }
}

/// A run of elements of a file, and who reads it how.
struct Run<'a> {
    reader: &'a Arc<ArrayReader>,
    region: Region,
    policy: Policy,
    sequence: &'a Sequence,
}

impl Run<'_> {
    fn access(&self, from: u64, len: u64) -> Access<'_> {
        Access {
            reader: self.reader,
            region: &self.region,
            from,
            len,
        }
    }
}

/// Why a read failed: bytes could not be had, or an element cannot be what the format asks for.
enum Failure {
    Error(Error),
    Format(crate::error::FormatError),
}

impl From<crate::error::FormatError> for Failure {
    fn from(error: crate::error::FormatError) -> Self {
        Failure::Format(error)
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
