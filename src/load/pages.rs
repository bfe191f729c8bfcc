//! Caches the bytes of stored objects in pages, where the store is slow to answer. So one request
//! serves many short reads, and pages can be prefetched.

use std::hash::BuildHasher;

use super::block::{Block, BlockKey, BlockPart, Owner};
use super::cache::{FlightKey, Load};
use super::loader::{Loader, Patience};
use super::prefetch::Prefetch;
use super::queued::Batches;
use super::slice::Slice;
use super::tuning::{LEAST_PAGE_BYTES, MOST_PAGE_BYTES, PAGES_SHARE};
use super::whole::NAMES;
use crate::error::Error;
use crate::sync::Arc;

/// A range of an object that is cut into pages.
#[derive(Debug)]
pub struct Pages {
    slice: Slice,
    owner: Owner,
    page_bytes: u64,
}

impl Pages {
    /// The bytes of page `number`; `None` after the last page.
    fn part(&self, number: u64) -> Option<Slice> {
        let start = number.checked_mul(self.page_bytes)?;
        let left = self
            .slice
            .len()
            .checked_sub(start)
            .filter(|&left| left > 0)?;
        self.slice.part(start, left.min(self.page_bytes))
    }

    /// The key of page `number`. Equal pages of two ranges of an object have the same key.
    fn key(&self, number: u64) -> Option<BlockKey> {
        let part = self.part(number)?;
        Some(BlockKey {
            owner: self.owner,
            version: part.object()?.meta().version,
            part: BlockPart::Page {
                at: part.offset(),
                len: part.len(),
            },
        })
    }

    /// Bytes of each page but the last, which may be shorter.
    pub fn page_bytes(&self) -> u64 {
        self.page_bytes
    }

    /// The number of pages.
    pub fn count(&self) -> u64 {
        self.slice.len().div_ceil(self.page_bytes)
    }

    /// The pages that `len` bytes at `offset` lie in. The items are the number of the page, the
    /// first wanted byte in it, and the range of the output that it fills.
    fn touched(
        &self,
        offset: u64,
        len: usize,
    ) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
        let end = offset.saturating_add(len as u64);
        let page_bytes = self.page_bytes;
        let numbers = offset / page_bytes..end.div_ceil(page_bytes);
        numbers.filter_map(move |number| {
            let start = number * page_bytes;
            let (from, to) = (offset.max(start), end.min(start + page_bytes));
            let at = usize::try_from(from - offset).ok()?;
            let until = usize::try_from(to - offset).ok()?;
            Some((number, usize::try_from(from - start).ok()?, at..until))
        })
    }
}

impl Pages {
    /// The page that has all of the `len` bytes at `offset`, and their offset in it; `None` if
    /// they lie in several pages.
    pub fn only_page(&self, offset: u64, len: usize) -> Option<(u64, usize)> {
        let mut touched = self.touched(offset, len);
        let (number, from, _) = touched.next()?;
        touched.next().is_none().then_some((number, from))
    }
}

impl Loader {
    /// Cuts `slice` into pages. `None` if pages are of no use: the kernel caches local files,
    /// and a slice of a block is in memory already.
    pub fn pages_of(&self, slice: &Slice) -> Option<Pages> {
        let object = slice.object()?;
        if self.is_local() || object.as_file().is_some() {
            return None;
        }
        let most = self.cache().budget().limit() / PAGES_SHARE;
        let page_bytes = self.request_bytes().next_power_of_two();
        Some(Pages {
            owner: Owner::Object(NAMES.hash_one(slice.name())),
            page_bytes: page_bytes
                .min(most)
                .clamp(LEAST_PAGE_BYTES, MOST_PAGE_BYTES),
            slice: slice.clone(),
        })
    }

    /// Loads the pages in which `len` bytes of `pages` at `offset` lie, so that a caller needs
    /// memory for the bytes only after they have arrived. `false` if some of them are not in memory
    /// and this thread must not wait.
    ///
    /// # Errors
    /// [`Error::Store`] when they cannot be read, and those of memory.
    pub fn load_pages(
        self: &Arc<Self>,
        pages: &Arc<Pages>,
        offset: u64,
        len: usize,
        patience: Patience,
    ) -> Result<bool, Error> {
        if patience == Patience::Waits {
            // Other threads load the other pages while this thread loads the first.
            for (number, ..) in pages.touched(offset, len).skip(1) {
                self.begin_page(pages, number);
            }
        }
        for (number, ..) in pages.touched(offset, len) {
            if self.page(pages, number, patience)?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The page `number`; `None` if it is not in memory and this thread must not wait.
    ///
    /// # Errors
    /// [`Error::Store`] when it cannot be read, and those of memory.
    pub fn page(
        &self,
        pages: &Pages,
        number: u64,
        patience: Patience,
    ) -> Result<Option<Arc<Block>>, Error> {
        let key = pages.key(number).ok_or(Error::Stale)?;
        match patience {
            Patience::Waits => {
                let block = self.cache().load(key, || self.load_page(pages, number))?;
                Ok(Some(block))
            }
            Patience::Never => Ok(self.cache().get(&key)),
        }
    }

    /// Fills `out` with bytes of `pages` from `offset` on, which [`Loader::load_pages`] has loaded.
    /// Returns `false` if some of them were evicted since and this thread must not wait; `out` then has
    /// unspecified bytes.
    ///
    /// # Errors
    /// Those of [`Loader::load_pages`].
    pub fn read_pages(
        &self,
        pages: &Pages,
        offset: u64,
        out: &mut [u8],
        patience: Patience,
    ) -> Result<bool, Error> {
        for (number, from, to) in pages.touched(offset, out.len()) {
            let Some(block) = self.page(pages, number, patience)? else {
                return Ok(false);
            };
            let bytes = block.get(from..).and_then(|bytes| bytes.get(..to.len()));
            let (Some(bytes), Some(out)) = (bytes, out.get_mut(to)) else {
                let name = pages.slice.name();
                return Err(Error::internal(format!(
                    "{name}: bytes beyond page {number}"
                )));
            };
            out.copy_from_slice(bytes);
        }
        Ok(true)
    }

    /// Begins to prefetch the pages `numbers`.
    pub fn prefetch_pages(
        self: &Arc<Self>,
        pages: &Arc<Pages>,
        numbers: std::ops::Range<u64>,
    ) -> Prefetch {
        let mut batches = Batches::of(1);
        for (key, load) in numbers.filter_map(|number| self.page_flight(pages, number)) {
            if self.cache().ask(key, load, None) {
                batches.push(key, false);
            }
        }
        self.prefetch_queued(batches, None, self.most_prefetches())
    }

    fn begin_page(self: &Arc<Self>, pages: &Arc<Pages>, number: u64) {
        if let Some((key, load)) = self.page_flight(pages, number)
            && self.cache().ask(key, load, None)
        {
            self.run_all(Batches::one(key), 1, Patience::Never);
        }
    }

    fn page_flight(self: &Arc<Self>, pages: &Arc<Pages>, number: u64) -> Option<(FlightKey, Load)> {
        let key = pages.key(number)?;
        let (loader, pages) = (Arc::clone(self), Arc::clone(pages));
        let load = move || loader.load_page(&pages, number);
        Some((FlightKey::Block(key), Load::Block(Box::new(load))))
    }

    fn load_page(&self, pages: &Pages, number: u64) -> Result<Block, Error> {
        self.read_whole(&pages.part(number).ok_or(Error::Stale)?)
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use crate::store::{Key, MemoryStore, Store};

    #[test]
    fn a_range_is_cut_into_pages() {
        let store = MemoryStore::new();
        let key = Key::parse(b"a").unwrap();
        store.insert(key.clone(), vec![0; 250]);
        let object = store.open(&key).unwrap().unwrap();
        let slice = Slice::of_object(object, "a".into()).part(50, 200).unwrap();
        let pages = Pages {
            slice,
            owner: Owner::Object(1),
            page_bytes: 64,
        };
        assert_eq!(pages.count(), 4);
        let part = |number| pages.part(number).map(|part| (part.offset(), part.len()));
        assert_eq!(part(0), Some((50, 64)));
        assert_eq!(part(3), Some((242, 8)));
        assert_eq!(part(4), None);
        let touched: Vec<_> = pages.touched(60, 70).collect();
        assert_eq!(touched, [(0, 60, 0..4), (1, 0, 4..68), (2, 0, 68..70)]);
        assert_eq!(pages.touched(64, 64).count(), 1);
    }
}
