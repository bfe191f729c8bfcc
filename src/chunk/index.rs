//! Shard indices: verified once per version in one streamed pass, then read page by page.
//!
//! An index may be larger than the whole budget (16 bytes a chunk), so it is never held at
//! once. The verdict and the pages are blocks of the cache like any other.

use std::sync::Arc;

use super::Counters;
use super::cache::{Block, BlockKey, Cache, Part, ShardPlace};
use super::layout::ShardLevel;
use super::reader::ArrayReader;
use super::slice::Slice;
use crate::budget::Holding;
use crate::buffers::zeroed;
use crate::codec::{EntryState, IndexLayout};
use crate::error::{Error, FormatError};
use crate::store::Version;

/// Bytes of a page: 4096 entries.
const PAGE_BYTES: u64 = 64 << 10;
/// Bytes read at a time while verifying.
const VERIFY_BYTES: u64 = 256 << 10;

/// The index of one shard (or nested shard) of one version.
#[derive(Debug)]
pub(super) struct ShardIndex {
    reader: Arc<ArrayReader>,
    version: Version,
    place: ShardPlace,
    /// The encoded shard, bytes-to-bytes codecs undone.
    body: Slice,
    /// Which of the layouts that it may have is that of this index.
    candidate: u8,
    /// Where the index begins in the body.
    position: u64,
    /// The page used last: neighbours are asked for in turn.
    page: Option<(u64, Arc<Block>)>,
}

impl ShardIndex {
    /// The index, verified, of the shard at `place` that `body` is.
    pub(super) fn open(
        reader: Arc<ArrayReader>,
        version: Version,
        place: ShardPlace,
        body: Slice,
    ) -> Result<ShardIndex, Error> {
        let mut index = ShardIndex {
            reader,
            version,
            place,
            body,
            candidate: 0,
            position: 0,
            page: None,
        };
        index.candidate = index.verify()?;
        index.position = index
            .layout()?
            .position(index.body.len(), index.level()?.location)
            .map_err(|error| index.body.error(error))?;
        Ok(index)
    }

    /// The shard that entries lie in.
    pub(super) fn body(&self) -> &Slice {
        &self.body
    }

    /// Lets go of what is kept at hand.
    pub(super) fn rest(&mut self) {
        self.page = None;
    }

    fn level(&self) -> Result<&ShardLevel, Error> {
        let levels = self.reader.layout().levels();
        levels
            .get(usize::from(self.place.level))
            .ok_or(Error::Panicked)
    }

    /// How the index is encoded.
    fn layout(&self) -> Result<&IndexLayout, Error> {
        let mut candidates = self.level()?.index.candidates();
        candidates
            .nth(usize::from(self.candidate))
            .ok_or(Error::Panicked)
    }

    fn cache(&self) -> &Cache {
        self.reader.cache()
    }

    /// Checks the whole index, once per version. Gives the first layout that fits it.
    fn verify(&self) -> Result<u8, Error> {
        /// The first byte of a verdict that names no layout, but what is wrong.
        const WRONG: u8 = u8::MAX;
        let key = self.key(Part::IndexVerdict(self.place));
        let verdict = self.cache().get_or_load(key, || {
            // What is wrong with these bytes stays wrong for this version, and is worth
            // remembering; what kept us from reading them is not.
            let verdict = match self.check() {
                Ok(candidate) => vec![candidate],
                Err(Error::Chunk { error, .. }) => {
                    [&[WRONG], error.to_string().as_bytes()].concat()
                }
                Err(other) => return Err(other),
            };
            let reservation = self.cache().reserve(verdict.len() as u64, self.holding())?;
            Ok(Block::new(verdict, reservation))
        })?;
        match verdict.split_first() {
            Some((&WRONG, problem)) => Err(self.error(FormatError::encoded(
                "sharding_indexed",
                String::from_utf8_lossy(problem).into_owned(),
            ))),
            Some((&candidate, _)) => Ok(candidate),
            None => Err(Error::Panicked),
        }
    }

    fn check(&self) -> Result<u8, Error> {
        Counters::add(&self.cache().counters().index_verifications);
        let mut refusal = Error::Panicked;
        for (candidate, layout) in (0..).zip(self.level()?.index.candidates()) {
            match self.check_layout(layout) {
                Ok(()) => return Ok(candidate),
                Err(error @ Error::Chunk { .. }) => refusal = error,
                Err(other) => return Err(other),
            }
        }
        Err(refusal)
    }

    fn check_layout(&self, layout: &IndexLayout) -> Result<(), Error> {
        let start = layout
            .position(self.body.len(), self.level()?.location)
            .map_err(|error| self.error(error))?;
        let len = layout.encoded_len();
        let _reservation = self
            .cache()
            .reserve(VERIFY_BYTES.min(len), self.holding())?;
        let mut verifier = layout.verifier(self.body.len());
        let mut buffer = zeroed(to_usize(VERIFY_BYTES.min(len))?)?;
        let mut done = 0;
        let deadline = self.reader.shared.deadline();
        while done < len {
            deadline.check(|| format!("{}: index of {len} bytes", self.body.name()))?;
            let step = to_usize((len - done).min(VERIFY_BYTES))?;
            let piece = buffer.get_mut(..step).ok_or(Error::Panicked)?;
            self.body.read_at(start + done, piece)?;
            verifier.feed(piece).map_err(|error| self.error(error))?;
            done += step as u64;
        }
        verifier.finish().map_err(|error| self.error(error))
    }

    /// What the index says of `slot`.
    pub(super) fn entry(&mut self, slot: u64) -> Result<EntryState, Error> {
        let (offset_at, nbytes_at) = self.layout()?.words(slot);
        let offset = self.word(offset_at)?;
        let nbytes = self.word(nbytes_at)?;
        self.layout()?
            .entry(offset, nbytes, self.body.len())
            .map_err(|error| self.error(error))
    }

    fn word(&mut self, at: u64) -> Result<u64, Error> {
        let page_at = at - at % PAGE_BYTES;
        if self.page.as_ref().is_none_or(|(held, _)| *held != page_at) {
            // The old one goes first: room for the new one may have to wait for it.
            self.page = None;
            self.page = Some((page_at, self.load_page(page_at)?));
        }
        let within = to_usize(at - page_at)?;
        let bytes = self
            .page
            .as_ref()
            .and_then(|(_, page)| page.get(within..)?.first_chunk::<8>())
            .ok_or(Error::Panicked)?;
        Ok(self.layout()?.word(*bytes))
    }

    fn load_page(&self, page_at: u64) -> Result<Arc<Block>, Error> {
        let start = self.position;
        let len = self.layout()?.encoded_len();
        let key = self.key(Part::IndexPage {
            shard: self.place,
            at: page_at,
        });
        self.cache().get_or_load(key, || {
            let size = (len - page_at).min(PAGE_BYTES);
            let reservation = self.cache().reserve(size, self.holding())?;
            let mut bytes = zeroed(to_usize(size)?)?;
            self.body.read_at(start + page_at, &mut bytes)?;
            Ok(Block::new(bytes, reservation))
        })
    }

    fn holding(&self) -> Holding {
        self.body.holding()
    }

    fn key(&self, part: Part) -> BlockKey {
        self.reader.key(self.version, part)
    }

    fn error(&self, error: FormatError) -> Error {
        self.body.error(error)
    }
}

pub(super) fn to_usize(n: u64) -> Result<usize, Error> {
    usize::try_from(n).map_err(|_| Error::TooLarge {
        what: "a block".to_owned(),
        needed: n,
        limit: usize::MAX as u64,
    })
}
