//! Long texts of sidecars. They are kept in the cache, where they may be evicted and are made
//! again, and not with the file: a listing needs only their length.

use std::sync::{Arc, Weak};

use super::super::vnode::PlainName;
use super::Arrays;
use super::file::{FileParts, PlainFile, SMALL_BYTES};
use super::lock;
use crate::budget::Holding;
use crate::error::Error;
use crate::load::Block;
use crate::plain::{Layout, PartContent};
use crate::store::ObjectMeta;

/// The most memory for long texts of open files: this fraction of the cache, and this many bytes
/// more. The headers of other files may take as much again.
const TEXTS_PART: u64 = 4;
const TEXTS_BYTES: u64 = 12 << 20;

impl FileParts {
    /// Takes the text out of the layout of a sidecar, if it is long.
    pub(super) fn take_long_text(&mut self, name: &PlainName) -> Option<Arc<[u8]>> {
        if !name.is_sidecar() || self.layout.len() <= SMALL_BYTES {
            return None;
        }
        let [part] = self.layout.parts() else {
            return None;
        };
        let PartContent::Bytes(text) = &part.content else {
            return None;
        };
        let text = Arc::clone(text);
        self.layout = Layout::of_bytes(Vec::new());
        Some(text)
    }
}

impl Arrays {
    /// The long text of the file called `name`, with the attributes of its document; `None` when
    /// there is no such file, or its text has become short.
    pub(in crate::view) fn long_text(
        &self,
        name: &PlainName,
    ) -> Result<Option<(ObjectMeta, Arc<Block>)>, Error> {
        let Some(file) = self.file_or_none(name)? else {
            return Ok(None);
        };
        if file.text_len.is_none() {
            return Ok(None);
        }
        let block = self
            .tree
            .document_block(file.identity, file.meta.version, 0, || {
                let mut parts = self.make_plain(name)?.ok_or(Error::Stale)?;
                if parts.identity(name) != file.identity {
                    return Err(Error::Stale);
                }
                let text = parts.take_long_text(name).ok_or(Error::Stale)?;
                Ok(text.to_vec())
            })?;
        Ok(Some((file.meta, block)))
    }

    /// A copy of `text`, the text of `file`, that all open handles share; `None` if the budget
    /// has no room for it.
    pub(super) fn kept_text(&self, file: &PlainFile, text: &Block) -> Option<Arc<Block>> {
        let most = self.tree.loader.cache().budget().limit() / TEXTS_PART + TEXTS_BYTES;
        let len = text.len() as u64;
        {
            let mut texts = lock(&self.texts);
            texts.retain(|_, text| text.strong_count() > 0);
            let open = texts.values().filter_map(Weak::upgrade);
            let used: u64 = open.map(|text| text.len() as u64).sum();
            match texts.get(&file.identity).and_then(Weak::upgrade) {
                Some(kept) => return Some(kept),
                None if used.saturating_add(len) > most => return None,
                None => {}
            }
        }
        // Not under the lock: to make room, the budget may drop files, which takes the lock.
        let holding = Holding::NOTHING.to_hold("the text of a file");
        let reservation = self.tree.loader.cache().reserve_kept(len, holding).ok()?;
        let kept = Arc::new(Block::new(text.to_vec(), reservation));
        lock(&self.texts).insert(file.identity, Arc::downgrade(&kept));
        Some(kept)
    }
}
