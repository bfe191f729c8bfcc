//! Open `.png` files. Their sizes follow from metadata, and their bytes from elements all over a plane, so that a file
//! is made as a whole when it is first read. The cache keeps the file. After an eviction, it is made again from the
//! same versions of the chunks.

use std::sync::Arc;

use super::super::fingerprint::hash;
use super::file::{ElementSource, PlainFile};
use super::preview_samples::SampledPreview;
use super::snapshot::Snapshot;
use crate::budget::Holding;
use crate::error::Error;
use crate::load::{Block, BlockKey, BlockPart, ChunkedArray, Loader, Owner, Versions};

/// An open preview.
#[derive(Debug)]
pub(in crate::view) struct PreviewOpen {
    shown: Arc<SampledPreview>,
    array: Arc<ChunkedArray>,
    snapshot: Arc<Snapshot>,
    key: BlockKey,
}

impl Drop for PreviewOpen {
    fn drop(&mut self) {
        self.snapshot.close();
    }
}

impl PreviewOpen {
    /// The preview of `file`, in the versions of `snapshot`, which counts it as an open handle.
    pub(super) fn new(
        file: &PlainFile,
        (shown, source): (&Arc<SampledPreview>, &ElementSource),
        snapshot: Arc<Snapshot>,
    ) -> PreviewOpen {
        let key = BlockKey {
            owner: Owner::Object(hash(&("preview", file.identity, snapshot.number))),
            version: file.meta.version,
            part: BlockPart::Document { epoch: 0 },
        };
        PreviewOpen {
            shown: Arc::clone(shown),
            array: Arc::clone(&source.array.chunked),
            snapshot,
            key,
        }
    }

    /// The number of the snapshot; `None` if there is only one.
    pub(in crate::view) fn snapshot(&self) -> Option<u64> {
        self.snapshot.version()
    }

    /// Whether all pages that the kernel holds of the file were read from this snapshot.
    pub(in crate::view) fn keeps_pages(&self) -> bool {
        self.snapshot.is_clean()
    }

    /// Tells the snapshot that the kernel holds no pages of the file.
    pub(in crate::view) fn pages_dropped(&self) {
        self.snapshot.set_clean();
    }

    /// The file, if it is in memory.
    pub(in crate::view) fn cached(&self, loader: &Loader) -> Option<Arc<Block>> {
        // The kernel reads through this handle, so it dropped all older pages when the file was opened.
        self.snapshot.set_clean();
        loader.cache().get(&self.key)
    }

    /// The file, for a caller that waits while it is made.
    ///
    /// # Errors
    /// Those of the chunks; [`Error::Stale`] when they are no longer of the versions that this handle shows.
    pub(in crate::view) fn file(&self, loader: &Arc<Loader>) -> Result<Arc<Block>, Error> {
        loader.cache().load(self.key, || {
            let (cache, SampledPreview { preview, samples }) = (loader.cache(), &*self.shown);
            let holding = Holding::NOTHING.to_hold("a preview");
            let mut memory = cache.reserve_in_turn(preview.memory_bytes(), holding)?;
            let versions = Arc::<Snapshot>::clone(&self.snapshot) as Arc<dyn Versions>;
            let elements = samples.read(loader, &self.array, &versions)?;
            self.snapshot.confirm()?;
            let file = preview.paint(&elements);
            drop(elements);
            // A cached block must not keep the turn. Until it has memory of its own, the file counts in that of the turn.
            memory.shrink_to(file.len() as u64);
            let own = cache.reserve(file.len() as u64, holding.and_one())?;
            Ok(Block::new(file, own))
        })
    }
}
