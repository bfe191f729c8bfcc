//! Shard indices. An index is verified once per version in one pass, and then read page by page.
//!
//! A short index is cached in one block, behind the result of its verification. A long index, which
//! has 16 bytes for each chunk, may be larger than the whole budget, so its pages are blocks of
//! their own.

use super::array::ChunkedArray;
use super::block::{Block, BlockKey, BlockPart, ShardPlace};
use super::cache::Cache;
use super::layout::ShardLevel;
use super::loader::Loader;
use super::size::to_usize;
use super::slice::Slice;
use super::tuning::PAGE_BYTES;
use crate::budget::{Holding, Reservation};
use crate::buffers::zeroed;
use crate::codec::{EntryState, IndexLayout};
use crate::error::{Error, FormatError};
use crate::store::Version;
use crate::sync::Arc;

/// The first byte of a verdict on a damaged index. An error message follows in place of the index.
const WRONG: u8 = u8::MAX;

/// Bytes that verifying reads at a time.
const VERIFY_BYTES: u64 = 256 << 10;

/// The index of one shard, or nested shard, in one version of its object.
#[derive(Debug)]
pub(super) struct ShardIndex {
    loader: Arc<Loader>,
    array: Arc<ChunkedArray>,
    version: Version,
    place: ShardPlace,
    /// How this index is encoded, where the shards of a level have indices of different lengths.
    own_layout: Option<IndexLayout>,
    /// The shard after its bytes-to-bytes codecs were undone.
    body: Slice,
    /// The number of the layout of this index among those that it may have.
    candidate: u8,
    /// The offset of the index in the body.
    position: u64,
    /// The page that was used last, because neighbouring entries are often needed one after the
    /// other.
    page: Option<Page>,
}

/// A part of an index.
#[derive(Debug)]
struct Page {
    /// The offset of the page in the index.
    at: u64,
    block: Arc<Block>,
    /// The offset of the page in the block.
    skip: usize,
}

impl ShardIndex {
    /// Opens and verifies the index of the shard `place`, whose bytes are `body`. The index has the layout
    /// `own_layout`, or the layout of all indices of its level if that is `None`.
    pub(super) fn open(
        (loader, array): (Arc<Loader>, Arc<ChunkedArray>),
        version: Version,
        (place, own_layout): (ShardPlace, Option<IndexLayout>),
        body: Slice,
    ) -> Result<ShardIndex, Error> {
        let mut index = ShardIndex {
            loader,
            array,
            version,
            place,
            own_layout,
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

    /// The bytes of the shard, which the entries are ranges of.
    pub(super) fn body(&self) -> &Slice {
        &self.body
    }

    /// The range of the index in the body of the shard.
    pub(super) fn range(&self) -> Result<(u64, u64), Error> {
        let len = self.layout()?.encoded_len();
        Ok((self.position, self.position.saturating_add(len)))
    }

    /// Memory of `bytes` for what is made of the index.
    pub(super) fn reserve(&self, bytes: u64) -> Result<Reservation, Error> {
        self.cache().reserve(bytes, self.holding())
    }

    /// Releases the page that this index holds.
    pub(super) fn release(&mut self) {
        self.page = None;
    }

    fn level(&self) -> Result<&ShardLevel, Error> {
        let levels = self.array.layout().levels();
        levels
            .get(usize::from(self.place.level))
            .ok_or_else(|| self.internal("no such level of shards"))
    }

    /// The layouts that the index may have.
    fn candidates(&self) -> Result<impl Iterator<Item = &IndexLayout>, Error> {
        let layout = match &self.own_layout {
            Some(own) => own,
            None => &self.level()?.index,
        };
        Ok(layout.candidates())
    }

    /// The encoding of the index.
    pub(super) fn layout(&self) -> Result<&IndexLayout, Error> {
        let mut candidates = self.candidates()?;
        candidates
            .nth(usize::from(self.candidate))
            .ok_or_else(|| self.internal("no such layout of the index"))
    }

    fn cache(&self) -> &Cache {
        self.loader.cache()
    }

    /// Checks the whole index, once per version, and returns the number of the first layout that
    /// fits.
    fn verify(&mut self) -> Result<u8, Error> {
        let block = self.verdict()?;
        let (&candidate, index) = block
            .split_first()
            .ok_or_else(|| self.internal("an empty verdict on the index"))?;
        if candidate == WRONG {
            let problem = String::from_utf8_lossy(index).into_owned();
            return Err(self.error(FormatError::encoded("sharding_indexed", problem)));
        }
        if !index.is_empty() {
            let (at, skip) = (0, 1);
            self.page = Some(Page { at, block, skip });
        }
        Ok(candidate)
    }

    /// The verdict on the index: a byte with the number of the layout that fits, and the index, if
    /// it is short; or the byte [`WRONG`] and the problem.
    fn verdict(&self) -> Result<Arc<Block>, Error> {
        let key = self.key(BlockPart::IndexVerdict(self.place));
        self.cache().load(key, || {
            // Damage is a property of this version, and is worth remembering. A failure to read the
            // bytes is not.
            let verdict = match self.check() {
                Ok(verdict) => verdict,
                Err(Error::Chunk { error, .. }) => {
                    let problem = match &error {
                        FormatError::Encoded { problem, .. } => problem.clone(),
                        other => other.to_string(),
                    };
                    [&[WRONG], problem.as_bytes()].concat()
                }
                Err(other) => return Err(other),
            };
            let reservation = self.cache().reserve(verdict.len() as u64, self.holding())?;
            Ok(Block::new(verdict, reservation))
        })
    }

    fn check(&self) -> Result<Vec<u8>, Error> {
        self.cache().counters().index_verifications.add(1);
        let mut refusal = None;
        for (candidate, layout) in (0..).zip(self.candidates()?) {
            match self.check_layout(candidate, layout) {
                Ok(verdict) => return Ok(verdict),
                Err(error @ Error::Chunk { .. }) => refusal = Some(error),
                Err(other) => return Err(other),
            }
        }
        Err(refusal.unwrap_or_else(|| self.internal("an index without a layout")))
    }

    /// The verdict on an index that `layout` fits.
    fn check_layout(&self, candidate: u8, layout: &IndexLayout) -> Result<Vec<u8>, Error> {
        let start = layout
            .position(self.body.len(), self.level()?.location)
            .map_err(|error| self.error(error))?;
        let len = layout.encoded_len();
        let piece_len = VERIFY_BYTES.min(len);
        let _reservation = self.cache().reserve(piece_len, self.holding())?;
        let mut verifier = layout.verifier(self.body.len());
        // The first byte of the buffer is the first byte of the verdict.
        let mut buffer = zeroed(to_usize(piece_len + 1)?)?;
        let mut done = 0;
        let deadline = self.loader.deadline();
        while done < len {
            deadline.check(|| format!("{}: index of {len} bytes", self.body.name()))?;
            let step = to_usize((len - done).min(VERIFY_BYTES))?;
            let piece = buffer
                .get_mut(1..=step)
                .ok_or_else(|| self.internal("a piece of the index beyond its buffer"))?;
            self.body.read_at(start + done, piece)?;
            verifier.feed(piece).map_err(|error| self.error(error))?;
            done += step as u64;
        }
        verifier.finish().map_err(|error| self.error(error))?;
        if len > PAGE_BYTES {
            buffer = vec![candidate];
        } else if let Some(first) = buffer.first_mut() {
            *first = candidate;
        }
        Ok(buffer)
    }

    /// The entry of the index for `slot`.
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
        // Another page is released first, because the new one may have to wait for its memory.
        let page = match self.page.take().filter(|page| page.at == page_at) {
            Some(page) => page,
            None => self.load_page(page_at)?,
        };
        let within = to_usize(at - page_at)? + page.skip;
        let bytes = page.block.get(within..).and_then(<[u8]>::first_chunk::<8>);
        let &bytes = bytes.ok_or_else(|| self.internal("a word beyond its page of the index"))?;
        self.page = Some(page);
        Ok(self.layout()?.word(bytes))
    }

    fn load_page(&self, page_at: u64) -> Result<Page, Error> {
        let start = self.position;
        let len = self.layout()?.encoded_len();
        if len <= PAGE_BYTES {
            let block = self.verdict()?;
            return Ok(Page {
                at: 0,
                block,
                skip: 1,
            });
        }
        let key = self.key(BlockPart::IndexPage {
            shard: self.place,
            at: page_at,
        });
        let block = self.cache().load(key, || {
            let size = (len - page_at).min(PAGE_BYTES);
            let reservation = self.cache().reserve(size, self.holding())?;
            let mut bytes = zeroed(to_usize(size)?)?;
            self.body.read_at(start + page_at, &mut bytes)?;
            Ok(Block::new(bytes, reservation))
        })?;
        Ok(Page {
            at: page_at,
            block,
            skip: 0,
        })
    }

    fn holding(&self) -> Holding {
        self.body.holding()
    }

    fn key(&self, part: BlockPart) -> BlockKey {
        self.array.key(self.version, part)
    }

    fn error(&self, error: FormatError) -> Error {
        self.body.error(error)
    }

    #[track_caller]
    fn internal(&self, found: &str) -> Error {
        Error::internal(format!("{}: {:?}: {found}", self.body.name(), self.place))
    }
}
